"""The figures of one rater against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autorubric.metrics._bias import BiasResult, ConfidenceInterval
from autorubric.metrics._criterion_results import AnyCriterionMetrics, CorrelationResult
from autorubric.metrics._estimate import Reason
from autorubric.values import NamedList


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledMetrics:
    """Figures over all cells at once, whatever the criterion.

    Pooling mixes criteria of different base rates, which lifts chance-corrected figures: two criteria with a
    kappa of 0 each can pool to .6. Read the macro figures first.

    Attributes:
        n: Pairs used.
        n_labelled: Cells with a label.
        labels: The categories pooled; empty where cells of several scales share only a value.
        accuracy: Share of right answers.
        precision: Of MET among binary cells.
        recall: Of MET among binary cells.
        sensitivity: True positive rate (TPR), another name of recall.
        specificity: True negative rate (TNR): of UNMET among binary cells.
        f1: Of MET among binary cells.
        balanced_accuracy: Mean recall over the true classes.
        kappa: Cohen's kappa, unweighted.
        weighted_kappa: With quadratic weights on values; None unless the scale is ordinal.
        mcc: Matthews' correlation, on more classes Gorodkin's R_K.
        pearson: Of the values on [0, 1].
        reasons: Why figures are None, by name.
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
    """Intervals from resampled items: percentiles, and for the mean kappa t with their standard error.

    Attributes:
        accuracy_ci: Of `criterion_accuracy`; None where it is undefined in more than half of the resamples.
        kappa_ci: Of `mean_kappa`, likewise.
        rmse_ci: Of `score_rmse`, likewise.
        n_bootstrap: Resamples.
        confidence_level: Level.
        seed: Seed of the resampling.
    """

    accuracy_ci: ConfidenceInterval | None
    kappa_ci: ConfidenceInterval | None
    rmse_ci: ConfidenceInterval | None
    n_bootstrap: int
    confidence_level: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NaStats:
    """Cells that carry no answer, in four kinds that are never mixed.

    Attributes:
        n_cells: Cells with a label, abstentions included.
        n_answered: Answered by truth and judge.
        truth_abstained: Labelled NA or CANNOT_ASSESS.
        judge_abstained: Judged NA or CANNOT_ASSESS.
        both_abstained: Both.
        failed: The judge failed, or gave unreadable replies alone.
        not_asked: The judge was not asked or has no vote.
        not_applicable: A condition left the criterion out.
        undecided: Several of its answers lead, as those of a panel in a label table may.
        truth_rate: `truth_abstained / n_cells`; None without cells.
        judge_rate: `judge_abstained / n_cells`.
        kappa: Cohen's kappa of abstaining at all, over cells with a vote; None where undefined.
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
    """The figures of one rater, a panel or a judge, against the truth.

    Macro figures are means over criteria; `defined` says over how many of how many. `criterion_accuracy` and
    `criterion_balanced_accuracy` take exact agreement on every categorical criterion, precision, recall,
    sensitivity, specificity and F1 the binary ones, and `mean_kappa` the kappa of binary and nominal criteria
    and the weighted kappa of ordinal ones.

    Attributes:
        criterion_accuracy: Mean accuracy.
        criterion_balanced_accuracy: Mean balanced accuracy.
        criterion_precision: Mean precision.
        criterion_recall: Mean recall.
        criterion_sensitivity: Mean sensitivity (TPR), another name of `criterion_recall`.
        criterion_sensitivity_ci: Its interval over items (logit-t); None where there are too few.
        criterion_specificity: Mean specificity (TNR).
        criterion_specificity_ci: Its interval over items (logit-t); None where there are too few.
        criterion_f1: Mean F1.
        mean_kappa: Mean kappa.
        defined: (criteria on which a macro figure is defined, criteria that could have it), by name.
        per_criterion: Figures of each criterion, in the rubric's order; by position or name.
        pooled: All cells at once.
        pooled_by_scale: The cells of each scale at once, by its labels; the chance of kappa is that of all of
            them, which mixes base rates (`judge_report` takes that of each criterion).
        score_rmse: Of item scores without length penalty, on [0, 1].
        score_mae: Likewise.
        score_spearman: Likewise.
        score_kendall: Likewise.
        score_pearson: Likewise.
        bias: Judge minus truth of item scores.
        n_scores: Items with both scores.
        bootstrap: Intervals from resampled items, where asked for.
        na_stats: Abstentions and failures.
        coverage: Pairs used over labelled cells; None without labels.
        abstention_rate: Share of labelled cells on which the rater abstained.
        failure_rate: Share of labelled cells on which the rater failed.
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
    """The figures of one judge, its samples combined.

    Attributes:
        judge_id: The judge.
    """

    judge_id: str
