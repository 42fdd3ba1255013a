"""The policy that turns votes into decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, assert_never

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from autorubric._kept import Kept
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.values import Level

if TYPE_CHECKING:
    from autorubric.aggregation._methods import Aggregator

OnFailure = Literal["conservative", "exclude", "raise"]
BinaryAggregation = Literal["majority", "weighted", "unanimous", "any"]
OrdinalAggregation = Literal["mean", "median", "weighted_mean", "mode", "min", "max"]
NominalAggregation = Literal["mode", "weighted_mode", "unanimous"]
RankingAggregation = Literal["borda", "bradley_terry"]


class AggregationPolicy(BaseModel):
    """Policy for combining votes into decisions, with one method per measurement level.

    Attributes:
        aggregation: Method for binary criteria.
        ordinal_aggregation: Method for ordered scales and numbers.
        nominal_aggregation: Method for unordered choices.
        ranking_aggregation: Method for comparisons of candidates.
        on_failure: What to do with a reply that cannot be parsed: count it as the conservative answer,
            exclude it, or raise an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    aggregation: BinaryAggregation = "majority"
    ordinal_aggregation: OrdinalAggregation = "mean"
    nominal_aggregation: NominalAggregation = "mode"
    ranking_aggregation: RankingAggregation = "borda"
    on_failure: OnFailure = "conservative"

    @field_validator("*", mode="before")
    @classmethod
    def _ignore_case(cls, given: object) -> object:
        return given.lower() if isinstance(given, str) else given

    @classmethod
    def of(cls, **given: object) -> AggregationPolicy:
        """Create a policy from keyword arguments.

        Raises:
            ArgumentError: If a value is not allowed; the message lists the allowed values.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            fault = error.errors()[0]
            raise ArgumentError(f"{fault['loc'][0]}={fault['input']!r}: {fault['msg']}") from None

    def aggregator(self, criterion: BaseCriterion) -> Aggregator:
        """Return the aggregator for the method set in the criterion or, by default, for its level.

        If a criterion has parts, such as checklist items, each is aggregated separately, based on its level.

        Raises:
            ArgumentError: If the method set in the criterion is not available for its level or the level of
                one of its parts.
        """
        chosen = _CHOSEN.of(self).of(criterion)
        if not chosen:
            chosen.append(self._chosen(criterion))
        return chosen[0]

    def _chosen(self, criterion: BaseCriterion) -> Aggregator:
        # Imported late, because a policy is read whenever a run is opened but seldom counts votes.
        from autorubric.aggregation._methods import AGGREGATORS
        from autorubric.aggregation._parts import part_by_part

        parts = criterion.part_fields.values()
        if parts:
            return part_by_part(
                [self._of_level(part, f"{criterion.name!r}: part aggregation") for part in parts],
                undivided=AGGREGATORS["interval"]["mean"],
            )
        return self._of_level(criterion, f"{criterion.name!r}: aggregation")

    def _of_level(self, criterion: BaseCriterion, called: str) -> Aggregator:
        from autorubric.aggregation._methods import AGGREGATORS

        level = criterion.level
        name: str = criterion.aggregation or self._named(level)
        known = AGGREGATORS.get(level, {})
        if name not in known:
            raise ArgumentError(
                f"criterion {called} {name!r} is not available for the level {level!r}; "
                f"allowed: {', '.join(known) or 'none'}"
            )
        return known[name]

    def _named(self, level: Level) -> str:
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


# The aggregator of each policy and criterion, cached on first use.
_CHOSEN: Final = Kept[AggregationPolicy, Kept[BaseCriterion, "list[Aggregator]"]](
    lambda policy: Kept(lambda criterion: [])
)
