"""Fleiss' kappa of single categories, which shows how well raters recognise each category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._counts import (
    CountCoefficient,
    code_ratings,
    counts_estimate,
    fleiss_chance,
    read_counts,
    units_by_category,
)
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._options import CodedArguments, CodedOptions
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Interval, Scale


def fleiss_kappa_by_category(
    ratings: Any = None, *, scale: Scale | None = None, counts: Any = None, **interval: Unpack[CodedArguments]
) -> dict[Any, Estimate]:
    """Compute Fleiss' kappa of each category against all others, κ_j = (P_j - p_j) / (1 - p_j) [1].

    p_j is the proportion of ratings that are j, and P_j the probability that a second rating of a unit is j
    if the first is j. κ_j is computed as `fleiss_kappa` of "j or not", with any number of ratings per unit.
    The mean of the κ_j with weights p_j (1 - p_j) is the overall kappa. κ_j is undefined if no rating or
    every rating is j (`single_class`), and if no unit has two ratings (`no_pairs`).

    Args:
        ratings: Labels of shape `(n_units, n_raters)`; None and NaN count as missing.
        scale: Declared categories; None uses the categories that occur.
        counts: Counts of shape `(n_units, K)`, in place of `ratings`.
        **interval: See `CodedArguments`; `cluster` has one id per unit.

    Returns:
        Estimates by label in the order of the scale, or by code if the categories have no labels. The dict is
        empty if there are neither ratings nor a scale.

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
