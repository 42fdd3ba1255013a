"""Area under the ROC curve, and accuracy of a judge that abstains where it is least confident."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import check_lengths, divide, drop_incomplete, encode, numeric_column
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import logit_limits, normal_quantile
from autorubric.metrics.core.metric import metric
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    CodedArguments,
    CodedOptions,
    Ends,
    IntervalArguments,
    IntervalOptions,
)
from autorubric.metrics.core.result import Record
from autorubric.metrics.core.scales import Array, Codes, Scale
from autorubric.metrics.figures.forecasts import (
    EndsOf,
    Observations,
    rate,
    read_forecasts,
    t_ends,
    weighted_figure,
)
from autorubric.metrics.figures.ranks import sums_before


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Observations ranked by the probability of one class, for that class against the rest."""

    order: Codes  # indices that sort the observations by increasing probability, shape `(n,)`
    positive: Array  # whether each observation belongs to the class, in that order
    first: Codes  # start of the run of equal probabilities that contains each observation
    after: Codes  # end of that run

    def area(self, weights: Array) -> Array:
        """Return the share of correctly ordered pairs, with ties as ½, shape `(...)`; NaN with one class."""
        sorted_weights = weights[..., self.order]
        ours, others = sorted_weights * self.positive, sorted_weights * ~self.positive
        pairs = ours.sum(-1) * others.sum(-1)
        won = (ours * self._below(others)).sum(-1)
        return divide(won, pairs)

    def _below(self, weights: Array) -> Array:
        """Return the weight ranked below each observation plus half the weight tied with it."""
        before = sums_before(weights)
        return np.asarray((before[..., self.first] + before[..., self.after]) / 2)

    def effects(self) -> Array:
        """Return the first-order effect of each observation, in the original order, shape `(n,)`."""
        ours, others = self.positive.astype(float), (~self.positive).astype(float)
        n_ours, n_others = ours.sum(), others.sum()
        placed = np.where(self.positive, self._below(others) / n_others, 1 - self._below(ours) / n_ours)
        area = placed[self.positive].mean()
        found = np.empty(len(self.order))
        found[self.order] = (placed - area) / np.where(self.positive, n_ours, n_others)
        return found


def rank_by(prob: Array, positive: Array) -> _Ranking:
    order = np.argsort(prob, kind="stable")
    _, first, where, counts = np.unique(
        prob[order], return_index=True, return_inverse=True, return_counts=True
    )
    where = where.reshape(-1)
    return _Ranking(order, positive[order], first[where], (first + counts)[where])


