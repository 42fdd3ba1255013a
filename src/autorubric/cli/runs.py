"""Steps that commands on runs share: starting, resuming, opening and counting."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import autorubric
from autorubric.cli.app import Exit, notice, stoppable
from autorubric.criteria.values import VerdictCounts
from autorubric.runs.config import EvalConfig, StopReason


def run_resumable(
    dataset: autorubric.RubricDataset,
    grader: autorubric.grading.Grader,
    *,
    resume_command: str,
    shard: tuple[int, int] | None = None,
    preflight: bool = False,
    **options: Any,
) -> autorubric.EvalResult:
    """Run an evaluation and return its result; if it is interrupted, print how to resume it."""
    dataset, config = shard_inputs(dataset, EvalConfig(**options), shard)
    folder = config.experiments_dir / str(config.experiment_name)
    if not folder.exists():
        # A key that is missing must not leave an empty run.
        for model in grader.models:
            model.key()
    if preflight and grader.models:
        # Before the run, since a server that does not answer keeps it waiting.
        longest = max(model.timeout for model in grader.models)
        notice(f"each model gets a test request first (up to {longest:g} s; --no-preflight skips it) …")
    with stoppable(folder, done="judged", command=resume_command):
        runner = autorubric.EvalRunner(
            dataset, grader, config, preflight=_report_check if preflight else None
        )
        return runner.run_sync()


def _report_check(check: autorubric.runs.preflight.JudgeCheck) -> None:
    cost = "cost unknown" if check.cost is None else f"${check.cost:.4f}"
    seconds = "" if check.seconds is None else f", {check.seconds:.1f} s"
    notice(f"judge {check.judge_id}: ok{seconds}, {cost}")


def report_stop(reason: StopReason, resume_command: str, *, batch: bool = False) -> Exit:
    """Print why a run was stopped and how to resume it, and return the exit code."""
    if reason == "same_error":
        notice(
            f"Stopped: a judge kept failing with the same error. Fix it, then run {resume_command} to resume."
        )
        return Exit.UNJUDGED
    if reason == "batch":
        notice(f"Waiting for batches of the provider. To collect the replies, run {resume_command}.")
        return Exit.WAITING
    flag = f"--{reason.replace('_', '-')}"
    more = f"; to send more requests, increase {flag}, which limits all batches of a run" if batch else ""
    notice(f"Stopped at {flag}. To resume, run {resume_command}{more}.")
    return Exit.STOPPED


def shard_inputs(
    dataset: autorubric.RubricDataset, config: EvalConfig, shard: tuple[int, int] | None
) -> tuple[autorubric.RubricDataset, EvalConfig]:
    """Return the dataset and run options for a shard; without a shard, return both unchanged."""
    return (dataset, config) if shard is None else autorubric.runs.merge.shard_of(dataset, config, *shard)


def new_run_name(stem: str, folder: Path) -> str:
    """Return a name for a new run, derived from a file name and the time."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-_") or "run"
    name = f"{plain}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(name for name in names if not (folder / name).exists())


def open_stored_run(folder: Path) -> autorubric.EvalResult:
    """Open a stored run, and print its notices."""
    result = autorubric.EvalResult.from_experiment(folder)
    notice(*result.notices)
    return result


def run_counts(result: autorubric.EvalResult) -> dict[str, Any]:
    """Return a run's item and verdict counts by outcome and its mean score, as printed by `--json`."""
    return {
        "total_items": result.total_items,
        "successful_items": result.successful_items,
        "partly_scored_items": result.partly_scored_items,
        "failed_items": result.failed_items,
        "unfinished_items": result.unfinished_items,
        "mean_score": mean_score(result),
        "verdicts": result.verdicts.to_dict(),
    }


def labelled_verdicts(
    result: autorubric.EvalResult,
    dataset: autorubric.RubricDataset | None = None,
    criterion: str | None = None,
) -> VerdictCounts:
    """Count a run's verdicts on labelled criteria, which are the basis of its metrics."""
    labelled = result.dataset if dataset is None else dataset
    truths = {labelled.item_id(at): labelled.item_truth(at) or {} for at in range(len(labelled))}
    counts = []

    def labelled_names(position: int) -> set[str]:
        labels = truths.get(result.dataset.item_id(position), {})
        names = {name for name, label in labels.items() if label is not None}
        return names if criterion is None else names & {criterion}

    def n_due(position: int) -> int:
        due = result.item_results.due(position)
        return sum(due[name].total() for name in labelled_names(position) & due.keys())

    for item in result.item_results:
        if item.report is None:
            counts.append(VerdictCounts.all_lost(n_due(item.item_idx), item.error))
        else:
            names = labelled_names(item.item_idx)
            counts += [one.verdicts for one in item.report.report if one.name in names]
    counts.append(VerdictCounts(not_judged=sum(map(n_due, result.item_results.unfinished()))))
    return VerdictCounts.sum(counts)


def mean_score(result: autorubric.EvalResult) -> float | None:
    """Return the mean score over the scored items, or None if no item has a score."""
    return result.item_results.tally.mean_score


CRITERION_FIELDS: Final = {"accuracy": ("exact_accuracy", "accuracy"), "kappa": ("weighted_kappa", "kappa")}
"""Fields of a criterion's metrics, the one that fits ordered scales first: near misses count in part."""


def criterion_figure(found: object, name: str) -> float | None:
    """Return a metric of a criterion; None if it is undefined or not available for its level."""
    values = (getattr(found, field, None) for field in CRITERION_FIELDS.get(name, (name,)))
    return next((one for one in values if one is not None), None)
