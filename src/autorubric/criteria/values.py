"""The basic values of the library: submissions, verdicts, answers and token counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Literal, Protocol, SupportsIndex, TypeVar, overload

from autorubric.criteria.conversation import Turn, are_parts, conversation_text, read_parts, read_turns
from autorubric.errors import ArgumentError
from autorubric.support.images import Image
from autorubric.support.objects import Json
from autorubric.support.reading_errors import short_repr

Level = Literal["binary", "nominal", "ordinal", "interval", "ranking", "text"]
"""Measurement level of a criterion; it decides which statistics apply."""

ScaleType = Literal["ordinal", "nominal"]
"""Whether the options of a multi-choice criterion are ordered."""

VoteStatus = Literal["answered", "abstained", "failed", "not_asked"]
"""The outcome of a vote."""


class CriterionVerdict(StrEnum):
    """The answer to a binary criterion."""

    MET = "MET"
    UNMET = "UNMET"
    CANNOT_ASSESS = "CANNOT_ASSESS"

    @classmethod
    def _missing_(cls, value: object) -> CriterionVerdict | None:
        return next((one for one in cls if isinstance(value, str) and value.upper() == one), None)


MAX_LOST: Final = 0.05
"""Default limit of a gate on the share of lost, assumed or not judged verdicts behind a figure."""

CHECK_JUDGE_ID: Final = "check"
"""Judge id of the votes by a criterion's own check."""

MANY_ABSTAINED: Final = 0.25
"""Share of abstentions above which the output of a gate names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCounts:
    """Verdict counts by outcome; instances can be added with `+`.

    There is one verdict per item, criterion, judge and sample, and `asked` always equals
    `answered + abstained + lost + assumed`. If no judge of the panel has a vote on a criterion, all verdicts
    on it are lost. Votes skipped because they could not change the result, and votes on criteria that do not
    apply, are not counted.

    Attributes:
        asked: Verdicts requested from judges.
        answered: Verdicts that contain an answer.
        abstained: Verdicts that are CANNOT_ASSESS or NA.
        lost: Verdicts excluded from all figures because the judge failed or its reply could not be parsed.
        assumed: Verdicts that count as the conservative answer because the reply could not be parsed.
        lost_cause: Error of the first lost verdict; None if no verdict was lost.
        assumed_cause: Error of the first assumed verdict; None if no verdict was assumed.
        not_judged: Verdicts on unfinished items, which were due but are not among those requested.
    """

    asked: int = 0
    answered: int = 0
    abstained: int = 0
    lost: int = 0
    assumed: int = 0
    lost_cause: str | None = None
    assumed_cause: str | None = None
    not_judged: int = 0

    @property
    def due(self) -> int:
        """Verdicts that were requested or not judged."""
        return self.asked + self.not_judged

    @property
    def missing(self) -> int:
        """Verdicts that were lost, assumed or not judged."""
        return self.lost + self.assumed + self.not_judged

    @property
    def missing_share(self) -> float | None:
        """Fraction of due verdicts that are missing, in [0, 1]; None if no verdict was due."""
        return self.missing / self.due if self.due else None

    @property
    def abstained_share(self) -> float | None:
        """Fraction of due verdicts that are abstentions, in [0, 1]; None if no verdict was due."""
        return self.abstained / self.due if self.due else None

    def exceeds(self, max_lost: float) -> bool:
        """Return whether the fraction of missing verdicts exceeds `max_lost`, which is in [0, 1]."""
        return (self.missing_share or 0.0) > max_lost

    @classmethod
    def all_lost(cls, n: int, cause: str | None) -> VerdictCounts:
        """Return the counts of `n` lost verdicts with one cause."""
        return cls(asked=n, lost=n, lost_cause=cause)

    @classmethod
    def sum(cls, counts: Iterable[VerdictCounts]) -> VerdictCounts:
        """Return the sum of several counts, with the causes of the first lost and first assumed verdict."""
        every = list(counts)
        if len(every) == 1:
            return every[0]
        return cls(
            asked=sum(one.asked for one in every),
            answered=sum(one.answered for one in every),
            abstained=sum(one.abstained for one in every),
            lost=sum(one.lost for one in every),
            assumed=sum(one.assumed for one in every),
            lost_cause=next((one.lost_cause for one in every if one.lost_cause), None),
            assumed_cause=next((one.assumed_cause for one in every if one.assumed_cause), None),
            not_judged=sum(one.not_judged for one in every),
        )

    def __str__(self) -> str:
        """Return the counts on one line: `300 requested: 245 answered, 5 abstained, 50 lost, 0 assumed`.

        Verdicts on unfinished items, if there are any, come last.
        """
        return (
            f"{self.asked:,} requested: {self.answered:,} answered, {self.abstained:,} abstained, "
            f"{self.lost:,} lost, {self.assumed:,} assumed"
            + (f"; {self.not_judged:,} not judged" if self.not_judged else "")
        )

    def __add__(self, other: VerdictCounts) -> VerdictCounts:
        if not isinstance(other, VerdictCounts):
            return NotImplemented
        return VerdictCounts.sum((self, other))

    def to_dict(self) -> dict[str, Json]:
        """Return the counts and causes as a JSON-compatible dict."""
        return {name: getattr(self, name) for name in self.__slots__}

    def messages(self) -> list[str]:
        """Return one line for lost and one for assumed verdicts, if any, each with the first error."""
        found = []
        if self.lost:
            found.append(f"{self.lost} of {self.asked} verdicts were lost; first error: {self.lost_cause}")
        if self.assumed:
            why = "the reply could not be read and counts as the conservative answer"
            what = f"{self.assumed} of {self.asked} verdicts were assumed: {why}"
            found.append(f"{what}; first error: {self.assumed_cause}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a criterion, parsed from a reply or a ground-truth label, or decided from votes.

    Attributes:
        code: The answer as JSON: `"MET"`, an option's label, a number, a ranking or an evaluation.
        value: The answer's value in [0, 1]; None if it has no value (NA, text or CANNOT_ASSESS).
        label: The answer in words, such as `"MET"` or an option's label; None if it has no label.
        index: Index among the criterion's declared answers, from 0; None if the answer is not one of them.
        na: Whether the rater chose "not applicable".
        cannot_assess: Whether the rater stated that the criterion cannot be assessed.
        reason: The rater's explanation.
        evaluation: The criterion's evaluation fields, if the reply contained more than `code`.
    """

    code: Json
    value: float | None = None
    label: str | None = None
    index: int | None = None
    na: bool = False
    cannot_assess: bool = False
    reason: str = ""
    evaluation: Mapping[str, Json] | None = None

    @property
    def abstains(self) -> bool:
        """Whether the answer is an abstention (NA or CANNOT_ASSESS)."""
        return self.na or self.cannot_assess


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Submission:
    """A submission to judge, in the common form to which every `to_grade` value is converted.

    Attributes:
        text: The text to judge; None if there is no text (recorded votes do not need it).
        thinking: The author's reasoning before the text, which is kept separate; None if there is none.
        candidates: Texts by name, for comparative criteria (the first is also in `text`); otherwise empty.
        turns: Turns of a conversation, whose text is in `text`; otherwise empty.
        images: The images of the submission and its prompt, to which texts refer by their labels.
        shown: The part of the submission that `text` contains, if it was too long for a model, such as
            `turns 1-3, 41-60 of 60`; None if nothing is omitted.
    """

    text: str | None
    thinking: str | None = None
    candidates: Mapping[str, str] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    images: tuple[Image, ...] = ()
    shown: str | None = None

    @classmethod
    def parse(cls, to_grade: Any) -> Submission:
        """Convert a `to_grade` value to a submission.

        Args:
            to_grade: A string, `{"thinking": ..., "output": ...}`, a mapping of candidate names to strings, a
                conversation in the chat format (a list of `{"role", "content"}`, with `tool_calls` and turns
                of the role `tool`), content parts of the chat format (texts and images, also instead of a
                string in a mapping), a `Submission`, or None.

        Raises:
            ArgumentError: If `to_grade` does not have one of these forms.
        """
        if to_grade is None or isinstance(to_grade, str):
            return cls(text=to_grade)
        if isinstance(to_grade, Submission):
            return to_grade
        if isinstance(to_grade, Mapping):
            return _parse_mapping(to_grade)
        if isinstance(to_grade, Sequence) and not isinstance(to_grade, bytes):
            images: list[Image] = []
            if are_parts(to_grade):
                return cls(text=read_parts(to_grade, "to_grade", images), images=tuple(images))
            turns = read_turns(to_grade, images)
            return cls(text=conversation_text(turns), turns=turns, images=tuple(images))
        raise ArgumentError(
            "to_grade must be a string, {'thinking', 'output'}, a mapping of candidate names to strings, "
            f"a list of {{'role', 'content'}} or of content parts, or None; got {type(to_grade).__name__}"
        )

    def with_prompt(self, prompt: Any) -> tuple[Submission, str | None]:
        """Return the submission with the images of a prompt, which may be content parts, and its text."""
        if prompt is None or isinstance(prompt, str):
            return self, prompt
        if not are_parts(prompt):
            raise ArgumentError(f"a prompt must be a string or content parts; got {short_repr(prompt)}")
        images = list(self.images)
        text = read_parts(prompt, "prompt", images, "query image")
        return replace(self, images=tuple(images)), text


