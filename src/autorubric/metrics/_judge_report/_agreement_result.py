"""What `agreement` gives."""

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
    """One category against all others.

    Attributes:
        label: The category.
        precision: Of those judged so, the share that is.
        recall: Of those that are, the share judged so.
        f1: Their harmonic mean.
        support_true: How often it is true.
        support_pred: How often it was judged.
    """

    label: str
    precision: Estimate
    recall: Estimate
    f1: Estimate
    support_true: int
    support_pred: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstentions:
    """Who abstained, over the units with a label (abstentions included).

    Attributes:
        n_labelled: Units with a label.
        n_truth: Labels that abstain.
        n_pred: Judgements that abstain, where there is a label.
        n_both: Both.
        n_failed: Judgements that failed.
        truth_rate: `n_truth / n_labelled`.
        pred_rate: `n_pred / n_labelled`.
        kappa: Cohen's kappa of abstaining at all, over units with a label and a judgement.
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
    """How far two raters agree on one scale.

    A figure that the scale does not have is undefined (`not_on_scale`); one that abstentions as a category
    leave without an order is, too (`na_as_category`).

    Attributes:
        level: Level of the scale.
        labels: Categories of the table, in order; empty on an interval.
        table: Pairs, `(n_labels, n_labels)`, rows truth; empty on an interval.
        n: Pairs used.
        n_missing: Units left out because a side gave no answer that counts.
        abstain: How abstentions counted.
        coverage: Pairs used over units with a label, abstentions included.
        accuracy: Share of pairs that are equal.
        balanced_accuracy: Mean recall over the true categories.
        macro_f1: Mean F1 over the categories that occur.
        macro_precision: Nominal: mean precision over the categories that were judged; the method counts them.
            A category that is true and was never judged has no precision and is left out.
        macro_recall: Nominal: mean recall over the true categories: the balanced accuracy, also defined where
            one category alone is true.
        kappa: Cohen's kappa, with `weights` where given.
        ac1: Gwet's AC1; with `weights` AC2.
        phi: Matthews' correlation, on two categories phi; on more R_K.
        precision: Binary: of those judged MET, the share that is.
        recall: Binary: of those that are MET, the share judged so.
        specificity: Binary: of those that are UNMET, the share judged so.
        f1: Binary: harmonic mean of precision and recall.
        positive_agreement: Binary: agreement on MET.
        negative_agreement: Binary: agreement on UNMET.
        weighted_kappa: Ordinal: kappa with `weights`, or quadratic ones, on the scale's values.
        adjacent_accuracy: Ordinal: share at most one place apart.
        adjacent_by_chance: Ordinal: what the margins alone would give of it; three categories make it nearly
            free.
        spearman: Ordinal and interval: of the values.
        kendall: Ordinal and interval: tau-b of the values.
        pearson: Ordinal and interval: of the values.
        ccc: Ordinal and interval: Lin's concordance of the values.
        rmse: Ordinal and interval: in units of the values.
        mae: Ordinal and interval: in units of the values.
        bias: Pred minus truth of the values, of 0 and 1 on a binary scale; of the tests of `bias` the t test
            alone.
        per_option: Each category against the others.
        abstentions: Who abstained.
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
        """Another name of `phi`."""
        return self.phi

    def figures(self) -> dict[str, Estimate]:
        """The figures that the scale has, by name."""
        every = {name: getattr(self, name) for name in FIGURES}
        return {name: found for name, found in every.items() if found.reason != "not_on_scale"}

    def blocks(self) -> list[Block]:
        """The figures, for any renderer."""
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
"""The figures of an `Agreement` that are single numbers."""
