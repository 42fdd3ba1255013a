"""Two columns of labels on a declared scale, with missing, abstained and failed answers distinguished."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import cluster_codes, encode, numeric_column
from autorubric.metrics.core.label_rows import ABSTENTION, NO_ANSWER
from autorubric.metrics.core.read_votes import Cells, Column, Modes
from autorubric.metrics.core.resampling import check_choice
from autorubric.metrics.core.scales import (
    Array,
    Binary,
    CategoricalScale,
    Codes,
    Interval,
    Nominal,
    Ordinal,
    Scale,
    as_sequence,
)
from autorubric.metrics.core.votes_table import ABSENT, ABSTAINED, ANSWERED, FAILED
from autorubric.metrics.summaries.table_metrics import category_values, outcome_words, words_of
from autorubric.support.names import fold_name

AbstainMode: TypeAlias = Literal["exclude", "as_category", "as_negative"]
"""How abstentions are counted: not at all, as a separate category, or as the lowest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Labels of two raters on one scale."""

    scale: Scale
    truth: Column
    pred: Column
    has_category: bool = False  # whether abstention is an additional category after those of the scale
    cluster: Codes | None = None  # cluster of each unit; None if units are independent

    @property
    def size(self) -> int:
        """Number of categories of the confusion table; 0 for an interval scale."""
        return 0 if isinstance(self.scale, Interval) else self.scale.size + self.has_category

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the categories; empty for an interval scale."""
        if isinstance(self.scale, Interval):
            return ()
        return (*map(str, self.scale.labels), *((ABSTENTION,) if self.has_category else ()))

    def numbers(self, column: Column) -> Array:
        """Return a rater's answers as numbers; NaN for missing answers or if the scale has no distances."""
        if isinstance(self.scale, Interval):
            return column.number
        places = self.scale.positions
        if places is None or self.has_category:
            return np.full(len(column.code), np.nan)
        # The value of a decision from soft votes is the expected value.
        answers = np.append(places, np.nan)[column.code]
        return np.where((column.code >= 0) & ~np.isnan(column.value), column.value, answers)


def modes_of(abstain: AbstainMode) -> Modes:
    """Return the modes for counting CANNOT_ASSESS and NA that correspond to an abstention mode."""
    check_choice("abstain", abstain, AbstainMode)
    if abstain == "as_negative":
        return Modes(cannot_assess="as_unmet", na="as_worst")
    return Modes(cannot_assess=abstain, na=abstain)


def read_sides(
    truth: Iterable[Any], pred: Iterable[Any], scale: Scale, abstain: AbstainMode, cluster: Any
) -> Sides:
    modes = modes_of(abstain)
    left, right = (read_column(labels, scale, name) for labels, name in ((truth, "truth"), (pred, "pred")))
    if len(left.code) != len(right.code):
        raise ArgumentError(
            f"truth and pred must have the same length; got {len(left.code)} and {len(right.code)} labels"
        )
    return Sides(
        scale=scale,
        has_category=modes.has_category,
        truth=_convert_abstentions(left, scale, abstain),
        pred=_convert_abstentions(right, scale, abstain),
        cluster=cluster_codes(cluster, len(left.code)),
    )


def read_column(labels: Iterable[Any], scale: Scale, what: str) -> Column:
    """Read the labels of one rater, with abstentions (unless on the scale) and failures (INVALID)."""
    if not isinstance(scale, Binary | Nominal | Ordinal | Interval):
        raise ArgumentError(
            f"scale must be Binary(), Nominal(labels), Ordinal(labels) or Interval(low, high); got {scale!r}"
        )
    column = as_sequence(labels, what)
    marks: Array = np.zeros(len(column), dtype=np.int64)
    if not isinstance(column, np.ndarray) or column.dtype.kind in "OU":
        known = set() if isinstance(scale, Interval) else {fold_name(str(label)) for label in scale.labels}
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
    """Return the status of a label that is not an answer; 0 (absent) for any other label."""
    if not isinstance(label, str) or fold_name(label) in known:
        return ABSENT
    became = NO_ANSWER.get(fold_name(label).upper())
    return ABSENT if became is None else ABSTAINED if became == "abstained" else FAILED


def _convert_abstentions(column: Column, scale: Scale, abstain: AbstainMode) -> Column:
    """Return the column with its abstentions converted as required by the abstention mode."""
    if abstain == "exclude":
        return column
    abstained = column.status == ABSTAINED
    if isinstance(scale, Interval):
        if abstain == "as_category" or scale.low is None:
            raise ArgumentError(
                f"abstain={abstain!r} is not supported on {scale}; use 'exclude', or 'as_negative' with "
                "Interval(low, high)"
            )
        return replace(column, number=np.where(abstained, scale.low, column.number))
    counts_as = scale.size if abstain == "as_category" else _lowest_category(scale)
    return replace(column, code=np.where(abstained, counts_as, column.code))


def _lowest_category(scale: CategoricalScale) -> int:
    if scale.positions is None:
        raise ArgumentError(
            f"abstain='as_negative' needs a lowest category, which {scale} does not have; use 'exclude' or "
            "'as_category'"
        )
    return int(np.argmin(scale.positions))


def scale_at(cells: Cells, place: int) -> Scale | None:
    """Return the scale of the criterion at `place`; None if there are no metrics for its answers."""
    criterion = cells.criteria[place]
    match criterion.level:
        case "binary":
            return Binary()
        case "nominal":
            return Nominal(_number_repeated(words_of(criterion)))
        case "ordinal":
            return Ordinal(_number_repeated(words_of(criterion)), category_values(criterion))
        case "interval":
            return Interval()
        case "ranking" if place in cells.outcomes:
            return Nominal(outcome_words(cells, place))
        case _:
            return None


def _number_repeated(labels: Sequence[str]) -> tuple[str, ...]:
    if len(set(labels)) == len(labels):
        return tuple(labels)
    return tuple(f"{label} ({at})" for at, label in enumerate(labels))
