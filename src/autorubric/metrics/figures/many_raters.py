"""Agreement among many raters with missing ratings: Fleiss' kappa, Conger's kappa, percent agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import CodedLabels, TableInput, drop_incomplete, encode, read_rows
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import (
    Figure,
    delta,
    estimate,
    estimates_of_each,
    logit_t,
    ratio_figure,
)
from autorubric.metrics.core.metric import SIGNED, metric
from autorubric.metrics.core.resampling import (
    CodedArguments,
    CodedOptions,
    IntervalOptions,
    Units,
    row_units,
    with_prior,
)
from autorubric.metrics.core.scales import (
    Array,
    Binary,
    Codes,
    Interval,
    Scale,
    Weights,
    describe,
    weight_matrix,
)

_MOST_ROWS = 1024
_MOST_RATINGS = 1_000_000


_KEYS_UP_TO = 2**62


@dataclass(frozen=True, slots=True)
class CountedRows:
    """The distinct rows of a table of integers ≥ -1, with the number of units that have each row."""

    rows: Codes  # distinct rows, shape `(u, n_columns)`
    counts: Codes  # number of units with each row, shape `(u,)`

    @classmethod
    def of(cls, rows: Codes, size: int, cluster: Codes | None) -> CountedRows:
        """Return rows of integers below `size`; equal ones are merged unless clustered or beyond 64 bits."""
        table = cls(rows, np.ones(len(rows), dtype=np.int64))
        return table if cluster is not None else table.merge_equal(size)

    def merge_equal(self, size: int) -> CountedRows:
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


@dataclass(frozen=True, slots=True)
class SmoothingPrior:
    """Distribution of the pseudo-unit that the smoothed bootstrap adds to a table of ratings.

    Its ratings are uniform over the categories (with two raters, 1/K² in each cell of their table), and
    missing as in a real unit. Possible pseudo-units are enumerated if there are few, and otherwise
    sampled.
    """

    rows: Codes  # possible pseudo-units, shape `(p, n_columns)`
    chances: Array  # probability of each pseudo-unit, shape `(p,)`

    def merge_equal(self) -> SmoothingPrior:
        rows, where = np.unique(self.rows, axis=0, return_inverse=True)
        return SmoothingPrior(rows, np.bincount(where.reshape(-1), weights=self.chances))


def is_smoothed(options: IntervalOptions) -> bool:
    """Return whether the options select the smoothed bootstrap for a metric whose default it is."""
    return options.ci in ("auto", "smoothed")


def prior_ratings(given: Array, how_many: Codes, size: int) -> SmoothingPrior:
    """Return pseudo-units as the category code of each rater, where -1 means missing."""
    patterns, where = np.unique(given, axis=0, return_inverse=True)
    shares = np.bincount(where.reshape(-1), weights=how_many) / how_many.sum()
    rated = patterns.sum(1)
    if float((float(size) ** rated).sum()) <= _MOST_ROWS:
        blocks = [_all_ratings(pattern, size) for pattern in patterns]
        chances = [
            np.full(len(block), share / len(block)) for block, share in zip(blocks, shares, strict=True)
        ]
        return SmoothingPrior(np.concatenate(blocks), np.concatenate(chances))
    # The fixed seed selects the units that represent all possible ones; it does not affect the resampling.
    rng = np.random.default_rng(0)
    n_rows = max(1, min(_MOST_ROWS, _MOST_RATINGS // patterns.shape[1]))
    chosen = patterns[rng.choice(len(patterns), size=n_rows, p=shares)]
    codes = np.where(chosen, rng.integers(0, size, size=chosen.shape), -1)
    return SmoothingPrior(codes, np.full(n_rows, 1 / n_rows))


def _all_ratings(pattern: Array, size: int) -> Codes:
    """Enumerate all ratings that the m raters of a pattern can give, shape `(size ** m, n_raters)`."""
    raters = np.flatnonzero(pattern)
    rows = np.full((size ** len(raters), len(pattern)), -1, dtype=np.int64)
    places = np.arange(len(rows))[:, None]
    rows[:, raters] = places // size ** np.arange(len(raters)) % size
    return rows


def prior_counts(n_ratings: Codes, how_many: Codes, size: int) -> SmoothingPrior:
    """Return pseudo-units as counts of ratings in each category, shape `(p, size)`."""
    given = np.arange(int(n_ratings.max())) < n_ratings[:, None]
    codes = prior_ratings(given, how_many, size)
    counts = np.zeros((len(codes.rows), size), dtype=np.int64)
    unit, rater = np.nonzero(codes.rows >= 0)
    np.add.at(counts, (unit, codes.rows[unit, rater]), 1)
    return SmoothingPrior(counts, codes.chances).merge_equal()


PooledChance: TypeAlias = Callable[[Array, Array], Array]
"""A function from (mean proportions of shape `(..., K)`, weights) to expected agreement."""


def fleiss_chance(shares: Array, weights: Array) -> Array:
    """Compute Σ w_kl π_k π_l."""
    return np.asarray(((shares @ weights) * shares).sum(-1))


def ac_chance(shares: Array, weights: Array) -> Array:
    """Compute Σ w · Σ π_k (1 - π_k) / (q (q - 1)) for two or more categories."""
    size = len(weights)
    return np.asarray(weights.sum() * (shares * (1 - shares)).sum(-1) / (size * (size - 1)))


def bp_chance(shares: Array, weights: Array) -> Array:
    """Compute Σ w / q², which does not depend on the answers."""
    return np.full(shares.shape[:-1], weights.sum() / len(weights) ** 2)


def no_chance(shares: Array, weights: Array) -> Array:
    """Return 0, for agreement without chance correction."""
    return np.zeros(shares.shape[:-1])


@dataclass(frozen=True, slots=True)
class CountCoefficient:
    name: str
    chance: PooledChance  # function that computes the agreement expected by chance
    # whether unused categories change the value, so that categories must be declared
    needs_declared: bool = False


def ratings_estimate(
    coefficient: CountCoefficient, ratings: Any, scale: Scale | None, weights: Weights, options: CodedOptions
) -> Estimate:
    """Compute the coefficient from labels of shape `(n_units, n_raters)`."""
    coded, codes = code_ratings(ratings, scale, options.labels)
    if coefficient.needs_declared:
        require_declared(coefficient.name, coded)
    counts = units_by_category(codes, coded.size)
    matrix = weight_matrix(weights, coded.scale, coded.size)
    return counts_estimate(coefficient, counts, matrix, options, describe(weights, declared=coded.declared))


def require_declared(name: str, given: CodedLabels | TableInput) -> None:
    """Raise an error if categories that the metric depends on are neither declared nor binary."""
    if given.size and not (given.declared or isinstance(given.scale, Binary)):
        raise ArgumentError(
            f"{name} depends on the number of categories, including unused ones; pass scale=Nominal(labels) "
            "or scale=Ordinal(labels)"
        )


def units_by_category(codes: Codes, size: int) -> Array:
    """Count the ratings of each unit in each category, shape `(n_units, K)`."""
    unit, rater = np.nonzero(codes >= 0)
    flat = np.bincount(unit * size + codes[unit, rater], minlength=len(codes) * size)
    return flat.reshape(len(codes), size).astype(float)


def code_ratings(ratings: Any, scale: Scale | None, labels: int | None) -> tuple[CodedLabels, Any]:
    """Encode labels of shape `(n_units, n_raters)` as codes of the same shape, -1 where missing."""
    rows = read_rows(ratings, "ratings")
    if isinstance(rows, np.ndarray) and rows.dtype.kind not in "OU":
        coded = encode([rows.reshape(-1)], scale, labels)
        return coded, coded.codes[0].reshape(rows.shape)
    # Texts are compared by rater, since each may have a spelling of its own.
    columns = list(rows.T) if isinstance(rows, np.ndarray) else list(zip(*rows, strict=True))
    coded = encode(columns, scale, labels)
    shape = (len(rows), rows.shape[1] if isinstance(rows, np.ndarray) else 0)
    return coded, np.column_stack(coded.codes) if columns else np.zeros(shape, dtype=np.int64)


def read_counts(counts: Any, scale: Scale | None, weights: Weights) -> tuple[Array, Array]:
    """Read units × K counts, and return them with the weight matrix."""
    rows = read_rows(counts, "counts", "units × K")
    try:
        table = np.asarray(rows, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"counts must contain only non-negative integers: {error}") from None
    if table.ndim != 2:
        raise ArgumentError(f"counts must have shape (n_units, K); got {table.shape}")
    if not np.all(np.isfinite(table)) or np.any(table < 0) or np.any(table != np.round(table)):
        raise ArgumentError("counts must contain only non-negative integers")
    size = table.shape[1]
    if isinstance(scale, Interval) or (scale is not None and scale.size != size):
        raise ArgumentError(f"counts has {size} columns, which does not match {scale}")
    return table, weight_matrix(weights, scale, size)


def counts_estimate(
    coefficient: CountCoefficient, counts: Array, weights: Array, options: IntervalOptions, note: str = ""
) -> Estimate:
    """Compute the coefficient from units × K counts; units without ratings count as missing."""
    return counts_estimates([coefficient], counts, weights, options, note)[0]


def counts_estimates(
    coefficients: Sequence[CountCoefficient],
    counts: Array,
    weights: Array,
    options: IntervalOptions,
    note: str = "",
) -> list[Estimate]:
    """Compute coefficients that all correct for chance, or one, over the same units and resamples."""
    rated = counts.sum(1) > 0
    plain = coefficients[0].chance is no_chance
    smoothed = is_smoothed(options) and not plain and len(weights) > 0
    members, n_missing = drop_incomplete(rated, options.cluster)
    units = _units(counts[rated], weights, members, smoothed=smoothed)
    if not units.n:
        names = [one.name for one in coefficients]
        return [Estimate.undefined("no_ratings", method=name, n_missing=n_missing) for name in names]
    defined = [one for one in coefficients if not (one.needs_declared and len(weights) < 2)]
    figures = [_figure(one, weights) for one in defined]
    notes = [[note] * len(figures)]
    made = estimates_of_each(figures, [units], options, n_missing=[n_missing], notes=notes)
    found = iter(made[0])
    return [
        next(found)
        if one in defined
        else Estimate.undefined("single_category_scale", n=units.n, method=one.name, n_missing=n_missing)
        for one in coefficients
    ]


def _units(counts: Array, weights: Array, members: Codes | None, *, smoothed: bool) -> Units:
    """Return the sums of the units, with identical units merged, or the sums of the clusters."""
    table = CountedRows.of(counts.astype(np.int64), int(counts.max(initial=0)) + 1, members)
    units = row_units(_unit_sums(table.rows, weights), members, table.counts)
    if not smoothed or not units.n:
        return units
    prior = prior_counts(table.rows.sum(1), table.counts, len(weights))
    return with_prior(units, prior.chances, _unit_sums(prior.rows, weights))


def _unit_sums(counts: Array, weights: Array) -> Array:
    """Compute for each unit the agreement of its pairs, whether it has a pair, its proportions, and 1."""
    proportions = counts / counts.sum(1)[:, None]
    return np.column_stack([*_pair_agreement(counts, weights), proportions, np.ones(len(counts))])


def _pair_agreement(counts: Array, weights: Array) -> tuple[Array, Array]:
    """Compute the agreement of each unit's pairs of ratings, and whether it has a pair."""
    total = counts.sum(1)
    paired = total >= 2
    pairs = np.where(paired, total * (total - 1), 1.0)
    return np.where(paired, (counts * (counts @ weights - 1.0)).sum(1) / pairs, 0.0), paired


