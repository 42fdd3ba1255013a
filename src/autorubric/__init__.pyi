from . import (
    apps as apps,
    criteria as criteria,
    datasets as datasets,
    errors as errors,
    grading as grading,
    integrations as integrations,
    judges as judges,
    llm as llm,
    metrics as metrics,
    plotting as plotting,
    reports as reports,
    rewards as rewards,
    rubric as rubric,
    runs as runs,
    scoring as scoring,
    testing as testing,
    tracing as tracing,
)
from .apps.drafts.generate import generate_critiques as generate_critiques
from .apps.drafts.provenance import load_critique_schema as load_critique_schema
from .apps.drafts.teacher import load_critique_prompt_template as load_critique_prompt_template
from .apps.strategy.criteria import (
    QualitativeCriteria as QualitativeCriteria,
    QuantitativeCriteria as QuantitativeCriteria,
)
from .apps.strategy.steps import LLM as LLM
from .apps.strategy.strategy import Strategy as Strategy
from .criteria.base import BaseCriterion as BaseCriterion
from .criteria.checklist import ChecklistCriterion as ChecklistCriterion
from .criteria.comparative import ComparativeCriterion as ComparativeCriterion
from .criteria.conditions import Gate as Gate, When as When
from .criteria.criterion import Criterion as Criterion, CriterionOption as CriterionOption
from .criteria.levels import (
    AnalyticRubricCriterion as AnalyticRubricCriterion,
    HolisticRubricCriterion as HolisticRubricCriterion,
    RubricDimension as RubricDimension,
    RubricLevel as RubricLevel,
)
from .criteria.narrative import NarrativeCriterion as NarrativeCriterion
from .criteria.ratings import (
    LikertCriterion as LikertCriterion,
    LikertItem as LikertItem,
    NumericalRatingCriterion as NumericalRatingCriterion,
    PassFailCriterion as PassFailCriterion,
)
from .criteria.values import Answer as Answer, CriterionVerdict as CriterionVerdict, Submission as Submission
from .datasets.dataset import RubricDataset as RubricDataset
from .datasets.fields import FieldMap as FieldMap
from .datasets.importers import from_healthbench as from_healthbench, from_paperbench as from_paperbench
from .datasets.item import DataItem as DataItem
from .datasets.labels import merge_labels as merge_labels
from .datasets.promptfoo import from_promptfoo as from_promptfoo
from .errors import (
    ArgumentError as ArgumentError,
    AutorubricError as AutorubricError,
    BudgetError as BudgetError,
    FileError as FileError,
    JudgeError as JudgeError,
    ProviderError as ProviderError,
    TokenUsage as TokenUsage,
)
from .grading.base import Grader as Grader
from .grading.grader import CriterionGrader as CriterionGrader
from .grading.plan import EscalationConfig as EscalationConfig, FewShotConfig as FewShotConfig
from .judges.base import Judge as Judge, JudgeReply as JudgeReply, JudgeRequest as JudgeRequest
from .judges.critic import Critic as Critic
from .judges.critic_prompt import Prompt as Prompt
from .judges.lexical import LexicalJudge as LexicalJudge
from .judges.panel import JudgeSpec as JudgeSpec
from .judges.recorded import RecordedJudge as RecordedJudge
from .llm.client import LLMClient as LLMClient
from .llm.config import LLMConfig as LLMConfig, ThinkingConfig as ThinkingConfig
from .metrics.audit.compare_judges import compare_judges as compare_judges
from .metrics.correction.decision import decision as decision
from .metrics.correction.rate import corrected_rate as corrected_rate
from .metrics.correction.score import corrected_score as corrected_score
from .metrics.figures.kappa import cohen_kappa as cohen_kappa
from .metrics.figures.krippendorff import krippendorff_alpha as krippendorff_alpha
from .metrics.summaries.agreement import agreement as agreement
from .metrics.summaries.compute import compute_metrics as compute_metrics
from .metrics.summaries.judge_report import judge_report as judge_report
from .metrics.summaries.opinions import (
    AggregatedScore as AggregatedScore,
    aggregate_scores as aggregate_scores,
    inter_rater_reliability as inter_rater_reliability,
    mean_opinion_score as mean_opinion_score,
    median_opinion_score as median_opinion_score,
)
from .metrics.summaries.reliability import reliability as reliability
from .reports.labelling import (
    annotation_page as annotation_page,
    write_annotation_page as write_annotation_page,
)
from .rubric.rubric import Rubric as Rubric
from .runs.config import EvalConfig as EvalConfig
from .runs.estimation import estimate as estimate
from .runs.items import ItemResult as ItemResult
from .runs.merge import merge_runs as merge_runs
from .runs.result import EvalResult as EvalResult
from .runs.review import (
    disputed_items as disputed_items,
    fill_ground_truth as fill_ground_truth,
    fill_ground_truth_sync as fill_ground_truth_sync,
)
from .runs.run_setup import load_run as load_run
from .runs.runner import EvalRunner as EvalRunner, evaluate as evaluate, evaluate_sync as evaluate_sync
from .scoring.policies import (
    CannotAssessConfig as CannotAssessConfig,
    CannotAssessStrategy as CannotAssessStrategy,
    LengthPenalty as LengthPenalty,
    PenaltyType as PenaltyType,
    RubricGroup as RubricGroup,
)
from .scoring.reports import (
    CriterionReport as CriterionReport,
    EnsembleCriterionReport as EnsembleCriterionReport,
    EnsembleEvaluationReport as EnsembleEvaluationReport,
    EvaluationReport as EvaluationReport,
)
from .scoring.votes import JudgeVote as JudgeVote

__all__: list[str]
__version__: str
