"""Grade texts against weighted rubrics with judges, and measure how far the judges can be trusted.

Every public name is importable from here; each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autorubric.criteria import (
        AnalyticRubricCriterion as AnalyticRubricCriterion,
    )
    from autorubric.criteria import (
        BaseCriterion as BaseCriterion,
    )
    from autorubric.criteria import (
        BoolField as BoolField,
    )
    from autorubric.criteria import (
        BoundFloat as BoundFloat,
    )
    from autorubric.criteria import (
        BoundInt as BoundInt,
    )
    from autorubric.criteria import (
        ChecklistCriterion as ChecklistCriterion,
    )
    from autorubric.criteria import (
        ChoiceField as ChoiceField,
    )
    from autorubric.criteria import (
        ComparativeCriterion as ComparativeCriterion,
    )
    from autorubric.criteria import (
        Criterion as Criterion,
    )
    from autorubric.criteria import (
        CriterionOption as CriterionOption,
    )
    from autorubric.criteria import (
        DictField as DictField,
    )
    from autorubric.criteria import (
        EvalField as EvalField,
    )
    from autorubric.criteria import (
        Gate as Gate,
    )
    from autorubric.criteria import (
        HolisticRubricCriterion as HolisticRubricCriterion,
    )
    from autorubric.criteria import (
        LikertCriterion as LikertCriterion,
    )
    from autorubric.criteria import (
        LikertItem as LikertItem,
    )
    from autorubric.criteria import (
        ListField as ListField,
    )
    from autorubric.criteria import (
        NarrativeCriterion as NarrativeCriterion,
    )
    from autorubric.criteria import (
        NumericalRatingCriterion as NumericalRatingCriterion,
    )
    from autorubric.criteria import (
        PassFailCriterion as PassFailCriterion,
    )
    from autorubric.criteria import (
        RubricDimension as RubricDimension,
    )
    from autorubric.criteria import (
        RubricLevel as RubricLevel,
    )
    from autorubric.criteria import (
        TextField as TextField,
    )
    from autorubric.criteria import (
        When as When,
    )
    from autorubric.criteria import (
        register_check as register_check,
    )
    from autorubric.criteria import (
        register_kind as register_kind,
    )
    from autorubric.critic import (
        Critic as Critic,
    )
    from autorubric.critic import (
        Prompt as Prompt,
    )
    from autorubric.dataset import (
        DataItem as DataItem,
    )
    from autorubric.dataset import (
        RubricDataset as RubricDataset,
    )
    from autorubric.errors import (
        ArgumentError as ArgumentError,
    )
    from autorubric.errors import (
        AuthenticationError as AuthenticationError,
    )
    from autorubric.errors import (
        AutorubricError as AutorubricError,
    )
    from autorubric.errors import (
        ContextLengthError as ContextLengthError,
    )
    from autorubric.errors import (
        DatasetError as DatasetError,
    )
    from autorubric.errors import (
        Fault as Fault,
    )
    from autorubric.errors import (
        FileError as FileError,
    )
    from autorubric.errors import (
        ItemFailedError as ItemFailedError,
    )
    from autorubric.errors import (
        JudgeError as JudgeError,
    )
    from autorubric.errors import (
        MissingDependencyError as MissingDependencyError,
    )
    from autorubric.errors import (
        ModelNotFoundError as ModelNotFoundError,
    )
    from autorubric.errors import (
        ProviderConnectionError as ProviderConnectionError,
    )
    from autorubric.errors import (
        ProviderError as ProviderError,
    )
    from autorubric.errors import (
        ProviderTimeoutError as ProviderTimeoutError,
    )
    from autorubric.errors import (
        RateLimitError as RateLimitError,
    )
    from autorubric.errors import (
        ReplyError as ReplyError,
    )
    from autorubric.errors import (
        RequestRefusedError as RequestRefusedError,
    )
    from autorubric.errors import (
        RubricError as RubricError,
    )
    from autorubric.errors import (
        RunError as RunError,
    )
    from autorubric.errors import (
        RunFormatError as RunFormatError,
    )
    from autorubric.errors import (
        RunLockedError as RunLockedError,
    )
    from autorubric.errors import (
        RunMismatchError as RunMismatchError,
    )
    from autorubric.errors import (
        SchemaRefusedError as SchemaRefusedError,
    )
    from autorubric.errors import (
        ServerError as ServerError,
    )
    from autorubric.errors import (
        TransientError as TransientError,
    )
    from autorubric.eval import (
        EvalConfig as EvalConfig,
    )
    from autorubric.eval import (
        EvalResult as EvalResult,
    )
    from autorubric.eval import (
        EvalRunner as EvalRunner,
    )
    from autorubric.eval import (
        EvalTimingStats as EvalTimingStats,
    )
    from autorubric.eval import (
        ItemResult as ItemResult,
    )
    from autorubric.eval import (
        evaluate as evaluate,
    )
    from autorubric.eval import (
        evaluate_sync as evaluate_sync,
    )
    from autorubric.eval import (
        fill_ground_truth as fill_ground_truth,
    )
    from autorubric.eval import (
        fill_ground_truth_sync as fill_ground_truth_sync,
    )
    from autorubric.graders import (
        CriterionGrader as CriterionGrader,
    )
    from autorubric.graders import (
        FewShotConfig as FewShotConfig,
    )
    from autorubric.graders import (
        Grader as Grader,
    )
    from autorubric.judges import (
        Judge as Judge,
    )
    from autorubric.judges import (
        JudgeReply as JudgeReply,
    )
    from autorubric.judges import (
        JudgeRequest as JudgeRequest,
    )
    from autorubric.judges import (
        JudgeSpec as JudgeSpec,
    )
    from autorubric.judges import (
        LexicalJudge as LexicalJudge,
    )
    from autorubric.judges import (
        RecordedJudge as RecordedJudge,
    )
    from autorubric.judges import (
        SupervisedJudge as SupervisedJudge,
    )
    from autorubric.llm import (
        LLMClient as LLMClient,
    )
    from autorubric.llm import (
        LLMConfig as LLMConfig,
    )
    from autorubric.llm import (
        ThinkingConfig as ThinkingConfig,
    )
    from autorubric.llm import (
        ThinkingLevel as ThinkingLevel,
    )
    from autorubric.llm import (
        generate as generate,
    )
    from autorubric.metrics import (
        BiasResult as BiasResult,
    )
    from autorubric.metrics import (
        Binary as Binary,
    )
    from autorubric.metrics import (
        BootstrapResults as BootstrapResults,
    )
    from autorubric.metrics import (
        ConfidenceInterval as ConfidenceInterval,
    )
    from autorubric.metrics import (
        ConfusionMatrix as ConfusionMatrix,
    )
    from autorubric.metrics import (
        CorrelationResult as CorrelationResult,
    )
    from autorubric.metrics import (
        CriterionMetrics as CriterionMetrics,
    )
    from autorubric.metrics import (
        DistributionResult as DistributionResult,
    )
    from autorubric.metrics import (
        EMDResult as EMDResult,
    )
    from autorubric.metrics import (
        Estimate as Estimate,
    )
    from autorubric.metrics import (
        Interval as Interval,
    )
    from autorubric.metrics import (
        IntervalCriterionMetrics as IntervalCriterionMetrics,
    )
    from autorubric.metrics import (
        JudgeMetrics as JudgeMetrics,
    )
    from autorubric.metrics import (
        KSTestResult as KSTestResult,
    )
    from autorubric.metrics import (
        MetricSpec as MetricSpec,
    )
    from autorubric.metrics import (
        MetricsResult as MetricsResult,
    )
    from autorubric.metrics import (
        NaStats as NaStats,
    )
    from autorubric.metrics import (
        Nominal as Nominal,
    )
    from autorubric.metrics import (
        NominalCriterionMetrics as NominalCriterionMetrics,
    )
    from autorubric.metrics import (
        OptionMetrics as OptionMetrics,
    )
    from autorubric.metrics import (
        Ordinal as Ordinal,
    )
    from autorubric.metrics import (
        OrdinalCriterionMetrics as OrdinalCriterionMetrics,
    )
    from autorubric.metrics import (
        PooledMetrics as PooledMetrics,
    )
    from autorubric.metrics import (
        RankingCriterionMetrics as RankingCriterionMetrics,
    )
    from autorubric.metrics import (
        RaterMetrics as RaterMetrics,
    )
    from autorubric.metrics import (
        UndefinedEstimateError as UndefinedEstimateError,
    )
    from autorubric.metrics import (
        accuracy as accuracy,
    )
    from autorubric.metrics import (
        adjacent_accuracy as adjacent_accuracy,
    )
    from autorubric.metrics import (
        balanced_accuracy as balanced_accuracy,
    )
    from autorubric.metrics import (
        bias as bias,
    )
    from autorubric.metrics import (
        brennan_prediger as brennan_prediger,
    )
    from autorubric.metrics import (
        clustered_se as clustered_se,
    )
    from autorubric.metrics import (
        cohen_kappa as cohen_kappa,
    )
    from autorubric.metrics import (
        compute_metrics as compute_metrics,
    )
    from autorubric.metrics import (
        earth_movers_distance as earth_movers_distance,
    )
    from autorubric.metrics import (
        f1 as f1,
    )
    from autorubric.metrics import (
        fleiss_kappa as fleiss_kappa,
    )
    from autorubric.metrics import (
        gwet_ac as gwet_ac,
    )
    from autorubric.metrics import (
        kendall_tau_b as kendall_tau_b,
    )
    from autorubric.metrics import (
        ks_test as ks_test,
    )
    from autorubric.metrics import (
        lin_ccc as lin_ccc,
    )
    from autorubric.metrics import (
        macro_f1 as macro_f1,
    )
    from autorubric.metrics import (
        mae as mae,
    )
    from autorubric.metrics import (
        mcc as mcc,
    )
    from autorubric.metrics import (
        negative_agreement as negative_agreement,
    )
    from autorubric.metrics import (
        pearson as pearson,
    )
    from autorubric.metrics import (
        percent_agreement as percent_agreement,
    )
    from autorubric.metrics import (
        positive_agreement as positive_agreement,
    )
    from autorubric.metrics import (
        precision as precision,
    )
    from autorubric.metrics import (
        recall as recall,
    )
    from autorubric.metrics import (
        rmse as rmse,
    )
    from autorubric.metrics import (
        scale_of as scale_of,
    )
    from autorubric.metrics import (
        score_distribution as score_distribution,
    )
    from autorubric.metrics import (
        scott_pi as scott_pi,
    )
    from autorubric.metrics import (
        spearman as spearman,
    )
    from autorubric.metrics import (
        specificity as specificity,
    )
    from autorubric.metrics import (
        systematic_bias as systematic_bias,
    )
    from autorubric.metrics import (
        votes_table as votes_table,
    )
    from autorubric.metrics import (
        wasserstein_distance as wasserstein_distance,
    )
    from autorubric.metrics import (
        wilson as wilson,
    )
    from autorubric.opinions import (
        AggregatedScore as AggregatedScore,
    )
    from autorubric.opinions import (
        aggregate_scores as aggregate_scores,
    )
    from autorubric.opinions import (
        inter_rater_reliability as inter_rater_reliability,
    )
    from autorubric.opinions import (
        mean_opinion_score as mean_opinion_score,
    )
    from autorubric.opinions import (
        median_opinion_score as median_opinion_score,
    )
    from autorubric.rubric import (
        Rubric as Rubric,
    )
    from autorubric.scoring import (
        compute_length_penalty as compute_length_penalty,
    )
    from autorubric.types import (
        CannotAssessConfig as CannotAssessConfig,
    )
    from autorubric.types import (
        CannotAssessStrategy as CannotAssessStrategy,
    )
    from autorubric.types import (
        CriterionReport as CriterionReport,
    )
    from autorubric.types import (
        Decision as Decision,
    )
    from autorubric.types import (
        EnsembleCriterionReport as EnsembleCriterionReport,
    )
    from autorubric.types import (
        EnsembleEvaluationReport as EnsembleEvaluationReport,
    )
    from autorubric.types import (
        EvaluationReport as EvaluationReport,
    )
    from autorubric.types import (
        JudgeVote as JudgeVote,
    )
    from autorubric.types import (
        LengthPenalty as LengthPenalty,
    )
    from autorubric.types import (
        MultiChoiceJudgeVote as MultiChoiceJudgeVote,
    )
    from autorubric.types import (
        MultiChoiceVerdict as MultiChoiceVerdict,
    )
    from autorubric.types import (
        PenaltyType as PenaltyType,
    )
    from autorubric.types import (
        RubricGroup as RubricGroup,
    )
    from autorubric.values import (
        Answer as Answer,
    )
    from autorubric.values import (
        CriterionVerdict as CriterionVerdict,
    )
    from autorubric.values import (
        Level as Level,
    )
    from autorubric.values import (
        ScaleType as ScaleType,
    )
    from autorubric.values import (
        Submission as Submission,
    )
    from autorubric.values import (
        TokenUsage as TokenUsage,
    )

_HOMES = {
    "AnalyticRubricCriterion": "criteria",
    "BaseCriterion": "criteria",
    "BoolField": "criteria",
    "BoundFloat": "criteria",
    "BoundInt": "criteria",
    "ChecklistCriterion": "criteria",
    "ChoiceField": "criteria",
    "ComparativeCriterion": "criteria",
    "Criterion": "criteria",
    "CriterionOption": "criteria",
    "DictField": "criteria",
    "EvalField": "criteria",
    "Gate": "criteria",
    "HolisticRubricCriterion": "criteria",
    "LikertCriterion": "criteria",
    "LikertItem": "criteria",
    "ListField": "criteria",
    "NarrativeCriterion": "criteria",
    "NumericalRatingCriterion": "criteria",
    "PassFailCriterion": "criteria",
    "RubricDimension": "criteria",
    "RubricLevel": "criteria",
    "TextField": "criteria",
    "When": "criteria",
    "register_check": "criteria",
    "register_kind": "criteria",
    "Critic": "critic",
    "Prompt": "critic",
    "DataItem": "dataset",
    "RubricDataset": "dataset",
    "ArgumentError": "errors",
    "AuthenticationError": "errors",
    "AutorubricError": "errors",
    "ContextLengthError": "errors",
    "DatasetError": "errors",
    "Fault": "errors",
    "FileError": "errors",
    "ItemFailedError": "errors",
    "JudgeError": "errors",
    "MissingDependencyError": "errors",
    "ModelNotFoundError": "errors",
    "ProviderConnectionError": "errors",
    "ProviderError": "errors",
    "ProviderTimeoutError": "errors",
    "RateLimitError": "errors",
    "ReplyError": "errors",
    "RequestRefusedError": "errors",
    "RubricError": "errors",
    "RunError": "errors",
    "RunFormatError": "errors",
    "RunLockedError": "errors",
    "RunMismatchError": "errors",
    "SchemaRefusedError": "errors",
    "ServerError": "errors",
    "TransientError": "errors",
    "EvalConfig": "eval",
    "EvalResult": "eval",
    "EvalRunner": "eval",
    "EvalTimingStats": "eval",
    "ItemResult": "eval",
    "evaluate": "eval",
    "evaluate_sync": "eval",
    "fill_ground_truth": "eval",
    "fill_ground_truth_sync": "eval",
    "CriterionGrader": "graders",
    "FewShotConfig": "graders",
    "Grader": "graders",
    "Judge": "judges",
    "JudgeReply": "judges",
    "JudgeRequest": "judges",
    "JudgeSpec": "judges",
    "LexicalJudge": "judges",
    "RecordedJudge": "judges",
    "SupervisedJudge": "judges",
    "LLMClient": "llm",
    "LLMConfig": "llm",
    "ThinkingConfig": "llm",
    "ThinkingLevel": "llm",
    "generate": "llm",
    "BiasResult": "metrics",
    "Binary": "metrics",
    "BootstrapResults": "metrics",
    "ConfidenceInterval": "metrics",
    "ConfusionMatrix": "metrics",
    "CorrelationResult": "metrics",
    "CriterionMetrics": "metrics",
    "DistributionResult": "metrics",
    "EMDResult": "metrics",
    "Estimate": "metrics",
    "Interval": "metrics",
    "IntervalCriterionMetrics": "metrics",
    "JudgeMetrics": "metrics",
    "KSTestResult": "metrics",
    "MetricSpec": "metrics",
    "MetricsResult": "metrics",
    "NaStats": "metrics",
    "Nominal": "metrics",
    "NominalCriterionMetrics": "metrics",
    "OptionMetrics": "metrics",
    "Ordinal": "metrics",
    "OrdinalCriterionMetrics": "metrics",
    "PooledMetrics": "metrics",
    "RankingCriterionMetrics": "metrics",
    "RaterMetrics": "metrics",
    "UndefinedEstimateError": "metrics",
    "accuracy": "metrics",
    "adjacent_accuracy": "metrics",
    "balanced_accuracy": "metrics",
    "bias": "metrics",
    "brennan_prediger": "metrics",
    "clustered_se": "metrics",
    "cohen_kappa": "metrics",
    "compute_metrics": "metrics",
    "earth_movers_distance": "metrics",
    "f1": "metrics",
    "fleiss_kappa": "metrics",
    "gwet_ac": "metrics",
    "kendall_tau_b": "metrics",
    "ks_test": "metrics",
    "lin_ccc": "metrics",
    "macro_f1": "metrics",
    "mae": "metrics",
    "mcc": "metrics",
    "negative_agreement": "metrics",
    "pearson": "metrics",
    "percent_agreement": "metrics",
    "positive_agreement": "metrics",
    "precision": "metrics",
    "recall": "metrics",
    "rmse": "metrics",
    "scale_of": "metrics",
    "score_distribution": "metrics",
    "scott_pi": "metrics",
    "spearman": "metrics",
    "specificity": "metrics",
    "systematic_bias": "metrics",
    "votes_table": "metrics",
    "wasserstein_distance": "metrics",
    "wilson": "metrics",
    "AggregatedScore": "opinions",
    "aggregate_scores": "opinions",
    "inter_rater_reliability": "opinions",
    "mean_opinion_score": "opinions",
    "median_opinion_score": "opinions",
    "Rubric": "rubric",
    "compute_length_penalty": "scoring",
    "CannotAssessConfig": "types",
    "CannotAssessStrategy": "types",
    "CriterionReport": "types",
    "Decision": "types",
    "EnsembleCriterionReport": "types",
    "EnsembleEvaluationReport": "types",
    "EvaluationReport": "types",
    "JudgeVote": "types",
    "LengthPenalty": "types",
    "MultiChoiceJudgeVote": "types",
    "MultiChoiceVerdict": "types",
    "PenaltyType": "types",
    "RubricGroup": "types",
    "Answer": "values",
    "CriterionVerdict": "values",
    "Level": "values",
    "ScaleType": "values",
    "Submission": "values",
    "TokenUsage": "values",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'autorubric' has no attribute {name!r}")
    value = getattr(import_module(f"autorubric.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
