"""Comparison of a run's judges with each other, and of two runs on the same items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np

from autorubric.criteria.values import VerdictCounts
from autorubric.datasets.item import TruthRule
from autorubric.errors import ArgumentError
from autorubric.metrics.audit.compare_judges import (
    PERMUTATIONS,
    JudgeComparison,
    adjust_pvalues,
    compare_judges,
)
from autorubric.metrics.core.contingency import mean_of_defined
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.item_scores import (
    PANEL,
    CountedRun,
    LabelledDataset,
    OwnedRun,
    Rater,
    pair_items,
)
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.metric import CATEGORICAL
from autorubric.metrics.core.read_votes import Cells, Modes, cells_of
from autorubric.metrics.core.resampling import IntervalOptions, ResamplingArguments, check_choice
from autorubric.metrics.core.result import ResultBase, column_table, format_interval
from autorubric.metrics.core.scales import Array, Binary, Scale
from autorubric.metrics.figures.bias import BiasResult, bias
from autorubric.scoring.reports import EnsembleCriterionReport
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock, p_cell
from autorubric.support.objects import Json, fewer_gc_collections

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
class RunComparison(ResultBase):
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
            there is no such comparison (see `panel_reason`).
        panel_reason: Why `panel` is None: `one_judge` (fewer than two judges), `no_pairs` (the metric is
            undefined for all judges), or `no_variance` (the panel and the best judge are equally good on each
            compared item: with two judges, the panel has their own answer wherever they agree, and cells
            where they tie are excluded); None if there is a comparison.
        n_ties: Number of labelled cells suited to `stat` on which the judges' votes tie.
        n_ties_answered: Number of tied cells that the panel still answers.
    """

    stat: RunStat
    adjustment: Adjustment
    n_items: int
    n_tied_labels: int | None
    judges: tuple[JudgePair, ...]
    panel: JudgePair | None
    panel_reason: Reason | None
    n_ties: int
    n_ties_answered: int

    def blocks(self) -> list[Block]:
        """Return the comparisons as content blocks for the text, HTML and LaTeX renderers."""
        words = {"accuracy": "accuracy", "mae": "mean absolute error of values (lower is better)"}
        title = words[self.stat]
        if not self.judges:
            return [TextBlock(title="Judges", text="There are fewer than two judges to compare.")]
        blocks: list[Block] = [self._table(f"Pairs of judges: {title}", self.judges)]
        if self.panel is not None:
            flattered = "The best judge was selected on the same items, which overstates its quality."
            blocks.append(self._table(f"Panel and best judge: {title}", [self.panel]))
            blocks.append(TextBlock(text=flattered + self._ties()))
        elif self.panel_reason == "no_variance":
            alike = "The panel and the best judge are equally good on each compared item"
            if len(self.judges) == 1:
                alike = "The panel has the judges' own answer wherever they agree"
            alike = f"{alike}, so the panel and the best judge are not compared."
            blocks.append(TextBlock(text=alike + self._ties()))
        return blocks

    def _table(self, title: str, pairs: Sequence[JudgePair]) -> TableBlock:
        return column_table(
            title,
            pairs,
            {
                "a, b": lambda pair: f"{pair.a}, {pair.b}",
                "figure of a": lambda pair: pair.comparison.a.value,
                "figure of b": lambda pair: pair.comparison.b.value,
                "a - b": lambda pair: pair.comparison.difference.value,
                "interval": lambda pair: format_interval(
                    pair.comparison.difference.low, pair.comparison.difference.high
                ),
                "p": lambda pair: p_cell(pair.comparison.p_value),
                f"p ({self.adjustment})": lambda pair: p_cell(pair.adjusted_p),
                "n": lambda pair: pair.comparison.n,
                "coverage": lambda pair: pair.coverage,
            },
        )

    def _ties(self) -> str:
        """Describe how cells with tied votes are handled."""
        if not self.n_ties:
            return ""
        answered = f" (the panel answers {self.n_ties_answered} of them)" if self.n_ties_answered else ""
        return (
            f" The comparison of the panel excludes {self.n_ties} labelled cells with tied votes{answered}."
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

    Each comparison uses the permutation test of `compare_judges` with items as clusters: the judges' answers
    to an item are swapped together. The test is exact if differences are multiples of a common unit, as those
    of categorical answers are; otherwise it uses at least 20 × tests / α random swaps, so that the smallest
    adjusted p-value is α / 20. Abstentions, failures and, for the panel, cells on which the judges' votes tie
    are excluded. A cell is a pair of item and criterion. The panel is not compared with a judge that is
    equally good on each compared item, since such a test would only increase the other adjusted p-values.

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
    check_choice("stat", stat, RunStat, or_none=True)
    options = IntervalOptions(confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    table = table_of(result, dataset, scales=scales, truth=truth)
    cells = cells_of(table, Modes())
    stat = stat or ("accuracy" if _is_categorical(cells).any() else "mae")
    judges: list[Rater] = [("judge", name) for name in table.judges]
    named = list(combinations(judges, 2))
    n_swaps = math.ceil(_SWAPS * (len(named) + 1) / (1 - confidence_level))
    compared = _RaterComparisons(cells, stat, max(n_swaps, PERMUTATIONS), options.with_fixed_seed())
    best = compared.best(judges) if len(judges) > 1 else None
    why: Reason | None = "one_judge" if len(judges) < 2 else None if best else "no_pairs"
    pairs = [(a, b, compared.of(a, b)) for a, b in named]
    if best is not None:
        against = compared.of(PANEL, best)
        if against.difference.value == 0 and against.difference.reason == "no_variance":
            best, why = None, "no_variance"
        else:
            pairs.append((PANEL, best, against))
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
        panel_reason=why,
        n_ties=int(np.count_nonzero(tied)),
        n_ties_answered=int(np.count_nonzero(tied & cells.raters[PANEL].answered)),
    )


def _is_categorical(cells: Cells) -> Array:
    levels = [criterion.level in CATEGORICAL for criterion in cells.criteria]
    return np.array(levels, dtype=bool)[cells.criterion]


@dataclass(frozen=True, slots=True)
class _RaterComparisons:
    """Cells to compare and settings for the comparisons."""

    cells: Cells
    stat: RunStat
    n_permutations: int
    options: IntervalOptions

    @property
    def labelled(self) -> Array:
        """Mask of the cells with comparable labels, shape `(n_cells,)`."""
        truth = self.cells.truth
        return (
            ~np.isnan(truth.value) if self.stat == "mae" else (truth.code >= 0) & _is_categorical(self.cells)
        )

    def coverage(self, n: int) -> float:
        """Return `n` as a fraction of the labelled cells; 0 if there are none."""
        return n / max(int(np.count_nonzero(self.labelled)), 1)

    def of(self, a: Rater, b: Rater) -> JudgeComparison:
        """Compare two raters on the cells that both answered, excluding ties if one is the panel."""
        errors = [self._errors(one) for one in (a, b)]
        if PANEL in (a, b):
            errors = [np.where(self.cells.tied, np.nan, one) for one in errors]
        return compare_judges(
            np.zeros(len(self.cells.item)),
            *errors,
            stat=self.stat,
            scale=None if self.stat == "mae" else Binary(),
            method="permutation",
            n_permutations=self.n_permutations,
            **self.options.arguments(self.cells.item),
        )

    def best(self, judges: list[Rater]) -> Rater | None:
        """Return the judge with the best metric on the cells that all answered; None if undefined.

        If there are no such cells, each judge's metric is that on the cells it answered.
        """
        errors = np.stack([self._errors(one) for one in judges])
        common = ~np.isnan(errors).any(axis=0)
        means = mean_of_defined(errors[:, common] if common.any() else errors)
        return None if np.isnan(means).all() else judges[int(np.nanargmin(means))]

    def _errors(self, judge: Rater) -> Array:
        """Return a judge's errors by cell, shape `(n_cells,)`; NaN without a label or answer."""
        truth, one = self.cells.truth, self.cells.raters[judge]
        if self.stat == "mae":
            return np.asarray(np.abs(one.value - truth.value))
        return np.where(self.labelled & (one.code >= 0), one.code != truth.code, np.nan)


_SWAPS = 20
"""Random swaps per test, in units of 1 / α, so that the smallest adjusted p-value is at most α / 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Paired comparison of an item-level metric between two runs.

    Attributes:
        name: Name of the metric, such as `score` or `share right`, or of a criterion.
        baseline: Mean in the baseline over items with a value in both runs; None if no item has both.
        run: Mean in the other run over the same items; None if no item has both values.
        difference: Mean of run minus baseline, with a paired t interval and tests that use items as units.
        adjusted_p: P-value of the sign-flip test, Holm-adjusted for the number of criteria; None if the
            p-value is undefined or the metric does not belong to a criterion.
    """

    name: str
    baseline: float | None
    run: float | None
    difference: BiasResult
    adjusted_p: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference(ResultBase):
    """Comparison of two runs on the same items.

    Attributes:
        n_items: Number of items that are in both runs, matched by id.
        n_only_baseline: Number of items that are only in the baseline.
        n_only_run: Number of items that are only in the other run.
        score: Comparison of item scores, including scores with assumed answers.
        score_answered: Comparison of item scores, excluding items with an assumed answer in either run; None
            if there are no assumed answers.
        right: Comparison of each item's proportion of correct decisions, over the labelled criteria that both
            runs decided; None if there are none.
        criteria: Comparison, per criterion, of the values in [0, 1] that it contributes to the score. Pairs
            with an answer that was assumed because no reply was readable are excluded.
        baseline_verdicts: Verdict counts of the baseline; the other run's verdicts on items that the
            baseline's dataset lacks count as not judged.
        run_verdicts: Verdict counts of the other run, in the same way.
    """

    n_items: int
    n_only_baseline: int
    n_only_run: int
    score: PairedDifference
    score_answered: PairedDifference | None
    right: PairedDifference | None
    criteria: tuple[PairedDifference, ...]
    baseline_verdicts: VerdictCounts
    run_verdicts: VerdictCounts

    @property
    def regressed(self) -> bool | None:
        """Whether scores fell, that is, whether the whole interval of the mean difference is below 0.

        If all items changed by the same amount, there is no interval, and the sign of the change decides. The
        value is None if fewer than two items have a score in both runs.
        """
        found = self.score.difference
        if found.ci is not None:
            return found.ci.upper < 0
        return None if found.mean_bias is None or found.n_samples < 2 else found.mean_bias < 0

    def blocks(self) -> list[Block]:
        """Return the differences as content blocks for the text, HTML and LaTeX renderers."""
        items: tuple[tuple[str, Cell], ...] = (
            ("items in both runs", self.n_items),
            ("items only in the baseline", self.n_only_baseline),
            ("items only in the run", self.n_only_run),
            ("verdicts of the baseline", str(self.baseline_verdicts)),
            ("verdicts of the run", str(self.run_verdicts)),
        )
        whole = [one for one in (self.score, self.score_answered, self.right) if one is not None]
        return [
            ScalarBlock(title="Run against baseline", figures=items),
            _differences_table("Items", whole),
            _differences_table("Criteria", self.criteria),
        ]


def run_difference(
    baseline: CountedRun,
    run: CountedRun,
    dataset: LabelledDataset | None = None,
    **resampling: Unpack[ResamplingArguments],
) -> RunDifference:
    """Compare a run's scores with a baseline run's scores, item by item.

    Items are matched by id; without ids, by position if prompts are equal, and otherwise by prompt. Their
    submissions can differ, for example if two systems generated them.

    Args:
        baseline: Reference run.
        run: Run to compare with the baseline.
        dataset: Dataset with labels, matched by item id; None uses the dataset of `run`.
        **resampling: `confidence_level` of the intervals, and `n_resamples` and `rng` of the sign-flip test.

    Raises:
        ArgumentError: If the runs have no items in common, or items without ids cannot be matched by prompt.
    """
    own, after = pair_items(baseline.dataset, run.dataset), _by_id(run)
    before = {own[item]: graded for item, graded in _by_id(baseline).items()}
    both = [item for item in before if item in after]
    if not both:
        raise ArgumentError(
            "the runs have no items in common; items are matched by id, so set item ids or compare runs on "
            "the same dataset"
        )
    pairs = [(before[item], after[item]) for item in both]
    score = _compare_pairs("score", [(a.score, b.score) for a, b in pairs], resampling)
    answered = [(a, b) for a, b in pairs if not _has_assumed(a) and not _has_assumed(b)]
    values = [(_values(a), _values(b)) for a, b in pairs]
    names = dict.fromkeys(name for a, b in values for name in a if name in b)
    criteria = [
        _compare_pairs(name, [(a.get(name), b.get(name)) for a, b in values], resampling) for name in names
    ]
    adjusted = adjust_pvalues([one.difference.permutation_p for one in criteria])
    labels = run.dataset if dataset is None else dataset
    # Iteration reads a stored dataset faster than access by position, for which it keeps the last item.
    truths = {labels.item_id(at): labels.item_truth(at) or {} for at, _ in enumerate(labels.items)}
    right = [_shares_correct(a, b, truths.get(item, {})) for item, (a, b) in zip(both, pairs, strict=True)]
    labelled = any(a is not None for a, _ in right)
    return RunDifference(
        n_items=len(both),
        n_only_baseline=len(before) - len(both),
        n_only_run=len(after) - len(both),
        score=score,
        score_answered=None
        if len(answered) == len(pairs)
        else _compare_pairs(
            "score without assumed answers", [(a.score, b.score) for a, b in answered], resampling
        ),
        right=_compare_pairs("share right", right, resampling) if labelled else None,
        criteria=tuple(replace(one, adjusted_p=p) for one, p in zip(criteria, adjusted, strict=True)),
        baseline_verdicts=baseline.verdicts + _verdicts_lacking(baseline, after),
        run_verdicts=run.verdicts + _verdicts_lacking(run, before),
    )


def _verdicts_lacking(run: CountedRun, other: Mapping[str, _Graded]) -> VerdictCounts:
    """Count the other run's verdicts on items that are not in the run's dataset as not judged.

    The other items of a shard were not due.
    """
    own = set(other) if run.is_shard else set(_item_ids(run.dataset))
    reports = [graded.reports or () for item, graded in other.items() if item not in own]
    return VerdictCounts(not_judged=sum(one.verdicts.due for each in reports for one in each))


def _compare_pairs(
    name: str, pairs: list[tuple[float | None, float | None]], resampling: ResamplingArguments
) -> PairedDifference:
    complete = [(a, b) for a, b in pairs if a is not None and b is not None]
    return PairedDifference(
        name=name,
        baseline=fmean(a for a, _ in complete) if complete else None,
        run=fmean(b for _, b in complete) if complete else None,
        difference=bias([a for a, _ in pairs], [b for _, b in pairs], **resampling),
    )


class _Graded(NamedTuple):
    score: float | None
    reports: Sequence[EnsembleCriterionReport] | None  # None if grading raised an error


@fewer_gc_collections()
def _by_id(run: OwnedRun) -> dict[str, _Graded]:
    found: dict[int, _Graded] = {}
    if hasattr(run.item_results, "scores_and_reports"):
        found = {at: _Graded(score, reports) for at, score, reports in run.item_results.scores_and_reports()}
    else:
        for one in run.item_results:
            report = one.report
            found[one.item_idx] = _Graded(report.score, report.report) if report else _Graded(None, None)
    ids = _item_ids(run.dataset)
    return {ids[at]: graded for at, graded in found.items()}


def _item_ids(dataset: Any) -> list[str]:
    # Iteration reads a stored dataset faster than access by position.
    if hasattr(dataset, "item_ids"):
        return list(dataset.item_ids())
    return [dataset.item_id(at) for at in range(len(dataset.items))]


def _has_assumed(graded: _Graded) -> bool:
    return any(one.decision.assumed or one.decision.swayed for one in graded.reports or ())


def _values(graded: _Graded) -> dict[str, float | None]:
    """Return each criterion's contribution to the score; None if unreadable replies decided it."""
    return {
        one.name: None if one.decision.assumed or one.decision.swayed else one.score_value
        for one in graded.reports or ()
    }


def _shares_correct(a: _Graded, b: _Graded, truth: Mapping[str, Json]) -> tuple[float | None, float | None]:
    """Return each run's proportion of correct answers to the labelled criteria that both runs decided."""
    others = {one.name: one for one in b.reports or ()}
    hits: list[tuple[bool, bool]] = []
    for one in a.reports or ():
        other, label = others.get(one.name), truth.get(one.name)
        if other is None or label is None or not one.status == other.status == "answered":
            continue
        wanted = one.criterion.parse_truth(label)
        if wanted is None or wanted.abstains or one.decision.assumed or other.decision.assumed:
            continue
        hits.append((one.final_answer == wanted.code, other.final_answer == wanted.code))
    if not hits:
        return None, None
    return sum(own for own, _ in hits) / len(hits), sum(new for _, new in hits) / len(hits)


def _differences_table(title: str, found: Sequence[PairedDifference]) -> TableBlock:
    def interval(one: PairedDifference) -> str:
        ci = one.difference.ci
        return (one.difference.reason or "") if ci is None else format_interval(ci.lower, ci.upper)

    return column_table(
        title,
        found,
        {
            "figure": lambda one: one.name,
            "baseline": lambda one: one.baseline,
            "run": lambda one: one.run,
            "run - baseline": lambda one: one.difference.mean_bias,
            "interval": interval,
            "p": lambda one: p_cell(one.difference.permutation_p),
            "p (holm)": lambda one: p_cell(one.adjusted_p),
            "n": lambda one: one.difference.n_samples,
        },
    )
