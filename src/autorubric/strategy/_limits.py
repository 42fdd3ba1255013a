"""Limits on the requests and cost of a strategy run."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from autorubric.errors import ArgumentError
from autorubric.llm import Spending, SpendingLimit, SpendingLimitName, spending_within
from autorubric.strategy._result import StrategyResult
from autorubric.strategy._sampling import check_count


class Limits:
    """The limits of one run.

    Model requests are checked before they are sent. Costs reported by judges that send no requests, such as
    functions, appear only in the result, and count between rounds.

    Args:
        max_calls: Maximum number of requests; None for no limit.
        max_cost: Maximum US dollars; None for no limit.

    Raises:
        ArgumentError: If a limit is invalid.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        if max_calls is not None:
            check_count("max_calls", max_calls)
        _check_amount(max_cost)
        self._max_calls, self._max_cost = max_calls, max_cost
        self._limit = SpendingLimit(max_calls=max_calls, max_cost=max_cost)

    def in_force(self) -> AbstractContextManager[None]:
        """Return a context manager in which the limits apply to requests."""
        return spending_within(self._limit) if self._limit.is_set else nullcontext()

    def reached(self, result: StrategyResult) -> SpendingLimitName | None:
        """Return the limit that prevents another round; None if there is none."""
        if self._limit.reached is not None:
            return self._limit.reached
        if self._max_calls is not None and self._limit.calls >= self._max_calls:
            return "max_calls"
        spent = max(result.spent or 0.0, self._limit.cost)
        return "max_cost" if self._max_cost is not None and spent >= self._max_cost else None

    def spending(self, stopped: SpendingLimitName | None) -> Spending | None:
        """Return the requests sent and their cost; None if there is no limit.

        Args:
            stopped: The limit that caused something to be skipped; None if only requests may have reached
                one.
        """
        if not self._limit.is_set:
            return None
        return Spending(self._limit.calls, self._limit.cost, stopped or self._limit.reached)

    def told(self, limit: SpendingLimitName) -> str:
        """Return a limit in words."""
        if limit == "max_calls":
            return f"max_calls of {self._max_calls} requests was reached"
        return f"max_cost of {self._max_cost} US dollars was reached"


def _check_amount(max_cost: Any) -> None:
    number = isinstance(max_cost, int | float) and not isinstance(max_cost, bool)
    if max_cost is not None and not (number and 0 < max_cost < math.inf):
        raise ArgumentError(f"max_cost is {max_cost!r}; give US dollars above 0, or None for no limit")
