"""Labels of single cells, saved into the file that a dataset was read from."""

from __future__ import annotations

import csv
import io
import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from autorubric._files import read_text, write_text_atomic
from autorubric.dataset._csv import delimiter_of, read_csv
from autorubric.dataset._fields import TRUTH, FieldMap
from autorubric.errors import ArgumentError, DatasetError, Fault
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.dataset._dataset import RubricDataset

Cells = Mapping[int, Mapping[str, Json]]
"""Labels by the item's position and the criterion's name."""

_WRITABLE: Final = (".json", ".jsonl", ".yaml", ".yml", ".csv")


def check_savable(dataset: RubricDataset, path: str | Path) -> None:
    """Check that `save_truth` can write the file.

    Raises:
        ArgumentError: If it is not a JSON, JSON lines, YAML or CSV file, or its keys are not those of the
            dataset format.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITABLE or (suffix != ".csv" and dataset.field_map):
        what = "a file whose keys are not those of the dataset format" if suffix in _WRITABLE else suffix
        raise ArgumentError(
            f"{path}: labels cannot be saved into {what}; leave it out, and use `autorubric labels merge`"
        )


def save_truth(
    dataset: RubricDataset, path: str | Path, cells: Cells, fields: FieldMap | None = None
) -> None:
    """Save a dataset's new labels into the file that it was read from.

    In a CSV file only the values of the labels' cells change; quotes are written where they are needed. A
    criterion without a column gets `truth.<criterion>`. Other files are written whole.

    Args:
        dataset: The dataset with the labels.
        path: The file, in which nothing else has changed since it was read.
        cells: The new labels.
        fields: The columns that the file was read by, if it is a CSV file with columns of other names.

    Raises:
        DatasetError: If the CSV file has another number of rows than the dataset.
        FileError: If the file cannot be written.
    """
    if Path(path).suffix.lower() != ".csv":
        dataset.to_file(path)
        return
    table = read_csv(path)
    if len(table.rows) != len(dataset):
        message = f"{len(table.rows)} rows, and {len(dataset)} when it was read; the label was not saved"
        raise DatasetError(str(path), [Fault(path="", message=message)])
    columns, rows = list(table.columns), [row.cells for row in table.rows]
    for place, labels in cells.items():
        for criterion, label in labels.items():
            column = _column(fields or {}, criterion)
            if column not in columns:
                columns.append(column)
            rows[place][column] = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
    text = read_text(path, error=DatasetError)
    out = io.StringIO(newline="")
    ends = "\r\n" if "\r\n" in text else "\n"
    writer = csv.DictWriter(out, columns, restval="", delimiter=delimiter_of(text), lineterminator=ends)
    writer.writeheader()
    writer.writerows(rows)
    # Excel reads a file without its mark in another encoding.
    mark = "\ufeff" if Path(path).read_bytes().startswith(BOM_UTF8) else ""
    write_text_atomic(path, mark + out.getvalue())


def _column(fields: FieldMap, criterion: str) -> str:
    named = fields.get("truth", TRUTH)
    if isinstance(named, str):
        return named + criterion
    return named.get(criterion, TRUTH + criterion)
