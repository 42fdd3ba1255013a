"""What `dawid_skene` gives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from autorubric.metrics._estimate import Reason
from autorubric.metrics._resampling import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DawidSkeneResult:
    """Labels, their probabilities, and how each rater errs.

    Attributes:
        labels: The most probable category of each item; None where two are equally probable, or nobody voted.
        posterior: Probability of each category, shape `(n_items, K)`; an item without a vote has the prior.
            None, as `prior` and `confusion`, where there is no vote at all.
        confusion: Probability that a rater gives a label, by true class, shape `(R, K, K)`, rows truth. A row
            with no support is not estimated and has equal shares.
        prior: Share of each category, shape `(K,)`.
        support: Expected number of a rater's votes on items of each class, shape `(R, K)`.
        categories: The K labels, in the order of all the above.
        raters: The R raters, by id or by column.
        n: Items with a vote.
        n_missing: Items without.
        iterations: Iterations made.
        converged: Whether they came to rest.
        log_likelihood: Of the votes under the estimates.
        warnings: Why the figures may not be identified, in words.
        reason: Why there are none.
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
        """All fields, as JSON can carry them; rows of confusion without support are None."""
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
