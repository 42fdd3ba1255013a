"""One shared timer for all pending requests, instead of setting and cancelling a timer for each."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


class Deadlines:
    """The deadlines of blocks in one event loop, all with the same timeout.

    Because all timeouts are equal, the oldest deadline always expires first.

    Args:
        seconds: Timeout of each block.
    """

    __slots__ = ("_loop", "_seconds", "_timer", "_waiting")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._waiting: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, deadline: Deadline) -> float:
        """Schedule the deadline and return the loop time at which it expires."""
        at = self._loop.time() + self._seconds
        self._waiting[deadline] = None
        if self._timer is None:
            self._timer = self._loop.call_at(at, self._look)
        return at

    def running_task(self) -> asyncio.Task[Any]:
        """Return the running task."""
        task = asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a deadline requires a running asyncio task")
        return task

    def stop(self, deadline: Deadline) -> None:
        """Remove a deadline."""
        self._waiting.pop(deadline, None)

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for deadline in list(self._waiting):
            if deadline.at > now:
                self._timer = self._loop.call_at(deadline.at, self._look)
                return
            del self._waiting[deadline]
            deadline.expire()


class Deadline:
    """A context manager with a timeout: when it expires, the block is cancelled and raises an error.

    Args:
        deadlines: The collection that this deadline belongs to.

    Attributes:
        at: Loop time at which the block expires.

    Raises:
        TimeoutError: If the block took longer than the timeout.
    """

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "at")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._expired = False

    def __enter__(self) -> None:
        """Start the timeout."""
        self._task = task = self._deadlines.running_task()
        self._cancelling = task.cancelling()
        self.at = self._deadlines.start(self)

    def expire(self) -> None:
        """Cancel the block."""
        self._expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.stop(self)
        # A task that others cancel at the same time stays cancelled.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
