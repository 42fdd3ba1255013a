"""Report on one rater, and on the annotators compared with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeVar

import numpy as np

from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.result import MetricValues
from autorubric.metrics.summaries.agreement import Agreement
from autorubric.metrics.summaries.probability_figures import ProbabilityFigures
from autorubric.metrics.summaries.table_metrics import FEW_OF_A_CLASS
from autorubric.support.blocks import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineFigures(MetricValues):
    """Metrics over several criteria or several annotators, with intervals from resampled items.

    Attributes:
        accuracy: Proportion of exactly matching labels on categorical criteria.
        balanced_accuracy: Mean recall over the categories in the truth, on categorical criteria.
        kappa: Cohen's kappa: unweighted on binary and nominal criteria and comparisons, with quadratic
            weights on ordinal criteria.
        precision: Precision of MET on binary criteria.
        recall: Sensitivity (TPR): proportion of MET cells that were judged MET, on binary criteria.
        specificity: True negative rate: proportion of UNMET cells that were judged UNMET, on binary criteria.
        f1: F1 of MET on binary criteria.
        macro_precision: Mean precision over the categories that the rater used, on nominal criteria and
            comparisons.
        macro_recall: Mean recall over the categories in the truth, on nominal criteria and comparisons.
        macro_f1: Mean F1 over the categories that occur, on nominal criteria and comparisons.
        pearson: Pearson's r on numeric criteria and on the values of ordinal criteria.
        more: Metrics of installed packages by name; they are attributes too.
    """

    accuracy: Estimate
    balanced_accuracy: Estimate
    kappa: Estimate
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate
    macro_precision: Estimate
    macro_recall: Estimate
    macro_f1: Estimate
    pearson: Estimate

    @property
    def sensitivity(self) -> Estimate:
        """Alias of `recall`."""
        return self.recall

    def figures(self) -> dict[str, Estimate]:
        """Return the metrics keyed by name."""
        values = {one.name: getattr(self, one.name) for one in fields(HeadlineFigures) if one.name != "more"}
        return values | dict(self.more)


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroFigures(HeadlineFigures):
    """Means over criteria, each weighted equally.

    Attributes:
        defined: For each metric, the number of criteria on which it is defined and the number it applies to.
    """

    defined: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFigures:
    """Metrics of a rater's decisions on a comparison, which do not require labels. The units are items.

    Attributes:
        position_consistency: Proportion of samples with the same outcome in both orders of the candidates,
            among the `n` samples requested in both orders. The panel's metric uses all judges' samples.
            Undefined (`no_pairs`) for annotators and if no sample was requested in both orders.
        tie_rate: Proportion of decisions in which several candidates share first place.
    """

    position_consistency: Estimate
    tie_rate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterFailures:
    """Cells (pairs of item and criterion) that a rater did not answer, by cause.

    Covers all labelled cells or, if there are no labels, all cells for which the rater has a row.

    Attributes:
        n_cells: Number of cells covered.
        n_answered: Number of cells that the rater answered.
        abstention_rate: Proportion of cells on which the rater abstained.
        failure_rate: Proportion of cells on which the rater failed or gave only unreadable replies.
        not_asked_rate: Proportion of cells on which the rater was not asked or has no vote.
        undecided_rate: Proportion of cells that have no decision because judges or samples are tied.
        not_applicable: Number of cells excluded by a condition.
        truth_abstention_rate: Proportion of cells whose label is an abstention.
        abstention_kappa: Cohen's kappa for whether the label and the rater abstain, over cells with a vote.
        label_unanswered: Number of cells whose label has no answer that counts (NA or CANNOT_ASSESS).
        judge_unanswered: Number of cells whose label has an answer and that the rater did not answer.
        answered_na: Number of cells whose label has no answer and that the rater answered; no metric counts
            these answers.
    """

    n_cells: int
    n_answered: int
    abstention_rate: Estimate
    failure_rate: Estimate
    not_asked_rate: Estimate
    undecided_rate: Estimate
    not_applicable: int
    truth_abstention_rate: Estimate
    abstention_kappa: Estimate
    label_unanswered: int
    judge_unanswered: int
    answered_na: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterReport:
    """Report that compares one rater with the ground truth.

    Attributes:
        rater: Name of the rater.
        kind: Kind of rater. A `"human"` rater is compared with the other annotators.
        macro: Means over criteria, the headline metrics.
        micro: Metrics over all cells pooled. Pooling mixes base rates, so a rater that knows only the base
            rates scores well; kappa therefore computes chance agreement within each criterion.
        by_scale: Metrics over the pooled cells of all criteria with the same scale, keyed by its labels;
            useful if each item has its own rubric. Kappa computes chance agreement within each criterion. If
            criteria have few pairs (median below 10), it computes each pair's chance agreement from the
            criterion's other pairs; if they have only one pair each, from all cells of the scale, as in
            `compute_metrics`, which mixes base rates. The estimate's `method` states which of these applies.
        per_criterion: Agreement on each criterion, keyed by name. Criteria that share a name but have
            different scales are numbered.
        comparisons: Position consistency and ties on each comparison (`ComparativeCriterion`), keyed by name.
        scores: Agreement on item scores without the length penalty; None if there are no scores.
        failures: Number of unanswered cells and their rates by cause.
        coverage: Number of pairs used divided by the number of labelled cells; None if there are no labels.
        probabilities: How well the rater's probabilities predict the labels, keyed by criterion. Only
            criteria with probabilities and labels of two items count, and the panel only for soft votes.
        on_common_cells: Means over criteria on the cells that all judges answered, by which judges are
            ranked; None if all judges answered the same labelled cells and none abstained or failed.
        abstention_bounds: The same with abstentions and failures as errors (as far from the label as
            possible; undefined for numbers without a range) and as right answers; None if there are none.
    """

    rater: str
    kind: Literal["panel", "judge", "human"]
    macro: MacroFigures
    micro: HeadlineFigures
    by_scale: Mapping[str, HeadlineFigures]
    per_criterion: Mapping[str, Agreement]
    comparisons: Mapping[str, ComparisonFigures]
    scores: Agreement | None
    failures: RaterFailures
    coverage: float | None
    probabilities: Mapping[str, ProbabilityFigures]
    on_common_cells: MacroFigures | None = None
    abstention_bounds: tuple[MacroFigures, MacroFigures] | None = None


UNANSWERED: Final = {
    "label has no answer": "label_unanswered",
    "judge has no answer": "judge_unanswered",
    "answered NA": "answered_na",
}
"""Counts of `count_unanswered` by heading."""

RowT = TypeVar("RowT")


def unanswered_columns(
    rows: Iterable[RowT], counts: Callable[[RowT], Any]
) -> dict[str, Callable[[RowT], Cell]]:
    """Return columns that split the cells that coverage lacks; empty if all labels have answers."""

    def column(name: str) -> Callable[[RowT], Cell]:
        return lambda row: getattr(counts(row), name)

    some = any(counts(row).label_unanswered for row in rows)
    return {heading: column(name) for heading, name in UNANSWERED.items()} if some else {}


def metric_on(agreed: Agreement, name: str) -> Estimate:
    """Return a metric on a criterion by its name over all criteria; kappa is weighted if it is ordinal."""
    weighted = name == "kappa" and agreed.level == "ordinal"
    found: Estimate = getattr(agreed, "weighted_kappa" if weighted else name)
    return found


def few_items_each(rater: RaterReport) -> float | None:
    """Return the median number of pairs per criterion if it is low enough to bias kappa; otherwise None."""
    sizes = [agreed.n for agreed in rater.per_criterion.values() if agreed.n]
    median = float(np.median(sizes)) if sizes else 0.0
    return median if len(sizes) > 1 and median < FEW_OF_A_CLASS else None


def rater_names(raters: Sequence[RaterReport]) -> list[str]:
    """Return a name for the panel and each judge. A judge named `panel` becomes `judge panel`."""
    return ["judge panel" if one.kind == "judge" and one.rater == "panel" else one.rater for one in raters]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanCeilings:
    """Agreement between each annotator and the majority (for numbers, the mean) of the others.

    Cells on which the other annotators are tied are excluded, which slightly favours each annotator. A
    judge's metrics against the truth are therefore not directly comparable with an annotator's metrics
    against the others; use `gap`, which compares both with the same reference.

    Attributes:
        humans: Names of the annotators.
        macro: For each metric, the mean over annotators of their means over criteria.
        micro: For each metric, the mean over annotators of their pooled values.
        pooled: Means over criteria of metrics that pool all annotators' pairs; more stable if each annotator
            labelled few items.
        per_criterion: Mean over annotators on each criterion.
        per_human: Report on each annotator.
        in_place: For `"panel"` and each judge, the rater's metrics in an annotator's place: compared with the
            other annotators on the cells that the annotator answered, mean over annotators. They can be
            compared with `macro`. The difference has an interval in `gap`.
        in_place_per_criterion: The same on each criterion; they can be compared with `per_criterion`.
        gap: For `"panel"` and each judge, the rater's metric minus an annotator's. Both are compared with the
            other annotators on the cells that the annotator answered, and the differences between their macro
            metrics are averaged over annotators. 0 means as good as an annotator, negative means worse. If
            the interval contains 0, the data do not distinguish the two.
        gap_bounds: The panel's gap with its abstentions and failures as errors and as right answers, with
            panel and annotator on the same cells; None if the panel answered all of the annotator's cells.
        answered: Number of these cells that the panel answered, and the number of all of them.
        made_the_truth: Whether the report's labels are these annotators' majority, median or mean labels. If
            not, the gap does not apply to the report's labels.
    """

    humans: tuple[str, ...]
    macro: HeadlineFigures
    micro: HeadlineFigures
    pooled: HeadlineFigures
    per_criterion: Mapping[str, HeadlineFigures]
    per_human: Mapping[str, RaterReport]
    in_place: Mapping[str, HeadlineFigures]
    in_place_per_criterion: Mapping[str, Mapping[str, HeadlineFigures]]
    gap: Mapping[str, HeadlineFigures]
    gap_bounds: tuple[HeadlineFigures, HeadlineFigures] | None
    answered: tuple[int, int]
    made_the_truth: bool
