"""The decision on one criterion, combined from its votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from autorubric.values import Answer, Json

DecisionStatus = Literal["answered", "abstained", "failed", "not_asked", "not_applicable"]
"""Outcome of a criterion: judged, left open by its judges, failed, never asked, or not applicable.

`not_applicable` means that the criterion's condition does not hold.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The combined votes on one criterion, of one judge or of the panel.

    Attributes:
        status: Outcome of the criterion.
        answer: The chosen answer; None unless `status` is answered, or abstained with an answer.
        mean_value: Aggregate on [0, 1] before an option was selected; None if there is no value.
        tie: Whether the votes were tied, so that the conservative answer was taken.
        agreement: Share of answered votes equal to the answer, on [0, 1]; None without answered votes.
        assumed: Whether the answer rests only on unreadable replies; no vote was answered.
        swayed: Whether unreadable replies, counted as the conservative answer, changed the answer that the
            answered votes alone would give. Such an answer enters the score but no other figure.
    """

    status: DecisionStatus
    answer: Answer | None = None
    mean_value: float | None = None
    tie: bool = False
    agreement: float | None = None
    assumed: bool = False
    swayed: bool = False

    @property
    def value(self) -> float | None:
        """The answer on [0, 1]; None if nothing was decided."""
        return self.answer.value if self.answer and self.status == "answered" else None

    def to_dict(self) -> dict[str, Json]:
        """Return the decision as JSON."""
        return {**asdict(self), "answer": asdict(self.answer) if self.answer else None}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Decision:
        """Read a decision that `to_dict` wrote."""
        answer = given.get("answer")
        return cls(**{**given, "answer": Answer(**answer) if answer else None})
