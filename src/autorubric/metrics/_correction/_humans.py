"""Reading of items × annotators tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from autorubric._frames import is_frame
from autorubric.errors import ArgumentError
from autorubric.metrics._columns import read_rows


class Annotators(NamedTuple):
    """The annotators and their annotations.

    Attributes:
        names: Column names of a DataFrame, otherwise `"0"`, `"1"`, …
        columns: One list of `n_items` annotations per annotator.
        n_items: Number of rows.
    """

    names: tuple[str, ...]
    columns: tuple[list[Any], ...]
    n_items: int


def read_annotators(humans: Any) -> Annotators:
    """Read the columns of an items × annotators table; None and NaN are missing.

    Raises:
        ArgumentError: If `humans` is not a table or has fewer than two annotators.
    """
    rows = read_rows(humans, "humans", "(n_items, n_annotators)")
    listed = rows.tolist() if isinstance(rows, np.ndarray) else [list(row) for row in rows]
    n_annotators = len(listed[0]) if listed else 0
    if listed and n_annotators < 2:
        raise ArgumentError(
            f"humans must have at least two annotators, so that they can be compared; got {n_annotators}"
        )
    names = [str(name) for name in (humans.columns if is_frame(humans) else range(n_annotators))]
    if len(set(names)) != len(names):
        raise ArgumentError(f"the columns of humans must have unique names; got {names!r}")
    return Annotators(
        tuple(names), tuple([row[j] for row in listed] for j in range(n_annotators)), len(listed)
    )
