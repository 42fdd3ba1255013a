"""Votes, decisions, reports and policies; criteria and verdicts are also exported here."""

from typing import TYPE_CHECKING

from autorubric._late import loading
from autorubric.criteria import BaseCriterion, Criterion, CriterionOption, Gate, When
from autorubric.values import Answer, CriterionVerdict, Level, ScaleType, Submission, TokenUsage, VoteStatus

if TYPE_CHECKING:
    from autorubric.criteria import (
        AnalyticRubricCriterion,
        ChecklistCriterion,
        ComparativeCriterion,
        HolisticRubricCriterion,
        LikertCriterion,
        LikertItem,
        NarrativeCriterion,
        NumericalRatingCriterion,
        PassFailCriterion,
        RubricDimension,
        RubricLevel,
    )
    from autorubric.types._decision import Decision, DecisionStatus
    from autorubric.types._groups import RubricGroup, is_group
    from autorubric.types._policies import (
        CannotAssessConfig,
        CannotAssessStrategy,
        LengthPenalty,
        PenaltyType,
    )
    from autorubric.types._reports import (
        CriterionReport,
        EnsembleCriterionReport,
        EnsembleEvaluationReport,
        EvaluationReport,
        MultiChoiceVerdict,
        answer_text,
        verdicts_by_judge,
    )
    from autorubric.types._votes import JudgeVote, MultiChoiceJudgeVote, count_verdicts, prefers_alike

__all__ = [
    "AnalyticRubricCriterion", "Answer", "BaseCriterion", "CannotAssessConfig",
    "CannotAssessStrategy", "ChecklistCriterion", "ComparativeCriterion", "Criterion",
    "CriterionOption", "CriterionReport", "CriterionVerdict", "Decision", "DecisionStatus",
    "EnsembleCriterionReport", "EnsembleEvaluationReport", "EvaluationReport", "Gate",
    "HolisticRubricCriterion", "JudgeVote", "LengthPenalty", "Level", "LikertCriterion",
    "LikertItem", "MultiChoiceJudgeVote", "MultiChoiceVerdict", "NarrativeCriterion",
    "NumericalRatingCriterion", "PassFailCriterion", "PenaltyType", "RubricDimension",
    "RubricGroup", "RubricLevel", "ScaleType", "Submission", "TokenUsage", "VoteStatus", "When",
    "answer_text", "count_verdicts", "is_group", "prefers_alike", "verdicts_by_judge",
]  # fmt: skip

# Opening a run creates no reports, and most rubrics use only one or two kinds of criteria.
_HOMES = {
    ".criteria": (
        "AnalyticRubricCriterion", "ChecklistCriterion", "ComparativeCriterion",
        "HolisticRubricCriterion", "LikertCriterion", "LikertItem", "NarrativeCriterion",
        "NumericalRatingCriterion", "PassFailCriterion", "RubricDimension", "RubricLevel",
    ),
    "_policies": ("CannotAssessConfig", "CannotAssessStrategy", "LengthPenalty", "PenaltyType"),
    "_reports": (
        "answer_text",
        "CriterionReport", "EnsembleCriterionReport", "EnsembleEvaluationReport",
        "EvaluationReport", "MultiChoiceVerdict", "verdicts_by_judge",
    ),
    "_decision": ("Decision", "DecisionStatus"),
    "_votes": ("JudgeVote", "MultiChoiceJudgeVote", "count_verdicts", "prefers_alike"),
    "_groups": ("RubricGroup", "is_group"),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
