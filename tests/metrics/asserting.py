"""What tests of figures ask again and again."""

from __future__ import annotations

from autorubric.metrics import ConfidenceInterval, Estimate


def number(found: float | None) -> float:
    """The number that must be there."""
    assert found is not None
    return found


def width(found: Estimate) -> float:
    """Length of the interval that must be there."""
    return number(found.high) - number(found.low)


def brackets(found: Estimate) -> bool:
    """Whether the value lies strictly inside its interval."""
    return number(found.low) < number(found.value) < number(found.high)


def holds(interval: ConfidenceInterval | None, value: float | None) -> bool:
    """Whether an interval that must be there holds a value that must be there."""
    assert interval is not None
    return interval.lower < number(value) < interval.upper
