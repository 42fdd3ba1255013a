"""The part of the prompts that all criteria of an item share, cached while the submission exists."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from autorubric._chat_tokens import neutralise_tokens
from autorubric._kept import Kept
from autorubric.criteria import candidate_id
from autorubric.prompts._delimit import delimit, item_tag
from autorubric.prompts._texts import GUIDELINES_HEAD
from autorubric.values import Submission


class Material(NamedTuple):
    """The material shared by all criteria of an item.

    Attributes:
        submission: The submission to judge.
        query: The prompt that the submission responds to.
        reference: A reference answer for comparison.
        guidelines: The rubric's guidelines.
        order: Names of the candidates in the order shown, if candidates are compared. They are then shown
            instead of the submission.
    """

    submission: Submission
    query: str | None = None
    reference: str | None = None
    guidelines: str | None = None
    order: tuple[str, ...] = ()


class Shared(NamedTuple):
    """The part of a prompt that criteria share.

    Attributes:
        tag: Tag used in the delimiters.
        prefix: Text at the start of the user message.
    """

    tag: str
    prefix: str


_Beside: TypeAlias = tuple[str | None, str | None, str | None, tuple[str, ...]]

_KEPT: Final = Kept[Submission, dict[_Beside, Shared]](lambda submission: {})


def shared_of(material: Material) -> Shared:
    """Return the part of the prompt that all criteria of an item share, cached per submission object."""
    kept, beside = _KEPT.of(material.submission), material[1:]
    found = kept.get(beside)
    if found is None:
        found = kept[beside] = _shared(material)
    return found


def _shared(material: Material) -> Shared:
    submission = material.submission
    others = list(submission.candidates.values())[1:]
    tag = item_tag(submission.text, submission.thinking, material.query, material.reference, *others)
    parts = []
    if material.guidelines:
        parts.append(f"{GUIDELINES_HEAD}\n{neutralise_tokens(material.guidelines)}")
    if material.query is not None:
        parts.append(delimit("query", material.query, tag))
    if material.reference is not None:
        parts.append(delimit("reference", material.reference, tag))
    if submission.thinking is not None:
        parts.append(delimit("thinking", submission.thinking, tag))
    if material.order:
        # Letters replace names, so that a name such as "gpt-6-luna" or "baseline" does not bias the judge.
        parts += [
            delimit("candidate", submission.candidates[name], tag, name=candidate_id(place))
            for place, name in enumerate(material.order)
        ]
    else:
        parts.append(delimit("submission", submission.text or "", tag))
    return Shared(tag, "\n\n".join(parts) + "\n\n")
