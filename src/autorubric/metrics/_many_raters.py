"""Agreement among many raters with missing ratings: Fleiss' kappa, Conger's kappa, percent agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._contingency import cluster_codes
from autorubric.metrics._counts import (
    CountCoefficient,
    code_ratings,
    counts_estimate,
    fleiss_chance,
    is_smoothed,
    no_chance,
    pseudo_ratings,
    ratings_estimate,
    read_counts,
    units_by_category,
)
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._estimation import Figure, delta, estimate
from autorubric.metrics._options import CodedArguments, CodedOptions
from autorubric.metrics._rater_tables import CountedRows, dense, row_units, with_pseudo_rows
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes, Interval, Scale
from autorubric.metrics._weights import Weights, describe, weight_matrix

_FLEISS = CountCoefficient("Fleiss' kappa", fleiss_chance)
_PERCENT = CountCoefficient("percent agreement", no_chance)


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
    return _either(_FLEISS, ratings, counts, scale, weights, CodedOptions(**interval))


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
    return _either(_PERCENT, ratings, counts, scale, weights, CodedOptions(**interval))


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
    note = ", ".join(
        word for word in (describe(weights), "" if coded.declared else "categories seen") if word
    )
    rated = (codes >= 0).any(axis=1) if codes.size else np.zeros(len(codes), dtype=bool)
    n_missing = int(rated.size - np.count_nonzero(rated))
    if not rated.any():
        return Estimate.undefined("no_ratings", method="Conger's kappa", n_missing=n_missing)
    members = dense(cluster_codes(options.cluster, len(codes)), rated)
    table = CountedRows.of(codes[rated], len(matrix), members)
    units = row_units(_conger_sums(table.rows, matrix), members, table.counts)
    if is_smoothed(options):
        pseudo = pseudo_ratings(table.rows >= 0, table.counts, len(matrix))
        units = with_pseudo_rows(units, _conger_sums(pseudo.rows, matrix), pseudo.chances)
    figure = _conger_figure(codes.shape[1], matrix)
    return estimate(figure, units, options, n_missing=n_missing, note=note)


def _conger_sums(codes: Codes, weights: Array) -> Array:
    """Compute for each unit the agreement of its pairs, whether it has a pair, and each rater's choice."""
    size = len(weights)
    chosen = (codes[:, :, None] == np.arange(size)).astype(float)
    counts = chosen.sum(1)
    total = counts.sum(1)
    paired = total >= 2
    pairs = np.where(paired, total * (total - 1), 1.0)
    agreement = np.where(paired, (counts * (counts @ weights - 1.0)).sum(1) / pairs, 0.0)
    return np.column_stack([agreement, paired, chosen.reshape(len(codes), -1)])


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


def _either(
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


def fleiss_kappa_by_category(
    ratings: Any = None, *, scale: Scale | None = None, counts: Any = None, **interval: Unpack[CodedArguments]
) -> dict[Any, Estimate]:
    """Compute Fleiss' kappa of each category against all others, κ_j = (P_j - p_j) / (1 - p_j) [1].

    p_j is the proportion of ratings in category j, and P_j the probability that a second rating of a unit is
    j given that the first is j. κ_j is `fleiss_kappa` on the labels "j" and "not j"; units may have any
    number of ratings. The mean of the κ_j with weights p_j (1 - p_j) is the overall kappa. κ_j is undefined
    if no rating or every rating is j (`single_class`), or if no unit has two ratings (`no_pairs`).

    Args:
        ratings: Labels, shape `(n_units, n_raters)`; None and NaN count as missing.
        scale: Declared categories; None uses the observed ones.
        counts: Numbers of ratings by unit and category, shape `(n_units, K)`, instead of `ratings`.
        **interval: See `CodedArguments`; `cluster` has one id per unit.

    Returns:
        Estimates by label, or by code if the categories have no labels, in the order of the scale. The dict
        is empty if there are neither ratings nor a scale.

    References:
        [1] J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin
            76(5), 378-382, section on agreement with respect to a category.
    """
    options = CodedOptions(**interval)
    if (ratings is None) == (counts is None):
        raise ArgumentError("pass either ratings or counts, not both")
    names, table = _from_labels(ratings, scale, options) if counts is None else _from_counts(counts, scale)
    found = {}
    for place, name in enumerate(names):
        of_one = np.column_stack([table[:, place], table.sum(1) - table[:, place]])
        coefficient = CountCoefficient(f"Fleiss' kappa of {name!r}", fleiss_chance)
        found[name] = counts_estimate(coefficient, of_one, np.eye(2), options)
    return found


def _from_labels(ratings: Any, scale: Scale | None, options: CodedOptions) -> tuple[Sequence[Any], Array]:
    coded, codes = code_ratings(ratings, scale, options.labels)
    names = coded.scale.labels if coded.scale is not None else range(coded.size)
    return names, units_by_category(codes, coded.size)


def _from_counts(counts: Any, scale: Scale | None) -> tuple[Sequence[Any], Array]:
    table, _ = read_counts(counts, scale, None)
    if scale is None or isinstance(scale, Interval):
        return range(table.shape[1]), table
    return scale.labels, table
