"""`autorubric metrics`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

import autorubric
from autorubric.cli._output import Exit, JsonFlag, guarded, notice, print_json
from autorubric.cli._tables import print_blocks
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.metrics import MetricsResult

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.", show_default=False)]
LabelledFile = Annotated[
    Path | None,
    typer.Option(
        "--dataset",
        metavar="D",
        help="The graded dataset with other labels; those stored with the run if left out.",
        show_default=False,
    ),
]
Bootstrap = Annotated[
    bool, typer.Option("--bootstrap", help="Give intervals by resampling items.", show_default=False)
]
PerJudge = Annotated[
    bool,
    typer.Option("--per-judge", help="Give each judge's figures beside the panel's.", show_default=False),
]
TrustFailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under",
        metavar="FIGURE=X",
        help="Exit with 1 if a figure of the panel is below X; repeat it. accuracy, balanced_accuracy, "
        "precision, recall, f1 and kappa are means over criteria; spearman, kendall and pearson are those of "
        "the scores; kappa@NAME is that of one criterion, and so for accuracy, f1 and the like.",
        show_default=False,
    ),
]
_MEANS = {
    "accuracy": "criterion_accuracy",
    "balanced_accuracy": "criterion_balanced_accuracy",
    "precision": "criterion_precision",
    "recall": "criterion_recall",
    "f1": "criterion_f1",
    "kappa": "mean_kappa",
}
_OF_SCORES = {name: f"score_{name}" for name in ("spearman", "kendall", "pearson")}


@guarded
def metrics(
    run: RunFolder,
    dataset: LabelledFile = None,
    bootstrap: Bootstrap = False,
    per_judge: PerJudge = False,
    fail_under: TrustFailUnder = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Measure a run's judges against the labels that people gave.

    With --json the object has: run, and metrics, the figures as `MetricsResult.to_dict` names them.

    \b
    Examples:
      autorubric metrics experiments/essays-1 --per-judge --bootstrap
      autorubric metrics experiments/essays-1 --fail-under kappa=0.6

    Exit codes: 0 done, 1 below --fail-under, 2 faulty command line, file or run folder, 3 a figure of
    --fail-under is undefined.
    """
    gates = [_gate(one) for one in fail_under or []]
    result = autorubric.EvalResult.from_experiment(run)
    labelled = autorubric.RubricDataset.from_file(dataset) if dataset is not None else None
    found = result.compute_metrics(labelled, bootstrap=bootstrap, per_judge=per_judge)
    if not found.na_stats.n_cells:
        raise ArgumentError(
            f"{run} has no labels to measure against; give the labelled dataset with --dataset"
        )
    for text in result.notices:
        notice(text)
    if as_json:
        print_json({"run": str(run), "metrics": found.to_dict()})
    else:
        print_blocks(found.blocks())
    return _pass(gates, found)


class _Gate(NamedTuple):
    """What a figure is to reach: of one criterion, or of all."""

    told: str
    figure: str
    criterion: str | None
    least: float


def _gate(given: str) -> _Gate:
    what, equals, least = given.rpartition("=")
    figure, at, criterion = what.partition("@")
    try:
        bound = float(least)
    except ValueError:
        bound = math.nan
    if not equals or not math.isfinite(bound) or (at and not criterion):
        raise ArgumentError(f"--fail-under {given!r}; give FIGURE=X, as kappa=0.6 or kappa@tone=0.4")
    if figure not in _MEANS and (at or figure not in _OF_SCORES):
        allowed = ", ".join(_MEANS if at else [*_MEANS, *_OF_SCORES])
        raise ArgumentError(f"--fail-under {given!r}: no figure is called {figure!r}; allowed: {allowed}")
    return _Gate(what, figure, criterion or None, bound)


def _pass(gates: Sequence[_Gate], found: MetricsResult) -> Exit:
    """Tells of every gate that is not passed; an undefined figure passes none."""
    worst = Exit.DONE
    for gate in gates:
        value = _value(gate, found)
        if value is None:
            notice(f"{gate.told} is undefined, so that it cannot reach {gate.least:g}")
            worst = Exit.UNJUDGED
        elif value < gate.least:
            notice(f"{gate.told} is {value:.3f}, below {gate.least:g}")
            worst = worst or Exit.BELOW
    return worst


def _value(gate: _Gate, found: MetricsResult) -> float | None:
    if gate.criterion is None:
        value = getattr(found, (_MEANS | _OF_SCORES)[gate.figure])
        return value if isinstance(value, float | None) else value.coefficient
    own = next((one for one in found.per_criterion if one.name == gate.criterion), None)
    if own is None:
        names = ", ".join(one.name for one in found.per_criterion)
        raise ArgumentError(f"no criterion {gate.criterion!r} has figures; there are: {names}")
    # On ordered scales a near miss counts in part, and on all scales of options hits are exact ones.
    spelt = {"kappa": ("weighted_kappa", "kappa"), "accuracy": ("exact_accuracy", "accuracy")}
    values = [getattr(own, name, None) for name in spelt.get(gate.figure, (gate.figure,))]
    return next((value for value in values if value is not None), None)
