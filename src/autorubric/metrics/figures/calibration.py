"""Calibration: expected calibration error and the reliability curve."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
from scipy.special import erf

from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.metric import metric
from autorubric.metrics.core.resampling import (
    NO_ENDS,
    Compute,
    Ends,
    IntervalArguments,
    IntervalOptions,
    check_choice,
    check_number,
)
from autorubric.metrics.core.result import Record
from autorubric.metrics.core.scales import Array, Codes, Scale
from autorubric.metrics.figures.forecasts import (
    EndsOf,
    Forecasts,
    Observations,
    rate,
    read_forecasts,
    weighted_figure,
)

BinStrategy: TypeAlias = Literal["width", "mass"]
"""Bins of equal width, or with roughly equal numbers of forecasts."""


@dataclass(frozen=True, slots=True)
class BinnedForecasts:
    """Forecasts sorted by bin, without empty bins."""

    prob: Array  # forecast probability, shape `(n,)`
    happened: Array  # 1 if the forecast event happened, otherwise 0, shape `(n,)`
    place: Codes  # bin of each forecast, 0..B-1, in increasing order, shape `(n,)`
    starts: Codes  # index of the first forecast of each bin, shape `(B,)`
    edges: Array  # lower and upper edge of each bin, shape `(B, 2)`
    seen: Observations  # observations and clusters used for resampling

    def sums(self, weighted: Array) -> Array:
        """Sum values of shape `(..., n)` within each bin; the result has shape `(..., B)`."""
        return np.asarray(np.add.reduceat(weighted, self.starts, axis=-1))

    def means(self, weights: Array) -> tuple[Array, Array, Array]:
        """Return each bin's weight, mean forecast and rate, shape `(..., B)`; means without weight are 0."""
        n = self.sums(weights)
        filled = np.where(n == 0, 1.0, n)
        return n, self.sums(weights * self.prob) / filled, self.sums(weights * self.happened) / filled

    @property
    def ones(self) -> Array:
        """Weight 1 for each observation, shape `(n,)`."""
        return np.ones(len(self.prob))


def assign_bins(
    prob: Array, happened: Array, given: Forecasts, bins: int | None, strategy: BinStrategy
) -> BinnedForecasts:
    """Assign forecasts to bins; with `bins=None`, each distinct forecast has its own bin."""
    if bins is not None:
        check_number("bins", bins, "[1, inf)", whole=True)
    check_choice("strategy", strategy, BinStrategy)
    edges, where = _edges(prob, bins, strategy)
    order = np.argsort(where, kind="stable")
    used, starts, place = np.unique(where[order], return_index=True, return_inverse=True)
    cluster = None if given.cluster is None else given.cluster[order]
    return BinnedForecasts(
        prob[order],
        happened[order].astype(float),
        place.reshape(-1),
        starts,
        edges[used],
        Observations(given.n, cluster, given.n_missing),
    )


def _edges(prob: Array, bins: int | None, strategy: BinStrategy) -> tuple[Array, Codes]:
    if bins is None or not prob.size:
        distinct, where = np.unique(prob, return_inverse=True)
        return np.column_stack([distinct, distinct]), where.reshape(-1)
    # k / bins is the float nearest to the decimal, so that 0.3 falls on the edge 3 / 10.
    cuts = np.arange(int(bins) + 1) / int(bins)
    if strategy == "mass":
        cuts = np.quantile(prob, cuts)
    where = np.searchsorted(cuts[1:-1], prob, side="left")
    return np.column_stack([cuts[:-1], cuts[1:]]), where


def describe_bins(bins: int | None, strategy: BinStrategy) -> str:
    """Describe the bins and their edge rule in words."""
    if bins is None:
        return "one bin per distinct forecast"
    kind = "equal width" if strategy == "width" else "equal mass (quantiles of the sample)"
    return f"{bins} bins of {kind}, including upper edges (the first bin also its lower edge)"


