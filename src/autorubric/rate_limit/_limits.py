"""Limits on a provider set by the user, and the usage in the last 60 seconds."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from autorubric.errors import ArgumentError

WINDOW_SECONDS: Final = 60.0
"""Length in seconds of the window in which requests and tokens are counted."""

_GRAIN: Final = 0.05
"""Seconds whose uses are merged into one, to save memory in a busy minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests to a provider.

    Attributes:
        parallel: Maximum number of concurrent requests; None for no limit, as for the next two limits.
        requests_per_minute: Maximum number of requests started in any 60 seconds.
        tokens_per_minute: Maximum number of tokens, sent and received, in any 60 seconds.
        patience: Maximum number of seconds after its arrival for which a request is delayed because the
            provider asked another request to wait; a pause that ends later does not delay it.
    """

    parallel: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    patience: float = math.inf

    def __post_init__(self) -> None:
        for name in ("parallel", "requests_per_minute", "tokens_per_minute"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ArgumentError(f"{name} must be at least 1, or None for no limit; got {limit!r}")


@dataclass(slots=True)
class Use:
    """The usage in one time slice, dated by the end of the slice."""

    began: float
    at: float
    amount: float
    counted: bool = True


class Window:
    """The usage in the last 60 seconds."""

    __slots__ = ("_total", "_uses")

    def __init__(self) -> None:
        self._uses: deque[Use] = deque()
        self._total = 0.0

    def wait(self, amount: float, limit: int, now: float) -> float:
        """Return the seconds until `amount` fits under `limit`; a larger amount needs an empty window."""
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
        """Count a use, whose amount can be corrected later."""
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
        """Add `more` to the amount of a counted use; has no effect if the use is over 60 seconds old."""
        if use.counted:
            self._total += more
            use.amount += more

    def _forget(self, now: float) -> None:
        while self._uses and now - self._uses[0].at >= WINDOW_SECONDS:
            use = self._uses.popleft()
            use.counted = False
            self._total -= use.amount
