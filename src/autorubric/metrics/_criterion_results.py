"""What is known of a rater on one criterion, by measurement level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from autorubric.metrics._bias import BiasResult, ConfidenceInterval
from autorubric.metrics._estimate import Estimate, Reason, TestStatistic, UndefinedEstimateError
from autorubric.metrics._number import NumberLike

CriterionType: TypeAlias = Literal["binary", "ordinal", "nominal", "interval", "ranking"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrelationResult(NumberLike):
    """A correlation; compares and calculates as its coefficient where there is one.

    Attributes:
        coefficient: The correlation, on [-1, 1]; None where undefined.
        p_value: Two-sided p of no correlation, items being independent; None where undefined.
        ci: Its interval; None where there are too few items.
        interpretation: The size in words; `undefined` without a coefficient.
        n_samples: Pairs used.
        method: Which correlation, and how the interval was made.
        reason: Why it is undefined.
        test: The test of `p_value` with its statistic: t of Pearson and Spearman, z of Kendall; None where
            there is no test, and for coefficients of ±1, where t is infinite.
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
    """One option against all others.

    Attributes:
        label: The option.
        precision: Of those judged so, the share that is; None where nobody was.
        recall: Of those that are, the share judged so; None where nobody is.
        f1: Their harmonic mean; None where the option occurs on neither side.
        support_true: How often it is true.
        support_pred: How often it was judged.
    """

    label: str
    precision: float | None
    recall: float | None
    f1: float | None
    support_true: int
    support_pred: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionMatrix:
    """Pairs of truth and judge.

    Attributes:
        labels: Categories, in order.
        counts: `(n_labels, n_labels)`; rows are truth, columns the judge.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionCoverage:
    """What the figures of a criterion rest on.

    Attributes:
        name: The criterion.
        index: Its position among the run's criteria.
        criterion_type: Its level.
        n_samples: Pairs of truth and judge that the figures use.
        n_labelled: Cells with a label, abstentions included.
        coverage: `n_samples / n_labelled`; None without labels.
        abstention_rate: Share of labelled cells on which the judge abstained.
        failure_rate: Share of labelled cells on which the judge failed.
        reasons: Why figures are None, by name.
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
    """A rater on a binary criterion; MET is the positive class.

    Attributes:
        accuracy: Share of right verdicts.
        balanced_accuracy: Mean of recall and specificity.
        precision: Share of right ones among those judged MET.
        recall: Share found of those that are MET.
        sensitivity: True positive rate (TPR), another name of recall.
        sensitivity_ci: Its score interval (Wilson); None where it is undefined.
        specificity: True negative rate (TNR): share found of those that are UNMET.
        specificity_ci: Its score interval (Wilson); None where it is undefined.
        f1: Harmonic mean of precision and recall.
        kappa: Cohen's kappa.
        kappa_interpretation: Its size in the words of Landis and Koch (1977).
        mcc: Matthews' correlation.
        support_true: MET labels among the pairs.
        support_pred: MET verdicts among the pairs.
        confusion_matrix: UNMET, MET and, where abstentions are a category, CANNOT_ASSESS.
        fleiss_kappa: Agreement among the judges; None with one.
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
    """A rater on a choice without order.

    Attributes:
        exact_accuracy: Share of right options.
        balanced_accuracy: Mean recall over the options that are true somewhere.
        macro_f1: Mean F1 over the options that occur.
        kappa: Cohen's kappa.
        kappa_interpretation: Its size in the words of Landis and Koch (1977).
        per_option: Each option against the others.
        confusion_matrix: Pairs of options.
        fleiss_kappa: Agreement among the judges; None with one.
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
    """A rater on an ordered scale; `kappa` ignores the order.

    Attributes:
        adjacent_accuracy: Share at most one option apart.
        adjacent_by_chance: What the margins alone would give of it.
        weighted_kappa: Kappa with quadratic weights on the option values.
        weighted_kappa_interpretation: Its size in the words of Landis and Koch (1977).
        spearman: Of the option values.
        kendall: Tau-b of the option values.
        rmse: Of the option values, on [0, 1].
        mae: Of the option values, on [0, 1].
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
    """A rater on numbers, in their own units.

    Attributes:
        rmse: Root mean square error.
        mae: Mean absolute error.
        bias: Judge minus truth.
        pearson: Linear correlation.
        spearman: Rank correlation.
        kendall: Tau-b.
        ccc: Lin's concordance.
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
    """A rater on a comparison of candidates, by what it came to and not by how far.

    It stands beside the figures of the other levels and enters no mean over criteria: two candidates may
    change places, so that no answer is the positive one.

    Attributes:
        accuracy: Share of right outcomes: the right one of a pair preferred, or a tie; the right order; the
            right best.
        kappa: Cohen's kappa of the outcomes, by the place where each candidate is declared.
        kappa_interpretation: Its size in the words of Landis and Koch (1977).
        tie_rate: Share of the judged outcomes in which the first place is shared.
        position_consistency: Share of the samples in which a judge came to the same outcome in both orders of
            the candidates; of the panel, over all of its judges.
        n_position_pairs: How many samples that is a share of.
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
    """The size of a kappa in the words of Landis and Koch (1977, table on page 165)."""
    if kappa is None:
        return "undefined"
    if kappa < 0:
        return "poor"
    words = ((0.20, "slight"), (0.40, "fair"), (0.60, "moderate"), (0.80, "substantial"))
    return next((word for end, word in words if kappa <= end), "almost perfect")


def interpret_correlation(coefficient: float | None) -> str:
    """The size of a correlation in words, by the conventional steps .1, .3, .5, .7 and .9."""
    if coefficient is None:
        return "undefined"
    steps = ((0.1, "negligible"), (0.3, "weak"), (0.5, "moderate"), (0.7, "strong"), (0.9, "very strong"))
    return next((word for end, word in steps if abs(coefficient) < end), "almost perfect")
