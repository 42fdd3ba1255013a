from .base import Grader as Grader, GraderDescription as GraderDescription, GradingTask as GradingTask
from .grader import CriterionGrader as CriterionGrader
from .plan import EscalationConfig as EscalationConfig, FewShotConfig as FewShotConfig, JudgeCall as JudgeCall

__all__: list[str]
