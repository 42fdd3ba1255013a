"""Saving individual labels into the file that a dataset was read from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
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
        ArgumentError: If the file is not a JSON, JSON lines, YAML or CSV file, or is a file other than CSV
            whose keys differ from the dataset format.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITABLE or (suffix not in CSV_SUFFIXES and dataset.field_map):
        what = "a file whose keys differ from the dataset format" if suffix in _WRITABLE else suffix
        raise ArgumentError(
            f"{path}: labels cannot be saved into {what}; use `autorubric labels merge` instead"
        )


def save_truth(
    dataset: RubricDataset, path: str | Path, cells: Cells, fields: FieldMap | None = None
) -> None:
    """Save new labels of a dataset to the file that the dataset was read from.

    In a CSV or TSV file, only the cells of these labels change; other encodings are converted to UTF-8. If
    a criterion has no column, the column `truth.<criterion>` is added. Files in other formats are rewritten
    completely.

    Args:
        dataset: Dataset that contains the labels.
        path: Path of the file, which must not have changed since it was read.
        cells: The new labels, by item position and criterion name.
        fields: Column mapping with which the CSV file was read, if it has other column names.

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
    delimiter, columns = table.delimiter, list(table.columns)
    quoted = table.is_quoted
    lines = list(_raw_rows(table.text, delimiter, is_quoted=quoted))
    head = lines[table.n_head - 1]
    rows = [row for row in lines[table.n_head :] if any(_has_text(cell, is_quoted=quoted) for cell, _ in row)]
    for place, labels in cells.items():
        for criterion, label in labels.items():
            column = _column(fields or {}, criterion)
            if column not in columns:
                columns.append(column)
                # Some rows have more cells than the header; these are empty.
                for row in (one for one in (head, *rows) if len(one) < len(columns)):
                    row.append(["", row[-1][1]])
                    row[-2][1] = delimiter
                head[-1][0] = _raw(column, head[0][0], delimiter, is_quoted=quoted)
            at = columns.index(column)
            given = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
            rows[place][at][0] = _raw(given, rows[place][at][0], delimiter, is_quoted=quoted)
    # Without the byte order mark, Excel would use another encoding than UTF-8.
    mark = "" if table.encoding == "utf-8" else "\ufeff"
    write_text_atomic(path, mark + "".join(part for row in lines for cell in row for part in cell))


def _raw_rows(text: str, delimiter: str, *, is_quoted: bool) -> Iterator[list[list[str]]]:
    """Yield the lines of a valid CSV text; each cell is a list of its raw text and the delimiter after it."""
    quoted = r'"(?:[^"]++|"")*+"|' if is_quoted else ""
    cell = rf"({quoted}[^{re.escape(delimiter)}\r\n]*)({re.escape(delimiter)}|\r\n|\r|\n|\Z)"
    row = []
    for found in re.finditer(cell, text):
        row.append(list(found.groups()))
        if found[2] != delimiter:
            yield row
            row = []


def _has_text(raw: str, *, is_quoted: bool) -> bool:
    return bool((raw[1:-1] if is_quoted and raw.startswith('"') else raw).strip())


def _raw(value: str, like: str, delimiter: str, *, is_quoted: bool) -> str:
    """Return the raw text of a cell, with quotes if they are needed or the cell `like` has them."""
    if not is_quoted:
        if {*value} & {*"\r\n", delimiter}:
            message = f"label not saved: {value!r} has a tab or line break, and the file has no quoted cells"
            raise ArgumentError(message)
        return value
    needed = like.startswith('"') or {*value} & {*'"\r\n', delimiter}
    return '"' + value.replace('"', '""') + '"' if needed else value


def _column(fields: FieldMap, criterion: str) -> str:
    named = fields.get("truth", TRUTH)
    if isinstance(named, str):
        return named + criterion
    return named.get(criterion, TRUTH + criterion)
