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
    from autorubric.types._report_blocks import answer_text
    from autorubric.types._reports import (
        CriterionReport,
        EnsembleCriterionReport,
        EnsembleEvaluationReport,
        EvaluationReport,
        MultiChoiceVerdict,
        verdicts_by_judge,
    )
    from autorubric.types._votes import JudgeVote, MultiChoiceJudgeVote, count_verdicts, prefers_alike

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
    "answer_text",
    "count_verdicts",
    "is_group",
    "prefers_alike",
    "verdicts_by_judge",
]

# A run is opened without a report being made, and most rubrics use a kind or two.
_HOMES = {
    "AnalyticRubricCriterion": ".criteria",
    "CannotAssessConfig": "_policies",
    "CannotAssessStrategy": "_policies",
    "ChecklistCriterion": ".criteria",
    "ComparativeCriterion": ".criteria",
    "CriterionReport": "_reports",
    "Decision": "_decision",
    "DecisionStatus": "_decision",
    "EnsembleCriterionReport": "_reports",
    "EnsembleEvaluationReport": "_reports",
    "EvaluationReport": "_reports",
    "HolisticRubricCriterion": ".criteria",
    "JudgeVote": "_votes",
    "LengthPenalty": "_policies",
    "LikertCriterion": ".criteria",
    "LikertItem": ".criteria",
    "MultiChoiceJudgeVote": "_votes",
    "MultiChoiceVerdict": "_reports",
    "NarrativeCriterion": ".criteria",
    "NumericalRatingCriterion": ".criteria",
    "PassFailCriterion": ".criteria",
    "PenaltyType": "_policies",
    "RubricDimension": ".criteria",
    "RubricGroup": "_groups",
    "RubricLevel": ".criteria",
    "answer_text": "_report_blocks",
    "count_verdicts": "_votes",
    "is_group": "_groups",
    "prefers_alike": "_votes",
    "verdicts_by_judge": "_reports",
}

__getattr__ = loading(__name__, _HOMES)
