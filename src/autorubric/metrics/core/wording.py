"""Sentences that rank, name or compare, which are decided by an interval and never by a point estimate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, TypeAlias

from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.result import describe_estimate

Side: TypeAlias = Literal["above", "below", "not shown"]
"""Side of a reference on which a whole interval lies; `not shown` if it contains the reference."""


def side_of(found: Estimate, reference: float = 0.0) -> Side:
    """Return the side of `reference` on which the whole interval lies; without an interval, `not shown`."""
    if found.value is None or found.low is None or found.high is None:
        return "not shown"
    if found.low > reference:
        return "above"
    return "below" if found.high < reference else "not shown"


def compare_in_words(
    found: Estimate,
    *,
    above: str,
    otherwise: str,
    below: str = "",
    reference: float = 0.0,
    quantity: str = "difference",
) -> str:
    """Return the words that an interval supports, with the estimate, its interval and n in parentheses.

    All sentences of results that rank, name or compare raters or criteria get their words from this function.

    Args:
        found: Estimate that is compared with `reference`.
        above: Words if the whole interval is above the reference.
        otherwise: Words if the interval contains the reference or does not exist.
        below: Words if the whole interval is below the reference; not needed if that is impossible.
        reference: Value with which the interval is compared.
        quantity: Name of the estimate in the parentheses.
    """
    words = {"above": above, "below": below, "not shown": otherwise}[side_of(found, reference)]
    return f"{words} ({quantity} {describe_estimate(found)}, n = {found.n})"


def difference_of(first: Estimate, second: Estimate) -> Estimate:
    """Return first minus second with the interval that follows from both intervals.

    Its limits are d - √((a - l_a)² + (u_b - b)²) and d + √((u_a - a)² + (b - l_b)²) (Zou and Donner 2008,
    Statistics in Medicine 27, 1693-1702), which is too wide for estimates that are positively correlated, as
    those of raters on the same items are. Comparing the best with the next best needs no adjustment for the
    number of candidates (Hung and Fithian 2019, Annals of Statistics 47, 758-782).
    """
    a, b, n = first.value, second.value, min(first.n, second.n)
    if a is None or b is None:
        return Estimate.undefined("no_pairs", n=n)
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(a - b, n=n, reason="no_interval")
    low = a - b - math.hypot(a - first.low, second.high - b)
    return Estimate(a - b, low, a - b + math.hypot(first.high - a, b - second.low), n=n)


def answered_in_words(n_answered: int, n: int, units: str, who: str = "it") -> str:
    """Return ` on the 70% of items it answered` for 7 of 10; empty if all were answered.

    Sentences about a judge that abstained have this condition, because it may abstain where it would err.
    """
    if not n_answered < n:
        return ""
    share = min(n_answered / n, 0.999)
    return f" on the {100 * share:.{0 if share < 0.995 else 1}f}% of {units} {who} answered"


def widen(found: Estimate, worst: Estimate, best: Estimate) -> Estimate:
    """Return an estimate whose interval contains those of the worst and the best case of abstentions."""
    if found.low is None or found.high is None or worst.low is None or best.high is None:
        return replace(found, low=None, high=None, reason="no_interval")
    return replace(found, low=min(found.low, worst.low), high=max(found.high, best.high))
