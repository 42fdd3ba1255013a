"""Coroutines from synchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from autorubric.support.concurrency import run_sync

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
