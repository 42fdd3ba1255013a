"""Work that is done in a process of its own, forked from one that has imported everything."""

from __future__ import annotations

import asyncio
import os
import resource
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.kills._run import Kind, grade, outcome

from autorubric.errors import AutorubricError
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.runs import merge_runs
from tests.runs.runs import CountingJudge, run

_NOBODY = 65534

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


class Told(NamedTuple):
    """What a process says of its end.

    Attributes:
        outcome: All that the run came to; None where it raised.
        error: Name of the error's type.
        message: The error's text, or the warnings that were given.
    """

    outcome: list[Any] | None = None
    error: str = ""
    message: str = ""


def in_child(work: Callable[..., Any], *args: Any) -> Any:
    """What the work returns or raises, done in a process that ends with it."""
    with ProcessPoolExecutor(1, mp_context=_CONTEXT) as pool:
        return pool.submit(work, *args).result(600)


def graded(folder: Path, kind: Kind = "new", **options: Any) -> Told:
    """The run, begun or gone on with."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            grade(folder, kind, folder / "notes", **options)
        except AutorubricError as error:
            return Told(error=type(error).__name__, message=str(error))
    return Told(outcome=outcome(folder / "run"), message="\n".join(str(one.message) for one in given))


def graded_within(folder: Path, most: int, options: dict[str, Any]) -> Told:
    """The run in a process whose files may have so many bytes each."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    return graded(folder, **options)


def merged_within(run: Path, out: Path, most: int) -> Told:
    """The merge of one run in a process whose files may have so many bytes each."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    try:
        merge_runs([run], out)
    except AutorubricError as error:
        return Told(error=type(error).__name__, message=str(error))
    return Told(outcome=outcome(out))


def graded_by_nobody(folder: Path, scratch: Path) -> Told:
    """The run in a process that may write only where everybody may."""
    # What is imported late may lie where only root reads.
    grade(scratch, "new", scratch / "notes")
    with _as_nobody():
        return graded(folder)


def opened_by_nobody(folder: Path, scratch: Path) -> Told:
    """The stored run, read by a process that may read only what everybody may."""
    grade(scratch, "new", scratch / "notes")
    outcome(scratch / "run")
    with _as_nobody():
        try:
            return Told(outcome=outcome(folder / "run"))
        except AutorubricError as error:
            return Told(error=type(error).__name__, message=str(error))


@contextmanager
def _as_nobody() -> Iterator[None]:
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(_NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def forked_hanging(folder: Path) -> BaseProcess:
    """A process with a run that waits for an answer about its third item, for ever."""
    process = _CONTEXT.Process(target=_hang, args=(folder,), daemon=True)
    process.start()
    return process


def _hang(folder: Path) -> None:
    run(folder, _Hanging())


class _Hanging(CountingJudge):
    async def ask(self, request: JudgeRequest) -> JudgeReply:
        if request.item_id == "i2":
            await asyncio.Event().wait()
        return await super().ask(request)
