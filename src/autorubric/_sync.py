"""Running a coroutine from synchronous code, also inside a running event loop (a notebook); cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

from autorubric.errors import JudgeError

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's outcome, awaited in an event loop of its own: uvloop's, where that is installed.

    Inside a running event loop the coroutine runs in a thread, since a loop cannot be entered twice.
    """
    return _run_in_thread(coroutine) if loop_is_running() else _run(coroutine)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(coroutine)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop; None for the policy's: without uvloop, or where the policy is someone's own."""
    if type(asyncio.get_event_loop_policy()) is not asyncio.DefaultEventLoopPolicy:
        return None
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = new_event_loop
    return factory


class NoStrayCancellation:
    """Lets a `CancelledError` pass where this task is being cancelled, and makes any other one a failure.

    Others come of what is awaited inside, as a future that somebody else cancelled, and would end the caller.

    Args:
        who: Whose failure it is.

    Raises:
        JudgeError: It was raised, and nobody cancels this task.
    """

    __slots__ = ("_who",)

    def __init__(self, who: str) -> None:
        self._who = who

    def __enter__(self) -> None:
        """Nothing happens before one is raised."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise JudgeError(f"{self._who} raised CancelledError") from error


def loop_is_running() -> bool:
    """Whether this is called from within a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.append(context.run(_run, coroutine))
        # Whatever ends the thread, an interrupt too, belongs to the caller.
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="autorubric-sync")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
