"""A decision: what the votes on one criterion come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from autorubric.values import Answer, Json

DecisionStatus = Literal["answered", "abstained", "failed", "not_asked", "not_applicable"]
"""What became of a criterion: judged, left open by its judges, unjudged by failure, never asked, or not
applicable because of a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the votes on one criterion come to, of one judge or of the panel.

    Attributes:
        status: What became of the criterion.
        answer: The answer decided on; None unless answered or abstained with an answer.
        mean_value: The aggregate on [0, 1] before an option was selected; None without a value.
        tie: The votes were tied and the conservative answer was taken.
        agreement: Share of answered votes equal to the answer, on [0, 1]; None without answered votes.
        assumed: The answer stands for unreadable replies alone; no vote was answered.
        swayed: Unreadable replies, counted as the conservative answer, made the answer another than the
            answered votes alone would have. Such an answer enters the score and never a figure.
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
        """The answer on [0, 1]; None where nothing was decided."""
        return self.answer.value if self.answer and self.status == "answered" else None

    def to_dict(self) -> dict[str, Json]:
        """The decision as JSON."""
        return {**asdict(self), "answer": asdict(self.answer) if self.answer else None}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Decision:
        """The decision that `to_dict` wrote."""
        answer = given.get("answer")
        return cls(**{**given, "answer": Answer(**answer) if answer else None})
