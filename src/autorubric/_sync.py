"""Running a coroutine from synchronous code, also inside a running event loop (a notebook)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's outcome, awaited in an event loop of its own.

    Inside a running event loop the coroutine runs in a thread, since a loop cannot be entered twice.
    """
    return _run_in_thread(coroutine) if _loop_is_running() else asyncio.run(coroutine)


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
