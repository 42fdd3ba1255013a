"""Report on one rater, and on people compared with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from autorubric.metrics._estimate import Estimate
from autorubric.metrics._judge_report._agreement_result import Agreement
from autorubric.metrics._warnings import FEW_OF_A_CLASS

HEADLINES: tuple[str, ...] = (
    "accuracy",
    "balanced_accuracy",
    "kappa",
    "precision",
    "recall",
    "specificity",
    "f1",
    "macro_precision",
    "macro_recall",
    "macro_f1",
    "pearson",
)
"""Metrics that are reported for all criteria together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineFigures:
    """Metrics of several criteria together, or of several people; intervals resample items.

    Attributes:
        accuracy: Exact agreement on categorical criteria.
        balanced_accuracy: Mean recall over the true categories, on categorical criteria.
        kappa: Cohen's kappa on binary and nominal criteria and comparisons, with quadratic weights on ordinal
            criteria.
        precision: Precision of MET, on binary criteria.
        recall: Sensitivity (TPR): share of the cells that are MET that were judged MET; on binary criteria.
        specificity: TNR: share of the cells that are UNMET that were judged UNMET; on binary criteria.
        f1: F1 of MET, on binary criteria.
        macro_precision: Mean precision over the categories that were judged, on nominal criteria and
            comparisons.
        macro_recall: Mean recall over the true categories, on nominal criteria and comparisons.
        macro_f1: Mean F1 over the categories on either side, on nominal criteria and comparisons.
        pearson: Pearson's r of the values of ordinal criteria and of numbers.
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
        """Return the metrics by name."""
        return {name: getattr(self, name) for name in HEADLINES}


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroFigures(HeadlineFigures):
    """Means over criteria, with equal weight for each criterion.

    Attributes:
        defined: (criteria on which the metric is defined, criteria that could have it), by name.
    """

    defined: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFigures:
    """Metrics of a rater's decisions on a comparison, with or without labels; an item is the unit.

    Attributes:
        position_consistency: Share of the samples asked in both orders of the candidates that have the same
            outcome in both; `n` is the number of these samples. For the panel these are the samples of all
            judges. Undefined (`no_pairs`) for people, and if nothing was asked in both orders.
        tie_rate: Share of the decisions in which candidates share first place.
    """

    position_consistency: Estimate
    tie_rate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterFailures:
    """Cells on which a rater gave no answer, counted separately by kind.

    The cells are those with a label or, if nothing is labelled, all cells that the rater has a row for.

    Attributes:
        n_cells: Number of cells.
        n_answered: Cells that the rater answered.
        abstention_rate: Share of cells on which the rater abstained.
        failure_rate: Share on which it failed, or gave only unreadable replies.
        not_asked_rate: Share on which it was not asked, or has no vote.
        undecided_rate: Share on which it reached no decision because judges, or samples, are tied.
        not_applicable: Cells excluded by a condition.
        truth_abstention_rate: Share whose label abstains.
        abstention_kappa: Cohen's kappa of abstaining or not, over cells with a vote.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterReport:
    """Report on one rater against the truth.

    Attributes:
        rater: Name of the rater.
        kind: Kind of rater; a person is compared with the rest of the people.
        macro: Means over criteria: the headline.
        micro: Metrics over all cells pooled. Pooling mixes base rates, so a rater that only knows the base
            rates scores well; for this reason kappa takes chance agreement within each criterion.
        by_scale: Metrics over the pooled cells of all criteria with the same scale, by its labels; useful if
            each item has its own rubric. Kappa takes chance agreement within each criterion. If criteria have
            few pairs (a median below 10), the chance agreement of each pair comes from the criterion's other
            pairs; with one pair each, from all these cells, as in `compute_metrics`, which mixes base rates.
            The method says which.
        per_criterion: Agreement on each criterion, by name; criteria with the same name and different scales
            are numbered.
        comparisons: Position consistency and ties on each comparison (`ComparativeCriterion`), by name.
        scores: Agreement on item scores without length penalty; None if there are none.
        failures: Cells without an answer.
        coverage: Pairs used divided by labelled cells; None without labels.
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


def few_items_each(rater: RaterReport) -> float | None:
    """Return the median number of pairs per criterion if it is low enough to bias kappas; otherwise None."""
    sizes = [agreed.n for agreed in rater.per_criterion.values() if agreed.n]
    median = float(np.median(sizes)) if sizes else 0.0
    return median if len(sizes) > 1 and median < FEW_OF_A_CLASS else None


def names_of(raters: Sequence[RaterReport]) -> list[str]:
    """Return a name for the panel and each judge; a judge called `panel` becomes `judge panel`."""
    return ["judge panel" if one.kind == "judge" and one.rater == "panel" else one.rater for one in raters]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanCeilings:
    """Agreement of each person with the majority (mean of numbers) of the others, and means over people.

    For each person, cells on which the others are tied are left out, which favours people slightly. A judge's
    metrics against the truth therefore cannot be compared directly with a person's against the rest; `gap`
    compares both with the same reference.

    Attributes:
        humans: The people.
        macro: Mean over people of the means over criteria.
        micro: Mean over people of the pooled metrics.
        pooled: Means over criteria of metrics on all people's pairs with the rest together: more stable if
            people labelled few items each.
        per_criterion: Mean over people on each criterion.
        per_human: Report on each person.
        gap: For `"panel"` and each judge, how much better the rater does than a person in that person's
            place. Both are compared with the rest of the people, on the cells that the person answered, and
            the difference of their macro metrics is averaged over people. 0 means as good as a person, and
            below 0 worse; if the interval contains 0, the data cannot tell them apart.
        made_the_truth: Whether the labels of the report are the majority of these people's labels. If not,
            the gap says nothing about those labels.
    """

    humans: tuple[str, ...]
    macro: HeadlineFigures
    micro: HeadlineFigures
    pooled: HeadlineFigures
    per_criterion: Mapping[str, HeadlineFigures]
    per_human: Mapping[str, RaterReport]
    gap: Mapping[str, HeadlineFigures]
    made_the_truth: bool
