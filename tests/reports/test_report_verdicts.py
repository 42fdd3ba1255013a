"""Lost and assumed verdicts in the page of a run, as in its summary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.missing import garble_125, graded, lose_fifty
from tests.reports.conftest import Browser
from tests.servers.fixtures import OpenAIServer


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [lose_fifty, garble_125])
def test_the_page_counts_lost_and_assumed_verdicts(
    scenario: Callable[[OpenAIServer], None], openai_server: OpenAIServer, browser: Browser, tmp_path: Path
) -> None:
    """The overview and the table of judges have the counts of the run, over all cells."""
    scenario(openai_server)
    result = graded(tmp_path, openai_server)
    result.to_html(tmp_path / "report.html")
    counts = result.verdicts

    def look(page: Any) -> None:
        tiles = " ".join(page.locator(".tiles").inner_text().split())
        assert f"{counts.lost} lost, {counts.assumed} assumed of 300 requested" in tiles
        assert f"{counts.answered} answered, 5 abstained" in tiles
        assert "Failures" not in tiles
        assert ("49 of 50 items partly scored" in tiles) == (counts.lost > 0)
        page.evaluate("location.hash = '#/judges'")
        page.get_by_text("Lost and assumed verdicts are counted on all items").wait_for()
        table = " ".join(page.locator("table").first.inner_text().split())
        assert f"{counts.lost} of 300" in table and f"{counts.assumed} of 300" in table

    browser.look((tmp_path / "report.html").as_uri() + "#/", look, size=(1280, 860))
