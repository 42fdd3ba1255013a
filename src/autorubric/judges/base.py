"""The interface of judges, and the conversion of their return values and exceptions to replies."""

from __future__ import annotations

import copy
import inspect
import traceback
from asyncio import CancelledError
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, get_args, runtime_checkable

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import (
    ArgumentError,
    BudgetError,
    JudgeCodeError,
    JudgeError,
    MissingDependencyError,
    ReplyError,
    TokenUsage,
)
from autorubric.scoring.votes import Probabilities, ProbabilitySource, VoteExchange
from autorubric.support.concurrency import is_cancelled
from autorubric.support.objects import maker_of

if TYPE_CHECKING:
    from autorubric.criteria.values import Submission
    from autorubric.judges.prompts import ComposedPrompt, Example
    from autorubric.llm.config import LLMConfig
    from autorubric.support.objects import Json


def is_blank(reference: Any) -> bool:
    """Return whether a reference is missing, that is, None or blank."""
    return reference is None or not str(reference).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """A request to judge one criterion of one item.

    Attributes:
        criterion: The criterion to judge.
        submission: The submission to judge.
        query: The prompt that the submission answers.
        reference_submission: A good answer for comparison; blank text becomes None.
        guidelines: The rubric's guidelines.
        item_id: Id of the item; empty if it has none.
        sample: Index of the sample, from 0.
        seed: Seed of this call, derived from the run's seed, item, criterion, judge and sample.
        shuffle: Whether to show options in a random order based on the seed.
        examples: Few-shot examples for the criterion.
        order: Names of the candidates in the order to show, for a comparative criterion; otherwise empty.
        presentation: Index of this order among the requested orders, from 0.
        system_prompt: The grader's system prompt, for judges that read it here (critics with a model).
        requests_left: Number of requests to a model that may still be sent for this vote; None if none was
            sent yet.
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
    requests_left: int | None = None

    def __post_init__(self) -> None:
        if self.reference_submission is not None and is_blank(self.reference_submission):
            object.__setattr__(self, "reference_submission", None)
        # Replies are parsed by the criterion, which must know the compared candidates.
        bound = self.criterion.bind(self.submission)
        if bound is not self.criterion:
            object.__setattr__(self, "criterion", bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """A judge's reply to a request.

    Attributes:
        answer: An evaluation, its dict, a bare label, a parsed `Answer`, or None if the judge abstains.
        reason: The reason for the answer.
        confidence: Probability in [0, 1] that the answer is correct; None if the judge does not report one.
        probabilities: Probabilities of the answers, which sum to 1 (±0.02): by label or, for a criterion with
            parts, by part and label; None if the judge gives none. If `answer` is None, the most probable
            answer is used.
        probability_source: Where the probabilities come from.
        probability_backend: Name of the server or library that computed the probabilities.
        probability_reason: Why there are no probabilities, if they were requested.
        usage: Number of tokens used; None if unknown.
        cost: Cost in US dollars; None if unknown.
        model: Name of the model that answered; None if no model was called.
        asked: False if the judge does not vote on this criterion, e.g. if a recorded vote is missing.
        exchanged: The messages sent and received, if a model was called.
        truncated: Whether the submission was shortened to fit the model's context.
        shown: The part of the submission that was judged, such as `turns 1-3, 41-60 of 60`; None if nothing
            was omitted or the part is unknown.
        seconds: Seconds from sending the last request to its reply; None if no model was called.

    Raises:
        TypeError: If a field has a value of the wrong type.
        ReplyError: If the confidence is not between 0 and 1, or the cost is negative or infinite.
    """

    answer: Any
    reason: str = ""
    confidence: float | None = None
    probabilities: Probabilities | None = None
    probability_source: ProbabilitySource | None = None
    probability_backend: str | None = None
    probability_reason: str | None = None
    usage: TokenUsage | None = None
    cost: float | None = None
    model: str | None = None
    asked: bool = True
    exchanged: VoteExchange | None = None
    truncated: bool = False
    shown: str | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        # A value of the wrong type would make the run's files unreadable.
        for name, (kinds, wanted) in _FIELDS.items():
            if not isinstance(getattr(self, name), kinds):
                found = type(getattr(self, name)).__name__
                raise TypeError(f"JudgeReply: {name} must be {wanted}; got {found}")
        if self.confidence is not None and not 0.0 <= self.confidence <= 1.0:
            raise ReplyError(f"confidence must be between 0 and 1, or None; got {self.confidence!r}")
        if self.probability_source not in _SOURCES:
            allowed = ", ".join(map(repr, get_args(ProbabilitySource)))
            raise ReplyError(f"probability_source must be one of {allowed}; got {self.probability_source!r}")
        if self.cost is not None and not 0.0 <= self.cost < float("inf"):
            raise ReplyError(f"cost must be a non-negative number of US dollars, or None; got {self.cost!r}")


_NONE = type(None)
_TEXT: Final = (str, _NONE), "a string, or None"
_SOURCES: Final = frozenset({None, *get_args(ProbabilitySource)})
_FIELDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "reason": ((str,), "a string"),
    "confidence": ((float, int, _NONE), "a number between 0 and 1, or None"),
    "probabilities": ((Mapping, _NONE), "a mapping of answers to probabilities, or None"),
    **dict.fromkeys(("probability_source", "probability_backend", "probability_reason"), _TEXT),
    "usage": ((TokenUsage, _NONE), "a TokenUsage, or None"),
    "cost": ((float, int, _NONE), "a number of US dollars, or None"),
    "model": _TEXT,
    "asked": ((bool,), "True or False"),
    "exchanged": ((VoteExchange, _NONE), "a VoteExchange, or None"),
    "truncated": ((bool,), "True or False"),
    "shown": _TEXT,
}


Outcome: TypeAlias = JudgeReply | JudgeError | BudgetError
"""What a judge answers to one of several requests."""


def shared_error(error: JudgeError, count: int) -> list[Outcome]:
    """Return copies of an error for several requests; only the first has the usage and cost."""
    unspent = copy.copy(error)
    unspent.usage = unspent.cost = None
    return [error, *(unspent for _ in range(count - 1))]


@runtime_checkable
class Judge(Protocol):
    """The interface of judges, which answer questions about one criterion of one submission."""

    @property
    def judge_id(self) -> str:
        """The judge's name in votes and metrics."""
        ...

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        """Return the judge's answer.

        Raises:
            JudgeError: If the judge cannot answer. The subclass `ReplyError` means an unreadable answer.
        """
        ...


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge that can answer several criteria for one item at once."""

    async def ask_many(self, requests: Sequence[JudgeRequest]) -> Sequence[Outcome]:
        """Return one reply or error for each request, in order.

        If the budget does not allow a request, its `BudgetError` is returned, so that the other replies are
        kept.
        """
        ...


@runtime_checkable
class DescribedJudge(Judge, Protocol):
    """A judge that describes its settings for a run's manifest."""

    def describe(self) -> Mapping[str, Json]:
        """Return a description without secrets; judges with equal descriptions give the same answers."""
        ...


