"""Policies for missing judgments, length and aggregation, and the groups of a rubric's tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, assert_never

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    SkipValidation,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from autorubric.criteria.base import BaseCriterion, criterion_from_dict
from autorubric.criteria.conditions import qualified_name
from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.scoring.calibration import ProbabilityCalibration
from autorubric.support.field_types import Count, NonNegativeFloat, PositiveFloat, Share

PenaltyType = Literal["ALL", "OUTPUT_ONLY", "THINKING_ONLY"]


def _check_callable(given: Any) -> Any:
    if not callable(given):
        raise ValueError(
            f"{given!r} is not a function; pass a function that returns the number of units in a text"
        )
    return given


CountFunction = Annotated[
    SkipValidation[Callable[[str], int]],
    BeforeValidator(_check_callable),
    PlainSerializer(qualified_name, return_type=str),
]


class CannotAssessStrategy(StrEnum):
    """How to score a criterion that has no judgment (CANNOT_ASSESS or NA).

    `SKIP` removes the criterion from numerator and denominator, `ZERO` scores it as 0, `PARTIAL` as
    `partial_credit`, and `FAIL` as the worst answer: the lowest or, for a negative weight, the highest.
    """

    SKIP = "skip"
    ZERO = "zero"
    PARTIAL = "partial"
    FAIL = "fail"

    @classmethod
    def _missing_(cls, value: object) -> CannotAssessStrategy | None:
        return next((one for one in cls if isinstance(value, str) and value.lower() == one), None)


class CannotAssessConfig(BaseModel):
    """Policy for criteria that have no judgment.

    Attributes:
        strategy: How to score such criteria.
        partial_credit: Value in [0, 1] used by `PARTIAL`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: CannotAssessStrategy = CannotAssessStrategy.SKIP
    partial_credit: Share = 0.5


class LengthPenalty(BaseModel):
    """Policy for a length penalty that is subtracted from the score.

    Attributes:
        free_budget: Maximum number of units without a penalty.
        max_cap: Number of units at which the penalty reaches `penalty_at_cap`.
        penalty_at_cap: Maximum penalty, in score units.
        exponent: Exponent of the increase between the two limits; 1 is linear.
        count_fn: Function that counts the units in a text; words by default.
        penalty_type: Part of the submission to count.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    free_budget: Count = 6000
    max_cap: Count = 8000
    penalty_at_cap: NonNegativeFloat = 0.5
    exponent: PositiveFloat = 1.6
    count_fn: CountFunction | None = None
    penalty_type: PenaltyType = "ALL"

    @model_validator(mode="after")
    def _check_budget(self) -> LengthPenalty:
        if self.free_budget >= self.max_cap:
            raise ValueError(f"free_budget ({self.free_budget}) must be less than max_cap ({self.max_cap})")
        return self


def _read_member(given: Any) -> Any:
    if isinstance(given, Mapping):
        try:
            return RubricGroup(**given) if is_group(given) else criterion_from_dict(given)
        except RecursionError:
            raise ValueError("groups are nested too deeply; make the tree flatter") from None
    if not isinstance(given, (BaseCriterion, RubricGroup)):
        raise ValueError(f"{given!r} is neither a criterion nor a group")
    return given


def _check_members(members: tuple[Any, ...]) -> tuple[Any, ...]:
    if not members:
        raise ValueError("the group is empty; add at least one criterion")
    return members


class RubricGroup(BaseModel):
    """A named group of criteria and nested groups that contributes to the score with a single weight.

    A group's score is normalized to [0, 1] like a rubric's score and contributes to the parent group's score
    like a criterion's value.

    Attributes:
        name: Name of the group, unique among the rubric's groups and criteria; empty for the root.
        criteria: At least one criterion or group; mappings are parsed as in a rubric file.
        weight: Weight in the parent group's score, at least 0 (only criteria can be penalties). The root's
            weight has no effect.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    criteria: Annotated[
        tuple[Annotated[BaseCriterion | RubricGroup, SkipValidation, BeforeValidator(_read_member)], ...],
        AfterValidator(_check_members),
    ]
    weight: NonNegativeFloat = 10.0

    def __init__(
        self,
        name: str,
        criteria: Iterable[BaseCriterion | RubricGroup | Mapping[str, Any]],
        weight: float = 10.0,
        **unknown: Any,
    ) -> None:
        super().__init__(name=name, criteria=criteria, weight=weight, **unknown)

    @property
    def leaves(self) -> tuple[BaseCriterion, ...]:
        """The criteria in the group and its nested groups, depth first."""
        return tuple(one for one in _walk(self) if not isinstance(one, RubricGroup))

    @property
    def groups(self) -> tuple[RubricGroup, ...]:
        """The group itself and all nested groups, parents first."""
        return tuple(one for one in _walk(self) if isinstance(one, RubricGroup))


