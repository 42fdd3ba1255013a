"""Whether a score lies above a threshold, as far as its votes can tell."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np

from autorubric.aggregation import AggregationPolicy
from autorubric.errors import ArgumentError
from autorubric.metrics._correction._judge_error import JudgeError, judge_errors
from autorubric.metrics._correction._revote import Revoted, revoted
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.rubric import Rubric
from autorubric.scoring import apply_conditions, entry_of, penalised, score_tree
from autorubric.types import CannotAssessConfig, Decision, EnsembleEvaluationReport, RubricGroup
from autorubric.values import Answer

Verdict: TypeAlias = Literal["PASS", "FAIL", "UNDECIDED"]
Source: TypeAlias = Literal["samples", "judges", "judge_error"]

_ENUMERATED = 10


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
class DecisionResult:
    """A verdict on a score.

    Attributes:
        verdict: `"PASS"` where interval and hard bounds reach the threshold, `"FAIL"` where they lie below
            it, else `"UNDECIDED"`.
        threshold: The threshold.
        score: The report's score with the interval that the sources of spread imply; without a source the
            interval is not there (`no_spread`).
        low: Lower end of that interval; None without one.
        high: Upper end.
        hard_low: The score if every criterion that was left open or failed had come out worst.
        hard_high: The score if every such criterion had come out best.
        sources: What the interval takes in: repeated samples, a panel of judges, known errors of the judge.
        n_open: Criteria that were left open, failed or were not asked.
        confidence_level: Level of the interval.
    """

    verdict: Verdict
    threshold: float
    score: Estimate
    low: float | None
    high: float | None
    hard_low: float | None
    hard_high: float | None
    sources: tuple[Source, ...]
    n_open: int
    confidence_level: float

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON can carry them; never NaN."""
        return {**asdict(self), "score": self.score.to_dict()}


