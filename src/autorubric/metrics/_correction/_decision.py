"""Whether a score lies above a threshold, as far as its votes can tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from autorubric.aggregation import AggregationPolicy
from autorubric.errors import ArgumentError
from autorubric.metrics._correction._arguments import MOST_UNDEFINED, check_draws, finite_number
from autorubric.metrics._correction._decision_result import DecisionResult, Source, Verdict, decided
from autorubric.metrics._correction._judge_error import ErrorTable, JudgeError, judge_errors
from autorubric.metrics._correction._rescored import OpenCriteria, Scorer, open_criteria
from autorubric.metrics._correction._revote import Revoted, revoted
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._resampling import Array
from autorubric.rubric import Rubric
from autorubric.types import CannotAssessConfig, Decision, EnsembleEvaluationReport, RubricGroup


class DecisionArguments(TypedDict, total=False):
    """Further keyword arguments of `decision`: how the grader combined and scored, and the resampling.

    Attributes:
        rubric: The rubric, where it has groups, which a report does not hold.
        aggregation: How votes were combined, where not as by default.
        cannot_assess: How missing judgments counted, where not as by default.
        normalize: Whether the score was brought to [0, 1]; True by default.
        n_resamples: Resamples of the votes; 1000 by default.
        rng: Seed or generator of the resampling; 0 by default.
    """

    rubric: Rubric | None
    aggregation: AggregationPolicy
    cannot_assess: CannotAssessConfig
    normalize: bool
    n_resamples: int
    rng: int | np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Checked arguments; attributes as in `DecisionArguments`."""

    rubric: Rubric | None = None
    aggregation: AggregationPolicy = field(default_factory=AggregationPolicy)
    cannot_assess: CannotAssessConfig = field(default_factory=CannotAssessConfig)
    normalize: bool = True
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        kinds = {
            "rubric": (Rubric, type(None)),
            "aggregation": (AggregationPolicy,),
            "cannot_assess": (CannotAssessConfig,),
        }
        for name, allowed in kinds.items():
            if not isinstance(given := getattr(self, name), allowed):
                raise ArgumentError(f"{name}={given!r}; give a {allowed[0].__name__}")


class _Range(NamedTuple):
    """Ends of an interval; None without one."""

    low: float | None
    high: float | None


def decision(
    report: EnsembleEvaluationReport,
    *,
    threshold: float,
    confidence_level: float = 0.95,
    judge_error: JudgeError | None = None,
    **options: Unpack[DecisionArguments],
) -> DecisionResult:
    """Whether the score passes the threshold, fails it, or cannot be told from its votes.

    Votes are drawn again: judges with replacement, the same draw for every criterion, and within a judge its
    samples, criterion by criterion; each draw is decided and scored as the grader does. The quantiles of the
    scores, stretched to the report's own, are the interval. With `judge_error` each answer of the draw is
    replaced by a true one, drawn from what was true where the judge said so on labelled items; then `score`
    is the median of the draws, for the report's own, kept in `raw`, may be one that the errors rule out.
    Judges err together more than such a draw can know, and a panel of few shows little of its spread: an
    interval that misses the threshold narrowly proves little.

    Criteria left open (CANNOT_ASSESS), failed or never asked span the hard bounds: they come out worst and
    best in every draw, and the outer quantiles of those scores are the bounds. NA is an answer: the criterion
    does not apply. Without an open criterion the bounds are the interval.

    A single judge with a single sample shows no spread: without `judge_error` the verdict is UNDECIDED
    (`no_spread`). A score counts as reaching the threshold from 1e-9 below it.

    Args:
        report: The report of a grader on one item.
        threshold: The least score that passes.
        confidence_level: Level of the interval.
        judge_error: By criterion name, counts of labelled items, rows the true answer and columns the
            judge's, in the order of the criterion's answers without NA; or a `MetricsResult`, whose confusion
            matrices are taken. Criteria without one count as judged rightly.
        **options: See `DecisionArguments`.

    Raises:
        ArgumentError: The report is none of one item, its score does not come out of its votes under these
            policies, an argument is not allowed, or a table does not fit its criterion.
    """
    threshold = finite_number(threshold, "threshold", "the least score that passes")
    given = _Options(**options)
    rng = check_draws(confidence_level, given.n_resamples, given.rng)
    _demand_report(report)
    scorer = _scorer(report, given)
    votes = {one.name: revoted(one, given.aggregation) for one in report.report}
    base = {name: one.decided for name, one in votes.items()}
    _demand_same(report, scorer.score(base))
    errors = judge_errors(judge_error, [one.criterion for one in report.report])
    sources = _sources(votes.values(), with_errors=bool(errors))
    draws = _Draws(scorer, open_criteria(scorer, base), votes, errors)
    drawn = draws.made(given.n_resamples, rng) if sources else np.array([draws.scored(base)], dtype=float)
    method = f"{' and '.join(sources) or 'no source of spread'}, {confidence_level:.0%}"
    method += f", {given.n_resamples} resamples" if sources else ""
    tail = (1 - confidence_level) / 2
    score = _score(report, drawn[:, 0], sources, tail, method)
    hard = _Range(score.low, score.high)
    if draws.open.n or not sources:
        hard = _Range(_quantile(drawn[:, 1], tail), _quantile(drawn[:, 2], 1 - tail))
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
        n_open=draws.open.n,
        confidence_level=confidence_level,
        reason=score.reason,
    )


