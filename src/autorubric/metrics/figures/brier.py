"""Brier score with Murphy's decomposition, and logarithmic loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.metric import metric
from autorubric.metrics.core.resampling import NO_ENDS, Ends, IntervalArguments, IntervalOptions, check_number
from autorubric.metrics.core.result import Record
from autorubric.metrics.core.scales import Array, Scale
from autorubric.metrics.figures.calibration import BinnedForecasts, BinStrategy, assign_bins, describe_bins
from autorubric.metrics.figures.forecasts import (
    EndsOf,
    Forecasts,
    logit_ends,
    mean_score,
    rate,
    read_forecasts,
    t_ends,
    weighted_figure,
)

_BOUNDS: Mapping[str, tuple[float, float]] = {
    "reliability": (0.0, 1.0),
    "resolution": (0.0, 0.25),
    "within_variance": (0.0, 0.25),
    "within_covariance": (-0.5, 0.5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrierParts(Record):
    """The Brier score and its parts: reliability - resolution + uncertainty + within-bin terms.

    Attributes:
        brier: Brier score of P(positive).
        reliability: `Σ n_b (p̄_b - ȳ_b)² / n`: distance between each bin's mean forecast and observed rate; 0
            means calibrated.
        resolution: `Σ n_b (ȳ_b - ȳ)² / n`: distance of the bins' rates from the base rate; higher is better.
        uncertainty: `ȳ (1 - ȳ)`: Brier score of always forecasting the base rate.
        within_variance: `ΣΣ (p - p̄_b)² / n`: variance of the forecasts within bins.
        within_covariance: `2 ΣΣ (p - p̄_b) (y - ȳ_b) / n`: how well forecasts follow the outcomes within
            bins; this part is subtracted from the score.
        method: Description of the bins.
    """

    brier: Estimate
    reliability: Estimate
    resolution: Estimate
    uncertainty: Estimate
    within_variance: Estimate
    within_covariance: Estimate
    method: str


@dataclass(frozen=True, slots=True)
class _BrierTerms:
    """Parts of the Brier score of binned forecasts, as functions of the observation weights."""

    binned: BinnedForecasts

    def reliability(self, weights: Array) -> Array:
        n, forecast, rate = self.binned.means(weights)
        return np.asarray((n * (forecast - rate) ** 2).sum(-1) / weights.sum(-1))

    def resolution(self, weights: Array) -> Array:
        n, _, rate = self.binned.means(weights)
        total = weights.sum(-1)
        base = (n * rate).sum(-1) / total
        return np.asarray((n * (rate - base[..., None]) ** 2).sum(-1) / total)

    def uncertainty(self, weights: Array) -> Array:
        base = (weights @ self.binned.happened) / weights.sum(-1)
        return np.asarray(base * (1 - base))

    def _within(self, weights: Array) -> tuple[Array, Array]:
        _, forecast, rate = self.binned.means(weights)
        place = self.binned.place
        return self.binned.prob - forecast[..., place], self.binned.happened - rate[..., place]

    def within_variance(self, weights: Array) -> Array:
        off, _ = self._within(weights)
        return np.asarray((weights * off**2).sum(-1) / weights.sum(-1))

    def within_covariance(self, weights: Array) -> Array:
        off, other = self._within(weights)
        return np.asarray(2 * (weights * off * other).sum(-1) / weights.sum(-1))

    def effects(self, name: str) -> Array:
        """Return the first-order effect of each observation on a part, shape `(n,)`."""
        _, forecast, rates = self.binned.means(self.binned.ones)
        off, other = self._within(self.binned.ones)
        gap = (forecast - rates)[self.binned.place]
        lift = rates[self.binned.place] - self.binned.happened.mean()
        raw: Array = {
            "reliability": gap**2 + 2 * gap * (off - other),
            "resolution": lift**2 + 2 * lift * other,
            "within_variance": off**2,
            "within_covariance": 2 * off * other,
        }[name]
        return np.asarray((raw - raw.mean()) / len(raw))

    def uncertainty_ends(self, value: float, confidence_level: float) -> Ends:
        """Derive the interval from the base rate's interval, because ȳ (1 - ȳ) is flat at 1/2."""
        seen = self.binned.seen
        options = IntervalOptions(confidence_level=confidence_level)
        base = rate("base rate", self.binned.happened, seen.cluster, options)
        if base.low is None or base.high is None or base.se is None or base.value is None:
            return NO_ENDS
        ends = (base.low * (1 - base.low), base.high * (1 - base.high))
        high = 0.25 if base.low <= 0.5 <= base.high else max(ends)
        return Ends(min(ends), high, abs(1 - 2 * base.value) * base.se)


