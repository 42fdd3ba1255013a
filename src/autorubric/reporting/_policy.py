"""The policy applied to collected votes; changing it needs no new judge calls."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from autorubric.aggregation import AggregationPolicy
from autorubric.reporting._escalation import EscalationRule
from autorubric.types import CannotAssessConfig, LengthPenalty


class GradingPolicy(BaseModel):
    """The rules that turn votes into decisions and decisions into a score.

    Attributes:
        aggregation: How votes are combined.
        cannot_assess: How criteria that have no judgment count in the score.
        length_penalty: Penalty for length; None for no penalty.
        normalize: Whether the score is normalized to [0, 1].
        escalation: Rule for escalating uncertain criteria to other judges; None for no escalation.
        stop_when_decided: Whether votes that can no longer change a verdict are skipped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    aggregation: AggregationPolicy = Field(default_factory=AggregationPolicy)
    cannot_assess: CannotAssessConfig = Field(default_factory=CannotAssessConfig)
    length_penalty: LengthPenalty | None = None
    normalize: bool = True
    escalation: EscalationRule | None = None
    stop_when_decided: bool = False
