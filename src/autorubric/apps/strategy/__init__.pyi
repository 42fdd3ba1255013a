from .criteria import (
    QualitativeCriteria as QualitativeCriteria,
    QuantitativeCriteria as QuantitativeCriteria,
    RubricThreshold as RubricThreshold,
)
from .evaluations import Hint as Hint
from .generators import LLM as LLM, Attempt as Attempt
from .result import (
    StageError as StageError,
    StrategyCandidate as StrategyCandidate,
    StrategyResult as StrategyResult,
)
from .sampling import SampledEvaluation as SampledEvaluation, extract_code as extract_code
from .strategy import Strategy as Strategy

__all__: list[str]
