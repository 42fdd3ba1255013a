"""The request of the tool `critique.evaluate`, and the type of its content."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from autorubric.errors import ArgumentError
from autorubric.support.reading_errors import nearest_key, short_repr

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
"""Minimum proportion of the first non-blank lines that look like statements in code."""


def detect_type(content: str, declared: ContentType) -> FoundType:
    """Return the declared type of the content, or detect the type if it is `auto`."""
    if declared != "auto":
        return declared
    data = _parse_json(content)
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
    lines = [line for line in content.splitlines()[:_SAMPLE_LINES] if line.strip()]
    looks = sum(1 for line in lines if _STATEMENT.match(line[:500]) or _ENDS_AS_CODE.search(line[-50:]))
    if lines and looks >= _CODE_SHARE * len(lines):
        return "code"
    marks = len(_MARKDOWN.findall(content))
    return "markdown" if _HEADING.search(content) or marks >= 2 else "text"


def misfit_note(content: str, declared: ContentType) -> str | None:
    """Return a note for the critic if the content does not match its declared type; None if it does."""
    if declared not in ("tool_result", "session_snapshot"):
        return None
    data = _parse_json(content)
    if data is None:
        return f"The content was declared as {declared}, and is no valid JSON. Judge it as it stands."
    if declared == "session_snapshot" and not isinstance(data, Mapping | list):
        return "The content was declared as session_snapshot, and is no object. Judge it as it stands."
    return None


def _parse_json(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


ContentType = Literal["auto", "code", "text", "markdown", "tool_result", "session_snapshot"]
EvaluationMode = Literal["detailed", "summary", "score_only"]
ScoringScale = Literal["0-10", "0-100", "letter", "pass-fail"]

MOST_BYTES: Final = 512_000
"""Maximum size of the content and of the context in UTF-8 bytes."""

_TOO_LONG: Final = "{what} exceeds maximum size (500KB)"
_NAMES: Final = ("critique.evaluate", "critique_evaluate")
_MOST_CRITERIA: Final = 50
_LONGEST_NAME: Final = 200


class CritiqueRequest(BaseModel):
    """A request for a critique.

    Attributes:
        content: The content to evaluate, at most 512,000 UTF-8 bytes; pass data as JSON text.
        content_type: Type of the content; `auto` detects the type.
        criteria: Names of standard or custom criteria, or the path of one rubric file.
        provider: The evaluator: `auto`, or the name of a provider in the table.
        evaluation_mode: Level of detail of the response: `detailed`, `summary` (no issues or suggestions) or
            `score_only` (also no summary).
        scoring_scale: The scale on which scores are reported.
        context: Further information, such as goals, concerns and related files.
        workspace_root: The folder that must contain the rubric file and all issue locations.
        max_issues: Maximum number of issues per criterion, from 1 to 50.
        dry_run: Whether to only check the request and return the plan, without calling an evaluator.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str = Field(description="The text, code or data to evaluate; data as a JSON string.")
    content_type: ContentType = Field(default="auto", description="What the content is; auto finds out.")
    # One name, a list or a tuple; stored as a tuple.
    criteria: Sequence[str] = Field(
        description=(
            "What to evaluate: correctness, completeness, quality, security, performance, style, safety, or "
            "names of your own; or the path of one rubric file."
        ),
        min_length=1,
        max_length=_MOST_CRITERIA,
    )
    provider: str = Field(
        default="auto",
        description=(
            "Who evaluates: auto, local_fm, gpt4, claude or custom:<id>. A named provider is used or the "
            "call fails; auto chooses, and falls back."
        ),
        min_length=1,
        max_length=_LONGEST_NAME,
    )
    evaluation_mode: EvaluationMode = Field(
        default="detailed",
        description="detailed: scores, issues, suggestions; summary: scores, overview; score_only: scores.",
    )
    scoring_scale: ScoringScale = Field(default="0-10", description="How scores are shown.")
    context: str | None = Field(
        default=None, description="What else the critic should know: goals, worries, related files."
    )
    workspace_root: str | None = Field(
        default=None, description="The folder that locations of issues must lie in."
    )
    max_issues: int = Field(default=10, ge=1, le=50, description="Most issues of one criterion.")
    dry_run: bool = Field(default=False, description="Check the arguments and ask nobody.")

    @field_validator("content", "context", mode="before")
    @classmethod
    def _take_text_alone(cls, given: Any) -> Any:
        # Bytes would be converted to a string and bypass the size limit.
        if isinstance(given, bytes | bytearray | memoryview):
            raise ValueError(f"must be a string; got {type(given).__name__}")
        return given

    @field_validator("content", "context", mode="after")
    @classmethod
    def _check_text(cls, text: str | None) -> str | None:
        try:
            (text or "").encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("the text contains an unpaired surrogate and is not valid Unicode") from None
        return text

    @field_validator("content")
    @classmethod
    def _check_content(cls, content: str) -> str:
        if not content.strip():
            raise ValueError("the content is empty; pass the content to evaluate")
        return content

    @field_validator("criteria", mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        return (str(given),) if isinstance(given, str | Path) else given

    @field_validator("criteria")
    @classmethod
    def _check_criteria(cls, criteria: Sequence[str]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in criteria))
        for name in names:
            if not name or len(name) > _LONGEST_NAME or not name.isprintable():
                raise ValueError(
                    f"the name of a criterion must be one line of 1 to {_LONGEST_NAME} printable characters; "
                    f"got {short_repr(name)}"
                )
        return names

    @field_validator("workspace_root", mode="before")
    @classmethod
    def _path_as_text(cls, given: Any) -> Any:
        return str(given) if isinstance(given, Path) else given


RequestLike: TypeAlias = CritiqueRequest | Mapping[str, Any]


def read_request(given: RequestLike) -> CritiqueRequest:
    """Parse a request."""
    arguments = given.model_dump() if isinstance(given, CritiqueRequest) else given
    if isinstance(arguments, Mapping) and set(arguments) == {"tool", "arguments"}:
        if arguments["tool"] not in _NAMES:
            raise ArgumentError(f"unknown tool {short_repr(arguments['tool'])}; use {_NAMES[0]}")
        arguments = arguments["arguments"]
    if not isinstance(arguments, Mapping):
        raise ArgumentError(f"the request must be a mapping of arguments; got {short_repr(arguments)}")
    for name in ("content", "context"):
        text = arguments.get(name)
        if isinstance(text, str) and len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
            raise ArgumentError(_TOO_LONG.format(what=name.capitalize()))
    if isinstance(given, CritiqueRequest):
        return given
    try:
        return CritiqueRequest.model_validate(dict(arguments))
    except ValidationError as error:
        raise ArgumentError("; ".join(_fault(one) for one in error.errors(include_url=False))) from None


def _fault(found: Any) -> str:
    place = ".".join(map(str, found["loc"])) or "request"
    match found["type"]:
        case "missing":
            return f"{place}: missing required argument"
        case "extra_forbidden":
            return f"{place}: unknown argument; {nearest_key(place, CritiqueRequest.model_fields)}"
        case "is_instance_of":
            return f"{place}: must be a list of names; got {short_repr(found['input'])}"
        case _:
            message = found["msg"].removeprefix("Value error, ")
            # Values rejected by this module's validators may be long and are not quoted.
            shown = "" if found["type"] == "value_error" else f"; got {short_repr(found['input'])}"
            return f"{place}: {message}{shown}"
