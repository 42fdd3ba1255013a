"""Two columns of labels on a declared scale, with what is missing, abstained and failed kept apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._cells import Column, Modes
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import cluster_codes, encode
from autorubric.metrics._label_homes import ABSTENTION, NO_ANSWER
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import (
    Binary,
    CategoricalScale,
    Codes,
    Interval,
    Nominal,
    Ordinal,
    Scale,
    as_sequence,
)
from autorubric.metrics._votes_table import ABSENT, ABSTAINED, ANSWERED, FAILED

AbstainMode: TypeAlias = Literal["exclude", "as_category", "as_negative"]
"""How abstentions count: left out, as a category of their own, or as the lowest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Two raters on one scale.

    Attributes:
        scale: The scale.
        has_category: Whether an abstention is a category, one past those of the scale.
        truth: The labels.
        pred: What is set against them.
        cluster: Cluster of each unit; None where each stands alone.
    """

    scale: Scale
    has_category: bool
    truth: Column
    pred: Column
    cluster: Codes | None

    @property
    def size(self) -> int:
        """Categories of the table; 0 on an interval."""
        return 0 if isinstance(self.scale, Interval) else self.scale.size + self.has_category

    @property
    def labels(self) -> tuple[str, ...]:
        """Categories in words."""
        if isinstance(self.scale, Interval):
            return ()
        return (*map(str, self.scale.labels), *((ABSTENTION,) if self.has_category else ()))

    def numbers(self, column: Column) -> Array:
        """Where a side's answers lie; NaN where there is none, or no distance between answers."""
        if isinstance(self.scale, Interval):
            return column.number
        places = self.scale.positions
        if places is None or self.has_category:
            return np.full(len(column.code), np.nan)
        return np.append(places, np.nan)[column.code]


def modes_of(abstain: AbstainMode) -> Modes:
    """The modes of cells that an abstention mode comes to.

    Raises:
        ArgumentError: There is no such mode.
    """
    match abstain:
        case "exclude":
            return Modes()
        case "as_category":
            return Modes(cannot_assess="as_category", na="as_category")
        case "as_negative":
            return Modes(cannot_assess="as_unmet", na="as_worst")
        case _:
            raise ArgumentError(f"abstain={abstain!r}; give one of {list(get_args(AbstainMode))}")


def read_sides(
    truth: Iterable[Any], pred: Iterable[Any], scale: Scale, abstain: AbstainMode, cluster: Any
) -> Sides:
    """The two sides of labels as they are given.

    Raises:
        ArgumentError: There is no such scale or mode, a label is outside the scale, or lengths differ.
    """
    modes = modes_of(abstain)
    left, right = (read_column(labels, scale, name) for labels, name in ((truth, "truth"), (pred, "pred")))
    if len(left.code) != len(right.code):
        raise ArgumentError(
            f"truth has {len(left.code)} labels and pred {len(right.code)}; give one of each per unit"
        )
    return Sides(
        scale=scale,
        has_category=modes.has_category,
        truth=_counted(left, scale, abstain),
        pred=_counted(right, scale, abstain),
        cluster=cluster_codes(cluster, len(left.code)),
    )


def read_column(labels: Iterable[Any], scale: Scale, what: str) -> Column:
    """One side, abstentions left without an answer.

    NA and CANNOT_ASSESS that are not on the scale are abstentions, INVALID a failure.

    Raises:
        ArgumentError: The scale is none, or a label is outside it.
    """
    if not isinstance(scale, Binary | Nominal | Ordinal | Interval):
        raise ArgumentError(
            f"scale={scale!r}; give Binary(), Nominal(labels), Ordinal(labels) or Interval(low, high)"
        )
    column = as_sequence(labels, what)
    marks: Array = np.zeros(len(column), dtype=np.int64)
    if not isinstance(column, np.ndarray) or column.dtype.kind in "OU":
        known = set() if isinstance(scale, Interval) else {str(label).casefold() for label in scale.labels}
        marks = np.array([_no_answer(label, known) for label in column], dtype=np.int64)
        column = [None if mark else label for label, mark in zip(column, marks.tolist(), strict=True)]
    nothing = np.full(len(marks), np.nan)
    if isinstance(scale, Interval):
        number = numeric_column(column, what)
        scale.check(number[~np.isnan(number)])
        code, there = np.full(len(marks), -1, dtype=np.int64), ~np.isnan(number)
    else:
        number, code = nothing, encode([column], scale, None).codes[0]
        there = code >= 0
    status = np.where(there, ANSWERED, np.where(marks > 0, marks, ABSENT))
    return Column(status, code, nothing, number)


def _no_answer(label: Any, known: set[str]) -> int:
    """What a label that is no answer stands for, as a status; 0 for any other."""
    if not isinstance(label, str) or label.casefold() in known:
        return ABSENT
    became = NO_ANSWER.get(label.strip().upper())
    return ABSENT if became is None else ABSTAINED if became == "abstained" else FAILED


def _counted(column: Column, scale: Scale, abstain: AbstainMode) -> Column:
    """The column with its abstentions as what they count as."""
    if abstain == "exclude":
        return column
    abstained = column.status == ABSTAINED
    if isinstance(scale, Interval):
        if abstain == "as_category" or scale.low is None:
            raise ArgumentError(
                f"abstain={abstain!r} on {scale}: numbers have no categories, and no lowest one without a "
                "low end; take 'exclude', or 'as_negative' with Interval(low, high)"
            )
        return replace(column, number=np.where(abstained, scale.low, column.number))
    counts_as = scale.size if abstain == "as_category" else _lowest(scale)
    return replace(column, code=np.where(abstained, counts_as, column.code))


def _lowest(scale: CategoricalScale) -> int:
    if scale.positions is None:
        raise ArgumentError(
            f"abstain='as_negative' needs a lowest category, which {scale} lacks; take 'exclude' or "
            "'as_category'"
        )
    return int(np.argmin(scale.positions))
