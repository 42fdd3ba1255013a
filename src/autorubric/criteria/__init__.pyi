from .base import AS_DECLARED as AS_DECLARED, BaseCriterion as BaseCriterion, Shown as Shown
from .candidates import candidate_id as candidate_id
from .checklist import ChecklistCriterion as ChecklistCriterion
from .comparative import ComparativeCriterion as ComparativeCriterion, ComparisonMode as ComparisonMode
from .conditions import (
    Check as Check,
    Gate as Gate,
    When as When,
    check_name as check_name,
    code_digest as code_digest,
    find_check as find_check,
    is_registered as is_registered,
    qualified_name as qualified_name,
    register_check as register_check,
)
from .criterion import Criterion as Criterion, CriterionOption as CriterionOption
from .declaration import longest_reply as longest_reply, object_schema as object_schema
from .fields import (
    BoolField as BoolField,
    BoundFloat as BoundFloat,
    BoundInt as BoundInt,
    ChoiceField as ChoiceField,
    DictField as DictField,
    EvalField as EvalField,
    ListField as ListField,
    TextField as TextField,
)
from .levels import (
    AnalyticRubricCriterion as AnalyticRubricCriterion,
    HolisticRubricCriterion as HolisticRubricCriterion,
    RubricDimension as RubricDimension,
    RubricLevel as RubricLevel,
)
from .narrative import NarrativeCriterion as NarrativeCriterion
from .ratings import (
    LikertCriterion as LikertCriterion,
    LikertItem as LikertItem,
    NumericalRatingCriterion as NumericalRatingCriterion,
    PassFailCriterion as PassFailCriterion,
)
from .registry import (
    criterion_from_dict as criterion_from_dict,
    criterion_to_dict as criterion_to_dict,
    kind_of as kind_of,
    register_kind as register_kind,
    registered_kinds as registered_kinds,
)
from .values import (
    Answer as Answer,
    CriterionVerdict as CriterionVerdict,
    Level as Level,
    ScaleType as ScaleType,
    Submission as Submission,
    VerdictCounts as VerdictCounts,
    VoteStatus as VoteStatus,
)

__all__: list[str]
