"""A headless Chromium, and a dataset with a criterion of every kind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autorubric import Rubric, RubricDataset
from autorubric.reports import write_annotation_page

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
TIMEOUT = 60_000

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"

RUBRIC = Rubric(
    [
        {"name": "clear", "requirement": "It is clear."},
        {
            "name": "tone",
            "requirement": "Its tone.",
            "options": [
                {"label": "rude", "value": 0.0},
                {"label": "kind", "value": 1.0},
                {"label": "none", "na": True},
            ],
        },
        {
            "name": "depth",
            "type": "likert",
            "scale": [{"val": 1, "description": "shallow"}, {"val": 5, "description": "deep"}],
        },
        {
            "name": "share",
            "type": "numerical_rating",
            "requirement": "What share is right.",
            "max_value": 100,
        },
        {"name": "parts", "type": "checklist", "items": {"date": "A date.", "place": "A place."}},
        {
            "name": "craft",
            "type": "analytic_rubric",
            "dimensions": {
                "style": {"description": "Style.", "min_score": 1, "max_score": 3},
                "order": {"description": "Order.", "min_score": 0, "max_score": 2},
            },
        },
        {"name": "feedback", "type": "narrative", "requirement": "What to do better."},
        {"name": "both", "type": "narrative", "sections": {"good": "What is good.", "bad": "What is not."}},
    ],
    guidelines="Read twice. <b>Judge once.</b>",
)
COMPARING = Rubric(
    [
        {"name": "better", "type": "comparative", "requirement": "Which is better?"},
        {"name": "margin", "type": "comparative", "margin": 2},
        {"name": "order", "type": "comparative", "mode": "ranking"},
        {"name": "best", "type": "comparative", "mode": "best_of"},
    ]
)


def labelled_dataset(n: int = 6) -> RubricDataset:
    """Items with a truth and ratings that the page must not tell, and a comparison at the end."""
    items: list[dict[str, Any]] = [
        {
            "id": f"item {at}",
            "submission": f"Text {at}. {HOSTILE}",
            "prompt": "Write.",
            "ground_truth": {"clear": "UNMET"},
            "ratings": {"secret-rater": {"tone": "rude"}},
            "reasons": {"clear": "secret-reason"},
            "metadata": {"key": "secret-metadata"},
        }
        for at in range(n)
    ]
    items.append(
        {"id": "__proto__", "submission": {"model-x": "First.", "model-y": "Second."}, "rubric": COMPARING}
    )
    return RubricDataset(
        rubric=RUBRIC, items=items, name="Essays & more", reference_submission="A reference."
    )


def _absent(reason: str) -> None:
    if os.environ.get("AUTORUBRIC_REQUIRE_BROWSER") == "1":
        pytest.fail(f"a browser is required here: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser that asks no server for anything.

    Playwright's event loop runs in this thread while the browser is open, and `asyncio.run` refuses to start
    beside it: the browser is closed before another module's tests begin.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _absent("the package playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        _absent("there is no chromium on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
        yield browser
        browser.close()


Opened = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Opened]:
    """Opens the page of a dataset; at the end nothing may have been told to the console or asked for."""
    contexts: list[Any] = []
    told: list[str] = []

    def foreign(address: str) -> list[str]:
        return [] if address.startswith(("file:", "blob:")) else [address]

    def open_page(dataset: RubricDataset | None = None, *, context: Any = None, **options: Any) -> Any:
        path = tmp_path / "page.html"
        write_annotation_page(dataset or labelled_dataset(), path, **options)
        if context is None:
            context = chromium.new_context(accept_downloads=True)
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: told.extend(foreign(request.url)))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert told == []
