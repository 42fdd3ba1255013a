"""Grade texts against weighted rubrics with judges, and measure how far the judges can be trusted.

Every public name is importable from here; each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autorubric.criteria import (
        BaseCriterion as BaseCriterion,
        BoolField as BoolField,
        BoundFloat as BoundFloat,
        BoundInt as BoundInt,
        ChoiceField as ChoiceField,
        Criterion as Criterion,
        CriterionOption as CriterionOption,
        DictField as DictField,
        EvalField as EvalField,
        ListField as ListField,
        TextField as TextField,
        register_check as register_check,
        register_kind as register_kind,
    )
    from autorubric.dataset import (
        DataItem as DataItem,
        RubricDataset as RubricDataset,
    )
    from autorubric.errors import (
        ArgumentError as ArgumentError,
        AuthenticationError as AuthenticationError,
        AutorubricError as AutorubricError,
        ContextLengthError as ContextLengthError,
        DatasetError as DatasetError,
        Fault as Fault,
        FileError as FileError,
        ItemFailedError as ItemFailedError,
        JudgeError as JudgeError,
        MissingDependencyError as MissingDependencyError,
        ModelNotFoundError as ModelNotFoundError,
        ProviderConnectionError as ProviderConnectionError,
        ProviderError as ProviderError,
        ProviderTimeoutError as ProviderTimeoutError,
        RateLimitError as RateLimitError,
        ReplyError as ReplyError,
        RequestRefusedError as RequestRefusedError,
        RubricError as RubricError,
        RunError as RunError,
        RunFormatError as RunFormatError,
        RunLockedError as RunLockedError,
        RunMismatchError as RunMismatchError,
        SchemaRefusedError as SchemaRefusedError,
        ServerError as ServerError,
        TransientError as TransientError,
    )
    from autorubric.eval import (
        EvalConfig as EvalConfig,
        EvalResult as EvalResult,
        EvalRunner as EvalRunner,
        EvalTimingStats as EvalTimingStats,
        ItemResult as ItemResult,
        evaluate as evaluate,
        evaluate_sync as evaluate_sync,
        fill_ground_truth as fill_ground_truth,
        fill_ground_truth_sync as fill_ground_truth_sync,
    )
    from autorubric.graders import (
        CriterionGrader as CriterionGrader,
        FewShotConfig as FewShotConfig,
        Grader as Grader,
    )
    from autorubric.judges import (
        Judge as Judge,
        JudgeReply as JudgeReply,
        JudgeRequest as JudgeRequest,
        JudgeSpec as JudgeSpec,
        LexicalJudge as LexicalJudge,
        RecordedJudge as RecordedJudge,
        SupervisedJudge as SupervisedJudge,
    )
    from autorubric.llm import (
        LLMClient as LLMClient,
        LLMConfig as LLMConfig,
        ThinkingConfig as ThinkingConfig,
        ThinkingLevel as ThinkingLevel,
        generate as generate,
    )
    from autorubric.metrics import (
        BiasResult as BiasResult,
        BootstrapResults as BootstrapResults,
        ConfidenceInterval as ConfidenceInterval,
        CorrelationResult as CorrelationResult,
        CriterionMetrics as CriterionMetrics,
        JudgeMetrics as JudgeMetrics,
        MetricsResult as MetricsResult,
        NominalCriterionMetrics as NominalCriterionMetrics,
        OrdinalCriterionMetrics as OrdinalCriterionMetrics,
        compute_metrics as compute_metrics,
    )
    from autorubric.rubric import (
        Rubric as Rubric,
    )
    from autorubric.scoring import (
        compute_length_penalty as compute_length_penalty,
    )
    from autorubric.types import (
        CannotAssessConfig as CannotAssessConfig,
        CannotAssessStrategy as CannotAssessStrategy,
        CriterionReport as CriterionReport,
        Decision as Decision,
        EnsembleCriterionReport as EnsembleCriterionReport,
        EnsembleEvaluationReport as EnsembleEvaluationReport,
        EvaluationReport as EvaluationReport,
        JudgeVote as JudgeVote,
        LengthPenalty as LengthPenalty,
        MultiChoiceJudgeVote as MultiChoiceJudgeVote,
        MultiChoiceVerdict as MultiChoiceVerdict,
        PenaltyType as PenaltyType,
    )
    from autorubric.values import (
        Answer as Answer,
        CriterionVerdict as CriterionVerdict,
        Level as Level,
        ScaleType as ScaleType,
        Submission as Submission,
        TokenUsage as TokenUsage,
    )

_HOMES = {
    "BaseCriterion": "criteria",
    "BoolField": "criteria",
    "BoundFloat": "criteria",
    "BoundInt": "criteria",
    "ChoiceField": "criteria",
    "Criterion": "criteria",
    "CriterionOption": "criteria",
    "DictField": "criteria",
    "EvalField": "criteria",
    "ListField": "criteria",
    "TextField": "criteria",
    "register_check": "criteria",
    "register_kind": "criteria",
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
    "BootstrapResults": "metrics",
    "ConfidenceInterval": "metrics",
    "CorrelationResult": "metrics",
    "CriterionMetrics": "metrics",
    "JudgeMetrics": "metrics",
    "MetricsResult": "metrics",
    "NominalCriterionMetrics": "metrics",
    "OrdinalCriterionMetrics": "metrics",
    "compute_metrics": "metrics",
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
