from . import sample_size as sample_size
from .audit.bias import BiasReport as BiasReport, bias_report as bias_report
from .audit.compare_judges import (
    JudgeComparison as JudgeComparison,
    adjust_pvalues as adjust_pvalues,
    compare_judges as compare_judges,
)
from .audit.consistency import SelfConsistency as SelfConsistency, self_consistency as self_consistency
from .audit.item_analysis import ItemAnalysis as ItemAnalysis, item_analysis as item_analysis
from .audit.panel import PanelAudit as PanelAudit, panel_audit as panel_audit
from .audit.variance import (
    VarianceComponents as VarianceComponents,
    variance_components as variance_components,
)
from .core.estimate import (
    Estimate as Estimate,
    TestStatistic as TestStatistic,
    UndefinedEstimateError as UndefinedEstimateError,
)
from .core.intervals import clustered_se as clustered_se, wilson as wilson
from .core.metric import (
    MetricDisplay as MetricDisplay,
    MetricSpec as MetricSpec,
    TableMetric as TableMetric,
    metric as metric,
)
from .core.read_votes import votes_table as votes_table
from .core.result import spreadsheet_safe as spreadsheet_safe
from .core.scales import (
    Binary as Binary,
    Interval as Interval,
    Nominal as Nominal,
    Ordinal as Ordinal,
    scale_of as scale_of,
)
from .correction.alt_test import (
    AltTestResult as AltTestResult,
    AnnotatorTest as AnnotatorTest,
    alt_test as alt_test,
)
from .correction.decision import DecisionResult as DecisionResult, decision as decision
from .correction.human_ceiling import HumanCeiling as HumanCeiling, human_ceiling as human_ceiling
from .correction.probability_calibration import calibrate_probabilities as calibrate_probabilities
from .correction.rate import CorrectedRate as CorrectedRate, corrected_rate as corrected_rate
from .correction.score import (
    CorrectedCriterion as CorrectedCriterion,
    CorrectedScore as CorrectedScore,
    corrected_score as corrected_score,
)
from .figures.auroc import (
    CoverageCurve as CoverageCurve,
    CoveragePoint as CoveragePoint,
    accuracy_at_coverage as accuracy_at_coverage,
    auroc as auroc,
)
from .figures.bias import (
    BiasResult as BiasResult,
    ConfidenceInterval as ConfidenceInterval,
    bias as bias,
    systematic_bias as systematic_bias,
)
from .figures.bradley_terry import BradleyTerryResult as BradleyTerryResult, bradley_terry as bradley_terry
from .figures.brier import (
    BrierParts as BrierParts,
    brier as brier,
    brier_parts as brier_parts,
    log_loss as log_loss,
)
from .figures.calibration import (
    ReliabilityBin as ReliabilityBin,
    ReliabilityCurve as ReliabilityCurve,
    ece as ece,
    reliability_curve as reliability_curve,
)
from .figures.classification import (
    accuracy as accuracy,
    adjacent_accuracy as adjacent_accuracy,
    balanced_accuracy as balanced_accuracy,
    macro_f1 as macro_f1,
    mcc as mcc,
    position_consistency as position_consistency,
)
from .figures.correlation import (
    kendall_tau_b as kendall_tau_b,
    lin_ccc as lin_ccc,
    mae as mae,
    pearson as pearson,
    rmse as rmse,
    spearman as spearman,
)
from .figures.dawid_skene import DawidSkeneResult as DawidSkeneResult, dawid_skene as dawid_skene
from .figures.distributions import (
    DistributionResult as DistributionResult,
    KSTestResult as KSTestResult,
    earth_movers_distance as earth_movers_distance,
    ks_test as ks_test,
    score_distribution as score_distribution,
    wasserstein_distance as wasserstein_distance,
)
from .figures.icc import cronbach_alpha as cronbach_alpha, icc as icc, kendall_w as kendall_w
from .figures.kappa import (
    brennan_prediger as brennan_prediger,
    cohen_kappa as cohen_kappa,
    gwet_ac as gwet_ac,
    scott_pi as scott_pi,
)
from .figures.krippendorff import krippendorff_alpha as krippendorff_alpha
from .figures.majority import majority_vote as majority_vote
from .figures.many_raters import (
    conger_kappa as conger_kappa,
    fleiss_kappa as fleiss_kappa,
    percent_agreement as percent_agreement,
)
from .figures.one_vs_rest import (
    f1 as f1,
    negative_agreement as negative_agreement,
    positive_agreement as positive_agreement,
    precision as precision,
    recall as recall,
    specificity as specificity,
)
from .figures.pairwise import pairwise_accuracy as pairwise_accuracy
from .figures.pass_at_k import PassRates as PassRates, pass_at_k as pass_at_k
from .figures.specs import SPECS as SPECS, spec as spec
from .summaries.agreement import (
    Abstentions as Abstentions,
    Agreement as Agreement,
    OptionAgreement as OptionAgreement,
    agreement as agreement,
)
from .summaries.compute import MetricsResult as MetricsResult, compute_metrics as compute_metrics
from .summaries.highlights import PanelAndBest as PanelAndBest
from .summaries.judge_report import (
    HumanAgreement as HumanAgreement,
    human_agreement as human_agreement,
    judge_report as judge_report,
)
from .summaries.opinions import (
    AggregatedScore as AggregatedScore,
    aggregate_scores as aggregate_scores,
    inter_rater_reliability as inter_rater_reliability,
    mean_opinion_score as mean_opinion_score,
    median_opinion_score as median_opinion_score,
)
from .summaries.probability_figures import ProbabilityFigures as ProbabilityFigures
from .summaries.rater_report import (
    ComparisonFigures as ComparisonFigures,
    HeadlineFigures as HeadlineFigures,
    HumanCeilings as HumanCeilings,
    MacroFigures as MacroFigures,
    RaterFailures as RaterFailures,
    RaterReport as RaterReport,
)
from .summaries.reliability import (
    RaterShares as RaterShares,
    Reliability as Reliability,
    reliability as reliability,
)
from .summaries.report_result import JudgeReport as JudgeReport
from .summaries.results import (
    BootstrapResults as BootstrapResults,
    ConfusionMatrix as ConfusionMatrix,
    CorrelationResult as CorrelationResult,
    CriterionMetrics as CriterionMetrics,
    IntervalCriterionMetrics as IntervalCriterionMetrics,
    JudgeMetrics as JudgeMetrics,
    NaStats as NaStats,
    NominalCriterionMetrics as NominalCriterionMetrics,
    OptionMetrics as OptionMetrics,
    OrdinalCriterionMetrics as OrdinalCriterionMetrics,
    PooledMetrics as PooledMetrics,
    RankingCriterionMetrics as RankingCriterionMetrics,
    RaterMetrics as RaterMetrics,
)
from .summaries.run_comparison import (
    JudgePair as JudgePair,
    PairedDifference as PairedDifference,
    RunComparison as RunComparison,
    RunDifference as RunDifference,
    compare_run as compare_run,
    run_difference as run_difference,
)

__all__: list[str]
