"""The parts of the pytest plugin that only grading tests need: the grader, repeats and metrics."""

from __future__ import annotations

import unittest
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

import pytest

from autorubric.errors import ArgumentError
from autorubric.grading.base import Grader
from autorubric.grading.grader import CriterionGrader
from autorubric.integrations.assertions import one_line
from autorubric.integrations.test_in_progress import TestInProgress, pass_line
from autorubric.judges.panel import named_judges
from autorubric.support.concurrency import run_sync
from autorubric.support.objects import is_number, is_whole

_ARGUMENTS: Final = ("min_score", "max_lost", "repeats", "min_pass_rate")
_DEFAULT: Final = "lexical"
_PREFIX: Final = "rubric_"
_SHOWN_FAILURES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestPanel:
    """The grader of a pytest run."""

    own: CriterionGrader
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
        run_sync(self.own.aclose())


def panel_of(config: pytest.Config) -> PytestPanel:
    """Create the grader that is specified on the command line or, by default, in the ini file."""
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
        has_leave=given is not None and bool(own.models),
        is_default=not given and not config.getini("rubric_judge"),
    )


def check_marker(item: pytest.Item, marker: pytest.Mark) -> None:
    """Check the arguments of the marker."""
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
    cls = item.cls if isinstance(item, pytest.Function) else None
    if repeats > 1 and cls is not None and issubclass(cls, unittest.TestCase):
        raise ArgumentError(
            f"{where}: repeats={repeats} is not supported for unittest.TestCase; use a test function"
        )


def repeat(function: pytest.Function, test: TestInProgress) -> None:
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


def properties(test: TestInProgress, passed: bool | None) -> list[tuple[str, object]]:
    """Return the properties of a grading test, for JUnit files and other plugins."""
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
