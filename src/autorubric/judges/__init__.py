"""Judges: who answers. Language models, functions, recorded votes, checks and offline baselines."""

from autorubric.judges._base import (
    BatchJudge,
    ClosableJudge,
    DescribedJudge,
    Judge,
    JudgeReply,
    JudgeRequest,
    ModelAsker,
    ReferenceJudge,
    SeatableJudge,
    is_blank,
    shared_error,
)
from autorubric.judges._check import CHECK_JUDGE_ID, CheckJudge
from autorubric.judges._fitting import ask_fitting, demand_text
from autorubric.judges._function import FunctionJudge
from autorubric.judges._lexical import LexicalJudge
from autorubric.judges._model import ModelJudge, asked_of
from autorubric.judges._named import named_judges
from autorubric.judges._recorded import RecordedJudge
from autorubric.judges._specs import JudgeLike, JudgeSpec, Seat, seat_judges
from autorubric.judges._supervised import SupervisedJudge

__all__ = [
    "CHECK_JUDGE_ID",
    "BatchJudge",
    "CheckJudge",
    "ClosableJudge",
    "DescribedJudge",
    "FunctionJudge",
    "Judge",
    "JudgeLike",
    "JudgeReply",
    "JudgeRequest",
    "JudgeSpec",
    "LexicalJudge",
    "ModelAsker",
    "ModelJudge",
    "RecordedJudge",
    "ReferenceJudge",
    "Seat",
    "SeatableJudge",
    "SupervisedJudge",
    "ask_fitting",
    "asked_of",
    "demand_text",
    "is_blank",
    "named_judges",
    "seat_judges",
    "shared_error",
]
