"""Reading of comparisons `(left, right, winner or None)`."""

from __future__ import annotations

from typing import Any, TypeAlias

from autorubric.errors import ArgumentError

Comparison: TypeAlias = tuple[str, str, str | None]
"""Two players and the winner, or None for a tie."""


def checked(comparison: Any) -> Comparison:
    """Return the comparison as `(left, right, winner)`.

    Raises:
        ArgumentError: If it is not a valid comparison.
    """
    try:
        left, right, winner = comparison
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{comparison!r} is not a comparison; give (left, right, winner or None)"
        ) from None
    if left == right or winner not in (left, right, None):
        raise ArgumentError(
            f"{comparison!r}: a comparison has two different players, and one of them or None as the winner"
        )
    return left, right, winner
