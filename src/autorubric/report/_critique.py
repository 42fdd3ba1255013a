"""A critique as a section of a page: scores as bars, issues by criterion with their severity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from markupsafe import Markup

from autorubric.report._templates import environment, page

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
        """`criterion`, `score` and `label` of each criterion."""
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
    def error(self) -> str | None:
        """What went wrong."""
        ...


def critique_section(response: CritiqueView) -> Markup:
    """A critique as the HTML of one section, to stand in a page with the styles of a report.

    Scores are bars, of which letters and pass or fail fill a part in proportion to their rank; a criterion
    that could not be assessed has none and says so. Issues stand under their criterion, the gravest first.
    Every text of the critique is escaped.
    """
    names = list(
        dict.fromkeys(
            [*(one.criterion for one in response.criteria_scores), *(i.criterion for i in response.issues)]
        )
    )
    scores = {one.criterion: one for one in response.criteria_scores}
    groups = [
        {
            "name": name,
            "score": _shown(scores[name].score, response.scoring_scale) if name in scores else None,
            "label": scores[name].label if name in scores else None,
            "share": _share(scores[name].score, response.scoring_scale) if name in scores else None,
            "issues": sorted(
                (one for one in response.issues if one.criterion == name),
                key=lambda one: _SEVERITIES.index(one.severity),
            ),
        }
        for name in names
    ]
    made = (
        environment()
        .get_template("critique.html")
        .render(
            response=response,
            overall=_shown(response.overall_score, response.scoring_scale),
            share=_share(response.overall_score, response.scoring_scale),
            groups=groups,
        )
    )
    return Markup(made)


def _shown(score: Any, scale: str) -> str | None:
    if score is None or isinstance(score, str):
        return score
    return f"{score:g} / {_MOST[scale]:g}"


def _share(score: Any, scale: str) -> float | None:
    """The part of a bar that a score fills, on [0, 1]."""
    if score is None:
        return None
    return _SHARES[score] if isinstance(score, str) else max(0.0, min(1.0, score / _MOST[scale]))


def critique_page(response: CritiqueView) -> str:
    """A critique as a page of its own that loads nothing and runs nothing."""
    return page(
        title="Critique",
        scripts=(),
        data={},
        section=critique_section(response),
        template="critique_page.html",
    )
