"""Label tables made by hand: rows as people have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Rows = list[dict[str, Any]]


def binary_rows(
    truth: Sequence[int] | None, judges: Mapping[str, Sequence[int | None]], **fields: Any
) -> Rows:
    """One binary criterion: the label of each item, and what each judge said; None is no answer."""
    criterion = fields.pop("criterion", "c")
    found = [] if truth is None else _rows(criterion, "truth", "truth", truth)
    for judge, answers in judges.items():
        found += _rows(criterion, judge, "llm", answers)
    return found


def _rows(criterion: str, rater: str, kind: str, answers: Sequence[int | None]) -> Rows:
    return [
        {
            "item_id": f"i{at}",
            "criterion": criterion,
            "rater": rater,
            "rater_type": kind,
            "label": "MET" if answer else "UNMET",
        }
        for at, answer in enumerate(answers)
        if answer is not None
    ]


def value_rows(votes: Any, *, criterion: str = "c", judges: Sequence[str] | None = None) -> Rows:
    """Numbers of judges, shape `(n_items, n_judges)` or `(n_items, n_judges, n_samples)`; NaN is no vote."""
    cube = np.asarray(votes, dtype=float)
    cube = cube[:, :, None] if cube.ndim == 2 else cube
    names = judges or [f"j{at}" for at in range(cube.shape[1])]
    return [
        {
            "item_id": f"i{i}",
            "criterion": criterion,
            "rater": names[j],
            "rater_type": "llm",
            "sample": s,
            "value": float(cube[i, j, s]),
        }
        for i, j, s in np.ndindex(*cube.shape)
        if not np.isnan(cube[i, j, s])
    ]


def noisy(truth: Any, error: float, rng: np.random.Generator) -> list[int]:
    """Answers that are wrong at the given rate, independently."""
    return [int(label) ^ int(rng.random() < error) for label in truth]
