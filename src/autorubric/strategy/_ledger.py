"""Collection of the evaluations made while a strategy calls a criterion or a function.

A strategy calls `verify(candidate, context)` and `compute(candidate, context)`, which subclasses may override
and functions may call, and receives only a value. The ledger of the call collects the underlying evaluations
and holds the number of fresh votes that the criteria must draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Protocol

from autorubric.strategy._hints import Hint
from autorubric.values import Json, TokenUsage


class Evaluation(Protocol):
    """The record of one evaluation of one candidate."""

    @property
    def fallback_used(self) -> bool:
        """Whether the value is a substitute because votes are missing."""
        ...

    @property
    def usage(self) -> TokenUsage | None:
        """Return the token usage of the evaluation; None if no usage was reported."""
        ...

    @property
    def cost(self) -> float | None:
        """Return the cost of the evaluation in US dollars; None if unknown."""
        ...

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return the candidate's failures, with the judges' reasons if `reasons` is set."""
        ...

    def to_dict(self) -> dict[str, Json]:
        """Return the evaluation as JSON-compatible data."""
        ...


@dataclass(slots=True)
class Ledger:
    """The evaluations of one call, in the order in which they started.

    Attributes:
        fresh: Number of fresh votes to draw per evaluation, with new sample indices; 0 for the regular votes.
    """

    fresh: int = 0
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


_CURRENT: Final[ContextVar[Ledger | None]] = ContextVar("autorubric_strategy_ledger", default=None)


@contextmanager
def kept_in(ledger: Ledger) -> Iterator[None]:
    """Collect the evaluations that are made inside the `with` block in the ledger."""
    token = _CURRENT.set(ledger)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_ledger() -> Ledger:
    """Return the ledger of the current call, or a temporary ledger outside of a call."""
    return _CURRENT.get() or Ledger()
