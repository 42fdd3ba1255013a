"""Collects the evaluations made while a strategy calls a criterion or a function.

A strategy calls `verify(candidate, context)` and `compute(candidate, context)`, which subclasses override and
functions combine, and gets back a plain value. The call's ledger collects the records behind it, and tells
the criteria when to draw fresh votes.
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
        """Whether its value replaces missing votes."""
        ...

    @property
    def usage(self) -> TokenUsage | None:
        """Return the tokens spent."""
        ...

    @property
    def cost(self) -> float | None:
        """Return the US dollars spent."""
        ...

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return a candidate's failures; empty if there are none."""
        ...

    def to_dict(self) -> dict[str, Json]:
        """Return the record as JSON data."""
        ...


@dataclass(slots=True)
class Ledger:
    """The evaluations of one call, in the order in which they started.

    Attributes:
        fresh: Number of fresh votes per evaluation, with their own sample indices; 0 for the ordinary votes.
    """

    fresh: int = 0
    _places: list[Evaluation | None] = field(default_factory=list)

    def reserve(self) -> int:
        """Reserve a position for an evaluation that starts."""
        self._places.append(None)
        return len(self._places) - 1

    def enter(self, place: int, evaluation: Evaluation) -> None:
        """Store an evaluation at its position."""
        self._places[place] = evaluation

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the finished evaluations."""
        return tuple(one for one in self._places if one is not None)


_CURRENT: Final[ContextVar[Ledger | None]] = ContextVar("autorubric_strategy_ledger", default=None)


@contextmanager
def kept_in(ledger: Ledger) -> Iterator[None]:
    """Collect the evaluations made inside the block in the ledger."""
    token = _CURRENT.set(ledger)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_ledger() -> Ledger:
    """Return the ledger of the current call; a discarded one outside of any call."""
    return _CURRENT.get() or Ledger()