@metric(inputs="probabilities", reference="Hanley and McNeil 1982; DeLong et al. 1988", symmetric=False)
def auroc(
    truth: Iterable[Any], prob: Any, *, scale: Scale | None = None, **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compute the area under the ROC curve, the probability that a positive ranks above a negative [1].

    This is the Mann-Whitney statistic with midranks, U / (n₁ n₀); ties count as half. 1 is perfect and 1/2 is
    chance level. The result depends only on the order of the probabilities, not on their values. With two
    columns, the second one is used. With more columns, the result is the unweighted mean over classes, each
    against the rest; a class is excluded if it contains no observation or every observation, and `method`
    reports how many classes were used. The area is undefined if the truth has only one class (`single_class`)
    or no observation is complete (`no_pairs`).

    Args:
        truth: Outcomes; see `brier`.
        prob: Probabilities; see `brier`.
        scale: Categories; see `brier`.
        **interval: See `IntervalArguments`. `auto` uses DeLong's variance [2] on the logit scale or, with
            clusters, the variance of [3] with a t quantile (degrees of freedom: number of clusters minus 1).
            If these fail (an area of 0 or 1, or fewer than two observations of a class), it uses the score
            interval of [4], which counts each cluster as one observation.

    References:
        [1] J. A. Hanley, B. J. McNeil (1982), The meaning and use of the area under a receiver operating
            characteristic (ROC) curve, Radiology 143(1), 29-36.
        [2] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson (1988), Comparing the areas under two or more
            correlated receiver operating characteristic curves, Biometrics 44(3), 837-845.
        [3] N. A. Obuchowski (1997), Nonparametric analysis of clustered ROC curve data, Biometrics 53(2),
            567-578.
        [4] R. G. Newcombe (2006), Confidence intervals for an effect size measure based on the Mann-Whitney
            statistic, part 2, Statistics in Medicine 25(4), 559-573, method 5.
    """
    options = IntervalOptions(**interval)
    given = read_forecasts(truth, prob, scale, options)
    if given.n_classes == 2:
        sides = [(given.positive, given.truth == 1)]
        name = "AUROC, Mann-Whitney with midranks"
    else:
        sides = [(given.prob[:, k], given.truth == k) for k in range(given.n_classes)]
        sides = [side for side in sides if 0 < np.count_nonzero(side[1]) < given.n]
        name = f"AUROC, mean of {len(sides)} of {given.n_classes} classes against the rest, midranks"
    if given.n and (not sides or len(np.unique(given.truth)) < 2):
        return Estimate.undefined("single_class", n=given.n, method=name, n_missing=given.n_missing)
    rankings = [rank_by(chances, positive) for chances, positive in sides]

    def compute(weights: Array) -> Array:
        return np.asarray(sum(one.area(weights) for one in rankings) / max(len(rankings), 1))

    figure = weighted_figure(name, compute, _ends(rankings, given), reason="single_class")
    return given.estimate(figure, options)


def _ends(rankings: list[_Ranking], seen: Observations) -> EndsOf:
    def ends(value: float, confidence_level: float) -> Ends:
        if seen.n_units < 2:
            return NO_ENDS
        rarest, normal = min(min(_counts(one)) for one in rankings), normal_quantile(confidence_level)
        if 0.0 < value < 1.0 and rarest >= 2:
            se = _standard_error(rankings, seen)
            if se > 0.0:
                quantile = normal if seen.cluster is None else seen.quantile(confidence_level)
                return Ends(*logit_limits(value, se, quantile), se)
        share = seen.n_units / seen.n
        return Ends(*score_ends(value, rarest * share, (seen.n - rarest) * share, normal), None)

    return ends


def _counts(ranking: _Ranking) -> tuple[int, int]:
    ours = int(np.count_nonzero(ranking.positive))
    return ours, len(ranking.positive) - ours


def _standard_error(rankings: list[_Ranking], seen: Observations) -> float:
    """Return √(S₁₀/n₁ + S₀₁/n₀) (DeLong et al., eq. 4; n - 1 in the variances) or its cluster version."""
    total = np.zeros(seen.n)
    for one in rankings:
        effects = one.effects()
        if seen.cluster is None:
            ours, others = _counts(one)
            positive = np.empty(seen.n, dtype=bool)
            positive[one.order] = one.positive
            effects = effects * np.sqrt(np.where(positive, ours / (ours - 1), others / (others - 1)))
        total += effects / len(rankings)
    if seen.cluster is None:
        return math.sqrt(float((total**2).sum()))
    return seen.spread(total)


def score_ends(value: float, n_ours: float, n_others: float, quantile: float) -> tuple[float, float]:
    """Return the values θ at which |θ - value| is `quantile` Hanley-McNeil standard errors taken at θ."""
    size = max((n_ours + n_others) / 2 - 1, 0.0)

    def excess(theta: float) -> float:
        room = 1 + size * (1 - theta) / (2 - theta) + size * theta / (1 + theta)
        return (theta - value) ** 2 - quantile**2 * theta * (1 - theta) * room / (n_ours * n_others)

    low = 0.0 if value <= 0.0 else _root(excess, 0.0, value)
    high = 1.0 if value >= 1.0 else _root(excess, value, 1.0)
    return low, high


def _root(excess: Any, below: float, above: float) -> float:
    from scipy.optimize import brentq  # imported here because importing scipy.optimize is slow

    # The excess is 0 at a bound, but not just inside it.
    hair = 1e-12
    return float(
        brentq(excess, below + hair if below == 0.0 else below, above - hair if above == 1.0 else above)
    )


_MOST_POINTS = 100
_NAME = "area under the risk-coverage curve, with equal confidences as one step"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePoint(Record):
    """Accuracy of the most confident answers at one coverage level.

    Attributes:
        coverage: Fraction of answers kept, in (0, 1].
        threshold: Lowest confidence among the kept answers.
        accuracy: Fraction of kept answers that are correct.
        n: Number of answers kept.
    """

    coverage: float
    threshold: float
    accuracy: Estimate
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageCurve(Record):
    """Accuracy as a function of coverage, the fraction of answers kept.

    Attributes:
        points: Points in order of increasing coverage.
        aurc: Area under the risk-coverage curve, the mean error rate over coverages. Lower is better;
            uninformative confidences give roughly the overall error rate.
        n: Number of answers that have a label and a confidence.
        n_missing: Number of excluded answers.
        reason: Reason why there are no points; None if there are points.
    """

    points: tuple[CoveragePoint, ...]
    aurc: Estimate
    n: int
    n_missing: int
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class _Steps:
    """Answers in order of decreasing confidence; equal confidences form one step."""

    wrong: Array  # 1 if the answer is wrong, otherwise 0, in that order, shape `(n,)`
    step: Codes  # step of each answer, 0..S-1, in increasing order
    ends: Codes  # number of answers up to the end of each step, shape `(S,)`
    thresholds: Array  # confidence of each step, in decreasing order
    seen: Observations  # observations and clusters used for resampling

    def area(self, weights: Array) -> Array:
        """Compute `Σ_s (share of answers in s) · (error rate up to the end of s)`, shape `(...)`."""
        kept = np.cumsum(weights, axis=-1)[..., self.ends - 1]
        errors = np.cumsum(weights * self.wrong, axis=-1)[..., self.ends - 1]
        gained = np.diff(kept, axis=-1, prepend=0.0)
        risk = errors / np.where(kept == 0, 1.0, kept)
        return np.asarray((gained * risk).sum(-1) / weights.sum(-1))

    def effects(self) -> Array:
        """Return each answer's effect on the area: it adds a level, and risk at its own and later ones."""
        n = len(self.wrong)
        gained = np.diff(self.ends, prepend=0)
        risk = np.cumsum(self.wrong)[self.ends - 1] / self.ends
        share = gained / self.ends
        beyond, of_risk = (np.cumsum(x[::-1])[::-1][self.step] for x in (share, share * risk))
        raw = risk[self.step] + self.wrong * beyond - of_risk
        return np.asarray((raw - raw.mean()) / n)


def accuracy_at_coverage(
    truth: Iterable[Any],
    pred: Iterable[Any],
    confidence: Iterable[Any] | None,
    *,
    coverages: Sequence[float] | None = None,
    scale: Scale | None = None,
    **interval: Unpack[CodedArguments],
) -> CoverageCurve:
    """Compute the accuracy of the most confident answers at increasing coverages, and the AURC [1].

    Coverage is the fraction of answers kept, most confident first. Answers with equal confidence form one
    step, so the order of rows does not matter; a coverage within a step is reported at the end of the step.
    AURC, the area above the accuracy curve, is `Σ_s (share of answers in step s) · (error rate up to s)`; if
    all confidences differ, it is the mean over answers defined in [1]. If `confidence` is None, there are no
    points and AURC is undefined (`no_confidence`); the same applies if no answer is complete (`no_pairs`).

    Args:
        truth: True labels. Answers whose label is None or NaN are dropped.
        pred: Predicted labels. Answers whose prediction is None or NaN are dropped.
        confidence: Numbers on any scale, because only their order matters; None and NaN are missing.
        coverages: Coverages in (0, 1] to report; None reports every step or, if there are more than 100
            steps, 1%, 2%, … 100%.
        scale: Declared categories; None uses the labels that occur.
        **interval: See `CodedArguments`. Accuracies have Wilson's interval, or a logit-t interval with
            clusters; AURC has a delta-method t interval.

    References:
        [1] Y. Geifman, R. El-Yaniv (2017), Selective classification for deep neural networks, NeurIPS 30; the
            area: Y. Geifman, G. Uziel, R. El-Yaniv (2019), Bias-reduced uncertainty estimation for deep
            neural classifiers, ICLR.
    """
    options = CodedOptions(**interval)
    steps, reason = _steps(truth, pred, confidence, scale, options)
    seen = steps.seen
    if reason is not None:
        nothing = Estimate.undefined(reason, n=0, method=_NAME, n_missing=seen.n_missing)
        return CoverageCurve(points=(), aurc=nothing, n=0, n_missing=seen.n_missing, reason=reason)
    figure = weighted_figure(_NAME, steps.area, t_ends(seen, steps.effects))
    points = tuple(_point(steps, place, options) for place in _places_at(steps, coverages))
    return CoverageCurve(
        points=points, aurc=seen.estimate(figure, options), n=seen.n, n_missing=seen.n_missing
    )


def _steps(
    truth: Iterable[Any],
    pred: Iterable[Any],
    confidence: Iterable[Any] | None,
    scale: Scale | None,
    options: CodedOptions,
) -> tuple[_Steps, Reason | None]:
    left, right = encode((truth, pred), scale, options.labels).codes
    sure = np.full(len(left), np.nan) if confidence is None else numeric_column(confidence, "confidence")
    check_lengths("values", truth=left, pred=right, confidence=sure)
    kept = (left >= 0) & (right >= 0) & ~np.isnan(sure)
    reason: Reason | None = None
    if not kept.any():
        reason = "no_confidence" if len(sure) and np.isnan(sure).all() else "no_pairs"
    members, n_missing = drop_incomplete(kept, options.cluster)
    order = np.argsort(-sure[kept], kind="stable")
    thresholds, starts, step = np.unique(-sure[kept][order], return_index=True, return_inverse=True)
    n = len(order)
    seen = Observations(n, None if members is None else members[order], n_missing)
    wrong = (left != right)[kept][order].astype(float)
    return _Steps(wrong, step.reshape(-1), np.append(starts[1:], n), -thresholds, seen), reason


def _places_at(steps: _Steps, coverages: Sequence[float] | None) -> list[int]:
    if coverages is None:
        if len(steps.ends) <= _MOST_POINTS:
            return list(range(len(steps.ends)))
        coverages = [percent / _MOST_POINTS for percent in range(1, _MOST_POINTS + 1)]
    wrong = [share for share in coverages if not 0.0 < share <= 1.0]
    if wrong:
        raise ArgumentError(f"coverages must be greater than 0 and at most 1; got {wrong[0]!r}")
    # Rounding must not add an answer to the number that the coverage implies.
    wanted = np.ceil(np.array(coverages, dtype=float) * steps.seen.n - 1e-9)
    return sorted({int(place) for place in np.searchsorted(steps.ends, wanted)})


def _point(steps: _Steps, place: int, options: IntervalOptions) -> CoveragePoint:
    n = int(steps.ends[place])
    cluster = None if steps.seen.cluster is None else steps.seen.cluster[:n]
    return CoveragePoint(
        coverage=n / steps.seen.n,
        threshold=float(steps.thresholds[place]),
        accuracy=rate("accuracy of the most confident", 1 - steps.wrong[:n], cluster, options),
        n=n,
    )
