"""What grading one item gave, and how long items took."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autorubric.dataset import DataItem
from autorubric.types import EnsembleEvaluationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """What grading one item of a dataset gave.

    Attributes:
        item_idx: Position of the item in the dataset, from 0.
        item: The item.
        report: The report; None where grading raised.
        duration_seconds: Seconds that grading took.
        error: Why there is no score; None where there is one.
    """

    item_idx: int
    item: DataItem
    report: EnsembleEvaluationReport | None
    duration_seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalTimingStats:
    """How long a run took, in seconds.

    Attributes:
        total_duration_seconds: From the run's start to its end.
        mean_item_duration_seconds: Mean over items.
        min_item_duration_seconds: Shortest item.
        max_item_duration_seconds: Longest item.
        p50_item_duration_seconds: Median over items.
        p95_item_duration_seconds: 95th percentile over items.
        items_per_second: Items over the total; None where no time passed.
    """

    total_duration_seconds: float
    mean_item_duration_seconds: float | None
    min_item_duration_seconds: float | None
    max_item_duration_seconds: float | None
    p50_item_duration_seconds: float | None
    p95_item_duration_seconds: float | None
    items_per_second: float | None

    @classmethod
    def of(cls, durations: Sequence[float], total: float) -> EvalTimingStats:
        """The figures of item durations and the run's total, in seconds."""
        quantiles = statistics.quantiles(durations, n=100, method="inclusive") if len(durations) > 1 else None
        only = durations[0] if durations else None
        return cls(
            total_duration_seconds=total,
            mean_item_duration_seconds=statistics.fmean(durations) if durations else None,
            min_item_duration_seconds=min(durations, default=None),
            max_item_duration_seconds=max(durations, default=None),
            p50_item_duration_seconds=quantiles[49] if quantiles else only,
            p95_item_duration_seconds=quantiles[94] if quantiles else only,
            items_per_second=len(durations) / total if total > 0 else None,
        )
