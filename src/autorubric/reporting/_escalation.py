"""When what the first judges of a cascade decided goes to a dearer panel, and which votes are whose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from autorubric.criteria import BaseCriterion

if TYPE_CHECKING:
    from autorubric.types import Decision, JudgeVote


class EscalationRule(BaseModel):
    """An `EscalationConfig` as a run's policy holds it.

    Attributes:
        judges: Ids of the judges that uncertain criteria go to.
        threshold: Confidence below which they go there, on [0, 1].
        per_criterion: Thresholds of single criteria, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judges: tuple[str, ...]
    threshold: float = Field(ge=0.0, le=1.0)
    per_criterion: dict[str, float] = Field(default_factory=dict)

    def threshold_of(self, criterion: BaseCriterion) -> float:
        """The confidence below which the criterion is escalated."""
        return self.per_criterion.get(criterion.name or "", self.threshold)

    def split(self, votes: Sequence[JudgeVote]) -> tuple[list[JudgeVote], list[JudgeVote]]:
        """The votes of the judges that grade first, and those of the panel that is escalated to."""
        strong = set(self.judges)
        return [v for v in votes if v.judge_id not in strong], [v for v in votes if v.judge_id in strong]

    def is_unsure(self, criterion: BaseCriterion, decision: Decision, confidence: float | None) -> bool:
        """Whether a first decision with this confidence is to be escalated."""
        if decision.status != "answered" or decision.assumed:
            return True
        return confidence is None or confidence < self.threshold_of(criterion)


def confidence_of(votes: Sequence[JudgeVote], decision: Decision) -> float | None:
    """How sure the votes are of the decision, on [0, 1]; None where they do not say.

    The mean over answered votes of the probability that each gives the answer decided on: its confidence
    where it gave that answer, what is left of it where it gave another. Votes without a confidence count as
    sure of theirs where there are several, so that samples which agree make a confidence; a single one says
    nothing.
    """
    answered = [vote for vote in votes if vote.status == "answered"]
    if decision.answer is None or not answered:
        return None
    if len(answered) == 1 and answered[0].confidence is None:
        return None
    code = decision.answer.code
    sure = [(1.0 if vote.confidence is None else vote.confidence, vote.answer == code) for vote in answered]
    return sum(confidence if same else 1.0 - confidence for confidence, same in sure) / len(sure)
