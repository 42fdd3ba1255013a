from .base import (
    CHECK_JUDGE_ID as CHECK_JUDGE_ID,
    BatchJudge as BatchJudge,
    ClosableJudge as ClosableJudge,
    DescribedJudge as DescribedJudge,
    Judge as Judge,
    JudgeReply as JudgeReply,
    JudgeRequest as JudgeRequest,
    ModelAsker as ModelAsker,
    ReferenceJudge as ReferenceJudge,
    SeatableJudge as SeatableJudge,
    ask_judge as ask_judge,
    ask_judge_many as ask_judge_many,
    failure_of as failure_of,
    is_blank as is_blank,
    shared_error as shared_error,
)
from .critic import Critic as Critic
from .critic_prompt import (
    DEFAULT_TEMPLATE as DEFAULT_TEMPLATE,
    Prompt as Prompt,
    PromptTemplate as PromptTemplate,
)
from .evaluators import CallableEvaluator as CallableEvaluator, called_of as called_of
from .function import CheckJudge as CheckJudge, FunctionJudge as FunctionJudge
from .lexical import LexicalJudge as LexicalJudge
from .model import (
    ModelJudge as ModelJudge,
    ask_fitting as ask_fitting,
    asked_of as asked_of,
    demand_text as demand_text,
)
from .panel import (
    JudgeLike as JudgeLike,
    JudgeSpec as JudgeSpec,
    Seat as Seat,
    builtin_judge as builtin_judge,
    demand_models as demand_models,
    named_judges as named_judges,
    names_model as names_model,
    seat_judges as seat_judges,
    split_name as split_name,
)
from .prompts import (
    MATERIAL_RULE as MATERIAL_RULE,
    SYSTEM_PROMPT as SYSTEM_PROMPT,
    ComposedPrompt as ComposedPrompt,
    Example as Example,
    Material as Material,
    PromptQuestion as PromptQuestion,
    compose as compose,
    compose_batch as compose_batch,
    delimit as delimit,
    item_tag as item_tag,
    neutralise as neutralise,
    opaque_ids as opaque_ids,
    render_examples as render_examples,
    shared_prefix as shared_prefix,
)
from .recorded import RecordedJudge as RecordedJudge
from .supervised import SupervisedJudge as SupervisedJudge
from .vote import Cast as Cast, cast_vote as cast_vote, cast_votes as cast_votes, read_answer as read_answer

__all__: list[str]
