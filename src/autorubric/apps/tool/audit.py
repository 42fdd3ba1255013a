"""The audit log, with one JSON line per call that includes the evaluated content only on request."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from autorubric.apps.tool.providers import ProviderTable
from autorubric.apps.tool.request import CritiqueRequest
from autorubric.apps.tool.response import CritiqueResponse
from autorubric.errors import AutorubricError, ProviderTimeoutError, TokenUsage, TransientError
from autorubric.support.objects import Json

AUDIT_FORMAT = 1
"""Version of the format of the lines."""


class AuditError(AutorubricError):
    """The audit log cannot be written to."""


@dataclass(kw_only=True)
class Trace:
    """The state of a running call."""

    request: CritiqueRequest | None = None  # None until it has been parsed
    content_type: str | None = None
    failed: dict[str, Exception] = field(default_factory=dict)  # by provider name
    # The last error after which a request was retried, by provider name.
    retried: dict[str, TransientError] = field(default_factory=dict)
    error_code: str | None = None  # kind of error that ended the call; None if it succeeded
    model: str | None = None  # that answered
    usage: TokenUsage | None = None
    cost: float | None = None  # in US dollars

    def reasons(self) -> dict[str, str]:
        """Return error messages by the names of the providers that failed."""
        reasons = {name: _error_text(error) for name, error in self.failed.items()}
        for name in reasons.keys() & self.retried.keys():
            if isinstance(self.failed[name], ProviderTimeoutError):
                reasons[name] += f", retried after {_error_text(self.retried[name])}"
        return reasons

    def retry_reasons(self) -> dict[str, str]:
        """Return the reasons for retries by the names of the providers being retried when the call ended."""
        left = {name: error for name, error in self.retried.items() if name not in self.failed}
        return {name: f"retried after {_error_text(error)}" for name, error in left.items()}


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def audit_line(trace: Trace, response: CritiqueResponse, *, seconds: float, content: bool) -> dict[str, Json]:
    """Return the audit line of a call, with only the kind of an error: messages may quote the content."""
    line = call_line("critique.evaluate", ok=response.ok, error_code=trace.error_code, seconds=seconds)
    line |= {
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
    if (request := trace.request) is not None:
        line |= {
            "asked_provider": request.provider,
            "content_type": trace.content_type or request.content_type,
            **text_facts(request.content),
            "criteria": list(request.criteria),
            "evaluation_mode": request.evaluation_mode,
            "scoring_scale": request.scoring_scale,
            "workspace_root": request.workspace_root,
            "max_issues": request.max_issues,
        }
        if content:
            line |= {"content": request.content, "context": request.context}
    return line


def call_line(tool: str, *, ok: bool, error_code: str | None, seconds: float) -> dict[str, Json]:
    """Return the fields of an audit line that are common to all tools."""
    return {
        "format": AUDIT_FORMAT,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "tool": tool,
        "ok": ok,
        "error_code": error_code,
        "evaluation_time_ms": round(seconds * 1000),
    }


def log_refusal(table: ProviderTable, request: CritiqueRequest | None) -> None:
    """Log a request that was rejected before `critique_evaluate` was called."""
    if table.audit_path is not None:
        trace = Trace(request=request, error_code="request")
        # The line contains only the kind of the error.
        refused = CritiqueResponse.of_error("refused")
        append_line(table.audit_path, audit_line(trace, refused, seconds=0.0, content=table.audit_content))


def text_facts(text: str) -> dict[str, Json]:
    """Return the audit fields for an evaluated text: its size and SHA-256 digest."""
    raw = text.encode("utf-8", "surrogatepass")
    return {"content_bytes": len(raw), "content_sha256": hashlib.sha256(raw).hexdigest()}


def append_line(path: Path, line: dict[str, Json] | None) -> None:
    """Append a line to the audit log in one write; if `line` is None, only check that the log is writable."""
    text = "" if line is None else json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n"
    try:
        with path.open("ab+", buffering=0) as file:
            if text and file.seek(0, os.SEEK_END) > 0:
                file.seek(-1, os.SEEK_END)
                # An incomplete line left by a killed process is ended but not removed.
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(text.encode("ascii"))
    # A path with a null character raises ValueError.
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise AuditError(f"cannot write the audit log {str(path)!r}: {why}") from None
