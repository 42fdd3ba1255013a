"""Results of grading single items, sums over items, and durations."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from math import fsum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from autorubric.criteria.values import VerdictCounts
from autorubric.errors import TokenUsage

if TYPE_CHECKING:
    from autorubric.datasets.item import DataItem
    from autorubric.grading.base import GradingTask
    from autorubric.scoring.reports import EnsembleEvaluationReport


NumberT = TypeVar("NumberT", int, float)

SplitKind: TypeAlias = Literal["any", "people", "judges"]
Mark: TypeAlias = Literal["wrong", "split", "abstained", "lost"]

_CHUNK: Final = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """The result of grading one item of a dataset.

    Attributes:
        item_idx: Position of the item in the dataset, from 0.
        item: The item.
        report: The report; None if grading raised an exception.
        duration_seconds: Grading time in seconds.
        error: Reason for a missing score; None if there is a score.
    """

    item_idx: int
    item: DataItem
    report: EnsembleEvaluationReport | None
    duration_seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedItem:
    """The result of grading one item, without its votes and report.

    Attributes:
        item_id: Id of the item.
        position: Position of the item in the dataset, from 0.
        score: Score of the item; None if it could not be scored.
        error: Reason for a missing score; None if there is a score.
        raised: Whether grading raised an exception; if so, there is no report.
        partial: What could not be judged, for an item that has a score; None if everything was judged.
        lost: Whether any vote received no reply and is therefore worth requesting again.
        votes_cast: Number of votes cast in this run, excluding stored votes.
        duration_seconds: Grading time in seconds.
        length_penalty: Points subtracted for length.
        tokens: Tokens used by the item's votes; None if they were not counted.
        cost: Cost in US dollars of the votes with a known cost; None if no cost is known.
        calls_saved: Number of votes not requested because they could no longer change the result.
        verdicts: Counts of the item's verdicts by outcome; None if an older version did not count them.
        in_part: Number of answered votes on a part of a submission that was too long for the model.
        unmet_in_part: Number of these votes that are UNMET, and may rely on what was omitted.
    """

    item_id: str
    position: int
    score: float | None = None
    error: str | None = None
    raised: bool = False
    partial: str | None = None
    lost: bool = False
    votes_cast: int = 0
    duration_seconds: float = 0.0
    length_penalty: float = 0.0
    tokens: TokenUsage | None = None
    cost: float | None = None
    calls_saved: int = 0
    verdicts: VerdictCounts | None = None
    in_part: int = 0
    unmet_in_part: int = 0

    @classmethod
    def of_error(
        cls,
        task: GradingTask,
        position: int,
        error: str,
        *,
        votes_cast: int = 0,
        duration_seconds: float = 0.0,
    ) -> GradedItem:
        """Return the result for an item whose grading failed, without counts of verdicts."""
        return cls(
            item_id=task.item_id,
            position=position,
            error=error,
            raised=True,
            votes_cast=votes_cast,
            duration_seconds=duration_seconds,
        )

    @property
    def partly_scored(self) -> bool:
        """Whether the item has a score although at least one of its verdicts was lost."""
        return is_partly_scored(self.score, self.verdicts, self.partial)


def is_partly_scored(score: float | None, verdicts: VerdictCounts | None, partial: str | None) -> bool:
    """Return whether an item has a score although a verdict was lost; uncounted verdicts are in `partial`."""
    return score is not None and (verdicts.lost > 0 if verdicts is not None else partial is not None)


@dataclass(kw_only=True)
class ItemTally:
    """Sums over the items of a run."""

    scores: float = 0.0
    scored: int = 0  # items with a score
    failed: int = 0  # items without a score
    partly_scored: int = 0
    tokens: TokenUsage | None = None
    cost: float | None = None  # US dollars, of the votes with a known cost
    calls_saved: int = 0
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)
    uncounted: int = 0  # items without verdict counts, written by earlier versions
    in_part: int = 0  # answered votes on a part of a submission
    unmet_in_part: int = 0  # those of them that are UNMET
    durations: array[float] = field(default_factory=lambda: array("d"))  # seconds

    def add(self, item: Mapping[str, Any]) -> None:
        """Add an item, passed as a mapping of the fields of a `GradedItem`."""
        score, tokens, cost = item["score"], item["tokens"], item["cost"]
        if score is not None:
            self.scores += score
            self.scored += 1
        self.failed += item["error"] is not None
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens + tokens
        if cost is not None:
            self.cost = cost + (self.cost or 0.0)
        self.calls_saved += item["calls_saved"]
        self.in_part += item["in_part"]
        self.unmet_in_part += item["unmet_in_part"]
        self.durations.append(item["duration_seconds"])
        counts = item["verdicts"]
        if counts is None:
            self.uncounted += 1
        else:
            self.verdicts = self.verdicts + counts
        self.partly_scored += is_partly_scored(score, counts, item["partial"])

    @property
    def mean_score(self) -> float | None:
        """Mean of the scores; None if no item has a score."""
        return self.scores / self.scored if self.scored else None

    def part_messages(self) -> list[str]:
        """Return one line about votes on parts of submissions, if there are any."""
        unmet = f"; {self.unmet_in_part} of them are UNMET and may rely on what was omitted"
        told = f"{self.in_part} verdicts are on a part of a submission that was too long for the model"
        return [told + (unmet if self.unmet_in_part else "")] if self.in_part else []


def outcome_of(report: EnsembleEvaluationReport) -> dict[str, Any]:
    """Return the fields of a `GradedItem` that are derived from its report."""
    in_part = [v for one in report.report for v in one.votes if v.truncated and v.status == "answered"]
    return {
        "score": report.score,
        "error": report.error if report.score is None else None,
        "partial": report.error if report.score is not None else None,
        "lost": True in [vote.without_reply for one in report.report for vote in one.votes],
        "length_penalty": report.length_penalty,
        "tokens": report.token_usage,
        "cost": report.completion_cost,
        "calls_saved": report.calls_saved,
        "verdicts": report.verdicts,
        "in_part": len(in_part),
        "unmet_in_part": sum(vote.verdict == "UNMET" for vote in in_part),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalTimingStats:
    """Durations of a run and its items, in seconds; item statistics are None if there are no items.

    Attributes:
        total_duration_seconds: Duration of the run, from start to end.
        mean_item_duration_seconds: Mean duration of an item.
        min_item_duration_seconds: Shortest duration of an item.
        max_item_duration_seconds: Longest duration of an item.
        p50_item_duration_seconds: Median duration of an item.
        p95_item_duration_seconds: 95th percentile of the item durations.
        items_per_second: Number of items divided by the total duration; None if the duration is 0.
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
        """Compute the statistics from the durations of the items and of the run, in seconds."""
        p50, p95 = _percentiles(durations, (50, 95)) if durations else (None, None)
        return cls(
            total_duration_seconds=total,
            mean_item_duration_seconds=fsum(durations) / len(durations) if durations else None,
            min_item_duration_seconds=min(durations, default=None),
            max_item_duration_seconds=max(durations, default=None),
            p50_item_duration_seconds=p50,
            p95_item_duration_seconds=p95,
            items_per_second=len(durations) / total if total > 0 else None,
        )


def _percentiles(values: Sequence[float], percents: Sequence[int]) -> list[float]:
    """Return interpolated percentiles, sorting the values in chunks to save memory."""
    last = len(values) - 1
    chunks = [array("d", sorted(values[start : start + _CHUNK])) for start in range(0, len(values), _CHUNK)]
    wanted = [divmod(percent * last, 100) for percent in percents]
    places = {min(place + step, last) for place, _ in wanted for step in (0, 1)}
    found = {place: value for place, value in enumerate(merge(*chunks)) if place in places}
    return [
        (found[place] * (100 - over) + found[min(place + 1, last)] * over) / 100 for place, over in wanted
    ]


def sum_if_known(values: Sequence[NumberT | None]) -> NumberT | None:
    """Return the sum of the values; None if one of them is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
