from . import panel as panel
from .base import (
    BatchJudge as BatchJudge,
    ClosableJudge as ClosableJudge,
    DescribedJudge as DescribedJudge,
    Judge as Judge,
    JudgeReply as JudgeReply,
    JudgeRequest as JudgeRequest,
    ModelAsker as ModelAsker,
    PanelJudge as PanelJudge,
    ReferenceJudge as ReferenceJudge,
)
from .critic import Critic as Critic
from .critic_prompt import DEFAULT_TEMPLATE as DEFAULT_TEMPLATE, Prompt as Prompt
from .decision import DecisionModelJudge as DecisionModelJudge
from .function import FunctionJudge as FunctionJudge
from .lexical import LexicalJudge as LexicalJudge
from .model import ModelJudge as ModelJudge
from .panel import JudgeLike as JudgeLike, JudgeSpec as JudgeSpec
from .prompts import SYSTEM_PROMPT as SYSTEM_PROMPT
from .recorded import RecordedJudge as RecordedJudge
from .supervised import SupervisedJudge as SupervisedJudge

__all__: list[str]
