"""Pure functions that turn votes on a submission into a report under a policy."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.reporting._escalation import EscalationRule, confidence_of
    from autorubric.reporting._policy import GradingPolicy
    from autorubric.reporting._report import build_report, criterion_report, spend
    from autorubric.reporting._task import GraderDescription, GradingTask, Votes

__all__ = [
    "EscalationRule",
    "GraderDescription",
    "GradingPolicy",
    "GradingTask",
    "Votes",
    "build_report",
    "confidence_of",
    "criterion_report",
    "spend",
]

# A run is opened without a report being made.
_HOMES = {
    "EscalationRule": "_escalation",
    "GraderDescription": "_task",
    "GradingPolicy": "_policy",
    "GradingTask": "_task",
    "Votes": "_task",
    "build_report": "_report",
    "confidence_of": "_escalation",
    "criterion_report": "_report",
    "spend": "_report",
}

__getattr__ = loading(__name__, _HOMES)
