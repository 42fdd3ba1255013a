"""The limits and the budget in a worker of a Ray run, which are requested from the keeper in blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from autorubric.integrations._ray_keeper import (
    Answer,
    Asked,
    CostAsked,
    CostSettled,
    SlotAsked,
    SlotEnded,
    Told,
)
from autorubric.rate_limit import Limits, Slot

BLOCK: Final = 64
"""Maximum number of pending slot requests per worker and provider, so that workers take turns."""


class Line:
    """The message channel between a worker and the keeper.

    One call is in progress at a time; messages that arise during a call are sent with the next call. If
    questions remain open after a call, a second call waits for their answers.

    Args:
        worker: Name of the worker.
        keeper: Actor handle of the keeper.
    """

    def __init__(self, worker: str, keeper: Any) -> None:
        self._worker = worker
        self._keeper = keeper
        self._numbers = count()
        self._block: list[Told] = []
        self._open: dict[int, asyncio.Future[None]] = {}
        self._telling: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._broken: Exception | None = None

    async def ask(self, question: Callable[[int], Asked], withdrawal: Callable[[int], Told]) -> int:
        """Ask a question and return its number once it is granted.

        Args:
            question: Creates the question from its number.
            withdrawal: Creates the message that is sent if the answer is no longer needed.

        Raises:
            Exception: If the keeper refuses the request or cannot be reached.
        """
        if self._broken is not None:
            raise self._broken
        number = next(self._numbers)
        self._open[number] = granted = asyncio.get_running_loop().create_future()
        self.tell(question(number))
        try:
            await granted
        except asyncio.CancelledError:
            self._open.pop(number, None)
            self.tell(withdrawal(number))
            raise
        return number

    def tell(self, told: Told) -> None:
        """Send a message to the keeper after all earlier messages; do nothing if it cannot be reached."""
        if self._broken is not None:
            return
        self._block.append(told)
        if self._telling is None:
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        try:
            while self._block:
                block, self._block = self._block, []
                self._heard(await self._keeper.tell.remote(self._worker, block))
        except Exception as error:
            self._break(error)
        self._telling = None
        if self._open and self._hearing is None:
            self._hearing = asyncio.ensure_future(self._hear())

    async def _hear(self) -> None:
        try:
            while self._open:
                self._heard(await self._keeper.answers.remote(self._worker))
        except Exception as error:
            self._break(error)
        self._hearing = None

    def _heard(self, answers: Sequence[Answer]) -> None:
        for number, error in answers:
            granted = self._open.pop(number, None)
            if granted is None or granted.done():
                continue
            if error is None:
                granted.set_result(None)
            else:
                granted.set_exception(error)

    def _break(self, error: Exception) -> None:
        """Fail all pending and future questions with the error of a call to the keeper."""
        self._broken = error
        self._heard([Answer(number, error) for number in self._open])


class KeptLimits:
    """The rate limit authority of a worker process, which delegates to the keeper.

    Args:
        line: The channel to the keeper.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._turns: dict[str, asyncio.Semaphore] = {}

    def gate(self, provider: str, limits: Limits) -> _KeptGate:
        """Return a gate that grants slots for requests to the provider."""
        turns = self._turns.get(provider)
        if turns is None:
            turns = self._turns[provider] = asyncio.Semaphore(BLOCK)
        return _KeptGate(self._line, turns, provider, limits)


class _KeptGate:
    __slots__ = ("limits", "line", "provider", "turns")

    def __init__(self, line: Line, turns: asyncio.Semaphore, provider: str, limits: Limits) -> None:
        self.line = line
        self.turns = turns
        self.provider = provider
        self.limits = limits

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Return a context manager that waits until the keeper grants a slot for the request."""
        return _KeptSlot(self, tokens)


class _KeptSlot:
    """A slot that is granted and counted by the keeper."""

    __slots__ = ("_gate", "_is_throttled", "_number", "_retry_after", "_spent", "_tokens")

    _number: int

    def __init__(self, gate: _KeptGate, tokens: int) -> None:
        self._gate = gate
        self._tokens = tokens
        self._spent: int | None = None
        self._is_throttled = False
        self._retry_after: float | None = None

    async def __aenter__(self) -> Self:
        gate = self._gate
        async with gate.turns:
            self._number = await gate.line.ask(
                lambda number: SlotAsked(number, gate.provider, gate.limits, self._tokens), SlotEnded
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = SlotEnded(self._number, kind is None, self._spent, self._is_throttled, self._retry_after)
        self._gate.line.tell(ended)

    def spent(self, tokens: int) -> None:
        """Record the number of tokens counted by the provider."""
        self._spent = tokens

    def throttled(self, retry_after: float | None) -> None:
        """Record that the provider rejected the request because of its rate limit."""
        self._is_throttled, self._retry_after = True, retry_after


class KeptBudget:
    """The budget of a worker, which is enforced by the keeper.

    Args:
        line: The channel to the keeper.
        counts_cost: Whether the budget limits cost and therefore needs the cost of requests.
    """

    def __init__(self, line: Line, *, counts_cost: bool) -> None:
        self.counts_cost = counts_cost
        self.stop_reason: str | None = None
        self._line = line
        self._open: dict[float, list[int]] = {}

    async def reserve(self, cost: float) -> None:
        """Reserve one request, waiting until there is room for it.

        Raises:
            BudgetError: If there is no room and there will be none.
        """
        number = await self._line.ask(
            lambda number: CostAsked(number, cost), lambda number: CostSettled(number, None)
        )
        # Among requests that reserved equal amounts, the order of settling does not matter.
        self._open.setdefault(cost, []).append(number)

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Replace a reservation with the request's actual cost in US dollars; None if it was not sent."""
        numbers = self._open[reserved]
        self._line.tell(CostSettled(numbers.pop(), cost))
        if not numbers:
            del self._open[reserved]
