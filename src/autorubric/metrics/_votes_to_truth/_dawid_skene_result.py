"""Result of `dawid_skene`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from autorubric.metrics._estimate import Reason
from autorubric.metrics._resampling import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DawidSkeneResult:
    """Estimated labels, their probabilities and the confusion matrix of each rater.

    Attributes:
        labels: Most probable category of each item; None if categories tie or nobody voted.
        posterior: Probability of each category, shape `(n_items, K)`; an item without a vote has the prior.
            None, like `prior` and `confusion`, if there are no votes at all.
        confusion: Probability that a rater gives each label (columns), by true class (rows), shape
            `(R, K, K)`. A row without support is not estimated and has equal probabilities.
        prior: Estimated proportion of each category, shape `(K,)`.
        support: Expected number of a rater's votes on items of each class, shape `(R, K)`.
        categories: The K labels, in the order used by all arrays.
        raters: Ids of the R raters, or their column numbers.
        n: Number of items with a vote.
        n_missing: Number of items without a vote.
        iterations: Number of iterations run.
        converged: Whether the iterations converged.
        log_likelihood: Log-likelihood of the votes under the estimates.
        warnings: Warnings about estimates that may be unreliable.
        reason: Reason why there are no estimates; None if there are estimates.
    """

    labels: list[Any]
    posterior: Array | None = None
    confusion: Array | None = None
    prior: Array | None = None
    support: Array | None = None
    categories: tuple[Any, ...] = ()
    raters: tuple[Any, ...] = ()
    n: int = 0
    n_missing: int = 0
    iterations: int = 0
    converged: bool = False
    log_likelihood: float | None = None
    warnings: tuple[str, ...] = ()
    reason: Reason | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields in JSON-compatible form; confusion rows without support are None."""
        plain = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        if self.confusion is not None and self.support is not None:
            plain["confusion"] = [
                [row if votes > 0 else None for row, votes in zip(table, supports, strict=True)]
                for table, supports in zip(self.confusion.tolist(), self.support.tolist(), strict=True)
            ]
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
