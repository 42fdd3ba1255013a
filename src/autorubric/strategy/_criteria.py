"""Plain-language criteria that decide whether a candidate passes or compute its score."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from autorubric._sync import run_sync
from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.judges import JudgeLike
from autorubric.strategy._sampling import (
    Extract,
    SampledCriteria,
    SampledEvaluation,
    check_count,
    gate,
    rating,
)
from autorubric.types import JudgeVote

SampleAggregation: TypeAlias = Literal["avg", "med", "min", "max"]
"""Aggregation of the scores of several samples: mean, median, minimum or maximum."""

_AGGREGATIONS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "avg": statistics.fmean,
    "med": statistics.median,
    "min": min,
    "max": max,
}


class QualitativeCriteria(SampledCriteria[bool]):
    """A pass/fail criterion that is decided by sampling one judge.

    Subclasses can add attributes and override `verify`.

    Args:
        expression: The condition for passing, in plain language.
        llm: The judge: any value accepted by `CriterionGrader(judges=[…])`, such as a model name, an
            `LLMConfig` (`LLM("name")`), a `JudgeSpec`, a judge, or a function that takes a `JudgeRequest`.
        num_samples: Number of samples to request concurrently. Each sample has its own index and is cached
            separately.
        min_samples_for_aggregation: Minimum number of valid samples. If there are fewer, the candidate does
            not pass and `fallback_used` is set on the evaluation.
        min_pass: Minimum number of samples that must pass.
        extract: Part of the candidate to judge: None for all of it, `"code"` for its first fenced code block,
            or a function that takes the text and returns the part.

    Raises:
        ArgumentError: If an argument is invalid or the arguments contradict each other.
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
        """Return whether the candidate passes: the `value` of the evaluation returned by `evaluate`."""
        return (await self.evaluate(candidate, context)).value

    def verify_sync(self, candidate: Any, context: Any = None) -> bool:
        """Call `verify` from synchronous code, even inside a running event loop."""
        return run_sync(self.verify(candidate, context))

    def _criterion(self) -> BaseCriterion:
        return gate(self.expression)

    def _decide(self, votes: tuple[JudgeVote, ...]) -> SampledEvaluation[bool]:
        samples = tuple(_said(vote) for vote in votes)
        valid = [one for one in samples if one is not None]
        enough = self._enough(len(valid), len(votes))
        # If the number of fresh votes differs from num_samples, the same proportion must pass.
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
    """A numeric criterion that is scored by sampling one judge.

    Subclasses can add attributes and override `compute`.

    Args:
        expression: The quality to score and what the lowest and highest scores mean, in plain language.
        llm: The judge: any value that `CriterionGrader(judges=[…])` accepts.
        min: The lowest score.
        max: The highest score. Samples whose score is outside the range are ignored.
        agg: How to aggregate the samples: `"avg"` (mean), `"med"` (median), `"min"` or `"max"`.
        num_samples: Number of samples to request concurrently.
        min_samples_for_aggregation: Minimum number of valid samples. If there are fewer, the score is the
            midpoint of the range and `fallback_used` is set on the evaluation.
        extract: Part of the candidate to judge: None, `"code"` or a function (see `QualitativeCriteria`).

    Raises:
        ArgumentError: If an argument is invalid or the arguments contradict each other.
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
            raise ArgumentError(f"agg must be one of {', '.join(_AGGREGATIONS)}; got {agg!r}")
        self.min = min
        self.max = max
        self.agg = agg

    async def compute(self, candidate: Any, context: Any = None) -> float:
        """Return the candidate's score: the `value` of the evaluation returned by `evaluate`."""
        return (await self.evaluate(candidate, context)).value

    def compute_sync(self, candidate: Any, context: Any = None) -> float:
        """Call `compute` from synchronous code, even inside a running event loop."""
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
            # Rounding can move a mean out of the range.
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
            raise ArgumentError(f"{name} must be a finite number; got {given!r}")
    if low >= high:
        raise ArgumentError(f"min must be less than max; got min={low!r} and max={high!r}")
    if not math.isfinite(high - low):
        raise ArgumentError(
            f"the range from min={low!r} to max={high!r} is too large for a float; pass a smaller range"
        )
