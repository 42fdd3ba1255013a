"""How far judges can be trusted: agreement, correlation, error and bias, each with its uncertainty.

Functions take plain sequences, or tables of counts, and give an `Estimate`, which is a number where it is
defined and says why where it is not.
"""

from __future__ import annotations

from autorubric.metrics._bias import BiasResult, ConfidenceInterval, bias
from autorubric.metrics._chance import brennan_prediger, cohen_kappa, gwet_ac, scott_pi
from autorubric.metrics._classification import accuracy, adjacent_accuracy, balanced_accuracy, macro_f1, mcc
from autorubric.metrics._comparisons import BradleyTerryResult, bradley_terry, position_consistency
from autorubric.metrics._compute import compute_metrics
from autorubric.metrics._concordance import kendall_w
from autorubric.metrics._correlation import kendall_tau_b, lin_ccc, pearson, spearman
from autorubric.metrics._criterion_results import (
    ConfusionMatrix,
    CorrelationResult,
    CriterionMetrics,
    IntervalCriterionMetrics,
    NominalCriterionMetrics,
    OptionMetrics,
    OrdinalCriterionMetrics,
    RankingCriterionMetrics,
)
from autorubric.metrics._errors import mae, rmse
from autorubric.metrics._estimate import Estimate, UndefinedEstimateError
from autorubric.metrics._icc import cronbach_alpha, icc
from autorubric.metrics._intervals import clustered_se, wilson
from autorubric.metrics._krippendorff import krippendorff_alpha
from autorubric.metrics._many_raters import conger_kappa, fleiss_kappa, percent_agreement
from autorubric.metrics._metrics_result import MetricsResult
from autorubric.metrics._one_class import (
    f1,
    negative_agreement,
    positive_agreement,
    precision,
    recall,
    specificity,
)
from autorubric.metrics._read_votes import votes_table
from autorubric.metrics._results import BootstrapResults, JudgeMetrics, NaStats, PooledMetrics, RaterMetrics
from autorubric.metrics._scales import Binary, Interval, Nominal, Ordinal, scale_of
from autorubric.metrics._specs import SPECS, MetricSpec, spec
from autorubric.metrics.distribution import (
    DistributionResult,
    EMDResult,
    KSTestResult,
    earth_movers_distance,
    ks_test,
    score_distribution,
    systematic_bias,
    wasserstein_distance,
)

__all__ = [
    "SPECS",
    "BiasResult",
    "Binary",
    "BootstrapResults",
    "BradleyTerryResult",
    "ConfidenceInterval",
    "ConfusionMatrix",
    "CorrelationResult",
    "CriterionMetrics",
    "DistributionResult",
    "EMDResult",
    "Estimate",
    "Interval",
    "IntervalCriterionMetrics",
    "JudgeMetrics",
    "KSTestResult",
    "MetricSpec",
    "MetricsResult",
    "NaStats",
    "Nominal",
    "NominalCriterionMetrics",
    "OptionMetrics",
    "Ordinal",
    "OrdinalCriterionMetrics",
    "PooledMetrics",
    "RankingCriterionMetrics",
    "RaterMetrics",
    "UndefinedEstimateError",
    "accuracy",
    "adjacent_accuracy",
    "balanced_accuracy",
    "bias",
    "bradley_terry",
    "brennan_prediger",
    "clustered_se",
    "cohen_kappa",
    "compute_metrics",
    "conger_kappa",
    "cronbach_alpha",
    "earth_movers_distance",
    "f1",
    "fleiss_kappa",
    "gwet_ac",
    "icc",
    "kendall_tau_b",
    "kendall_w",
    "krippendorff_alpha",
    "ks_test",
    "lin_ccc",
    "macro_f1",
    "mae",
    "mcc",
    "negative_agreement",
    "pearson",
    "percent_agreement",
    "position_consistency",
    "positive_agreement",
    "precision",
    "recall",
    "rmse",
    "scale_of",
    "score_distribution",
    "scott_pi",
    "spearman",
    "spec",
    "specificity",
    "systematic_bias",
    "votes_table",
    "wasserstein_distance",
    "wilson",
]
