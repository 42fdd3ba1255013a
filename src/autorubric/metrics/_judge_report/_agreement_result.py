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
    """Agreement on one category against all others.

    Attributes:
        label: The category.
        precision: Share of the units judged to be in the category that truly are.
        recall: Share of the units truly in the category that were judged so.
        f1: Harmonic mean of precision and recall.
        support_true: Number of units truly in the category.
        support_pred: Number of units judged to be in the category.
    """

    label: str
    precision: Estimate
    recall: Estimate
    f1: Estimate
    support_true: int
    support_pred: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstentions:
    """Abstentions over the units with a label, including labels that abstain.

    Attributes:
        n_labelled: Units with a label.
        n_truth: Labels that abstain.
        n_pred: Judgements that abstain, on units with a label.
        n_both: Units on which both abstain.
        n_failed: Judgements that failed.
        truth_rate: `n_truth / n_labelled`.
        pred_rate: `n_pred / n_labelled`.
        kappa: Cohen's kappa of abstaining or not, over units with a label and a judgement.
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
    """Agreement of two raters on one scale.

    A metric that the scale does not support is undefined (`not_on_scale`). So is one that needs an order if
    abstentions count as a category (`na_as_category`).

    Attributes:
        level: Level of the scale.
        labels: Categories of the table, in order; empty for an interval scale.
        table: Pair counts, `(n_labels, n_labels)`, rows truth; empty for an interval scale.
        n: Pairs used.
        n_missing: Units left out because a side has no usable answer.
        abstain: How abstentions are counted.
        coverage: Pairs used divided by units with a label, including labels that abstain.
        accuracy: Share of pairs that are equal.
        balanced_accuracy: Mean recall over the true categories.
        macro_f1: Mean F1 over the categories that occur.
        macro_precision: Nominal: mean precision over the categories that were judged; the method counts them.
            A true category that was never judged has no precision and is left out.
        macro_recall: Nominal: mean recall over the true categories. Equals balanced accuracy, but is also
            defined if there is only one true category.
        kappa: Cohen's kappa, with `weights` if passed.
        ac1: Gwet's AC1; with `weights` AC2.
        phi: Matthews correlation: phi for two categories, R_K for more.
        precision: Binary: share of the units judged MET that are MET.
        recall: Binary: share of the units that are MET that were judged MET.
        specificity: Binary: share of the units that are UNMET that were judged UNMET.
        f1: Binary: harmonic mean of precision and recall.
        positive_agreement: Binary: agreement on MET.
        negative_agreement: Binary: agreement on UNMET.
        weighted_kappa: Ordinal: kappa with `weights`, or quadratic ones, on the scale's values.
        adjacent_accuracy: Ordinal: share of pairs at most one category apart.
        adjacent_by_chance: Ordinal: adjacent accuracy expected from the margins alone; with three categories
            it is already high.
        spearman: Ordinal and interval: Spearman's rho of the values.
        kendall: Ordinal and interval: Kendall's tau-b of the values.
        pearson: Ordinal and interval: Pearson's r of the values.
        ccc: Ordinal and interval: Lin's concordance correlation of the values.
        rmse: Ordinal and interval: root mean squared error, in units of the values.
        mae: Ordinal and interval: mean absolute error, in units of the values.
        bias: Mean of pred minus truth, with values of 0 and 1 on a binary scale; of the tests in `bias`, only
            the t test is run.
        per_option: Each category against the others.
        abstentions: Abstentions of both sides.
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
        """Return the metrics that the scale supports, by name."""
        every = {name: getattr(self, name) for name in FIGURES}
        return {name: found for name, found in every.items() if found.reason != "not_on_scale"}

    def blocks(self) -> list[Block]:
        """Return the metrics as blocks for any renderer."""
        rows = tuple((name.replace("_", " "), *figure_cells(one)) for name, one in self.figures().items())
        told: list[tuple[str, Cell]] = [
            ("pairs", self.n),
            ("units left out", self.n_missing),
            ("coverage", self.coverage.value),
            ("abstentions of the truth", self.abstentions.truth_rate.value),
            ("abstentions of the judge", self.abstentions.pred_rate.value),
        ]
        blocks: list[Block] = [
            ScalarBlock(title="Agreement", figures=tuple(told)),
            TableBlock(columns=("figure", *FIGURE_COLUMNS), rows=rows),
        ]
        if self.table:
            blocks.append(ConfusionBlock(title="Confusion", labels=self.labels, counts=self.table))
        return blocks


FIGURES: tuple[str, ...] = (
    "accuracy", "balanced_accuracy", "kappa", "weighted_kappa", "ac1", "phi", "macro_f1", "macro_precision",
    "macro_recall", "precision", "recall", "specificity", "f1", "positive_agreement", "negative_agreement",
    "adjacent_accuracy", "adjacent_by_chance", "spearman", "kendall", "pearson", "ccc", "rmse", "mae",
)  # fmt: skip
"""Metrics of an `Agreement` that are single numbers."""
