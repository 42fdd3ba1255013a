"""Pure functions that turn votes on a submission into a report under a policy."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.reporting._escalation import EscalationRule, confidence_of
    from autorubric.reporting._policy import GradingPolicy
    from autorubric.reporting._report import build_report, criterion_report, spend
    from autorubric.reporting._task import GraderDescription, GradingTask, Votes

__all__ = [
    "EscalationRule", "GraderDescription", "GradingPolicy", "GradingTask", "Votes", "build_report",
    "confidence_of", "criterion_report", "spend",
]  # fmt: skip

# A run is opened without a report being made.
_HOMES = {
    "_escalation": ("EscalationRule", "confidence_of"),
    "_task": ("GraderDescription", "GradingTask", "Votes"),
    "_policy": ("GradingPolicy",),
    "_report": ("build_report", "criterion_report", "spend"),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
