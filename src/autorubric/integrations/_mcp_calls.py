"""A call of a tool that agents are served: its time, its errors, and the line in the audit log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autorubric.errors import ArgumentError, AutorubricError, FileError
from autorubric.tool import (
    AuditError,
    ProviderTable,
    Workspace,
    append_line,
    call_line,
    unavailable,
)
from autorubric.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """What is served, and within which bounds.

    Attributes:
        providers: Who evaluates.
        root: The folder that rubric files, run folders and datasets are confined to.
        timeout: Seconds that a call may take.
        heartbeat: Seconds between signs of life to a client that asked for progress.
    """

    providers: ProviderTable
    root: Path = field(default_factory=Path.cwd)
    timeout: float = 30.0
    heartbeat: float = 5.0

    @property
    def files(self) -> Workspace:
        """The folder that files named by agents are confined to."""
        return Workspace.at(str(self.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call gave.

    Attributes:
        content: The structured content; `ok` says whether it is what was asked for.
        line: The same in one line.
    """

    content: Mapping[str, Json]
    line: str

    @property
    def ok(self) -> bool:
        """Whether the call gave what was asked for."""
        return self.content["ok"] is True


class NobodyError(AutorubricError):
    """No provider could answer."""


@dataclass(kw_only=True)
class Call:
    """What is known of a call while it goes on.

    Attributes:
        seconds: How long it may take.
        noted: What its audit line says of it, beside what every line says.
        named: The provider that it named; None where it named none.
        failed: Providers that failed, each with the error.
        started: When it began, by `time.perf_counter`.
    """

    seconds: float
    started: float = field(default_factory=time.perf_counter, init=False)
    noted: dict[str, Json] = field(default_factory=dict)
    named: str | None = None
    failed: dict[str, Exception] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        """When its time is up, by `time.perf_counter`."""
        return self.started + self.seconds

    def reasons(self) -> dict[str, str]:
        """Providers that failed, each with why."""
        return {name: f"{type(error).__name__}: {error}" for name, error in self.failed.items()}

    def nobody(self) -> NobodyError:
        """The error of a call that every provider failed."""
        if self.named is not None:
            return NobodyError(unavailable(self.named, self.reasons()[self.named]))
        told = "; ".join(f"{name}: {why}" for name, why in self.reasons().items())
        return NobodyError(f"No provider could grade. {told}")

    def timed_out(self) -> str:
        """What is told of a call whose time is up."""
        if self.named is not None:
            return unavailable(self.named, f"no answer within {self.seconds:g} s")
        before = "".join(f"; {name}: {why}" for name, why in self.reasons().items())
        return f"it took more than {self.seconds:g} s{before}"


async def answered(tool: str, server: ToolServer, work: Callable[[Call], Awaitable[Outcome]]) -> Outcome:
    """What a call gives; its errors become an answer that says so, and it leaves a line in the audit log.

    Args:
        tool: The tool's name.
        server: Says how long the call may take, and where the log is.
        work: What the call does.
    """
    call, log = Call(seconds=server.timeout), server.providers.audit_path
    try:
        # Where nothing can be written down nothing is done.
        if log is not None:
            append_line(log, None)
        try:
            outcome, code = await _outcome(call, work)
        except asyncio.CancelledError:
            _write_down(log, tool, call, ok=False, code="cancelled")
            raise
        _write_down(log, tool, call, ok=outcome.ok, code=code)
    except AuditError as error:
        return _refused(str(error))
    return outcome


async def _outcome(call: Call, work: Callable[[Call], Awaitable[Outcome]]) -> tuple[Outcome, str | None]:
    """What the work gives, and what kind of error it ended with."""
    try:
        async with asyncio.timeout(call.seconds):
            return await work(call), None
    except TimeoutError:
        return _refused(call.timed_out()), "timeout"
    except NobodyError as raised:
        return _refused(str(raised)), "provider"
    except (ArgumentError, FileError) as raised:
        return _refused(str(raised)), "request"
    except AutorubricError as raised:
        return _refused(str(raised)), "failed"
    # An agent is told of a bug too, and goes on.
    except Exception as raised:
        return _refused(f"Unexpected {type(raised).__name__}: {raised}"), "internal"


def _refused(error: str) -> Outcome:
    return Outcome(content={"ok": False, "error": error, "provider": None}, line=f"✗ {error}")


def _write_down(log: Path | None, tool: str, call: Call, *, ok: bool, code: str | None) -> None:
    if log is None:
        return
    seconds = time.perf_counter() - call.started
    kinds: dict[str, Json] = {name: type(error).__name__ for name, error in call.failed.items()}
    line = call_line(tool, ok=ok, error_code=code, seconds=seconds)
    append_line(log, {**line, "failed_providers": kinds, **call.noted})
