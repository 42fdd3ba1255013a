from autorubric.support.images import Image as Image, image_part as image_part

from .base import BaseCriterion as BaseCriterion, Shown as Shown, register_kind as register_kind
from .checklist import ChecklistCriterion as ChecklistCriterion
from .comparative import ComparativeCriterion as ComparativeCriterion
from .conditions import Check as Check, Gate as Gate, When as When, register_check as register_check
from .conversation import ToolCall as ToolCall, Turn as Turn
from .criterion import Criterion as Criterion, CriterionOption as CriterionOption
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
from .transcript_checks import TranscriptCheck as TranscriptCheck
from .values import (
    Answer as Answer,
    CriterionVerdict as CriterionVerdict,
    Level as Level,
    ScaleType as ScaleType,
    Submission as Submission,
    VerdictCounts as VerdictCounts,
)

__all__: list[str]
