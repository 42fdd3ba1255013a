"""A second implementation of pairwise accuracy: a loop over pairs, as its definition reads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any


def accuracy_of_pairs(
    gold: Sequence[float],
    pred: Sequence[float],
    *,
    ties: str = "credit",
    epsilon: float = 0.0,
    groups: Sequence[Any] | None = None,
) -> float | None:
    """Mean over groups of the share of right pairs; None where there is no pair."""
    right: dict[Any, list[bool]] = {}
    for i, j in itertools.combinations(range(len(gold)), 2):
        group = None if groups is None else groups[i]
        if groups is not None and groups[j] != group:
            continue
        apart = pred[i] - pred[j]
        if gold[i] == gold[j]:
            if ties == "skip":
                continue
            outcome = abs(apart) <= epsilon
        else:
            outcome = apart > epsilon if gold[i] > gold[j] else -apart > epsilon
        right.setdefault(group, []).append(outcome)
    shares = [sum(outcomes) / len(outcomes) for outcomes in right.values()]
    return sum(shares) / len(shares) if shares else None
