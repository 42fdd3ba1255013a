"""Detection of numbers that are zero except for rounding error."""

from __future__ import annotations

RELATIVE_ZERO = 1e-12
"""Relative size up to which a computed number counts as rounding error."""


def is_rounding(number: float, scale: float = 1.0) -> bool:
    """Return whether a number computed from values of size `scale` is only rounding error."""
    return abs(number) <= RELATIVE_ZERO * abs(scale)
