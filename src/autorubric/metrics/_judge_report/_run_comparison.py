"""Pairwise comparison of the judges of a run on the same cells, and of the panel with the best judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from autorubric._blocks import Block, Cell, TableBlock, TextBlock, p_cell
from autorubric.dataset import TruthRule
from autorubric.errors import ArgumentError
from autorubric.metrics._audit._findings import Findings
from autorubric.metrics._cells import Cells, Modes, cells_of
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._item_scores import PANEL, Rater
from autorubric.metrics._judge_comparison._compare import JudgeComparison, compare_judges
from autorubric.metrics._judge_comparison._stats import adjust_pvalues
from autorubric.metrics._label_table import table_of
from autorubric.metrics._options import IntervalArguments, Resampling
from autorubric.metrics._resampling import Array
from autorubric.metrics._run_protocols import LabelledDataset
from autorubric.metrics._scales import Binary, Scale

RunStat: TypeAlias = Literal["accuracy", "mae"]
Adjustment: TypeAlias = Literal["holm", "bh", "by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePair:
    """Comparison of two raters of a run.

    Attributes:
        a: Name of the first rater.
        b: Name of the second rater.
        comparison: Result of `compare_judges`, with the cells of each item as a cluster.
        adjusted_p: P-value adjusted for all comparisons of the run.
        coverage: Of the labelled cells (item-criterion pairs) that the metric applies to, the fraction
            that both raters answered.
    """

    a: str
    b: str
    comparison: JudgeComparison
    adjusted_p: float | None
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison(Findings):
    """Pairwise comparisons of a run's judges, and a comparison of the panel with the best judge.

    Attributes:
        stat: Metric used for the comparison.
        adjustment: Method that adjusts p-values for multiple comparisons.
        n_items: Number of items with a label.
        n_tied_labels: Number of cells (pairs of item and criterion) that have no label because annotators'
            labels tie; None if there are fewer than two annotators.
        judges: Comparison of each pair of judges.
        panel: Comparison of the panel (a) with the best single judge (b), which is selected on the same
            items; this overstates its quality. Cells on which the judges' votes tie are excluded. None if
            there are fewer than two judges, or if the metric is undefined for all judges.
        n_ties: Number of labelled cells suited to `stat` on which the judges' votes tie.
        n_ties_answered: Number of tied cells that the panel still answers.
    """

    stat: RunStat
    adjustment: Adjustment
    n_items: int
    n_tied_labels: int | None
    judges: tuple[JudgePair, ...]
    panel: JudgePair | None
    n_ties: int
    n_ties_answered: int

    def blocks(self) -> list[Block]:
        """Return the comparisons as content blocks for the text, HTML and LaTeX renderers."""
        words = {"accuracy": "accuracy", "mae": "mean absolute error of values (lower is better)"}
        title = words[self.stat]
        columns = (
            "a, b",
            "figure of a",
            "figure of b",
            "a - b",
            "interval",
            "p",
            f"p ({self.adjustment})",
            "n",
            "coverage",
        )
        blocks: list[Block] = []
        if self.panel is not None:
            panel = TableBlock(
                title=f"Panel and best judge: {title}", columns=columns, rows=(_row(self.panel),)
            )
            blocks.append(panel)
            flattered = "The best judge was selected on the same items, which overstates its quality."
            blocks.append(TextBlock(text=flattered + self._ties()))
        if not self.judges:
            return [TextBlock(title="Judges", text="There are fewer than two judges to compare.")]
        rows = tuple(_row(one) for one in self.judges)
        return [TableBlock(title=f"Pairs of judges: {title}", columns=columns, rows=rows), *blocks]

    def _ties(self) -> str:
        """Describe how cells with tied votes are handled."""
        if not self.n_ties:
            return ""
        answered = f" (the panel answers {self.n_ties_answered} of them)" if self.n_ties_answered else ""
        return (
            f" The comparison of the panel excludes {self.n_ties} labelled cells with tied votes{answered}."
        )


def _row(pair: JudgePair) -> tuple[Cell, ...]:
    found = pair.comparison
    difference: Estimate = found.difference
    ends = "" if difference.low is None else f"[{difference.low:.3f}, {difference.high:.3f}]"
    return (
        f"{pair.a}, {pair.b}",
        found.a.value,
        found.b.value,
        difference.value,
        ends,
        p_cell(found.p_value),
        p_cell(pair.adjusted_p),
        found.n,
        pair.coverage,
    )


def compare_run(  # noqa: PLR0913 - a public entry point with many options
    result: Any,
    dataset: LabelledDataset | None = None,
    *,
    stat: RunStat | None = None,
    adjustment: Adjustment = "holm",
    scales: Scale | Mapping[str, Scale] | None = None,
    truth: TruthRule | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> RunComparison:
    """Compare each pair of a run's judges on the cells that both answered, and the panel with the best judge.

    Each comparison uses `compare_judges` with items as clusters. Abstentions, failures and, for the panel,
    cells on which the judges' votes tie are excluded. A cell is a pair of item and criterion.

    Args:
        result: An `EvalResult` or a long table of labels.
        dataset: Dataset with the labels; None uses the run's dataset.
        stat: `"accuracy"`, the proportion of correct answers on categorical criteria, or `"mae"`, the mean
            absolute error of values in [0, 1]. None uses accuracy, or `"mae"` if no criterion is categorical.
        adjustment: Method that adjusts p-values; see `adjust_pvalues`.
        scales: Scales of a label table; see `judge_report`.
        truth: Rule that combines several annotators' labels; see `judge_report`.
        confidence_level: Confidence level of the intervals.
        n_resamples: Number of times that items are resampled.
        rng: Seed or numpy random generator for the resampling.

    Raises:
        ArgumentError: If the metric or adjustment is unknown, or the table cannot be read.
    """
    if stat is not None and stat not in get_args(RunStat):
        raise ArgumentError(f"stat must be one of {list(get_args(RunStat))} or None; got {stat!r}")
    resampling = Resampling(confidence_level=confidence_level, n_resamples=n_resamples, rng=rng).fixed()
    table = table_of(result, dataset, scales=scales, truth=truth)
    cells = cells_of(table, Modes())
    categorical = np.zeros(len(cells.item), dtype=bool)
    for criterion, span in zip(cells.criteria, cells.spans, strict=True):
        categorical[span] = criterion.level in ("binary", "nominal", "ordinal")
    usual: RunStat = "accuracy" if categorical.any() else "mae"
    compared = _Compared(cells, categorical, stat or usual, resampling)
    judges: list[Rater] = [("judge", name) for name in table.judges]
    pairs = [(a, b, compared.of(a, b)) for a, b in combinations(judges, 2)]
    best = compared.best(judges) if len(judges) > 1 else None
    if best is not None:
        pairs.append((PANEL, best, compared.of(PANEL, best)))
    adjusted = adjust_pvalues([found.p_value for _, _, found in pairs], adjustment)
    made = [
        JudgePair(a=a[1], b=b[1], comparison=found, adjusted_p=p, coverage=compared.coverage(found.n))
        for (a, b, found), p in zip(pairs, adjusted, strict=True)
    ]
    tied = compared.labelled & cells.tied
    return RunComparison(
        stat=compared.stat,
        adjustment=adjustment,
        n_items=len(np.unique(cells.item[cells.truth.status > 0])),
        n_tied_labels=table.n_tied_labels if table.n_people > 1 else None,
        judges=tuple(made if best is None else made[:-1]),
        panel=None if best is None else made[-1],
        n_ties=int(np.count_nonzero(tied)),
        n_ties_answered=int(np.count_nonzero(tied & cells.raters[PANEL].answered)),
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """Cells to compare and settings for the comparisons."""

    cells: Cells
    categorical: Array
    stat: RunStat
    resampling: Resampling

    @property
    def labelled(self) -> Array:
        """Mask of the cells with comparable labels, shape `(n_cells,)`."""
        truth = self.cells.truth
        return ~np.isnan(truth.value) if self.stat == "mae" else (truth.code >= 0) & self.categorical

    def coverage(self, n: int) -> float:
        """Return `n` as a fraction of the labelled cells; 0 if there are none."""
        return n / max(int(np.count_nonzero(self.labelled)), 1)

    def of(self, a: Rater, b: Rater) -> JudgeComparison:
        """Compare two raters on the cells that both answered, excluding ties if one is the panel."""
        truth, first, second = self.cells.truth, self.cells.raters[a], self.cells.raters[b]
        if PANEL in (a, b):
            first, second = (one.only(~self.cells.tied) for one in (first, second))
        interval: IntervalArguments = {
            "cluster": self.cells.item,
            "confidence_level": self.resampling.confidence_level,
            "n_resamples": self.resampling.n_resamples,
            "rng": self.resampling.rng,
        }
        if self.stat == "mae":
            return compare_judges(truth.value, first.value, second.value, stat="mae", **interval)
        there = _numbers(np.ones(len(truth.code)), self.labelled)
        right = [_numbers(one.code == truth.code, one.code >= 0) for one in (first, second)]
        return compare_judges(there, right[0], right[1], stat="accuracy", scale=Binary(), **interval)

    def best(self, judges: list[Rater]) -> Rater | None:
        """Return the judge with the best metric on the cells it answered; None if all are undefined."""
        alone = {one: value for one in judges if (value := self.of(one, one).a.value) is not None}
        if not alone:
            return None
        return (min if self.stat == "mae" else max)(alone, key=lambda one: alone[one])


def _numbers(values: Array, there: Array) -> Array:
    return np.where(there, values, np.nan)
