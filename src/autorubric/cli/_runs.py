"""Runs that the user may stop and go on with."""

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
    """The run's result; where the user stops it, the command ends and says how to go on.

    Args:
        dataset: What is graded.
        grader: By whom.
        how_to_go_on: What to give on the command line to go on with the run.
        shard: Which part of the dataset, and of how many; None for all of it.
        preflight: Whether one request to each model is sent before the others.
        options: As for `EvalConfig`, with a name.

    Raises:
        KeyboardInterrupt: The user stopped it.
    """
    dataset, config = sharded(dataset, autorubric.EvalConfig(**options), shard)
    folder = config.experiments_dir / str(config.experiment_name)
    with stoppable(folder, done="judged", how_to_go_on=how_to_go_on):
        runner = autorubric.EvalRunner(
            dataset, grader, config, preflight=_report_check if preflight else None
        )
        return runner.run_sync()


def _report_check(check: JudgeCheck) -> None:
    """Print that a judge answered its first request."""
    cost = "cost unknown" if check.cost is None else f"${check.cost:.4f}"
    seconds = "" if check.seconds is None else f", {check.seconds:.1f} s"
    notice(f"judge {check.judge_id}: asking one question first … ok{seconds}, {cost}")


def report_stop(reason: StopReason, how_to_go_on: str) -> Exit:
    """Print why a run was stopped and how it is resumed; return the exit code for it."""
    if reason == "same_error":
        notice(f"Stopped because of the error above. Fix it, then run {how_to_go_on} to resume.")
        return Exit.UNJUDGED
    notice(f"Stopped at --{reason.replace('_', '-')}. To resume, run {how_to_go_on}.")
    return Exit.STOPPED


def sharded(
    dataset: RubricDataset, config: EvalConfig, shard: tuple[int, int] | None
) -> tuple[RubricDataset, EvalConfig]:
    """The part of the dataset that is graded, with the options of its run."""
    if shard is None:
        return dataset, config
    # Late, since `--help` should not wait for it.
    from autorubric.eval import shard_of

    return shard_of(dataset, config, *shard)


def made_name(stem: str, folder: Path) -> str:
    """Return a new run's name, made from a file's name and the time.

    Args:
        stem: The file's name without its suffix; characters that a folder's name cannot have are replaced.
        folder: The folder of the runs; no run in it has the returned name.
    """
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-_") or "run"
    made = f"{kept}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = chain([made], (f"{made}-{number}" for number in count(2)))
    return next(name for name in names if not (folder / name).exists())


def run_counts(result: EvalResult) -> dict[str, Any]:
    """Return how many items and verdicts a run has, by outcome, as `--json` prints them."""
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
    """Return the counts of the verdicts that figures against labels rest on.

    Args:
        result: The run.
        dataset: The labelled dataset, its items matched by id; the run's own by default.
        criterion: Name of the one criterion that is counted; None for all.
    """
    # Late, since `--help` should not wait for it.
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
    """Mean score of the items that have one; None where none has."""
    return result.item_results.tally.mean_score
