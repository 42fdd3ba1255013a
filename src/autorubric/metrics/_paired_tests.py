"""Tests of paired differences: Wilcoxon's signed-rank test and the sign-flip permutation test."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr

from autorubric.metrics._resampling import Array

PMethod: TypeAlias = Literal["exact", "random flips", "normal"]

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
"""Alternative hypothesis: the differences are not centred on 0, are above 0, or are below 0."""

FEWEST_FLIPS = 10_000

_EXACT_RANKS = 50
_EXACT_TIED_RANKS = 13
_EXACT_FLIPS = 20
_MOST_SIZES = 5_000
_CHUNK_CELLS = 4_000_000
_DECIMALS = 12


class PairedTest(NamedTuple):
    """Result of a paired test: statistic, p-value, and the method that computed the p-value."""

    statistic: float
    p_value: float
    method: PMethod


def _levelled(differences: Array) -> Array:
    """Return the nonzero differences divided by the largest and rounded, so that equal ones compare equal."""
    greatest = float(np.abs(differences).max(initial=0.0))
    if greatest == 0.0:
        return np.zeros(0)
    scaled = np.round(differences / greatest, _DECIMALS)
    return np.asarray(scaled[scaled != 0])


def wilcoxon(differences: Array, alternative: Alternative = "two-sided") -> PairedTest | None:
    """Run Wilcoxon's signed-rank test [1]; the result is None if all differences are 0.

    The null hypothesis is that the differences are symmetric about 0. Differences of 0 are dropped, and tied
    ones share midranks. The statistic is the smaller sum of ranks, or the sum of positive ranks in a
    one-sided test. The p-value is exact for up to 50 differences, or up to 13 if there are ties or zeros.
    Otherwise it uses the normal approximation, corrected for ties but not for continuity.

    References:
        [1] F. Wilcoxon (1945), Individual comparisons by ranking methods, Biometrics Bulletin 1(6), 80-83.
    """
    kept = _levelled(differences)
    n = len(kept)
    if not n:
        return None
    _, where, counts = np.unique(np.abs(kept), return_inverse=True, return_counts=True)
    # Midranks are doubled so that they are integers.
    ranks = (2 * np.cumsum(counts) - counts + 1)[where.reshape(-1)]
    total = int(ranks.sum())
    positive, negative = int(ranks[kept > 0].sum()), int(ranks[kept < 0].sum())
    # Use the sum that is small if the alternative is true.
    tail = {"two-sided": min(positive, negative), "greater": negative, "less": positive}[alternative]
    statistic = (tail if alternative == "two-sided" else positive) / 2
    sides = 2 if alternative == "two-sided" else 1
    tied = len(counts) < n or n < len(differences)
    if len(differences) <= (_EXACT_TIED_RANKS if tied else _EXACT_RANKS):
        return PairedTest(statistic, min(1.0, sides * _exact_rank_p(ranks, tail)), "exact")
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((counts**3 - counts).sum()) / 48
    z = (tail / 2 - total / 4) / math.sqrt(variance)
    return PairedTest(statistic, float(min(1.0, sides * ndtr(z))), "normal")


def _exact_rank_p(ranks: Array, most: int) -> float:
    """Compute the proportion of all 2ⁿ sign patterns whose sum of positive ranks is at most `most`."""
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in ranks.tolist():
        moved = np.zeros_like(ways)
        moved[rank:] = ways[: len(ways) - rank]
        ways = ways + moved
    return float(ways[: most + 1].sum() / ways.sum())


def sign_flip(
    differences: Array, n_flips: int, rng: np.random.Generator, alternative: Alternative = "two-sided"
) -> PairedTest:
    """Run a permutation test that flips the signs of the differences at random [1].

    The p-value is the proportion of sign patterns whose sum is at least as far from 0 as the observed sum, in
    a one-sided test at least as far in the direction of the alternative. It is exact over all 2ⁿ patterns for
    up to 20 nonzero differences. Otherwise it is (1 + patterns as far) / (1 + patterns) over `n_flips` random
    patterns [2] or, with more than 5,000 distinct sizes, `2 Φ(-|Σ d| / √Σ d²)`, one-sided `Φ(∓Σ d / √Σ d²)`.

    References:
        [1] R. A. Fisher (1935), The design of experiments, section 21.
        [2] B. Phipson, G. K. Smyth (2010), Permutation p-values should never be zero, Statistical
            Applications in Genetics and Molecular Biology 9(1), 39.
    """
    kept = _levelled(differences)
    if not len(kept):
        return PairedTest(0.0, 1.0, "exact")
    distance = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    seen = float(distance(kept.sum()))
    # A sum that is equal in exact arithmetic must not fall short because of rounding.
    as_far = seen - 1e-9 * max(1.0, abs(seen))
    statistic = float(differences.sum())
    if len(kept) <= _EXACT_FLIPS:
        sums = kept[:1]
        for one in kept[1:]:
            sums = np.concatenate([sums + one, sums - one])
        if alternative != "two-sided":
            # In a two-sided test the first sign can stay fixed, because all sums change sign with it.
            sums = np.concatenate([sums, -sums])
        return PairedTest(statistic, float(np.mean(distance(sums) >= as_far)), "exact")
    sizes, counts = np.unique(np.abs(kept), return_counts=True)
    if len(sizes) > _MOST_SIZES:
        sides = 2 if alternative == "two-sided" else 1
        p_value = float(sides * ndtr(-seen / math.sqrt(float((kept**2).sum()))))
        return PairedTest(statistic, p_value, "normal")
    beyond = 0
    step = max(1, _CHUNK_CELLS // len(sizes))
    for start in range(0, n_flips, step):
        rows = min(step, n_flips - start)
        beyond += int(np.count_nonzero(distance(_flipped(sizes, counts, rows, rng)) >= as_far))
    return PairedTest(statistic, (1 + beyond) / (1 + n_flips), "random flips")


def _flipped(sizes: Array, counts: Array, rows: int, rng: np.random.Generator) -> Array:
    """Draw sums under random signs. For equal sizes, only the number of positive signs is drawn."""
    if counts.max() == 1:
        signs = rng.integers(0, 2, size=(rows, len(sizes)), dtype=np.int8)
        return np.asarray(2.0 * (signs @ sizes) - sizes.sum())
    positive = rng.binomial(counts, 0.5, size=(rows, len(sizes)))
    return np.asarray((2.0 * positive - counts) @ sizes)
