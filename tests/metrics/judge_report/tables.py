"""Long tables of labels made by hand or drawn from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from autorubric.metrics import Binary, Ordinal

SCALES: dict[str, Any] = {
    "clear": Binary(),
    "depth": Ordinal(["low", "some", "high"], values=[0.0, 0.4, 1.0]),
}
"""A criterion of each scale."""


def labels(kind: str, rater: str, criterion: str, said: list[Any] | dict[str, Any]) -> list[dict[str, Any]]:
    """One rater's labels on a criterion, by position or by item."""
    given = said if isinstance(said, dict) else {str(i): label for i, label in enumerate(said)}
    return [
        {"item_id": item, "criterion": criterion, "rater": rater, "rater_kind": kind, "label": label}
        for item, label in given.items()
        if label is not None
    ]


def drawn_table(n_items: int = 40, n_people: int = 3, seed: int = 0) -> list[dict[str, Any]]:
    """Two judges and some people on two criteria; everyone is right more often than not."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for criterion, scale in SCALES.items():
        right = rng.integers(0, scale.size, n_items)
        raters = [("judge", "a", 0.8), ("judge", "b", 0.6)]
        raters += [("human", f"h{i}", 0.85) for i in range(n_people)]
        for kind, rater, share in raters:
            other = rng.integers(0, scale.size, n_items)
            code = np.where(rng.random(n_items) < share, right, other)
            rows += labels(kind, rater, criterion, [scale.labels[one] for one in code])
    return rows
