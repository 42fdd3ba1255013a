"""Validation of comparisons `(left, right, winner or None)`."""

from __future__ import annotations

from typing import Any, TypeAlias

from autorubric.errors import ArgumentError

Comparison: TypeAlias = tuple[str, str, str | None]
"""Two players and the winner, or None for a tie."""


def checked(comparison: Any) -> Comparison:
    """Return the comparison as a tuple `(left, right, winner)`.

    Raises:
        ArgumentError: If `comparison` is malformed.
    """
    try:
        left, right, winner = comparison
    except (TypeError, ValueError):
        raise ArgumentError(
            f"a comparison must be (left, right, winner or None); got {comparison!r}"
        ) from None
    if left == right or winner not in (left, right, None):
        raise ArgumentError(
            f"a comparison needs two different players, and one of them or None as winner: {comparison!r}"
        )
    return left, right, winner