def _parse_mapping(given: Mapping[Any, Any]) -> Submission:
    images: list[Image] = []
    to_grade = {
        key: read_parts(text, f"to_grade[{key!r}]", images) if are_parts(text) else text
        for key, text in given.items()
    }
    wrong = [key for key, text in to_grade.items() if not (isinstance(key, str) and isinstance(text, str))]
    if set(to_grade) <= {"thinking", "output"}:
        wrong = [key for key in wrong if to_grade[key] is not None]
    if wrong or not to_grade:
        what = "to_grade must map at least one name to a string"
        raise ArgumentError(f"{what}; invalid: {wrong or to_grade!r}")
    if "output" in to_grade and set(to_grade) <= {"thinking", "output"}:
        return Submission(text=to_grade["output"], thinking=to_grade.get("thinking"), images=tuple(images))
    if set(to_grade) == {"thinking"}:
        raise ArgumentError("to_grade has 'thinking' but no 'output'; pass both, or a plain string")
    return Submission(text=next(iter(to_grade.values())), candidates=to_grade, images=tuple(images))


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str: ...


NamedT = TypeVar("NamedT", bound=Named)
ValueT = TypeVar("ValueT")


class NamedDict(dict[str, ValueT]):
    """A dict keyed by name whose `KeyError` messages list the available names."""

    def __missing__(self, key: object) -> ValueT:
        raise KeyError(f"{key!r}; available: {', '.join(self) or 'none'}")


class NamedList(list[NamedT]):
    """A list that also supports lookup by name; if several elements share a name, the first is returned."""

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> NamedT: ...
    @overload
    def __getitem__(self, key: slice) -> list[NamedT]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> NamedT | list[NamedT]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for one in self:
            if one.name == key:
                return one
        raise KeyError(f"{key!r}; available: {', '.join(one.name for one in self) or 'none'}")

    def names(self) -> list[str]:
        return [one.name for one in self]
