"""A request with everything that is derived from it before an evaluator is called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autorubric.prompts import neutralise
from autorubric.rubric import Rubric
from autorubric.tool._content import CALLED, FoundType, found_type, misfit_note
from autorubric.tool._providers import Provider, ProviderTable
from autorubric.tool._request import CritiqueRequest
from autorubric.tool._response import Issue
from autorubric.tool._standard import rubric_of
from autorubric.tool._workspace import Workspace

_MOST_TOLD: Final = 20
"""Maximum number of paths outside the workspace that are listed for the critic; others are counted."""

_LONGEST_TOLD: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A request with everything that is derived from it.

    Attributes:
        request: The request to evaluate.
        rubric: The criteria of the request.
        content_type: The declared or detected type of the content.
        content_note: A note about the content for the critic.
        workspace: The workspace that must contain all locations; None for no restriction.
        providers: The providers to try, in order.
    """

    request: CritiqueRequest
    rubric: Rubric
    content_type: FoundType
    content_note: str
    workspace: Workspace | None
    providers: tuple[Provider, ...]


def task_of(request: CritiqueRequest, table: ProviderTable, rubric_root: str | Path | None) -> Task:
    """Create the task for a request.

    Args:
        request: The request to evaluate.
        table: The available evaluators.
        rubric_root: The folder that must contain the rubric file, regardless of the request; None for any.

    Raises:
        ArgumentError: If the workspace, the criteria or the provider is invalid.
        RubricError: If a rubric file cannot be read or has errors.
    """
    workspace = None if request.workspace_root is None else Workspace.at(request.workspace_root)
    files = None if rubric_root is None else Workspace.at(str(rubric_root), "rubric_root")
    rubric = rubric_of(request.criteria, workspace, files)
    content_type = found_type(request.content, request.content_type)
    notes = [f"The submission is {CALLED[content_type]}."]
    if note := misfit_note(request.content, request.content_type):
        notes.append(note)
    if workspace is not None and (outside := workspace.named_outside(request.content)):
        notes.append(_outside_note(outside))
    return Task(
        request=request,
        rubric=rubric,
        content_type=content_type,
        content_note=" ".join(notes),
        workspace=workspace,
        providers=table.routed(request.provider, content_type, rubric.names),
    )


def _outside_note(outside: Sequence[str]) -> str:
    told = [
        neutralise(json.dumps(path if len(path) <= _LONGEST_TOLD else f"{path[:_LONGEST_TOLD]}…"))
        for path in outside
    ]
    more = f", and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    named = ", ".join(told[:_MOST_TOLD])
    return f"The submission names what seem to be paths outside the workspace: {named}{more}."


def confined(issue: Issue, workspace: Workspace | None) -> Issue:
    """Return the issue, with a location outside the workspace replaced by a notice."""
    if workspace is None:
        return issue
    return issue.model_copy(update={"location": workspace.confined(issue.location)})
