"""Tables of numbers with one row per unit (rated item) and one column per rater, and their sampling units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autorubric.metrics.core.contingency import drop_incomplete, numeric_column, read_rows
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.resampling import Units
from autorubric.metrics.core.scales import Array, Codes


@dataclass(frozen=True, slots=True)
class CompleteTable:
    """The units that every rater rated."""

    # scores without missing values, shape `(n_units, n_raters)`, centred and scaled to avoid cancellation
    scores: Array
    cluster: Codes | None  # cluster of each unit, 0..C-1 without gaps; None if units are independent
    n_missing: int  # number of units dropped because a rating was missing
    any_rated: bool  # whether there are any ratings, including those of incomplete units

    @property
    def n_raters(self) -> int:
        """Number of raters."""
        return int(self.scores.shape[1])

    def undefined(self, method: str) -> Estimate | None:
        """Return an undefined estimate if there are too few units or raters; otherwise None."""
        n = len(self.scores)
        reason: Reason | None = None
        if not n:
            reason = "too_few_units" if self.any_rated else "no_ratings"
        elif self.n_raters < 2:
            reason = "no_pairs"
        elif n < 2:
            reason = "too_few_units"
        if reason is None:
            return None
        return Estimate.undefined(reason, n=n, method=method, n_missing=self.n_missing)


def number_rows(table: Any, what: str = "ratings", shape: str = "(n_units, n_raters)") -> Array:
    """Read a table of numbers as floats, with NaN for missing values; see `read_rows` for the arguments."""
    rows = read_rows(table, what, shape)
    if isinstance(rows, np.ndarray):
        return numeric_column(rows.reshape(-1), what).reshape(rows.shape)
    numbers = [numeric_column(row, f"a row of {what}") for row in rows]
    return np.array(numbers) if numbers else np.zeros((0, 0))


def complete_table(ratings: Any, cluster: Iterable[Any] | None) -> CompleteTable:
    """Return the rows of a table of ratings that have no missing rating."""
    scores = number_rows(ratings)
    complete = np.asarray(~np.isnan(scores).any(axis=1))
    members, n_missing = drop_incomplete(complete, cluster)
    kept = scores[complete]
    if kept.size:
        kept = kept - kept.mean()
        kept = kept / (np.abs(kept).max() or 1.0)
    return CompleteTable(kept, members, n_missing, bool((~np.isnan(scores)).any()))


_KEYS_UP_TO = 2**62


@dataclass(frozen=True, slots=True)
class CountedRows:
    """The distinct rows of a table of integers ≥ -1, with the number of units that have each row."""

    rows: Codes  # distinct rows, shape `(u, n_columns)`
    counts: Codes  # number of units with each row, shape `(u,)`

    @classmethod
    def of(cls, rows: Codes, size: int, cluster: Codes | None) -> CountedRows:
        """Return a table of rows of integers below `size`, with equal rows merged unless units are clustered.

        With few categories, even many units have few distinct rows. Rows that cannot be encoded in 64 bits
        are not merged.
        """
        table = cls(rows, np.ones(len(rows), dtype=np.int64))
        return table if cluster is not None else table.merged(size)

    def merged(self, size: int) -> CountedRows:
        """Return the table with equal rows merged."""
        n_columns, base = self.rows.shape[1], size + 1
        if not self.rows.size or base**n_columns > _KEYS_UP_TO:
            return self
        keys = np.zeros(len(self.rows), dtype=np.int64)
        for column in self.rows.T:
            keys = keys * base + column + 1
        if base**n_columns <= len(keys):
            how_many = np.bincount(keys, weights=self.counts)
            seen = np.flatnonzero(how_many)
            how_many = how_many[seen]
        else:
            seen, where = np.unique(keys, return_inverse=True)
            how_many = np.bincount(where, weights=self.counts)
        places = base ** np.arange(n_columns - 1, -1, -1)
        return CountedRows(seen[:, None] // places % base - 1, how_many.astype(np.int64))


def row_units(sums: Array, cluster: Codes | None, counts: Codes | None = None) -> Units:
    """Return one sampling unit per row of sums, or per cluster; `counts` is the multiplicity of each row."""
    if cluster is None:
        counts = np.ones(len(sums), dtype=np.int64) if counts is None else counts
        return Units(counts=counts, n=int(counts.sum()), sums=sums)
    n_clusters = int(cluster.max(initial=-1)) + 1
    by_cluster = np.empty((n_clusters, sums.shape[1]))
    for place, column in enumerate(sums.T):
        by_cluster[:, place] = np.bincount(cluster, weights=column, minlength=n_clusters)
    ones = np.ones(n_clusters, dtype=np.int64)
    return Units(counts=ones, n=len(sums), sums=by_cluster, clustered=True)


def weighted_units(n: int, cluster: Codes | None, counts: Codes | None = None) -> Units:
    """Return sampling units for metrics that need draw counts; `counts` is the multiplicity of each unit."""
    if cluster is None and counts is not None:
        return Units(counts=counts, n=int(counts.sum()))
    members = np.arange(n) if cluster is None else cluster
    ones = np.ones(int(members.max(initial=-1)) + 1, dtype=np.int64)
    return Units(counts=ones, n=n, gather=members, clustered=cluster is not None)


def with_prior_rows(units: Units, sums: Array, chances: Array) -> Units:
    """Add the possible pseudo-units to units with sums. Only the smoothed bootstrap draws them."""
    assert units.sums is not None
    none = np.zeros(len(units.counts))
    return replace(
        units,
        counts=np.append(units.counts, np.zeros(len(sums), dtype=np.int64)),
        sums=np.concatenate([units.sums, sums]),
        prior=np.append(none, chances),
    )


def with_prior_weights(units: Units, chances: Array) -> Units:
    """Add the possible pseudo-units to units of draw counts, as the last entries of the sums."""
    n_kinds, n_more = len(units.counts), len(chances)
    gather = units.gather
    return replace(
        units,
        counts=np.append(units.counts, np.zeros(n_more, dtype=np.int64)),
        gather=None if gather is None else np.append(gather, n_kinds + np.arange(n_more)),
        prior=np.append(np.zeros(n_kinds), chances),
    )
