"""Drafts read from JSON lines, and the records of their critiques."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from sys import float_info
from typing import Any, Final, NamedTuple

import msgspec

from autorubric.apps.drafts.provenance import Answered, json_digest
from autorubric.errors import FileError
from autorubric.support.objects import Json
from autorubric.support.read import bounded_lines, file_sha256, parse_line
from autorubric.support.reading_errors import SyntaxFault, short_repr

MOST_FAULTS: Final = 1000
"""Maximum number of invalid lines that are listed individually; all are counted."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One draft. The page on formats shows the attributes.

    Attributes:
        id: Id of the draft as a string, by which records are found.
        prompt: The prompt that the draft answers; None if unknown.
        output: The content of the draft, as text or JSON data.
        contract: The result of an automatic check of the output; None if there was no check.
    """

    id: str
    prompt: Json
    output: Json
    contract: Json = None
    line: int = 0  # in the file, starting at 1
    offset: int = 0  # of the line, in bytes
    written_id: str | int = ""  # as written in the file

    def __post_init__(self) -> None:
        if self.written_id == "":
            object.__setattr__(self, "written_id", self.id)

    @cached_property
    def output_text(self) -> str:
        return json_text(self.output)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of prompt, output and contract."""
        return json_digest([self.prompt, self.output, self.contract])


class LineFault(NamedTuple):
    """A line that does not contain a valid draft."""

    line: int  # starting at 1
    fault: str
    id: str | None = None  # None if the draft has no valid id


def read_drafts(path: Path) -> Iterator[Draft | LineFault]:
    """Read a file line by line and yield the draft on each line, or the line's error."""
    return map(draft_of, lines_of(path))


class DraftLine(NamedTuple):
    number: int  # starting at 1
    offset: int  # in bytes
    raw: bytes


def lines_of(path: Path) -> Iterator[DraftLine]:
    """Yield the lines of a file that are not blank."""
    offset = 0
    try:
        for number, raw in enumerate(bounded_lines(path), start=1):
            if raw.strip():
                yield DraftLine(number, offset, raw)
            offset += len(raw)
    except OSError as error:
        raise FileError.whole(path, f"cannot be read: {error.strerror or error}") from None


def input_digest(path: Path) -> str:
    """Return the SHA-256 digest of a JSON lines file as a hexadecimal string."""
    if next(lines_of(path), None) is None:
        raise FileError.whole(path, "the file is empty; it must contain one JSON object per line")
    return file_sha256(path)


def draft_of(line: DraftLine) -> Draft | LineFault:
    """Return the draft on a line, or its error."""
    try:
        text = line.raw.decode("utf-8-sig")
        if not text.strip():
            return LineFault(line.number, "the content is empty")
        # The strict parser also rejects values that could not be written to a file later.
        given = parse_line(text, 1)
    except UnicodeDecodeError as error:
        return LineFault(line.number, f"invalid UTF-8: byte 0x{error.object[error.start]:02x}")
    except SyntaxFault as fault:
        return LineFault(line.number, fault.message)
    if not isinstance(given, dict):
        return LineFault(line.number, f"a draft must be a JSON object; got {short_repr(given)}")
    written = given.get("id")
    key = draft_key(written)
    if key is None or not key.strip():
        message = "the draft has no id" if written is None else f"the id {short_repr(written)} is invalid"
        return LineFault(line.number, f'{message}; "id" must be a non-blank string or an integer')
    if given.get("output") is None:
        return LineFault(line.number, 'the draft has no output; "output" must be text or JSON data', key)
    return Draft(
        id=key,
        written_id=written if isinstance(written, int) else key,
        prompt=given.get("prompt"),
        output=given["output"],
        contract=given.get("contract"),
        line=line.number,
        offset=line.offset,
    )


