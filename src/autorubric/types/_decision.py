"""The decision on one criterion, combined from its votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from autorubric.values import Answer, Json

DecisionStatus = Literal["answered", "abstained", "failed", "not_asked", "not_applicable"]
"""Outcome of a criterion: answered, abstained, failed, not asked, or not applicable.

`not_applicable` means that the criterion's condition does not hold.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision on a criterion, combined from the votes of one judge or the whole panel.

    Attributes:
        status: Outcome of the criterion.
        answer: The chosen answer; None unless `status` is answered, or abstained with an answer.
        mean_value: Aggregated value of the votes in [0, 1] before an answer is chosen; None if there is none.
        tie: Whether the votes were tied, so that the conservative answer was used.
        agreement: Fraction of answered votes equal to the answer, in [0, 1]; None if no vote was answered.
        assumed: Whether no vote was answered, so that the answer is based only on unreadable replies.
        swayed: Whether counting unreadable replies as the conservative answer changed the answer that the
            answered votes alone would give. Such an answer is used in the score but in no other figure.
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
        """Value of the answer in [0, 1]; None if there is no answer with a value."""
        return self.answer.value if self.answer and self.status == "answered" else None

    def to_dict(self) -> dict[str, Json]:
        """Return the decision as a JSON-compatible dict."""
        return {**asdict(self), "answer": asdict(self.answer) if self.answer else None}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Decision:
        """Create a decision from the output of `to_dict`."""
        answer = given.get("answer")
        return cls(**{**given, "answer": Answer(**answer) if answer else None})
