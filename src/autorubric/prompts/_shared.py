"""What all criteria of an item share in their prompts: put together once, and kept while the text lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from autorubric.criteria import candidate_id
from autorubric.prompts._delimit import delimit, item_tag
from autorubric.prompts._texts import GUIDELINES_HEAD
from autorubric.values import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What all criteria of an item share.

    Attributes:
        submission: What is judged.
        query: What it answers.
        reference: A good answer to compare with.
        guidelines: The rubric's guidelines.
        order: Names of the candidates in the order shown, where they are compared; they stand in the place
            of the submission then.
    """

    submission: Submission
    query: str | None = None
    reference: str | None = None
    guidelines: str | None = None
    order: tuple[str, ...] = ()


class Shared(NamedTuple):
    """The shared part of a prompt.

    Attributes:
        tag: The tag of its delimiters.
        prefix: Its text, which begins the user message.
    """

    tag: str
    prefix: str


_Beside: TypeAlias = tuple[str | None, str | None, str | None, tuple[str, ...]]

# By identity: a submission with candidates has no hash, and equal ones need not be found.
_KEPT: Final[dict[int, tuple[weakref.ref[Submission], dict[_Beside, Shared]]]] = {}


def shared_of(material: Material) -> Shared:
    """The part of the prompt that all criteria of an item share, computed once for each submission object."""
    submission = material.submission
    beside = (material.query, material.reference, material.guidelines, material.order)
    kept = _KEPT.get(id(submission))
    if kept is None or kept[0]() is not submission:
        kept = _KEPT[id(submission)] = (weakref.ref(submission, _forgetting(id(submission))), {})
    found = kept[1].get(beside)
    if found is None:
        found = kept[1][beside] = _shared(material)
    return found


def _forgetting(key: int) -> Callable[[weakref.ref[Submission]], None]:
    def forget(reference: weakref.ref[Submission]) -> None:
        kept = _KEPT.get(key)
        # Another object may have the number by now.
        if kept is not None and kept[0] is reference:
            del _KEPT[key]

    return forget


def _shared(material: Material) -> Shared:
    submission = material.submission
    others = list(submission.candidates.values())[1:]
    tag = item_tag(submission.text, submission.thinking, material.query, material.reference, *others)
    parts = []
    if material.guidelines:
        parts.append(f"{GUIDELINES_HEAD}\n{material.guidelines}")
    if material.query is not None:
        parts.append(delimit("query", material.query, tag))
    if material.reference is not None:
        parts.append(delimit("reference", material.reference, tag))
    if submission.thinking is not None:
        parts.append(delimit("thinking", submission.thinking, tag))
    if material.order:
        # Letters for names: neither "gpt-5" nor "baseline" is to speak for a text.
        parts += [
            delimit("candidate", submission.candidates[name], tag, name=candidate_id(place))
            for place, name in enumerate(material.order)
        ]
    else:
        parts.append(delimit("submission", submission.text or "", tag))
    return Shared(tag, "\n\n".join(parts) + "\n\n")
