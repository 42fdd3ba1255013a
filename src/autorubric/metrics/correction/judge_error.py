"""Prediction of an item's true score from its judged score, and votes that can be resampled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Answer
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import (
    LabelledDataset,
    OwnedRun,
    SupportsGradedItem,
    SupportsGradedRun,
)
from autorubric.metrics.core.label_table import dataset_of
from autorubric.metrics.core.resampling import NO_ENDS, Ends
from autorubric.metrics.core.scales import Array
from autorubric.metrics.correction.score_columns import criterion_facts, read_item_scores
from autorubric.scoring.decisions import decide_by_judge, decide_panel
from autorubric.scoring.policies import AggregationPolicy, CannotAssessConfig, RubricGroup
from autorubric.scoring.reports import EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.scoring.score import apply_conditions, entry_of, penalised, score_tree
from autorubric.scoring.votes import Decision, JudgeVote
from autorubric.support.objects import IdentityCache

_CHUNK_CELLS = 2_000_000
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Judged and true scores of labelled items, in [0, 1] and without length penalty, shape `(m,)`."""

    judged: Array
    true: Array

    @property
    def n(self) -> int:
        """Number of labelled items."""
        return len(self.true)

    def fewest(self, confidence_level: float) -> int:
        """Return the minimum number of labelled items for an interval of this level narrower than [0, 1]."""
        return math.ceil(confidence_level / (1 - confidence_level) - _SLACK)

    def predict(self, judged: float) -> float:
        """Predict the true score from a judged score by least squares, clipped to [0, 1]."""
        spread = float(((self.judged - self.judged.mean()) ** 2).sum())
        slope = 0.0
        if spread > _SLACK:
            slope = float(((self.judged - self.judged.mean()) * self.true).sum()) / spread
        return min(max(float(self.true.mean()) + slope * (judged - float(self.judged.mean())), 0.0), 1.0)

    def interval(self, judged: float, confidence_level: float) -> Ends:
        """Return the full conformal interval for the true score of a new item with this judged score.

        To test a candidate true score y, the new item (judged, y) is added and a least-squares line is fitted
        to all m + 1 items. y is kept if more than a proportion 1 - level of the residuals are at least as
        large as that of the new item [1, ch. 2.3]. If the new item comes from the same population as the
        labelled ones, the interval covers its true score with at least the confidence level, whatever the
        judges' errors are and however they depend on each other and on the item [2].

        Residuals are linear in y, so only points where two residuals are equal need to be tested.

        References:
            [1] V. Vovk, A. Gammerman, G. Shafer (2005), Algorithmic learning in a random world, Springer.
            [2] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman (2018), Distribution-free
                predictive inference for regression, JASA 113(523), 1094-1111.
        """
        if self.n < self.fewest(confidence_level):
            return NO_ENDS
        constant, slope = self._residuals(judged)
        with np.errstate(divide="ignore", invalid="ignore"):
            points = np.concatenate(
                [
                    (constant[-1] - constant[:-1]) / (slope[:-1] - slope[-1]),
                    -(constant[-1] + constant[:-1]) / (slope[:-1] + slope[-1]),
                ]
            )
        points = np.concatenate([[0.0, 1.0, self.predict(judged)], points[(points >= 0) & (points <= 1)]])
        kept = points[self._accepted(constant, slope, points, confidence_level)]
        return Ends(float(kept.min()), float(kept.max()), None) if len(kept) else NO_ENDS

    def _residuals(self, judged: float) -> tuple[Array, Array]:
        """Return constants and slopes in y of the m + 1 residuals, each `(m + 1,)`; the new item is last."""
        x = np.append(self.judged, judged)
        centred = x - x.mean()
        spread = float(centred @ centred)
        weights = centred / spread if spread > _SLACK else np.zeros(len(x))
        true = np.append(self.true, 0.0)
        constant = true - true.mean() - centred * float(weights @ true)
        slope = -1 / len(x) - centred * float(weights[-1])
        slope[-1] += 1.0
        return constant, slope

    def _accepted(self, constant: Array, slope: Array, points: Array, confidence_level: float) -> Array:
        """Return whether each of these true scores conforms, shape `(p,)`."""
        found = []
        step = max(1, _CHUNK_CELLS // len(constant))
        for start in range(0, len(points), step):
            residuals = np.abs(constant[:, None] + slope[:, None] * points[None, start : start + step])
            as_large = np.count_nonzero(residuals >= residuals[-1] - _SLACK, axis=0)
            found.append(as_large > (1 - confidence_level) * len(constant) + _SLACK)
        return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class _Calibration:
    """The scores, distinct sets of criterion properties, and judges of a labelled run."""

    scores: LabelledScores
    criteria: tuple[Mapping[str, tuple[object, ...]], ...]
    judges: frozenset[str]


@dataclass(frozen=True, slots=True)
class _ReadRun:
    """Results read into memory once, because a run folder rebuilds its results on each access."""

    item_results: Sequence[SupportsGradedItem]


def labelled_scores(
    run: object, dataset: LabelledDataset | None, report: EnsembleEvaluationReport
) -> LabelledScores:
    """Return the scores of a run's labelled items.

    Raises:
        ArgumentError: If `run` is not a run, or its criteria or judges differ from those of the report.
    """
    if not isinstance(run, SupportsGradedRun):
        raise ArgumentError(
            "judge_error must be a labelled run of the same judges, as returned by evaluate, because error "
            f"counts and other summaries do not show how much items differ; got {type(run).__name__}"
        )
    # Plain lists cannot be weakly referenced.
    known = dataset is None and isinstance(run, OwnedRun) and type(run.item_results) not in (list, tuple)
    found = _CALIBRATIONS.of(run.item_results)(run) if known else _calibration(run, dataset_of(run, dataset))
    _demand_same_rubric(_facts(report), found.criteria)
    _demand_same_judges(_judges([report]), found.judges)
    return found.scores


class _Once:
    """A calibration of a run that is computed on the first call and then reused."""

    def __init__(self, results: object) -> None:
        self._found: _Calibration | None = None

    def __call__(self, run: SupportsGradedRun) -> _Calibration:
        if self._found is None:
            self._found = _calibration(run, dataset_of(run))
        return self._found


_CALIBRATIONS: IdentityCache[Any, _Once] = IdentityCache(_Once)


def _calibration(run: SupportsGradedRun, dataset: LabelledDataset) -> _Calibration:
    read = _ReadRun(list(run.item_results))
    reports = [one.report for one in read.item_results if one.report is not None]
    scores = read_item_scores(read, dataset)
    usable = ~np.isnan(scores.judged_score + scores.true_score)
    criteria: list[Mapping[str, tuple[object, ...]]] = []
    for one in reports:
        if (facts := _facts(one)) not in criteria:
            criteria.append(facts)
    return _Calibration(
        LabelledScores(scores.judged_score[usable], scores.true_score[usable]),
        tuple(criteria),
        frozenset(_judges(reports)),
    )


def _demand_same_rubric(
    own: Mapping[str, tuple[object, ...]], others: Iterable[Mapping[str, tuple[object, ...]]]
) -> None:
    for facts in others:
        names = sorted(name for name in own.keys() | facts.keys() if own.get(name) != facts.get(name))
        if names:
            raise ArgumentError(
                f"the judge_error run and the report have different criteria: {names!r} differ in name, "
                "weight or answers; pass a run with the same rubric"
            )


def _facts(report: EnsembleEvaluationReport) -> Mapping[str, tuple[object, ...]]:
    return {one.name: criterion_facts(one.criterion) for one in report.report}


def _demand_same_judges(own: set[str], known: frozenset[str]) -> None:
    if own != known and own:
        raise ArgumentError(
            f"the judge_error run has the judges {sorted(known)!r} but the report has {sorted(own)!r}; pass "
            "a run of the same judges, because different judges make different errors"
        )


def _judges(reports: Iterable[EnsembleEvaluationReport]) -> set[str]:
    return {vote.judge_id for report in reports for one in report.report for vote in one.votes}


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
