"""What a critique shows, on a page and in a terminal alike: shares of bars, issues under their criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

_MOST: Final[dict[str, float]] = {"0-10": 10.0, "0-100": 100.0}
_SHARES: Final[dict[str, float]] = {
    "A": 1.0,
    "B": 0.8,
    "C": 0.6,
    "D": 0.4,
    "F": 0.1,
    "pass": 1.0,
    "fail": 0.1,
}
_SEVERITIES: Final = ("critical", "high", "medium", "low")


class CritiqueView(Protocol):
    """What a section needs of a critique; a `CritiqueResponse` is one."""

    @property
    def ok(self) -> bool:
        """Whether there is what was asked for."""
        ...

    @property
    def provider(self) -> str | None:
        """Who evaluated."""
        ...

    @property
    def overall_score(self) -> Any:
        """The score of all criteria together, on the scale."""
        ...

    @property
    def scoring_scale(self) -> str:
        """The scale."""
        ...

    @property
    def criteria_scores(self) -> Sequence[Any]:
        """`criterion`, `score`, `label` and `explanation` of each criterion."""
        ...

    @property
    def issues(self) -> Sequence[Any]:
        """`criterion`, `severity`, `location`, `description` and `suggestion` of each issue."""
        ...

    @property
    def summary(self) -> str:
        """The critique in a sentence or two."""
        ...

    @property
    def suggestions(self) -> Sequence[str]:
        """What to do next."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What was left out of the critic's reply, and why."""
        ...

    @property
    def error(self) -> str | None:
        """What went wrong."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueGroup:
    """A criterion of a critique.

    Attributes:
        name: Its name.
        score: Its score in words, as `8 / 10`; None where it could not be assessed.
        label: The score in a word; None likewise.
        share: The part of a bar that the score fills, on [0, 1]; None likewise.
        explanation: Why it has this score, or none; None where the critic gave no reason.
        issues: What counts against it, the gravest first.
    """

    name: str
    score: str | None
    label: str | None
    share: float | None
    explanation: str | None
    issues: tuple[Any, ...]


def critique_groups(response: CritiqueView) -> list[CritiqueGroup]:
    """The criteria from the worst score to the best; equal scores in the order asked, those without one last.

    A criterion that only an issue names follows those.
    """
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
    """A score with the most that there is on its scale; None where there is none."""
    if score is None or isinstance(score, str):
        return score
    return f"{score:g} / {_MOST[scale]:g}"


def score_share(score: Any, scale: str) -> float | None:
    """The part of a bar that a score fills, on [0, 1]; letters, pass and fail by their rank."""
    if score is None:
        return None
    return _SHARES[score] if isinstance(score, str) else max(0.0, min(1.0, score / _MOST[scale]))