def draft_key(given: Json) -> str | None:
    """Return an id as a string; None if it is neither a string nor an integer."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    return given if isinstance(given, str) else None


def json_text(value: Json) -> str:
    """Return a string unchanged and other data as JSON."""
    if isinstance(value, str):
        return value
    try:
        # Python indents JSON many times as slowly as it writes JSON on one line.
        return msgspec.json.format(_ENCODE(value), indent=1)
    # An unpaired surrogate, NaN or an infinity.
    except ValueError:
        return json.dumps(value, ensure_ascii=False, indent=1)


_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def line_at(path: Path, offset: int) -> DraftLine:
    """Return the line of a file that begins at an offset; its line number is unknown and set to 0."""
    with path.open("rb") as file:
        file.seek(offset)
        return DraftLine(0, offset, file.readline())


_VERDICTS: Final = ("pass", "revise", "reject")
_RISKS: Final = ("low", "medium", "high")
_ISSUE_TYPES: Final = (
    "hallucination",
    "overconfidence",
    "schema",
    "verification",
    "actionability",
    "clarity",
    "safety",
)
_CODES: Final = ("JSON_PARSE_ERROR", "SCHEMA_ERROR", "PROVIDER_ERROR", "TIMEOUT")


@dataclass(slots=True)
class CritiqueTally:
    """Counts over the records of a critiques file."""

    records: int = 0
    parsed: int = 0
    valid: int = 0
    unresolved: int = 0
    other_ids: int = 0
    verdicts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_VERDICTS, 0)))
    issues: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_ISSUE_TYPES, 0)))
    risks: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_RISKS, 0)))
    errors: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_CODES, 0)))
    first_errors: dict[str, str] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, record: Mapping[str, Any]) -> None:
        self.records += 1
        teacher = record.get("teacher") or {}
        tokens, cost = (teacher.get("usage") or {}).get("total_tokens"), teacher.get("cost")
        self.tokens += tokens if isinstance(tokens, int) else 0
        if isinstance(cost, int | float):
            self.cost += cost
        else:
            self.unpriced += 1
        contract = record.get("critique_contract") or {}
        error = contract.get("error") or {}
        if error:
            self.errors[str(error.get("code"))] += 1
            self.first_errors.setdefault(str(error.get("code")), str(error.get("message")))
        critique = record.get("critique")
        self.parsed += isinstance(critique, Mapping) or error.get("code") == "SCHEMA_ERROR"
        if not isinstance(critique, Mapping):
            return
        self.valid += bool(contract.get("schema_ok"))
        self.other_ids += contract.get("id_ok") is False
        self.unresolved += sum(one.get("resolved") is False for one in record.get("evidence") or [])
        verdict = verdict_in(record)
        if verdict is not None:
            self.verdicts[verdict] += 1
        risk = risk_of(critique)
        if risk is not None:
            self.risks[risk] += 1
        self.issues.update(str(issue.get("type")) for issue in issues_of(critique))
        for name, score in scores_of(critique).items():
            self.sums[name] = self.sums.get(name, 0.0) + score
            self.counts[name] += 1

    def to_dict(self) -> dict[str, Json]:
        """Return the statistics; rates are percentages of the records, or None if there are no records."""
        return {
            "critique_parse_rate": percent(self.parsed, self.records),
            "critique_schema_valid_rate": percent(self.valid, self.records),
            "verdict_distribution": dict(self.verdicts),
            "issue_type_counts": dict(self.issues.most_common()),
            "risk_level_distribution": dict(self.risks),
            "avg_scores": {name: total / self.counts[name] for name, total in self.sums.items()},
            "records": self.records,
            "error_counts": dict(self.errors),
            "first_errors": dict(self.first_errors),
            "unresolved_evidence": self.unresolved,
            "id_mismatches": self.other_ids,
            "tokens": self.tokens,
            "cost": None if self.unpriced else self.cost,
        }


def percent(part: int, whole: int) -> float | None:
    """Return a part as a percentage of the whole; None if the whole is 0."""
    return 100.0 * part / whole if whole else None


_STEP: Final = re.compile(
    r"""\.?(?P<key>[^.\[\]\s"'][^.\[\]]*)|\[(?P<place>\d{1,9})\]|\[(?P<quoted>"[^"]*"|'[^']*')\]"""
)


def resolve_evidence(path: str, output: Json) -> bool:
    """Return whether an evidence path exists in an output.

    Args:
        path: Keys separated by dots or quoted in brackets, and indices in brackets, for example
            `payload.days[0]["first title"]`. The path can start with `$`, which stands for the output.
        output: The output, as data or a JSON string. No path exists in text that is not JSON.
    """
    steps = _steps(path)
    place = data_of(output)
    if not steps or place is None:
        return False
    for step in steps:
        if isinstance(place, list) and isinstance(step, int):
            there = step < len(place)
        else:
            there = isinstance(place, Mapping) and step in place
        if not there:
            return False
        place = place[step]
    return True


def evidence_of(critique: Mapping[str, Json], output: Json) -> list[dict[str, Json]]:
    """Return each issue that has a path, with its index, the path, and whether it exists in the output."""
    issues = critique.get("issues")
    found: list[dict[str, Json]] = []
    for place, issue in enumerate(issues if isinstance(issues, list) else []):
        path = issue.get("evidence_path") if isinstance(issue, Mapping) else None
        if isinstance(path, str) and path:
            resolved = resolve_evidence(path, output)
            found.append({"issue": place, "evidence_path": path, "resolved": resolved})
    return found


def _steps(path: str) -> list[str | int] | None:
    """Split a path into keys and indices; None if the path is invalid."""
    text = path.strip().removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        # A key must follow a dot, except at the beginning.
        if match is None or (match["key"] and at > 0 and text[at] != "."):
            return None
        at = match.end()
        if match["place"] is not None:
            steps.append(int(match["place"]))
        else:
            steps.append(match["key"] if match["key"] is not None else match["quoted"][1:-1])
    return steps


def data_of(output: Json) -> Any:
    """Return an output as data: a string is parsed as JSON (None if invalid), other data is unchanged."""
    if not isinstance(output, str):
        return output
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


LONGEST_RAW: Final = 20_000
"""Maximum number of characters kept of a reply that is not a critique."""
UNSAID: Final = ("hallucination", "verification", "schema")
"""Keys that are always None in a critique made by a rubric."""


def critique_record(draft: Draft, answered: Answered[dict[str, Json]]) -> dict[str, Json]:
    """Return the record of a draft's critique, or of the failure to get one."""
    critique = answered.answer
    evidence = [] if critique is None else evidence_of(critique, draft.output)
    return {
        "id": draft.written_id,
        "draft_id": draft.written_id,
        "critique": critique,
        "raw_critique_text": None if critique is not None else raw_text(answered.text),
        "teacher": answered.provenance.to_dict(),
        "critique_contract": _contract(draft, answered, evidence),
        "created_at": now(),
        "evidence": evidence,
        "draft_hash": draft.digest,
    }


def raw_text(text: str | None) -> str | None:
    """Return a reply truncated to the characters that are kept in a record."""
    return None if text is None else text[:LONGEST_RAW]


def now() -> str:
    """Return the current time in UTC, in ISO 8601 format."""
    return datetime.now(UTC).isoformat()


def is_strict_json(text: str | None) -> bool:
    """Return whether an unparsed reply is strict JSON, without fences, prose, duplicate keys or NaN."""
    try:
        parse_line(text or "", 1)
    except SyntaxFault:
        return False
    return True


def _contract(
    draft: Draft, answered: Answered[dict[str, Json]], evidence: list[dict[str, Json]]
) -> dict[str, Json]:
    critique = answered.answer
    if critique is None:
        assert answered.failure is not None
        error = {"code": answered.failure.code, "message": answered.failure.message}
        return {"strict_json_ok": is_strict_json(answered.text), "schema_ok": False, "error": error}
    return {
        # A rubric's critique is made from votes, so there is no reply that could be invalid.
        "strict_json_ok": answered.text is None or is_strict_json(answered.text),
        "schema_ok": True,
        "id_ok": draft_key(critique.get("id", draft.id)) == draft.id,
        "evidence_ok": all(one["resolved"] for one in evidence),
    }


def verdict_in(record: Mapping[str, Any]) -> str | None:
    """Return the verdict in a record; None if there is no verdict."""
    critique = record.get("critique")
    verdict = critique.get("verdict") if isinstance(critique, Mapping) else None
    return verdict if isinstance(verdict, str) else None


def scores_of(critique: Mapping[str, Any]) -> dict[str, float]:
    """Return the numeric scores in a critique, by name."""
    scores = critique.get("scores")
    if not isinstance(scores, Mapping):
        return {}
    return {
        str(name): float(score)
        for name, score in scores.items()
        # An integer may be too large for a float.
        if isinstance(score, int | float) and not isinstance(score, bool) and abs(score) <= float_info.max
    }


def graded_score(critique: Mapping[str, Any]) -> float | None:
    """Return the score, with weights and penalties, of a critique made by a rubric; None for others."""
    score = critique.get("score")
    # These keys identify a rubric's critique; in a custom schema, `score` may mean something else.
    silent = all(name in critique and critique[name] is None for name in UNSAID)
    return float(score) if silent and isinstance(score, int | float) and 0 <= score <= 1 else None


def risk_of(critique: Mapping[str, Any]) -> str | None:
    """Return the hallucination risk level in a critique; None if there is no risk level."""
    hallucination = critique.get("hallucination")
    level = hallucination.get("risk_level") if isinstance(hallucination, Mapping) else None
    return level if isinstance(level, str) else None


def issues_of(critique: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the issues in a critique that are mappings."""
    issues = critique.get("issues")
    return [one for one in issues if isinstance(one, Mapping)] if isinstance(issues, list) else []
