"""Rendering of a critique as an HTML section: scores as bars, and issues by criterion and severity."""

from __future__ import annotations

from markupsafe import Markup

from autorubric.report._critique_groups import CritiqueView, critique_groups, score_in_words, score_share
from autorubric.report._templates import environment, page


def critique_section(response: CritiqueView) -> Markup:
    """Render a critique as an HTML section for a page that includes the report styles.

    Scores are shown as bars; letter and pass/fail scores fill the bar in proportion to their rank. Criteria
    that could not be assessed have a note instead of a bar. Issues are listed under their criterion, with the
    most severe issue at the top. All texts in the critique are escaped.
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
    """Render a critique as a static page without scripts or external resources."""
    return page(
        title="Critique",
        scripts=(),
        data={},
        section=critique_section(response),
        template="critique_page.html",
    )
