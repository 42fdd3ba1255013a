"""What is evaluated while a strategy calls a criterion or a function, whoever asks for it within that call.

A strategy calls `verify(candidate, context)` and `compute(candidate, context)`, which subclasses override and
functions combine, and gets a bare value back. The ledger of the call collects the records behind it, and
tells the criteria when their votes are to be fresh ones.
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
        """Whether its value stands for votes that did not come."""
        ...

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens spent."""
        ...

    @property
    def cost(self) -> float | None:
        """US dollars spent."""
        ...

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """What a candidate failed in; empty where it did not."""
        ...

    def to_dict(self) -> dict[str, Json]:
        """The record as JSON data."""
        ...


@dataclass(slots=True)
class Ledger:
    """The evaluations of one call, in the order in which they began.

    Attributes:
        fresh: Votes that each evaluation draws anew, with sample indices of their own; 0 for the ordinary.
    """

    fresh: int = 0
    _places: list[Evaluation | None] = field(default_factory=list)

    def reserve(self) -> int:
        """A place for an evaluation that begins."""
        self._places.append(None)
        return len(self._places) - 1

    def enter(self, place: int, evaluation: Evaluation) -> None:
        """Puts an evaluation into its place."""
        self._places[place] = evaluation

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The evaluations that came to an end."""
        return tuple(one for one in self._places if one is not None)


_CURRENT: Final[ContextVar[Ledger | None]] = ContextVar("autorubric_strategy_ledger", default=None)


@contextmanager
def kept_in(ledger: Ledger) -> Iterator[None]:
    """Collects in the ledger what is evaluated inside."""
    token = _CURRENT.set(ledger)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_ledger() -> Ledger:
    """The ledger of the call that this is part of; one that nobody reads where it is part of none."""
    return _CURRENT.get() or Ledger()
