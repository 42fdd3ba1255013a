"""Sample sizes for studies that estimate an agreement or a proportion, or compare two judges.

Each function returns an `Estimate` whose value and `n` are both the required number of items. Its `method`
names the formula and states the number before rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.special import bdtr, gammaln, ndtri, xlogy

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.scales import Array
from autorubric.metrics.figures.kappa import kappa_of

KappaMethod: TypeAlias = Literal["interval", "donner-eliasziw", "cantor"]
PairedMethod: TypeAlias = Literal["exact", "asymptotic"]

_MOST_EXACT = 1_000_000
"""Largest number of items for which exact power is computed. Above it, the closed form is close enough."""


def kappa(
    k0: float,
    k1: float,
    *,
    prevalence: float = 0.5,
    alpha: float = 0.05,
    power: float = 0.8,
    method: KappaMethod = "interval",
) -> Estimate:
    """Compute the number of items needed to distinguish a kappa of `k1` from `k0` for two binary raters.

    - `"interval"`: smallest number of items at which the two-sided interval of kappa excludes `k0` on the
      side of `k1` with an assurance of `power`, in simulated tables of counts. The interval is Fisher's z
      with the variance of Fleiss, Cohen and Everitt [3], and 1/2 added to each cell.
    - `"donner-eliasziw"`: two-sided goodness-of-fit test on the numbers of items that both raters, one rater
      or neither label positive [1]: n = (z_{1-α/2} + z_power)² / Σ_j (P_j(k1) - P_j(k0))² / P_j(k0), with
      P(κ) = (π² + κ π(1-π), 2π(1-π)(1-κ), (1-π)² + κ π(1-π)). The result is rounded to the nearest integer,
      as in the published tables, so it can be too small by a fraction of an item.
    - `"cantor"`: one-sided test for two raters with the same prevalence, with the large-sample variances
      Q(κ) of Fleiss, Cohen and Everitt [2]: n = ((z_{1-α} √Q(k0) + z_power √Q(k1)) / (k1 - k0))², rounded up.

    Both closed forms use variances in large samples. At low prevalence, the power with their numbers is
    below the requested one. To distinguish .6 from .4 at a prevalence of .3, α = .05 and power .8, they need
    190 and 141 items, because one-sided tests need fewer items.

    Args:
        k0: Kappa under the null hypothesis.
        k1: Kappa under the alternative hypothesis.
        prevalence: Proportion π of positive labels, in (0, 1).
        alpha: Significance level of the test.
        power: Probability of detecting a kappa of `k1`.
        method: Formula to use. It also determines whether the test is one-sided or two-sided.

    Raises:
        ArgumentError: If an argument is out of range, the kappas are equal, or a kappa is impossible at this
            prevalence.

    References:
        [1] A. Donner, M. Eliasziw (1992), A goodness-of-fit approach to inference procedures for the kappa
            statistic, Statistics in Medicine 11, 1511-1519.
        [2] A. B. Cantor (1996), Sample-size calculations for Cohen's kappa, Psychological Methods 1(2),
            150-153.
        [3] J. L. Fleiss, J. Cohen, B. S. Everitt (1969), Large sample standard errors of kappa and weighted
            kappa, Psychological Bulletin 72(5), 323-327.
    """
    if method not in get_args(KappaMethod):
        raise ArgumentError(f"method must be one of {list(get_args(KappaMethod))}; got {method!r}")
    _inside(prevalence=prevalence, alpha=alpha, power=power)
    if k0 == k1:
        raise ArgumentError(f"k0 and k1 must differ; both are {k0!r}")
    null, other = _cells(k0, prevalence, "k0"), _cells(k1, prevalence, "k1")
    if method == "interval":
        cells = other if prevalence <= 0.5 else other[::-1]
        n = _least_items(lambda n: _kappa_assurance(n, cells, (k0, k1), alpha) >= power)
        return Estimate(float(n), n=n, method=f"interval of kappa, two-sided {alpha:g}, assurance {power:g}")
    if method == "cantor":
        spread = _normal(1 - alpha) * _cantor_sd(null, prevalence) + _normal(power) * _cantor_sd(
            other, prevalence
        )
        return _items((spread / (k1 - k0)) ** 2, f"Cantor 1996, one-sided {alpha:g}, power {power:g}")
    effect = float(((other - null) ** 2 / null).sum())
    exact = (_normal(1 - alpha / 2) + _normal(power)) ** 2 / effect
    words = f"Donner and Eliasziw 1992, two-sided {alpha:g}, power {power:g}"
    return _items(exact, words, nearest=True)


_SIMULATED = 4000


def _kappa_assurance(n: int, cells: Array, kappas: tuple[float, float], alpha: float) -> float:
    """Return how often the interval of kappa excludes the first of `kappas`, on the side of the second."""
    shares = [cells[0], cells[1] / 2, cells[1] / 2, cells[2]]
    tables = np.random.default_rng(0).multinomial(n, shares, size=_SIMULATED).reshape(-1, 2, 2) + 0.5
    value, step = kappa_of(tables), 1e-20
    # Kappa does not change if all counts grow alike, so its variance has no other term.
    variance = sum(
        (tables * cell).sum((-1, -2)) * (kappa_of(tables + 1j * step * cell).imag / step) ** 2
        for cell in np.eye(4).reshape(4, 2, 2)
    )
    apart = (np.arctanh(value) - math.atanh(kappas[0])) * math.copysign(1, kappas[1] - kappas[0])
    return float(np.mean(apart > _normal(1 - alpha / 2) * np.sqrt(variance) / (1 - value**2)))


def _least_items(suffices: Callable[[int], bool], high: int = 1, growth: float = 1.0) -> int:
    """Return a number of items that suffices, of which one less does not; the search starts at `high`."""
    low = 0
    while not suffices(high):
        low, high = high, high + max(1, int(growth * high))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def proportion(
    p: float, half_width: float, *, confidence_level: float = 0.95, assurance: float | None = 0.8
) -> Estimate:
    """Compute the number of items needed to estimate a proportion near `p` to within ± `half_width`.

    The width of an interval depends on the observed proportion. With n items, the normal and the score
    interval have at most this half width with probability `assurance`. With None, n = z² p (1 - p) / h² [1],
    rounded up, at which the interval is too wide in about half of all studies. Clustered labels require more
    items.

    Args:
        p: Expected proportion, in (0, 1).
        half_width: Half the width of the interval, in (0, 1).
        confidence_level: Confidence level of the interval.
        assurance: Probability that the interval is narrow enough, in (0, 1), or None.

    Raises:
        ArgumentError: If an argument is out of range.

    References:
        [1] W. G. Cochran (1977), Sampling techniques, 3rd ed., eq. 4.1.
    """
    _inside(p=p, half_width=half_width, confidence_level=confidence_level)
    z = _normal(0.5 + confidence_level / 2)
    if assurance is None:
        exact = (z / half_width) ** 2 * p * (1 - p)
        return _items(exact, f"normal interval for a proportion, {confidence_level:.0%}")
    _inside(assurance=assurance)

    def suffices(n: int) -> bool:
        score = (half_width * (n + z * z) / z) ** 2 / n - z * z / (4 * n)
        room = 0.25 - min(n * (half_width / z) ** 2, score)
        if room <= 0:
            return True
        # The interval is narrow enough if at most this many items pass, or fail.
        most = math.floor(n * (0.5 - math.sqrt(room)) + 1e-9)
        return room < 0.25 and float(bdtr(most, n, p) + bdtr(most, n, 1 - p)) >= assurance

    n = _least_items(suffices)
    words = f"half width of the interval for a proportion, {confidence_level:.0%}, assurance {assurance:g}"
    return Estimate(float(n), n=n, method=words)


def paired(
    p10: float, p01: float, *, alpha: float = 0.05, power: float = 0.8, method: PairedMethod = "exact"
) -> Estimate:
    """Compute the number of items needed to compare two judges with McNemar's two-sided test.

    With ψ = p10 + p01 and δ = p10 - p01:

    - `"exact"` applies to the exact test, `compare_judges(method="mcnemar")`. The power at n items is the
      mean, over the number of discordant items D ~ Bin(n, ψ), of the probability that Bin(D, p10/ψ) is in the
      rejection region of the binomial test at 1/2 [2]. Because the power is not monotone in n, the result is
      the smallest n at and above which the power never falls below the requested power.
    - `"asymptotic"` applies to the test without continuity correction, `method="mcnemar-asymptotic"` [1]:
      n = (z_{1-α/2} √ψ + z_power √(ψ - δ²))² / δ², rounded up. The exact test needs more items.

    Above a million items, `"exact"` also uses this closed form, and the result's `method` states so.

    Args:
        p10: Proportion of items that only the first judge gets right.
        p01: Proportion of items that only the second judge gets right.
        alpha: Significance level of the test.
        power: Probability of detecting the difference.
        method: Variant of McNemar's test that the comparison will use.

    Raises:
        ArgumentError: If an argument is out of range, or the proportions are equal.

    References:
        [1] R. J. Connor (1987), Sample size for testing differences in proportions for the paired-sample
            design, Biometrics 43(1), 207-211.
        [2] S. W. Duffy (1984), Asymptotic and exact power for the McNemar test and its analogue with R
            controls per case, Biometrics 40(4), 1005-1015.
    """
    if method not in get_args(PairedMethod):
        raise ArgumentError(f"method must be one of {list(get_args(PairedMethod))}; got {method!r}")
    _inside(alpha=alpha, power=power)
    if not (p10 >= 0 and p01 >= 0 and p10 + p01 <= 1):
        raise ArgumentError(f"p10 and p01 must be non-negative and sum to at most 1; got {p10!r} and {p01!r}")
    if p10 == p01:
        raise ArgumentError(f"p10 and p01 must differ, or there is no difference to detect; both are {p10!r}")
    either, apart = p10 + p01, p10 - p01
    spread = _normal(1 - alpha / 2) * math.sqrt(either) + _normal(power) * math.sqrt(either - apart * apart)
    formula = (spread / apart) ** 2
    if method == "exact" and formula <= _MOST_EXACT:
        n = _exact_items(max(1, math.ceil(formula)), (p10, p01), alpha, power)
        reached = _exact_power(n, (p10, p01), alpha)
        words = f"exact McNemar, two-sided {alpha:g}, power {power:g}; {reached:.4f} achieved"
        return Estimate(float(n), n=n, method=words)
    return _items(formula, f"McNemar, Connor 1987, two-sided {alpha:g}, power {power:g}")


def _exact_items(start: int, shares: tuple[float, float], alpha: float, power: float) -> int:
    """Return the smallest number of items at and above which the exact test has the requested power.

    The power is a sawtooth function of n: after each rise, it drops for a few values of n. Bisection finds n
    to within one tooth, and every value near it is then checked.
    """

    def suffices(n: int) -> bool:
        return _exact_power(n, shares, alpha) >= power

    last = high = _least_items(suffices, start, 0.125)
    # A tooth spans one more discordant item, which takes 1 / ψ items. Two teeth are checked.
    tooth = math.ceil(2 / sum(shares)) + 8
    while last > 0 and last > high - tooth and suffices(last - 1):
        last -= 1
    at, held = last, 0
    while held <= tooth:
        held = held + 1 if suffices(at) else 0
        at += 1
    return at - held


def _exact_power(n: int, shares: tuple[float, float], alpha: float) -> float:
    """Compute the power of the exact McNemar test on `n` items."""
    either = min(1.0, sum(shares))
    share = shares[0] / sum(shares)
    middle, spread = n * either, math.sqrt(n * either * (1 - either))
    # Ten standard deviations contain all but 1e-15 of the distribution of discordant items.
    low, high = max(0, math.floor(middle - 10 * spread - 10)), min(n, math.ceil(middle + 10 * spread + 10))
    discordant = np.arange(low, high + 1)
    ways = gammaln(n + 1) - gammaln(discordant + 1) - gammaln(n - discordant + 1)
    chances = np.exp(ways + xlogy(discordant, either) + xlogy(n - discordant, 1 - either))
    critical = _critical_values(discordant, alpha)
    kept = critical >= 0
    few, most = np.where(kept, critical, 0), np.where(kept, discordant, 1)
    found = bdtr(few, most, share) + bdtr(few, most, 1 - share)
    return float((chances * np.where(kept, found, 0.0)).sum())


def _critical_values(discordant: Array, alpha: float) -> Array:
    """Return the largest count of the rarer outcome at which the exact test rejects; -1 if it never does."""
    low, high = np.full(len(discordant), -1.0), np.ceil(discordant / 2)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        open_ = high - low > 1
        rejects = 2 * bdtr(np.maximum(middle, 0), np.maximum(discordant, 1), 0.5) < alpha
        low = np.where(open_ & rejects, middle, low)
        high = np.where(open_ & ~rejects, middle, high)
    return low


def _normal(probability: float) -> float:
    return float(ndtri(probability))


def _inside(**shares: float) -> None:
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise ArgumentError(f"{name} must be a number between 0 and 1, exclusive; got {share!r}")


def _items(exact: float, words: str, *, nearest: bool = False) -> Estimate:
    # A number that is an integer except for rounding error is not rounded up.
    n = max(1, round(exact) if nearest else math.ceil(exact - 1e-9))
    return Estimate(float(n), n=n, method=f"{words}; {exact:.2f} before rounding")


def _cells(value: float, prevalence: float, name: str) -> Array:
    """Compute the proportions of items labelled positive by both raters, by one and by neither."""
    variance = prevalence * (1 - prevalence)
    cells = np.array(
        [
            prevalence**2 + value * variance,
            2 * variance * (1 - value),
            (1 - prevalence) ** 2 + value * variance,
        ]
    )
    if not (-1 <= value < 1 and np.all(cells > 0)):
        lowest = -min(prevalence / (1 - prevalence), (1 - prevalence) / prevalence)
        raise ArgumentError(
            f"at a prevalence of {prevalence:g}, {name} must be between {lowest:.3g} and 1; got {value!r}"
        )
    return cells


def _cantor_sd(cells: Array, prevalence: float) -> float:
    """Compute √Q: √n times the standard deviation of kappa for equal margins (Fleiss et al. 1969)."""
    observed = float(cells[0] + cells[2])
    margins = np.array([prevalence, 1 - prevalence])
    expected = float((margins**2).sum())
    agreeing = float((cells[[0, 2]] * ((1 - expected) - 2 * margins * (1 - observed)) ** 2).sum())
    # Off the diagonal, the margins of the two raters sum to 1.
    split = float(cells[1]) * (1 - observed) ** 2
    rest = (observed * expected - 2 * expected + observed) ** 2
    return math.sqrt(agreeing + split - rest) / (1 - expected) ** 2
