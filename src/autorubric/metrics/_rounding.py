"""What is left of a zero after rounding."""

from __future__ import annotations

RELATIVE_ZERO = 1e-12
"""What is no larger than this part of what it was worked out from is rounding."""


def is_rounding(number: float, scale: float = 1.0) -> bool:
    """Whether nothing but rounding is left of a number worked out from numbers as large as `scale`."""
    return abs(number) <= RELATIVE_ZERO * abs(scale)
