"""Runs: grading a dataset into a folder that can be resumed, and reading the results."""

from typing import TYPE_CHECKING

from autorubric._late import loading

if TYPE_CHECKING:
    from autorubric.eval._config import EvalConfig
    from autorubric.eval._disputed import disputed_items
    from autorubric.eval._estimate import estimate
    from autorubric.eval._executor import Executor, ItemWork, grade_item
    from autorubric.eval._fill import fill_ground_truth, fill_ground_truth_sync
    from autorubric.eval._healthbench import HealthBenchScore, healthbench_score
    from autorubric.eval._items import EvalTimingStats, GradedItem, ItemResult
    from autorubric.eval._merge import merge_runs
    from autorubric.eval._reopen import stored_policy
    from autorubric.eval._result import EvalResult
    from autorubric.eval._run_estimate import JudgeEstimate, RunEstimate
    from autorubric.eval._runner import EvalRunner, evaluate, evaluate_sync
    from autorubric.eval._shard import run_shard, shard_of

__all__ = [
    "EvalConfig", "EvalResult", "EvalRunner", "EvalTimingStats", "Executor",
    "GradedItem", "HealthBenchScore", "ItemResult", "ItemWork", "JudgeEstimate", "RunEstimate",
    "disputed_items", "estimate", "evaluate", "evaluate_sync", "fill_ground_truth",
    "fill_ground_truth_sync", "grade_item", "healthbench_score", "merge_runs",
    "run_shard", "shard_of", "stored_policy",
]  # fmt: skip

# Reading a run must not import the modules that grade one.
_HOMES = {
    "_config": ("EvalConfig",),
    "_result": ("EvalResult",),
    "_runner": ("EvalRunner", "evaluate", "evaluate_sync"),
    "_items": ("EvalTimingStats", "GradedItem", "ItemResult"),
    "_executor": ("Executor", "ItemWork", "grade_item"),
    "_healthbench": ("HealthBenchScore", "healthbench_score"),
    "_run_estimate": ("JudgeEstimate", "RunEstimate"),
    "_disputed": ("disputed_items",),
    "_estimate": ("estimate",),
    "_fill": ("fill_ground_truth", "fill_ground_truth_sync"),
    "_merge": ("merge_runs",),
    "_shard": ("run_shard", "shard_of"),
    "_reopen": ("stored_policy",),
}  # fmt: skip

__getattr__ = loading(__name__, _HOMES)
