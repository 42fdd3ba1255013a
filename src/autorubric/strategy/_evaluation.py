"""The record of a sampled evaluation: every sample, every vote, and what they came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Generic, TypeVar

from autorubric.graders import spend
from autorubric.strategy._hints import Hint
from autorubric.types import JudgeVote
from autorubric.values import Json, TokenUsage

T = TypeVar("T", bool, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledEvaluation(Generic[T]):
    """What the samples on one candidate came to.

    Attributes:
        expression: What was asked.
        value: The value: whether it passes, or the aggregated score. With `fallback_used` it stands for
            votes that did not come: False, or the middle of the range.
        samples: What each sample said, in order; None for one that does not count, because it failed, could
            not be read, lay outside the range, or abstained.
        votes: The votes, in the same order, with reasons, models, tokens and latencies.
        fallback_used: Whether fewer samples count than are needed.
        needed: Samples that had to pass; None for a score.
    """

    expression: str
    value: T
    samples: tuple[T | None, ...]
    votes: tuple[JudgeVote, ...]
    fallback_used: bool
    needed: int | None = None

    @property
    def valid(self) -> tuple[T, ...]:
        """The samples that count, in order."""
        return tuple(one for one in self.samples if one is not None)

    @property
    def distribution(self) -> dict[T, int]:
        """How many of the samples that count said what, from the lowest up."""
        return dict(sorted(Counter(self.valid).items()))

    @property
    def errors(self) -> tuple[str | None, ...]:
        """Why each sample failed; None for one that did not."""
        return tuple(vote.error for vote in self.votes)

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens of all samples; None where none were counted."""
        return spend(self.votes)[0]

    @property
    def cost(self) -> float | None:
        """US dollars of the samples whose cost is known; None where none is."""
        return spend(self.votes)[1]

    def to_dict(self) -> dict[str, Json]:
        """The record as JSON data."""
        return {
            "expression": self.expression,
            "value": self.value,
            "samples": list(self.samples),
            "fallback_used": self.fallback_used,
            "needed": self.needed,
            "votes": [vote.to_dict() for vote in self.votes],
        }

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """What the candidate failed in; empty for a score, for one that passed, and for one not judged."""
        if self.needed is None or self.value or self.fallback_used:
            return ()
        written = (vote.reason for vote, one in zip(self.votes, self.samples, strict=True) if one is not None)
        hint = Hint(
            candidate=candidate,
            criterion=self.expression,
            passed=sum(1 for one in self.samples if one),
            samples=len(self.samples),
            needed=self.needed,
            reasons=tuple(reason for reason in written if reason) if reasons else (),
        )
        return (hint,)
