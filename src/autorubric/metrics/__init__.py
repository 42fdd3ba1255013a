"""Metrics of the reliability of judges: agreement, correlation, error and bias, with confidence intervals.

Most functions take plain sequences or tables of counts and return an `Estimate`, which behaves like a number
if the metric is defined and reports the reason if it is not.
"""

from __future__ import annotations

from autorubric.metrics import sample_size
from autorubric.metrics._audit._bias_report import bias_report
from autorubric.metrics._audit._bias_results import BiasReport
from autorubric.metrics._audit._components_results import VarianceComponents
from autorubric.metrics._audit._item_analysis import item_analysis
from autorubric.metrics._audit._item_results import ItemAnalysis
from autorubric.metrics._audit._panel_audit import panel_audit
from autorubric.metrics._audit._panel_results import PanelAudit
from autorubric.metrics._audit._self_consistency import SelfConsistency, self_consistency
from autorubric.metrics._audit._variance_components import variance_components
from autorubric.metrics._bias import BiasResult, ConfidenceInterval, bias
from autorubric.metrics._chance import brennan_prediger, cohen_kappa, gwet_ac, scott_pi
from autorubric.metrics._classification import accuracy, adjacent_accuracy, balanced_accuracy, macro_f1, mcc
from autorubric.metrics._compute import MetricsResult, compute_metrics
from autorubric.metrics._concordance import kendall_w
from autorubric.metrics._correction._alt_test import AltTestResult, AnnotatorTest, alt_test
from autorubric.metrics._correction._decision import DecisionResult, decision
from autorubric.metrics._correction._human_ceiling import HumanCeiling, human_ceiling
from autorubric.metrics._correction._rate import CorrectedRate, corrected_rate
from autorubric.metrics._correction._score import corrected_score
from autorubric.metrics._correction._score_results import CorrectedCriterion, CorrectedScore
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
from autorubric.metrics._estimate import Estimate, TestStatistic, UndefinedEstimateError
from autorubric.metrics._icc import cronbach_alpha, icc
from autorubric.metrics._intervals import clustered_se, wilson
from autorubric.metrics._judge_comparison._compare import JudgeComparison, compare_judges
from autorubric.metrics._judge_comparison._stats import adjust_pvalues
from autorubric.metrics._judge_report._agreement import agreement
from autorubric.metrics._judge_report._agreement_result import Abstentions, Agreement, OptionAgreement
from autorubric.metrics._judge_report._human_agreement import HumanAgreement, human_agreement
from autorubric.metrics._judge_report._judge_report import judge_report
from autorubric.metrics._judge_report._panel_and_best import PanelAndBest
from autorubric.metrics._judge_report._rater_report import (
    ComparisonFigures,
    HeadlineFigures,
    HumanCeilings,
    MacroFigures,
    RaterFailures,
    RaterReport,
)
from autorubric.metrics._judge_report._reliability import RaterShares, Reliability, reliability
from autorubric.metrics._judge_report._report_result import JudgeReport
from autorubric.metrics._judge_report._run_comparison import JudgePair, RunComparison, compare_run
from autorubric.metrics._judge_report._run_difference import PairedDifference, RunDifference, run_difference
from autorubric.metrics._krippendorff import krippendorff_alpha
from autorubric.metrics._many_raters import (
    conger_kappa,
    fleiss_kappa,
    fleiss_kappa_by_category,
    percent_agreement,
)
from autorubric.metrics._one_class import (
    f1,
    negative_agreement,
    positive_agreement,
    precision,
    recall,
    specificity,
)
from autorubric.metrics._preferences._bradley_terry import BradleyTerryResult, EloResult, bradley_terry, elo
from autorubric.metrics._preferences._pair_figures import pairwise_accuracy, position_consistency
from autorubric.metrics._preferences._soft_pairwise import soft_pairwise_accuracy
from autorubric.metrics._preferences._tie_calibration import (
    TieCalibratedAccuracy,
    tie_calibrated_pairwise_accuracy,
)
from autorubric.metrics._probabilities._auroc import auroc
from autorubric.metrics._probabilities._brier_parts import BrierParts, brier, brier_parts, log_loss
from autorubric.metrics._probabilities._calibration import (
    ReliabilityBin,
    ReliabilityCurve,
    ece,
    reliability_curve,
)
from autorubric.metrics._probabilities._coverage import CoverageCurve, CoveragePoint, accuracy_at_coverage
from autorubric.metrics._read_votes import votes_table
from autorubric.metrics._rendering import spreadsheet_safe
from autorubric.metrics._results import BootstrapResults, JudgeMetrics, NaStats, PooledMetrics, RaterMetrics
from autorubric.metrics._scales import Binary, Interval, Nominal, Ordinal, scale_of
from autorubric.metrics._specs import SPECS, MetricSpec, spec
from autorubric.metrics._votes_to_truth._dawid_skene import DawidSkeneResult, dawid_skene
from autorubric.metrics._votes_to_truth._majority import majority_vote
from autorubric.metrics.distribution import (
    DistributionResult,
    EMDResult,
    KSTestResult,
    earth_movers_distance,
    js_distance,
    ks_test,
    score_distribution,
    systematic_bias,
    wasserstein_distance,
)

