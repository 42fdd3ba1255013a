"""Conversion between pandas DataFrames and those of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from autorubric.errors import ArgumentError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


Library: TypeAlias = Literal["pandas", "polars"]
_LIBRARIES: Final = ("pandas", "polars")
_PLAIN: Final = {"string", "integer", "floating", "boolean", "mixed-integer-float", "empty", "datetime"}
"""Types inferred by pandas that polars has column types for; other columns become text."""


def is_frame(table: Any) -> bool:
    """Return whether `table` has columns and can be converted to an array, like a DataFrame."""
    return hasattr(table, "columns") and callable(getattr(table, "to_numpy", None))


def as_pandas(table: Any) -> Any:
    """Convert a DataFrame or LazyFrame, for example of polars, to pandas; return other values unchanged."""
    if type(table).__name__ == "LazyFrame":
        table = table.collect()
    if not is_frame(table) or hasattr(table, "iloc"):
        return table
    # Imported late, since most tables are pandas DataFrames or lists.
    import narwhals as nw
    import pandas as pd

    return pd.DataFrame(nw.from_native(table, eager_only=True).to_dict(as_series=False), dtype=object)


def in_library(frame: pd.DataFrame, library: Library) -> pd.DataFrame | pl.DataFrame:
    """Convert a pandas DataFrame to `library`; missing values become null, and mixed-type columns text."""
    if library not in _LIBRARIES:
        raise ArgumentError(f"library must be one of {', '.join(map(repr, _LIBRARIES))}; got {library!r}")
    if library == "pandas":
        return frame
    try:
        from polars import DataFrame  # imported only if requested
    except ImportError as error:
        raise MissingDependencyError("library='polars' needs polars: pip install polars") from error
    from pandas.api.types import infer_dtype

    columns = {}
    for name, column in frame.items():
        cells = [
            None if missing else cell for cell, missing in zip(column.tolist(), column.isna(), strict=True)
        ]
        plain = infer_dtype(column, skipna=True) in _PLAIN
        columns[str(name)] = cells if plain else [None if cell is None else str(cell) for cell in cells]
    return DataFrame(columns, infer_schema_length=None)
