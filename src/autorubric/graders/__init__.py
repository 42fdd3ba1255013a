"""Graders: votes on every criterion, and what they come to."""

from autorubric.graders._base import Grader
from autorubric.graders._casting import cast_all
from autorubric.graders._escalation import EscalationConfig, check_per_criterion
from autorubric.graders._few_shot import FewShotConfig
from autorubric.graders._planning import JudgeCall
from autorubric.graders._seeds import derive_seed
from autorubric.graders.criterion_grader import CriterionGrader, warn_of_equal_samples
from autorubric.judges import JudgeSpec
from autorubric.reporting import (
    EscalationRule,
    GraderDescription,
    GradingPolicy,
    GradingTask,
    Votes,
    build_report,
    confidence_of,
    criterion_report,
    spend,
)

__all__ = [
    "CriterionGrader",
    "EscalationConfig",
    "EscalationRule",
    "FewShotConfig",
    "Grader",
    "GraderDescription",
    "GradingPolicy",
    "GradingTask",
    "JudgeCall",
    "JudgeSpec",
    "Votes",
    "build_report",
    "cast_all",
    "check_per_criterion",
    "confidence_of",
    "criterion_report",
    "derive_seed",
    "spend",
    "warn_of_equal_samples",
]
