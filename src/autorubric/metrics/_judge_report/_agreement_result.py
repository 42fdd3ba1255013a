"""Result of `agreement`."""

from __future__ import annotations

from dataclasses import dataclass

from autorubric._blocks import Block, Cell, ConfusionBlock, ScalarBlock, TableBlock
from autorubric.metrics._audit._findings import FIGURE_COLUMNS, Findings, figure_cells
from autorubric.metrics._bias import BiasResult
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._judge_report._sides import AbstainMode
from autorubric.values import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionAgreement:
    """Agreement on one category versus all others.

    Attributes:
        label: Label of the category.
        precision: Proportion of predictions of this category that are correct.
        recall: Proportion of true labels of this category that were predicted.
        f1: Harmonic mean of precision and recall.
        support_true: Number of true labels of this category.
        support_pred: Number of predictions of this category.
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
        truth_rate: Proportion of abstentions in the truth, `n_truth / n_labelled`.
        pred_rate: Proportion of abstentions by the judge, `n_pred / n_labelled`.
        kappa: Cohen's kappa for whether truth and judge abstain, over units with a label and a vote.
    """

    n_labelled: int
    n_truth: int
    n_pred: int
    n_both: int
    n_failed: int
    truth_rate: Estimate
    pred_rate: Estimate
    kappa: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(Findings):
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
        every = {name: getattr(self, name) for name in FIGURES}
        return {name: found for name, found in every.items() if found.reason != "not_on_scale"}

    def blocks(self) -> list[Block]:
        """Return the metrics as content blocks for the text, HTML and LaTeX renderers."""
        rows = tuple((name.replace("_", " "), *figure_cells(one)) for name, one in self.figures().items())
        told: list[tuple[str, Cell]] = [
            ("pairs", self.n),
            ("units excluded", self.n_missing),
            ("coverage", self.coverage.value),
            ("abstentions of the truth", self.abstentions.truth_rate.value),
            ("abstentions of the judge", self.abstentions.pred_rate.value),
        ]
        blocks: list[Block] = [
            ScalarBlock(title="Agreement", figures=tuple(told)),
            TableBlock(columns=("figure", *FIGURE_COLUMNS), rows=rows),
        ]
        if self.table:
            blocks.append(ConfusionBlock(title="Confusion matrix", labels=self.labels, counts=self.table))
        return blocks


FIGURES: tuple[str, ...] = (
    "accuracy", "balanced_accuracy", "kappa", "weighted_kappa", "ac1", "phi", "macro_f1", "macro_precision",
    "macro_recall", "precision", "recall", "specificity", "f1", "positive_agreement", "negative_agreement",
    "adjacent_accuracy", "adjacent_by_chance", "spearman", "kendall", "pearson", "ccc", "rmse", "mae",
)  # fmt: skip
"""Names of the metrics of an `Agreement` that are single numbers."""
