"""The judge contract: a request in, a reply out. A grader never knows which kind of judge it has."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from autorubric._events import Exchanged
from autorubric._frozen import quickly_made
from autorubric.errors import ReplyError
from autorubric.values import TokenUsage

if TYPE_CHECKING:
    from autorubric.criteria import BaseCriterion
    from autorubric.errors import BudgetError, JudgeError
    from autorubric.llm import LLMConfig
    from autorubric.prompts import Example, Prompt
    from autorubric.values import Json, Submission

CHECK_JUDGE_ID: Final = "check"
"""Id of a criterion's own check among the judges."""


def is_blank(reference: Any) -> bool:
    """Whether a reference is none: nothing could be compared with None, or with blanks."""
    return reference is None or not str(reference).strip()


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One criterion of one item put to a judge.

    Attributes:
        criterion: What is asked.
        submission: What is judged.
        query: What the submission answers.
        reference_submission: A good answer to compare with; a blank one becomes None.
        guidelines: The rubric's guidelines.
        item_id: The item's id; empty where it has none.
        sample: Index of the sample, from 0.
        seed: Seed of this call, derived from the run's seed, item, criterion, judge and sample.
        shuffle: Whether options may be shown in an order drawn from the seed.
        examples: Judged examples of the criterion.
        order: Names of the candidates in the order to be shown, for a criterion that compares; else empty.
        presentation: Which of the orders asked for it is, from 0.
        system_prompt: The grader's own, for judges that take it from here (critics that ask a model).
    """

    criterion: BaseCriterion
    submission: Submission
    query: str | None = None
    reference_submission: str | None = None
    guidelines: str | None = None
    item_id: str = ""
    sample: int = 0
    seed: int = 0
    shuffle: bool = True
    examples: tuple[Example, ...] = ()
    order: tuple[str, ...] = ()
    presentation: int = 0
    system_prompt: str | None = None

    def __post_init__(self) -> None:
        if self.reference_submission is not None and is_blank(self.reference_submission):
            object.__setattr__(self, "reference_submission", None)
        # Whoever reads a reply needs to know what is compared, and every judge reads through the criterion.
        facing = self.criterion.facing(self.submission)
        if facing is not self.criterion:
            object.__setattr__(self, "criterion", facing)


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """What a judge answers.

    Attributes:
        answer: An evaluation, its dict, a bare label, a read `Answer`, or None where the judge abstains.
        reason: Why.
        confidence: Probability on [0, 1] that the answer is right, where the judge has one.
        usage: Tokens spent.
        cost: US dollars spent.
        model: The model that answered.
        asked: False where the judge has nothing on this criterion (a recorded judge without a row).
        exchanged: What was sent and received, where a model was asked.
        truncated: The submission was cut to fit the model's context.

    Raises:
        TypeError: A field has a value of another type.
        ReplyError: The confidence is no probability, or the cost no amount.
    """

    answer: Any
    reason: str = ""
    confidence: float | None = None
    usage: TokenUsage | None = None
    cost: float | None = None
    model: str | None = None
    asked: bool = True
    exchanged: Exchanged | None = None
    truncated: bool = False

    def __post_init__(self) -> None:
        # A value of another type would be written to a run's files, which could not be read again.
        for name, (kinds, wanted) in _FIELDS.items():
            if not isinstance(getattr(self, name), kinds):
                found = type(getattr(self, name)).__name__
                raise TypeError(f"JudgeReply: {name} is a {found}; give {wanted}")
        if self.confidence is not None and not 0.0 <= self.confidence <= 1.0:
            raise ReplyError(
                f"confidence {self.confidence!r} is not a probability; give one on [0, 1], or None"
            )
        if self.cost is not None and not 0.0 <= self.cost < float("inf"):
            raise ReplyError(f"cost {self.cost!r} is not an amount; give US dollars from 0 up, or None")


_NONE = type(None)
_FIELDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "reason": ((str,), "a text"),
    "confidence": ((float, int, _NONE), "a number on [0, 1], or None"),
    "usage": ((TokenUsage, _NONE), "a TokenUsage, or None"),
    "cost": ((float, int, _NONE), "US dollars, or None"),
    "model": ((str, _NONE), "a text, or None"),
    "asked": ((bool,), "True or False"),
    "exchanged": ((Exchanged, _NONE), "an Exchanged, or None"),
    "truncated": ((bool,), "True or False"),
}


def shared_error(error: JudgeError, count: int) -> list[JudgeReply | JudgeError]:
    """One error in the place of several replies; what was spent stands at the first of them."""
    unspent = copy.copy(error)
    unspent.usage = unspent.cost = None
    return [error, *(unspent for _ in range(count - 1))]


@runtime_checkable
class Judge(Protocol):
    """Answers one criterion about one submission."""

    @property
    def judge_id(self) -> str:
        """The judge's name in votes and metrics."""
        ...

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """The judge's answer.

        Raises:
            JudgeError: It could not answer; a `ReplyError` where an answer came and cannot be read.
        """
        ...


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge that can answer several criteria of one item at once."""

    async def ask_many(
        self, requests: Sequence[JudgeRequest]
    ) -> Sequence[JudgeReply | JudgeError | BudgetError]:
        """One reply, or the error in its place, for each request, in order.

        A `BudgetError` stands where there was no room to ask, so that what was answered is not lost.
        """
        ...


@runtime_checkable
class DescribedJudge(Judge, Protocol):
    """A judge that can say in a run's manifest what its answers depend on."""

    def describe(self) -> Mapping[str, Json]:
        """What identifies it: equal descriptions give equal answers; nothing secret."""
        ...


@runtime_checkable
class ModelAsker(Judge, Protocol):
    """A judge that asks models, and can say beforehand what it would send."""

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that it asks, without those that they fall back on; empty where it asks none."""
        ...

    def prompt_for(self, requests: Sequence[JudgeRequest]) -> Prompt | None:
        """What it would send for these requests together; None where it would send nothing."""
        ...


@runtime_checkable
class ClosableJudge(Judge, Protocol):
    """A judge that holds connections or files."""

    async def aclose(self) -> None:
        """Releases them; asking afterwards opens them anew."""
        ...


@runtime_checkable
class ReferenceJudge(Judge, Protocol):
    """A judge that may have a reference of its own."""

    def takes_reference_for(self, criterion: BaseCriterion) -> bool:
        """Whether a criterion that needs a reference needs it from the request.

        It does not where the judge has one itself, or has nothing on this criterion.
        """
        ...


@runtime_checkable
class SeatableJudge(Judge, Protocol):
    """A judge that may not fit into every panel."""

    def check_seat(self, judge_id: str, *, few_shot: Collection[str]) -> None:
        """Checks, before anything is asked, that it can vote in a panel; warns of what does not reach it.

        Args:
            judge_id: What the panel calls it.
            few_shot: Names of the criteria that the panel has judged examples of.

        Raises:
            ArgumentError: It would fail on every item.
        """
        ...
