from . import merge as merge, preflight as preflight, run_file as run_file, run_setup as run_setup
from .config import EvalConfig as EvalConfig
from .escalation import (
    EscalationCurve as EscalationCurve,
    EscalationPoint as EscalationPoint,
    calibrate_escalation as calibrate_escalation,
    choose_band as choose_band,
    replay_escalation as replay_escalation,
)
from .estimation import JudgeEstimate as JudgeEstimate, RunEstimate as RunEstimate, estimate as estimate
from .executor import Executor as Executor, ItemWork as ItemWork, grade_item as grade_item
from .items import EvalTimingStats as EvalTimingStats, GradedItem as GradedItem, ItemResult as ItemResult
from .merge import merge_runs as merge_runs, run_shard as run_shard
from .rescore import HealthBenchScore as HealthBenchScore, healthbench_score as healthbench_score
from .result import EvalResult as EvalResult
from .review import (
    disputed_items as disputed_items,
    fill_ground_truth as fill_ground_truth,
    fill_ground_truth_sync as fill_ground_truth_sync,
)
from .run_setup import RunSetup as RunSetup, load_run as load_run
from .runner import EvalRunner as EvalRunner, evaluate as evaluate, evaluate_sync as evaluate_sync

__all__: list[str]
