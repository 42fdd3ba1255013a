"""Items × annotators tables, read column by column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from autorubric.errors import ArgumentError


class Annotators(NamedTuple):
    """Who annotated, and what.

    Attributes:
        names: Column names of a frame, else `"0"`, `"1"`, …
        columns: One list of annotations per annotator, each of `n_items`.
        n_items: Rows.
    """

    names: tuple[str, ...]
    columns: tuple[list[Any], ...]
    n_items: int


def read_annotators(humans: Any) -> Annotators:
    """The columns of an items × annotators table; None and NaN are missing.

    Raises:
        ArgumentError: It is no table, or has fewer than two annotators.
    """
    named = getattr(humans, "columns", None)
    rows = humans.to_numpy(dtype=object) if named is not None else humans
    if isinstance(rows, str | bytes) or not hasattr(rows, "__iter__"):
        raise ArgumentError(f"humans is {humans!r}; give a table (n_items, n_annotators)")
    if isinstance(rows, np.ndarray) and rows.ndim != 2:
        raise ArgumentError(f"humans has shape {rows.shape}; give (n_items, n_annotators)")
    listed = [list(row) for row in rows]
    widths = {len(row) for row in listed}
    if len(widths) > 1:
        raise ArgumentError("humans has rows of different lengths; give None where an annotation is missing")
    n_annotators = widths.pop() if widths else 0
    if listed and n_annotators < 2:
        raise ArgumentError(
            f"humans has {n_annotators} annotator; each is compared with the rest: give at least two"
        )
    names = [str(name) for name in named] if named is not None else [str(j) for j in range(n_annotators)]
    return Annotators(
        tuple(names), tuple([row[j] for row in listed] for j in range(n_annotators)), len(listed)
    )
