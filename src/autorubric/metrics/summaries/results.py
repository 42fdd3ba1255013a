"""Result classes with the metrics of one rater, per criterion and over all criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from autorubric.criteria.values import NamedList
from autorubric.metrics.core.estimate import (
    Estimate,
    NumberLike,
    Reason,
    TestStatistic,
    UndefinedEstimateError,
)
from autorubric.metrics.core.result import MetricValues
from autorubric.metrics.figures.bias import BiasResult, ConfidenceInterval

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
class OptionMetrics(MetricValues):
    """One-vs-rest metrics of one option.

    Attributes:
        label: Label of the option.
        precision: Proportion of the judge's choices of the option that are correct; None if never chosen.
        recall: Proportion of items with this label that the judge labelled correctly; None if no item has it.
        f1: Harmonic mean of precision and recall; None if the option is neither a label nor an answer.
        support_true: Number of pairs with this option in truth.
        support_pred: Number of pairs with this option in the judge's answers.
        more: Metrics of installed packages by name; they are attributes too.
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
class CriterionCoverage(MetricValues):
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
        label_unanswered: Number of labelled items whose label has no answer (NA or CANNOT_ASSESS).
        judge_unanswered: Number of items whose label has an answer and that the judge did not answer.
        answered_na: Number of items whose label has no answer and that the judge answered; no metric counts
            these answers.
        reasons: Reasons why metrics are None, by name of the metric.
        more: Metrics of installed packages by name; they are attributes too.
    """

    name: str
    index: int
    criterion_type: CriterionType
    n_samples: int
    n_labelled: int
    coverage: float | None
    abstention_rate: float | None
    failure_rate: float | None
    label_unanswered: int = 0
    judge_unanswered: int = 0
    answered_na: int = 0
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


_SHOWN = {
    "accuracy": ("accuracy", "exact_accuracy"),
    "kappa": ("weighted_kappa", "kappa"),
    "f1": ("f1", "macro_f1"),
}


def shown_value(one: AnyCriterionMetrics, name: str) -> float | None:
    """Return what tables over criteria show: exact accuracy, weighted kappa if ordinal, F1 or macro F1."""
    names = _SHOWN.get(name, (name,))
    found: float | None = next((getattr(one, each) for each in names if hasattr(one, each)), None)
    return found


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledMetrics(MetricValues):
    """Metrics pooled over the cells (pairs of item and criterion) of all criteria.

    Pooling mixes criteria with different base rates, which inflates chance-corrected metrics: two criteria
    with a kappa of 0 each can have a pooled kappa of .6. Read the macro metrics first. (The pooled kappa of
    `judge_report` computes the agreement by chance within each criterion.)

    Attributes:
        n: Number of pairs used.
        n_labelled: Number of cells with a label.
        labels: Pooled categories; empty if the cells belong to several scales, none of which is binary.
        accuracy: Proportion of correct answers.
        precision: Precision of MET over binary cells.
        recall: Recall of MET over binary cells.
        sensitivity: True positive rate (TPR) of MET, which equals `recall`.
        specificity: True negative rate (TNR), the recall of UNMET over binary cells.
        f1: F1 of MET over binary cells.
        balanced_accuracy: Mean recall over the classes that occur in the truth.
        kappa: Unweighted Cohen's kappa.
        weighted_kappa: Kappa with quadratic weights on the scale's values; None unless the scale is ordinal.
        mcc: Matthews correlation coefficient; for more than two classes, Gorodkin's R_K.
        pearson: Pearson's r between true and judged values in [0, 1].
        reasons: Reason why each undefined metric is None, keyed by metric name.
        more: Metrics of installed packages by name; they are attributes too.
    """

    n: int
    n_labelled: int
    labels: tuple[str, ...] = ()
    accuracy: float | None = None
    precision: float | None = None
    recall: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    f1: float | None = None
    balanced_accuracy: float | None = None
    kappa: float | None = None
    weighted_kappa: float | None = None
    mcc: float | None = None
    pearson: float | None = None
    reasons: Mapping[str, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapResults:
    """Confidence intervals of the macro metrics over items. Each interval has a `method` that describes it.

    Attributes:
        accuracy_ci: Interval for `criterion_accuracy`; None if undefined or with fewer than two items.
        kappa_ci: Interval for `mean_kappa`; None with fewer than two items or if most resamples are
            undefined.
        rmse_ci: Interval for `score_rmse`; None if undefined in more than half of the resamples.
        n_bootstrap: Number of resamples.
        confidence_level: Confidence level of the intervals.
        seed: Seed for the resampling.
    """

    accuracy_ci: ConfidenceInterval | None
    kappa_ci: ConfidenceInterval | None
    rmse_ci: ConfidenceInterval | None
    n_bootstrap: int
    confidence_level: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NaStats:
    """Counts of labelled cells (pairs of item and criterion) by outcome, such as abstained or failed.

    Attributes:
        n_cells: Number of cells with a label, including labels that are abstentions.
        n_answered: Number of cells that both the truth and the judge answer.
        truth_abstained: Number of cells labelled NA or CANNOT_ASSESS.
        judge_abstained: Number of cells that the judge answered with NA or CANNOT_ASSESS.
        both_abstained: Number of cells on which both the truth and the judge abstain.
        failed: Number of cells on which the judge failed or gave only unreadable replies.
        not_asked: Number of cells on which the judge was not asked or has no vote.
        not_applicable: Number of cells whose criterion was excluded by a condition.
        undecided: Number of cells with a tied decision; only label tables can contain such cells.
        truth_rate: `truth_abstained / n_cells`; None if there are no cells.
        judge_rate: `judge_abstained / n_cells`; None if there are no cells.
        label_unanswered: Number of cells whose label has no answer that counts (NA or CANNOT_ASSESS).
        judge_unanswered: Number of cells whose label has an answer and that the judge did not answer.
        answered_na: Number of cells whose label has no answer and that the judge answered; no metric counts
            these answers.
        kappa: Cohen's kappa for whether truth and judge abstain, over cells with a vote; None if undefined.
    """

    n_cells: int
    n_answered: int
    truth_abstained: int
    judge_abstained: int
    both_abstained: int
    failed: int
    not_asked: int
    not_applicable: int
    undecided: int
    truth_rate: float | None
    judge_rate: float | None
    label_unanswered: int
    judge_unanswered: int
    answered_na: int
    kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterMetrics(MetricValues):
    """Metrics of one rater (a panel or a judge) against the ground truth.

    Macro metrics are means over the criteria on which they are defined; see `defined`. `criterion_accuracy`
    and `criterion_balanced_accuracy` use exact agreement on all categorical criteria. Precision, recall,
    sensitivity, specificity and F1 use binary criteria only. `mean_kappa` averages the kappas of binary and
    nominal criteria and the weighted kappas of ordinal criteria.

    Attributes:
        criterion_accuracy: Mean accuracy.
        criterion_balanced_accuracy: Mean balanced accuracy.
        criterion_precision: Mean precision.
        criterion_recall: Mean recall.
        criterion_sensitivity: Mean sensitivity (TPR), which equals `criterion_recall`.
        criterion_sensitivity_ci: Logit-t interval over items; None if there are fewer than two items.
        criterion_specificity: Mean specificity (TNR).
        criterion_specificity_ci: Logit-t interval over items; None if there are fewer than two items.
        criterion_f1: Mean F1.
        mean_kappa: Mean kappa.
        defined: For each macro metric, the number of criteria on which it is defined and the number to which
            it applies.
        per_criterion: Metrics of each criterion in rubric order, accessible by position or name.
        pooled: Metrics pooled over all cells (pairs of item and criterion).
        pooled_by_scale: Metrics pooled over the cells of each scale, keyed by the scale's labels. Kappa pools
            the chance agreement too, which mixes base rates; `judge_report` computes it per criterion.
        score_rmse: Root mean square error of item scores without the length penalty, in [0, 1].
        score_mae: Mean absolute error of the same scores.
        score_spearman: Spearman's rho of the same scores.
        score_kendall: Kendall's tau-b of the same scores.
        score_pearson: Pearson's r of the same scores.
        bias: Bias of the item scores, judge minus truth.
        n_scores: Number of items for which both the rater and the truth have a score.
        bootstrap: Intervals from resampled items; None unless requested.
        na_stats: Counts of abstentions and failures.
        coverage: Fraction of labelled cells used as pairs; None if there are no labels.
        abstention_rate: Fraction of labelled cells on which the rater abstained; None if there are no labels.
        failure_rate: Fraction of labelled cells on which the rater failed; None if there are no labels.
        more: Means over criteria of metrics of installed packages, with names that begin with `criterion_`;
            they are attributes too.
    """

    criterion_accuracy: float | None
    criterion_balanced_accuracy: float | None
    criterion_precision: float | None
    criterion_recall: float | None
    criterion_sensitivity: float | None
    criterion_sensitivity_ci: ConfidenceInterval | None
    criterion_specificity: float | None
    criterion_specificity_ci: ConfidenceInterval | None
    criterion_f1: float | None
    mean_kappa: float | None
    defined: Mapping[str, tuple[int, int]]
    per_criterion: NamedList[AnyCriterionMetrics]
    pooled: PooledMetrics
    pooled_by_scale: Mapping[str, PooledMetrics]
    score_rmse: float | None
    score_mae: float | None
    score_spearman: CorrelationResult
    score_kendall: CorrelationResult
    score_pearson: CorrelationResult
    bias: BiasResult
    n_scores: int
    bootstrap: BootstrapResults | None
    na_stats: NaStats
    coverage: float | None
    abstention_rate: float | None
    failure_rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeMetrics(RaterMetrics):
    """Metrics of one judge, whose samples are combined into decisions.

    Attributes:
        judge_id: Id of the judge.
    """

    judge_id: str