@runtime_checkable
class ModelAsker(Judge, Protocol):
    """A judge that calls models and can show its prompts without sending them."""

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that the judge calls, without their fallbacks; empty if it calls none."""
        ...

    def prompt_for(self, requests: Sequence[JudgeRequest]) -> ComposedPrompt | None:
        """Return the shared prompt for these requests; None if no prompt would be sent."""
        ...


@runtime_checkable
class ClosableJudge(Judge, Protocol):
    """A judge that holds connections or files."""

    async def aclose(self) -> None:
        """Close the connections and files; the next request reopens them."""
        ...


@runtime_checkable
class ReferenceJudge(Judge, Protocol):
    """A judge that can have its own reference."""

    def takes_reference_for(self, criterion: BaseCriterion) -> bool:
        """Return whether the request must provide the reference that a criterion needs.

        False if the judge has its own reference or does not vote on this criterion.
        """
        ...


@runtime_checkable
class PanelJudge(Judge, Protocol):
    """A judge that checks whether it can vote in a panel."""

    def check_panel_settings(self, judge_id: str, *, few_shot: Collection[str]) -> None:
        """Check, before any request, that the judge can vote in a panel; warn about settings it ignores.

        Args:
            judge_id: Name of the judge in the panel.
            few_shot: Names of the criteria with few-shot examples.

        Raises:
            ArgumentError: If the judge would fail on every item.
        """
        ...


_PACKAGE: Final = Path(__file__).resolve().parents[1]
_STANDARD: Final = Path(traceback.__file__).parent
_PROGRAMMING_ERRORS: Final = (AttributeError, TypeError, NameError, ImportError, NotImplementedError)


async def ask_judge_many(
    judge: BatchJudge, requests: Sequence[JudgeRequest], *, judge_id: str
) -> list[Outcome]:
    """Return the judge's replies in the order of the requests; see `reply_of`."""
    found = await call_judge(judge.ask_many, requests, judge_id)
    if not isinstance(found, Sequence) or isinstance(found, str) or len(found) != len(requests):
        count = len(found) if isinstance(found, Sequence) and not isinstance(found, str) else repr(found)
        raise JudgeError(f"judge {judge_id!r} returned {count} replies to {len(requests)} requests")
    return [one if isinstance(one, JudgeError | BudgetError) else reply_of(one) for one in found]


def reply_of(returned: Any) -> JudgeReply:
    """Return a judge's result as a `JudgeReply`; any other value is the answer, and None an abstention."""
    return returned if isinstance(returned, JudgeReply) else _make_reply(answer=returned)


_make_reply: Final = maker_of(JudgeReply)


def failure_of(judge_id: str, error: BaseException) -> JudgeError:
    """Convert an exception raised by a judge's code to a `JudgeError`, or for a bug a `JudgeCodeError`."""
    message = f"judge {judge_id!r} raised {type(error).__name__}: {_text_of(error)}"
    if not isinstance(error, _PROGRAMMING_ERRORS):
        return JudgeError(message)
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if _is_own(Path(frame.filename))][-1:]
    place = "".join(f"{Path(frame.filename).name} line {frame.lineno}" for frame in last)
    return JudgeCodeError(
        f"{message} (a programming error{place and ' in '}{place}; the traceback is in the log)", place=place
    )


def _is_own(file: Path) -> bool:
    """Return whether a file is the judge's own code: not this library's, Python's or generated."""
    if file.name == "<string>" or _PACKAGE in file.parents:
        return False
    return _STANDARD not in file.parents or "site-packages" in file.parts


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(an exception without a readable message)"


async def call_judge(ask: Any, requests: Any, judge_id: str) -> Any:
    """Return the result of a judge's method, whose exceptions become a `JudgeError`."""
    try:
        result = ask(requests)
        return await result if inspect.isawaitable(result) else result
    except CancelledError as error:
        # As `NoStrayCancellation`, which would take a tenth of a vote's time.
        if is_cancelled():
            raise
        raise JudgeError(f"judge {judge_id!r} raised CancelledError") from error
    except (JudgeError, ArgumentError, BudgetError, MissingDependencyError):
        raise
    # A judge may be user code, and its failure on one item must not affect the others.
    except Exception as error:
        raise failure_of(judge_id, error) from error
