"""The pseudo-unit that the smoothed bootstrap adds to a table of ratings.

Each of its ratings is drawn uniformly from the categories; with two raters, this adds 1/K² to each cell of
their table. Its pattern of missing ratings is drawn from those of the real units. The possible pseudo-units
are enumerated if there are few of them, and sampled otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes

_MOST_ROWS = 1024
_MOST_RATINGS = 1_000_000


@dataclass(frozen=True, slots=True)
class PseudoUnit:
    """Probability distribution of the pseudo-unit.

    Attributes:
        rows: Possible pseudo-units, shape `(p, n_columns)`.
        chances: Probability of each pseudo-unit, shape `(p,)`.
    """

    rows: Codes
    chances: Array

    def merged(self) -> PseudoUnit:
        """Return the distribution with equal rows merged."""
        rows, where = np.unique(self.rows, axis=0, return_inverse=True)
        return PseudoUnit(rows, np.bincount(where.reshape(-1), weights=self.chances))


def is_smoothed(options: IntervalOptions) -> bool:
    """Return whether the options select the smoothed bootstrap for a metric whose default it is."""
    return options.ci in ("auto", "smoothed")


def pseudo_ratings(given: Array, how_many: Codes, size: int) -> PseudoUnit:
    """Return pseudo-units as the category code of each rater, where -1 means missing.

    Args:
        given: Mask of the raters who gave a rating, one row per pattern, shape `(m, n_raters)`.
        how_many: Number of units with each pattern, shape `(m,)`.
        size: Number of categories.
    """
    patterns, where = np.unique(given, axis=0, return_inverse=True)
    shares = np.bincount(where.reshape(-1), weights=how_many) / how_many.sum()
    rated = patterns.sum(1)
    if float((float(size) ** rated).sum()) <= _MOST_ROWS:
        blocks = [_all_ratings(pattern, size) for pattern in patterns]
        chances = [
            np.full(len(block), share / len(block)) for block, share in zip(blocks, shares, strict=True)
        ]
        return PseudoUnit(np.concatenate(blocks), np.concatenate(chances))
    # The fixed seed selects the units that represent all possible ones; it does not affect the resampling.
    rng = np.random.default_rng(0)
    n_rows = max(1, min(_MOST_ROWS, _MOST_RATINGS // patterns.shape[1]))
    chosen = patterns[rng.choice(len(patterns), size=n_rows, p=shares)]
    codes = np.where(chosen, rng.integers(0, size, size=chosen.shape), -1)
    return PseudoUnit(codes, np.full(n_rows, 1 / n_rows))


def _all_ratings(pattern: Array, size: int) -> Codes:
    """Enumerate all ratings that the m raters of a pattern can give, shape `(size ** m, n_raters)`."""
    raters = np.flatnonzero(pattern)
    rows = np.full((size ** len(raters), len(pattern)), -1, dtype=np.int64)
    places = np.arange(len(rows))[:, None]
    rows[:, raters] = places // size ** np.arange(len(raters)) % size
    return rows


def pseudo_counts(n_ratings: Codes, how_many: Codes, size: int) -> PseudoUnit:
    """Return pseudo-units as counts of ratings in each category, shape `(p, size)`.

    Args:
        n_ratings: Possible numbers of ratings per unit, shape `(m,)`.
        how_many: Number of units with each number of ratings, shape `(m,)`.
        size: Number of categories.
    """
    given = np.arange(int(n_ratings.max())) < n_ratings[:, None]
    codes = pseudo_ratings(given, how_many, size)
    counts = np.zeros((len(codes.rows), size), dtype=np.int64)
    unit, rater = np.nonzero(codes.rows >= 0)
    np.add.at(counts, (unit, codes.rows[unit, rater]), 1)
    return PseudoUnit(counts, codes.chances).merged()
