"""The answer of the tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from autorubric.tool._request import ScoringScale
from autorubric.values import Json

Severity = Literal["low", "medium", "high", "critical"]
Label = Literal["Excellent", "Good", "Fair", "Poor"]
Score: TypeAlias = int | float | str | None
"""A number, `"A"` to `"F"`, `"pass"` or `"fail"`, by the scale; None if it could not be assessed."""


class CriterionScore(BaseModel):
    """The score of one criterion; its JSON contains only the keys that were set.

    Attributes:
        criterion: The criterion's name.
        score: The score on the requested scale; for a penalty, how free of it the content is. None if it
            could not be assessed.
        label: The score as a word; None if it could not be assessed.
        explanation: The critic's reason for the score, or for its absence; None if the critic gave no reason,
            and in `score_only` mode.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    criterion: str
    score: Score
    label: Label | None
    explanation: str | None = None

    @model_serializer(mode="wrap")
    def _only_what_was_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _set_fields(self, handler)


class Issue(BaseModel):
    """An issue with the content.

    Attributes:
        criterion: The criterion that it counts against.
        severity: Its severity.
        location: Its location, in the critic's words; None if it has no particular location.
        description: The problem.
        suggestion: A suggested fix; None if there is none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    criterion: str
    severity: Severity
    location: str | None = None
    description: str
    suggestion: str | None = None


class CritiqueResponse(BaseModel):
    """A critique, the result of a dry run, or an error; its JSON contains only the keys that were set.

    Attributes:
        ok: Whether the request succeeded.
        provider: The evaluator, or the one that a dry run would use; None in an error.
        overall_score: Weighted mean of the criteria on the scale, minus the deductions of the penalties that
            apply; None if none could be assessed.
        scoring_scale: The scale.
        criteria_scores: A score for each criterion, in the requested order.
        issues: The issues found; in `detailed` mode.
        summary: The critique in a sentence or two; not in `score_only` mode.
        suggestions: Suggested next steps; in `detailed` mode.
        evaluation_time_ms: Duration in milliseconds.
        fallback_from: Providers that were tried before and failed, each with the reason; if any.
        notes: Parts of the critic's reply that were dropped, each with the reason; if any.
        error: The error message; in an error.
        dry_run: Whether no evaluator was asked; in a dry run.
        criteria: Names of the criteria to evaluate; in a dry run.
        prompt_size: UTF-8 bytes of the prompt; in a dry run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ok: bool
    provider: str | None = None
    overall_score: Score = None
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

    @model_serializer(mode="wrap")
    def _only_what_was_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _set_fields(self, handler)

    @classmethod
    def failed(cls, error: str) -> CritiqueResponse:
        """Return an answer that reports an error."""
        return cls(ok=False, error=error, provider=None)

    def to_dict(self) -> dict[str, Json]:
        """Return the answer as JSON data, as sent to clients."""
        return self.model_dump(mode="json")

    def one_line(self) -> str:
        """Return the answer on one line, such as `✓ 8.5/10 · 3 issues · 2 suggestions`."""
        if not self.ok:
            return f"✗ {self.error}"
        if self.dry_run:
            return f"dry run · {self.provider} · {_counted(len(self.criteria), 'criterion', 'criteria')}"
        parts = [_shown(self.overall_score, self.scoring_scale)]
        for name, count in (("issue", len(self.issues)), ("suggestion", len(self.suggestions))):
            if f"{name}s" in self.model_fields_set:
                parts.append(_counted(count, name, f"{name}s"))
        open_ones = sum(one.score is None for one in self.criteria_scores)
        return " · ".join([*parts, *([f"{open_ones} not assessed"] if open_ones else [])])


def _set_fields(made: BaseModel, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
    dumped: dict[str, Any] = handler(made)
    return {name: value for name, value in dumped.items() if name in made.model_fields_set}


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _shown(score: Score, scale: ScoringScale) -> str:
    if score is None:
        return "? no score"
    if not isinstance(score, str):
        most = 10 if scale == "0-10" else 100
        return f"{'✓' if score >= 0.7 * most else '✗'} {score:g}/{most}"
    return f"{'✓' if score in ('A', 'B', 'C', 'pass') else '✗'} {score}"
