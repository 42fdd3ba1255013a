"""Votes on one item that can be resampled, decided and scored again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer
from autorubric.metrics.core.scales import Array
from autorubric.scoring.decisions import decide_by_judge, decide_panel
from autorubric.scoring.policies import AggregationPolicy, CannotAssessConfig, RubricGroup
from autorubric.scoring.reports import EnsembleCriterionReport
from autorubric.scoring.score import apply_conditions, entry_of, score_tree, subtract_penalty
from autorubric.scoring.votes import Decision, JudgeVote

_Sample: TypeAlias = tuple[JudgeVote, ...]


@dataclass(frozen=True, slots=True)
class CriterionVotes:
    """The votes on a criterion by judge and sample, and their decision."""

    criterion: BaseCriterion  # as it was applied to the submission
    policy: AggregationPolicy
    judges: tuple[tuple[_Sample, ...], ...]  # each judge's samples, with a vote per order
    decided: Decision  # from all votes, ignoring conditions
    known: dict[tuple[tuple[int, ...], ...], Decision] = field(default_factory=dict)  # by drawn votes

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
        return _decide_votes(self.criterion, votes, self.policy)


def group_votes(report: EnsembleCriterionReport, policy: AggregationPolicy) -> CriterionVotes:
    """Return the votes of a report for resampling; a criterion without votes keeps its decision."""
    by_judge: dict[str, dict[int, list[JudgeVote]]] = {}
    for vote in report.votes:
        by_judge.setdefault(vote.judge_id, {}).setdefault(vote.sample, []).append(vote)
    judges = tuple(tuple(tuple(cast) for cast in samples.values()) for samples in by_judge.values())
    decided = report.decision
    if report.votes and decided.status != "not_asked":
        decided = _decide_votes(report.criterion, report.votes, policy)
    return CriterionVotes(report.criterion, policy, judges if report.votes else (), decided)


def _decide_votes(
    criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: AggregationPolicy
) -> Decision:
    return decide_panel(criterion, votes, decide_by_judge(criterion, votes, policy), policy)


_MOST_CORNERS = 32


@dataclass(frozen=True, slots=True)
class ScoringRules:
    root: RubricGroup
    policy: CannotAssessConfig  # for missing judgments
    normalize: bool
    penalty: float  # length penalty that was subtracted

    def score(self, decisions: Mapping[str, Decision]) -> float | None:
        """Return the score of these decisions, computed as by the grader."""
        applied = apply_conditions(self.root.leaves, decisions, self.policy)
        entries = {
            one.name or "": entry_of(one, applied.get(one.name or ""), self.policy)
            for one in self.root.leaves
        }
        made = score_tree(self.root, entries, normalize=self.normalize)
        return subtract_penalty(made.score, self.penalty, normalize=self.normalize)


@dataclass(frozen=True, slots=True)
class OpenCriteria:
    """Criteria that were left open, failed or were not asked, with possible decisions on them."""

    n: int
    corners: tuple[Mapping[str, Decision], ...]  # decisions on them, including those with the extreme scores

    def ends(
        self, rules: ScoringRules, decisions: Mapping[str, Decision]
    ) -> tuple[float | None, float | None]:
        """Return the lowest and the highest possible score, given the other decisions."""
        scores = [rules.score({**decisions, **corner}) for corner in self.corners]
        found = [score for score in scores if score is not None]
        return (min(found), max(found)) if found else (None, None)


def open_criteria(rules: ScoringRules, decisions: Mapping[str, Decision]) -> OpenCriteria:
    """Return the criteria that these decisions leave open.

    A criterion that others depend on, or a penalty that is a gate, can raise or lower the score, so each
    of its values is tried. The sign of the weight decides for others, and for all if there are too many
    combinations.
    """
    leaves = [
        one
        for one in rules.root.leaves
        if one.measures and ((made := decisions.get(one.name or "")) is None or _is_open(made))
    ]
    asked = {one.when.criterion: one.when.at_least for one in rules.root.leaves if one.when is not None}
    either = [one for one in leaves if one.name in asked or (one.gate is not None and one.weight <= 0)]
    choices = [_possible_values(one, asked.get(one.name or "")) for one in either]
    if math.prod(len(values) for values in choices) > _MOST_CORNERS:
        either, choices = [], []
    sided = [one for one in leaves if one not in either]
    corners = [
        _answer_with(either, corner)
        | _answer_with(sided, [_possible_values(one)[-(best == (one.weight >= 0))] for one in sided])
        for corner in itertools.product(*choices)
        for best in (False, True)
    ]
    return OpenCriteria(len(leaves), tuple(corners))


def _answer_with(criteria: Sequence[BaseCriterion], values: Sequence[float]) -> dict[str, Decision]:
    return {
        one.name or "": Decision(status="answered", answer=Answer(code=None, value=value))
        for one, value in zip(criteria, values, strict=True)
    }


def _possible_values(criterion: BaseCriterion, also: float | None = None) -> list[float]:
    """Return the values of a criterion's answers, or for numbers the bounds and a condition's value."""
    listed = {answer.value for answer in criterion.answers() if answer.value is not None}
    return sorted(listed or {0.0, 1.0} | ({also} if also is not None else set()))


def _is_open(made: Decision) -> bool:
    if made.status in ("failed", "not_asked") or made.assumed:
        return True
    return made.status == "abstained" and not (made.answer is not None and made.answer.na)


@dataclass(frozen=True, slots=True)
class VoteResampler:
    """Votes to resample, with their decided, worst and best scores."""

    rules: ScoringRules
    votes: Mapping[str, CriterionVotes]
    decisions: Mapping[str, Decision]  # from all votes
    open: OpenCriteria

    def score_range(
        self, decisions: Mapping[str, Decision]
    ) -> tuple[float | None, float | None, float | None]:
        """Return the score of these decisions, and its worst and best value given the open criteria."""
        score = self.rules.score(decisions)
        return (score, *self.open.ends(self.rules, decisions)) if self.open.n else (score, score, score)

    def draw_scores(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """Return score, worst and best score of each resample, shape `(n_resamples, 3)`; NaN if undefined."""
        most = max(len(one.judges) for one in self.votes.values()) or 1
        known: dict[tuple[Any, ...], tuple[float | None, ...]] = {}
        rows = []
        for _ in range(n_resamples):
            places = rng.random(most)
            decisions = {name: one.draw(places, rng) for name, one in self.votes.items()}
            key = tuple(
                (one.status, repr(one.answer.code) if one.answer else None, one.mean_value, one.abstention)
                for one in decisions.values()
            )
            if key not in known:
                known[key] = self.score_range(decisions)
            rows.append(known[key])
        return np.array(rows, dtype=float)