def _figure(coefficient: CountCoefficient, weights: Array) -> Figure:
    if coefficient.chance is no_chance:
        # The mean, over the units that have a pair, of the proportion of agreeing pairs.
        return ratio_figure(coefficient.name, logit_t, trials=lambda sums: sums[..., 1])

    def compute(sums: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = sums[..., 0] / sums[..., 1]
            expected = coefficient.chance(sums[..., 2:-1] / sums[..., -1:], weights)
            room = 1 - expected
            # Proportions are sums of fractions, so a single category leaves rounding error instead of 0.
            none = (np.abs(room.real) <= 1e-9) | (sums[..., 1] == 0)
            return np.where(none, np.nan, (observed - expected) / room)

    def reason(sums: Array) -> Reason:
        if sums[1] == 0:
            return "no_pairs"
        return "single_class" if np.count_nonzero(sums[2:-1]) == 1 else "no_variance"

    return Figure(name=coefficient.name, compute=compute, reason=reason, analytic=delta)


FLEISS = CountCoefficient("Fleiss' kappa", fleiss_chance)
AC1 = CountCoefficient("Gwet's AC1", ac_chance, needs_declared=True)
_PERCENT = CountCoefficient("percent agreement", no_chance)


@metric(inputs="ratings", bounds=SIGNED, reference="Fleiss 1971; Gwet 2014", weighted=True)
def fleiss_kappa(
    ratings: Any = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    counts: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute Fleiss' kappa, (pa - pe) / (1 - pe) with pe = Σ w_kl π_k π_l [1], allowing missing ratings [2].

    pa is the mean proportion of agreeing pairs over units (rated items) with two or more ratings, and π_k is
    the mean proportion of category k over all rated units. With equal numbers of ratings per unit, this is
    Fleiss' formula. Kappa is undefined if only one category is used (`single_class`) or if no unit has two
    ratings (`no_pairs`). The interval resamples the units together with one pseudo-unit whose ratings are
    uniformly distributed over the categories (with two raters, 1/K² in each cell of their table).

    Args:
        ratings: Labels of shape `(n_units, n_raters)`. None and NaN count as missing.
        scale: Scale that declares the categories; None uses the categories that occur.
        weights: Agreement weights that give partial credit for near misses; see `cohen_kappa`.
        counts: Number of ratings per unit and category, shape `(n_units, K)`; replaces `ratings`.
        **interval: Interval options; see `CodedArguments`. `cluster` has one id per unit.

    References:
        [1] J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin
            76(5), 378-382.
        [2] K. L. Gwet (2014), Handbook of inter-rater reliability, 4th ed., ch. 2.
    """
    return _estimate_agreement(FLEISS, ratings, counts, scale, weights, CodedOptions(**interval))


@metric(inputs="ratings", bounds=SIGNED, reference="Conger 1980; Gwet 2014", weighted=True)
def conger_kappa(
    ratings: Any, *, scale: Scale | None = None, weights: Weights = None, **interval: Unpack[CodedArguments]
) -> Estimate:
    """Compute Conger's kappa, (pa - pe) / (1 - pe), with separate margins for each rater [1, 2].

    pe is the mean of Σ w_kl p_gk p_hl over pairs of raters g, h, where p_gk is the proportion of category k
    in rater g's ratings. pa is the same as in `fleiss_kappa`, which pools the margins instead. With two
    raters, the result equals Cohen's kappa. It is undefined if no unit has two ratings (`no_pairs`) or if
    only one category is used (`single_class`). See `fleiss_kappa` for the arguments.

    References:
        [1] A. J. Conger (1980), Integration and generalization of kappas for multiple raters, Psychological
            Bulletin 88(2), 322-328, eq. 7.
        [2] K. L. Gwet (2014), Handbook of inter-rater reliability, 4th ed., ch. 2 (missing ratings).
    """
    options = CodedOptions(**interval)
    coded, codes = code_ratings(ratings, scale, options.labels)
    matrix = weight_matrix(weights, coded.scale, coded.size)
    note = describe(weights, declared=coded.declared)
    rated = (codes >= 0).any(axis=1) if codes.size else np.zeros(len(codes), dtype=bool)
    members, n_missing = drop_incomplete(rated, options.cluster)
    if not rated.any():
        return Estimate.undefined("no_ratings", method="Conger's kappa", n_missing=n_missing)
    table = CountedRows.of(codes[rated], len(matrix), members)
    units = row_units(_conger_sums(table.rows, matrix), members, table.counts)
    if is_smoothed(options):
        prior = prior_ratings(table.rows >= 0, table.counts, len(matrix))
        units = with_prior(units, prior.chances, _conger_sums(prior.rows, matrix))
    figure = _conger_figure(codes.shape[1], matrix)
    return estimate(figure, units, options, n_missing=n_missing, note=note)


def _conger_sums(codes: Codes, weights: Array) -> Array:
    """Compute for each unit the agreement of its pairs, whether it has a pair, and each rater's choice."""
    chosen = (codes[:, :, None] == np.arange(len(weights))).astype(float)
    return np.column_stack([*_pair_agreement(chosen.sum(1), weights), chosen.reshape(len(codes), -1)])


def _conger_figure(n_raters: int, weights: Array) -> Figure:
    def compute(sums: Array) -> Array:
        chosen = sums[..., 2:].reshape(*sums.shape[:-1], n_raters, len(weights))
        by_rater = chosen.sum(-1)
        there = (by_rater.real > 0).sum(-1)
        shares = chosen / np.where(by_rater.real > 0, by_rater, 1.0)[..., None]
        pooled = shares.sum(-2)
        own = ((shares @ weights) * shares).sum((-1, -2))
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = (((pooled @ weights) * pooled).sum(-1) - own) / (there * (there - 1))
            room = 1 - expected
            none = (there < 2) | (sums[..., 1].real == 0) | (np.abs(room.real) <= 1e-9)
            return np.where(none, np.nan, (sums[..., 0] / sums[..., 1] - expected) / room)

    def reason(sums: Array) -> Reason:
        if sums[1] == 0:
            return "no_pairs"
        used = sums[2:].reshape(n_raters, len(weights)).sum(0)
        return "single_class" if np.count_nonzero(used) == 1 else "no_variance"

    return Figure(name="Conger's kappa", compute=compute, reason=reason, analytic=delta)


@metric(inputs="ratings", reference="share of agreeing pairs", weighted=True)
def percent_agreement(
    ratings: Any = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    counts: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the mean proportion of agreeing rater pairs over units (rated items) with two or more ratings.

    The interval is a t interval on the logit scale over these units or their clusters. If all have the same
    agreement, such as 0 or 1, it is a score interval with one observation per unit.

    The result is undefined if no unit has two ratings (`no_pairs`). See `fleiss_kappa` for the arguments.
    """
    return _estimate_agreement(_PERCENT, ratings, counts, scale, weights, CodedOptions(**interval))


def _estimate_agreement(
    coefficient: CountCoefficient,
    ratings: Any,
    counts: Any,
    scale: Scale | None,
    weights: Weights,
    options: CodedOptions,
) -> Estimate:
    if (ratings is None) == (counts is None):
        raise ArgumentError("pass exactly one of ratings and counts")
    if ratings is not None:
        return ratings_estimate(coefficient, ratings, scale, weights, options)
    table, matrix = read_counts(counts, scale, weights)
    return counts_estimate(coefficient, table, matrix, options, describe(weights))
