"""Decide whether a score reaches a threshold, based on the spread of its votes or on labelled items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.item_scores import LabelledDataset, SupportsGradedRun
from autorubric.metrics.core.resampling import MOST_UNDEFINED_CORRECTED, Ends, Resampling, interval_of
from autorubric.metrics.core.scales import Array
from autorubric.metrics.correction.arguments import ends_text, finite_number
from autorubric.metrics.correction.judge_error import (
    LabelledScores,
    OpenCriteria,
    Revoted,
    Scorer,
    labelled_scores,
    open_criteria,
    revoted,
)
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.policies import AggregationPolicy, CannotAssessConfig, RubricGroup
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.scoring.score import penalised
from autorubric.scoring.votes import Decision
from autorubric.support.blocks import Block, Cell, ScalarBlock, TextBlock, render_text

Verdict: TypeAlias = Literal["PASS", "FAIL", "UNDECIDED"]
Source: TypeAlias = Literal["samples", "judges", "judge_error"]

SLACK = 1e-9
"""Tolerance below the threshold, since scores are sums of floats."""

_WORDS = {"samples": "repeated samples", "judges": "several judges", "judge_error": "labelled items"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """A verdict on whether a score reaches a threshold.

    Attributes:
        verdict: `"PASS"` if the interval and the hard bounds reach the threshold, `"FAIL"` if both are below
            it, and `"UNDECIDED"` otherwise or if there is no source of spread.
        threshold: Lowest score that passes.
        score: The score with its interval: the report's own score or, with `judge_error`, the true score
            predicted from the labelled items.
        raw: The report's own score.
        low: Lower bound of the interval for `score`; None if there is no interval.
        high: Upper bound of the interval for `score`; None if there is no interval.
        hard_low: Lower bound with every open criterion (see `n_open`) at its worst; if there is no source of
            spread, the score of the votes with these criteria at their worst.
        hard_high: Upper bound with every open criterion at its best, defined in the same way.
        sources: Sources of spread in the interval: `samples` (repeated samples), `judges` (several judges),
            or only `judge_error` (the differences between the true and judged scores of labelled items, which
            include both).
        n_open: Number of open criteria, whose decision is CANNOT_ASSESS, failed, assumed or not asked.
        confidence_level: Confidence level of the interval.
        reason: Reason why there is no interval: `no_spread` (one vote per criterion and no labelled items),
            `no_values` (no score), `too_few_labels` (fewer labelled items than the level requires, 19 at 95
            %) or `degenerate_resamples` (more than a tenth of the resamples have no score).
    """

    verdict: Verdict
    threshold: float
    score: Estimate
    raw: Estimate
    low: float | None
    high: float | None
    hard_low: float | None
    hard_high: float | None
    sources: tuple[Source, ...]
    n_open: int
    confidence_level: float
    reason: Reason | None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable data without NaN."""
        return {**asdict(self), "score": self.score.to_dict(), "sources": list(self.sources)}

    def blocks(self) -> list[Block]:
        """Return content blocks: a sentence with the verdict, and its figures."""
        figures: tuple[tuple[str, Cell], ...] = (
            ("score", self.score.value),
            (f"interval, {self.confidence_level:.0%}", ends_text(self.low, self.high) or "none"),
            ("score of the report", self.raw.value),
            ("sources of spread", ", ".join(_WORDS[one] for one in self.sources) or "none"),
            ("open criteria", self.n_open),
        )
        if self.n_open:
            figures += (("bounds (open criteria worst/best)", ends_text(self.hard_low, self.hard_high)),)
        return [TextBlock(title="Decision", text=self._sentence()), ScalarBlock(figures=figures)]

    def summary(self) -> str:
        """Return the verdict and its figures as plain text."""
        return render_text(self.blocks())

    def _sentence(self) -> str:
        level, threshold = f"{self.confidence_level:.0%}", f"{self.threshold:g}"
        if self.verdict == "PASS":
            return f"PASS: at {level} confidence, the score reaches {threshold}."
        if self.verdict == "FAIL":
            return f"FAIL: at {level} confidence, the score is below {threshold}."
        if self.reason == "no_spread":
            return (
                "UNDECIDED: one vote per criterion shows no spread; grade with several samples or judges, or "
                "pass judge_error, a labelled run of the same judge."
            )
        if self.reason == "too_few_labels":
            return f"UNDECIDED: {self.score.n} labelled items are too few for an interval at {level}."
        if self.reason is not None:
            return f"UNDECIDED: the score has no interval ({self.reason})."
        if self.n_open and decided(self.threshold, self.low, self.high) != "UNDECIDED":
            return f"UNDECIDED: the open criteria could still move the score across {threshold}."
        return f"UNDECIDED: at {level} confidence, the score may be on either side of {threshold}."


