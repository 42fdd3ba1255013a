"""Reading Hugging Face datasets, which are recognised by their attributes without importing the library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autorubric._files import shortened
from autorubric.dataset._item import stored
from autorubric.errors import ArgumentError


def hf_rows(given: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a `datasets.Dataset` or `datasets.IterableDataset`, with class labels as names.

    Raises:
        ArgumentError: If `given` is neither; for a `datasets.DatasetDict` the message lists the splits.
    """
    if isinstance(given, Mapping) and given and all(map(_is_dataset, given.values())):
        splits, first = ", ".join(map(repr, given)), next(iter(given))
        raise ArgumentError(
            f"got a {type(given).__name__} with the splits {splits}; pass one of them, as dataset[{first!r}]"
        )
    if not _is_dataset(given):
        raise ArgumentError(
            f"{shortened(given)} is not a Hugging Face dataset; pass a datasets.Dataset or IterableDataset. "
            "For a DataFrame use RubricDataset.from_dataframe, for a file RubricDataset.from_file"
        )
    named = {
        column: feature.names
        for column, feature in (given.features or {}).items()
        if isinstance(getattr(feature, "names", None), list)
    }
    for row in given:
        yield {column: _cell(cell, named.get(column)) for column, cell in row.items()}


def _is_dataset(given: Any) -> bool:
    rows = hasattr(given, "__iter__") and not isinstance(given, Mapping)
    return rows and hasattr(given, "features") and hasattr(given, "column_names")


def _cell(cell: Any, names: list[str] | None) -> Any:
    if names is not None and isinstance(cell, int) and 0 <= cell < len(names):
        return names[cell]
    return stored(cell)