def brier_parts(
    truth: Iterable[Any],
    prob: Any,
    *,
    bins: int | None = None,
    strategy: BinStrategy = "width",
    scale: Scale | None = None,
    **interval: Unpack[IntervalArguments],
) -> BrierParts:
    """Decompose the Brier score of P(positive) into parts that sum to it exactly [1, 2].

    `brier = reliability - resolution + uncertainty + within_variance - within_covariance`. With `bins=None`,
    each distinct forecast is a separate bin, the last two parts are 0 and the rest is Murphy's identity [1].
    If nearly all forecasts differ, each bin then contains one outcome and the parts are meaningless
    (reliability becomes the score itself), so pass `bins`. Forecasts differ within such bins, and the last
    two parts account for this [2]. Reliability and resolution are both biased upwards, by up to about B
    ȳ(1-ȳ)/n for B bins. All parts are undefined (`no_pairs`) if no observation is complete.

    Args:
        truth: Outcomes; see `brier`.
        prob: P(positive), shape `(n,)`, or two columns. For more classes, pass one class against the rest.
        bins: Number of bins; None uses one bin per distinct forecast.
        strategy: `"width"` or `"mass"`; see `ece`.
        scale: Categories; see `brier`.
        **interval: See `IntervalArguments`. `auto` is a delta-method t interval around the part, not
            corrected for bias; the interval of the uncertainty is derived from Wilson's interval for the base
            rate.

    References:
        [1] A. H. Murphy (1973), A new vector partition of the probability score, Journal of Applied
            Meteorology 12(4), 595-600.
        [2] D. B. Stephenson, C. A. S. Coelho, I. T. Jolliffe (2008), Two extra components in the Brier score
            decomposition, Weather and Forecasting 23(4), 752-757, eq. 5.
    """
    options = IntervalOptions(**interval)
    given = read_forecasts(truth, prob, scale, options)
    if given.n_classes > 2:
        raise ArgumentError(
            f"prob must have at most two columns; got {given.n_classes}. For more classes, pass truth == k "
            "and prob[:, k] for each class k"
        )
    binned = assign_bins(given.positive, given.truth, given, bins, strategy)
    parts = _BrierTerms(binned)
    estimates = {name: _estimate(binned, parts, name, options) for name in ("uncertainty", *_BOUNDS)}
    return BrierParts(
        brier=brier_of(replace(given, prob=given.positive), options),
        **estimates,
        method=f"Brier score of P(positive), {describe_bins(bins, strategy)}",
    )


def _estimate(binned: BinnedForecasts, parts: _BrierTerms, name: str, options: IntervalOptions) -> Estimate:
    if name == "uncertainty":
        ends: EndsOf = parts.uncertainty_ends
    else:
        ends = t_ends(binned.seen, lambda: parts.effects(name), _BOUNDS[name])
    figure = weighted_figure(name.replace("_", "-bin "), getattr(parts, name), ends)
    return binned.seen.estimate(figure, options)


