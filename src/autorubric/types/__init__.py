"""Votes, decisions, reports and policies; the criteria and verdicts are re-exported beside them."""

from autorubric.criteria import (
    AnalyticRubricCriterion,
    BaseCriterion,
    ChecklistCriterion,
    ComparativeCriterion,
    Criterion,
    CriterionOption,
    Gate,
    HolisticRubricCriterion,
    LikertCriterion,
    LikertItem,
    NarrativeCriterion,
    NumericalRatingCriterion,
    PassFailCriterion,
    RubricDimension,
    RubricLevel,
    When,
)
from autorubric.types._decision import Decision, DecisionStatus
from autorubric.types._groups import RubricGroup, is_group
from autorubric.types._policies import CannotAssessConfig, CannotAssessStrategy, LengthPenalty, PenaltyType
from autorubric.types._reports import (
    CriterionReport,
    EnsembleCriterionReport,
    EnsembleEvaluationReport,
    EvaluationReport,
    MultiChoiceVerdict,
)
from autorubric.types._votes import JudgeVote, prefers_alike
from autorubric.values import Answer, CriterionVerdict, Level, ScaleType, Submission, TokenUsage, VoteStatus

MultiChoiceJudgeVote = JudgeVote

__all__ = [
    "AnalyticRubricCriterion",
    "Answer",
    "BaseCriterion",
    "CannotAssessConfig",
    "CannotAssessStrategy",
    "ChecklistCriterion",
    "ComparativeCriterion",
    "Criterion",
    "CriterionOption",
    "CriterionReport",
    "CriterionVerdict",
    "Decision",
    "DecisionStatus",
    "EnsembleCriterionReport",
    "EnsembleEvaluationReport",
    "EvaluationReport",
    "Gate",
    "HolisticRubricCriterion",
    "JudgeVote",
    "LengthPenalty",
    "Level",
    "LikertCriterion",
    "LikertItem",
    "MultiChoiceJudgeVote",
    "MultiChoiceVerdict",
    "NarrativeCriterion",
    "NumericalRatingCriterion",
    "PassFailCriterion",
    "PenaltyType",
    "RubricDimension",
    "RubricGroup",
    "RubricLevel",
    "ScaleType",
    "Submission",
    "TokenUsage",
    "VoteStatus",
    "When",
    "is_group",
    "prefers_alike",
]
