"""Second implementations of pairwise figures: loops over pairs, as their definitions read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np


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


def best_threshold(
    gold: Sequence[float], pred: Sequence[float], groups: Sequence[Any] | None = None
) -> tuple[float, float]:
    """The smallest threshold of greatest accuracy, by trying each difference; and that accuracy."""
    tried = {0.0} | {
        abs(pred[i] - pred[j])
        for i, j in itertools.combinations(range(len(pred)), 2)
        if groups is None or groups[i] == groups[j]
    }
    found = {one: accuracy_of_pairs(gold, pred, epsilon=one, groups=groups) or 0.0 for one in tried}
    top = max(found.values())
    return min(one for one, value in found.items() if value >= top - 1e-9), top


def soft_accuracy(gold: Any, pred: Any) -> float:
    """One minus the mean difference of the p-values of pairs of systems, over all exchanges."""

    def p(one: Any, other: Any) -> float:
        apart = np.asarray(one, dtype=float) - np.asarray(other, dtype=float)
        every = [
            float(np.dot(signs, apart)) >= float(apart.sum()) - 1e-9
            for signs in itertools.product((1, -1), repeat=len(apart))
        ]
        return sum(every) / len(every)

    pairs = list(itertools.combinations(range(len(gold)), 2))
    return 1 - sum(abs(p(gold[i], gold[j]) - p(pred[i], pred[j])) for i, j in pairs) / len(pairs)
