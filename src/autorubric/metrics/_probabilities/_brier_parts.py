"""Murphy's decomposition of the Brier score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._intervals import Ends
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._probabilities._bins import Binned, Strategy, describe_bins, into_bins
from autorubric.metrics._probabilities._forecasts import Forecasts, read_forecasts
from autorubric.metrics._probabilities._losses import brier_of
from autorubric.metrics._probabilities._observations import EndsOf, rate, t_ends, weighted_figure
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Scale

_BOUNDS: Mapping[str, tuple[float, float]] = {
    "reliability": (0.0, 1.0),
    "resolution": (0.0, 0.25),
    "within_variance": (0.0, 0.25),
    "within_covariance": (-0.5, 0.5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrierParts:
    """The Brier score and its parts: reliability - resolution + uncertainty + within-bin terms.

    Attributes:
        brier: The Brier score of P(positive).
        reliability: `Σ n_b (p̄_b - ȳ_b)² / n`: how far the mean forecast of each bin is from its observed
            rate; 0 means calibrated.
        resolution: `Σ n_b (ȳ_b - ȳ)² / n`: distance of the bins' rates from the base rate; higher is better.
        uncertainty: `ȳ (1 - ȳ)`: the score of always forecasting the base rate.
        within_variance: `ΣΣ (p - p̄_b)² / n`: spread of the forecasts within bins.
        within_covariance: `2 ΣΣ (p - p̄_b) (y - ȳ_b) / n`: how well forecasts within bins follow the
            outcomes; this part is subtracted from the score.
        method: Description of the bins.
    """

    brier: Estimate
    reliability: Estimate
    resolution: Estimate
    uncertainty: Estimate
    within_variance: Estimate
    within_covariance: Estimate
    method: str

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable data without NaN."""
        parts = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: part.to_dict() if isinstance(part, Estimate) else part for name, part in parts.items()}


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of the Brier score of binned forecasts, as functions of the observation weights."""

    binned: Binned

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
        """Derive the interval from that of the base rate ȳ, because ȳ (1 - ȳ) is flat at 1/2."""
        seen = self.binned.seen
        options = IntervalOptions(confidence_level=confidence_level)
        base = rate("base rate", self.binned.happened, seen.cluster, options)
        if base.low is None or base.high is None or base.se is None or base.value is None:
            return Ends(None, None, None)
        ends = (base.low * (1 - base.low), base.high * (1 - base.high))
        high = 0.25 if base.low <= 0.5 <= base.high else max(ends)
        return Ends(min(ends), high, abs(1 - 2 * base.value) * base.se)


def brier_parts(
    truth: Iterable[Any],
    prob: Any,
    *,
    bins: int | None = None,
    strategy: Strategy = "width",
    scale: Scale | None = None,
    **interval: Unpack[IntervalArguments],
) -> BrierParts:
    """Split the Brier score of P(positive) into parts that sum to it exactly [1, 2].

    `brier = reliability - resolution + uncertainty + within_variance - within_covariance`. With `bins=None`,
    each distinct forecast is its own bin, the last two parts are 0 and the rest is Murphy's identity [1]. If
    nearly all forecasts differ, each bin then holds one outcome and the parts are meaningless (reliability
    becomes the score itself), so pass `bins`. Forecasts differ within such bins, and the last two parts
    account for that [2]. Reliability and resolution are both biased upwards, by up to about B ȳ(1-ȳ)/n for B
    bins. All parts are undefined (`no_pairs`) if no observation is complete.

    Args:
        truth: Outcomes; see `brier`.
        prob: P(positive), shape `(n,)`, or two columns; with more classes, pass one class against the rest.
        bins: Number of bins; None for one bin per distinct forecast.
        strategy: `"width"` or `"mass"`; see `ece`.
        scale: Categories; see `brier`.
        **interval: See `IntervalArguments`. `auto` is a delta-method t interval around the part, without
            correcting its bias; the interval of the uncertainty is derived from Wilson's interval of the base
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
    binned = into_bins(given.positive, given.truth, given, bins, strategy)
    parts = _Parts(binned)
    estimates = {name: _estimate(binned, parts, name, options) for name in ("uncertainty", *_BOUNDS)}
    one_column = Forecasts(given.truth, given.positive, given.cluster, given.n_missing)
    return BrierParts(
        brier=brier_of(one_column, options),
        **estimates,
        method=f"Brier score of P(positive), {describe_bins(bins, strategy)}",
    )


def _estimate(binned: Binned, parts: _Parts, name: str, options: IntervalOptions) -> Estimate:
    if name == "uncertainty":
        ends: EndsOf = parts.uncertainty_ends
    else:
        ends = t_ends(binned.seen, lambda: parts.effects(name), _BOUNDS[name])
    figure = weighted_figure(name.replace("_", "-bin "), getattr(parts, name), ends)
    return binned.seen.estimate(figure, options)
