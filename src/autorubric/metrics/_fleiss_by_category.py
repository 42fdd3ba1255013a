"""Fleiss' kappa of single categories: which of them raters tell apart."""

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
    ratings: Any = None,
    *,
    scale: Scale | None = None,
    counts: Any = None,
    **interval: Unpack[CodedArguments],
) -> dict[Any, Estimate]:
    """Fleiss' kappa of each category against all others, by label: κ_j = (P_j - p_j) / (1 - p_j) [1].

    p_j is the share of category j, P_j how often a second rating is j where a first one is. That is
    `fleiss_kappa` of "j or not", which takes any number of ratings a unit; weighted by p_j (1 - p_j), the κ_j
    have the kappa of all categories as their mean. A category that nobody chose, or everybody: undefined
    (`single_class`); no unit with two ratings: `no_pairs`.

    Args:
        ratings: Labels, `(n_units, n_raters)`; None and NaN are missing.
        scale: Declared categories; None takes those seen.
        counts: Units × K counts instead of labels.
        **interval: See `CodedArguments`; `cluster` is an id per unit.

    Returns:
        An estimate by label, in the order of the scale; by code where the categories have no labels. Empty
        where there is no rating and no scale.

    References:
        [1] J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin
            76(5), 378-382, section on agreement with respect to a category.
    """
    options = CodedOptions(**interval)
    if (ratings is None) == (counts is None):
        raise ArgumentError("give ratings or counts, one of the two")
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
