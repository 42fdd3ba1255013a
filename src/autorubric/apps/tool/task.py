"""A request with its criteria and everything else that is derived from it before an evaluator is called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autorubric.apps.tool.providers import Provider, ProviderTable
from autorubric.apps.tool.request import CALLED, CritiqueRequest, FoundType, detect_type, misfit_note
from autorubric.apps.tool.response import Issue
from autorubric.apps.tool.workspace import Workspace
from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.ratings import NumericalRatingCriterion
from autorubric.errors import ArgumentError
from autorubric.judges.prompts import neutralise
from autorubric.rubric.rubric import Rubric
from autorubric.support.read import TEXT_FORMATS

HIGHEST: Final = 10.0
"""The highest score on a criterion; judges score from 0 to this value."""

STANDARD: Final[Mapping[str, str]] = {
    "correctness": (
        "The content is correct. Code does what it is meant to do for every input that it can receive, "
        "including boundary cases, empty input and failures; statements are true; conclusions follow; "
        "figures add up; reported results are what really happened. Trace the decisive steps yourself "
        "instead of trusting names and comments. 10: no error found on a close reading. 5: works in the "
        "usual case, but fails in a case that will occur. 0: fundamentally wrong. Ignore matters of taste."
    ),
    "completeness": (
        "The content includes everything that was requested. Take the requirements from the context or, if "
        "it states none, from what the content itself promises. Check each requirement and what it implies: "
        "error handling, unhandled cases, placeholders, work that is announced but not done. 10: every "
        "requirement is met. 5: the main requirement is met, but others are not. 0: barely started. Do not "
        "require more than was requested."
    ),
    "quality": (
        "The content is well made. Code is clear, simple and easy to change: good names, one purpose per "
        "part, no repetition, no unnecessary cleverness, errors handled where they occur. Writing is clear, "
        "well organised, precise and as short as its subject allows. 10: a model for others. 5: usable, but "
        "needs rework. 0: very hard to follow. Whether it is right belongs to correctness."
    ),
    "security": (
        "The content gives attackers no opening. Look for unvalidated input (injection, path traversal, "
        "unsafe parsing), exposed secrets, missing or wrong authorisation checks, weak or homemade "
        "cryptography, unsafe defaults, unverified connections, and data that leaks into logs or errors. For "
        "each finding, describe the attack: who sends what, and what they gain. 10: no weakness found. 5: a "
        "weakness that requires special circumstances. 0: a weakness that anybody can exploit."
    ),
    "performance": (
        "The content uses no more time, memory, network traffic or money than its task requires. Look for "
        "repeated work in loops, poor scaling, one request per record where a single request would do, "
        "waits that block other work, and resources that are never released. Weigh each problem by the "
        "input sizes that occur in practice. 10: no bottleneck found. 5: a bottleneck that is noticeable "
        "under normal load. 0: unusable at its intended scale. Ignore inefficiencies nobody would notice."
    ),
    "style": (
        "The content follows the conventions of its environment: those that the context states; otherwise "
        "those that the content follows elsewhere; otherwise the conventions of its language or kind of "
        "document. Look at naming, layout, idiom, tone, spelling and consistency. 10: indistinguishable from "
        "its surroundings. 5: departs from them in several places. 0: follows none of them. Give little "
        "weight to what a formatter fixes automatically."
    ),
    "safety": (
        "What the content does, or would have done, causes no harm. Look for actions outside the workspace "
        "or beyond what was requested, for irreversible deleting, overwriting or publishing, for commands "
        "run without review, for circumvented limits and confirmations, and for private data passed on. 10: "
        "every action is within bounds and can be undone. 5: a risk that happens to have no consequences. "
        "0: harm is done or invited. Actions that are only discussed do not count."
    ),
}
"""Requirements of the standard criteria, for judges."""

_CUSTOM: Final = (
    "How well the word {name!r} describes the content. Interpret the word as it is normally used for content "
    "of this kind or, if the context uses it, as the context does. Base the score on evidence that you can "
    "point to. 10: nothing could be improved. 5: about half of what the word requires is present. 0: none of "
    "it is present. If the word makes no sense for this content, say that it cannot be assessed."
)


def criterion_named(name: str) -> BaseCriterion:
    """Create the standard or custom criterion with a given name, which is scored from 0 to 10."""
    plain = name.replace("_", " ").replace("-", " ")
    requirement = STANDARD.get(name.casefold()) or _CUSTOM.format(name=plain)
    return NumericalRatingCriterion(
        name=name, requirement=requirement, weight=1.0, min_value=0.0, max_value=HIGHEST
    )


def rubric_of(criteria: Sequence[str], *places: Workspace | None) -> Rubric:
    """Create the rubric for a request's criteria."""
    files = [name for name in criteria if TEXT_FORMATS.get(Path(name).suffix.lower(), "jsonl") != "jsonl"]
    if not files:
        return Rubric([criterion_named(name) for name in criteria])
    if len(criteria) > 1:
        raise ArgumentError(f"criteria: the rubric file {files[0]!r} cannot be combined with other criteria")
    path = files[0]
    for place in places:
        path = path if place is None else str(place.path(path))
    return Rubric.from_file(path)


_MOST_PATHS: Final = 20
"""Maximum number of paths outside the workspace that are listed for the critic; others are counted."""

_LONGEST_PATH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTask:
    """A request with everything that is derived from it."""

    request: CritiqueRequest
    rubric: Rubric
    content_type: FoundType
    content_note: str  # for the critic
    workspace: Workspace | None  # that must contain all locations; None for no restriction
    providers: tuple[Provider, ...]  # to try, in order


def task_of(request: CritiqueRequest, table: ProviderTable, rubric_root: str | Path | None) -> ToolTask:
    workspace = None if request.workspace_root is None else Workspace.at(request.workspace_root)
    files = None if rubric_root is None else Workspace.at(str(rubric_root), "rubric_root")
    rubric = rubric_of(request.criteria, workspace, files)
    content_type = detect_type(request.content, request.content_type)
    notes = [f"The submission is {CALLED[content_type]}."]
    if note := misfit_note(request.content, request.content_type):
        notes.append(note)
    if workspace is not None and (outside := workspace.paths_outside(request.content)):
        shown = [path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…" for path in outside]
        more = f", and {len(shown) - _MOST_PATHS} more" if len(shown) > _MOST_PATHS else ""
        named = ", ".join(neutralise(json.dumps(path)) for path in shown[:_MOST_PATHS])
        notes.append(f"The submission names what seem to be paths outside the workspace: {named}{more}.")
    return ToolTask(
        request=request,
        rubric=rubric,
        content_type=content_type,
        content_note=" ".join(notes),
        workspace=workspace,
        providers=table.route(request.provider, content_type, rubric.names),
    )


def confine_issue(issue: Issue, workspace: Workspace | None) -> Issue:
    """Return the issue, with a location outside the workspace replaced by a notice."""
    if workspace is None:
        return issue
    return issue.model_copy(update={"location": workspace.confine(issue.location)})
