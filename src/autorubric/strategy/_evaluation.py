"""The record of a sampled evaluation: all samples and votes, and their aggregated value."""

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
    """The evaluation of one candidate by several samples.

    Attributes:
        expression: The question.
        value: Whether the candidate passes, or its aggregated score. If `fallback_used` is set, the value
            replaces missing votes: False, or the middle of the range.
        samples: The answer of each sample, in order; None for a sample that does not count because it failed,
            was unreadable, was outside the range, or abstained.
        votes: The votes, in the same order, with reasons, models, tokens and latencies.
        fallback_used: Whether there were too few valid samples.
        needed: Number of samples that had to pass; None for a score.
    """

    expression: str
    value: T
    samples: tuple[T | None, ...]
    votes: tuple[JudgeVote, ...]
    fallback_used: bool
    needed: int | None = None

    @property
    def valid(self) -> tuple[T, ...]:
        """Return the valid samples, in order."""
        return tuple(one for one in self.samples if one is not None)

    @property
    def distribution(self) -> dict[T, int]:
        """Return the number of valid samples for each answer, in ascending order."""
        return dict(sorted(Counter(self.valid).items()))

    @property
    def errors(self) -> tuple[str | None, ...]:
        """Return the error of each sample; None for samples without an error."""
        return tuple(vote.error for vote in self.votes)

    @property
    def usage(self) -> TokenUsage | None:
        """Return the tokens of all samples; None if none were counted."""
        return spend(self.votes)[0]

    @property
    def cost(self) -> float | None:
        """Return the US dollars of the samples whose cost is known; None if none is known."""
        return spend(self.votes)[1]

    def to_dict(self) -> dict[str, Json]:
        """Return the record as JSON data."""
        return {
            "expression": self.expression,
            "value": self.value,
            "samples": list(self.samples),
            "fallback_used": self.fallback_used,
            "needed": self.needed,
            "votes": [vote.to_dict() for vote in self.votes],
        }

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return the candidate's failures; empty for a score, or if it passed or was not judged."""
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
