"""P-value adjustment for multiple tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._resampling import Array

Adjustment: TypeAlias = Literal["holm", "bh", "by", "bonferroni"]


def adjust_pvalues(p: Iterable[float | None], method: Adjustment = "holm") -> list[float | None]:
    """Adjust p-values for the number of tests, keeping their order; None stays None and is not counted.

    The m p-values are sorted in increasing order, p_(1) ≤ … ≤ p_(m), and adjusted as follows:

    - `"holm"`: max over j ≤ i of (m - j + 1) p_(j) [1]; reporting those below α keeps the probability of any
      false finding at α or less;
    - `"bh"`: min over j ≥ i of m p_(j) / j [2]; reporting those below q keeps the expected share of false
      findings at q or less, for independent or positively dependent tests;
    - `"by"`: the `"bh"` value times 1 + 1/2 + … + 1/m [3], with the same guarantee under any dependence;
    - `"bonferroni"`: m p [4], with the same guarantee as `"holm"`, which never gives larger values.

    Adjusted values are capped at 1 and are never below the p-values.

    Args:
        p: P-values in [0, 1]; None and NaN mark tests that could not be run.
        method: Method of adjustment.

    Raises:
        ArgumentError: If a p-value is outside [0, 1], or the method is unknown.

    References:
        [1] S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
            Statistics 6(2), 65-70.
        [2] Y. Benjamini, Y. Hochberg (1995), Controlling the false discovery rate, Journal of the Royal
            Statistical Society B 57(1), 289-300.
        [3] Y. Benjamini, D. Yekutieli (2001), The control of the false discovery rate in multiple testing
            under dependency, Annals of Statistics 29(4), 1165-1188.
        [4] O. J. Dunn (1961), Multiple comparisons among means, JASA 56(293), 52-64.
    """
    if method not in get_args(Adjustment):
        raise ArgumentError(f"method must be one of {list(get_args(Adjustment))}; got {method!r}")
    given = numeric_column(p, "p")
    there = ~np.isnan(given)
    values = given[there]
    if np.any((values < 0) | (values > 1)):
        raise ArgumentError(f"p must be in [0, 1]; got {float(values[(values < 0) | (values > 1)][0])!r}")
    adjusted = np.full(len(given), np.nan)
    order = np.argsort(values, kind="stable")
    adjusted[np.flatnonzero(there)[order]] = _adjusted(values[order], method)
    return [None if np.isnan(one) else float(one) for one in adjusted]


def _adjusted(ascending: Array, method: Adjustment) -> Array:
    m = len(ascending)
    if method == "bonferroni":
        return np.asarray(np.minimum(m * ascending, 1.0))
    rank = np.arange(1, m + 1)
    if method == "holm":
        return np.minimum(np.maximum.accumulate((m - rank + 1) * ascending), 1.0)
    factor = float((1.0 / rank).sum()) if method == "by" else 1.0
    # In this order of operations, rounding never makes the last value less than p.
    scaled = ascending * (factor * (m / rank))
    return np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
