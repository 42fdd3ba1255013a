"""Pass rates corrected for a judge's estimated sensitivity and specificity.

The columns of a unit's row are, in this order: number of labelled items that pass, number of those that the
judge passes, number of labelled items that fail, number of those that the judge fails, number of items under
test, number of those that the judge passes.
"""

from __future__ import annotations

import math

import numpy as np

from autorubric.metrics._correction._strata import Strata, strata_of
from autorubric.metrics._intervals import Ends, normal_quantile, t_quantile
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes
from autorubric.metrics._shares import divide

_ADDED = 2.0


def units_of(
    truth: Array, judged: Array, tested: Array, label_cluster: Codes | None, test_cluster: Codes | None
) -> Strata:
    """Build units from labelled pairs and test verdicts, which are 0 or 1."""
    labelled = np.column_stack([truth, truth * judged, 1 - truth, (1 - truth) * (1 - judged)])
    tests = np.column_stack([np.ones(len(tested)), tested])
    return strata_of(labelled, tests, label_cluster, test_cluster)


def rate_of(sums: Array) -> Array:
    """Compute (p + sp - 1) / (se + sp - 1), clipped to [0, 1].

    The result is NaN if one class has no label, or if se + sp <= 1.
    """
    passed, hits, failed, rejections, n, positive = (sums[..., j] for j in range(6))
    p, se, sp = divide(positive, n), divide(hits, passed), divide(rejections, failed)
    room = se + sp - 1
    with np.errstate(invalid="ignore"):
        informative = np.where(room > 1e-12, room, 0.0)
    return np.clip(divide(p + sp - 1, informative), 0.0, 1.0)


def analytic_ends(units: Strata, confidence_level: float) -> Ends:
    """Return the interval of Lang and Reiczigel (2014, eq. 4), as used by Lee et al. (2025).

    With one cluster, there is no interval. With several, each proportion uses its effective number of items,
    the covariances of the proportions are added to the variance, and a t quantile replaces the normal one,
    with the smaller number of clusters minus 1 as degrees of freedom.
    """
    df = units.df
    if df is not None and df < 1:
        return Ends(None, None, None)
    q = normal_quantile(confidence_level) if df is None else t_quantile(confidence_level, df)
    sizes, shares, between = _shares(units)
    (n_p, n_se, n_sp), (p, se, sp) = sizes, shares
    # Agresti–Coull for the test items; one success and one failure more for each calibration share.
    n_p, p = n_p + q * q, (n_p * p + q * q / 2) / (n_p + q * q)
    se, sp = ((size * share + 1) / (size + _ADDED) for size, share in ((n_se, se), (n_sp, sp)))
    n_se, n_sp = n_se + _ADDED, n_sp + _ADDED
    room = se + sp - 1
    if room <= 0:
        return Ends(None, None, None)
    rate = min(max((p + sp - 1) / room, 0.0), 1.0)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    slopes = np.array([1.0, -rate, 1 - rate])
    variance = p * (1 - p) / n_p + rate**2 * of_se + (1 - rate) ** 2 * of_sp
    variance += float(slopes @ between @ slopes)
    se_rate = math.sqrt(max(variance, 0.0)) / room
    centre = rate + 2 * q * q * (rate * of_se - (1 - rate) * of_sp)
    return Ends(max(0.0, centre - q * se_rate), min(1.0, centre + q * se_rate), se_rate)


def _shares(units: Strata) -> tuple[list[float], list[float], Array]:
    """Return sizes, values and covariances of the raw pass rate, sensitivity and specificity.

    The sizes are effective numbers of items.
    """
    total, square = units.total(), units.square()
    places = ((4, 5), (0, 1), (2, 3))
    shares = [float(total[hit] / total[of]) for of, hit in places]
    if not units.clustered:
        return [float(total[of]) for of, _ in places], shares, np.zeros((3, 3))
    effects = np.zeros((3, len(total)))
    factors = [_factor(units.n_tested), *[_factor(units.n_labelled)] * 2]
    for row, ((of, hit), share, factor) in enumerate(zip(places, shares, factors, strict=True)):
        effects[row, [hit, of]] = np.array([1.0, -share]) * factor / total[of]
    covariance = effects @ square @ effects.T
    clustered = (units.clustered_tests, units.clustered_labels, units.clustered_labels)
    sizes = []
    for (of, _), share, variance, grouped in zip(
        places, shares, np.diagonal(covariance), clustered, strict=True
    ):
        holding = sum(int(part.counts[part.rows[:, of] > 0].sum()) for part in units.parts)
        size = float(total[of])
        if grouped:
            spread = share * (1 - share)
            size = min(size, spread / float(variance)) if spread > 0 and variance > 0 else float(holding)
        sizes.append(size)
    return sizes, shares, covariance - np.diag(np.diagonal(covariance))


def _factor(n_units: int) -> float:
    return math.sqrt(n_units / (n_units - 1)) if n_units > 1 else 1.0
