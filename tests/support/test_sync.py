"""Coroutines from synchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from autorubric.support.concurrency import call_user_code, run_sync

TRACE = contextvars.ContextVar("TRACE", default="unset")


async def answer() -> tuple[str, str]:
    await asyncio.sleep(0)
    return TRACE.get(), threading.current_thread().name


async def fail() -> None:
    await asyncio.sleep(0)
    raise KeyError("gone")


def test_outside_a_loop_it_runs_here() -> None:
    """Without a running loop the coroutine runs in this thread."""
    assert run_sync(answer()) == ("unset", threading.current_thread().name)
    with pytest.raises(KeyError, match="gone"):
        run_sync(fail())


def test_inside_a_loop_it_runs_in_a_thread() -> None:
    """In a notebook's loop it runs beside it, with the caller's context, and errors come through."""

    async def cell() -> tuple[str, str]:
        TRACE.set("notebook")
        with pytest.raises(KeyError, match="gone"):
            run_sync(fail())
        return run_sync(answer())

    assert asyncio.run(cell()) == ("notebook", "autorubric-sync")


def test_an_exit_inside_a_loop_reaches_the_caller() -> None:
    """Not only ordinary errors come through."""

    async def leave() -> None:
        raise SystemExit(3)

    async def cell() -> None:
        run_sync(leave())

    with pytest.raises(SystemExit):
        asyncio.run(cell())


def test_the_loop_is_uvloops_where_it_is_installed() -> None:
    """A loop that is ours to make is the fastest there is; one of somebody's own policy is left alone."""
    uvloop = pytest.importorskip("uvloop")

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert isinstance(run_sync(loop()), uvloop.Loop)


def test_functions_block_side_by_side_and_return_what_they_raise() -> None:
    """Each call gets its own result or exception, with the context of its caller, and threads are shared."""
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
    barrier = threading.Barrier(3, timeout=30)

    def meet(number: int) -> int:
        barrier.wait()
        return number + variable.get()

    def fail(number: int) -> int:
        raise ValueError(f"not {number}")

    async def call(number: int) -> int:
        variable.set(10 * number)
        result: int = await call_user_code(meet if number < 3 else fail, number)
        return result

    async def calls() -> list[int | BaseException]:
        return await asyncio.gather(*map(call, range(300)), return_exceptions=True)

    found = asyncio.run(calls())
    assert found[:3] == [0, 11, 22]
    assert [str(one) for one in found[3:]] == [f"not {number}" for number in range(3, 300)]


def test_a_call_that_is_cancelled_before_it_starts_is_not_made() -> None:
    """Calls after it are made."""
    made: list[int] = []
    release = threading.Event()

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        blocking = asyncio.create_task(call_user_code(release.wait, 30))
        await asyncio.sleep(0.05)
        tasks = [asyncio.create_task(call_user_code(made.append, number)) for number in range(3)]
        await asyncio.sleep(0.05)
        tasks[1].cancel()
        release.set()
        await asyncio.gather(blocking, *tasks, return_exceptions=True)

    asyncio.run(cancelled())
    assert made == [0, 2]
