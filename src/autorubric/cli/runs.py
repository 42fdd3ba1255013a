"""Stored runs as arguments, and gates on metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import autorubric
from autorubric.cli.output import Exit, notice, stoppable
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.criteria.values import VerdictCounts
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.grading.base import Grader
    from autorubric.metrics.summaries.compute import MetricsResult
    from autorubric.runs.config import EvalConfig, StopReason
    from autorubric.runs.preflight import JudgeCheck
    from autorubric.runs.result import EvalResult


def run_resumable(
    dataset: RubricDataset,
    grader: Grader,
    *,
    how_to_go_on: str,
    shard: tuple[int, int] | None = None,
    preflight: bool = False,
    **options: Any,
) -> EvalResult:
    """Run an evaluation and return its result; if it is interrupted, print how to resume it."""
    dataset, config = shard_options(dataset, autorubric.EvalConfig(**options), shard)
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


def shard_options(
    dataset: RubricDataset, config: EvalConfig, shard: tuple[int, int] | None
) -> tuple[RubricDataset, EvalConfig]:
    """Return the dataset and run options for a shard; without a shard, return both unchanged."""
    if shard is None:
        return dataset, config
    from autorubric.runs.merge import shard_of

    return shard_of(dataset, config, *shard)


def default_run_name(stem: str, folder: Path) -> str:
    """Return a name for a new run, derived from a file name and the time."""
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


def count_labelled_verdicts(
    result: EvalResult, dataset: RubricDataset | None = None, criterion: str | None = None
) -> VerdictCounts:
    """Count a run's verdicts on labelled criteria, which are the basis of its metrics."""
    from autorubric.criteria.values import VerdictCounts

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


_MEANS: Final = {
    "accuracy": "criterion_accuracy",
    "balanced_accuracy": "criterion_balanced_accuracy",
    "precision": "criterion_precision",
    "recall": "criterion_recall",
    "sensitivity": "criterion_sensitivity",
    "specificity": "criterion_specificity",
    "f1": "criterion_f1",
    "kappa": "mean_kappa",
}
_OF_SCORES: Final = {name: f"score_{name}" for name in ("spearman", "kendall", "pearson")}
_ALIASES: Final = {"tpr": "sensitivity", "tnr": "specificity"}
_LOW: Final = ".low"
_WITH_ENDS: Final = ("sensitivity", "specificity", *_OF_SCORES)
_BOOTSTRAPPED: Final = ("accuracy", "kappa")
"""Metrics whose mean over criteria has a bootstrap interval."""
_NAMES: Final = "|".join(map(re.escape, [*_ALIASES, *_MEANS, *_OF_SCORES]))
# Names of criteria may hold commas: one that separates gates is followed by the name of a figure.
_BETWEEN: Final = re.compile(rf",(?=\s*(?:{_NAMES})(?:{re.escape(_LOW)})?[@=])")


class MetricGate(NamedTuple):
    """A minimum for a metric, over all criteria or for one criterion.

    Attributes:
        text: Left side of the gate as entered, such as `tnr.low@apology`.
        figure: Name of the metric, with aliases resolved.
        criterion: Name of the criterion; None for all.
        low: Whether the gate applies to the lower bound of the interval instead of the metric.
        least: Smallest value that passes.
    """

    text: str
    figure: str
    criterion: str | None
    low: bool
    least: float


def read_gates(values: Sequence[str]) -> list[MetricGate]:
    """Parse `--fail-under` values into gates."""
    return [_gate(part.strip()) for value in values for part in _BETWEEN.split(value)]


def _gate(value: str) -> MetricGate:
    text, equals, bound = value.rpartition("=")
    figure, at, criterion = text.partition("@")
    low = figure.endswith(_LOW)
    name = figure.removesuffix(_LOW)
    try:
        least = float(bound)
    except ValueError:
        least = math.nan
    if not equals or not math.isfinite(least) or (at and not criterion):
        raise ArgumentError(
            f"--fail-under must be METRIC=X, such as tpr=.9, kappa@tone=0.4 or tnr.low=.8; got {value!r}"
        )
    known = _ALIASES.get(name, name)
    if known not in _MEANS and (at or known not in _OF_SCORES):
        allowed = ", ".join([*_ALIASES, *_MEANS] if at else [*_ALIASES, *_MEANS, *_OF_SCORES])
        raise ArgumentError(f"--fail-under {value!r}: unknown metric {name!r}; available: {allowed}")
    # Recall is sensitivity, which has an interval.
    known = "sensitivity" if low and known == "recall" else known
    ends = _WITH_ENDS if at else (*_WITH_ENDS, *_BOOTSTRAPPED)
    if low and known not in ends:
        where = f"{name} of one criterion" if known in _BOOTSTRAPPED else name
        raise ArgumentError(
            f"--fail-under {value!r}: .low is not available for {where}, but for: tpr, tnr, recall, "
            f"{', '.join(ends)}"
        )
    if least > 1:
        raise ArgumentError(f"--fail-under {value!r}: metrics are at most 1, so {least:g} always fails")
    return MetricGate(text, known, criterion or None, low, least)


