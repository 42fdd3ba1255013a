"""The results of a strategy, from single evaluations to the winner and all candidates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Protocol

from pydantic import BaseModel

from autorubric.errors import TokenUsage
from autorubric.judges.prompts import neutralise
from autorubric.llm.budget import Spending, SpendingLimitName
from autorubric.support.objects import Json, set_within

HintStyle = Literal["counts", "reasons", "none"]
"""Content of the hints after a failed round: the failed criteria with sample counts, these and the judges'
reasons, or no hints.
"""

_HEAD: Final = "Earlier attempts did not pass. What they failed in:"
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One failure of a candidate.

    Attributes:
        candidate: Number of the candidate.
        criterion: Expression of the criterion, name of the rubric criterion, or name of the function.
        passed: Number of samples that passed; None if no samples were drawn.
        samples: Number of samples drawn; None if no samples were drawn.
        needed: Number of samples that had to pass; None if not applicable.
        score: The candidate's score on the whole rubric; None for other failures.
        min_score: Score required on the whole rubric; None for other failures.
        reasons: Reasons written by the judges; empty unless `hints="reasons"`.
    """

    candidate: int
    criterion: str
    passed: int | None = None
    samples: int | None = None
    needed: int | None = None
    score: float | None = None
    min_score: float | None = None
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = " ".join(self.criterion.split())
        if self.samples is not None:
            text += f" ({self.passed} of {self.samples} samples passed"
            text += ")" if self.needed is None else f", {self.needed} needed)"
        if self.score is not None:
            text += f" (score {self.score:.2f}, {self.min_score:.2f} needed)"
        return text


def with_hints(prompt: str, hints: Sequence[Hint]) -> str:
    """Append the failures of the last round to the prompt; without failures, return it unchanged."""
    if not hints:
        return prompt
    lines = []
    for hint in hints:
        lines.append(f"- {neutralise(str(hint))}")
        lines += [f"  - a judge wrote: {_quote(reason)}" for reason in hint.reasons]
    return "\n".join([prompt, "", _HEAD, *dict.fromkeys(lines)])


def _quote(reason: str) -> str:
    text = " ".join(neutralise(reason).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Evaluation(Protocol):
    """The record of one evaluation of one candidate."""

    @property
    def fallback_used(self) -> bool: ...  # whether the value is a substitute because votes are missing
    @property
    def usage(self) -> TokenUsage | None: ...
    @property
    def cost(self) -> float | None: ...
    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]: ...  # the candidate's failures
    def to_dict(self) -> dict[str, Json]: ...


def total_usage(usages: Iterable[TokenUsage | None]) -> TokenUsage | None:
    """Return the sum of the token counts; None if none is known."""
    known = [usage for usage in usages if usage is not None]
    return sum(known, TokenUsage()) if known else None


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the costs in US dollars; None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


