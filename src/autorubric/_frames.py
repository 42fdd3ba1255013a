"""Data frames of other libraries as pandas frames."""

from __future__ import annotations

from typing import Any


def is_frame(table: Any) -> bool:
    """Return whether `table` is a data frame: it has columns and can be converted to an array."""
    return hasattr(table, "columns") and callable(getattr(table, "to_numpy", None))


def as_pandas(table: Any) -> Any:
    """Return a frame of another library, such as polars, as a pandas frame; anything else as it is."""
    if not is_frame(table) or hasattr(table, "iloc"):
        return table
    # Late, since most tables are pandas frames or lists.
    import narwhals as nw
    import pandas as pd

    return pd.DataFrame(nw.from_native(table, eager_only=True).to_dict(as_series=False), dtype=object)
