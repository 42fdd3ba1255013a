"""The test that pytest is running: what the plugin tells assertions, and what they tell it.

Light, since the plugin is loaded with every pytest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from autorubric.integrations._pytest_runs import Panel
    from autorubric.types import EvaluationReport


class TestInProgress:
    """One test.

    Args:
        panel: Gives the run's own grader, and says whether graders that ask models may be used.
        marked: Arguments of its `rubric` marker.

    Attributes:
        attempt: Which repeat of the test it is, from 0.
        repeating: Whether the repeats have begun.
        passed: How many repeats passed, and of how many; None before the test has ended.
        reports: What was graded, in order.
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
        """Notes a report."""
        self.reports.append(report)
        self.judges.update(dict.fromkeys(vote.judge_id for one in report.report for vote in one.votes))


_current: list[TestInProgress] = []


def current_test() -> TestInProgress | None:
    """The test that is running; None outside of pytest."""
    return _current[-1] if _current else None


def enter_test(test: TestInProgress) -> None:
    """A test begins; another one may be running it, as tests of plugins do."""
    _current.append(test)


def leave_test() -> None:
    """The innermost test has ended."""
    _current.pop()


def pass_line(passed: int, repeats: int, low: float, high: float) -> str:
    """How often a test passed, with the ends of the rate's interval."""
    share = passed / repeats
    return f"passed {passed} of {repeats} (pass rate {share:.2f}, 95 % interval {low:.2f} to {high:.2f})"
