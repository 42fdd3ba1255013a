"""Elo ratings, for comparison with older leaderboards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autorubric.errors import ArgumentError
from autorubric.metrics._preferences._comparison import Comparison, checked

_METHOD = "Elo, legacy: depends on the order of the comparisons"


@dataclass(frozen=True, slots=True, kw_only=True)
class EloResult:
    """Elo ratings after the last comparison.

    Attributes:
        strengths: Rating by name, in order of first appearance.
        k: Largest possible change of a rating by one comparison.
        initial: Rating before the first comparison, which is also the mean of all ratings.
        n: Number of comparisons.
        method: The method, with a note that it depends on the order of the comparisons.
    """

    strengths: Mapping[str, float] = field(default_factory=dict)
    k: float = 32.0
    initial: float = 1000.0
    n: int = 0
    method: str = _METHOD

    def to_dict(self) -> dict[str, Any]:
        """Return all fields in JSON-compatible form."""
        return {
            "strengths": dict(self.strengths), "k": self.k, "initial": self.initial, "n": self.n,
            "method": self.method,
        }  # fmt: skip


def elo(comparisons: Iterable[Comparison], *, k: float = 32.0, initial: float = 1000.0) -> EloResult:
    """Compute Elo ratings from a sequence of comparisons [1], a legacy method that depends on their order.

    After each comparison of i with j, both ratings change: R_i ← R_i + k (s - E), R_j ← R_j - k (s - E), with
    E = 1 / (1 + 10^((R_j - R_i) / 400)) and s = 1 for a win by i, 1/2 for a tie and 0 for a loss. The mean
    rating does not change. Late comparisons weigh more than early ones, which is not meaningful for players
    that do not change, and there is no standard error. For judged systems, use `bradley_terry`, which does
    not depend on the order.

    Args:
        comparisons: Tuples `(left, right, winner)` in order; winner is one of the two, or None for a tie.
        k: Largest possible change of a rating by one comparison, above 0.
        initial: Rating of a player before its first comparison.

    Raises:
        ArgumentError: If a comparison is malformed, there are no comparisons, or an option is invalid.

    References:
        [1] A. E. Elo (1978), The rating of chessplayers, past and present, Arco.
    """
    if not 0 < k < math.inf:
        raise ArgumentError(f"k must be a finite, positive number; got {k!r}")
    if not math.isfinite(initial):
        raise ArgumentError(f"initial must be a finite number; got {initial!r}")
    ratings: dict[str, float] = {}
    n = 0
    for comparison in comparisons:
        left, right, winner = checked(comparison)
        apart = ratings.setdefault(left, initial) - ratings.setdefault(right, initial)
        scored = 0.5 if winner is None else float(winner == left)
        change = k * (scored - _expected(apart))
        ratings[left] += change
        ratings[right] -= change
        n += 1
    if not n:
        raise ArgumentError("comparisons is empty; pass at least one comparison")
    return EloResult(strengths=ratings, k=float(k), initial=float(initial), n=n)


def _expected(apart: float) -> float:
    """Compute 1 / (1 + 10^(-apart / 400)) without overflow."""
    return 0.5 + 0.5 * math.tanh(apart * math.log(10) / 800)
