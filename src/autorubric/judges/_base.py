"""The contract of a judge: a request in, a reply out. A grader does not know the kind of judge."""

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
    """Return whether a reference is None or blank, so that nothing can be compared with it."""
    return reference is None or not str(reference).strip()


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """A question to a judge: one criterion of one item.

    Attributes:
        criterion: The criterion.
        submission: The submission to judge.
        query: The prompt that the submission answers.
        reference_submission: A good answer to compare with; a blank one becomes None.
        guidelines: The rubric's guidelines.
        item_id: Id of the item; empty if it has none.
        sample: Index of the sample, from 0.
        seed: Seed of this call, derived from the run's seed, item, criterion, judge and sample.
        shuffle: Whether options may be shown in an order drawn from the seed.
        examples: Judged examples of the criterion.
        order: Names of the candidates in the order to show, for a criterion that compares; otherwise empty.
        presentation: Index of this order among those requested, from 0.
        system_prompt: The grader's system prompt, for judges that take it from here (critics with a model).
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
    """The answer of a judge.

    Attributes:
        answer: An evaluation, its dict, a bare label, a parsed `Answer`, or None if the judge abstains.
        reason: The reason for the answer.
        confidence: Probability on [0, 1] that the answer is right, if the judge gives one.
        usage: Tokens spent.
        cost: US dollars spent.
        model: The model that answered.
        asked: False if the judge has nothing on this criterion, such as a recorded judge without a row.
        exchanged: The messages sent and received, if a model was asked.
        truncated: Whether the submission was cut to fit the model's context.

    Raises:
        TypeError: If a field has a value of another type.
        ReplyError: If the confidence is not a probability, or the cost is not an amount.
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
    """Return one error for several replies; the first of them carries the cost."""
    unspent = copy.copy(error)
    unspent.usage = unspent.cost = None
    return [error, *(unspent for _ in range(count - 1))]


@runtime_checkable
class Judge(Protocol):
    """A judge: it answers one criterion about one submission."""

    @property
    def judge_id(self) -> str:
        """Name of the judge in votes and metrics."""
        ...

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the judge's answer.

        Raises:
            JudgeError: If it cannot answer; a `ReplyError` if the answer cannot be read.
        """
        ...


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge that can answer several criteria of one item at once."""

    async def ask_many(
        self, requests: Sequence[JudgeRequest]
    ) -> Sequence[JudgeReply | JudgeError | BudgetError]:
        """Return one reply or error for each request, in order.

        A `BudgetError` is returned for requests that the budget does not allow, so that other answers are
        kept.
        """
        ...


@runtime_checkable
class DescribedJudge(Judge, Protocol):
    """A judge that describes, for a run's manifest, what its answers depend on."""

    def describe(self) -> Mapping[str, Json]:
        """Return its description without secrets; equal descriptions mean equal answers."""
        ...


@runtime_checkable
class ModelAsker(Judge, Protocol):
    """A judge that asks models and can return its prompts before it sends them."""

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that it asks, without their fallbacks; empty if it asks none."""
        ...

    def prompt_for(self, requests: Sequence[JudgeRequest]) -> Prompt | None:
        """Return the prompt for these requests together; None if nothing would be sent."""
        ...


@runtime_checkable
class ClosableJudge(Judge, Protocol):
    """A judge that holds connections or files."""

    async def aclose(self) -> None:
        """Close them; asking again reopens them."""
        ...


@runtime_checkable
class ReferenceJudge(Judge, Protocol):
    """A judge that may have its own reference."""

    def takes_reference_for(self, criterion: BaseCriterion) -> bool:
        """Return whether a criterion that needs a reference needs it from the request.

        False if the judge has a reference itself, or has nothing on this criterion.
        """
        ...


@runtime_checkable
class SeatableJudge(Judge, Protocol):
    """A judge that may not work in every panel."""

    def check_seat(self, judge_id: str, *, few_shot: Collection[str]) -> None:
        """Check, before anything is asked, that it can vote in a panel; warn about settings that it ignores.

        Args:
            judge_id: Its name in the panel.
            few_shot: Names of the criteria with judged examples.

        Raises:
            ArgumentError: If it would fail on every item.
        """
        ...