def _stated_bins(given: Forecasts, bins: int | None, strategy: BinStrategy) -> tuple[BinnedForecasts, str]:
    """Return P(positive) or, with K columns, the (first) top probability in bins, and a description."""
    if given.prob.ndim == 1:
        return assign_bins(given.prob, given.truth, given, bins, strategy), "P(positive)"
    top = given.prob.argmax(axis=1)
    stated = given.prob[np.arange(given.n), top]
    return assign_bins(stated, top == given.truth, given, bins, strategy), "top-label confidence"


def _gaps(binned: BinnedForecasts, weights: Array) -> Array:
    """Sum |mean forecast - rate| over bins, weighted by each bin's share of forecasts, shape `(...)`."""
    n, forecast, rate = binned.means(weights)
    return np.asarray((n * np.abs(forecast - rate)).sum(-1) / weights.sum(-1))


def _debiased_gaps(binned: BinnedForecasts, weights: Array) -> Array:
    """Compute `_gaps` minus its bias from chance, since a gap g with error s averages E|N(g, s²)|."""
    n, forecast, rate = binned.means(weights)
    gap = np.abs(forecast - rate)
    error = np.sqrt(np.clip(rate * (1 - rate), 0.0, None) / np.where(n == 0, 1.0, n))
    ratio = gap / (np.where(error == 0, 1.0, error) * math.sqrt(2))
    shown = np.where(error == 0, gap, error * math.sqrt(2 / math.pi) * np.exp(-(ratio**2)) + gap * erf(ratio))
    return np.asarray(np.maximum((n * (2 * gap - shown)).sum(-1) / weights.sum(-1), 0.0))


def _ece_ends(binned: BinnedForecasts) -> EndsOf:
    """Return a t interval widened by the largest and smallest bias that chance may have added."""

    def ends(value: float, confidence_level: float) -> Ends:
        seen = binned.seen
        if seen.n_units < 2:
            return NO_ENDS
        n, forecast, observed = binned.means(binned.ones)
        effects = np.sign(forecast - observed)[binned.place] * (binned.prob - binned.happened)
        se = seen.spread((effects - effects.mean()) / seen.n)
        half = seen.quantile(confidence_level) * se
        shown = float(_gaps(binned, binned.ones))
        # The ECE expected of a calibrated judge: each bin's E|N(0, s²)| = s √(2/π).
        by_chance = math.sqrt(2 / math.pi) * float(np.sqrt(n * forecast * (1 - forecast)).sum()) / seen.n
        low = max(0.0, min(value, shown - by_chance - half))
        return Ends(low, min(1.0, max(value, float(_debiased_gaps(binned, binned.ones)) + half)), se)

    return ends


