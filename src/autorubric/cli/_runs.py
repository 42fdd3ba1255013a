"""Runs that the user can stop and resume."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import autorubric
from autorubric.cli._output import Exit, notice, stoppable

if TYPE_CHECKING:
    from autorubric.dataset import RubricDataset
    from autorubric.eval import EvalConfig, EvalResult
    from autorubric.eval._config import StopReason
    from autorubric.eval._preflight import JudgeCheck
    from autorubric.graders import Grader
    from autorubric.values import VerdictCounts


def run_resumable(
    dataset: RubricDataset,
    grader: Grader,
    *,
    how_to_go_on: str,
    shard: tuple[int, int] | None = None,
    preflight: bool = False,
    **options: Any,
) -> EvalResult:
    """Run an evaluation and return its result; if it is interrupted, print how to resume it.

    Args:
        dataset: The dataset to grade.
        grader: The grader.
        how_to_go_on: Description of the command that resumes the run.
        shard: Shard index and number of shards; None for the whole dataset.
        preflight: Whether to send a test request to each model before all other requests.
        options: Fields of `EvalConfig`, including the name of the run.

    Raises:
        KeyboardInterrupt: If the user stopped the run.
    """
    dataset, config = sharded(dataset, autorubric.EvalConfig(**options), shard)
    folder = config.experiments_dir / str(config.experiment_name)
    if not folder.exists():
        # A key that is missing must not leave an empty run.
        for model in grader.models:
            model.key()
    if preflight and grader.models:
        # Before the run, since a server that does not answer keeps it waiting.
        longest = max(model.timeout for model in grader.models)
        notice(f"each model gets a test request first (up to {longest:g} s; --no-preflight skips it) …")
    with stoppable(folder, done="judged", how_to_go_on=how_to_go_on):
        runner = autorubric.EvalRunner(
            dataset, grader, config, preflight=_report_check if preflight else None
        )
        return runner.run_sync()


def _report_check(check: JudgeCheck) -> None:
    """Print that a judge answered its first request."""
    cost = "cost unknown" if check.cost is None else f"${check.cost:.4f}"
    seconds = "" if check.seconds is None else f", {check.seconds:.1f} s"
    notice(f"judge {check.judge_id}: ok{seconds}, {cost}")


def report_stop(reason: StopReason, how_to_go_on: str) -> Exit:
    """Print why a run was stopped and how to resume it, and return the exit code."""
    if reason == "same_error":
        notice(
            f"Stopped: a judge kept failing with the same error. Fix it, then run {how_to_go_on} to resume."
        )
        return Exit.UNJUDGED
    notice(f"Stopped at --{reason.replace('_', '-')}. To resume, run {how_to_go_on}.")
    return Exit.STOPPED


def sharded(
    dataset: RubricDataset, config: EvalConfig, shard: tuple[int, int] | None
) -> tuple[RubricDataset, EvalConfig]:
    """Return the dataset and run options for a shard; without a shard, return both unchanged."""
    if shard is None:
        return dataset, config
    from autorubric.eval import shard_of

    return shard_of(dataset, config, *shard)


def made_name(stem: str, folder: Path) -> str:
    """Return a name for a new run, derived from a file name and the time.

    Args:
        stem: File name without its suffix; characters that are invalid in folder names are replaced.
        folder: Folder that contains the runs; the returned name is not in use there.
    """
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-_") or "run"
    made = f"{kept}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = chain([made], (f"{made}-{number}" for number in count(2)))
    return next(name for name in names if not (folder / name).exists())


def run_counts(result: EvalResult) -> dict[str, Any]:
    """Return a run's item and verdict counts by outcome and its mean score, as printed by `--json`."""
    return {
        "total_items": result.total_items,
        "successful_items": result.successful_items,
        "partly_scored_items": result.partly_scored_items,
        "failed_items": result.failed_items,
        "mean_score": mean_score(result),
        "verdicts": result.verdicts.to_dict(),
    }


def labelled_verdicts(
    result: EvalResult, dataset: RubricDataset | None = None, criterion: str | None = None
) -> VerdictCounts:
    """Count a run's verdicts on labelled criteria, which are the basis of its metrics.

    Args:
        result: The run.
        dataset: The labelled dataset, with items matched by id; None for the run's own dataset.
        criterion: Name of the only criterion to count; None counts all criteria.
    """
    from autorubric.values import VerdictCounts

    labelled = result.dataset if dataset is None else dataset
    truths = {labelled.item_id(at): labelled.item_truth(at) or {} for at in range(len(labelled))}
    counts = []
    for item in result.item_results:
        labels = truths.get(result.dataset.item_id(item.item_idx), {})
        names = {name for name, label in labels.items() if label is not None}
        names &= names if criterion is None else {criterion}
        if item.report is None:
            counts.append(VerdictCounts(asked=len(names), lost=len(names), lost_cause=item.error))
        else:
            counts += [one.verdicts for one in item.report.report if one.name in names]
    return VerdictCounts.sum(counts)


def mean_score(result: EvalResult) -> float | None:
    """Return the mean score over the scored items, or None if no item has a score."""
    return result.item_results.tally.mean_score
