"""The response of the tool `critique.evaluate`, with its scales, issues and suggestions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, assert_never, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from autorubric.apps.tool.request import ScoringScale
from autorubric.support.objects import Json, is_whole
from autorubric.support.reading_errors import short_repr

PASSES_FROM: Final = 0.7

_LABELS: Final[tuple[tuple[float, ToolLabel], ...]] = ((0.9, "Excellent"), (0.7, "Good"), (0.5, "Fair"))
_LETTERS: Final = ((0.9, "A"), (0.8, "B"), (0.7, "C"), (0.6, "D"))
_BOUNDS: Final = frozenset({PASSES_FROM, *(least for least, _ in (*_LABELS, *_LETTERS))})
_DIGITS: Final = 3
"""Number of decimals to which values in [0, 1] are reported."""
_NOISE: Final = 9
"""Number of significant decimals of values in [0, 1], because rounding errors may turn 0.7 into 0.6999…."""


def format_score(value: float | None, scale: ScoringScale) -> ToolScore:
    """Convert a value in [0, 1] to a scale; None if there is no value."""
    if value is None:
        return None
    value = round(value, _NOISE)
    match scale:
        case "0-10":
            return _plain(_round_below(value) * 10)
        case "0-100":
            return _plain(_round_below(value) * 100)
        case "letter":
            return next((letter for least, letter in _LETTERS if value >= least), "F")
        case "pass-fail":
            return "pass" if value >= PASSES_FROM else "fail"
        case _:
            assert_never(scale)


def label_text(value: float | None) -> ToolLabel | None:
    """Return the label for a value in [0, 1], from Excellent to Poor; None if there is no value."""
    if value is None:
        return None
    return next((label for least, label in _LABELS if round(value, _NOISE) >= least), "Poor")


def _round_below(value: float) -> float:
    """Round a value for reporting, but not up to a threshold that the value does not reach."""
    rounded = round(value, _DIGITS)
    if any(value < bound <= rounded for bound in _BOUNDS):
        return math.floor(value * 10**_DIGITS) / 10**_DIGITS
    return rounded


def _plain(number: float) -> int | float:
    number = round(number, _DIGITS)
    return int(number) if number.is_integer() else number


Severity = Literal["low", "medium", "high", "critical"]
ToolLabel = Literal["Excellent", "Good", "Fair", "Poor"]
ToolScore: TypeAlias = int | float | str | None
"""A number, `"A"` to `"F"`, or `"pass"` or `"fail"`, depending on the scale; None if not assessed."""


class _SetFieldsOnly(BaseModel):
    """The base class of models whose JSON contains only the fields that were set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_serializer(mode="wrap")
    def _serialize_set_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        return {name: value for name, value in dumped.items() if name in self.model_fields_set}


class CriterionScore(_SetFieldsOnly):
    """The score for one criterion. Its JSON contains only the keys that were set.

    Attributes:
        criterion: Name of the criterion.
        score: The score on the requested scale, where higher is better, even for penalties. None if the
            criterion could not be assessed.
        label: The score in words; None if the criterion could not be assessed.
        explanation: The critic's reason for the score, or why there is no score; None if no reason is
            available or the mode is `score_only`.
    """

    criterion: str
    score: ToolScore
    label: ToolLabel | None
    explanation: str | None = None


class Issue(BaseModel):
    """An issue with the content.

    Attributes:
        criterion: Name of the criterion that the issue relates to.
        severity: Severity of the issue.
        location: Location in the content, as written by the critic; None if not specified.
        description: Description of the problem.
        suggestion: A suggested fix; None if the critic did not suggest one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    criterion: str
    severity: Severity
    location: str | None = None
    description: str
    suggestion: str | None = None


class CritiqueResponse(_SetFieldsOnly):
    """A critique, the result of a dry run, or an error. Its JSON contains only the keys that were set.

    Attributes:
        ok: Whether the request succeeded.
        provider: Name of the provider that replied or, in a dry run, would be called; None on error.
        overall_score: Weighted mean of the criteria on the requested scale, minus deductions for penalties;
            None if no criterion could be assessed.
        scoring_scale: The scale of the scores.
        criteria_scores: One score per criterion, in request order.
        issues: The issues found. Set in `detailed` mode.
        summary: The critique in one or two sentences. Not set in `score_only` mode.
        suggestions: Suggested next steps. Set in `detailed` mode.
        evaluation_time_ms: Duration of the evaluation in milliseconds.
        fallback_from: Error messages of providers that were tried first and failed, by provider name.
        notes: Parts of the critic's reply that were omitted, with the reasons. Set if there are any.
        error: The error message. Set if the request failed.
        dry_run: Whether this is the result of a dry run, for which no evaluator was called.
        criteria: CriterionNames of the criteria to evaluate. Set in a dry run.
        prompt_size: Size of the prompt in UTF-8 bytes. Set in a dry run.
    """

    ok: bool
    provider: str | None = None
    overall_score: ToolScore = None
    scoring_scale: ScoringScale = "0-10"
    criteria_scores: tuple[CriterionScore, ...] = ()
    issues: tuple[Issue, ...] = ()
    summary: str = ""
    suggestions: tuple[str, ...] = ()
    evaluation_time_ms: int = 0
    fallback_from: Mapping[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: str | None = None
    dry_run: bool = False
    criteria: tuple[str, ...] = ()
    prompt_size: int | None = None

    @classmethod
    def of_error(cls, error: str) -> CritiqueResponse:
        """Create a response that reports an error."""
        return cls(ok=False, error=error, provider=None)

    def to_dict(self) -> dict[str, Json]:
        """Return the response as JSON-compatible data, as sent to clients."""
        return self.model_dump(mode="json")

    def one_line(self) -> str:
        """Return a one-line summary, such as `✓ 8.5/10 · 3 issues · 2 suggestions`."""
        if not self.ok:
            return f"✗ {self.error}"
        if self.dry_run:
            return f"dry run · {self.provider} · {_count_text(len(self.criteria), 'criterion', 'criteria')}"
        parts = [_score_text(self.overall_score, self.scoring_scale)]
        for name, count in (("issue", len(self.issues)), ("suggestion", len(self.suggestions))):
            if f"{name}s" in self.model_fields_set:
                parts.append(_count_text(count, name, f"{name}s"))
        open_ones = sum(one.score is None for one in self.criteria_scores)
        return " · ".join([*parts, *([f"{open_ones} not assessed"] if open_ones else [])])


def _count_text(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _score_text(score: ToolScore, scale: ScoringScale) -> str:
    if score is None:
        return "? no score"
    if not isinstance(score, str):
        most = 10 if scale == "0-10" else 100
        return f"{'✓' if score >= 0.7 * most else '✗'} {score:g}/{most}"
    return f"{'✓' if score in ('A', 'B', 'C', 'pass') else '✗'} {score}"


SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""Severities in ascending order."""

