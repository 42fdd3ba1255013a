"""Votes that can be resampled, scores of decisions, and the range of scores that open criteria allow."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from autorubric.aggregation import AggregationPolicy, decide_by_judge, decide_panel
from autorubric.criteria import BaseCriterion
from autorubric.metrics._resampling import Array
from autorubric.scoring import apply_conditions, entry_of, penalised, score_tree
from autorubric.types import CannotAssessConfig, Decision, EnsembleCriterionReport, JudgeVote, RubricGroup
from autorubric.values import Answer

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


_MOST_CORNERS = 32


@dataclass(frozen=True, slots=True)
class Scorer:
    """The scoring rules of a grader.

    Attributes:
        root: The rubric's tree.
        policy: Policy for missing judgments.
        normalize: Whether the score was normalised to [0, 1].
        penalty: The length penalty that was subtracted.
    """

    root: RubricGroup
    policy: CannotAssessConfig
    normalize: bool
    penalty: float

    def score(self, decisions: Mapping[str, Decision]) -> float | None:
        """Return the score of these decisions, computed as by the grader."""
        applied = apply_conditions(self.root.leaves, decisions, self.policy)
        entries = {
            one.name or "": entry_of(one, applied.get(one.name or ""), self.policy)
            for one in self.root.leaves
        }
        made = score_tree(self.root, entries, normalize=self.normalize)
        return penalised(made.score, self.penalty, normalize=self.normalize)


@dataclass(frozen=True, slots=True)
class OpenCriteria:
    """Criteria that were left open, failed or were not asked, with possible decisions on them.

    Attributes:
        n: Number of these criteria.
        corners: Sets of decisions on these criteria, including those with the worst and the best score.
    """

    n: int
    corners: tuple[Mapping[str, Decision], ...]

    def ends(self, scorer: Scorer, decisions: Mapping[str, Decision]) -> tuple[float | None, float | None]:
        """Return the lowest and the highest possible score, given the other decisions."""
        scores = [scorer.score({**decisions, **corner}) for corner in self.corners]
        found = [score for score in scores if score is not None]
        return (min(found), max(found)) if found else (None, None)


def open_criteria(scorer: Scorer, decisions: Mapping[str, Decision]) -> OpenCriteria:
    """Return the criteria that these decisions leave open.

    Usually the sign of its weight determines whether a criterion raises or lowers the score. A criterion that
    others depend on, or a penalty that is a gate, can do either, so each of its values is tried. If there are
    too many combinations, the sign of its weight is used instead.
    """
    leaves = [
        one
        for one in scorer.root.leaves
        if one.measures and ((made := decisions.get(one.name or "")) is None or _is_open(made))
    ]
    asked = {one.when.criterion: one.when.at_least for one in scorer.root.leaves if one.when is not None}
    either = [one for one in leaves if one.name in asked or (one.gate is not None and one.weight <= 0)]
    choices = [_values(one, asked.get(one.name or "")) for one in either]
    n_corners = 1
    for values in choices:
        n_corners *= len(values)
    if n_corners > _MOST_CORNERS:
        either, choices = [], []
    sided = [one for one in leaves if one not in either]
    corners = [
        _made(either, corner) | _made(sided, [_end(one, best=best) for one in sided])
        for corner in itertools.product(*choices)
        for best in (False, True)
    ]
    return OpenCriteria(len(leaves), tuple(corners))


def _made(criteria: Sequence[BaseCriterion], values: Sequence[float]) -> dict[str, Decision]:
    return {
        one.name or "": Decision(status="answered", answer=Answer(code=None, value=value))
        for one, value in zip(criteria, values, strict=True)
    }


def _values(criterion: BaseCriterion, also: float | None = None) -> list[float]:
    """Return the values of a criterion's answers, or for numbers the bounds and a condition's value."""
    listed = {answer.value for answer in criterion.answers() if answer.value is not None}
    return sorted(listed or {0.0, 1.0} | ({also} if also is not None else set()))


def _end(criterion: BaseCriterion, *, best: bool) -> float:
    values = _values(criterion)
    return values[-1] if best == (criterion.weight >= 0) else values[0]


def _is_open(made: Decision) -> bool:
    if made.status in ("failed", "not_asked") or made.assumed:
        return True
    return made.status == "abstained" and not (made.answer is not None and made.answer.na)
