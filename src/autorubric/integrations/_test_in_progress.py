"""The test that pytest is running: data shared between the plugin and assertions.

This module is light, because the plugin is loaded with every pytest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from autorubric.integrations._pytest_runs import Panel
    from autorubric.types import EvaluationReport


class TestInProgress:
    """A running test.

    Args:
        panel: Returns the run's grader, and whether graders that ask models may be used.
        marked: Arguments of its `rubric` marker.

    Attributes:
        attempt: Index of the repeat, from 0.
        repeating: Whether the repeats have started.
        passed: Number of repeats that passed, and the total; None before the test has ended.
        reports: Reports on the graded texts, in order.
        judges: Ids of the judges that were asked, in order.
    """

    # pytest takes classes of this name for tests where a test module imports them.
    __test__ = False

    def __init__(self, panel: Callable[[], Panel], marked: dict[str, Any]) -> None:
        self.panel = panel
        self.marked = marked
        self.attempt = 0
        self.repeating = False
        self.passed: tuple[int, int] | None = None
        self.reports: list[EvaluationReport] = []
        self.judges: dict[str, None] = {}

    def graded(self, report: EvaluationReport) -> None:
        """Record a report."""
        self.reports.append(report)
        self.judges.update(dict.fromkeys(vote.judge_id for one in report.report for vote in one.votes))


_current: list[TestInProgress] = []


def current_test() -> TestInProgress | None:
    """Return the running test; None outside of pytest."""
    return _current[-1] if _current else None


def enter_test(test: TestInProgress) -> None:
    """Start a test; it may run inside another one, as plugin tests do."""
    _current.append(test)


def leave_test() -> None:
    """End the innermost test."""
    _current.pop()


def pass_line(passed: int, repeats: int, low: float, high: float) -> str:
    """Return how often a test passed, with the confidence interval of the rate."""
    share = passed / repeats
    return f"passed {passed} of {repeats} (pass rate {share:.2f}, 95 % interval {low:.2f} to {high:.2f})"
