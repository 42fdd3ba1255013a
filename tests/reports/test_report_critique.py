"""A critique as a section of a page."""

from __future__ import annotations

from typing import Any

from autorubric.apps.tool import CritiqueResponse
from autorubric.reports import critique_page, critique_section
from tests.reports.conftest import Browser, Reports
from tests.reports.runs import HOSTILE

CRITIQUE = CritiqueResponse.model_validate(
    {
        "ok": True,
        "provider": "gpt4",
        "overall_score": 6.4,
        "scoring_scale": "0-10",
        "criteria_scores": [
            {"criterion": "performance", "score": None, "label": None, "explanation": "No figures."},
            {"criterion": "correctness", "score": 8.0, "label": "Good", "explanation": "It adds up."},
            {"criterion": "security", "score": 4.8, "label": "Poor", "explanation": f"Open. {HOSTILE}"},
        ],
        "issues": [
            {"criterion": "security", "severity": "low", "description": "A log holds an address."},
            {
                "criterion": "security",
                "severity": "critical",
                "location": "app.py:12",
                "description": f"A query is put together from input. {HOSTILE}",
                "suggestion": "Use parameters.",
            },
        ],
        "summary": "Right in the main, and open to injection.",
        "suggestions": ["Use parameters.", "Add a test."],
        "notes": ["score left out: criterion 'wit' was not asked for"],
    }
)


def test_issues_are_under_their_criterion_the_gravest_first() -> None:
    """The worst criterion first; issues by severity; what was not assessed is last and has no bar."""
    html = str(critique_section(CRITIQUE))
    places = [
        html.index(words)
        for words in (
            *(">security<", "Open. ", "A query", "A log", ">correctness<", "It adds up."),
            *("could not be assessed", "No figures.", "was not asked for", "Use parameters.</li>"),
        )
    ]
    assert places == sorted(places)
    assert html.count("bar-fill") == 3
    assert 'width="48.0"' in html
    assert "<script" not in html and "<img" not in html
    assert "&lt;script&gt;" in html


def test_letters_and_passes_have_bars() -> None:
    """Scores that are no numbers fill a part by their rank."""
    for scale, scores in (("letter", ("A", "F")), ("pass-fail", ("pass", "fail"))):
        given = [{"criterion": str(at), "score": one, "label": "Good"} for at, one in enumerate(scores)]
        html = str(
            critique_section(
                CritiqueResponse.model_validate(
                    {"ok": True, "overall_score": scores[0], "scoring_scale": scale, "criteria_scores": given}
                )
            )
        )
        assert html.count('width="100.0"') == 2
        assert html.count('width="10.0"') == 1


def test_an_error_is_told() -> None:
    """Where there is no critique, the section says what went wrong."""
    html = str(critique_section(CritiqueResponse.of_error("<b>no provider</b>")))
    assert "There is no critique: &lt;b&gt;no provider" in html


def test_a_critique_is_a_page_and_a_view_of_a_report(
    browser: Browser, reports: Reports, tmp_path: Any
) -> None:
    """It shows alone without a program, and in a report under its own address; hostile texts stay texts."""
    alone, within = tmp_path / "critique.html", tmp_path / "report.html"
    alone.write_text(critique_page(CRITIQUE), encoding="utf-8")
    reports.run("unlabelled").to_html(within, critique=CRITIQUE)

    def look(page: Any) -> None:
        page.get_by_role("heading", name="Critique").wait_for()
        assert page.locator(".severity").all_inner_texts() == ["critical", "low"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("main script, .critique img").count() == 0
        page.screenshot(path=browser.screenshots / f"critique-{page.url.split('/')[-1].split('.')[0]}.png")

    browser.look(alone.as_uri(), look, size=(360, 740))
    browser.look(within.as_uri() + "#/critique", look)
