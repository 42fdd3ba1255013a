"""The result of a strategy: the winner, and all candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import BaseModel

from autorubric.llm import Spending, SpendingLimitName
from autorubric.strategy._hints import Hint
from autorubric.strategy._ledger import Evaluation
from autorubric.values import Json, TokenUsage

Stage = Literal["generate", "verify", "cost"]
"""Stage in which a candidate may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageError:
    """An error on one candidate.

    Attributes:
        stage: Stage in which it was raised.
        error: Its type and message.
    """

    stage: Stage
    error: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCandidate:
    """A candidate with its evaluations and errors.

    Attributes:
        number: Its number, from 0 over all rounds.
        iteration: Its round, from 1.
        prompt: The prompt that it was generated from, including hints of the previous round.
        content: The generated content; None if the generator raised.
        verified: Whether it passed; True without `verify`, None if it could not be verified.
        cost: Its cost; None if it did not pass, there is no cost function, or the function raised.
        verification: The evaluations behind `verified`.
        costing: The evaluations behind `cost`.
        hints: Its failures.
        errors: The errors raised on it.
        generation_usage: Tokens spent on generating it, if a model did.
        generation_spent: US dollars spent on generating it, if known.
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
        """Whether the cost, or part of it, replaces missing votes."""
        return any(one.fallback_used for one in self.costing)

    @property
    def fallback_used(self) -> bool:
        """Whether the value of any evaluation replaces missing votes."""
        return any(one.fallback_used for one in (*self.verification, *self.costing))

    def to_dict(self) -> dict[str, Json]:
        """Return the candidate as JSON data."""
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
    """A second evaluation of the best candidate, on votes that were not used to choose it.

    Attributes:
        candidate: The candidate's number.
        votes: Number of fresh votes per evaluation.
        cost: Cost by these votes; None if there is no cost function, or it is unknown (see `error`).
        verified: Whether the candidate passes by these votes; None without `verify`, or if unknown.
        evaluations: The evaluations behind it, those of the verification first.
        error: The error that occurred; None if there was none.
    """

    candidate: int
    votes: int
    cost: float | None = None
    verified: bool | None = None
    evaluations: tuple[Evaluation, ...] = ()
    error: str | None = None

    def to_dict(self) -> dict[str, Json]:
        """Return the reevaluation as JSON data."""
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
        winner: The chosen candidate, as returned by the generator; None if none passed, or if the best one
            did not pass again when it was reevaluated.
        cost: Its cost when it was chosen; None if there is no cost function. The minimum of several costs is
            biased low: it would be higher on other votes.
        iterations: Number of rounds.
        candidates: Every candidate of every round, in order.
        winner_number: The winner's number among them; None if none passed.
        reevaluation: The reevaluation of the best candidate; None if not requested, or no candidate passed.
        spending: Requests sent to models and their cost, including requests that a limit interrupted, and
            the limit that caused something to be skipped; None if there is no limit.
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
        """Return the limit that stopped candidates, a round or the reevaluation; None if none did."""
        return None if self.spending is None else self.spending.reached

    @property
    def max_cost_reached(self) -> bool:
        """Whether something was skipped because `max_cost` was spent."""
        return self.stopped == "max_cost"

    @property
    def reevaluated_cost(self) -> float | None:
        """Return the best candidate's cost on fresh votes; None if not requested, or unknown."""
        return None if self.reevaluation is None else self.reevaluation.cost

    @property
    def errors(self) -> tuple[StageError, ...]:
        """Return the errors of all candidates."""
        return tuple(error for candidate in self.candidates for error in candidate.errors)

    @property
    def fallback_used(self) -> bool:
        """Whether the winner's verification or cost replaces missing votes."""
        return self.winner_number is not None and self.candidates[self.winner_number].fallback_used

    @property
    def usage(self) -> TokenUsage | None:
        """Return the tokens of all candidates and evaluations; None if none were counted."""
        made = (one.generation_usage for one in self.candidates)
        counted = [one for one in (*made, *(e.usage for e in self._evaluations())) if one is not None]
        return sum(counted, TokenUsage()) if counted else None

    @property
    def spent(self) -> float | None:
        """Return the US dollars of all candidates and evaluations with a known price; None without any."""
        made = (one.generation_spent for one in self.candidates)
        known = [one for one in (*made, *(e.cost for e in self._evaluations())) if one is not None]
        return sum(known) if known else None

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON data; contents that are not JSON are converted with `str`."""
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
    """Return a caller's value as JSON data; other values are converted with `str`."""
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
