"""Decide whether a score reaches a threshold, based on the spread of its votes or on labelled items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.item_scores import LabelledDataset, SupportsGradedRun
from autorubric.metrics.core.resampling import (
    MOST_UNDEFINED_CORRECTED,
    Ends,
    Resampling,
    check_number,
    interval_of,
)
from autorubric.metrics.core.result import ResultBase, format_interval
from autorubric.metrics.core.scales import Array
from autorubric.metrics.correction.judge_error import LabelledScores, labelled_scores
from autorubric.metrics.correction.vote_resampling import (
    ScoringRules,
    VoteResampler,
    group_votes,
    open_criteria,
)
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.policies import AggregationPolicy, CannotAssessConfig, RubricGroup
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.scoring.score import subtract_penalty
from autorubric.support.blocks import Block, Cell, ScalarBlock

Verdict: TypeAlias = Literal["PASS", "FAIL", "UNDECIDED"]
DecisionSource: TypeAlias = Literal["samples", "judges", "judge_error"]

SLACK = 1e-9
"""Tolerance below the threshold, since scores are sums of floats."""

_WORDS = {"samples": "repeated samples", "judges": "several judges", "judge_error": "labelled items"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult(ResultBase):
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
    sources: tuple[DecisionSource, ...]
    n_open: int
    confidence_level: float
    reason: Reason | None

    _heading: ClassVar[str] = "Decision"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable data without NaN."""
        return ResultBase.to_dict(self) | {"score": self.score.to_dict()}

    def _tables(self) -> list[Block]:
        figures: tuple[tuple[str, Cell], ...] = (
            ("score", self.score.value),
            (f"interval, {self.confidence_level:.0%}", format_interval(self.low, self.high) or "none"),
            ("score of the report", self.raw.value),
            ("sources of spread", ", ".join(_WORDS[one] for one in self.sources) or "none"),
            ("open criteria", self.n_open),
        )
        if self.n_open:
            bounds = format_interval(self.hard_low, self.hard_high)
            figures += (("bounds (open criteria worst/best)", bounds),)
        return [ScalarBlock(figures=figures)]

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
        if self.n_open and verdict_of(self.threshold, self.low, self.high) != "UNDECIDED":
            return f"UNDECIDED: the open criteria could still move the score across {threshold}."
        return f"UNDECIDED: at {level} confidence, the score may be on either side of {threshold}."


def verdict_of(threshold: float, low: float | None, high: float | None) -> Verdict:
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
class _Options(Resampling):
    """Validated arguments; see `DecisionArguments` for the attributes."""

    rubric: Rubric | None = None
    aggregation: AggregationPolicy = field(default_factory=AggregationPolicy)
    cannot_assess: CannotAssessConfig = field(default_factory=CannotAssessConfig)
    normalize: bool = True
    dataset: LabelledDataset | None = None

    def __post_init__(self) -> None:
        Resampling.__post_init__(self)  # super() does not work with slots=True
        kinds = {
            "rubric": (Rubric, type(None)),
            "aggregation": (AggregationPolicy,),
            "cannot_assess": (CannotAssessConfig,),
        }
        for name, allowed in kinds.items():
            if not isinstance(given := getattr(self, name), allowed):
                raise ArgumentError(f"{name} must be an instance of {allowed[0].__name__}; got {given!r}")


_Range: TypeAlias = tuple[float | None, float | None]
"""Bounds of an interval; None if there is no interval."""


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
    threshold = check_number("threshold", threshold, hint="the lowest score that passes")
    settings = _Options(confidence_level=confidence_level, **options)
    resampler = _read_votes(report, settings)
    if judge_error is None:
        score, hard, sources = _from_resamples(report, resampler, settings)
    elif not settings.normalize:
        raise ArgumentError("judge_error requires scores in [0, 1]; leave normalize at True")
    else:
        labelled = labelled_scores(judge_error, settings.dataset, report)
        score, hard, sources = _from_judge_error(report, resampler, labelled, confidence_level)
    return DecisionResult(
        verdict=_verdict(threshold, score, hard) if sources else "UNDECIDED",
        threshold=threshold,
        score=score,
        raw=_report_score(report),
        low=score.low,
        high=score.high,
        hard_low=hard[0],
        hard_high=hard[1],
        sources=sources,
        n_open=resampler.open.n,
        confidence_level=confidence_level,
        reason=score.reason,
    )


def _read_votes(report: EnsembleEvaluationReport, settings: _Options) -> VoteResampler:
    if not isinstance(report, EnsembleEvaluationReport):
        raise ArgumentError(
            "report must be the report of one item, as returned by a grader or as item_results[i].report of "
            f"a run; got {type(report).__name__}"
        )
    if not report.report:
        raise ArgumentError("the report has no criteria; pass a report returned by a grader")
    rules = _scoring_rules(report, settings)
    votes = {one.name: group_votes(one, settings.aggregation) for one in report.report}
    decisions = {name: one.decided for name, one in votes.items()}
    scored = rules.score(decisions)
    if report.score is not None and (scored is None or abs(scored - report.score) > 1e-9):
        raise ArgumentError(
            f"the report's score is {report.score!r} but its votes yield {scored!r} under these policies; "
            "pass the grader's rubric, aggregation, cannot_assess and normalize"
        )
    return VoteResampler(rules, votes, decisions, open_criteria(rules, decisions))


