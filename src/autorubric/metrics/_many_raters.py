"""Agreement among many raters, with ratings missing: Fleiss' kappa and percent agreement."""

from __future__ import annotations

from typing import Any, Unpack

from autorubric.errors import ArgumentError
from autorubric.metrics._counts import (
    CountCoefficient,
    counts_estimate,
    fleiss_chance,
    no_chance,
    ratings_estimate,
    read_counts,
)
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._options import CodedArguments, IntervalOptions
from autorubric.metrics._scales import Scale
from autorubric.metrics._weights import Weights, describe

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
    """Fleiss' kappa: (pa - pe) / (1 - pe), pe = Σ w_kl π_k π_l [1]; any number of ratings a unit [2].

    pa is the mean over units with two ratings or more of the share of agreeing pairs, π_k the mean over all
    rated units of the share of category k. With equally many ratings a unit this is Fleiss' formula. Only one
    category used: undefined (`single_class`); no unit with two ratings: `no_pairs`.

    Args:
        ratings: Labels, `(n_units, n_raters)`; None and NaN are missing.
        scale: Declared categories; None takes those seen.
        weights: Credit for near misses, as in `cohen_kappa`.
        counts: Units × K counts instead of labels.
        **interval: See `CodedArguments`; `cluster` is an id per unit.

    References:
        [1] J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin
            76(5), 378-382.
        [2] K. L. Gwet (2014), Handbook of inter-rater reliability, 4th ed., ch. 2.
    """
    return _either(_FLEISS, ratings, counts, scale, weights, IntervalOptions(**interval))


def percent_agreement(
    ratings: Any = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    counts: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Mean over units with two ratings or more of the share of agreeing pairs of raters.

    Arguments as in `fleiss_kappa`; no unit with two ratings: undefined (`no_pairs`).
    """
    return _either(_PERCENT, ratings, counts, scale, weights, IntervalOptions(**interval))


def _either(
    coefficient: CountCoefficient,
    ratings: Any,
    counts: Any,
    scale: Scale | None,
    weights: Weights,
    options: IntervalOptions,
) -> Estimate:
    if (ratings is None) == (counts is None):
        raise ArgumentError("give ratings or counts, one of the two")
    if ratings is not None:
        return ratings_estimate(coefficient, ratings, scale, weights, options)
    table, matrix = read_counts(counts, scale, weights)
    return counts_estimate(coefficient, table, matrix, options, describe(weights))
