"""Saving individual labels into the file that a dataset was read from."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from autorubric._files import write_text_atomic
from autorubric.dataset._csv import CSV_SUFFIXES, read_csv
from autorubric.dataset._fields import TRUTH, FieldMap
from autorubric.errors import ArgumentError, DatasetError, Fault
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.dataset._dataset import RubricDataset

Cells = Mapping[int, Mapping[str, Json]]
"""Labels by item position and criterion name."""

_WRITABLE: Final = (".json", ".jsonl", ".yaml", ".yml", *CSV_SUFFIXES)


def check_savable(dataset: RubricDataset, path: str | Path) -> None:
    """Check that `save_truth` can write to the file.

    Raises:
        ArgumentError: If the file is not a JSON, JSON lines, YAML or CSV file, or does not have the keys of
            the dataset format.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITABLE or (suffix not in CSV_SUFFIXES and dataset.field_map):
        what = "a file whose keys are not those of the dataset format" if suffix in _WRITABLE else suffix
        raise ArgumentError(
            f"{path}: labels cannot be saved into {what}; use `autorubric labels merge` instead"
        )


def save_truth(
    dataset: RubricDataset, path: str | Path, cells: Cells, fields: FieldMap | None = None
) -> None:
    """Save new labels of a dataset into the file that it was read from.

    In a CSV or TSV file, only the cells of these labels change, apart from unneeded quotes, empty rows and
    the encoding, which becomes UTF-8. If a criterion has no column, the column `truth.<criterion>` is added.
    Files in other formats are rewritten completely.

    Args:
        dataset: Dataset that contains the labels.
        path: Path of the file, which must not have changed since it was read.
        cells: The new labels.
        fields: Mapping of columns with which a CSV file in another format was read.

    Raises:
        DatasetError: If the number of rows in the CSV file differs from the number of items.
        FileError: If the file cannot be written.
    """
    if Path(path).suffix.lower() not in CSV_SUFFIXES:
        dataset.to_file(path)
        return
    table = read_csv(path)
    if len(table.rows) != len(dataset):
        message = f"label not saved: the file has {len(table.rows)} rows, the dataset {len(dataset)}"
        raise DatasetError(str(path), [Fault(path="", message=message)])
    columns, rows = list(table.columns), [row.cells for row in table.rows]
    for place, labels in cells.items():
        for criterion, label in labels.items():
            column = _column(fields or {}, criterion)
            if column not in columns:
                columns.append(column)
            rows[place][column] = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
    out = io.StringIO(newline="")
    ends = "\r\n" if "\r\n" in Path(path).read_bytes().decode(table.encoding) else "\n"
    writer = csv.writer(out, delimiter=table.delimiter, lineterminator=ends)
    *lead, names = table.head
    writer.writerows([*lead, [*names, *columns[len(names) :]]])
    writer.writerows([row.get(column, "") for column in columns] for row in rows)
    # Without the byte order mark, Excel would use another encoding than UTF-8.
    mark = "" if table.encoding == "utf-8" else "\ufeff"
    write_text_atomic(path, mark + out.getvalue())


def _column(fields: FieldMap, criterion: str) -> str:
    named = fields.get("truth", TRUTH)
    if isinstance(named, str):
        return named + criterion
    return named.get(criterion, TRUTH + criterion)
