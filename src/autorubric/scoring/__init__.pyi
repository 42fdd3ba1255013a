from .aggregation import AGGREGATORS as AGGREGATORS, CountedVote as CountedVote
from .bradley_terry import Contest as Contest, TieModel as TieModel, fit_strengths as fit_strengths
from .decisions import decide as decide, decide_by_judge as decide_by_judge, decide_panel as decide_panel
from .early_stopping import can_stop as can_stop, votes_needed as votes_needed
from .policies import (
    AggregationPolicy as AggregationPolicy,
    BinaryAggregation as BinaryAggregation,
    CannotAssessConfig as CannotAssessConfig,
    CannotAssessStrategy as CannotAssessStrategy,
    LengthPenalty as LengthPenalty,
    NominalAggregation as NominalAggregation,
    OnFailure as OnFailure,
    OrdinalAggregation as OrdinalAggregation,
    PenaltyType as PenaltyType,
    RankingAggregation as RankingAggregation,
    RubricGroup as RubricGroup,
    is_group as is_group,
)
from .report_builder import (
    EscalationRule as EscalationRule,
    GradingPolicy as GradingPolicy,
    build_report as build_report,
    confidence_of as confidence_of,
    criterion_report as criterion_report,
    spend as spend,
)
from .reports import (
    CriterionReport as CriterionReport,
    EnsembleCriterionReport as EnsembleCriterionReport,
    EnsembleEvaluationReport as EnsembleEvaluationReport,
    EvaluationReport as EvaluationReport,
    MultiChoiceVerdict as MultiChoiceVerdict,
    answer_text as answer_text,
    verdicts_by_judge as verdicts_by_judge,
)
from .score import (
    Entry as Entry,
    OpenGate as OpenGate,
    Score as Score,
    Term as Term,
    TreeScore as TreeScore,
    apply_conditions as apply_conditions,
    compute_length_penalty as compute_length_penalty,
    entering_value as entering_value,
    entry_of as entry_of,
    penalised as penalised,
    score_terms as score_terms,
    score_tree as score_tree,
    submission_length_penalty as submission_length_penalty,
)
from .votes import (
    Decision as Decision,
    DecisionStatus as DecisionStatus,
    JudgeVote as JudgeVote,
    MultiChoiceJudgeVote as MultiChoiceJudgeVote,
    Votes as Votes,
    count_verdicts as count_verdicts,
    prefers_alike as prefers_alike,
)

__all__: list[str]
