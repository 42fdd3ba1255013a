"""Graders: votes on every criterion, and what they come to."""

from autorubric.graders._base import Grader, GraderDescription, GradingTask, Votes
from autorubric.graders._casting import cast_all
from autorubric.graders._few_shot import FewShotConfig
from autorubric.graders._planning import JudgeCall
from autorubric.graders._policy import GradingPolicy
from autorubric.graders._report import build_report, spend
from autorubric.graders._seeds import derive_seed
from autorubric.graders.criterion_grader import CriterionGrader, warn_of_equal_samples
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
    "cast_all",
    "derive_seed",
    "spend",
    "warn_of_equal_samples",
]
