"""What a strategy came to: the winner, and everything that was tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from autorubric.llm import Spending, SpendingLimitName
from autorubric.strategy._hints import Hint
from autorubric.strategy._ledger import Evaluation
from autorubric.values import TokenUsage

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reevaluation:
    """The winner judged again, on votes that had no part in choosing it.

    Attributes:
        votes: Fresh votes of each evaluation.
        cost: By these votes; None where nothing gives a cost, or it cannot be told (`error` says why).
        verified: Whether the winner passes by these votes; None where nothing verifies, or it cannot be told.
        evaluations: The evaluations behind it, those of the verification first.
        error: What went wrong; None where nothing did.
    """

    votes: int
    cost: float | None = None
    verified: bool | None = None
    evaluations: tuple[Evaluation, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyResult:
    """What a strategy came to.

    Attributes:
        winner: The candidate chosen, as the generator gave it; None where none passed.
        cost: Its cost when it was chosen; None where nothing gives a cost. The least of several is lower than
            it would be on other votes.
        iterations: Rounds run.
        candidates: Every candidate of every round, in order.
        winner_number: The winner's number among them; None where none passed.
        reevaluation: The winner judged again; None where not asked for, or there is no winner.
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
        """The winner's cost on fresh votes; None where not asked for, or it cannot be told."""
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

    def _evaluations(self) -> Iterator[Evaluation]:
        for candidate in self.candidates:
            yield from candidate.verification
            yield from candidate.costing
        if self.reevaluation is not None:
            yield from self.reevaluation.evaluations
