"""Reports: what votes on a submission come to under a policy. All pure, and no judge is near."""

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
