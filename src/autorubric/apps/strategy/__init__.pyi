from .criteria import (
    QualitativeCriteria as QualitativeCriteria,
    QuantitativeCriteria as QuantitativeCriteria,
    RubricThreshold as RubricThreshold,
)
from .result import (
    Hint as Hint,
    StageError as StageError,
    StrategyCandidate as StrategyCandidate,
    StrategyResult as StrategyResult,
)
from .sampling import SampledEvaluation as SampledEvaluation, extract_code as extract_code
from .steps import LLM as LLM, Attempt as Attempt
from .strategy import Strategy as Strategy

__all__: list[str]
