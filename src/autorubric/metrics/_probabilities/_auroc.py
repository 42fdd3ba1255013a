"""Area under the ROC curve, which measures how well probabilities rank positives above negatives."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy.optimize import brentq

from autorubric.metrics._estimate import Estimate
from autorubric.metrics._intervals import Ends, normal_quantile
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._probabilities._forecasts import EndsOf, Observations, read_forecasts, weighted_figure
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes, Scale


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Observations ranked by the probability of one class, for that class against the rest.

    Attributes:
        order: Indices that sort the observations by increasing probability, shape `(n,)`.
        positive: Whether each observation belongs to the class, in that order.
        first: Start of the run of equal probabilities that contains each observation.
        after: End of that run.
    """

    order: Codes
    positive: Array
    first: Codes
    after: Codes

    def area(self, weights: Array) -> Array:
        """Return the share of correctly ordered pairs, with ties as ½, shape `(...)`; NaN with one class."""
        sorted_weights = weights[..., self.order]
        ours, others = sorted_weights * self.positive, sorted_weights * ~self.positive
        pairs = ours.sum(-1) * others.sum(-1)
        won = (ours * self._below(others)).sum(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(pairs == 0, np.nan, won / pairs)

    def _below(self, weights: Array) -> Array:
        """Return the weight ranked below each observation plus half the weight tied with it."""
        before = np.concatenate([np.zeros((*weights.shape[:-1], 1)), np.cumsum(weights, axis=-1)], axis=-1)
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


def _ranked(prob: Array, positive: Array) -> _Ranking:
    order = np.argsort(prob, kind="stable")
    _, first, where, counts = np.unique(
        prob[order], return_index=True, return_inverse=True, return_counts=True
    )
    where = where.reshape(-1)
    return _Ranking(order, positive[order], first[where], (first + counts)[where])


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
    seen = Observations(given.n, given.cluster, given.n_missing)
    if given.n_classes == 2:
        sides = [(given.positive, given.truth == 1)]
        name = "AUROC, Mann-Whitney with midranks"
    else:
        sides = [(given.prob[:, k], given.truth == k) for k in range(given.n_classes)]
        sides = [side for side in sides if 0 < np.count_nonzero(side[1]) < given.n]
        name = f"AUROC, mean of {len(sides)} of {given.n_classes} classes against the rest, midranks"
    if given.n and (not sides or len(np.unique(given.truth)) < 2):
        return Estimate.undefined("single_class", n=given.n, method=name, n_missing=given.n_missing)
    rankings = [_ranked(chances, positive) for chances, positive in sides]

    def compute(weights: Array) -> Array:
        return np.asarray(sum(one.area(weights) for one in rankings) / max(len(rankings), 1))

    figure = weighted_figure(name, compute, _ends(rankings, seen), reason="single_class")
    return seen.estimate(figure, options)


def _ends(rankings: list[_Ranking], seen: Observations) -> EndsOf:
    def ends(value: float, confidence_level: float) -> Ends:
        if seen.n_units < 2:
            return Ends(None, None, None)
        rarest = min(min(_counts(one)) for one in rankings)
        if 0.0 < value < 1.0 and rarest >= 2:
            se = _standard_error(rankings, seen)
            if se > 0.0:
                quantile = (
                    normal_quantile(confidence_level)
                    if seen.cluster is None
                    else seen.quantile(confidence_level)
                )
                return Ends(*_on_logit(value, se, quantile), se)
        share = seen.n_units / seen.n
        low, high = score_ends(
            value, rarest * share, (seen.n - rarest) * share, normal_quantile(confidence_level)
        )
        return Ends(low, high, None)

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


def _on_logit(value: float, se: float, quantile: float) -> tuple[float, float]:
    centre = math.log(value / (1 - value))
    half = quantile * se / (value * (1 - value))
    low, high = (1 / (1 + math.exp(-min(max(centre + side * half, -700.0), 700.0))) for side in (-1, 1))
    return low, high


def score_ends(value: float, n_ours: float, n_others: float, quantile: float) -> tuple[float, float]:
    """Return the values θ at which |θ - value| is `quantile` Hanley-McNeil standard errors taken at θ.

    The squared standard error is `θ(1-θ) [1 + m (1-θ)/(2-θ) + m θ/(1+θ)] / (n₁ n₀)`, with m = (n₁ + n₀)/2 - 1
    for both classes.
    """
    size = max((n_ours + n_others) / 2 - 1, 0.0)

    def excess(theta: float) -> float:
        room = 1 + size * (1 - theta) / (2 - theta) + size * theta / (1 + theta)
        return (theta - value) ** 2 - quantile**2 * theta * (1 - theta) * room / (n_ours * n_others)

    low = 0.0 if value <= 0.0 else _root(excess, 0.0, value)
    high = 1.0 if value >= 1.0 else _root(excess, value, 1.0)
    return low, high


def _root(excess: Any, below: float, above: float) -> float:
    # The excess is 0 at a bound, but not just inside it.
    hair = 1e-12
    return float(
        brentq(excess, below + hair if below == 0.0 else below, above - hair if above == 1.0 else above)
    )