def _walk(group: RubricGroup) -> Iterator[BaseCriterion | RubricGroup]:
    ahead: list[BaseCriterion | RubricGroup] = [group]
    while ahead:
        yield (one := ahead.pop())
        if isinstance(one, RubricGroup):
            ahead.extend(reversed(one.criteria))


def is_group(given: Mapping[str, Any]) -> bool:
    """Return whether a mapping in a rubric file is a group rather than a criterion."""
    return "criteria" in given and "type" not in given


VoteMode = Literal["hard", "soft"]
OnFailure = Literal["conservative", "exclude", "raise"]
BinaryAggregation = Literal["majority", "weighted", "unanimous", "any"]
OrdinalAggregation = Literal["mean", "median", "weighted_mean", "mode", "min", "max"]
NominalAggregation = Literal["mode", "weighted_mode", "unanimous"]
RankingAggregation = Literal["borda", "bradley_terry"]


class AggregationPolicy(BaseModel):
    """Policy for combining votes into decisions, with one method per measurement level."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    aggregation: BinaryAggregation = "majority"  # method for binary criteria
    ordinal_aggregation: OrdinalAggregation = "mean"  # method for ordered scales and numbers
    nominal_aggregation: NominalAggregation = "mode"  # method for unordered choices
    ranking_aggregation: RankingAggregation = "borda"  # method for comparisons of candidates
    # What to do with a reply that cannot be parsed: count it as the conservative answer, exclude it, or
    # raise an error.
    on_failure: OnFailure = "conservative"
    votes: VoteMode = "hard"  # whether the answers or the probabilities of the votes are combined
    # Smallest probability of the positive answer with which a binary criterion is decided positively, by
    # criterion name; without a threshold, the most probable answer is chosen.
    thresholds: Mapping[str, Share] = Field(default_factory=dict)
    calibrations: tuple[ProbabilityCalibration, ...] = ()  # calibrations of judges' probabilities

    @model_validator(mode="after")
    def _check_soft(self) -> AggregationPolicy:
        if (self.thresholds or self.calibrations) and self.votes == "hard":
            raise ValueError("thresholds and calibrations apply to probabilities; they require votes='soft'")
        return self

    @model_serializer(mode="wrap")
    def _write(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit the settings of soft votes for hard votes, so that the entry is that of older runs."""
        written: dict[str, Any] = handler(self)
        if self.votes == "hard":
            del written["votes"], written["thresholds"]
        if not self.calibrations:
            del written["calibrations"]
        return written

    @field_validator("*", mode="before")
    @classmethod
    def _ignore_case(cls, given: object) -> object:
        return given.lower() if isinstance(given, str) else given

    @classmethod
    def of(cls, **given: object) -> AggregationPolicy:
        """Create a policy from keyword arguments; the message of an error lists the allowed values."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            given_there = f"{where}={fault['input']!r}: " if where else ""
            raise ArgumentError(given_there + fault["msg"].removeprefix("Value error, ")) from None

    def method(self, level: Level) -> str:
        """Return the name of the method for criteria of a level."""
        match level:
            case "binary":
                return self.aggregation
            case "nominal":
                return self.nominal_aggregation
            case "ordinal" | "interval":
                return self.ordinal_aggregation
            case "ranking":
                return self.ranking_aggregation
            case "text":
                return "first"
            case _:
                assert_never(level)
