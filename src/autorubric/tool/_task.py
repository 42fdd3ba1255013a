"""A request with its criteria and everything else that is derived from it before an evaluator is called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autorubric._files import FORMATS
from autorubric.criteria import BaseCriterion, NumericalRatingCriterion
from autorubric.errors import ArgumentError
from autorubric.prompts import neutralise
from autorubric.rubric import Rubric
from autorubric.tool._providers import Provider, ProviderTable
from autorubric.tool._request import CALLED, CritiqueRequest, FoundType, found_type, misfit_note
from autorubric.tool._response import Issue
from autorubric.tool._workspace import Workspace

HIGHEST: Final = 10.0
"""The highest score on a criterion; judges score from 0 to this value."""

STANDARD: Final[Mapping[str, str]] = {
    "correctness": (
        "The content is right. Code does what it sets out to do for every input that it may meet, "
        "boundaries, empty input and failures included; statements are true; conclusions follow; figures "
        "add up; results say what really happened. Trace the decisive steps yourself instead of trusting "
        "names and comments. 10: no error found on a close reading. 5: works in the ordinary case and fails "
        "in a case that will occur. 0: wrong at its core. Matters of taste do not count."
    ),
    "completeness": (
        "Everything that was asked for is there. Take the requirements from the context, else from what the "
        "content itself promises; look for each of them, and for what they bring with them: error paths, "
        "cases left open, placeholders, work announced and not done. 10: every requirement is met. 5: the "
        "main one is met and others are missing. 0: hardly begun. Do not ask for more than was asked for."
    ),
    "quality": (
        "The content is well made. Code is clear, simple and fit to be changed: good names, one purpose a "
        "part, no repetition, no needless cleverness, failures handled where they arise. Writing is clear, "
        "well ordered, precise and as short as its subject allows. 10: one would learn from it. 5: usable, "
        "and in need of rework. 0: can hardly be followed. Whether it is right belongs to correctness."
    ),
    "security": (
        "The content opens no way to an attacker. Look for input that is trusted unchecked (injection, path "
        "traversal, unsafe parsing), secrets in the open, missing or wrong checks of who may do what, weak "
        "or homemade cryptography, unsafe defaults, connections that are not verified, and data that leaks "
        "into logs or errors. Name the way in for each finding: who sends what, and what they gain. 10: no "
        "weakness found. 5: one that needs special circumstances. 0: one that anybody could use."
    ),
    "performance": (
        "The content spends no more time, memory, traffic or money than its task needs. Look for work "
        "repeated in loops, growth worse than need be, one request a record where one would do, waiting "
        "that blocks others, what is kept and never released. Weigh each by the sizes that will really "
        "occur. 10: no bottleneck found. 5: one that shows under ordinary load. 0: unusable at its intended "
        "size. What cannot be noticed is no issue."
    ),
    "style": (
        "The content keeps to the conventions of where it belongs: those that the context states, else "
        "those that the content itself follows elsewhere, else the customs of its language or kind of "
        "document. Look at naming, layout, idiom, tone, spelling, and consistency with itself. 10: nobody "
        "could tell it from its surroundings. 5: departs from them in several places. 0: keeps to none. "
        "What a formatter mends by itself weighs little."
    ),
    "safety": (
        "What the content does, or would have done, harms nobody and nothing. Look for actions outside the "
        "workspace or beyond what was asked, for deleting, overwriting or publishing what cannot be brought "
        "back, for commands run unseen, for limits and confirmations that were circumvented, and for private "
        "data handed on. 10: every action is within bounds and can be undone. 5: a risk that happens to have "
        "no consequence. 0: harm is done or invited. What is only talked about was not done."
    ),
}
"""Requirements of the standard criteria, for judges."""

_OWN: Final = (
    "How far the content deserves the word {name!r}. Take it in the sense that it has for content of this "
    "kind, and as the context uses it where it does. Judge by what can be pointed at. 10: nothing is left "
    "to wish for. 5: about half of what it takes is there. 0: nothing of it is there. If the word makes no "
    "sense for this content, say that it cannot be assessed."
)


def own_requirement(name: str) -> str:
    """Return the requirement text of a criterion that only has a name."""
    return _OWN.format(name=name.replace("_", " ").replace("-", " "))


def criterion_named(name: str) -> BaseCriterion:
    """Create the standard or custom criterion with a given name, which is scored from 0 to 10."""
    requirement = STANDARD.get(name.casefold()) or own_requirement(name)
    return NumericalRatingCriterion(
        name=name, requirement=requirement, weight=1.0, min_value=0.0, max_value=HIGHEST
    )


def is_rubric_file(name: str) -> bool:
    """Return whether the name of a criterion is the path of a rubric file."""
    return Path(name).suffix.lower() in FORMATS and FORMATS[Path(name).suffix.lower()] != "jsonl"


def rubric_of(criteria: Sequence[str], *places: Workspace | None) -> Rubric:
    """Create the rubric for a request's criteria.

    Args:
        criteria: Names of criteria, or the path of one rubric file.
        *places: Folders that must all contain the rubric file; its path is relative to the first folder.

    Raises:
        ArgumentError: If a rubric file is combined with other criteria or is outside one of the folders.
        RubricError: If the file cannot be read or has errors.
    """
    files = [name for name in criteria if is_rubric_file(name)]
    if not files:
        return Rubric([criterion_named(name) for name in criteria])
    if len(criteria) > 1:
        raise ArgumentError(f"criteria: the rubric file {files[0]!r} cannot be combined with other criteria")
    path = files[0]
    for place in places:
        path = path if place is None else str(place.path(path))
    return Rubric.from_file(path)


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
