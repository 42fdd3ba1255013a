"""The `autorubric metrics` and `autorubric compare` commands, with gates on metrics."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import autorubric
from autorubric.cli.command import Exit, guarded, notice, too_many_missing
from autorubric.cli.options import (
    JsonFlag,
    LabelledFile,
    Labels,
    MaxLost,
    RunFolder,
    Seed,
    Truth,
    argument,
    flag,
    option,
)
from autorubric.cli.output import print_result
from autorubric.cli.runs import labelled_verdicts, open_run
from autorubric.errors import ArgumentError

FailUnder = Annotated[
    list[str] | None,
    option(
        "--fail-under",
        "METRIC=X",
        "Exit with code 1 if a panel metric is below X. For several, repeat or separate by commas. "
        "accuracy, balanced_accuracy, precision, recall, tpr (sensitivity), tnr (specificity), f1 and kappa "
        "are means over criteria; spearman, kendall and pearson are correlations of scores. Add @NAME for "
        "one criterion's metric, such as tnr@NAME. Add .low for the lower confidence bound of tpr, tnr, "
        "spearman, kendall, pearson, accuracy or kappa, such as tnr.low, tnr.low@NAME or kappa.low (which "
        "implies --bootstrap).",
    ),
]


@guarded
def metrics(  # noqa: PLR0913 - one parameter per option
    run: RunFolder,
    labels: Labels,
    bootstrap: Annotated[bool, flag("--bootstrap", "Show bootstrap intervals over items.")] = False,
    per_judge: Annotated[bool, flag("--per-judge", "Show each judge's metrics next to the panel's.")] = False,
    truth: Truth = None,
    fail_under: FailUnder = None,
    max_lost: MaxLost = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Measure a run's judges against human labels.

    With --json, prints an object with the keys run, verdicts (on labelled criteria, as for `eval`) and
    metrics (as in `MetricsResult.to_dict`).

    \b
    Examples:
      autorubric metrics experiments/essays-1 --per-judge --bootstrap
      autorubric metrics experiments/essays-1 --fail-under tpr=.9,tnr=.85
      autorubric metrics experiments/essays-1 --fail-under tnr.low@apology=.8

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line, file or run folder, 3 a metric in
    --fail-under is undefined, or more of its verdicts were lost or assumed than --max-lost allows.
    """
    gates = read_gates(fail_under or [])
    result = open_run(run)
    labelled = labels.labelled(result, truth)
    found = result.compute_metrics(
        labelled, bootstrap=bootstrap or needs_bootstrap(gates), per_judge=per_judge
    )
    if not found.na_stats.n_cells:
        raise ArgumentError(f"{run} has no labels; pass --labels FILE, or a labelled dataset with --dataset")
    print_result(
        lambda: {
            "run": str(run),
            "verdicts": labelled_verdicts(result, labelled).to_dict(),
            "metrics": found.to_dict(),
        },
        found.blocks,
        as_json=as_json,
    )
    if not gates and max_lost is None:
        return Exit.DONE
    criteria = dict.fromkeys(gate.criterion for gate in gates) or (None,)
    missing = [
        too_many_missing(labelled_verdicts(result, labelled, name), max_lost, name or "") for name in criteria
    ]
    code = check_gates(gates, found)
    return Exit.UNJUDGED if any(missing) else code


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


def check_gates(gates: Sequence[MetricGate], found: autorubric.metrics.MetricsResult) -> Exit:
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


def _value(gate: MetricGate, found: autorubric.metrics.MetricsResult) -> tuple[float | None, str]:
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


def _why_no_mean(figure: str, found: autorubric.metrics.MetricsResult) -> str:
    of = found.defined[_MEANS[figure]][1]
    if figure in ("precision", "recall", "sensitivity", "specificity", "f1") and not of:
        return "no criterion is binary"
    label = {"sensitivity": "MET", "recall": "MET", "specificity": "UNMET"}.get(figure)
    return f"no criterion has an answered item labelled {label}" if label else "no criterion has this metric"


def _on_criterion(
    gate: MetricGate, name: str, found: autorubric.metrics.MetricsResult
) -> tuple[float | None, str]:
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


Baseline = Annotated[Path, argument("RUN1", "Folder of the earlier (baseline) run.")]
Compared = Annotated[Path, argument("RUN2", "Folder of the later run.")]
FailOnRegression = Annotated[
    bool,
    flag(
        "--fail-on-regression",
        "Exit with code 1 if RUN2 has lower scores, that is, if the confidence interval of the mean "
        "difference is entirely below 0.",
    ),
]


@guarded
def compare(
    baseline: Baseline,
    run: Compared,
    dataset: LabelledFile = None,
    fail_on_regression: FailOnRegression = False,
    max_lost: MaxLost = None,
    seed: Seed = 0,
    as_json: JsonFlag = False,
) -> Exit:
    """Compare a run with an earlier run, item by item.

    Items are matched by id. Their texts may differ, for example when two versions of a system answer the same
    questions. Differences are RUN2 - RUN1, with paired confidence intervals over items and p-values from a
    sign-flip test. P-values for criteria are adjusted for multiple comparisons (Holm).

    With --json, prints an object with the keys baseline, run, regressed (null if undecided) and difference
    (as in `RunDifference.to_dict`).

    \b
    Example:
      autorubric compare experiments/before experiments/after --fail-on-regression

    Exit codes: 0 success, 1 lower scores (--fail-on-regression), 2 invalid command line, file or run folder,
    3 too few items to decide, or more verdicts lost or assumed in a run than --max-lost allows.
    """
    with warnings.catch_warnings():
        # The notices repeat the warnings and name the run.
        warnings.simplefilter("ignore", RuntimeWarning)
        before, after = (autorubric.EvalResult.from_experiment(one) for one in (baseline, run))
    for one in (before, after):
        notice(*(f"{one.experiment_name}: {text}" for text in one.notices))
    labelled = autorubric.RubricDataset.from_file(dataset) if dataset is not None else None
    found = autorubric.metrics.run_difference(before, after, labelled, rng=seed)
    runs = {"baseline": str(baseline), "run": str(run)}
    print_result(
        lambda: {**runs, "regressed": found.regressed, "difference": found.to_dict()},
        found.blocks,
        as_json=as_json,
    )
    if not fail_on_regression and max_lost is None:
        return Exit.DONE
    sides = (("the baseline", before), ("the run", after))
    missing = [too_many_missing(one.verdicts, max_lost, side) for side, one in sides]
    if any(missing):
        return Exit.UNJUDGED
    if not fail_on_regression:
        return Exit.DONE
    if found.regressed is None:
        notice("Too few items have a score in both runs to decide whether the scores are lower.")
        return Exit.UNJUDGED
    return Exit.BELOW if found.regressed else Exit.DONE