@dataclass(frozen=True, slots=True)
class _Scorer:
    root: RubricGroup
    policy: CannotAssessConfig
    normalize: bool
    penalty: float

    def score(self, decisions: Mapping[str, Decision]) -> float | None:
        """The score of these decisions, by the formulas of the grader."""
        applied = apply_conditions(self.root.leaves, decisions, self.policy)
        entries = {
            one.name or "": entry_of(one, applied.get(one.name or ""), self.policy)
            for one in self.root.leaves
        }
        made = score_tree(self.root, entries, normalize=self.normalize)
        return penalised(made.score, self.penalty, normalize=self.normalize)


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
    samples, criterion by criterion; each draw is decided and scored as the grader does. With `judge_error`
    each answer of the draw is replaced by a true one, drawn from what was true where the judge said so on
    labelled items. The quantiles of the scores are the interval. Judges err together more than such a draw
    can know, and a panel of few shows little of its spread: an interval that misses the threshold narrowly
    proves little.

    A single judge with a single sample shows no spread; then the hard bounds and `judge_error` decide alone.
    Criteria left open (CANNOT_ASSESS), failed or never asked span the hard bounds; NA is an answer: the
    criterion does not apply.

    Args:
        report: A report of a grader.
        threshold: The least score that passes.
        confidence_level: Level of the interval.
        judge_error: By criterion name, counts of labelled items, rows the true answer and columns the
            judge's, in the order of the criterion's answers without NA; or a `MetricsResult`, whose confusion
            matrices are taken. Criteria without one count as judged rightly.
        **options: See `DecisionArguments`.

    Raises:
        ArgumentError: The report's score does not come out of its votes under these policies, or a table does
            not fit its criterion.
    """
    if not 0.0 < confidence_level < 1.0:
        raise ArgumentError(f"confidence_level={confidence_level!r}; give a level between 0 and 1")
    n_resamples = options.get("n_resamples", 1000)
    if n_resamples < 1:
        raise ArgumentError(f"n_resamples={n_resamples!r}; give at least 1")
    scorer, votes = _scorer(report, options), _votes(report, options)
    base = {name: one.decided for name, one in votes.items()}
    _demand_same(report, scorer.score(base))
    errors = judge_errors(judge_error, [one.criterion for one in report.report])
    sources = _sources(votes.values(), bool(errors))
    low, high, se = None, None, None
    if sources:
        rng = np.random.default_rng(options.get("rng", 0))
        drawn = _drawn(scorer, votes, errors, n_resamples, rng)
        if len(drawn) > 1:
            tail = (1 - confidence_level) / 2
            low, high = (float(end) for end in np.quantile(drawn, (tail, 1 - tail)))
            se = float(np.std(drawn, ddof=1))
    hard_low, hard_high, n_open = _hard_bounds(scorer, base)
    method = f"score; {' and '.join(sources) or 'no source of spread'}, {confidence_level:.0%}"
    method += f", {n_resamples} resamples" if sources else ""
    n = sum(len(one.votes) for one in report.report)
    if report.score is None:
        score = Estimate.undefined("no_values", n=n, method=method)
    else:
        reason: Reason | None = None
        if low is None:
            reason = "degenerate_resamples" if sources else "no_spread"
        score = Estimate(report.score, low, high, se, n, method, reason)
    return DecisionResult(
        verdict=_verdict(threshold, [low, hard_low], [high, hard_high]),
        threshold=threshold,
        score=score,
        low=low,
        high=high,
        hard_low=hard_low,
        hard_high=hard_high,
        sources=sources,
        n_open=n_open,
        confidence_level=confidence_level,
    )


def _scorer(report: EnsembleEvaluationReport, options: DecisionArguments) -> _Scorer:
    rubric = options.get("rubric")
    if not report.report:
        raise ArgumentError("the report has no criteria; give a report of a grader")
    root = rubric.root if rubric is not None else RubricGroup("", [one.criterion for one in report.report])
    if rubric is None and any(report.node_scores):
        groups = [name for name in report.node_scores if name]
        raise ArgumentError(
            f"the report's rubric has groups, {groups!r}, which a report does not hold; give rubric"
        )
    return _Scorer(
        root,
        options.get("cannot_assess", CannotAssessConfig()),
        options.get("normalize", True),
        report.length_penalty,
    )


def _votes(report: EnsembleEvaluationReport, options: DecisionArguments) -> dict[str, Revoted]:
    aggregation = options.get("aggregation", AggregationPolicy())
    return {one.name: revoted(one, aggregation) for one in report.report}


def _demand_same(report: EnsembleEvaluationReport, scored: float | None) -> None:
    if report.score is None or (scored is not None and abs(scored - report.score) <= 1e-9):
        return
    raise ArgumentError(
        f"the report's score is {report.score!r} and its votes come to {scored!r} under these policies; give "
        "rubric, aggregation, cannot_assess and normalize as the grader had them"
    )


def _sources(votes: Any, with_errors: bool) -> tuple[Source, ...]:
    found: list[Source] = []
    listed = list(votes)
    if any(one.n_samples > 1 for one in listed):
        found.append("samples")
    if any(len(one.judges) > 1 for one in listed):
        found.append("judges")
    if with_errors:
        found.append("judge_error")
    return tuple(found)


def _drawn(
    scorer: _Scorer,
    votes: Mapping[str, Revoted],
    errors: Mapping[str, Any],
    n_resamples: int,
    rng: np.random.Generator,
) -> list[float]:
    """Scores of resamples, those that have none left out."""
    most = max(len(one.judges) for one in votes.values()) or 1
    known: dict[tuple[Any, ...], float | None] = {}
    scores = []
    for _ in range(n_resamples):
        places = rng.random(most)
        decisions = {name: one.draw(places, rng) for name, one in votes.items()}
        for name, error in errors.items():
            decisions[name] = error.draw(decisions[name], rng)
        key = tuple((one.status, repr(one.answer.code) if one.answer else None) for one in decisions.values())
        if key not in known:
            known[key] = scorer.score(decisions)
        scores.append(known[key])
    return [score for score in scores if score is not None]


def _hard_bounds(scorer: _Scorer, base: Mapping[str, Decision]) -> tuple[float | None, float | None, int]:
    extremes: dict[str, list[Decision]] = {}
    weights = {}
    for criterion in scorer.root.leaves:
        name = criterion.name or ""
        made = base.get(name)
        if criterion.measures and (made is None or _is_open(made)):
            values = [answer.value for answer in criterion.answers() if answer.value is not None] or [
                0.0,
                1.0,
            ]
            extremes[name] = [
                Decision(status="answered", answer=Answer(code=None, value=value))
                for value in (min(values), max(values))
            ]
            weights[name] = criterion.weight
    names = list(extremes)
    if len(names) <= _ENUMERATED:
        corners: Sequence[tuple[int, ...]] = list(itertools.product((0, 1), repeat=len(names)))
    else:
        # With so many, conditions between open criteria are passed over: each goes by its own sign.
        best = tuple(int(weights[name] > 0) for name in names)
        corners = [best, tuple(1 - side for side in best)]
    scores = [
        scorer.score(
            {**base, **{name: extremes[name][side] for name, side in zip(names, corner, strict=True)}}
        )
        for corner in corners
    ]
    found = [score for score in scores if score is not None]
    return (min(found), max(found), len(names)) if found else (None, None, len(names))


def _is_open(made: Decision) -> bool:
    if made.status in ("failed", "not_asked") or made.assumed:
        return True
    return made.status == "abstained" and not (made.answer is not None and made.answer.na)


def _verdict(threshold: float, lows: list[float | None], highs: list[float | None]) -> Verdict:
    low = [end for end in lows if end is not None]
    high = [end for end in highs if end is not None]
    if not low or not high:
        return "UNDECIDED"
    if min(low) >= threshold:
        return "PASS"
    return "FAIL" if max(high) < threshold else "UNDECIDED"
