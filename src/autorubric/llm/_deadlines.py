"""One timer for all requests that wait: one for each would be set and cancelled for each."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


class Deadlines:
    """Ends what takes longer than so many seconds; of one event loop.

    All have the same time, so that the oldest is the first to be over.

    Args:
        seconds: How long each may take.
    """

    __slots__ = ("_loop", "_seconds", "_timer", "_waiting")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._waiting: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, deadline: Deadline) -> float:
        """Has it ended when its time is over; the loop's time at which that is."""
        at = self._loop.time() + self._seconds
        self._waiting[deadline] = None
        if self._timer is None:
            self._timer = self._loop.call_at(at, self._look)
        return at

    def running_task(self) -> asyncio.Task[Any]:
        """The task that is running."""
        task = asyncio.current_task(self._loop)
        if task is None:
            raise RuntimeError("a deadline is kept by cancelling its task, and this runs in none")
        return task

    def stop(self, deadline: Deadline) -> None:
        """Forgets it."""
        self._waiting.pop(deadline, None)

    def close(self) -> None:
        """Forgets the timer."""
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
    """A block that may take so long: at its end its task is cancelled, and the block raises.

    Args:
        deadlines: Those that it is one of.

    Attributes:
        at: The loop's time at which it is over.

    Raises:
        TimeoutError: It took longer.
    """

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "at")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._expired = False

    def __enter__(self) -> None:
        """Begins the time."""
        self._task = task = self._deadlines.running_task()
        self._cancelling = task.cancelling()
        self.at = self._deadlines.start(self)

    def expire(self) -> None:
        """Ends the block."""
        self._expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.stop(self)
        # A task that others cancel at the same time stays cancelled.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