@metric(inputs="probabilities", bounds=(0.0, 2.0), reference="Brier 1950", perfect=0.0, symmetric=False)
def brier(
    truth: Iterable[Any], prob: Any, *, scale: Scale | None = None, **interval: Unpack[IntervalArguments]
) -> Estimate:
    """Compute the Brier score, the mean squared difference between forecasts and outcomes [1].

    0 is perfect. For P(positive), shape `(n,)`, the score is `Σ (p - y)² / n`, in [0, 1]; always forecasting
    1/2 scores 0.25. For class probabilities, shape `(n, K)`, it is `Σ Σ_k (p_k - y_k)² / n` as in [1], in [0,
    2]; with two classes this is halved, so that both forms of a binary forecast have the same score.
    `brier_parts` decomposes it. The score is undefined (`no_pairs`) if no observation is complete.

    Args:
        truth: Outcomes: with one column, 0/1 or any value that `Binary()` accepts; with K columns, codes
            0..K-1, or -1 if missing. None and NaN are missing.
        prob: Probabilities, shape `(n,)` or `(n, K)`, with rows that sum to 1 ± 0.001. Rows with a missing
            number are dropped.
        scale: Categories in column order, with the positive one last; required if `truth` contains labels.
        **interval: See `IntervalArguments`. `auto` is a t interval on the logit scale; with C clusters, it
            has C - 1 degrees of freedom.

    References:
        [1] G. W. Brier (1950), Verification of forecasts expressed in terms of probability, Monthly Weather
            Review 78(1), 1-3.
    """
    options = IntervalOptions(**interval)
    return brier_of(read_forecasts(truth, prob, scale, options), options)


def brier_of(given: Forecasts, options: IntervalOptions) -> Estimate:
    """Compute `brier` for forecasts that have already been read."""
    losses, high, form = _squared_losses(given)
    figure = weighted_figure(
        f"Brier score, {form}",
        mean_score(losses),
        logit_ends(given, lambda: (losses - losses.mean()) / given.n, high),
        high=high,
    )
    return given.estimate(figure, options)


def _squared_losses(given: Forecasts) -> tuple[Array, float, str]:
    """Return the squared error of each forecast, shape `(n,)`, its maximum possible value, and its form."""
    if given.prob.ndim == 1:
        return (given.prob - given.truth) ** 2, 1.0, "positive class"
    happened = np.eye(given.n_classes)[given.truth]
    losses = ((given.prob - happened) ** 2).sum(axis=1)
    if given.n_classes == 2:
        return losses / 2, 1.0, "2 classes, half of their sum"
    return losses, 2.0, f"sum over {given.n_classes} classes"


@metric(inputs="probabilities", bounds=(0.0, None), reference="Good 1952", perfect=0.0, symmetric=False)
def log_loss(
    truth: Iterable[Any],
    prob: Any,
    *,
    clip: float | None = None,
    scale: Scale | None = None,
    **interval: Unpack[IntervalArguments],
) -> Estimate:
    """Compute the logarithmic loss, the mean of `-ln P(outcome)` in nats [1].

    0 is perfect, and a coin flip scores ln 2. An outcome that was forecast with probability 0 has infinite
    loss, so the result is undefined (`infinite_loss`) unless `clip` bounds the probabilities. The result then
    depends on `clip`: one such error in n observations adds `-ln(clip) / n`. The loss is also undefined
    (`no_pairs`) if no observation is complete.

    Args:
        truth: Outcomes; see `brier`.
        prob: Probabilities; see `brier`.
        clip: Clips probabilities to [clip, 1 - clip]; None leaves them unchanged. scikit-learn clips at
            2.2e-16.
        scale: Categories; see `brier`.
        **interval: See `IntervalArguments`. `auto` is a t interval; with C clusters, it has C - 1 degrees of
            freedom.

    References:
        [1] I. J. Good (1952), Rational decisions, Journal of the Royal Statistical Society B 14(1), 107-114.
    """
    if clip is not None:
        check_number("clip", clip, "(0, 0.5)", hint="or None")
    options = IntervalOptions(**interval)
    given = read_forecasts(truth, prob, scale, options)
    if given.prob.ndim == 1:
        chances = np.where(given.truth == 1, given.prob, 1 - given.prob)
    else:
        chances = given.prob[np.arange(given.n), given.truth]
    if clip is not None:
        chances = np.clip(chances, clip, 1 - clip)
    name = "log loss in nats" + (
        "" if clip is None else f", probabilities clipped to [{clip:g}, 1 - {clip:g}]"
    )
    if np.any(chances <= 0.0):
        return Estimate.undefined("infinite_loss", n=given.n, method=name, n_missing=given.n_missing)
    # Adding 0 turns -0.0 into 0.0.
    losses = -np.log(chances) + 0.0
    ends = t_ends(given, lambda: (losses - losses.mean()) / given.n, (0.0, math.inf))
    return given.estimate(weighted_figure(name, mean_score(losses), ends, high=math.inf), options)
