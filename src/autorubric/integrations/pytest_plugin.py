"""The pytest plugin: options, the `rubric` marker, the `rubric_grader` fixture and test outcomes.

Every pytest run in the environment loads this module, so it imports only lightweight modules of the library.
Functions that only grading tests need import the modules that grade.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
    from autorubric.grading.grader import CriterionGrader


_MARKER = "rubric(min_score, max_lost=0.05, repeats=1, min_pass_rate=1.0): grades texts with assert_rubric"
_SETTINGS = (
    ("api_base", "URL", "base URL of the models' API"),
    ("api_key_env", "NAME", "environment variable that contains the API key"),
    ("cache_dir", "DIR", "folder for cached model responses"),
)
_ARGUMENTS: Final = ("min_score", "max_lost", "repeats", "min_pass_rate")
_DEFAULT: Final = "lexical"
_PREFIX: Final = "rubric_"
_SHOWN_FAILURES: Final = 3
_PANEL: pytest.StashKey[PytestPanel] = pytest.StashKey()


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestPanel:
    """The grader of a pytest run."""

    own: CriterionGrader
    named: tuple[str, ...]  # the names of its judges, as passed by the user
    has_leave: bool  # whether models may be called, because the command line names a model
    is_default: bool  # whether no judge was named, so that the default judge is used

    def grader(self) -> CriterionGrader:
        """Return the grader; skip the test if calls to models are disabled."""
        self.demand_leave(self.own)
        return self.own

    def demand_leave(self, grader: Grader) -> None:
        """Skip the test if a grader calls models and the command line does not permit this."""
        if grader.models and not self.has_leave:
            models = ", ".join(dict.fromkeys(model.model for model in grader.models))
            pytest.skip(f"calls to {models} may cost money; pass --rubric-judge MODEL to allow them")

    def close(self) -> None:
        """Close the grader's connections and files."""
        from autorubric.support.concurrency import run_sync

        run_sync(self.own.aclose())


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
        _check_marker(item, marker)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run the body of a test as often as specified by its `rubric` marker."""
    test = current_test()
    if test is None or test.repeating or test.marked.get("repeats", 1) == 1:
        return None
    test.repeating = True
    _repeat(pyfuncitem, test)
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
    is_unjudged = report.failed and call.excinfo is not None and _is_judge_error(call.excinfo.value)
    if test.reports:
        figures = _properties(test, None if is_unjudged or report.skipped else report.passed)
        item.user_properties += figures
        report.user_properties += figures
    if is_unjudged:
        # JUnit files list failed reports of the call as failures, even if `pytest_report_teststatus` differs.
        report.when = "setup"
    return report


def _is_judge_error(error: BaseException) -> bool:
    errors = sys.modules.get("autorubric.errors")
    return errors is not None and isinstance(error, errors.JudgeError)


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
        config.stash[_PANEL] = _panel_of(config)
    return config.stash[_PANEL]


def _panel_of(config: pytest.Config) -> PytestPanel:
    """Create the grader that is specified on the command line or, by default, in the ini file."""
    from autorubric.grading.grader import CriterionGrader
    from autorubric.judges.panel import named_judges

    given: list[str] | None = config.getoption("--rubric-judge")
    named = (config.getini("rubric_judge") if given is None else given) or [_DEFAULT]
    settings = {
        name: config.getoption(f"--rubric-{name.replace('_', '-')}")
        or config.getini(f"rubric_{name}")
        or None
        for name in ("api_base", "api_key_env", "cache_dir")
    }
    cache_dir = settings["cache_dir"]
    try:
        judges = named_judges(
            named,
            api_base=settings["api_base"],
            api_key_env=settings["api_key_env"],
            cache_dir=Path(config.rootpath, cache_dir) if cache_dir else None,
            option="rubric_judge" if given is None else "--rubric-judge",
        )
        own = CriterionGrader(judges=judges)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    return PytestPanel(
        own=own,
        named=tuple(named),
        has_leave=given is not None and bool(own.models),
        is_default=not given and not config.getini("rubric_judge"),
    )


def _check_marker(item: pytest.Item, marker: pytest.Mark) -> None:
    """Check the arguments of the marker."""
    from autorubric.errors import ArgumentError
    from autorubric.support.objects import is_number, is_whole

    where = f"@pytest.mark.rubric of {item.name}"
    if marker.args or set(marker.kwargs) - set(_ARGUMENTS):
        given = [*map(repr, marker.args), *(set(marker.kwargs) - set(_ARGUMENTS))]
        raise ArgumentError(
            f"{where}: unknown arguments: {', '.join(given)}. Allowed: {', '.join(_ARGUMENTS)}"
        )
    repeats, rate = marker.kwargs.get("repeats", 1), marker.kwargs.get("min_pass_rate", 1.0)
    if not is_whole(repeats) or repeats < 1:
        raise ArgumentError(f"{where}: repeats must be a positive integer; got {repeats!r}")
    if not is_number(rate) or not 0.0 < rate <= 1.0:
        raise ArgumentError(f"{where}: min_pass_rate must be greater than 0 and at most 1; got {rate!r}")
    if repeats > 1 and _is_unittest(item):
        raise ArgumentError(
            f"{where}: repeats={repeats} is not supported for unittest.TestCase; use a test function"
        )


def _is_unittest(item: pytest.Item) -> bool:
    import unittest

    cls = item.cls if isinstance(item, pytest.Function) else None
    return cls is not None and issubclass(cls, unittest.TestCase)


def _repeat(function: pytest.Function, test: TestInProgress) -> None:
    """Run the body of a test as often as specified by its marker; all repeats share the same fixtures."""
    repeats: int = test.marked["repeats"]
    rate: float = test.marked.get("min_pass_rate", 1.0)
    failures: list[tuple[int, str]] = []
    for attempt in range(repeats):
        test.attempt = attempt
        try:
            function.ihook.pytest_pyfunc_call(pyfuncitem=function)
        except (AssertionError, pytest.fail.Exception) as failure:
            failures.append((attempt, str(failure)))
    test.passed = (repeats - len(failures), repeats)
    # Rounding of `rate * repeats` must not require an additional pass.
    wanted = ceil(rate * repeats - 1e-9)
    if repeats - len(failures) < wanted:
        line = pass_line(*test.passed, *_interval(*test.passed))
        told = [f"{line}; at least {wanted} of {repeats} must pass"]
        told += [f"repeat {attempt + 1}: {text}" for attempt, text in failures[:_SHOWN_FAILURES]]
        if len(failures) > _SHOWN_FAILURES:
            told.append(f"… and {len(failures) - _SHOWN_FAILURES} more failures")
        pytest.fail("\n".join(told), pytrace=False)


def _properties(test: TestInProgress, passed: bool | None) -> list[tuple[str, object]]:
    """Return the properties of a grading test, for JUnit files and other plugins."""
    from autorubric.integrations.assertions import one_line

    scores = [report.score for report in test.reports if report.score is not None]
    costs = [one.completion_cost for one in test.reports if one.completion_cost is not None]
    times, repeats = test.passed or (int(bool(passed)), 1)
    found: dict[str, object] = {
        "score": round(sum(scores) / len(scores), 6) if scores else None,
        "pass_rate": None if passed is None else round(times / repeats, 6),
        "judge": ", ".join(one_line(judge, 80) for judge in test.judges),
        "cost": round(sum(costs), 9) if costs else None,
    }
    if test.passed is not None:
        low, high = _interval(times, repeats)
        found |= {"repeats": repeats, "pass_rate_low": round(low, 6), "pass_rate_high": round(high, 6)}
    return [(_PREFIX + name, value) for name, value in found.items() if value is not None]


def _interval(passed: int, repeats: int) -> tuple[float, float]:
    # Imported late: only repeated tests need numpy and scipy.
    from autorubric.metrics.core.intervals import wilson

    rate = wilson(passed, repeats)
    return float(rate.low or 0.0), float(1.0 if rate.high is None else rate.high)
