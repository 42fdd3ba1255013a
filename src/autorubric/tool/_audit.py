"""The audit log: a JSON line for each call; the evaluated content is included only on request."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from autorubric.errors import AutorubricError, ProviderTimeoutError, TransientError
from autorubric.tool._providers import ProviderTable
from autorubric.tool._request import CritiqueRequest
from autorubric.tool._response import CritiqueResponse
from autorubric.values import Json, TokenUsage

AUDIT_FORMAT = 1
"""Version of the line format."""


class AuditError(AutorubricError):
    """Raised if the audit log cannot be written."""


@dataclass(kw_only=True)
class Trace:
    """The state of a running call.

    Attributes:
        request: The request, once it is read.
        content_type: Type of the content.
        failed: Providers that failed, each with the error.
        retried: The last error of each provider after which a request was sent again.
        error_code: Kind of error that the call ended with; None if it succeeded.
        model: The model that answered.
        usage: Tokens spent.
        cost: US dollars spent.
    """

    request: CritiqueRequest | None = None
    content_type: str | None = None
    failed: dict[str, Exception] = field(default_factory=dict)
    retried: dict[str, TransientError] = field(default_factory=dict)
    error_code: str | None = None
    model: str | None = None
    usage: TokenUsage | None = None
    cost: float | None = None

    def reasons(self) -> dict[str, str]:
        """Return the providers that failed, each with the reason."""
        told = {name: _told(error) for name, error in self.failed.items()}
        for name in told.keys() & self.retried.keys():
            if isinstance(self.failed[name], ProviderTimeoutError):
                told[name] += f", retried after {_told(self.retried[name])}"
        return told

    def retrying(self) -> dict[str, str]:
        """Return the providers that were being retried when the call ended, each with the reason."""
        left = {name: error for name, error in self.retried.items() if name not in self.failed}
        return {name: f"retried after {_told(error)}" for name, error in left.items()}


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def audit_line(trace: Trace, response: CritiqueResponse, *, seconds: float, content: bool) -> dict[str, Json]:
    """Return the audit line of a call.

    Errors are recorded only by kind, because their messages may quote the evaluated content.
    """
    line: dict[str, Json] = {
        **call_line("critique.evaluate", ok=response.ok, error_code=trace.error_code, seconds=seconds),
        "provider": response.provider,
        "failed_providers": {name: type(error).__name__ for name, error in trace.failed.items()},
        "model": trace.model,
        "tokens": trace.usage.total_tokens if trace.usage else None,
        "cost": trace.cost,
        "dry_run": response.dry_run,
        "overall_score": response.overall_score,
        "issues": len(response.issues),
        "suggestions": len(response.suggestions),
    }
    return line if trace.request is None else {**line, **_asked(trace.request, trace.content_type, content)}


def call_line(tool: str, *, ok: bool, error_code: str | None, seconds: float) -> dict[str, Json]:
    """Return the audit line of a call of any tool.

    Args:
        tool: The tool.
        ok: Whether the call succeeded.
        error_code: Kind of error that it ended with; None if it succeeded.
        seconds: Duration in seconds.
    """
    return {
        "format": AUDIT_FORMAT,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "tool": tool,
        "ok": ok,
        "error_code": error_code,
        "evaluation_time_ms": round(seconds * 1000),
    }


def log_refusal(table: ProviderTable, request: CritiqueRequest | None) -> None:
    """Log a request that was rejected before `critique_evaluate` was called.

    Args:
        table: Specifies the log's path, if any, and whether to include the content.
        request: The request, if it could be read.

    Raises:
        AuditError: If the line cannot be written.
    """
    if table.audit_path is not None:
        trace = Trace(request=request, error_code="request")
        # The line has an error's kind alone.
        refused = CritiqueResponse.failed("refused")
        append_line(table.audit_path, audit_line(trace, refused, seconds=0.0, content=table.audit_content))


def text_facts(text: str) -> dict[str, Json]:
    """Return the size and the digest of a judged text."""
    raw = text.encode("utf-8", "surrogatepass")
    return {"content_bytes": len(raw), "content_sha256": hashlib.sha256(raw).hexdigest()}


def _asked(request: CritiqueRequest, content_type: str | None, content: bool) -> dict[str, Json]:
    told = {
        name: getattr(request, name)
        for name in ("evaluation_mode", "scoring_scale", "workspace_root", "max_issues")
    }
    return {
        "asked_provider": request.provider,
        "content_type": content_type or request.content_type,
        **text_facts(request.content),
        "criteria": list(request.criteria),
        **told,
        **({"content": request.content, "context": request.context} if content else {}),
    }


def append_line(path: Path, line: dict[str, Json] | None) -> None:
    """Append a line to the log in one write; None only checks that the log can be written.

    Raises:
        AuditError: If it cannot be written.
    """
    text = "" if line is None else json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n"
    try:
        with path.open("ab+", buffering=0) as file:
            if text and file.seek(0, os.SEEK_END) > 0:
                file.seek(-1, os.SEEK_END)
                # A line that was torn when a process was killed is ended, not removed.
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(text.encode("ascii"))
    # A path with a null character is no OSError.
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise AuditError(f"the audit log {str(path)!r} cannot be written: {why}") from None