def decided(threshold: float, low: float | None, high: float | None) -> Verdict:
    """Return the verdict for an interval with these bounds."""
    if low is None or high is None:
        return "UNDECIDED"
    if low >= threshold - SLACK:
        return "PASS"
    return "FAIL" if high < threshold - SLACK else "UNDECIDED"


class DecisionArguments(TypedDict, total=False):
    """Additional keyword arguments of `decision`: the grader's policies and the resampling options.

    Attributes:
        rubric: The rubric; required if it has groups, which a report does not store.
        aggregation: Policy that combined the votes, if it is not the default policy.
        cannot_assess: Policy for missing judgments, if it is not the default policy.
        normalize: Whether the score was normalised to [0, 1]; True by default.
        n_resamples: Number of resamples of the votes; 1000 by default.
        rng: Seed or NumPy generator of the resampling; 0 by default.
        dataset: Dataset with the labels of `judge_error`; the dataset of that run by default.
    """

    rubric: Rubric | None
    aggregation: AggregationPolicy
    cannot_assess: CannotAssessConfig
    normalize: bool
    n_resamples: int
    rng: int | np.random.Generator
    dataset: LabelledDataset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Validated arguments with the attributes of `DecisionArguments`."""

    rubric: Rubric | None = None
    aggregation: AggregationPolicy = field(default_factory=AggregationPolicy)
    cannot_assess: CannotAssessConfig = field(default_factory=CannotAssessConfig)
    normalize: bool = True
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0
    dataset: LabelledDataset | None = None

    def __post_init__(self) -> None:
        kinds = {
            "rubric": (Rubric, type(None)),
            "aggregation": (AggregationPolicy,),
            "cannot_assess": (CannotAssessConfig,),
        }
        for name, allowed in kinds.items():
            if not isinstance(given := getattr(self, name), allowed):
                raise ArgumentError(f"{name} must be an instance of {allowed[0].__name__}; got {given!r}")


class _Range(NamedTuple):
    """Bounds of an interval; None if there is no interval."""

    low: float | None
    high: float | None


def decision(
    report: EnsembleEvaluationReport,
    *,
    threshold: float,
    confidence_level: float = 0.95,
    judge_error: SupportsGradedRun | None = None,
    **options: Unpack[DecisionArguments],
) -> DecisionResult:
    """Decide whether an item's score reaches the threshold, falls below it, or is too uncertain to tell.

    With `judge_error`, a run of the same judges on labelled items, the interval covers the item's *true*
    score. It is calibrated on the differences between the true and judged scores of the labelled items (full
    conformal prediction). If the item and the labelled items belong to the same population, the interval
    covers the true score with at least the given confidence level, however much items differ and however
    strongly the judges' errors are correlated. The price is a wide interval: this function's reference page
    reports the measured fraction of UNDECIDED verdicts. `score` is the predicted true score, and `raw` is the
    report's own score. With fewer than 19 labelled items at 95%, there is no interval (`too_few_labels`).

    If `judge_error` is None, the interval only shows how reproducible the score is. Votes are resampled:
    judges are sampled with replacement, with the same selection for every criterion, and each judge's samples
    are resampled separately for each criterion. The grader's rules decide and score each resample. The
    interval consists of quantiles of these scores, extended to include the report's own score. The resampling
    understates the correlation between judges' errors. A single judge with a single sample has no spread, so
    the verdict is UNDECIDED (`no_spread`).

    A criterion is open if its decision is CANNOT_ASSESS, failed, assumed or not asked. The hard bounds are
    the outer bounds of the intervals with the open criteria at their worst and at their best. NA does not
    leave a criterion open: it means that the criterion does not apply. If no criterion is open, the hard
    bounds equal the interval. A score up to 1e-9 below the threshold counts as reaching it.

    Args:
        report: A grader's report on one item.
        threshold: Lowest score that passes.
        confidence_level: Confidence level of the interval.
        judge_error: A run of the same judges on labelled items, with the same rubric.
        **options: See `DecisionArguments`.

    Raises:
        ArgumentError: If `report` is not a report on one item, its score does not follow from its votes under
            these policies, an argument is invalid, or the `judge_error` run has different criteria or judges.
    """
    threshold = finite_number(threshold, "threshold", "the lowest score that passes")
    given = _Options(**options)
    resampling = Resampling(confidence_level=confidence_level, n_resamples=given.n_resamples, rng=given.rng)
    _demand_report(report)
    scorer = _scorer(report, given)
    votes = {one.name: revoted(one, given.aggregation) for one in report.report}
    base = {name: one.decided for name, one in votes.items()}
    _demand_same(report, scorer.score(base))
    open_ = open_criteria(scorer, base)
    if judge_error is not None:
        if not given.normalize:
            raise ArgumentError("judge_error requires scores in [0, 1]; leave normalize at True")
        labelled = labelled_scores(judge_error, given.dataset, report)
        found = _calibrated(report, scorer, base, open_, labelled, confidence_level)
    else:
        found = _redrawn(report, _Draws(scorer, open_, votes), base, resampling)
    score, hard, sources = found
    return DecisionResult(
        verdict=_verdict(threshold, score, hard) if sources else "UNDECIDED",
        threshold=threshold,
        score=score,
        raw=_raw(report),
        low=score.low,
        high=score.high,
        hard_low=hard.low,
        hard_high=hard.high,
        sources=sources,
        n_open=open_.n,
        confidence_level=confidence_level,
        reason=score.reason,
    )


class _DecisionBasis(NamedTuple):
    """The score with its interval, the hard bounds, and the sources of spread in the interval."""

    score: Estimate
    hard: _Range
    sources: tuple[Source, ...]


def _redrawn(
    report: EnsembleEvaluationReport, draws: _Draws, base: Mapping[str, Decision], resampling: Resampling
) -> _DecisionBasis:
    sources = _sources(draws.votes.values())
    drawn = draws.made(resampling) if sources else np.array([draws.scored(base)], dtype=float)
    method = f"{' and '.join(sources) or 'no source of spread'}, {resampling.confidence_level:.0%}"
    method += f", {resampling.n_resamples} resamples" if sources else ""
    score = _score(report, drawn[:, 0], sources, resampling, method)
    hard = _Range(score.low, score.high)
    if draws.open.n or not sources:
        worst, best = (_interval(column, resampling) for column in (drawn[:, 1], drawn[:, 2]))
        hard = _Range(worst.low, best.high)
    return _DecisionBasis(score, hard, sources)


def _calibrated(
    report: EnsembleEvaluationReport,
    scorer: Scorer,
    base: Mapping[str, Decision],
    open_: OpenCriteria,
    labelled: LabelledScores,
    confidence_level: float,
) -> _DecisionBasis:
    """Compute the score from true scores of labelled items, and subtract the length penalty afterwards."""
    plain = replace(scorer, penalty=0.0)
    judged = plain.score(base)
    worst, best = open_.ends(plain, base) if open_.n else (judged, judged)
    sources: tuple[Source, ...] = ("judge_error",)
    method = f"true score predicted from {labelled.n} labelled items; full conformal, {confidence_level:.0%}"
    raw = _raw(report)
    below, above = (
        _Range(None, None) if one is None else _penalised(labelled, one, scorer, confidence_level)
        for one in (worst, best)
    )
    hard = _Range(below.low, above.high)
    if judged is None or raw.value is None:
        return _DecisionBasis(Estimate.undefined("no_values", n=labelled.n, method=method), hard, sources)
    low, high = _penalised(labelled, judged, scorer, confidence_level)
    if low is None or high is None:
        score = Estimate(raw.value, n=labelled.n, method=method, reason="too_few_labels")
        return _DecisionBasis(score, _Range(_off(0.0, scorer), _off(1.0, scorer)), sources)
    value = min(max(_off(labelled.predict(judged), scorer), low), high)
    return _DecisionBasis(Estimate(value, low, high, None, labelled.n, method), hard, sources)


def _penalised(labelled: LabelledScores, judged: float, scorer: Scorer, confidence_level: float) -> _Range:
    ends = labelled.interval(judged, confidence_level)
    if ends.low is None or ends.high is None:
        return _Range(None, None)
    return _Range(_off(ends.low, scorer), _off(ends.high, scorer))


def _off(score: float, scorer: Scorer) -> float:
    found = penalised(score, scorer.penalty, normalize=True)
    assert found is not None
    return found


def _demand_report(report: object) -> None:
    if not isinstance(report, EnsembleEvaluationReport):
        raise ArgumentError(
            "report must be the report of one item, as returned by a grader or as item_results[i].report of "
            f"a run; got {type(report).__name__}"
        )
    if not report.report:
        raise ArgumentError("the report has no criteria; pass a report returned by a grader")


def _scorer(report: EnsembleEvaluationReport, options: _Options) -> Scorer:
    rubric = options.rubric
    root = rubric.root if rubric is not None else RubricGroup("", [one.criterion for one in report.report])
    if rubric is None and any(report.node_scores):
        groups = [name for name in report.node_scores if name]
        raise ArgumentError(
            f"the rubric has the groups {groups!r}, which a report does not store; pass rubric"
        )
    return Scorer(root, options.cannot_assess, options.normalize, report.length_penalty)


def _demand_same(report: EnsembleEvaluationReport, scored: float | None) -> None:
    if report.score is None or (scored is not None and abs(scored - report.score) <= 1e-9):
        return
    raise ArgumentError(
        f"the report's score is {report.score!r} but its votes yield {scored!r} under these policies; pass "
        "the grader's rubric, aggregation, cannot_assess and normalize"
    )


def _sources(votes: Iterable[Revoted]) -> tuple[Source, ...]:
    found: list[Source] = []
    listed = list(votes)
    if any(one.n_samples > 1 for one in listed):
        found.append("samples")
    if any(len(one.judges) > 1 for one in listed):
        found.append("judges")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Draws:
    """Votes to resample, with their decided, worst and best scores."""

    scorer: Scorer
    open: OpenCriteria
    votes: Mapping[str, Revoted]

    def scored(self, decisions: Mapping[str, Decision]) -> tuple[float | None, float | None, float | None]:
        """Return the score of these decisions, and its worst and best value given the open criteria."""
        score = self.scorer.score(decisions)
        return (score, *self.open.ends(self.scorer, decisions)) if self.open.n else (score, score, score)

    def made(self, resampling: Resampling) -> Array:
        """Return score, worst and best score of each resample, shape `(n_resamples, 3)`; NaN if undefined."""
        most = max(len(one.judges) for one in self.votes.values()) or 1
        known: dict[tuple[Any, ...], tuple[float | None, ...]] = {}
        rng, rows = resampling.generator(), []
        for _ in range(resampling.n_resamples):
            places = rng.random(most)
            decisions = {name: one.draw(places, rng) for name, one in self.votes.items()}
            key = tuple(
                (one.status, repr(one.answer.code) if one.answer else None) for one in decisions.values()
            )
            if key not in known:
                known[key] = self.scored(decisions)
            rows.append(known[key])
        return np.array(rows, dtype=float)


def _raw(report: EnsembleEvaluationReport) -> Estimate:
    n = sum(len(one.votes) for one in report.report)
    if report.score is None:
        return Estimate.undefined("no_values", n=n, method="score of the report")
    return Estimate(report.score, n=n, method="score of the report")


def _score(
    report: EnsembleEvaluationReport,
    drawn: Array,
    sources: tuple[Source, ...],
    resampling: Resampling,
    method: str,
) -> Estimate:
    """Return the report's score with quantiles of the draws as bounds, extended to include the score."""
    raw = _raw(report)
    if raw.value is None:
        return Estimate.undefined("no_values", n=raw.n, method=f"score; {method}")
    low, high, se = _interval(drawn, resampling)
    if not sources or low is None or high is None:
        reason: Reason = "degenerate_resamples" if sources else "no_spread"
        return Estimate(raw.value, n=raw.n, method=f"score of the report; {method}", reason=reason)
    held = min(low, raw.value), max(high, raw.value)
    return Estimate(raw.value, *held, se, raw.n, f"score of the report; {method}")


def _interval(drawn: Array, resampling: Resampling) -> Ends:
    return interval_of(drawn, resampling, most_undefined=MOST_UNDEFINED_CORRECTED)[0]


def _verdict(threshold: float, score: Estimate, hard: _Range) -> Verdict:
    """Combine interval and hard bounds into a verdict, using only the hard bounds if there is no interval."""
    if hard.low is None or hard.high is None:
        return "UNDECIDED"
    low = hard.low if score.low is None else min(score.low, hard.low)
    high = hard.high if score.high is None else max(score.high, hard.high)
    return decided(threshold, low, high)