__all__ = [
    "SPECS",
    "Abstentions",
    "Agreement",
    "AltTestResult",
    "AnnotatorTest",
    "BiasReport",
    "BiasResult",
    "Binary",
    "BootstrapResults",
    "BradleyTerryResult",
    "BrierParts",
    "ComparisonFigures",
    "ConfidenceInterval",
    "ConfusionMatrix",
    "CorrectedCriterion",
    "CorrectedRate",
    "CorrectedScore",
    "CorrelationResult",
    "CoverageCurve",
    "CoveragePoint",
    "CriterionMetrics",
    "DawidSkeneResult",
    "DecisionResult",
    "DistributionResult",
    "EMDResult",
    "EloResult",
    "Estimate",
    "HeadlineFigures",
    "HumanAgreement",
    "HumanCeiling",
    "HumanCeilings",
    "Interval",
    "IntervalCriterionMetrics",
    "ItemAnalysis",
    "JudgeComparison",
    "JudgeMetrics",
    "JudgePair",
    "JudgeReport",
    "KSTestResult",
    "MacroFigures",
    "MetricSpec",
    "MetricsResult",
    "NaStats",
    "Nominal",
    "NominalCriterionMetrics",
    "OptionAgreement",
    "OptionMetrics",
    "Ordinal",
    "OrdinalCriterionMetrics",
    "PairedDifference",
    "PanelAndBest",
    "PanelAudit",
    "PooledMetrics",
    "RankingCriterionMetrics",
    "RaterFailures",
    "RaterMetrics",
    "RaterReport",
    "RaterShares",
    "Reliability",
    "ReliabilityBin",
    "ReliabilityCurve",
    "RunComparison",
    "RunDifference",
    "SelfConsistency",
    "TestStatistic",
    "TieCalibratedAccuracy",
    "UndefinedEstimateError",
    "VarianceComponents",
    "accuracy",
    "accuracy_at_coverage",
    "adjacent_accuracy",
    "adjust_pvalues",
    "agreement",
    "alt_test",
    "auroc",
    "balanced_accuracy",
    "bias",
    "bias_report",
    "bradley_terry",
    "brennan_prediger",
    "brier",
    "brier_parts",
    "clustered_se",
    "cohen_kappa",
    "compare_judges",
    "compare_run",
    "compute_metrics",
    "conger_kappa",
    "corrected_rate",
    "corrected_score",
    "cronbach_alpha",
    "dawid_skene",
    "decision",
    "earth_movers_distance",
    "ece",
    "elo",
    "f1",
    "fleiss_kappa",
    "fleiss_kappa_by_category",
    "gwet_ac",
    "human_agreement",
    "human_ceiling",
    "icc",
    "item_analysis",
    "js_distance",
    "judge_report",
    "kendall_tau_b",
    "kendall_w",
    "krippendorff_alpha",
    "ks_test",
    "lin_ccc",
    "log_loss",
    "macro_f1",
    "mae",
    "majority_vote",
    "mcc",
    "negative_agreement",
    "pairwise_accuracy",
    "panel_audit",
    "pearson",
    "percent_agreement",
    "position_consistency",
    "positive_agreement",
    "precision",
    "recall",
    "reliability",
    "reliability_curve",
    "rmse",
    "run_difference",
    "sample_size",
    "scale_of",
    "score_distribution",
    "scott_pi",
    "self_consistency",
    "soft_pairwise_accuracy",
    "spearman",
    "spec",
    "specificity",
    "spreadsheet_safe",
    "systematic_bias",
    "tie_calibrated_pairwise_accuracy",
    "variance_components",
    "votes_table",
    "wasserstein_distance",
    "wilson",
]
