"""Detection of the content type, and notes for the critic about content that does not match its type."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from autorubric.tool._request import ContentType

FoundType = Literal["code", "text", "markdown", "tool_result", "session_snapshot"]

CALLED: Final[Mapping[FoundType, str]] = {
    "code": "source code, or changes to it",
    "text": "plain text",
    "markdown": "a document in Markdown",
    "tool_result": "the result of a tool, as JSON",
    "session_snapshot": "a snapshot of an agent's session, as JSON: what was said, which tools were called",
}
"""Descriptions of the content types for the critic."""

_SESSION_KEYS: Final = frozenset({"messages", "tool_calls", "session_id", "turns", "events", "transcript"})
_DIFF: Final = re.compile(r"^(?:diff --git |@@ [-+0-9, ]+ @@|--- \S|\+\+\+ \S|Index: \S)", re.MULTILINE)
_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_HEADING: Final = re.compile(r"^ {0,3}#{1,6} +\S", re.MULTILINE)
_MARKDOWN: Final = re.compile(
    r"^ {0,3}(?:#{1,6} +\S|[-*+] +\S|\d+[.)] +\S|> |\|.*\|\s*$|={3,}\s*$|-{3,}\s*$)"
    r"|\[[^\[\]\n]+\]\([^()\n]+\)|\*\*[^*\n]+\*\*",
    re.MULTILINE,
)
_STATEMENT: Final = re.compile(
    r"^\s*(?:import\s+[\w.{*]|from\s+[\w.]+\s+import\b|def\s+\w+\s*\(|async\s+def\s|class\s+\w+\s*[({:]|fn\s+\w+|"
    r"func\s+\w*\s*\(|func\s*\(|function\s*\w*\s*\(|(?:const|let|var|val)\s+\w+\s*(?::[^=\n]+)?=|#include\s*[<\"]|"
    r"using\s+[\w.]+;|package\s+[\w.]+;?\s*$|(?:public|private|protected|static|export|pub)\s+\w+|return\b.*;?\s*$|"
    r"(?:if|for|while|switch|guard)\b.*[:{]\s*$|(?:SELECT|INSERT|UPDATE|CREATE|DELETE)\s+\w|[})\]]+[;,]?\s*$|"
    r"#!|//|/\*|\w[\w.]*\(.*\);?\s*$|[\w.\[\]]+\s*[-+*/]?=\s*\S)"
)
_ENDS_AS_CODE: Final = re.compile(r"[;{}]\s*$")
_SAMPLE: Final = 65_536
_SAMPLE_LINES: Final = 400
_CODE_SHARE: Final = 0.5


def found_type(content: str, declared: ContentType) -> FoundType:
    """Return the declared type of the content, or detect the type if it is `auto`."""
    if declared != "auto":
        return declared
    data = _parsed(content)
    # The beginning is sufficient for the detection and keeps the search short.
    content = content[:_SAMPLE]
    if isinstance(data, Mapping) and _SESSION_KEYS & set(data):
        return "session_snapshot"
    if isinstance(data, Mapping | list):
        return "tool_result"
    if _DIFF.search(content) or content.startswith("#!"):
        return "code"
    if _FENCE.search(content):
        return "markdown"
    if _code_share(content) >= _CODE_SHARE:
        return "code"
    marks = len(_MARKDOWN.findall(content))
    return "markdown" if _HEADING.search(content) or marks >= 2 else "text"


def misfit_note(content: str, declared: ContentType) -> str | None:
    """Return a note for the critic if the content does not match its declared type; None if it does."""
    if declared not in ("tool_result", "session_snapshot"):
        return None
    data = _parsed(content)
    if data is None:
        return f"The content was declared as {declared}, and is no valid JSON. Judge it as it stands."
    if declared == "session_snapshot" and not isinstance(data, Mapping | list):
        return "The content was declared as session_snapshot, and is no object. Judge it as it stands."
    return None


def _parsed(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _code_share(content: str) -> float:
    """Return the proportion of the first non-blank lines that look like statements."""
    lines = [line for line in content.splitlines()[:_SAMPLE_LINES] if line.strip()]
    if not lines:
        return 0.0
    looks = sum(1 for line in lines if _STATEMENT.match(line[:500]) or _ENDS_AS_CODE.search(line[-50:]))
    return looks / len(lines)
