"""Running a coroutine from synchronous code, also inside a running event loop (a notebook); cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from autorubric.errors import JudgeError

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's outcome, awaited in an event loop of its own.

    Inside a running event loop the coroutine runs in a thread, since a loop cannot be entered twice.
    """
    return _run_in_thread(coroutine) if _loop_is_running() else asyncio.run(coroutine)


@contextmanager
def no_stray_cancellation(who: str) -> Iterator[None]:
    """Lets a `CancelledError` pass where this task is being cancelled, and makes any other one a failure.

    Others come of what is awaited inside, as a future that somebody else cancelled, and would end the caller.

    Args:
        who: Whose failure it is.

    Raises:
        JudgeError: It was raised, and nobody cancels this task.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise JudgeError(f"{who} raised CancelledError") from error


def _loop_is_running() -> bool:
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
            outcome.append(context.run(asyncio.run, coroutine))
        # Whatever ends the thread, an interrupt too, belongs to the caller.
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="autorubric-sync")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
