"""What is known of one rater, and of people against people."""

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
"""The figures that are said of all criteria together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineFigures:
    """What is said of several criteria together, or of several people; intervals resample items.

    Attributes:
        accuracy: Exact agreement, of every categorical criterion.
        balanced_accuracy: Mean recall over the true categories, of every categorical criterion.
        kappa: Cohen's kappa of binary and nominal criteria and of comparisons, with quadratic weights of
            ordinal criteria.
        precision: Of MET, of binary criteria.
        recall: Sensitivity (TPR): of what is MET, the share judged so; of binary criteria.
        specificity: TNR: of what is UNMET, the share judged so; of binary criteria.
        f1: Of MET, of binary criteria.
        macro_precision: Mean over the categories that were judged of their precision, of nominal criteria and
            comparisons.
        macro_recall: Mean over the true categories of their recall, of nominal criteria and comparisons.
        macro_f1: Mean over the categories on either side of their F1, of nominal criteria and comparisons.
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
        """The recall of MET under its other name."""
        return self.recall

    def figures(self) -> dict[str, Estimate]:
        """The figures by name."""
        return {name: getattr(self, name) for name in HEADLINES}


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroFigures(HeadlineFigures):
    """Means over criteria, each criterion counting alike.

    Attributes:
        defined: (criteria on which the figure is defined, criteria that could have it), by name.
    """

    defined: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFigures:
    """What is known of a rater's decisions on a comparison, with or without labels; an item is the unit.

    Attributes:
        position_consistency: Share of the samples asked in both orders of the candidates that have the same
            outcome in both, `n` being these samples; those of the panel are the samples of all judges.
            Undefined (`no_pairs`) where nothing was asked in both orders, and of people.
        tie_rate: Share of the decisions in which candidates share the first place.
    """

    position_consistency: Estimate
    tie_rate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterFailures:
    """Cells on which a rater gave no answer, in kinds that are never mixed.

    The cells are those with a label or, where nothing is labelled, all that the rater has a row for.

    Attributes:
        n_cells: Cells.
        n_answered: Cells that the rater answered.
        abstention_rate: Share on which the rater abstained.
        failure_rate: Share on which it failed, or gave unreadable replies alone.
        not_asked_rate: Share on which it was not asked, or has no vote.
        undecided_rate: Share on which it came to no decision: judges, or samples, that are tied.
        not_applicable: Cells that a condition left out.
        truth_abstention_rate: Share whose label abstains.
        abstention_kappa: Cohen's kappa of abstaining at all, over cells with a vote.
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
    """What is known of one rater against the truth.

    Attributes:
        rater: Its name.
        kind: What it is; a person is set against the rest of the people.
        macro: Means over criteria: the headline.
        micro: All cells pooled, which mixes base rates: a rater that knows nothing but them does well. The
            chance of kappa is therefore taken within each criterion.
        by_scale: The cells of all criteria of one scale pooled, by its labels; for rubrics of an item's own.
            The chance of kappa is that within each criterion; where criteria have few pairs (a median below
            10), of each pair that of the criterion's others; with one pair each, that of all these cells, as
            in `compute_metrics`, which mixes base rates. The method says which.
        per_criterion: Each criterion by name; those of one name and other scales are numbered.
        comparisons: Position consistency and ties on each comparison (`ComparativeCriterion`), by name.
        scores: Item scores without length penalty; None where there are none.
        failures: Cells without an answer.
        coverage: Pairs used over labelled cells; None without labels.
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
    """The median number of pairs on a criterion where it is low enough to bias kappas; None elsewhere."""
    sizes = [agreed.n for agreed in rater.per_criterion.values() if agreed.n]
    median = float(np.median(sizes)) if sizes else 0.0
    return median if len(sizes) > 1 and median < FEW_OF_A_CLASS else None


def names_of(raters: Sequence[RaterReport]) -> list[str]:
    """A name for each of the panel and its judges; a judge called `panel` is `judge panel`."""
    return ["judge panel" if one.kind == "judge" and one.rater == "panel" else one.rater for one in raters]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanCeilings:
    """Each person against the majority of the others (of numbers, their mean), and the mean over people.

    Cells on which the others are tied are left out for a person, which flatters people a little. The figures
    of a judge against the truth are therefore not those of a person against the rest; `gap` sets both against
    the same.

    Attributes:
        humans: The people.
        macro: Mean over people of the means over criteria.
        micro: Mean over people of the pooled figures.
        pooled: Means over criteria of the figures of all people's pairs with the rest together: steadier
            where people labelled few items each.
        per_criterion: Mean over people on each criterion.
        per_human: What is known of each person.
        gap: By `"panel"` and by judge, how much better the rater does than a person in that person's place:
            the macro figures of both against the rest without the person, on the cells that the person
            answered, their difference averaged over people. A judge that is as people are comes to 0; below
            it falls short of them, and an interval that holds 0 cannot tell them apart.
        made_the_truth: Whether the labels of the report are what most of these people say. If not, the gap
            says nothing of those labels.
    """

    humans: tuple[str, ...]
    macro: HeadlineFigures
    micro: HeadlineFigures
    pooled: HeadlineFigures
    per_criterion: Mapping[str, HeadlineFigures]
    per_human: Mapping[str, RaterReport]
    gap: Mapping[str, HeadlineFigures]
    made_the_truth: bool
