"""Judges: language models, functions, recorded votes, checks and offline baselines."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.judges._base import (
        CHECK_JUDGE_ID,
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
    from autorubric.judges._check import CheckJudge
    from autorubric.judges._failures import ask_judge, ask_judge_many, failure_of
    from autorubric.judges._fitting import ask_fitting, demand_text
    from autorubric.judges._function import FunctionJudge
    from autorubric.judges._lexical import LexicalJudge
    from autorubric.judges._model import ModelJudge, asked_of
    from autorubric.judges._named import builtin_judge, demand_models, named_judges, names_model, split_name
    from autorubric.judges._recorded import RecordedJudge
    from autorubric.judges._specs import JudgeLike, JudgeSpec, Seat, seat_judges
    from autorubric.judges._supervised import SupervisedJudge

__all__ = [
    "CHECK_JUDGE_ID", "BatchJudge", "CheckJudge", "ClosableJudge", "DescribedJudge",
    "FunctionJudge", "Judge", "JudgeLike", "JudgeReply", "JudgeRequest", "JudgeSpec",
    "LexicalJudge", "ModelAsker", "ModelJudge", "RecordedJudge", "ReferenceJudge", "Seat",
    "SeatableJudge", "SupervisedJudge", "ask_fitting", "ask_judge", "ask_judge_many", "asked_of",
    "builtin_judge", "demand_models", "demand_text", "failure_of", "is_blank", "named_judges",
    "names_model", "seat_judges", "shared_error", "split_name",
]  # fmt: skip

_HOMES = {
    "_base": (
        "BatchJudge", "CHECK_JUDGE_ID", "ClosableJudge", "DescribedJudge", "Judge", "JudgeReply",
        "JudgeRequest", "ModelAsker", "ReferenceJudge", "SeatableJudge", "is_blank", "shared_error",
    ),
    "_check": ("CheckJudge",),
    "_function": ("FunctionJudge",),
    "_specs": ("JudgeLike", "JudgeSpec", "Seat", "seat_judges"),
    "_lexical": ("LexicalJudge",),
    "_model": ("ModelJudge", "asked_of"),
    "_recorded": ("RecordedJudge",),
    "_supervised": ("SupervisedJudge",),
    "_fitting": ("ask_fitting", "demand_text"),
    "_failures": ("ask_judge", "ask_judge_many", "failure_of"),
    "_named": ("builtin_judge", "demand_models", "named_judges", "names_model", "split_name"),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
