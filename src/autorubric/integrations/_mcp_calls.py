"""A call of a served tool: its time limit, its errors, and its line in the audit log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autorubric.errors import ArgumentError, AutorubricError, FileError
from autorubric.tool import AuditError, ProviderTable, Workspace, append_line, call_line, unavailable
from autorubric.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """The served tools and their limits.

    Attributes:
        providers: The evaluators.
        root: The folder to which rubric files, run folders and datasets are confined.
        timeout: Maximum number of seconds for a call.
        heartbeat: Seconds between heartbeats to a client that asked for progress.
    """

    providers: ProviderTable
    root: Path = field(default_factory=Path.cwd)
    timeout: float = 30.0
    heartbeat: float = 5.0

    @property
    def files(self) -> Workspace:
        """Return the workspace to which files named by agents are confined."""
        return Workspace.at(str(self.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a call.

    Attributes:
        content: The structured content; `ok` says whether the call succeeded.
        line: The same on one line.
    """

    content: Mapping[str, Json]
    line: str

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.content["ok"] is True


class NobodyError(AutorubricError):
    """Raised if no provider could answer."""


@dataclass(kw_only=True)
class Call:
    """The state of a running call.

    Attributes:
        seconds: Maximum number of seconds.
        noted: Additional fields of its audit line.
        named: The provider named in the call; None if it named none.
        failed: Providers that failed, each with the error.
        started: Start time, by `time.perf_counter`.
    """

    seconds: float
    started: float = field(default_factory=time.perf_counter, init=False)
    noted: dict[str, Json] = field(default_factory=dict)
    named: str | None = None
    failed: dict[str, Exception] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        """Return the deadline, by `time.perf_counter`."""
        return self.started + self.seconds

    def reasons(self) -> dict[str, str]:
        """Return the providers that failed, each with the reason."""
        return {name: f"{type(error).__name__}: {error}" for name, error in self.failed.items()}

    def nobody(self) -> NobodyError:
        """Return the error for a call in which every provider failed."""
        if self.named is not None:
            return NobodyError(unavailable(self.named, self.reasons()[self.named]))
        told = "; ".join(f"{name}: {why}" for name, why in self.reasons().items())
        return NobodyError(f"No provider could grade. {told}")

    def timed_out(self) -> str:
        """Return the message for a call that timed out."""
        if self.named is not None:
            return unavailable(self.named, f"no answer within {self.seconds:g} s")
        before = "".join(f"; {name}: {why}" for name, why in self.reasons().items())
        return f"it took more than {self.seconds:g} s{before}"


async def answered(tool: str, server: ToolServer, work: Callable[[Call], Awaitable[Outcome]]) -> Outcome:
    """Run a call and write its audit line; errors become an answer that reports them.

    Args:
        tool: The tool's name.
        server: Sets the time limit and the path of the log.
        work: The function that performs the call.
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
    """Return the result of the work, and the kind of error that it ended with."""
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
