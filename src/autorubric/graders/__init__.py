"""Graders: votes on every criterion, and what they come to."""

from autorubric.graders._base import Grader, GraderDescription, GradingTask, Votes
from autorubric.graders._few_shot import FewShotConfig
from autorubric.graders._planning import JudgeCall
from autorubric.graders._policy import GradingPolicy
from autorubric.graders._report import build_report
from autorubric.graders.criterion_grader import CriterionGrader
from autorubric.judges import JudgeSpec

__all__ = [
    "CriterionGrader",
    "FewShotConfig",
    "Grader",
    "GraderDescription",
    "GradingPolicy",
    "GradingTask",
    "JudgeCall",
    "JudgeSpec",
    "Votes",
    "build_report",
]
