"""Votes on one criterion that can be resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from autorubric.aggregation import AggregationPolicy, decide_by_judge, decide_panel
from autorubric.criteria import BaseCriterion
from autorubric.metrics._resampling import Array
from autorubric.types import Decision, EnsembleCriterionReport, JudgeVote

_Sample: TypeAlias = tuple[JudgeVote, ...]


@dataclass(frozen=True, slots=True)
class Revoted:
    """The votes on a criterion by judge and sample, and their decision.

    Attributes:
        criterion: The criterion as it was applied to the submission.
        policy: Policy that combines the votes.
        judges: Each judge's samples; a sample may have two votes, one per order.
        decided: The decision from all votes, ignoring conditions.
        known: Cache of decisions by drawn votes.
    """

    criterion: BaseCriterion
    policy: AggregationPolicy
    judges: tuple[tuple[_Sample, ...], ...]
    decided: Decision
    known: dict[tuple[tuple[int, ...], ...], Decision] = field(default_factory=dict)

    @property
    def n_samples(self) -> int:
        """Maximum number of samples of any judge."""
        return max((len(samples) for samples in self.judges), default=0)

    def draw(self, places: Array, rng: np.random.Generator) -> Decision:
        """Decide on a resample of judges, drawn by `places` in [0, 1), and of samples within each judge."""
        if self.n_samples <= 1 and len(self.judges) <= 1:
            return self.decided
        n = len(self.judges)
        drawn = []
        for place in places[:n]:
            judge = int(place * n)
            size = len(self.judges[judge])
            picked = rng.integers(0, size, size=size) if size > 1 else [0]
            drawn.append((judge, *sorted(int(one) for one in picked)))
        key = tuple(sorted(drawn))
        if key not in self.known:
            self.known[key] = self._decide(key)
        return self.known[key]

    def _decide(self, drawn: Sequence[tuple[int, ...]]) -> Decision:
        votes = [
            replace(vote, judge_id=f"{vote.judge_id}#{turn}", sample=at)
            for turn, (judge, *samples) in enumerate(drawn)
            for at, place in enumerate(samples)
            for vote in self.judges[judge][place]
        ]
        return _decision_of(self.criterion, votes, self.policy)


def revoted(report: EnsembleCriterionReport, policy: AggregationPolicy) -> Revoted:
    """Return the votes of a report for resampling; a criterion without votes keeps its decision."""
    by_judge: dict[str, dict[int, list[JudgeVote]]] = {}
    for vote in report.votes:
        by_judge.setdefault(vote.judge_id, {}).setdefault(vote.sample, []).append(vote)
    judges = tuple(tuple(tuple(cast) for cast in samples.values()) for samples in by_judge.values())
    decided = report.decision
    if report.votes and decided.status != "not_asked":
        decided = _decision_of(report.criterion, report.votes, policy)
    return Revoted(report.criterion, policy, judges if report.votes else (), decided)


def _decision_of(criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: AggregationPolicy) -> Decision:
    return decide_panel(criterion, votes, decide_by_judge(criterion, votes, policy), policy)