@metric(
    inputs="probabilities",
    reference="Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017",
    perfect=0.0,
    symmetric=False,
)
def ece(
    truth: Iterable[Any],
    prob: Any,
    *,
    bins: int = 10,
    strategy: BinStrategy = "width",
    debiased: bool = False,
    scale: Scale | None = None,
    **interval: Unpack[IntervalArguments],
) -> Estimate:
    """Compute the expected calibration error `Σ_b n_b / n · |rate_b - mean forecast_b|` over bins [1, 2].

    The result is in [0, 1]. With one column, P(positive) is compared with the rate of positives. With K
    columns, the top label's confidence is compared with how often that label is correct [2]. The two forms
    give different values for the same two-class forecast. Bins include their upper edge, and the first bin
    also includes its lower edge. Edges of equal-mass bins are sample quantiles, and equal forecasts stay in
    one bin. The ECE is biased upwards, more so with fewer forecasts per bin: with 10 bins, a perfectly
    calibrated judge scores about 0.1 at n = 100 and 0.06 at n = 300. `debiased` subtracts the bias estimated
    by the normal approximation of [3], which removes about a third of it. The ECE is undefined (`no_pairs`)
    if no observation is complete.

    Args:
        truth: Outcomes; see `brier`.
        prob: Probabilities; see `brier`.
        bins: Number of bins.
        strategy: `"width"` for bins of equal width, or `"mass"` for roughly equal numbers of forecasts.
        debiased: Whether to subtract the estimated bias; the result is at least 0.
        scale: Categories; see `brier`.
        **interval: See `IntervalArguments`. `auto` is a t interval shifted down by the bias: its upper bound
            is the debiased ECE's, and its lower bound allows for the whole ECE that a calibrated judge would
            have. Its coverage exceeds the nominal level if calibration is poor. A percentile bootstrap adds
            the bias a second time and misses the true value. Bin edges are kept fixed.

    References:
        [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht (2015), Obtaining well calibrated probabilities using
            Bayesian binning, AAAI 29, 2901-2907.
        [2] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017), On calibration of modern neural networks, ICML
            34, 1321-1330, eq. 3.
        [3] A. Kumar, P. Liang, T. Ma (2019), Verified uncertainty calibration, NeurIPS 32.
    """
    options = IntervalOptions(**interval)
    binned, kind = _stated_bins(read_forecasts(truth, prob, scale, options), bins, strategy)
    compute = _debiased_gaps if debiased else _gaps
    name = f"{'debiased ' if debiased else ''}ECE of {kind}, {describe_bins(bins, strategy)}"
    of: Compute = lambda weights: compute(binned, weights)  # noqa: E731
    return binned.seen.estimate(weighted_figure(name, of, _ece_ends(binned)), options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin(Record):
    """One bin of a reliability curve.

    Attributes:
        low: Lower edge, which only the first bin includes.
        high: Upper edge, which the bin includes.
        forecast: Mean forecast.
        rate: Observed rate of the forecast event.
        n: Number of forecasts in the bin.
    """

    low: float
    high: float
    forecast: float
    rate: Estimate
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityCurve(Record):
    """Observed rates and mean forecasts by bin.

    Attributes:
        bins: Non-empty bins, from the lowest forecasts to the highest.
        n: Number of observations.
        n_missing: Number of observations excluded because the truth or the probability is missing.
        method: Description of the probability and the bins.
        reason: Reason why there are no bins; None if there are bins.
    """

    bins: tuple[ReliabilityBin, ...]
    n: int
    n_missing: int
    method: str
    reason: Reason | None = None


def reliability_curve(
    truth: Iterable[Any],
    prob: Any,
    *,
    bins: int = 10,
    strategy: BinStrategy = "width",
    scale: Scale | None = None,
    **interval: Unpack[IntervalArguments],
) -> ReliabilityCurve:
    """Compute the observed rate and the mean forecast of each non-empty bin [1].

    A calibrated judge's curve is the diagonal. The probability and the bins are the same as in `ece`. Each
    rate has Wilson's interval, or a logit-t interval with clusters. If no observation is complete, there are
    no bins (`no_pairs`); a rate that is undefined within a bin has its own reason.

    Args:
        truth: Outcomes; see `brier`.
        prob: Probabilities; see `brier`.
        bins: Number of bins.
        strategy: `"width"` or `"mass"`; see `ece`.
        scale: Categories; see `brier`.
        **interval: See `IntervalArguments`.

    References:
        [1] A. H. Murphy, R. L. Winkler (1977), Reliability of subjective probability forecasts of
            precipitation and temperature, Applied Statistics 26(1), 41-47.
    """
    options = IntervalOptions(**interval)
    binned, kind = _stated_bins(read_forecasts(truth, prob, scale, options), bins, strategy)
    method = f"reliability of {kind}, {describe_bins(bins, strategy)}"
    n, n_missing = binned.seen.n, binned.seen.n_missing
    if not n:
        return ReliabilityCurve(bins=(), n=0, n_missing=n_missing, method=method, reason="no_pairs")
    _, forecasts, _ = binned.means(binned.ones)
    found = tuple(_bin(binned, place, float(forecasts[place]), options) for place in range(len(forecasts)))
    return ReliabilityCurve(bins=found, n=n, n_missing=n_missing, method=method)


def _bin(binned: BinnedForecasts, place: int, forecast: float, options: IntervalOptions) -> ReliabilityBin:
    inside = binned.place == place
    happened = binned.happened[inside]
    cluster = None if binned.seen.cluster is None else binned.seen.cluster[inside]
    found = rate("rate in the bin", happened, cluster, options)
    low, high = (float(edge) for edge in binned.edges[place])
    return ReliabilityBin(low=low, high=high, forecast=forecast, rate=found, n=len(happened))
