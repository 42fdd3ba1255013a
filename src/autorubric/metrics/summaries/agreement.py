"""All agreement metrics of two raters on one scale, from one reading and one resampling of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import NumberPairs, number_pairs, table_units
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import Figure, estimate, estimates_of_each
from autorubric.metrics.core.metric import MetricDisplay, TableMetric
from autorubric.metrics.core.read_votes import count_unanswered
from autorubric.metrics.core.resampling import IntervalArguments, IntervalOptions, Units
from autorubric.metrics.core.result import MetricValues, ResultBase, figure_table
from autorubric.metrics.core.scales import (
    Array,
    Binary,
    Codes,
    Interval,
    Nominal,
    Ordinal,
    Scale,
    Weights,
    describe,
    weight_matrix,
)
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED, FAILED
from autorubric.metrics.figures.bias import BiasResult, bias_of
from autorubric.metrics.figures.classification import ACCURACY
from autorubric.metrics.figures.kappa import KAPPA
from autorubric.metrics.figures.ranks import rank_pairs
from autorubric.metrics.figures.specs import shown_metrics
from autorubric.metrics.summaries.sides import AbstainMode, Sides, read_sides
from autorubric.support.blocks import Block, Cell, ConfusionBlock, ScalarBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionAgreement(MetricValues):
    """Agreement on one category versus all others.

    Attributes:
        label: Label of the category.
        precision: Proportion of predictions of this category that are correct.
        recall: Proportion of true labels of this category that were predicted.
        f1: Harmonic mean of precision and recall.
        support_true: Number of true labels of this category.
        support_pred: Number of predictions of this category.
        more: Metrics of installed packages by name; they are attributes too.
    """

    label: str
    precision: Estimate
    recall: Estimate
    f1: Estimate
    support_true: int
    support_pred: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstentions:
    """Abstentions on units (such as items) with a label, including labels that are abstentions.

    Attributes:
        n_labelled: Number of units with a label.
        n_truth: Number of units whose label is an abstention.
        n_pred: Number of labelled units on which the judge abstained.
        n_both: Number of units on which both the truth and the judge abstain.
        n_failed: Number of labelled units on which the judge failed.
        n_answered: Number of units whose label is an abstention that is excluded and that the judge answered.
        truth_rate: Proportion of abstentions in the truth, `n_truth / n_labelled`.
        pred_rate: Proportion of abstentions by the judge, `n_pred / n_labelled`.
        kappa: Cohen's kappa for whether truth and judge abstain, over units with a label and a vote.
    """

    n_labelled: int
    n_truth: int
    n_pred: int
    n_both: int
    n_failed: int
    n_answered: int
    truth_rate: Estimate
    pred_rate: Estimate
    kappa: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(MetricValues, ResultBase):
    """Agreement between two raters on one scale.

    A metric that the scale does not support is undefined (`not_on_scale`). A metric that needs an order is
    also undefined if abstentions count as a category (`na_as_category`).

    Attributes:
        level: Measurement level of the scale.
        labels: Categories of the confusion table, in order; empty for an interval scale.
        table: Pair counts, shape `(n_labels, n_labels)`, with the truth in rows; empty for an interval scale.
        n: Number of label pairs used.
        n_missing: Number of units (such as items) excluded because either rater has no usable answer.
        abstain: How abstentions are counted.
        coverage: Number of pairs used divided by the number of labelled units (abstentions included).
        accuracy: Proportion of pairs with equal labels.
        balanced_accuracy: Mean recall over the categories that occur in the truth.
        macro_f1: Mean F1 over the categories that occur.
        macro_precision: Nominal scale: mean precision over the categories that the judge used; a category
            that it never used has no precision. The estimate's `method` states how many it used.
        macro_recall: Nominal scale: mean recall over the categories that occur in the truth. Equals balanced
            accuracy, but is also defined if the truth has only one category.
        kappa: Cohen's kappa, weighted if `weights` were passed.
        ac1: Gwet's AC1, or AC2 if `weights` were passed.
        phi: Matthews correlation coefficient: phi for two categories, R_K for more.
        precision: Binary scale: proportion of MET predictions that are correct.
        recall: Binary scale: proportion of true MET labels that were predicted.
        specificity: Binary scale: proportion of true UNMET labels that were predicted.
        f1: Binary scale: harmonic mean of precision and recall.
        positive_agreement: Binary scale: agreement on MET.
        negative_agreement: Binary scale: agreement on UNMET.
        weighted_kappa: Ordinal scale: kappa with `weights` (quadratic by default) on the scale's values.
        adjacent_accuracy: Ordinal scale: proportion of pairs whose labels are at most one category apart.
        adjacent_by_chance: Ordinal scale: adjacent accuracy expected by chance, which is already high with
            three categories.
        spearman: Ordinal or interval scale: Spearman's rho of the values.
        kendall: Ordinal or interval scale: Kendall's tau-b of the values.
        pearson: Ordinal or interval scale: Pearson's r of the values.
        ccc: Ordinal or interval scale: Lin's concordance correlation of the values.
        rmse: Ordinal or interval scale: root mean square error, in units of the values.
        mae: Ordinal or interval scale: mean absolute error, in units of the values.
        bias: Mean of `pred` minus `truth`, where UNMET is 0 and MET is 1. Only the t test is run.
        per_option: Agreement on each category versus all others.
        abstentions: Abstentions of both raters.
        more: Metrics of installed packages by name; they are attributes too.
    """

    level: Level
    labels: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    n: int
    n_missing: int
    abstain: AbstainMode
    coverage: Estimate
    accuracy: Estimate
    balanced_accuracy: Estimate
    macro_f1: Estimate
    macro_precision: Estimate
    macro_recall: Estimate
    kappa: Estimate
    ac1: Estimate
    phi: Estimate
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate
    positive_agreement: Estimate
    negative_agreement: Estimate
    weighted_kappa: Estimate
    adjacent_accuracy: Estimate
    adjacent_by_chance: Estimate
    spearman: Estimate
    kendall: Estimate
    pearson: Estimate
    ccc: Estimate
    rmse: Estimate
    mae: Estimate
    bias: BiasResult
    per_option: tuple[OptionAgreement, ...]
    abstentions: Abstentions

    @property
    def mcc(self) -> Estimate:
        """Alias of `phi`."""
        return self.phi

    def figures(self) -> dict[str, Estimate]:
        """Return the metrics that the scale supports, keyed by name."""
        every = {one.key: getattr(self, one.key) for one in shown_metrics() if one.where["agreement"]}
        return {name: found for name, found in every.items() if found.reason != "not_on_scale"}

    def blocks(self) -> list[Block]:
        """Return the metrics as content blocks for the text, HTML and LaTeX renderers."""
        figures = {name.replace("_", " "): one for name, one in self.figures().items()}
        told: list[tuple[str, Cell]] = [
            ("pairs", self.n),
            ("units excluded", self.n_missing),
            ("coverage", self.coverage.value),
            ("abstentions of the truth", self.abstentions.truth_rate.value),
            ("abstentions of the judge", self.abstentions.pred_rate.value),
        ]
        if self.abstentions.n_answered:
            told.append(("units without a true answer that the judge answered", self.abstentions.n_answered))
        blocks: list[Block] = [ScalarBlock(title="Agreement", figures=tuple(told)), figure_table("", figures)]
        if self.table:
            blocks.append(ConfusionBlock(title="Confusion matrix", labels=self.labels, counts=self.table))
        return blocks


_LEVELS: Mapping[type, Level] = {
    Binary: "binary",
    Nominal: "nominal",
    Ordinal: "ordinal",
    Interval: "interval",
}


def agreement(
    truth: Iterable[Any],
    pred: Iterable[Any],
    *,
    scale: Scale,
    weights: Weights = None,
    abstain: AbstainMode = "exclude",
    **interval: Unpack[IntervalArguments],
) -> Agreement:
    """Compute all agreement metrics that the scale supports, with a confusion table and abstention counts.

    Each metric and its interval equal the result of the function with the same name and arguments (`kappa`:
    `cohen_kappa`, `ac1`: `gwet_ac`, `phi`: `mcc`). `macro_precision` and `macro_recall` have no such
    function. All metrics of the confusion table use the same resampled tables. On an ordinal scale, numeric
    metrics use the scale's values.

    Args:
        truth: Ground-truth labels, or one rater's labels. None and NaN are missing; NA and CANNOT_ASSESS are
            abstentions unless they are on the scale; INVALID is a failure and counts as missing.
        pred: Labels from the judge or the second rater, in the same form as `truth`.
        scale: Scale that declares all categories.
        weights: Agreement weights that give partial credit for near misses in `kappa`, `ac1` and
            `weighted_kappa`. None uses quadratic weights for `weighted_kappa` and no weights for the others.
        abstain: `"exclude"` ignores abstentions. `"as_category"` makes them a category, so metrics that need
            an order are undefined (`na_as_category`). `"as_negative"` counts them as the lowest answer.
        **interval: Interval options; see `IntervalArguments`. A metric that does not support the requested
            `ci` method uses its default method.

    Raises:
        ArgumentError: If the scale or the mode is unknown, a label is not on the scale, `truth` and `pred`
            differ in length, or the scale does not support the mode or the weights.
    """
    options = IntervalOptions(**interval)
    if isinstance(scale, Interval) and weights is not None:
        raise ArgumentError(f"weights={weights!r} need categories, but {scale} has none")
    return agreement_of(read_sides(truth, pred, scale, abstain, options.cluster), weights, options, abstain)


def agreement_of(sides: Sides, weights: Weights, options: IntervalOptions, abstain: AbstainMode) -> Agreement:
    """Compute `agreement` for labels that have already been read."""
    return agreements_of([sides], weights, options, abstain)[0]


def agreements_of(
    batch: Sequence[Sides], weights: Weights, options: IntervalOptions, abstain: AbstainMode
) -> list[Agreement]:
    """Compute `agreement_of` several pairs of raters on one scale, whose tables are resampled together."""
    tables, found = [np.zeros((0, 0))] * len(batch), [dict[str, Estimate]()] * len(batch)
    if not isinstance(batch[0].scale, Interval):
        size = batch[0].size
        units = [table_units(one.truth.code, one.pred.code, size, one.cluster) for one in batch]
        tables = [one.total().reshape(size, size) for one, _ in units]
        found = _of_tables(batch[0], tables, units, weights, options)
    kappas = abstention_kappas(batch, options)
    return [
        _agreement(sides, table, figures, _abstentions(sides, kappa, options), options, abstain)
        for sides, table, figures, kappa in zip(batch, tables, found, kappas, strict=True)
    ]


def _agreement(
    sides: Sides,
    table: Array,
    found: Mapping[str, Estimate],
    abstentions: Abstentions,
    options: IntervalOptions,
    abstain: AbstainMode,
) -> Agreement:
    """Add all that is not computed from resampled tables to the metrics `found` on the confusion table."""
    pairs = number_pairs(sides.numbers(sides.truth), sides.numbers(sides.pred), sides.cluster)
    n = pairs.n if isinstance(sides.scale, Interval) else int(table.sum())
    n_missing = len(sides.truth.code) - n
    figures = dict(found)
    options_of = [one.key for one in shown_metrics() if one.per_option] if found else []
    per_option = tuple(
        OptionAgreement(
            label=label,
            **OptionAgreement.arrange({key: figures.pop(f"{key} {place}") for key in options_of}),
            support_true=int(table[place].sum()),
            support_pred=int(table[:, place].sum()),
        )
        for place, label in enumerate(sides.labels)
    )
    if isinstance(sides.scale, Ordinal | Interval) and not sides.has_category:
        figures |= number_figures(pairs, options)
    for one in shown_metrics():
        if one.where["agreement"] and one.key not in figures:
            method = one.key.replace("_", " ")
            figures[one.key] = Estimate.undefined(
                _why_not(one, sides), n=n, method=method, n_missing=n_missing
            )
    return Agreement(
        level=level_of(sides.scale),
        labels=sides.labels,
        table=tuple(tuple(int(count) for count in row) for row in table.tolist()),
        n=n,
        n_missing=n_missing,
        abstain=abstain,
        coverage=_coverage(sides, options),
        bias=_bias(sides, pairs, options),
        per_option=per_option,
        abstentions=abstentions,
        **Agreement.arrange(figures),
    )


def level_of(scale: Scale) -> Level:
    return _LEVELS[type(scale)]


def _why_not(metric: MetricDisplay, sides: Sides) -> Reason:
    weighted = metric.table is not None and metric.table.weighted
    is_lost = isinstance(sides.scale, Ordinal) if metric.needs_order else weighted
    return "na_as_category" if sides.has_category and is_lost else "not_on_scale"


def _of_tables(
    sides: Sides,
    tables: Sequence[Array],
    units: Sequence[tuple[Units, int]],
    weights: Weights,
    options: IntervalOptions,
) -> list[dict[str, Estimate]]:
    """Compute the metrics of confusion tables on the scale of `sides`, and of each of their categories."""
    size = sides.size
    found: list[dict[str, Estimate]] = [{} for _ in units]
    named: dict[str, Figure] = {}
    notes: dict[str, list[str]] = {}
    for one in shown_metrics():
        metric = one.table
        applies = level_of(sides.scale) in one.where["agreement"] and not _is_lost(one, sides, weights)
        if metric is None or not applies:
            continue
        if size < metric.fewest:
            for figures, (of, missing) in zip(found, units, strict=True):
                figures[one.key] = Estimate.undefined(
                    "single_category_scale", n=of.n, method=metric.name, n_missing=missing
                )
        elif not metric.has_interval:
            plain = replace(options, ci=None)
            for figures, (of, missing) in zip(found, units, strict=True):
                figures[one.key] = estimate(metric.figure(size), of, plain, n_missing=missing)
        else:
            named[one.key], note = _figure(one, metric, sides, weights)
            own = metric.note if not metric.weighted else None
            notes[one.key] = [own(table) for table in tables] if own else [note] * len(tables)
    for one in shown_metrics():
        if one.per_option is not None:
            named |= {f"{one.key} {place}": one.per_option(place).figure(size) for place in range(size)}
    unnoted = [""] * len(units)
    made = estimates_of_each(
        list(named.values()),
        [one for one, _ in units],
        options,
        n_missing=[missing for _, missing in units],
        notes=list(zip(*(notes.get(name, unnoted) for name in named), strict=True)),
    )
    for figures, estimates in zip(found, made, strict=True):
        figures |= dict(zip(named, estimates, strict=True))
    return found


def _is_lost(metric: MetricDisplay, sides: Sides, weights: Weights) -> bool:
    """Return whether a metric is undefined because abstention is a category, without a place in the order."""
    weighted = metric.table is not None and metric.table.weighted and weights is not None
    return sides.has_category and (weighted or metric.needs_order)


def _figure(shown: MetricDisplay, metric: TableMetric, sides: Sides, weights: Weights) -> tuple[Figure, str]:
    """Return a metric of confusion tables, with a note on its weights."""
    if not metric.weighted:
        return metric.figure(sides.size), ""
    assert not isinstance(sides.scale, Interval)
    used = "quadratic" if shown.needs_order and weights is None else weights
    name = metric.name if used is None else metric.weighted_name
    return metric.figure(sides.size, weight_matrix(used, sides.scale, sides.size), name=name), describe(used)


def number_figures(pairs: NumberPairs, options: IntervalOptions) -> dict[str, Estimate]:
    """Compute correlations, concordance and errors for two numeric columns, keyed by metric name."""
    if options.ci == "smoothed" or (options.ci == "analytic" and pairs.cluster is not None):
        options = replace(options, ci="auto")
    ranked, found = rank_pairs(pairs), {}
    for one in shown_metrics():
        if one.ranks:
            found[one.key] = one.ranks(ranked, options, n_missing=pairs.n_missing)
        elif one.numbers:
            found[one.key] = one.numbers(pairs, options)
    return found


def _bias(sides: Sides, pairs: NumberPairs, options: IntervalOptions) -> BiasResult:
    if isinstance(sides.scale, Nominal):
        return BiasResult(mean_bias=None, reason="not_on_scale")
    if sides.has_category:
        return BiasResult(mean_bias=None, reason="na_as_category")
    return bias_of(pairs, options)


def _coverage(sides: Sides, options: IntervalOptions) -> Estimate:
    if isinstance(sides.scale, Interval):
        used = ~np.isnan(sides.truth.number + sides.pred.number)
    else:
        used = (sides.truth.code >= 0) & (sides.pred.code >= 0)
    return flag_estimate("coverage", used, sides.truth.status > 0, sides.cluster, options)


def flag_estimate(
    name: str, flags: Array, counted: Array, cluster: Codes | None, options: IntervalOptions
) -> Estimate:
    """Return the proportion of counted units with a flag, with a Wilson (clusters: logit-t) interval."""
    right = np.where(counted, flags, -1).astype(np.int64)
    units, n_missing = table_units(np.ones_like(right), right, 2, cluster)
    auto = replace(options, ci=options.ci and "auto")
    return estimate(ACCURACY.figure(2, name=name), units, auto, n_missing=n_missing)


def _abstentions(sides: Sides, kappa: Estimate, options: IntervalOptions) -> Abstentions:
    labelled, cluster = sides.truth.status > 0, sides.cluster
    left, right = sides.truth.status == ABSTAINED, labelled & (sides.pred.status == ABSTAINED)
    return Abstentions(
        n_labelled=int(np.count_nonzero(labelled)),
        n_truth=int(np.count_nonzero(left)),
        n_pred=int(np.count_nonzero(right)),
        n_both=int(np.count_nonzero(left & right)),
        n_failed=int(np.count_nonzero(labelled & (sides.pred.status == FAILED))),
        n_answered=count_unanswered(sides.truth, sides.pred)["answered_na"],
        truth_rate=flag_estimate("abstentions of the truth", left, labelled, cluster, options),
        pred_rate=flag_estimate("abstentions of the judge", right, labelled, cluster, options),
        kappa=kappa,
    )


def abstention_kappas(batch: Sequence[Sides], options: IntervalOptions) -> list[Estimate]:
    """Compute Cohen's kappa for abstaining or not, over the units that have a label and a vote."""
    units, n_missing = [], []
    for sides in batch:
        left, right = sides.truth.status, sides.pred.status
        voted = (right == ANSWERED) | (right == ABSTAINED)
        table, missing = table_units(
            np.where(left > 0, left == ABSTAINED, -1).astype(np.int64),
            np.where(voted, right == ABSTAINED, -1).astype(np.int64),
            2,
            sides.cluster,
        )
        units.append(table)
        n_missing.append(missing)
    auto, notes = replace(options, ci=options.ci and "auto"), [["of abstaining"]] * len(units)
    figures = [KAPPA.figure(2, np.eye(2))]
    return [made for (made,) in estimates_of_each(figures, units, auto, n_missing=n_missing, notes=notes)]
