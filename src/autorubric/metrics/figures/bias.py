"""Bias of one rater against another: mean difference, paired tests, effect sizes, limits of agreement."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np
from scipy.special import ndtr

from autorubric.metrics.core.contingency import NumberPairs, number_pairs
from autorubric.metrics.core.estimate import RELATIVE_ZERO, Reason, TestStatistic
from autorubric.metrics.core.intervals import mean_ends, t_statistic
from autorubric.metrics.core.resampling import IntervalArguments, IntervalOptions, check_choice, chunks
from autorubric.metrics.core.result import Record
from autorubric.metrics.core.scales import Array

PMethod: TypeAlias = Literal["exact", "random flips", "normal"]

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
"""Alternative hypothesis: the differences are not centred on 0, are above 0, or are below 0."""

FEWEST_FLIPS = 10_000

_EXACT_RANKS = 50
_EXACT_TIED_RANKS = 13
_EXACT_FLIPS = 20
_MOST_SIZES = 5_000
_MOST_UNITS = 1_000
_MOST_STEPS = 10_000_000
_DECIMALS = 12


class PairedTest(NamedTuple):
    statistic: float
    p_value: float
    method: PMethod


def _scale_differences(differences: Array) -> Array:
    """Return the nonzero differences divided by the largest and rounded, so that equal ones compare equal."""
    greatest = float(np.abs(differences).max(initial=0.0))
    if greatest == 0.0:
        return np.zeros(0)
    scaled = np.round(differences / greatest, _DECIMALS)
    return np.asarray(scaled[scaled != 0])


def wilcoxon(differences: Array, alternative: Alternative = "two-sided") -> PairedTest | None:
    """Run Wilcoxon's signed-rank test without the differences of 0; None if all differences are 0.

    The p-value is exact for up to 50 differences, or up to 13 if there are ties or zeros. Otherwise it
    uses the normal approximation, corrected for ties but not for continuity.
    """
    kept = _scale_differences(differences)
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
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks.tolist():
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: len(chances) - rank]
        chances = (chances + moved) / 2
    return float(chances[: most + 1].sum())


def sign_flip(
    differences: Array, n_flips: int, rng: np.random.Generator, alternative: Alternative = "two-sided"
) -> PairedTest:
    """Run Fisher's permutation test that flips the signs of the differences at random.

    The p-value is exact over all 2ⁿ patterns if the differences are multiples of a common unit, such as
    counts of verdicts, or for up to 20 nonzero differences. Otherwise it is (1 + patterns as far) / (1 +
    patterns) over `n_flips` random patterns (Phipson and Smyth 2010) or, with more than 5,000 distinct
    sizes, `2 Φ(-|Σ d| / √Σ d²)`, one-sided `Φ(∓Σ d / √Σ d²)`.
    """
    kept = _scale_differences(differences)
    if not len(kept):
        return PairedTest(0.0, 1.0, "exact")
    distance = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    seen = float(distance(kept.sum()))
    # A sum that is equal in exact arithmetic must not fall short because of rounding.
    as_far = seen - 1e-9 * max(1.0, abs(seen))
    statistic, sides = float(differences.sum()), 2 if alternative == "two-sided" else 1
    whole = _in_whole_units(kept)
    if whole is not None:
        positive, negative = int(whole[whole > 0].sum()), int(-whole[whole < 0].sum())
        tail = {"two-sided": min(positive, negative), "greater": negative, "less": positive}[alternative]
        return PairedTest(statistic, min(1.0, sides * _exact_rank_p(np.abs(whole), tail)), "exact")
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
        p_value = float(sides * ndtr(-seen / math.sqrt(float((kept**2).sum()))))
        return PairedTest(statistic, p_value, "normal")
    beyond = 0
    for rows in chunks(n_flips, len(sizes)):
        beyond += int(np.count_nonzero(distance(_flip_signs(sizes, counts, rows, rng)) >= as_far))
    return PairedTest(statistic, (1 + beyond) / (1 + n_flips), "random flips")


def _in_whole_units(kept: Array) -> Array | None:
    """Return the differences as integers if they are multiples of a unit and few sums of them are possible.

    The largest of the differences, which are divided by it, is at most 1,000 units.
    """
    sizes = np.unique(np.abs(kept))
    if len(sizes) > _MOST_UNITS:
        return None
    units = np.arange(1, _MOST_UNITS + 1)
    fits = np.ones(len(units), dtype=bool)
    for size in sizes:
        fits &= np.abs(units * size - np.rint(units * size)) < 1e-8
    if not fits.any():
        return None
    whole: Array = np.rint(kept * units[np.argmax(fits)]).astype(np.int64)
    return whole if int(np.abs(whole).sum()) * len(whole) <= _MOST_STEPS else None


def _flip_signs(sizes: Array, counts: Array, rows: int, rng: np.random.Generator) -> Array:
    """Draw sums under random signs. For equal sizes, only the number of positive signs is drawn."""
    if counts.max() == 1:
        signs = rng.integers(0, 2, size=(rows, len(sizes)), dtype=np.int8)
        return np.asarray(2.0 * (signs @ sizes) - sizes.sum())
    positive = rng.binomial(counts, 0.5, size=(rows, len(sizes)))
    return np.asarray((2.0 * positive - counts) @ sizes)


_LIMIT = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceInterval(Record):
    """A confidence interval.

    Attributes:
        lower: Lower limit.
        upper: Upper limit.
        confidence: Confidence level, in (0, 1).
        method: Name of the method that computed the interval.
    """

    lower: float
    upper: float
    confidence: float
    method: str


def interval_between(
    low: float | None, high: float | None, confidence: float, method: str
) -> ConfidenceInterval | None:
    """Return the interval with these limits; None without limits."""
    if low is None or high is None:
        return None
    return ConfidenceInterval(lower=low, upper=high, confidence=confidence, method=method)


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasResult(Record):
    """Mean difference pred - truth, with tests, effect sizes and limits of agreement.

    Attributes:
        mean_bias: Mean difference; None if there are no pairs.
        std_bias: Standard deviation of the differences (denominator n - 1); None with fewer than two pairs.
        is_significant: Whether `p_value` is below 1 - confidence level; False if the test could not be run.
        p_value: p-value of the paired t test [1], computed on cluster sums if there are clusters. None if
            there are fewer than two pairs or clusters, or no variance (see `reason`).
        direction: Sign of the mean difference; `"none"` if it is 0 or undefined.
        effect_size: d_z = `mean_bias` / `std_bias` [2, eq. 6]; None if `std_bias` is 0 or None.
        ci: t interval of the mean difference; None if it was not requested or is undefined.
        n_samples: Number of pairs used.
        lower_limit: Lower limit of agreement [3], mean - 1.96 sd.
        upper_limit: Upper limit of agreement, mean + 1.96 sd. About 95% of differences lie between the two.
        n_missing: Number of pairs dropped because a value was missing.
        reason: Reason why `mean_bias` or `p_value` is None; None if both are defined.
        effect_size_name: Name of the effect size reported in `effect_size`.
        d_av: Mean difference / average standard deviation of truth and pred [2, eq. 10], which does not
            depend on their correlation; None if both standard deviations are 0 or undefined.
        wilcoxon_statistic: Smaller sum of signed ranks [4], or of positive ranks in a one-sided test. Each
            cluster contributes its mean difference. None if all differences are 0 or the test was not run.
        wilcoxon_p: p-value of Wilcoxon's test.
        wilcoxon_method: Method used to compute `wilcoxon_p`.
        permutation_p: p-value under random sign flips of the differences [5]; differences in a cluster are
            flipped together. 1 if all differences are 0; None if the test was not run.
        permutation_method: Method used to compute `permutation_p`.
        t_test: The paired t test with its statistic and degrees of freedom; None if `p_value` is None.
        alternative: Alternative hypothesis of the three tests: the mean bias is not 0, above 0 or below 0.

    References:
        [1] Student (1908), The probable error of a mean, Biometrika 6(1), 1-25.
        [2] D. Lakens (2013), Calculating and reporting effect sizes, Frontiers in Psychology 4, 863.
        [3] J. M. Bland, D. G. Altman (1986), Statistical methods for assessing agreement between two methods
            of clinical measurement, Lancet 327, 307-310.
        [4] F. Wilcoxon (1945), Individual comparisons by ranking methods, Biometrics Bulletin 1(6), 80-83.
        [5] R. A. Fisher (1935), The design of experiments, section 21.
    """

    mean_bias: float | None
    std_bias: float | None = None
    is_significant: bool = False
    p_value: float | None = None
    direction: Literal["positive", "negative", "none"] = "none"
    effect_size: float | None = None
    ci: ConfidenceInterval | None = None
    n_samples: int = 0
    lower_limit: float | None = None
    upper_limit: float | None = None
    n_missing: int = 0
    reason: Reason | None = None
    effect_size_name: Literal["d_z"] = "d_z"
    d_av: float | None = None
    wilcoxon_statistic: float | None = None
    wilcoxon_p: float | None = None
    wilcoxon_method: PMethod | None = None
    permutation_p: float | None = None
    permutation_method: PMethod | None = None
    t_test: TestStatistic | None = None
    alternative: Alternative = "two-sided"


def bias(
    truth: Iterable[Any],
    pred: Iterable[Any],
    *,
    alternative: Alternative = "two-sided",
    **interval: Unpack[IntervalArguments],
) -> BiasResult:
    """Compute the mean and standard deviation of pred - truth, limits of agreement, effect sizes and tests.

    The tests are:

    - the paired t test;
    - Wilcoxon's signed-rank test, exact for up to 50 differences (13 if any are 0 or tied in size);
    - a sign-flip permutation test, exact for up to 20 nonzero differences or multiples of a common unit, and
      otherwise based on `n_resamples` random flips from `rng` (at least 10,000).

    With clusters, all tests treat each cluster as one unit. If there are no pairs, the bias is undefined.

    Args:
        truth: Numbers; pairs with None or NaN are dropped.
        pred: Numbers to compare with `truth`, in the same order.
        alternative: `"greater"` (pred above truth) or `"less"` (pred below truth) makes all three tests
            one-sided. Choose the direction before you look at the data. The interval remains two-sided.
        **interval: See `IntervalArguments`. `ci=None` omits the interval; any other `ci` gives a t interval.

    Raises:
        ArgumentError: If an option is invalid or the lengths differ.
    """
    check_choice("alternative", alternative, Alternative)
    options = IntervalOptions(**interval)
    pairs = number_pairs(truth, pred, options.cluster)
    found = replace(bias_of(pairs, options), alternative=alternative)
    return replace(_one_sided(found, options), **_tests(pairs, alternative, options)) if pairs.n else found


def _one_sided(found: BiasResult, options: IntervalOptions) -> BiasResult:
    """Return the result with the p-value of the t test against its alternative."""
    if found.alternative == "two-sided" or found.p_value is None:
        return found
    agrees = found.direction == ("positive" if found.alternative == "greater" else "negative")
    p_value = found.p_value / 2 if agrees else 1 - found.p_value / 2
    significant = p_value < 1 - options.confidence_level
    t_test = found.t_test and replace(found.t_test, p_value=p_value)
    return replace(found, p_value=p_value, t_test=t_test, is_significant=significant)


def _tests(pairs: NumberPairs, alternative: Alternative, options: IntervalOptions) -> dict[str, Any]:
    """Return the fields of the two nonparametric tests."""
    sums = pairs.pred - pairs.truth
    means = sums
    if pairs.cluster is not None:
        sums = np.bincount(pairs.cluster, weights=sums)
        means = sums / np.bincount(pairs.cluster)
    flips = max(FEWEST_FLIPS, options.n_resamples)
    random = sign_flip(sums, flips, options.generator(), alternative)
    ranked = wilcoxon(means, alternative)
    return {
        "wilcoxon_statistic": ranked and ranked.statistic,
        "wilcoxon_p": ranked and ranked.p_value,
        "wilcoxon_method": ranked and ranked.method,
        "permutation_p": random.p_value,
        "permutation_method": random.method,
    }


def bias_of(pairs: NumberPairs, options: IntervalOptions) -> BiasResult:
    """Compute `bias` from pairs that have already been read, without the two nonparametric tests."""
    if not pairs.n:
        return BiasResult(mean_bias=None, n_missing=pairs.n_missing, reason="no_pairs")
    # Dividing by a power of two is exact; without it, squares of very large numbers would overflow.
    unit = 2.0 ** int(np.frexp(max(float(np.abs(side).max()) for side in (pairs.truth, pairs.pred)))[1])
    if not 2.0**-300 < unit < 2.0**300:
        scaled = replace(pairs, truth=pairs.truth / unit, pred=pairs.pred / unit)
        return _in_units(_bias_of(scaled, options), unit)
    return _bias_of(pairs, options)


def _in_units(found: BiasResult, unit: float) -> BiasResult:
    """Rescale the result to numbers that are `unit` times as large."""
    names = ("mean_bias", "std_bias", "lower_limit", "upper_limit")
    moved: dict[str, Any] = {
        name: None if (one := getattr(found, name)) is None else one * unit for name in names
    }
    ends = found.ci and replace(found.ci, lower=found.ci.lower * unit, upper=found.ci.upper * unit)
    return replace(found, **moved, ci=ends)


def _bias_of(pairs: NumberPairs, options: IntervalOptions) -> BiasResult:
    differences = pairs.pred - pairs.truth
    if np.ptp(differences) <= RELATIVE_ZERO * float(np.abs(differences).max()):
        # Rounding could give equal differences a slightly different mean and a nonzero spread.
        differences = np.full(pairs.n, differences[0])
    mean = float(differences[0]) if np.ptp(differences) == 0 else float(differences.mean())
    direction: Literal["positive", "negative", "none"] = (
        "positive" if mean > 0 else "negative" if mean < 0 else "none"
    )
    spread = None
    if pairs.n > 1:
        spread = float(differences.std(ddof=1)) if np.ptp(differences) else 0.0
    t_test, ends, reason = _paired_t(differences, mean, pairs, options.confidence_level)
    p_value = None if t_test is None else t_test.p_value
    return BiasResult(
        mean_bias=mean,
        std_bias=spread,
        is_significant=p_value is not None and p_value < 1 - options.confidence_level,
        p_value=p_value,
        direction=direction,
        effect_size=mean / spread if spread else None,
        ci=ends if options.ci is not None else None,
        n_samples=pairs.n,
        lower_limit=None if spread is None else mean - _LIMIT * spread,
        upper_limit=None if spread is None else mean + _LIMIT * spread,
        n_missing=pairs.n_missing,
        reason=reason,
        t_test=t_test,
        d_av=_d_av(mean, pairs),
    )


def _d_av(mean: float, pairs: NumberPairs) -> float | None:
    if pairs.n < 2:
        return None
    # Equal numbers have a spread of 0, which their rounded mean would spoil.
    spread = sum(float(side.std(ddof=1)) if np.ptp(side) else 0.0 for side in (pairs.truth, pairs.pred)) / 2
    return mean / spread if spread else None


def _paired_t(
    differences: Array, mean: float, pairs: NumberPairs, confidence_level: float
) -> tuple[TestStatistic | None, ConfidenceInterval | None, Reason | None]:
    members = np.arange(pairs.n) if pairs.cluster is None else pairs.cluster
    low, high, se = mean_ends(differences, members, confidence_level)
    if se is None:
        return None, None, "too_few_units"
    if low is None or high is None:
        return None, None, "no_variance"
    method = "t" if pairs.cluster is None else "t over clusters"
    ends = interval_between(low, high, confidence_level, method)
    return t_statistic(mean / se, int(members.max())), ends, None


systematic_bias = bias
"""The name of `bias` among the metrics of distributions."""
