"""Criteria in plain words: whether a candidate passes, and its score."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from autorubric._sync import run_sync
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.judges import JudgeLike
from autorubric.strategy._evaluation import SampledEvaluation
from autorubric.strategy._sampling import Extract, SampledCriteria, check_count, gate, rating
from autorubric.types import JudgeVote

SampleAggregation: TypeAlias = Literal["avg", "med", "min", "max"]
"""How to aggregate the scores of several samples: mean, median, minimum or maximum."""

_AGGREGATIONS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "avg": statistics.fmean,
    "med": statistics.median,
    "min": min,
    "max": max,
}


class QualitativeCriteria(SampledCriteria[bool]):
    """A pass/fail criterion decided by the votes of one judge's samples.

    Designed for subclassing: attributes may be added, and a `Strategy` calls the subclass's own `verify`.

    Args:
        expression: The condition for passing, in plain words.
        llm: The judge: any value accepted by `CriterionGrader(judges=[…])`, such as a model's name, an
            `LLMConfig` (`LLM("name")`), a `JudgeSpec`, a judge, or a function of a `JudgeRequest`.
        num_samples: Number of samples, requested concurrently; each has its own index, so that a cache keeps
            them apart.
        min_samples_for_aggregation: Minimum number of valid samples; with fewer the candidate does not pass
            and the evaluation has `fallback_used`.
        min_pass: Number of samples that must pass.
        extract: Part of a candidate to judge: None for all of it, `"code"` for its first fenced block, or a
            function of its text.

    Raises:
        ArgumentError: If an argument is invalid, or the arguments contradict each other.
    """

    def __init__(
        self,
        expression: str,
        llm: JudgeLike,
        num_samples: int = 1,
        min_samples_for_aggregation: int = 1,
        min_pass: int = 1,
        *,
        extract: Extract = None,
    ) -> None:
        super().__init__(expression, llm, num_samples, min_samples_for_aggregation, extract)
        check_count("min_pass", min_pass, most=num_samples)
        self.min_pass = min_pass

    async def verify(self, candidate: Any, context: Any = None) -> bool:
        """Return whether the candidate passes: the `value` of `evaluate`."""
        return (await self.evaluate(candidate, context)).value

    def verify_sync(self, candidate: Any, context: Any = None) -> bool:
        """Call `verify` from synchronous code; also works inside a running event loop."""
        return run_sync(self.verify(candidate, context))

    def _criterion(self) -> BaseCriterion:
        return gate(self.expression)

    def _decide(self, votes: tuple[JudgeVote, ...]) -> SampledEvaluation[bool]:
        samples = tuple(_said(vote) for vote in votes)
        valid = [one for one in samples if one is not None]
        enough = self._enough(len(valid), len(votes))
        # Of another number of fresh votes the same share must pass.
        needed = math.ceil(self.min_pass * len(votes) / self.num_samples)
        return SampledEvaluation(
            expression=self.expression,
            value=enough and sum(valid) >= needed,
            samples=samples,
            votes=votes,
            fallback_used=not enough,
            needed=needed,
        )


class QuantitativeCriteria(SampledCriteria[float]):
    """A numeric criterion scored by the samples of one judge.

    Designed for subclassing: attributes may be added, and a `Strategy` calls the subclass's own `compute`.

    Args:
        expression: What to score, and the meaning of the ends of the range, in plain words.
        llm: The judge: any value accepted by `CriterionGrader(judges=[…])`.
        min: The lowest score.
        max: The highest score. Samples outside the range do not count.
        agg: How to aggregate the samples: `"avg"`, `"med"`, `"min"` or `"max"`.
        num_samples: Number of samples, requested concurrently.
        min_samples_for_aggregation: Minimum number of valid samples; with fewer the score is the middle of
            the range and the evaluation has `fallback_used`.
        extract: Part of a candidate to judge: None, `"code"`, or a function of its text.

    Raises:
        ArgumentError: If an argument is invalid, or the arguments contradict each other.
    """

    def __init__(  # noqa: PLR0913 - the public constructor
        self,
        expression: str,
        llm: JudgeLike,
        min: float = 0.0,
        max: float = 10.0,
        agg: SampleAggregation = "avg",
        num_samples: int = 1,
        min_samples_for_aggregation: int = 1,
        *,
        extract: Extract = None,
    ) -> None:
        super().__init__(expression, llm, num_samples, min_samples_for_aggregation, extract)
        _check_range(min, max)
        if agg not in _AGGREGATIONS:
            raise ArgumentError(f"agg is {agg!r}; give one of {', '.join(_AGGREGATIONS)}")
        self.min = min
        self.max = max
        self.agg = agg

    async def compute(self, candidate: Any, context: Any = None) -> float:
        """Return the candidate's score: the `value` of `evaluate`."""
        return (await self.evaluate(candidate, context)).value

    def compute_sync(self, candidate: Any, context: Any = None) -> float:
        """Call `compute` from synchronous code; also works inside a running event loop."""
        return run_sync(self.compute(candidate, context))

    def _criterion(self) -> BaseCriterion:
        return rating(self.expression, self.min, self.max)

    def _decide(self, votes: tuple[JudgeVote, ...]) -> SampledEvaluation[float]:
        samples = tuple(self._score(vote) for vote in votes)
        valid = [one for one in samples if one is not None]
        enough = self._enough(len(valid), len(votes))
        value = _AGGREGATIONS[self.agg](valid) if enough else self.min / 2 + self.max / 2
        return SampledEvaluation(
            expression=self.expression,
            # A mean may leave the range by rounding.
            value=sorted((float(self.min), float(value), float(self.max)))[1],
            samples=samples,
            votes=votes,
            fallback_used=not enough,
        )

    def _score(self, vote: JudgeVote) -> float | None:
        if vote.status != "answered" or not _is_number(vote.answer):
            return None
        return float(vote.answer) if self.min <= vote.answer <= self.max else None


def _said(vote: JudgeVote) -> bool | None:
    return vote.answer if vote.status == "answered" and isinstance(vote.answer, bool) else None


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


def _check_range(low: float, high: float) -> None:
    for name, given in (("min", low), ("max", high)):
        if not _is_number(given):
            raise ArgumentError(f"{name} is {given!r}; give a finite number")
    if low >= high:
        raise ArgumentError(f"min is {low!r} and max {high!r}; min must lie below max")
    if not math.isfinite(high - low):
        raise ArgumentError(
            f"from {low!r} to {high!r} is further than a number can hold; give a smaller range"
        )
