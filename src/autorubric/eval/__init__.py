"""Runs: a dataset graded into a folder, resumable, with its result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autorubric.eval._config import EvalConfig
from autorubric.eval._executor import Executor, ItemWork, grade_item, run_bounded
from autorubric.eval._items import EvalTimingStats, GradedItem, ItemResult
from autorubric.eval._lock import FileLock
from autorubric.eval._reopen import stored_policy
from autorubric.eval._result import EvalResult
from autorubric.eval._runner import EvalRunner, evaluate, evaluate_sync

if TYPE_CHECKING:
    from autorubric.eval._estimate import estimate
    from autorubric.eval._fill import fill_ground_truth, fill_ground_truth_sync
    from autorubric.eval._merge import merge_runs
    from autorubric.eval._run_estimate import JudgeEstimate, RunEstimate
    from autorubric.eval._shard import run_shard, shard_of

__all__ = [
    "EvalConfig",
    "EvalResult",
    "EvalRunner",
    "EvalTimingStats",
    "Executor",
    "FileLock",
    "GradedItem",
    "ItemResult",
    "ItemWork",
    "JudgeEstimate",
    "RunEstimate",
    "estimate",
    "evaluate",
    "evaluate_sync",
    "fill_ground_truth",
    "fill_ground_truth_sync",
    "grade_item",
    "merge_runs",
    "run_bounded",
    "run_shard",
    "shard_of",
    "stored_policy",
]

# What neither opening a run nor going on with it needs.
_LATE = {
    "JudgeEstimate": "_run_estimate",
    "RunEstimate": "_run_estimate",
    "estimate": "_estimate",
    "fill_ground_truth": "_fill",
    "fill_ground_truth_sync": "_fill",
    "merge_runs": "_merge",
    "run_shard": "_shard",
    "shard_of": "_shard",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'autorubric.eval' has no attribute {name!r}")
    value = getattr(import_module(f"autorubric.eval.{_LATE[name]}"), name)
    globals()[name] = value
    return value
