"""The `autorubric metrics` command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import autorubric
from autorubric.cli import options as _datasets
from autorubric.cli.output import Exit, JsonFlag, MaxLost, notice, print_json, report_errors, too_many_missing
from autorubric.cli.runs import check_gates, count_labelled_verdicts, needs_bootstrap, read_gates
from autorubric.cli.tables import print_blocks
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.datasets.item import TruthRule
    from autorubric.runs.result import EvalResult


RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.", show_default=False)]
LabelledFile = Annotated[
    Path | None,
    _datasets.option(
        "--dataset",
        "D",
        "Dataset with other labels for the graded items.  [default: the labels stored with the run]",
    ),
]
LabelTable = Annotated[
    Path | None,
    _datasets.option(
        "--labels",
        "FILE",
        "File with human labels that replace those stored with the run: a table (CSV, TSV) with one row "
        "per label (item_id, criterion, rater, value) or one column per annotator (item_id, criterion and "
        "names), or the labels.jsonl of `autorubric view`.",
    ),
]
Bootstrap = Annotated[
    bool, typer.Option("--bootstrap", help="Show bootstrap intervals over items.", show_default=False)
]
PerJudge = Annotated[
    bool,
    typer.Option("--per-judge", help="Show each judge's metrics next to the panel's.", show_default=False),
]
Truth = Annotated[
    Literal["mode", "majority", "median", "mean"] | None,
    _datasets.option(
        "--truth",
        "RULE",
        "How to combine several annotators' labels: mode, majority (more than half), median or mean. "
        " [default: median for ordinal scales, mean for numbers, otherwise mode]",
    ),
]
TrustFailUnder = Annotated[
    list[str] | None,
    _datasets.option(
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


def labelled_dataset(
    result: EvalResult,
    dataset: Path | None,
    truth: TruthRule | None,
    labels: Path | None = None,
    raters: Sequence[str] | None = None,
) -> RubricDataset | None:
    """Return the dataset with the labels to compare with, or None for the labels stored with the run."""
    if raters and labels is None:
        raise ArgumentError("--rater requires --labels FILE, the file that contains the raters")
    labelled = autorubric.RubricDataset.from_file(dataset) if dataset is not None else None
    if labels is not None:
        stored = result.dataset if labelled is None else labelled
        bare = [item.model_copy(update={"ground_truth": None, "ratings": {}}) for item in stored]
        labelled = stored.with_items(bare).with_ratings(labels, raters=raters or None)
        _datasets.notice_labels(labels, labelled, raters)
    if truth is None:
        return labelled
    return (result.dataset if labelled is None else labelled).with_truth(truth)


@report_errors
def metrics(  # noqa: PLR0913 - one parameter an option
    run: RunFolder,
    dataset: LabelledFile = None,
    labels: LabelTable = None,
    rater: _datasets.Raters = None,
    bootstrap: Bootstrap = False,
    per_judge: PerJudge = False,
    truth: Truth = None,
    fail_under: TrustFailUnder = None,
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
    result = autorubric.EvalResult.from_experiment(run)
    labelled = labelled_dataset(result, dataset, truth, labels, rater)
    found = result.compute_metrics(
        labelled, bootstrap=bootstrap or needs_bootstrap(gates), per_judge=per_judge
    )
    if not found.na_stats.n_cells:
        raise ArgumentError(f"{run} has no labels; pass --labels FILE, or a labelled dataset with --dataset")
    for text in result.notices:
        notice(text)
    if as_json:
        verdicts = count_labelled_verdicts(result, labelled).to_dict()
        print_json({"run": str(run), "verdicts": verdicts, "metrics": found.to_dict()})
    else:
        print_blocks(found.blocks())
    if not gates and max_lost is None:
        return Exit.DONE
    criteria = dict.fromkeys(gate.criterion for gate in gates) or (None,)
    missing = [
        too_many_missing(count_labelled_verdicts(result, labelled, name), max_lost, name or "")
        for name in criteria
    ]
    code = check_gates(gates, found)
    return Exit.UNJUDGED if any(missing) else code
