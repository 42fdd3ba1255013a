"""Result classes with the metrics of one rater against the ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autorubric.metrics._bias import BiasResult, ConfidenceInterval
from autorubric.metrics._criterion_results import AnyCriterionMetrics, CorrelationResult
from autorubric.metrics._estimate import Reason
from autorubric.values import NamedList


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledMetrics:
    """Metrics pooled over the cells (pairs of item and criterion) of all criteria.

    Pooling mixes criteria with different base rates, which inflates chance-corrected metrics: two criteria
    with a kappa of 0 each can have a pooled kappa of .6. Read the macro metrics first.

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
    kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterMetrics:
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
