"""The bound on files that are read whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autorubric import DatasetError, FileError, Rubric, RubricDataset


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("big.yaml", Rubric.from_file),
        ("big.json", RubricDataset.from_file),
        ("big.csv", RubricDataset.from_file),
    ],
)
def test_too_large_files_are_refused_unread(
    name: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    """The error names the file, its size, the bound and what to do; a sparse file costs no memory."""
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(
        FileError, match=r"has 1,073,741,825 bytes.*at most 1,073,741,824: split it"
    ) as caught:
        read(path)
    assert name in str(caught.value)
    assert isinstance(caught.value, DatasetError) == (name != "big.yaml")