def needs_bootstrap(gates: Sequence[MetricGate]) -> bool:
    """Return whether a gate applies to a bootstrap interval."""
    return any(gate.low and gate.figure in _BOOTSTRAPPED for gate in gates)


def check_gates(gates: Sequence[MetricGate], found: MetricsResult) -> Exit:
    """Print each failed gate and return the exit code; a gate fails if its metric is undefined."""
    worst = Exit.DONE
    for gate in gates:
        value, reason = _value(gate, found)
        if value is None:
            notice(f"{gate.text} is undefined ({reason}), so it cannot reach {gate.least:g}")
            worst = Exit.UNJUDGED
        elif value < gate.least:
            notice(f"{gate.text} is {value:.3f}, below {gate.least:g}")
            worst = worst or Exit.BELOW
        if value is not None and gate.criterion is None and gate.figure in _MEANS:
            done, of = found.defined[_MEANS[gate.figure]]
            if done < of:
                notice(f"{gate.text} is the mean over {done} of {of} criteria; it is undefined on the others")
    return worst


def _value(gate: MetricGate, found: MetricsResult) -> tuple[float | None, str]:
    """Return the gate's metric, or None and the reason."""
    if gate.criterion is not None:
        return _on_criterion(gate, gate.criterion, found)
    if gate.figure in _OF_SCORES:
        scored = getattr(found, _OF_SCORES[gate.figure])
        ends = scored.ci.lower if scored.ci else None
        return (ends if gate.low else scored.coefficient), scored.reason or "too few items for an interval"
    name = _MEANS[gate.figure]
    if gate.low and getattr(found, name) is not None:
        if gate.figure in _BOOTSTRAPPED:
            ends = getattr(found.bootstrap, f"{gate.figure}_ci")
        else:
            ends = getattr(found, f"{name}_ci")
        return (ends.lower if ends else None), "too few items for an interval"
    return getattr(found, name), _why_no_mean(gate.figure, found)


def _why_no_mean(figure: str, found: MetricsResult) -> str:
    of = found.defined[_MEANS[figure]][1]
    if figure in ("precision", "recall", "sensitivity", "specificity", "f1") and not of:
        return "no criterion is binary"
    label = {"sensitivity": "MET", "recall": "MET", "specificity": "UNMET"}.get(figure)
    return f"no criterion has an answered item labelled {label}" if label else "no criterion has this metric"


def _on_criterion(gate: MetricGate, name: str, found: MetricsResult) -> tuple[float | None, str]:
    own = next((one for one in found.per_criterion if one.name == name), None)
    if own is None:
        names = ", ".join(one.name for one in found.per_criterion)
        raise ArgumentError(f"criterion {name!r} has no metrics. Criteria: {names}")
    # On ordered scales a near miss counts in part, and on all scales of options hits are exact ones.
    fields = {"kappa": ("weighted_kappa", "kappa"), "accuracy": ("exact_accuracy", "accuracy")}
    names_of = fields.get(gate.figure, (gate.figure,))
    if not any(hasattr(own, field) for field in names_of):
        return None, f"not computed for {own.criterion_type} criteria"
    if gate.low:
        ends = getattr(own, f"{gate.figure}_ci")
        value = ends.lower if ends else None
    else:
        values = [getattr(own, field, None) for field in names_of]
        value = next((one for one in values if one is not None), None)
    reasons = [own.reasons[field] for field in names_of if field in own.reasons]
    words = {
        "no_positive_in_truth": "no answered item is labelled MET",
        "no_negative_in_truth": "no answered item is labelled UNMET",
    }
    return value, next((words.get(reason, reason) for reason in reasons), "no interval")
