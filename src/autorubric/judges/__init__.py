"""Judges: who answers. Language models, functions, recorded votes, checks and offline baselines."""

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
    "ask_judge",
    "ask_judge_many",
    "asked_of",
    "builtin_judge",
    "demand_models",
    "demand_text",
    "failure_of",
    "is_blank",
    "named_judges",
    "names_model",
    "seat_judges",
    "shared_error",
    "split_name",
]

_HOMES = {
    "BatchJudge": "_base",
    "CHECK_JUDGE_ID": "_base",
    "CheckJudge": "_check",
    "ClosableJudge": "_base",
    "DescribedJudge": "_base",
    "FunctionJudge": "_function",
    "Judge": "_base",
    "JudgeLike": "_specs",
    "JudgeReply": "_base",
    "JudgeRequest": "_base",
    "JudgeSpec": "_specs",
    "LexicalJudge": "_lexical",
    "ModelAsker": "_base",
    "ModelJudge": "_model",
    "RecordedJudge": "_recorded",
    "ReferenceJudge": "_base",
    "Seat": "_specs",
    "SeatableJudge": "_base",
    "SupervisedJudge": "_supervised",
    "ask_fitting": "_fitting",
    "ask_judge": "_failures",
    "ask_judge_many": "_failures",
    "failure_of": "_failures",
    "asked_of": "_model",
    "builtin_judge": "_named",
    "demand_models": "_named",
    "demand_text": "_fitting",
    "is_blank": "_base",
    "named_judges": "_named",
    "names_model": "_named",
    "split_name": "_named",
    "seat_judges": "_specs",
    "shared_error": "_base",
}

__getattr__ = loading(__name__, _HOMES)
