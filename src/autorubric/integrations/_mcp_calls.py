"""Calls of served tools, with their time limits, errors and audit log lines."""

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
    """The configuration of the served tools.

    Attributes:
        providers: The available evaluators.
        root: The folder that must contain all rubric files, run folders and datasets.
        timeout: Maximum duration of a call in seconds.
        heartbeat: Seconds between heartbeats to a client that requested progress.
    """

    providers: ProviderTable
    root: Path = field(default_factory=Path.cwd)
    timeout: float = 30.0
    heartbeat: float = 5.0

    @property
    def files(self) -> Workspace:
        """Return the workspace that must contain all files named by agents."""
        return Workspace.at(str(self.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a call.

    Attributes:
        content: The structured content, whose key `ok` tells whether the call succeeded.
        line: A summary of the content on one line.
    """

    content: Mapping[str, Json]
    line: str

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.content["ok"] is True


class NobodyError(AutorubricError):
    """Raised if every provider failed."""


@dataclass(kw_only=True)
class Call:
    """The state of a running call.

    Attributes:
        seconds: Maximum duration in seconds.
        noted: Additional fields of the audit line.
        named: The provider named in the call; None if the call did not name a provider.
        failed: Errors by the names of the providers that failed.
        started: Start time, measured by `time.perf_counter`.
    """

    seconds: float
    started: float = field(default_factory=time.perf_counter, init=False)
    noted: dict[str, Json] = field(default_factory=dict)
    named: str | None = None
    failed: dict[str, Exception] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        """Return the deadline, measured by `time.perf_counter`."""
        return self.started + self.seconds

    def reasons(self) -> dict[str, str]:
        """Return error messages by the names of the providers that failed."""
        return {name: f"{type(error).__name__}: {error}" for name, error in self.failed.items()}

    def nobody(self) -> NobodyError:
        """Create the error for a call in which every provider failed."""
        if self.named is not None:
            return NobodyError(unavailable(self.named, self.reasons()[self.named]))
        told = "; ".join(f"{name}: {why}" for name, why in self.reasons().items())
        return NobodyError(f"No provider could grade. {told}")

    def timed_out(self) -> str:
        """Return the message for a call that timed out."""
        if self.named is not None:
            return unavailable(self.named, f"no answer within {self.seconds:g} s")
        before = "".join(f"; {name}: {why}" for name, why in self.reasons().items())
        return f"the call took more than {self.seconds:g} s{before}"


async def answered(tool: str, server: ToolServer, work: Callable[[Call], Awaitable[Outcome]]) -> Outcome:
    """Run a call and write its audit line; an error is returned as an outcome that reports it.

    Args:
        tool: Name of the tool.
        server: The configuration with the time limit and the path of the audit log.
        work: The function that performs the call.
    """
    call, log = Call(seconds=server.timeout), server.providers.audit_path
    try:
        # The call must not run if the audit log is not writable.
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
    """Run the work and return the outcome with its error code; None if the call succeeded."""
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
    # A bug is also reported to the agent, so that it can continue.
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
