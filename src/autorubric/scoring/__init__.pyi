from .aggregation import VoteTally as VoteTally
from .calibration import HeldOutLoss as HeldOutLoss, ProbabilityCalibration as ProbabilityCalibration
from .policies import (
    CannotAssessConfig as CannotAssessConfig,
    CannotAssessStrategy as CannotAssessStrategy,
    LengthPenalty as LengthPenalty,
    PenaltyType as PenaltyType,
    RubricGroup as RubricGroup,
)
from .reports import (
    CriterionReport as CriterionReport,
    EnsembleCriterionReport as EnsembleCriterionReport,
    EnsembleEvaluationReport as EnsembleEvaluationReport,
    EvaluationReport as EvaluationReport,
    MultiChoiceVerdict as MultiChoiceVerdict,
)
from .score import compute_length_penalty as compute_length_penalty
from .votes import (
    Decision as Decision,
    JudgeVote as JudgeVote,
    Listener as Listener,
    MultiChoiceJudgeVote as MultiChoiceJudgeVote,
    Votes as Votes,
)

__all__: list[str]
