"""Import of pyarrow, an optional dependency."""

from __future__ import annotations

from typing import Any

from autorubric.errors import MissingDependencyError


def load_pyarrow() -> Any:
    """Return the module `pyarrow`, with `pyarrow.parquet`.

    Raises:
        MissingDependencyError: If pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "Parquet files need pyarrow, which is not installed: pip install pyarrow"
        ) from None
    return pyarrow
