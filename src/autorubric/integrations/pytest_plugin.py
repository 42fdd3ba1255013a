"""The pytest plugin: options, the `rubric` marker, the `rubric_grader` fixture and test outcomes.

Every pytest run in the environment loads this module, so it imports only lightweight modules of the library.
The modules that grade are loaded by the first test that needs them.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from autorubric.integrations.test_in_progress import (
    TestInProgress,
    current_test,
    enter_test,
    leave_test,
    pass_line,
)

if TYPE_CHECKING:
    from autorubric.grading.base import Grader
    from autorubric.integrations.pytest_runs import PytestPanel


_MARKER = "rubric(min_score, max_lost=0.05, repeats=1, min_pass_rate=1.0): grades texts with assert_rubric"
_SETTINGS = (
    ("api_base", "URL", "base URL of the models' API"),
    ("api_key_env", "NAME", "environment variable that contains the API key"),
    ("cache_dir", "DIR", "folder for cached model responses"),
)
_PANEL: pytest.StashKey[PytestPanel] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which can also be set in the ini file but then do not permit calls to models."""
    group = parser.getgroup("autorubric", "grade texts against rubrics")
    group.addoption(
        "--rubric-judge",
        action="append",
        metavar="J",
        help="judge to grade with: a model name, lexical, supervised:TRAIN or recorded:CSV#RATER; also "
        "permits calls to models; repeat the option for a panel (ini: rubric_judge, without the permission)",
    )
    for name, metavar, text in _SETTINGS:
        option = f"rubric_{name}"
        group.addoption(f"--{option.replace('_', '-')}", metavar=metavar, help=f"{text} (ini: {option})")
        parser.addini(option, text, default="")
    parser.addini("rubric_judge", "judges to grade with, one per line", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the `rubric` marker."""
    config.addinivalue_line("markers", _MARKER)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the grader of the pytest run."""
    if _PANEL in config.stash:
        config.stash[_PANEL].close()


@pytest.fixture(scope="session")
def rubric_grader(pytestconfig: pytest.Config) -> Grader:
    """Return the grader set by `--rubric-judge` or the ini option `rubric_judge`; offline by default."""
    return _panel(pytestconfig).grader()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Make the running test available to assertions."""
    marker = item.get_closest_marker("rubric")
    enter_test(TestInProgress(partial(_panel, item.config), dict(marker.kwargs) if marker else {}))
    try:
        return (yield)
    finally:
        leave_test()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Reject a `rubric` marker with invalid arguments."""
    marker = item.get_closest_marker("rubric")
    if marker is not None:
        _runs().check_marker(item, marker)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run the body of a test as often as specified by its `rubric` marker."""
    test = current_test()
    if test is None or test.repeating or test.marked.get("repeats", 1) == 1:
        return None
    test.repeating = True
    _runs().repeat(pyfuncitem, test)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add metrics to the report of a test that graded, and report failures of judges as errors."""
    report = yield
    test = current_test()
    if call.when != "call" or test is None:
        return report
    errors = sys.modules.get("autorubric.errors")
    error = call.excinfo.value if call.excinfo is not None else None
    is_unjudged = report.failed and errors is not None and isinstance(error, errors.JudgeError)
    if test.reports:
        figures = _runs().properties(test, None if is_unjudged or report.skipped else report.passed)
        item.user_properties += figures
        report.user_properties += figures
    if is_unjudged:
        # JUnit files list failed reports of the call as failures, even if `pytest_report_teststatus` differs.
        report.when = "setup"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List each repeated test with its pass rate and mean score."""
    told = [
        (report.nodeid, dict(report.user_properties))
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if any(name == "rubric_repeats" for name, _ in report.user_properties)
    ]
    if told:
        terminalreporter.section("rubric repeats")
        for nodeid, figures in told:
            terminalreporter.line(f"{nodeid}: {_outcome_line(figures)}")


def _outcome_line(figures: dict[str, Any]) -> str:
    repeats = int(figures["rubric_repeats"])
    low, high = (float(figures[f"rubric_pass_rate_{end}"]) for end in ("low", "high"))
    line = pass_line(round(float(figures["rubric_pass_rate"]) * repeats), repeats, low, high)
    score = figures.get("rubric_score")
    return line if score is None else f"{line}; mean score {float(score):.3f}"


def _panel(config: pytest.Config) -> PytestPanel:
    """Return the grader of the pytest run, created on first use."""
    if _PANEL not in config.stash:
        config.stash[_PANEL] = _runs().panel_of(config)
    return config.stash[_PANEL]


@cache
def _runs() -> Any:
    return import_module("autorubric.integrations.pytest_runs")
