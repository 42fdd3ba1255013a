"""A critique as a section of a page: scores as bars, issues by criterion with their severity."""

from __future__ import annotations

from markupsafe import Markup

from autorubric.report._critique_groups import (
    CritiqueView,
    critique_groups,
    score_in_words,
    score_share,
)
from autorubric.report._templates import environment, page


def critique_section(response: CritiqueView) -> Markup:
    """A critique as the HTML of one section, to stand in a page with the styles of a report.

    Scores are bars, of which letters and pass or fail fill a part in proportion to their rank; a criterion
    that could not be assessed has none and says so. Issues stand under their criterion, the gravest first.
    Every text of the critique is escaped.
    """
    made = (
        environment()
        .get_template("critique.html")
        .render(
            response=response,
            overall=score_in_words(response.overall_score, response.scoring_scale),
            share=score_share(response.overall_score, response.scoring_scale),
            groups=critique_groups(response),
        )
    )
    return Markup(made)


def critique_page(response: CritiqueView) -> str:
    """A critique as a page of its own that loads nothing and runs nothing."""
    return page(
        title="Critique",
        scripts=(),
        data={},
        section=critique_section(response),
        template="critique_page.html",
    )
