"""The test that pytest is running, as data shared between the plugin and assertions.

This module is lightweight, because every pytest run loads the plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from autorubric.grading.base import Grader
    from autorubric.grading.grader import CriterionGrader
    from autorubric.scoring.reports import EvaluationReport


class RunPanel(Protocol):
    """The grader of a pytest run, as assertions use it; implemented by `PytestPanel`."""

    @property
    def is_default(self) -> bool: ...
    def grader(self) -> CriterionGrader: ...
    def demand_leave(self, grader: Grader) -> None: ...


class TestInProgress:
    """A running test."""

    # pytest collects a class of this name if a test module imports it.
    __test__ = False

    def __init__(self, panel: Callable[[], RunPanel], marked: dict[str, Any]) -> None:
        self.panel = panel
        self.marked = marked
        self.attempt = 0  # index of the current repeat
        self.repeating = False  # whether the repeats have started
        # Number of passed repeats and total number of repeats; None until all repeats have run.
        self.passed: tuple[int, int] | None = None
        self.reports: list[EvaluationReport] = []
        self.judges: dict[str, None] = {}  # in order of their first vote

    def add_report(self, report: EvaluationReport) -> None:
        """Record a report and the judges that voted in it."""
        self.reports.append(report)
        self.judges.update(dict.fromkeys(vote.judge_id for one in report.report for vote in one.votes))


_current: list[TestInProgress] = []


def current_test() -> TestInProgress | None:
    """Return the running test; None outside of pytest."""
    return _current[-1] if _current else None


def enter_test(test: TestInProgress) -> None:
    """Start a test, which may be nested in another test, as in tests of plugins."""
    _current.append(test)


def leave_test() -> None:
    """End the innermost test."""
    _current.pop()


def pass_line(passed: int, repeats: int, low: float, high: float) -> str:
    """Format the number of passed repeats with the pass rate and its confidence interval."""
    share = passed / repeats
    return f"passed {passed} of {repeats} (pass rate {share:.2f}, 95% interval {low:.2f} to {high:.2f})"
