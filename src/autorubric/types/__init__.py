"""Votes, decisions, reports and policies; the criteria and verdicts are re-exported beside them."""

from autorubric.criteria import BaseCriterion, Criterion, CriterionOption
from autorubric.types._decision import Decision, DecisionStatus
from autorubric.types._policies import CannotAssessConfig, CannotAssessStrategy, LengthPenalty, PenaltyType
from autorubric.types._reports import (
    CriterionReport,
    EnsembleCriterionReport,
    EnsembleEvaluationReport,
    EvaluationReport,
    MultiChoiceVerdict,
)
from autorubric.types._votes import JudgeVote
from autorubric.values import Answer, CriterionVerdict, Level, ScaleType, Submission, TokenUsage, VoteStatus

MultiChoiceJudgeVote = JudgeVote

__all__ = [
    "Answer",
    "BaseCriterion",
    "CannotAssessConfig",
    "CannotAssessStrategy",
    "Criterion",
    "CriterionOption",
    "CriterionReport",
    "CriterionVerdict",
    "Decision",
    "DecisionStatus",
    "EnsembleCriterionReport",
    "EnsembleEvaluationReport",
    "EvaluationReport",
    "JudgeVote",
    "LengthPenalty",
    "Level",
    "MultiChoiceJudgeVote",
    "MultiChoiceVerdict",
    "PenaltyType",
    "ScaleType",
    "Submission",
    "TokenUsage",
    "VoteStatus",
]
