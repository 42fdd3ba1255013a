"""Sentences that rank, name or compare, which are decided by an interval and never by a point estimate."""

from __future__ import annotations

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
    below: str,
    otherwise: str,
    reference: float = 0.0,
    quantity: str = "difference",
) -> str:
    """Return the words that an interval supports, with the estimate, its interval and n in parentheses.

    All sentences of results that rank, name or compare raters or criteria get their words from this function.

    Args:
        found: Estimate that is compared with `reference`.
        above: Words if the whole interval is above the reference.
        below: Words if the whole interval is below the reference.
        otherwise: Words if the interval contains the reference or does not exist.
        reference: Value with which the interval is compared.
        quantity: Name of the estimate in the parentheses.
    """
    words = {"above": above, "below": below, "not shown": otherwise}[side_of(found, reference)]
    return f"{words} ({quantity} {describe_estimate(found)}, n = {found.n})"


def answered_in_words(n_answered: int, n: int, units: str, who: str = "it") -> str:
    """Return ` on the 70% of items it answered` for 7 of 10; empty if all were answered.

    Sentences about a judge that abstained have this condition, because it may abstain where it would err.
    """
    if not n_answered < n:
        return ""
    share = min(n_answered / n, 0.999)
    return f" on the {share:.{0 if share < 0.995 else 1}%} of {units} {who} answered"
