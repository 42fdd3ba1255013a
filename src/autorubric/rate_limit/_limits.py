"""What may be asked of a provider, as its user says, and what was used in the last 60 seconds."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from autorubric.errors import ArgumentError

WINDOW_SECONDS: Final = 60.0
"""Length of the window in which requests and tokens are counted."""

_GRAIN: Final = 0.05
"""Seconds whose uses are counted as one, so that a busy minute takes little memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be asked of a provider.

    Attributes:
        parallel: Most requests in flight at a time; None for no limit, as for all here.
        requests_per_minute: Most requests started in any 60 seconds.
        tokens_per_minute: Most tokens, sent and received, in any 60 seconds.
        patience: Most seconds, from when it comes, for which a request waits because the provider asked
            another one to wait; a pause that ends after that does not hold it back.
    """

    parallel: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    patience: float = math.inf

    def __post_init__(self) -> None:
        for name in ("parallel", "requests_per_minute", "tokens_per_minute"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ArgumentError(f"{name} is {limit!r}; give a number from 1, or None for no limit")


@dataclass(slots=True)
class Use:
    """What was used in one moment, dated by its end."""

    began: float
    at: float
    amount: float
    counted: bool = True


class Window:
    """What was used in the last 60 seconds."""

    __slots__ = ("_total", "_uses")

    def __init__(self) -> None:
        self._uses: deque[Use] = deque()
        self._total = 0.0

    def wait(self, amount: float, limit: int, now: float) -> float:
        """Seconds until `amount` fits in; 0 if it does now. More than the limit waits for an empty window."""
        self._forget(now)
        excess = self._total + min(amount, limit) - limit
        if excess <= 0 or not self._uses:
            return 0.0
        for use in self._uses:
            excess -= use.amount
            if excess <= 0:
                break
        return use.at + WINDOW_SECONDS - now

    def take(self, amount: float, now: float) -> Use:
        """Counts a use; what it was can be corrected later."""
        uses = self._uses
        self._total += amount
        if uses and now - uses[-1].began < _GRAIN:
            use = uses[-1]
            use.amount += amount
            use.at = now
            return use
        self._forget(now)
        use = Use(now, now, amount)
        uses.append(use)
        return use

    def correct(self, use: Use, more: float) -> None:
        """Adds to a use that was counted, or takes from it; to no avail once it is over 60 seconds old."""
        if use.counted:
            self._total += more
            use.amount += more

    def _forget(self, now: float) -> None:
        while self._uses and now - self._uses[0].at >= WINDOW_SECONDS:
            use = self._uses.popleft()
            use.counted = False
            self._total -= use.amount
