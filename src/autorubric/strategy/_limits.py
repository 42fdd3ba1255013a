"""Limits on the number of requests and the cost of a strategy run."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from autorubric.errors import ArgumentError
from autorubric.llm import Spending, SpendingLimit, SpendingLimitName, spending_within
from autorubric.strategy._result import StrategyResult
from autorubric.strategy._sampling import check_count


class Limits:
    """The limits of one strategy run.

    Requests to models are checked before they are sent. Costs reported by judges that do not send requests,
    such as functions, are only known from the result and are therefore checked between rounds.

    Args:
        max_calls: Maximum number of requests; None for no limit.
        max_cost: Maximum cost in US dollars; None for no limit.

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
        """Return a context manager that applies the limits to the requests sent within it."""
        return spending_within(self._limit) if self._limit.is_set else nullcontext()

    def reached(self, result: StrategyResult) -> SpendingLimitName | None:
        """Return the limit that prevents another round; None if another round may start."""
        if self._limit.reached is not None:
            return self._limit.reached
        if self._max_calls is not None and self._limit.calls >= self._max_calls:
            return "max_calls"
        spent = max(result.spent or 0.0, self._limit.cost)
        return "max_cost" if self._max_cost is not None and spent >= self._max_cost else None

    def spending(self, stopped: SpendingLimitName | None) -> Spending | None:
        """Return the number of requests sent and their cost; None if no limit is set.

        Args:
            stopped: The limit that prevented a round or the reevaluation. If None, the limit that prevented
                a request, if any, is reported.
        """
        if not self._limit.is_set:
            return None
        return Spending(self._limit.calls, self._limit.cost, stopped or self._limit.reached)

    def told(self, limit: SpendingLimitName) -> str:
        """Return a message that a limit was reached."""
        if limit == "max_calls":
            return f"the limit max_calls={self._max_calls} (requests) was reached"
        return f"the limit max_cost={self._max_cost} (US dollars) was reached"


def _check_amount(max_cost: Any) -> None:
    number = isinstance(max_cost, int | float) and not isinstance(max_cost, bool)
    if max_cost is not None and not (number and 0 < max_cost < math.inf):
        raise ArgumentError(f"max_cost must be a positive number of US dollars or None; got {max_cost!r}")
