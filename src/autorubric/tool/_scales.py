"""Conversion of values on [0, 1] to a scale and to labels."""

from __future__ import annotations

import math
from typing import Final, assert_never

from autorubric.tool._request import ScoringScale
from autorubric.tool._response import Label, Score

PASSES_FROM: Final = 0.7

_LABELS: Final[tuple[tuple[float, Label], ...]] = ((0.9, "Excellent"), (0.7, "Good"), (0.5, "Fair"))
_LETTERS: Final = ((0.9, "A"), (0.8, "B"), (0.7, "C"), (0.6, "D"))
_BOUNDS: Final = frozenset({PASSES_FROM, *(least for least, _ in (*_LABELS, *_LETTERS))})
_DIGITS: Final = 3
"""Number of decimals to which values on [0, 1] are reported."""
_NOISE: Final = 9
"""Number of significant decimals of values on [0, 1], because rounding errors may turn 0.7 into 0.6999…."""


def shown(value: float | None, scale: ScoringScale) -> Score:
    """Convert a value on [0, 1] to a scale; None if there is no value."""
    if value is None:
        return None
    value = round(value, _NOISE)
    match scale:
        case "0-10":
            return _plain(_told(value) * 10)
        case "0-100":
            return _plain(_told(value) * 100)
        case "letter":
            return next((letter for least, letter in _LETTERS if value >= least), "F")
        case "pass-fail":
            return "pass" if value >= PASSES_FROM else "fail"
        case _:
            assert_never(scale)


def label_of(value: float | None) -> Label | None:
    """Return the label for a value on [0, 1], from Excellent to Poor; None if there is no value."""
    if value is None:
        return None
    return next((label for least, label in _LABELS if round(value, _NOISE) >= least), "Poor")


def _told(value: float) -> float:
    """Round a value for reporting, but not up to a threshold that the value does not reach."""
    rounded = round(value, _DIGITS)
    if any(value < bound <= rounded for bound in _BOUNDS):
        return math.floor(value * 10**_DIGITS) / 10**_DIGITS
    return rounded


def _plain(number: float) -> int | float:
    number = round(number, _DIGITS)
    return int(number) if number.is_integer() else number
