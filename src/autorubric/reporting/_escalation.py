"""Escalation in a cascade: when a decision of the first judges goes to a more expensive panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from autorubric.criteria import BaseCriterion

if TYPE_CHECKING:
    from autorubric.types import Decision, JudgeVote


class EscalationRule(BaseModel):
    """An `EscalationConfig` as stored in a run's policy.

    Attributes:
        judges: Ids of the judges that uncertain criteria are escalated to.
        threshold: Confidence in [0, 1] below which a criterion is escalated.
        per_criterion: Thresholds for individual criteria, by criterion name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judges: tuple[str, ...]
    threshold: float = Field(ge=0.0, le=1.0)
    per_criterion: dict[str, float] = Field(default_factory=dict)

    def threshold_of(self, criterion: BaseCriterion) -> float:
        """Return the confidence below which this criterion is escalated."""
        return self.per_criterion.get(criterion.name or "", self.threshold)

    def split(self, votes: Sequence[JudgeVote]) -> tuple[list[JudgeVote], list[JudgeVote]]:
        """Split the votes into votes from the first judges and votes from the escalation panel."""
        strong = set(self.judges)
        return [v for v in votes if v.judge_id not in strong], [v for v in votes if v.judge_id in strong]

    def is_unsure(self, criterion: BaseCriterion, decision: Decision, confidence: float | None) -> bool:
        """Return whether the first judges' decision must be escalated, given their confidence in it."""
        if decision.status != "answered" or decision.assumed:
            return True
        return confidence is None or confidence < self.threshold_of(criterion)


def confidence_of(votes: Sequence[JudgeVote], decision: Decision) -> float | None:
    """Return the votes' confidence in the decision, in [0, 1], or None if it is unknown.

    The confidence is the mean probability that the answered votes assign to the chosen answer: a vote's
    confidence if it gave that answer, otherwise one minus its confidence. If there are several votes, a vote
    without a confidence counts as certain, so that the agreement among samples determines the confidence. For
    a single vote without a confidence, return None.
    """
    answered = [vote for vote in votes if vote.status == "answered"]
    if decision.answer is None or not answered:
        return None
    if len(answered) == 1 and answered[0].confidence is None:
        return None
    code = decision.answer.code
    sure = [(1.0 if vote.confidence is None else vote.confidence, vote.answer == code) for vote in answered]
    return sum(confidence if same else 1.0 - confidence for confidence, same in sure) / len(sure)
