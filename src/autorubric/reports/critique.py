"""A critique as an HTML section and in the terminal: scores as bars, issues by criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from markupsafe import Markup

from autorubric.reports.templates import page, render

_MOST: Final[dict[str, float]] = {"0-10": 10.0, "0-100": 100.0}
_SHARES: Final = {"A": 1.0, "B": 0.8, "C": 0.6, "D": 0.4, "F": 0.1, "pass": 1.0, "fail": 0.1}
_SEVERITIES: Final = ("critical", "high", "medium", "low")


class CritiqueView(Protocol):
    """Interface for a critique that can be rendered, such as a `CritiqueResponse`.

    Attributes:
        ok: Whether the critique has the requested content.
        provider: Name of the evaluator.
        overall_score: Overall score on the scale.
        scoring_scale: The scoring scale.
        criteria_scores: Score of each criterion, with `criterion`, `score`, `label` and `explanation`.
        issues: Issues, each with `criterion`, `severity`, `location`, `description` and `suggestion`.
        summary: Summary of the critique in one or two sentences.
        suggestions: Suggested next steps.
        notes: Parts of the critic's reply that were discarded, with reasons.
        error: Error message; None if there was no error.
    """

    @property
    def ok(self) -> bool: ...
    @property
    def provider(self) -> str | None: ...
    @property
    def overall_score(self) -> Any: ...
    @property
    def scoring_scale(self) -> str: ...
    @property
    def criteria_scores(self) -> Sequence[Any]: ...
    @property
    def issues(self) -> Sequence[Any]: ...
    @property
    def summary(self) -> str: ...
    @property
    def suggestions(self) -> Sequence[str]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def error(self) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueGroup:
    """One criterion of a critique; score, label and share are None if it could not be assessed."""

    name: str
    score: str | None  # In words, such as `8 / 10`.
    label: str | None  # The score as a single word.
    share: float | None  # Filled fraction of the bar, in [0, 1].
    explanation: str | None
    issues: tuple[Any, ...]  # The most severe first.


def critique_groups(response: CritiqueView) -> list[CritiqueGroup]:
    """Return the criteria from worst to best score, then those without a score, which issues may name."""
    scores = {one.criterion: one for one in response.criteria_scores}
    names = dict.fromkeys([*scores, *(one.criterion for one in response.issues)])
    groups = []
    for name in names:
        found = scores.get(name)
        score = found.score if found is not None else None
        issues = (one for one in response.issues if one.criterion == name)
        groups.append(
            CritiqueGroup(
                name=name,
                score=score_in_words(score, response.scoring_scale),
                label=found.label if found is not None else None,
                share=score_share(score, response.scoring_scale),
                explanation=found.explanation if found is not None else None,
                issues=tuple(sorted(issues, key=lambda one: _SEVERITIES.index(one.severity))),
            )
        )
    return sorted(groups, key=lambda one: 2.0 if one.share is None else one.share)


def score_in_words(score: Any, scale: str) -> str | None:
    """Format a score with the maximum of its scale; None if there is no score."""
    if score is None or isinstance(score, str):
        return score
    return f"{score:g} / {_MOST[scale]:g}"


def score_share(score: Any, scale: str) -> float | None:
    """Return the fraction of a bar that a score fills, in [0, 1]; letters and pass/fail use their rank."""
    if score is None:
        return None
    return _SHARES[score] if isinstance(score, str) else max(0.0, min(1.0, score / _MOST[scale]))


def critique_section(response: CritiqueView) -> Markup:
    """Render a critique as an HTML section for a page that includes the report styles.

    Scores are shown as bars; letter and pass/fail scores fill the bar in proportion to their rank. Criteria
    that could not be assessed have a note instead of a bar. Issues are listed under their criterion, with the
    most severe issue at the top. All texts in the critique are escaped.
    """
    made = render(
        "critique.html",
        response=response,
        overall=score_in_words(response.overall_score, response.scoring_scale),
        share=score_share(response.overall_score, response.scoring_scale),
        groups=critique_groups(response),
    )
    return Markup(made)


def critique_page(response: CritiqueView) -> str:
    """Render a critique as a static page without scripts or external resources."""
    return page(
        title="Critique",
        scripts=(),
        data={},
        section=critique_section(response),
        template="critique_page.html",
    )