@dataclass(slots=True)
class EvaluationTrace:
    """The evaluations of one call of `verify` or `compute`, which return only a value."""

    fresh: int = 0  # fresh votes to draw per evaluation, with new sample indices; 0 for the regular votes
    _places: list[Evaluation | None] = field(default_factory=list)

    def reserve(self) -> int:
        """Reserve a position for an evaluation that is starting and return the position."""
        self._places.append(None)
        return len(self._places) - 1

    def enter(self, place: int, evaluation: Evaluation) -> None:
        """Store an evaluation at its position."""
        self._places[place] = evaluation

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the finished evaluations in the order in which they started."""
        return tuple(one for one in self._places if one is not None)


_CURRENT: Final[ContextVar[EvaluationTrace | None]] = ContextVar("autorubric_strategy_trace", default=None)


def record_evaluations(trace: EvaluationTrace) -> AbstractContextManager[None]:
    """Collect the evaluations that are made inside the `with` block in the trace."""
    return set_within(_CURRENT, trace)


def current_trace() -> EvaluationTrace:
    """Return the trace of the current call, or a temporary trace outside of a call."""
    return _CURRENT.get() or EvaluationTrace()


Stage = Literal["generate", "verify", "cost"]
"""The stage of a strategy in which an error can occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageError:
    """An error raised for one candidate.

    Attributes:
        stage: The stage in which the error was raised.
        error: Type and message of the error.
    """

    stage: Stage
    error: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCandidate:
    """A candidate with its evaluations and errors.

    Attributes:
        number: Number of the candidate, counted from 0 across all rounds.
        iteration: Number of the round, starting at 1.
        prompt: The prompt used to generate the candidate, including hints from the previous round.
        content: The generated content; None if the generator raised an error.
        verified: Whether the candidate passed: True if there is no `verify`, None if `verify` did not run or
            raised an error.
        cost: Cost of the candidate; None if it did not pass or the cost could not be computed.
        verification: The evaluations that `verified` is based on.
        costing: The evaluations that `cost` is based on.
        hints: The failures of the candidate.
        errors: The errors raised for the candidate.
        generation_usage: Tokens used in generating the candidate; None if unknown.
        generation_spent: US dollars spent on generating the candidate; None if unknown.
    """

    number: int
    iteration: int
    prompt: Any
    content: Any = None
    verified: bool | None = None
    cost: float | None = None
    verification: tuple[Evaluation, ...] = ()
    costing: tuple[Evaluation, ...] = ()
    hints: tuple[Hint, ...] = ()
    errors: tuple[StageError, ...] = ()
    generation_usage: TokenUsage | None = None
    generation_spent: float | None = None

    @property
    def cost_fallback_used(self) -> bool:
        """Whether all or part of the cost is a fallback because votes are missing."""
        return any(one.fallback_used for one in self.costing)

    @property
    def fallback_used(self) -> bool:
        """Whether any evaluation's value is a fallback because votes are missing."""
        return any(one.fallback_used for one in (*self.verification, *self.costing))

    def to_dict(self) -> dict[str, Json]:
        """Return the candidate as JSON-compatible data."""
        return {
            "number": self.number,
            "iteration": self.iteration,
            "prompt": _json(self.prompt),
            "content": _json(self.content),
            "verified": self.verified,
            "cost": self.cost,
            "cost_fallback_used": self.cost_fallback_used,
            "fallback_used": self.fallback_used,
            "verification": [one.to_dict() for one in self.verification],
            "costing": [one.to_dict() for one in self.costing],
            "hints": [asdict(hint) for hint in self.hints],
            "errors": [asdict(error) for error in self.errors],
            "generation_usage": self.generation_usage.to_dict() if self.generation_usage else None,
            "generation_spent": self.generation_spent,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reevaluation:
    """A second evaluation of the best candidate, using votes that were not used to choose it."""

    candidate: int  # number of the candidate
    votes: int  # number of fresh votes per evaluation
    # Cost based on the fresh votes; None if there is no cost function or an error occurred.
    cost: float | None = None
    verified: bool | None = None  # whether the candidate passes based on the fresh votes; None if unknown
    # The verification's evaluations, followed by the cost's evaluations.
    evaluations: tuple[Evaluation, ...] = ()
    error: str | None = None  # the error that occurred; None if no error occurred

    def to_dict(self) -> dict[str, Json]:
        """Return the reevaluation as JSON-compatible data."""
        return {
            "candidate": self.candidate,
            "votes": self.votes,
            "cost": self.cost,
            "verified": self.verified,
            "evaluations": [one.to_dict() for one in self.evaluations],
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyResult:
    """The result of a strategy.

    Attributes:
        winner: Content of the chosen candidate; None if no candidate passed, or if the best candidate failed
            its reevaluation.
        cost: Cost on which the choice of the winner was based; None if there is no cost function. As the
            minimum of several noisy costs, it is biased low; `reevaluated_cost` is not.
        iterations: Number of rounds run.
        candidates: Every candidate of every round, in order.
        winner_number: Index of the winner in `candidates`; None if there is no winner.
        reevaluation: The reevaluation of the best candidate; None if not requested or no candidate passed.
        spending: Number of requests sent to models, their cost, and the limit (if any) that caused a request,
            round or reevaluation to be skipped; None if no limit was set.
    """

    winner: Any
    cost: float | None
    iterations: int
    candidates: tuple[StrategyCandidate, ...]
    winner_number: int | None = None
    reevaluation: Reevaluation | None = None
    spending: Spending | None = None

    @property
    def stopped(self) -> SpendingLimitName | None:
        """Return the limit that caused a request, round or reevaluation to be skipped, or None."""
        return None if self.spending is None else self.spending.reached

    @property
    def max_cost_reached(self) -> bool:
        """Whether a request, round or reevaluation was skipped because of `max_cost`."""
        return self.stopped == "max_cost"

    @property
    def reevaluated_cost(self) -> float | None:
        """Return the best candidate's cost based on fresh votes, or None if not requested or unknown."""
        return None if self.reevaluation is None else self.reevaluation.cost

    @property
    def errors(self) -> tuple[StageError, ...]:
        """Return the errors of all candidates, in candidate order."""
        return tuple(error for candidate in self.candidates for error in candidate.errors)

    @property
    def fallback_used(self) -> bool:
        """Whether the strategy's fallback value replaced the winner's verification or cost."""
        return self.winner_number is not None and self.candidates[self.winner_number].fallback_used

    @property
    def usage(self) -> TokenUsage | None:
        """Return the total token usage of all candidates and evaluations, or None if none was reported."""
        generations = [one.generation_usage for one in self.candidates]
        return total_usage([*generations, *(one.usage for one in self._evaluations())])

    @property
    def spent(self) -> float | None:
        """Return the total known cost of candidates and evaluations in US dollars, or None if unknown."""
        generations = [one.generation_spent for one in self.candidates]
        return total_cost([*generations, *(one.cost for one in self._evaluations())])

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON-compatible data; content of other types is converted with `str`."""
        return {
            "winner": _json(self.winner),
            "winner_number": self.winner_number,
            "cost": self.cost,
            "iterations": self.iterations,
            "fallback_used": self.fallback_used,
            "candidates": [one.to_dict() for one in self.candidates],
            "reevaluation": None if self.reevaluation is None else self.reevaluation.to_dict(),
            "stopped": self.stopped,
            "spending": None if self.spending is None else self.spending._asdict(),
            "usage": self.usage.to_dict() if self.usage else None,
            "spent": self.spent,
        }

    def _evaluations(self) -> Iterator[Evaluation]:
        for candidate in self.candidates:
            yield from candidate.verification
            yield from candidate.costing
        if self.reevaluation is not None:
            yield from self.reevaluation.evaluations


def _json(value: Any) -> Json:
    """Return a caller's value as JSON-compatible data; other values are converted with `str`."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _json(held) for key, held in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_json(held) for held in value]
    return str(value)
