"""The result of a strategy: the winner, and everything that was tried."""

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
"""Where a candidate may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageError:
    """An error on one candidate.

    Attributes:
        stage: Where it was raised.
        error: Its type and what it says.
    """

    stage: Stage
    error: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCandidate:
    """One candidate and what became of it.

    Attributes:
        number: Its number, from 0 over all rounds.
        iteration: Its round, from 1.
        prompt: What it was made from, hints of the round before included.
        content: What the generator gave; None where it raised.
        verified: Whether it passed; True where nothing verifies, None where it could not be verified.
        cost: What it costs; None where it did not pass, nothing gives a cost, or the cost raised.
        verification: The evaluations behind `verified`.
        costing: The evaluations behind `cost`.
        hints: What it failed in.
        errors: What was raised on it.
        generation_usage: Tokens that making it took, where a model made it.
        generation_spent: US dollars that making it took, where known.
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
        """Whether the cost, or part of it, stands for votes that did not come."""
        return any(one.fallback_used for one in self.costing)

    @property
    def fallback_used(self) -> bool:
        """Whether some evaluation's value stands for votes that did not come."""
        return any(one.fallback_used for one in (*self.verification, *self.costing))

    def to_dict(self) -> dict[str, Json]:
        """The candidate as JSON data."""
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
    """The best candidate judged again, on votes that had no part in choosing it.

    Attributes:
        candidate: The candidate's number.
        votes: Fresh votes of each evaluation.
        cost: By these votes; None where nothing gives a cost, or it is unknown (`error` says why).
        verified: Whether the candidate passes by these votes; None where nothing verifies, or it is unknown.
        evaluations: The evaluations behind it, those of the verification first.
        error: What went wrong; None where nothing did.
    """

    candidate: int
    votes: int
    cost: float | None = None
    verified: bool | None = None
    evaluations: tuple[Evaluation, ...] = ()
    error: str | None = None

    def to_dict(self) -> dict[str, Json]:
        """The reevaluation as JSON data."""
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
        winner: The candidate chosen, as the generator gave it; None where none passed, or where the best one
            did not pass again when it was reevaluated.
        cost: Its cost when it was chosen; None where nothing gives a cost. The least of several is lower than
            it would be on other votes.
        iterations: Rounds run.
        candidates: Every candidate of every round, in order.
        winner_number: The winner's number among them; None where none passed.
        reevaluation: The best candidate judged again; None where not asked for, or no candidate passed.
        spending: Requests sent to models and what they cost, those that a limit cut off included, and the
            limit that left something out; None where there is no limit.
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
        """The limit at which candidates, a round or the reevaluation were left out; None where none was."""
        return None if self.spending is None else self.spending.reached

    @property
    def max_cost_reached(self) -> bool:
        """Whether something was left out since `max_cost` was spent."""
        return self.stopped == "max_cost"

    @property
    def reevaluated_cost(self) -> float | None:
        """The best candidate's cost on fresh votes; None where not asked for, or it is unknown."""
        return None if self.reevaluation is None else self.reevaluation.cost

    @property
    def errors(self) -> tuple[StageError, ...]:
        """What was raised on all candidates."""
        return tuple(error for candidate in self.candidates for error in candidate.errors)

    @property
    def fallback_used(self) -> bool:
        """Whether the winner's verification or cost stands for votes that did not come."""
        return self.winner_number is not None and self.candidates[self.winner_number].fallback_used

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens of all candidates and evaluations; None where none were counted."""
        made = (one.generation_usage for one in self.candidates)
        counted = [one for one in (*made, *(e.usage for e in self._evaluations())) if one is not None]
        return sum(counted, TokenUsage()) if counted else None

    @property
    def spent(self) -> float | None:
        """US dollars of all candidates and evaluations whose price is known; None where none is."""
        made = (one.generation_spent for one in self.candidates)
        known = [one for one in (*made, *(e.cost for e in self._evaluations())) if one is not None]
        return sum(known) if known else None

    def to_dict(self) -> dict[str, Json]:
        """The result as JSON data; what is no JSON in candidates is given by its `str`."""
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
    """A value of the caller's as JSON data; anything that is none by its `str`."""
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
