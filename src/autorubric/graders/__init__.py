"""Graders: collect votes on every criterion and aggregate them into decisions and scores."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.graders._base import Grader
    from autorubric.graders._casting import cast_all
    from autorubric.graders._escalation import EscalationConfig, check_per_criterion
    from autorubric.graders._few_shot import FewShotConfig
    from autorubric.graders._planning import JudgeCall
    from autorubric.graders._seeds import derive_seed
    from autorubric.graders.criterion_grader import CriterionGrader, LLMCalls, warn_of_equal_samples
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
    "CriterionGrader", "EscalationConfig", "EscalationRule", "FewShotConfig", "Grader",
    "GraderDescription", "GradingPolicy", "GradingTask", "JudgeCall", "JudgeSpec", "LLMCalls",
    "Votes", "build_report", "cast_all", "check_per_criterion", "confidence_of", "criterion_report",
    "derive_seed", "spend", "warn_of_equal_samples",
]  # fmt: skip

# Loaded at first use: resuming a finished run needs a grader but calls no judge.
_HOMES = {
    "criterion_grader": ("CriterionGrader", "LLMCalls", "warn_of_equal_samples"),
    "_escalation": ("EscalationConfig", "check_per_criterion"),
    ".reporting": (
        "EscalationRule", "GraderDescription", "GradingPolicy", "GradingTask", "Votes",
        "build_report", "confidence_of", "criterion_report", "spend",
    ),
    "_few_shot": ("FewShotConfig",),
    "_base": ("Grader",),
    "_planning": ("JudgeCall",),
    ".judges": ("JudgeSpec",),
    "_casting": ("cast_all",),
    "_seeds": ("derive_seed",),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
