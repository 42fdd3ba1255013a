"""Runs: a dataset graded into a folder, resumable, with its result."""

from autorubric.eval._config import EvalConfig
from autorubric.eval._executor import run_bounded
from autorubric.eval._fill import fill_ground_truth, fill_ground_truth_sync
from autorubric.eval._items import EvalTimingStats, ItemResult
from autorubric.eval._lock import FileLock
from autorubric.eval._result import EvalResult
from autorubric.eval._runner import EvalRunner, evaluate, evaluate_sync

__all__ = [
    "EvalConfig",
    "EvalResult",
    "EvalRunner",
    "EvalTimingStats",
    "FileLock",
    "ItemResult",
    "evaluate",
    "evaluate_sync",
    "fill_ground_truth",
    "fill_ground_truth_sync",
    "run_bounded",
]
