"""Requests that may take so many seconds each, with one timer for all of them."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class Deadlines:
    """Ends what takes longer than it may, in one event loop.

    A timer for each request, as `asyncio.timeout` and HTTP clients set it, takes a tenth of the CPU of sending
    one. All of these may take equally long, so the first to begin is the first that is due, and there is one
    timer, for that.

    Args:
        seconds: How long each may take.
    """

    __slots__ = ("_open", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # In the order in which they began.
        self._open: dict[Deadline, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, one: Deadline) -> None:
        """Has something end in time."""
        loop = asyncio.get_running_loop()
        due = self._open[one] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(due, self._look)

    def end(self, one: Deadline) -> None:
        """Forgets what has ended."""
        self._open.pop(one, None)

    def _look(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        now = loop.time()
        while self._open:
            one, due = next(iter(self._open.items()))
            if due > now:
                self._timer = loop.call_at(due, self._look)
                return
            self.end(one)
            one.expire()

    def close(self) -> None:
        """Sets no timer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Deadline:
    """A block that ends in time, by cancelling its task: `asyncio.timeout` with the timer of others.

    Args:
        among: The others.

    Raises:
        TimeoutError: The block took longer.
    """

    __slots__ = ("_among", "_cancelled_before", "_is_over", "_task")

    def __init__(self, among: Deadlines) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is for what runs in a task")
        self._task = task
        self._among = among
        self._is_over = False
        self._cancelled_before = task.cancelling()

    def __enter__(self) -> Self:
        """The block begins."""
        self._among.begin(self)
        return self

    def expire(self) -> None:
        """Ends the block."""
        self._is_over = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._among.end(self)
        # Where somebody else cancels the task too, that stands.
        if self._is_over and self._task.uncancel() <= self._cancelled_before:
            if isinstance(error, asyncio.CancelledError):
                raise TimeoutError from error
