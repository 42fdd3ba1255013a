"""The record of a sampled evaluation: all samples, all votes and the aggregated value."""

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
    """The evaluation of one candidate on one criterion by several samples.

    Attributes:
        expression: The expression of the criterion.
        value: Whether the candidate passes, or its aggregated score. If `fallback_used` is set, the value is
            a substitute: False, or the midpoint of the range.
        samples: The answer of each sample, in order. The answer is None if the sample failed, could not be
            parsed, was outside the range, or abstained.
        votes: The votes in the order of `samples`, with reasons, models, token counts and latencies.
        fallback_used: Whether there were too few valid samples.
        needed: Number of samples that had to pass; None for a numeric criterion.
    """

    expression: str
    value: T
    samples: tuple[T | None, ...]
    votes: tuple[JudgeVote, ...]
    fallback_used: bool
    needed: int | None = None

    @property
    def valid(self) -> tuple[T, ...]:
        """Return the answers of the valid samples, in order."""
        return tuple(one for one in self.samples if one is not None)

    @property
    def distribution(self) -> dict[T, int]:
        """Return the number of valid samples per answer, sorted by answer."""
        return dict(sorted(Counter(self.valid).items()))

    @property
    def errors(self) -> tuple[str | None, ...]:
        """Return one error message per sample; None for a sample without an error."""
        return tuple(vote.error for vote in self.votes)

    @property
    def usage(self) -> TokenUsage | None:
        """Return the total token usage of all samples; None if no usage was reported."""
        return spend(self.votes)[0]

    @property
    def cost(self) -> float | None:
        """Return the total known cost of the samples in US dollars; None if no cost is known."""
        return spend(self.votes)[1]

    def to_dict(self) -> dict[str, Json]:
        """Return the evaluation as JSON-compatible data."""
        return {
            "expression": self.expression,
            "value": self.value,
            "samples": list(self.samples),
            "fallback_used": self.fallback_used,
            "needed": self.needed,
            "votes": [vote.to_dict() for vote in self.votes],
        }

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return a hint if the candidate failed; empty for numeric criteria or with too few valid samples."""
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
