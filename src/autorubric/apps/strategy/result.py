"""The result of a strategy: the winner and all candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import BaseModel

from autorubric.apps.strategy.evaluations import Evaluation, Hint, total_cost, total_usage
from autorubric.errors import TokenUsage
from autorubric.llm.budget import Spending, SpendingLimitName
from autorubric.support.objects import Json

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
    """A second evaluation of the best candidate, using votes that were not used to choose it.

    Attributes:
        candidate: Number of the candidate.
        votes: Number of fresh votes per evaluation.
        cost: Cost based on the fresh votes; None if there is no cost function or an error occurred.
        verified: Whether the candidate passes based on the fresh votes; None if unknown.
        evaluations: The verification's evaluations, followed by the cost's evaluations.
        error: The error that occurred; None if no error occurred.
    """

    candidate: int
    votes: int
    cost: float | None = None
    verified: bool | None = None
    evaluations: tuple[Evaluation, ...] = ()
    error: str | None = None

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
