"""Reports of runs made once a session, and Chromium to open them in."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autorubric import EvalResult
from tests.reports.runs import graded, kinds_dataset, long_dataset, panel

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


def chromium() -> str:
    """Where Chromium is; a skip with the reason, or a failure where a browser is demanded."""
    required = os.environ.get("AUTORUBRIC_REQUIRE_BROWSER") == "1"
    try:
        import playwright.sync_api  # noqa: F401 - whether it is there
    except ImportError:
        why = "playwright is not installed; it comes with autorubric[dev]"
    else:
        names = ("chromium", "chromium-browser", "google-chrome", "chrome")
        found = next(filter(None, map(shutil.which, names)), None)
        if found is not None:
            return found
        why = f"none of {', '.join(names)} is on the path; install Debian's chromium"
    return pytest.fail(why) if required else pytest.skip(why)


@dataclass
class Browser:
    """Chromium in a thread of its own: its event loop would stand in the way of other tests' loops.

    Attributes:
        screenshots: Where pictures are kept.
    """

    screenshots: Path
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))
    _started: Any = None
    _browser: Any = None

    def start(self, executable: str) -> None:
        """Opens the browser."""

        def launch() -> None:
            from playwright.sync_api import sync_playwright

            self._started = sync_playwright().start()
            self._browser = self._started.chromium.launch(executable_path=executable, args=list(ARGUMENTS))

        self._thread.submit(launch).result()

    def stop(self) -> None:
        """Closes the browser."""

        def close() -> None:
            self._browser.close()
            self._started.stop()

        self._thread.submit(close).result()
        self._thread.shutdown()

    def look(self, url: str, task: Callable[[Any], None], **options: Any) -> None:
        """Opens a page, has it looked at, and checks that it was quiet: no error, request or violation.

        With `served` the page may ask the server that it comes from; `logged` is what its console may have.
        """
        self._thread.submit(self._look, url, task, options).result()

    def _look(self, url: str, task: Callable[[Any], None], options: dict[str, Any]) -> None:
        width, height = options.pop("size", (1280, 860))
        served, logged = options.pop("served", False), options.pop("logged", ())
        context = self._browser.new_context(viewport={"width": width, "height": height}, **options)
        try:
            context.add_init_script(WATCH)
            page = context.new_page()
            page.set_default_timeout(30_000)
            faults: list[str] = []
            asked: list[str] = []
            page.on(
                "console",
                lambda said: (
                    faults.append(said.text)
                    if said.type != "log" and not any(one in said.text for one in logged)
                    else None
                ),
            )
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto(url)
            page.wait_for_selector("main > *, #critique:not([hidden])", state="attached")
            task(page)
            assert faults == []
            assert page.evaluate("window.violations") == []
            file = url.split("#")[0]
            foreign = [one for one in asked if one.split("#")[0] != file and not one.startswith("data:")]
            assert [one for one in foreign if not (served and one.startswith(file))] == []
        finally:
            context.close()


def on_page(
    address: str = "#/", report: str = "kinds", **options: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a test of a function of an opened page.

    Args:
        address: What follows the file's name.
        report: Which of `reports` is opened.
        options: `size`, and what a browser context takes.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(browser: Browser, reports: Reports) -> None:
            browser.look(reports.url(report) + address, test, **options)

        # pytest reads the arguments of what is wrapped.
        del run.__wrapped__
        return run

    return decorate


@dataclass
class Reports:
    """Runs and the reports on them, each made when first asked for.

    Attributes:
        folder: Where they lie.
        runs: The runs by name.
    """

    folder: Path
    runs: dict[str, EvalResult] = field(default_factory=dict)

    def run(self, name: str) -> EvalResult:
        """A run: `kinds`, its `baseline`, `unlabelled`, or `long`."""
        if name not in self.runs:
            self.runs[name] = self._make(name)
        return self.runs[name]

    def _make(self, name: str) -> EvalResult:
        match name:
            case "kinds":
                return graded(self.folder, kinds_dataset(), panel(), "parcels-2")
            case "baseline":
                return graded(self.folder, kinds_dataset(), panel(0.6), "parcels-1")
            case "unlabelled":
                bare = long_dataset(3)
                items = [one.model_copy(update={"ground_truth": None}) for one in bare.items]
                return graded(self.folder, bare.with_items(items), panel()[:1], "bare")
            case "long":
                return graded(self.folder, long_dataset(160), panel()[:2], "long")
        raise AssertionError(name)

    def url(self, name: str) -> str:
        """The address of a report."""
        path = self.folder / f"{name}.html"
        if not path.exists():
            baseline = self.run("baseline") if name == "kinds" else None
            self.run(name).to_html(path, baseline=baseline)
        return path.as_uri()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """Runs and their reports."""
    return Reports(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, one a session."""
    executable = chromium()
    kept = os.environ.get("AUTORUBRIC_SCREENSHOTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    opened = Browser(folder)
    opened.start(executable)
    yield opened
    opened.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests in a browser as slow."""
    for item in items:
        if {"browser", "chromium"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.slow)
