"""Items with a truth and both judgements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import Coded, cluster_codes, encode
from autorubric.metrics._options import CodedOptions, IntervalOptions
from autorubric.metrics._rater_tables import dense
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes, Interval, Nominal, Scale, as_sequence, is_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Triples:
    """Items with a truth and both judgements.

    Attributes:
        truth: True labels: codes, numbers or the labels themselves, shape `(n,)`.
        a: Labels of judge a.
        b: Labels of judge b.
        coded: Scale of the codes; None for numbers and labels.
        cluster: Cluster of each item, 0..C-1 without gaps; None if each item is its own unit.
        n_missing: Number of items excluded because the truth or a judgement was missing.
    """

    truth: Array
    a: Array
    b: Array
    coded: Coded | None
    cluster: Codes | None
    n_missing: int

    @property
    def n(self) -> int:
        """Number of complete items."""
        return len(self.truth)

    def exchanged(self) -> Triples:
        """Return the same items with the judges swapped."""
        return replace(self, a=self.b, b=self.a)


def code_triples(columns: tuple[Any, Any, Any], scale: Scale | None, options: CodedOptions) -> Triples:
    """Return the complete items as codes on one scale."""
    coded = encode(_aligned(columns), scale, options.labels)
    return _complete(coded.codes, [codes >= 0 for codes in coded.codes], coded, options)


def number_triples(columns: tuple[Any, Any, Any], scale: Scale | None, options: CodedOptions) -> Triples:
    """Return the complete items as numbers: the values passed, or the positions of labels on the scale.

    Raises:
        ArgumentError: If the scale has no positions, or a value is not a number or is outside the scale.
    """
    aligned = _aligned(columns)
    if isinstance(scale, Nominal):
        raise ArgumentError(f"{scale} has no distances; use numbers, Ordinal(labels) or Interval()")
    if options.labels is not None or not (scale is None or isinstance(scale, Interval)):
        coded = encode(aligned, scale, options.labels)
        positions = np.arange(coded.size) if coded.scale is None else coded.scale.positions
        assert positions is not None
        placed = np.append(positions.astype(float), np.nan)
        numbers = [placed[codes] for codes in coded.codes]
    else:
        numbers = [
            numeric_column(column, name) for column, name in zip(aligned, ("truth", "a", "b"), strict=True)
        ]
        if isinstance(scale, Interval):
            numbers = [scale.check(column) for column in numbers]
    return _complete(numbers, [~np.isnan(column) for column in numbers], None, options)


def label_triples(columns: tuple[Any, Any, Any], scale: Scale | None, options: CodedOptions) -> Triples:
    """Return the complete items unchanged, after checking them against the scale, if any."""
    aligned = _aligned(columns)
    there = [np.array([not is_missing(label) for label in column], dtype=bool) for column in aligned]
    if options.labels is not None or not (scale is None or isinstance(scale, Interval)):
        there = [codes >= 0 for codes in encode(aligned, scale, options.labels).codes]
    elif isinstance(scale, Interval):
        number_triples(columns, scale, options)
    return _complete([_as_array(column) for column in aligned], there, None, options)


def _aligned(columns: tuple[Any, Any, Any]) -> list[Any]:
    named = list(zip(columns, ("truth", "a", "b"), strict=True))
    aligned = [as_sequence(column, name) for column, name in named]
    sizes = [len(column) for column in aligned]
    if len(set(sizes)) > 1:
        raise ArgumentError(
            f"truth has {sizes[0]} labels, a has {sizes[1]} and b has {sizes[2]}; pass one of each per item"
        )
    return aligned


def _as_array(column: Any) -> Array:
    """Return labels as an array of their type, or of objects if types are mixed, to avoid conversions."""
    if isinstance(column, np.ndarray):
        return column
    kinds = {type(label) for label in column}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(column)
    array = np.empty(len(column), dtype=object)
    array[:] = column
    return array


def _complete(
    columns: Iterable[Array], there: list[Array], coded: Coded | None, options: IntervalOptions
) -> Triples:
    all_there = there[0] & there[1] & there[2]
    truth, a, b = (column[all_there] for column in columns)
    if coded is None and any(column.dtype == object for column in (truth, a, b)):
        truth, a, b = (_as_array(column.tolist()) for column in (truth, a, b))
    members = cluster_codes(options.cluster, len(all_there))
    n_missing = int(all_there.size - np.count_nonzero(all_there))
    return Triples(truth=truth, a=a, b=b, coded=coded, cluster=dense(members, all_there), n_missing=n_missing)