_Basis: TypeAlias = tuple[Estimate, _Range, tuple[DecisionSource, ...]]
"""The score with its interval, the hard bounds, and the sources of spread in the interval."""


def _from_resamples(
    report: EnsembleEvaluationReport, resampler: VoteResampler, resampling: Resampling
) -> _Basis:
    votes = list(resampler.votes.values())
    found: dict[DecisionSource, bool] = {
        "samples": any(one.n_samples > 1 for one in votes),
        "judges": any(len(one.judges) > 1 for one in votes),
    }
    sources = tuple(name for name, varies in found.items() if varies)
    drawn = np.array([resampler.score_range(resampler.decisions)], dtype=float)
    if sources:
        drawn = resampler.draw_scores(resampling.n_resamples, resampling.generator())
    method = f"{' and '.join(sources) or 'no source of spread'}, {resampling.confidence_level:.0%}"
    method += f", {resampling.n_resamples} resamples" if sources else ""
    raw, ends = _report_score(report), _interval(drawn[:, 0], resampling)
    if raw.value is None:
        score = replace(raw, method=f"score; {method}")
    elif not sources or ends.low is None:
        reason: Reason = "degenerate_resamples" if sources else "no_spread"
        score = replace(raw, method=f"{raw.method}; {method}", reason=reason)
    else:
        score = Estimate(raw.value, *ends.extend_to(raw.value), raw.n, f"{raw.method}; {method}")
    hard = (score.low, score.high)
    if resampler.open.n or not sources:
        worst, best = (_interval(column, resampling) for column in (drawn[:, 1], drawn[:, 2]))
        hard = (worst.low, best.high)
    return score, hard, sources


def _from_judge_error(
    report: EnsembleEvaluationReport,
    resampler: VoteResampler,
    labelled: LabelledScores,
    confidence_level: float,
) -> _Basis:
    """Compute the score from true scores of labelled items, and subtract the length penalty afterwards."""
    without_penalty = replace(resampler, rules=replace(resampler.rules, penalty=0.0))
    judged, worst, best = without_penalty.score_range(resampler.decisions)
    sources: tuple[DecisionSource, ...] = ("judge_error",)
    method = f"true score predicted from {labelled.n} labelled items; full conformal, {confidence_level:.0%}"
    raw = _report_score(report)

    def interval(judged: float | None) -> _Range:
        low, high, _ = (None,) * 3 if judged is None else labelled.interval(judged, confidence_level)
        if low is None or high is None:
            return None, None
        return penalise(low), penalise(high)

    def penalise(score: float) -> float:
        found = subtract_penalty(score, resampler.rules.penalty, normalize=True)
        assert found is not None
        return found

    hard = (interval(worst)[0], interval(best)[1])
    if judged is None or raw.value is None:
        return Estimate.undefined("no_values", n=labelled.n, method=method), hard, sources
    low, high = interval(judged)
    if low is None or high is None:
        score = Estimate(raw.value, n=labelled.n, method=method, reason="too_few_labels")
        return score, (penalise(0.0), penalise(1.0)), sources
    value = min(max(penalise(labelled.predict(judged)), low), high)
    return Estimate(value, low, high, None, labelled.n, method), hard, sources


def _scoring_rules(report: EnsembleEvaluationReport, options: _Options) -> ScoringRules:
    rubric = options.rubric
    root = rubric.root if rubric is not None else RubricGroup("", [one.criterion for one in report.report])
    if rubric is None and any(report.node_scores):
        groups = [name for name in report.node_scores if name]
        raise ArgumentError(
            f"the rubric has the groups {groups!r}, which a report does not store; pass rubric"
        )
    return ScoringRules(root, options.cannot_assess, options.normalize, report.length_penalty)


def _report_score(report: EnsembleEvaluationReport) -> Estimate:
    n = sum(len(one.votes) for one in report.report)
    if report.score is None:
        return Estimate.undefined("no_values", n=n, method="score of the report")
    return Estimate(report.score, n=n, method="score of the report")


def _interval(drawn: Array, resampling: Resampling) -> Ends:
    return interval_of(drawn, resampling, most_undefined=MOST_UNDEFINED_CORRECTED)[0]


def _verdict(threshold: float, score: Estimate, hard: _Range) -> Verdict:
    """Combine interval and hard bounds into a verdict, using only the hard bounds if there is no interval."""
    low, high = hard
    if low is None or high is None:
        return "UNDECIDED"
    low = low if score.low is None else min(score.low, low)
    high = high if score.high is None else max(score.high, high)
    return verdict_of(threshold, low, high)
