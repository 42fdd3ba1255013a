from .base import Grader as Grader, GraderDescription as GraderDescription, GradingTask as GradingTask
from .collect import cast_all as cast_all
from .grader import (
    CriterionGrader as CriterionGrader,
    LLMCalls as LLMCalls,
    warn_of_equal_samples as warn_of_equal_samples,
)
from .plan import (
    EscalationConfig as EscalationConfig,
    FewShotConfig as FewShotConfig,
    JudgeCall as JudgeCall,
    check_per_criterion as check_per_criterion,
    derive_seed as derive_seed,
)

__all__: list[str]