_SYNONYMS: Final[Mapping[str, Severity]] = {
    **{one: one for one in SEVERITIES},
    **dict.fromkeys(("minor", "trivial", "cosmetic"), "low"),
    "moderate": "medium",
    **dict.fromkeys(("major", "severe", "serious"), "high"),
    **dict.fromkeys(("blocker", "fatal"), "critical"),
}
_LONGEST_LOCATION: Final = 500
_NOT_IN_NAMES: Final = re.compile(r"[\W_]+")


class CriterionNames:
    """The names of the requested criteria, matched regardless of case, whitespace and punctuation."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._by_key: dict[str, str | None] = {}
        for name in self.names:
            key = _key(name)
            self._by_key[key] = None if key in self._by_key else name

    def find(self, given: Json) -> str | None:
        """Return the name that a spelling refers to; None if no name matches or several names match."""
        if not isinstance(given, str):
            return None
        return given if given in self.names else self._by_key.get(_key(given))


def read_issues(given: Json, names: CriterionNames, notes: list[str]) -> tuple[Issue, ...]:
    """Parse the issues of a reply and return them in order."""
    entries = _as_list([given] if isinstance(given, Mapping) else given, "issues", notes)
    return tuple(_issues(entries, names, notes))


def read_suggestions(given: Json, notes: list[str]) -> tuple[str, ...]:
    """Parse the suggestions of a reply and append a note to `notes` for each omitted suggestion."""
    texts = []
    entries = _as_list([given] if isinstance(given, str) else given, "suggestions", notes)
    for number, one in enumerate(entries, 1):
        if isinstance(one, str):
            texts.append(one.strip())
        else:
            notes.append(f"suggestion {number} omitted: {short_repr(one)} is not a string")
    return tuple(filter(None, texts))


def plain_text(given: Json) -> str:
    """Return a string without surrounding whitespace, or an empty string for other values."""
    return given.strip() if isinstance(given, str) else ""


def most_severe(issues: Sequence[Issue], most: int) -> tuple[Issue, ...]:
    """Return at most `most` issues per criterion, keeping the most severe."""
    ranked = sorted(range(len(issues)), key=lambda at: -SEVERITIES.index(issues[at].severity))
    kept: set[int] = set()
    counts: dict[str, int] = {}
    for at in ranked:
        name = issues[at].criterion
        if counts.get(name, 0) < most:
            counts[name] = counts.get(name, 0) + 1
            kept.add(at)
    return tuple(issue for at, issue in enumerate(issues) if at in kept)


def _issues(entries: Sequence[Json], names: CriterionNames, notes: list[str]) -> Iterator[Issue]:
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping):
            notes.append(f"issue {number} omitted: {short_repr(entry)} is not an object")
            continue
        description = plain_text(entry.get("description"))
        severity = _SYNONYMS.get(plain_text(entry.get("severity")).casefold())
        named, place = entry.get("criterion"), entry.get("location")
        name = names.names[0] if named is None and len(names.names) == 1 else names.find(named)
        if not description:
            notes.append(f"issue {number} omitted: the description is missing")
        elif name is None:
            why = f"criterion {short_repr(named)} was not requested"
            notes.append(f"issue {number} omitted: {why}: {description}")
        elif severity is None:
            why = f"severity {short_repr(entry.get('severity'))} is not one of {', '.join(SEVERITIES)}"
            notes.append(f"issue {number} ({name}) omitted: {why}: {description}")
        else:
            line = f"line {place}" if is_whole(place) else None
            yield Issue(
                criterion=name,
                severity=severity,
                location=line or plain_text(place)[:_LONGEST_LOCATION] or None,
                description=description,
                suggestion=plain_text(entry.get("suggestion")) or None,
            )


def _as_list(given: Json, name: str, notes: list[str]) -> Sequence[Json]:
    if given is None:
        return ()
    if isinstance(given, list | tuple):
        return given
    notes.append(f"{name} omitted: {short_repr(given)} is not a list")
    return ()


def _key(name: str) -> str:
    return _NOT_IN_NAMES.sub("", name).casefold()