def _demand_report(report: object) -> None:
    if not isinstance(report, EnsembleEvaluationReport):
        raise ArgumentError(
            f"report is a {type(report).__name__}; give the report of one item: what a grader returns, or "
            "result.item_results[i].report of a run"
        )
    if not report.report:
        raise ArgumentError("the report has no criteria; give a report of a grader")


def _scorer(report: EnsembleEvaluationReport, options: _Options) -> Scorer:
    rubric = options.rubric
    root = rubric.root if rubric is not None else RubricGroup("", [one.criterion for one in report.report])
    if rubric is None and any(report.node_scores):
        groups = [name for name in report.node_scores if name]
        raise ArgumentError(
            f"the report's rubric has groups, {groups!r}, which a report does not hold; give rubric"
        )
    return Scorer(root, options.cannot_assess, options.normalize, report.length_penalty)


def _demand_same(report: EnsembleEvaluationReport, scored: float | None) -> None:
    if report.score is None or (scored is not None and abs(scored - report.score) <= 1e-9):
        return
    raise ArgumentError(
        f"the report's score is {report.score!r} and its votes come to {scored!r} under these policies; give "
        "rubric, aggregation, cannot_assess and normalize as the grader had them"
    )


def _sources(votes: Iterable[Revoted], *, with_errors: bool) -> tuple[Source, ...]:
    found: list[Source] = []
    listed = list(votes)
    if any(one.n_samples > 1 for one in listed):
        found.append("samples")
    if any(len(one.judges) > 1 for one in listed):
        found.append("judges")
    if with_errors:
        found.append("judge_error")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Draws:
    """Votes to be drawn again, and the scores that they come to: as they are, at worst and at best."""

    scorer: Scorer
    open: OpenCriteria
    votes: Mapping[str, Revoted]
    errors: Mapping[str, ErrorTable]

    def scored(self, decisions: Mapping[str, Decision]) -> tuple[float | None, float | None, float | None]:
        """Score, worst and best of these decisions."""
        score = self.scorer.score(decisions)
        return (score, *self.open.ends(self.scorer, decisions)) if self.open.n else (score, score, score)

    def made(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """Score, worst and best of each resample, NaN where it has none, shape `(n_resamples, 3)`."""
        most = max(len(one.judges) for one in self.votes.values()) or 1
        known: dict[tuple[Any, ...], tuple[float | None, ...]] = {}
        rows = []
        for _ in range(n_resamples):
            places = rng.random(most)
            decisions = {name: one.draw(places, rng) for name, one in self.votes.items()}
            for name, error in self.errors.items():
                decisions[name] = error.draw(decisions[name], rng)
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
    report: EnsembleEvaluationReport, drawn: Array, sources: tuple[Source, ...], tail: float, method: str
) -> Estimate:
    """The score with the quantiles of its draws, stretched to hold it."""
    raw = _raw(report)
    if raw.value is None:
        return Estimate.undefined("no_values", n=raw.n, method=f"score; {method}")
    low, high = _quantile(drawn, tail), _quantile(drawn, 1 - tail)
    if not sources or low is None or high is None:
        reason: Reason = "degenerate_resamples" if sources else "no_spread"
        return Estimate(raw.value, n=raw.n, method=f"score of the report; {method}", reason=reason)
    se = float(np.nanstd(drawn, ddof=1)) if np.count_nonzero(~np.isnan(drawn)) > 1 else None
    if "judge_error" in sources:
        # Not the mean: that may lie outside the quantiles, and then below a threshold that nearly all reach.
        middle = _quantile(drawn, 0.5)
        return Estimate(middle, low, high, se, raw.n, f"score, median of the draws; {method}")
    held = min(low, raw.value), max(high, raw.value)
    return Estimate(raw.value, *held, se, raw.n, f"score of the report; {method}")


def _quantile(drawn: Array, share: float) -> float | None:
    """A quantile of the draws; None where more than a tenth of them have no score."""
    kept = drawn[~np.isnan(drawn)]
    if not len(kept) or len(drawn) - len(kept) > MOST_UNDEFINED * len(drawn):
        return None
    return float(np.quantile(kept, share))


def _verdict(threshold: float, score: Estimate, hard: _Range) -> Verdict:
    """What interval and bounds say together; the bounds alone where some draws have no score."""
    if hard.low is None or hard.high is None:
        return "UNDECIDED"
    low = hard.low if score.low is None else min(score.low, hard.low)
    high = hard.high if score.high is None else max(score.high, hard.high)
    return decided(threshold, low, high)
