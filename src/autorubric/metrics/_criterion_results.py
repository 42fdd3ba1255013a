"""Metrics of a rater on one criterion, by measurement level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from autorubric.metrics._bias import BiasResult, ConfidenceInterval
from autorubric.metrics._estimate import Estimate, NumberLike, Reason, TestStatistic, UndefinedEstimateError

CriterionType: TypeAlias = Literal["binary", "ordinal", "nominal", "interval", "ranking"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrelationResult(NumberLike):
    """A correlation that, if defined, behaves like its coefficient in comparisons and arithmetic.

    Attributes:
        coefficient: Correlation coefficient in [-1, 1]; None if undefined.
        p_value: Two-sided p-value for the null hypothesis of zero correlation, assuming independent items.
        ci: Confidence interval; None if there are too few items.
        interpretation: Strength of the correlation in words; `undefined` if there is no coefficient.
        n_samples: Number of pairs used.
        method: Name of the correlation.
        reason: Reason why the coefficient is undefined; None if it is defined.
        test: Test that yields `p_value`, with its statistic: t for Pearson and Spearman, z for Kendall. None
            if there is no test or the coefficient is ±1, where t is infinite.
    """

    coefficient: float | None
    p_value: float | None = None
    ci: ConfidenceInterval | None = None
    interpretation: str = "undefined"
    n_samples: int = 0
    method: str = ""
    reason: Reason | None = None
    test: TestStatistic | None = None

    @property
    def _number(self) -> float | None:
        return self.coefficient

    def _undefined(self) -> UndefinedEstimateError:
        reason = self.reason or "no_pairs"
        return UndefinedEstimateError(Estimate.undefined(reason, n=self.n_samples, method=self.method))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionMetrics:
    """One-vs-rest metrics of one option.

    Attributes:
        label: Label of the option.
        precision: Proportion of the judge's choices of the option that are correct; None if never chosen.
        recall: Proportion of items with this label that the judge labelled correctly; None if no item has it.
        f1: Harmonic mean of precision and recall; None if the option is neither a label nor an answer.
        support_true: Number of pairs with this option in truth.
        support_pred: Number of pairs with this option in the judge's answers.
    """

    label: str
    precision: float | None
    recall: float | None
    f1: float | None
    support_true: int
    support_pred: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionMatrix:
    """A confusion matrix of labels and the judge's answers.

    Attributes:
        labels: Categories in the order of the rows and columns.
        counts: Counts, shape `(n_labels, n_labels)`; rows are true labels, and columns the judge's answers.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionCoverage:
    """A criterion and the amount of data from which its metrics are computed.

    Attributes:
        name: Name of the criterion.
        index: Position among the criteria of the run.
        criterion_type: Measurement level.
        n_samples: Number of pairs of label and judgment that the metrics use.
        n_labelled: Number of items with a label, including labels that are abstentions.
        coverage: `n_samples / n_labelled`; None if no item has a label.
        abstention_rate: Proportion of labelled items on which the judge abstained.
        failure_rate: Proportion of labelled items on which the judge's vote failed.
        reasons: Reasons why metrics are None, by name of the metric.
    """

    name: str
    index: int
    criterion_type: CriterionType
    n_samples: int
    n_labelled: int
    coverage: float | None
    abstention_rate: float | None
    failure_rate: float | None
    reasons: Mapping[str, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionMetrics(CriterionCoverage):
    """Metrics of a rater on a binary criterion, with MET as the positive class.

    Attributes:
        accuracy: Proportion of correct verdicts.
        balanced_accuracy: Mean of recall and specificity.
        precision: Proportion of MET verdicts that are correct.
        recall: Proportion of MET labels that were judged MET.
        sensitivity: True positive rate (TPR), equal to `recall`.
        sensitivity_ci: Wilson score interval of `sensitivity`; None if undefined.
        specificity: True negative rate (TNR), the proportion of UNMET labels that were judged UNMET.
        specificity_ci: Wilson score interval of `specificity`; None if undefined.
        f1: Harmonic mean of precision and recall.
        kappa: Cohen's kappa.
        kappa_interpretation: Strength of agreement in words, after Landis and Koch (1977).
        mcc: Matthews' correlation coefficient.
        support_true: Number of MET labels among the pairs.
        support_pred: Number of MET verdicts among the pairs.
        confusion_matrix: Counts of UNMET, MET and, if abstentions are a category, CANNOT_ASSESS.
        fleiss_kappa: Fleiss' kappa among the judges; None if there is only one judge.
    """

    accuracy: float | None
    balanced_accuracy: float | None
    precision: float | None
    recall: float | None
    sensitivity: float | None
    sensitivity_ci: ConfidenceInterval | None
    specificity: float | None
    specificity_ci: ConfidenceInterval | None
    f1: float | None
    kappa: float | None
    kappa_interpretation: str
    mcc: float | None
    support_true: int
    support_pred: int
    confusion_matrix: ConfusionMatrix
    fleiss_kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NominalCriterionMetrics(CriterionCoverage):
    """Metrics of a rater on a nominal criterion.

    Attributes:
        exact_accuracy: Proportion of items on which the rater chose the correct option.
        balanced_accuracy: Mean recall over the options that occur in truth.
        macro_f1: Mean F1 over the options that occur in the labels or the judge's answers.
        kappa: Cohen's kappa.
        kappa_interpretation: Strength of agreement in words, after Landis and Koch (1977).
        per_option: One-vs-rest metrics of each option.
        confusion_matrix: Counts of true and chosen options.
        fleiss_kappa: Fleiss' kappa among the judges; None if there is only one judge.
    """

    exact_accuracy: float | None
    balanced_accuracy: float | None
    macro_f1: float | None
    kappa: float | None
    kappa_interpretation: str
    per_option: tuple[OptionMetrics, ...]
    confusion_matrix: ConfusionMatrix
    fleiss_kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalCriterionMetrics(NominalCriterionMetrics):
    """Metrics of a rater on an ordinal criterion; `kappa` ignores the order.

    Attributes:
        adjacent_accuracy: Proportion of pairs whose options are at most one position apart.
        adjacent_by_chance: `adjacent_accuracy` expected by chance, given the margins.
        weighted_kappa: Kappa with quadratic weights on the option values.
        weighted_kappa_interpretation: Strength of agreement in words, after Landis and Koch (1977).
        spearman: Spearman's rho of the option values.
        kendall: Kendall's tau-b of the option values.
        rmse: Root mean square error of the option values, in [0, 1].
        mae: Mean absolute error of the option values, in [0, 1].
    """

    adjacent_accuracy: float | None
    adjacent_by_chance: float | None
    weighted_kappa: float | None
    weighted_kappa_interpretation: str
    spearman: CorrelationResult
    kendall: CorrelationResult
    rmse: float | None
    mae: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalCriterionMetrics(CriterionCoverage):
    """Metrics of a rater on a numeric criterion, in the units of the numbers.

    Attributes:
        rmse: Root mean square error.
        mae: Mean absolute error.
        bias: Mean of judge minus truth, with tests and limits of agreement.
        pearson: Pearson's linear correlation.
        spearman: Spearman's rank correlation.
        kendall: Kendall's tau-b.
        ccc: Lin's concordance correlation.
    """

    rmse: float | None
    mae: float | None
    bias: BiasResult
    pearson: CorrelationResult
    spearman: CorrelationResult
    kendall: CorrelationResult
    ccc: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingCriterionMetrics(CriterionCoverage):
    """Metrics of a rater on a comparison of candidates, based on who wins rather than by how much.

    Means over criteria exclude these metrics: candidates may swap places, so there is no positive class.

    Attributes:
        accuracy: Proportion of correct outcomes: the correct preference or tie in a pair, the correct order,
            or the correct best candidate.
        kappa: Cohen's kappa of the outcomes, with candidates identified by their declared positions.
        kappa_interpretation: Strength of agreement in words, after Landis and Koch (1977).
        tie_rate: Proportion of the judge's outcomes in which candidates tie for first place.
        position_consistency: Proportion of samples in which a judge reaches the same outcome in both orders
            of the candidates. The panel's value is computed over the samples of all judges.
        n_position_pairs: Number of samples from which `position_consistency` is computed.
    """

    accuracy: float | None
    kappa: float | None
    kappa_interpretation: str
    tie_rate: float | None
    position_consistency: float | None
    n_position_pairs: int


AnyCriterionMetrics: TypeAlias = (
    CriterionMetrics
    | OrdinalCriterionMetrics
    | NominalCriterionMetrics
    | IntervalCriterionMetrics
    | RankingCriterionMetrics
)


def interpret_kappa(kappa: float | None) -> str:
    """Describe the size of a kappa in the words of Landis and Koch (1977, table on page 165)."""
    if kappa is None:
        return "undefined"
    if kappa < 0:
        return "poor"
    words = ((0.20, "slight"), (0.40, "fair"), (0.60, "moderate"), (0.80, "substantial"))
    return next((word for end, word in words if kappa <= end), "almost perfect")


def interpret_correlation(coefficient: float | None) -> str:
    """Describe the size of a correlation in words, with the usual thresholds .1, .3, .5, .7 and .9."""
    if coefficient is None:
        return "undefined"
    steps = ((0.1, "negligible"), (0.3, "weak"), (0.5, "moderate"), (0.7, "strong"), (0.9, "very strong"))
    return next((word for end, word in steps if abs(coefficient) < end), "almost perfect")
