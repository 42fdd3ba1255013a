"""Datasets as rows of columns or keys: CSV, Parquet, DataFrames, Hugging Face datasets, JSON lines."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.datasets.csv_files import make_distinct, read_csv, repeated_column
from autorubric.datasets.fields import (
    META,
    RUBRIC_KEYS,
    TRUTH,
    FieldMap,
    check_kind,
    guess_fields,
    missing_submission,
    pair_columns,
)
from autorubric.datasets.item import DataItem, by_name, decode_cell, is_no_label, to_json_cell
from autorubric.datasets.read import Contents, DatasetReader
from autorubric.errors import ArgumentError, DatasetError, ReplyError
from autorubric.rubric.rubric import Rubric
from autorubric.support.frames import as_pandas, is_frame
from autorubric.support.json_text import parse_json
from autorubric.support.objects import Json, fewer_gc_collections
from autorubric.support.read import load_pyarrow
from autorubric.support.reading_errors import Faults, FilePath, SyntaxFault, short_repr

if TYPE_CHECKING:
    import pandas as pd


_FIXED: Final = ("id", "submission", "description", "prompt", "reference_submission")
_TWIN: Final = "_json"
TABLE_COLUMNS: Final = (
    *("id", "submission", "submission_json", "description", "prompt", "prompt_json"),
    *("reference_submission", "reference_submission_json"),
)
"""The columns of the dataset format, without labels and metadata."""


def contents_of_csv(path: str | Path, rubric: Rubric | None, fields: FieldMap | None = None) -> Contents:
    """Return the dataset in a CSV file."""
    table = read_csv(path)

    def line_of(at: FilePath) -> int | None:
        return table.lines[at[1]] if len(at) > 1 and isinstance(at[1], int) else 1

    columns = {column: [row[at] for row in table.cells] for at, column in enumerate(table.columns)}
    reader = TableReader(Faults(str(path), line_of), rubric, "text")
    return reader.read(columns, fields, table.repeated)


def contents_of_parquet(path: str | Path, rubric: Rubric | None, fields: FieldMap | None = None) -> Contents:
    """Return the dataset in a Parquet file."""
    file = open_parquet(path)
    reader = TableReader(Faults(str(path)), rubric, "text")
    names = parquet_columns(file, reader.faults)
    with reading_parquet(path):
        cells = [column.to_pylist() for column in file.read().columns]
    return reader.read(dict(zip(names, cells, strict=True)), fields)


@contextmanager
def reading_parquet(path: str | Path) -> Iterator[None]:
    """Convert errors in reading the rows of a Parquet file to a `DatasetError`."""
    try:
        yield
    # Damaged texts and dates raise ValueErrors, which are the base of pyarrow's own errors.
    except (OSError, ValueError, OverflowError) as error:
        raise no_parquet(path, error) from None


def open_parquet(path: str | Path) -> Any:
    """Open a Parquet file without reading its rows."""
    pyarrow = load_pyarrow()
    try:
        return pyarrow.parquet.ParquetFile(str(path))
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise no_parquet(path, error) from None


def parquet_columns(file: Any, faults: Faults) -> list[str]:
    """Return the column names of a Parquet file; report repeated names as errors."""
    columns: list[str] = file.schema_arrow.names
    for column in sorted({name for name in columns if columns.count(name) > 1}):
        faults.add((), repeated_column(column))
    return columns


def no_parquet(path: str | Path, why: object) -> DatasetError:
    """Return the error for a Parquet file that cannot be read."""
    return DatasetError.whole(path, f"not a valid Parquet file: {why}")


@fewer_gc_collections()
def contents_of_frame(frame: pd.DataFrame, rubric: Rubric | None, fields: FieldMap | None = None) -> Contents:
    """Return the dataset in a DataFrame."""
    frame = as_pandas(frame)
    if not is_frame(frame):
        raise ArgumentError(f"frame must be a pandas or polars DataFrame; got {short_repr(frame)}")
    names, repeated = make_distinct(map(str, frame.columns))
    frame = frame.set_axis(names, axis=1)
    held = frame.astype(object).where(frame.notna(), None)
    columns = {name: held[name].tolist() for name in names}
    faults = Faults("RubricDataset.from_dataframe")
    return TableReader(faults, rubric, "python").read(columns, fields, repeated)


Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""The cells of each column, by name."""

CellForm: TypeAlias = Literal["text", "python", "json"]
"""What cells contain: text in CSV and Parquet files, objects in DataFrames, or JSON."""


TableRow: TypeAlias = tuple[dict[str, Json], dict[str, Json]]
"""The fields of the item in a row, and texts in JSON that replace some of them."""


class TableReader:
    """A converter of rows to items, in the columns of tables or, for JSON, the keys of items."""

    def __init__(self, faults: Faults, rubric: Rubric | None, form: CellForm) -> None:
        self.faults = faults
        self._rubric = rubric
        self._form = form
        self._own = list(DataItem.model_fields) if form == "json" else TABLE_COLUMNS
        # Labels repeat, and items copy those that are lists or mappings.
        self._label = lru_cache(maxsize=1000)(self._read_label)

    def read(
        self, columns: Columns, fields: FieldMap | None = None, repeated: Mapping[str, str] | None = None
    ) -> Contents:
        """Return the dataset in a table."""

        def cells(name: str) -> list[Json]:
            return [to_json_cell(cell) for cell in columns[name]]

        if not fields:
            keys = (*RUBRIC_KEYS, "rubric")  # in JSON, the rubric of an item
            held = ({"rubrics": to_json_cell(one)} for key in keys for one in columns.get(key, ()))
            check_kind((((), row) for row in chain([dict.fromkeys(columns)], held)), self.faults)
        chosen = guess_fields(fields or {}, [*columns], self._own, self._rubric, cells)
        pairs = self.pair_columns(chosen or {}, [*columns], repeated)
        rows = enumerate(self.rows(pairs, columns, len(columns[pairs[0][1]])))
        items = ((at := ("rows", position), self.item(row, at)) for position, row in rows)
        contents = DatasetReader(self.faults).contents({}, items, rubric=self._rubric)
        return contents._replace(fields=chosen, pairs=pairs)

    def pair_columns(
        self, fields: FieldMap, columns: Sequence[str], repeated: Mapping[str, str] | None = None
    ) -> list[tuple[str, str]]:
        """Return pairs of a column of the dataset format and the table's; see `fields.pair_columns`."""
        pairs = pair_columns(fields, columns, self._own, self._rubric, self.faults)
        is_table = self._form != "json"
        if "submission" not in fields | dict(pairs) and (columns or is_table):
            self.faults.add((), missing_submission(columns))
        for new, column in (repeated or {}).items():
            if any(given == column and not own.startswith(META) for own, given in pairs):
                self.faults.add((), repeated_column(column))
            else:
                message = f"the column {column!r} appears twice; one is read as {new!r}"
                warnings.warn(f"{self.faults.source}: {message}", stacklevel=2)
        self.faults.raise_as(DatasetError)
        labels = [(own.removeprefix(TRUTH), given) for own, given in pairs if own.startswith(TRUTH)]
        if is_table:
            self.faults.places |= {("ground_truth", name): f"column {column!r}" for name, column in labels}
        return pairs

    def rows(self, pairs: Iterable[tuple[str, str]], columns: Columns, n_rows: int) -> Iterator[TableRow]:
        """Yield the rows of a table, whose texts in JSON are not parsed."""
        parts: dict[str, dict[str, Sequence[Json]]] = {part: {} for part in ("", _TWIN, TRUTH, META)}
        encoded, kept = [], []
        for column, given in pairs:
            part, name = _part_of(column)
            parts[part][name] = self._read_column(part, name, columns[given])
            if part in (META, _TWIN):
                kept.append(column.removeprefix(META))
            if part == META and self._form == "text" and given.startswith(META):
                encoded.append(name)
        cells = (_present_cells(part, n_rows) for part in parts.values())
        for fields, twins, labels, metadata in zip(*cells, strict=True):
            fields.setdefault("submission", None)
            for name in encoded:
                if name in metadata:
                    metadata[name] = decode_cell(metadata[name])
            for name in [*twins]:
                if fields.get(name) not in (None, ""):
                    metadata[name + _TWIN] = twins.pop(name)
                    metadata = {one: metadata[one] for one in kept if one in metadata}
            for key, given_apart in (("ground_truth", labels), ("metadata", metadata)):
                own = fields.get(key)
                if not own and given_apart:
                    fields[key] = given_apart
                elif given_apart and isinstance(own, Mapping):
                    fields[key] = {**own, **given_apart}
            yield fields, twins

    def item(self, row: TableRow, at: FilePath) -> dict[str, Json]:
        """Return the fields of the item in a row; `at` is the path of the row."""
        fields, twins = row
        return fields | {name: self._parse_twin(name + _TWIN, twins[name], at) for name in twins}

    def _read_column(self, part: str, name: str, cells: Sequence[Any]) -> Sequence[Json]:
        """Return cells as JSON, and as labels in a column of labels; None if they are empty."""
        if self._form != "json":
            empty = None if self._form == "text" else ""
            cells = [(cell or empty) if cell.__class__ is str else self._cell(cell) for cell in cells]
        if part == TRUTH:
            return [self._label(name, cell) if isinstance(cell, str) else cell for cell in cells]
        if (part, name) == ("", "id"):
            # In DataFrames, Parquet files and JSON, ids may be numbers.
            return [str(cell) if isinstance(cell, int) else cell for cell in cells]
        return cells

    def _cell(self, cell: Any) -> Json:
        found = to_json_cell(cell)
        return None if self._form == "text" and found == "" else found

    def _parse_twin(self, column: str, cell: Any, at: FilePath) -> Json:
        try:
            return parse_json(cell)
        except (SyntaxFault, TypeError, RecursionError) as error:
            field = column.removesuffix(_TWIN)
            hint = f"Use {field} for plain text, or --meta {column} to keep it as metadata"
            self.faults.add((*at, column), f"{error}; {column} must contain JSON. {hint}")
            return None

    def _read_label(self, name: str, cell: str) -> Json:
        """Return the label in a text, decoded from JSON if only the decoded value is valid for the rubric."""
        if self._form == "json" or self._rubric is None:
            return cell
        criterion = self._rubric.by_name(name)
        if is_no_label(cell, criterion):
            return None
        for label in (cell, decode_cell(cell)):
            try:
                answer = criterion.parse_truth(label)
            except ReplyError:
                continue
            # A number in a file is a string and is converted; other labels are not changed.
            code = None if answer is None else answer.code
            return label if label is not cell or code is None or isinstance(code, str) else code
        return cell


def _part_of(column: str) -> tuple[str, str]:
    """Return what a column of the dataset format holds, a prefix or suffix or nothing, and its name."""
    for prefix in (TRUTH, META):
        if column.startswith(prefix):
            return prefix, column.removeprefix(prefix)
    return (_TWIN if column.endswith(_TWIN) else ""), column.removesuffix(_TWIN)


def _present_cells(columns: Columns, n_rows: int) -> Iterator[dict[str, Json]]:
    """Return the cells of each row that are not None, by column."""
    # Most columns are complete or empty.
    used = {name: cells for name, cells in columns.items() if cells.count(None) < n_rows}
    if not used:
        return ({} for _ in range(n_rows))
    rows = map(zip, repeat([*used]), zip(*used.values(), strict=True))
    if not any(None in cells for cells in used.values()):
        return map(dict, rows)
    return ({name: cell for name, cell in row if cell is not None} for row in rows)


def items_of_rows(
    placed: Iterable[tuple[FilePath, Json]], fields: FieldMap, rubric: Rubric | None, faults: Faults
) -> tuple[list[tuple[FilePath, Json]], list[tuple[str, str]]]:
    """Return rows of JSON as fields of items, other keys being metadata, and the pairs of keys."""
    rows = list(placed)
    mappings = {at: row for at, row in rows if isinstance(row, Mapping)}
    keys = list(dict.fromkeys(str(key) for row in mappings.values() for key in row))
    reader = TableReader(faults, rubric, "json")
    pairs = reader.pair_columns(fields, keys)
    submission = dict(pairs).get("submission")
    for at, row in mappings.items():
        if submission is not None and submission not in row:
            faults.add(at, f"the key {submission!r} is missing")
    columns = {given: [row.get(given) for row in mappings.values()] for _, given in pairs}
    read = reader.rows(pairs, columns, len(mappings))
    items = {at: reader.item(row, at) for at, row in zip(mappings, read, strict=True)}
    # The reader of items reports rows that are not mappings.
    return [(at, items.get(at, row)) for at, row in rows], pairs


def _to_text(given: Json) -> str:
    """Encode a value as a cell that `decode_cell` decodes."""
    if isinstance(given, str) and given and decode_cell(given) is given:
        return given
    return json.dumps(given, ensure_ascii=False)


class Table(NamedTuple):
    """A dataset as a table; a cell that is missing in a row is empty."""

    columns: list[str]
    rows: list[dict[str, Any]]


def table_of_items(contents: Contents, ids: Sequence[str], *, texts: bool) -> Table:
    """Convert a dataset to a table; with `texts`, every cell is a string for a file."""
    rows = [_row(item, item_id, contents, texts) for item, item_id in zip(contents.items, ids, strict=True)]
    used = dict.fromkeys(column for row in rows for column in row)
    twins = [column for column in TABLE_COLUMNS if column in _FIXED or column in used]
    names = contents.rubric.names if contents.rubric is not None else ()
    in_order = [column for name in names if (column := f"{TRUTH}{name}") in used]
    truth = dict.fromkeys([*in_order, *(column for column in used if column.startswith(TRUTH))])
    meta = [column for column in used if column.startswith(META)]
    return Table([*twins, *truth, *meta], rows)


def _row(item: DataItem, item_id: str, contents: Contents, texts: bool) -> dict[str, Any]:
    given = {
        "submission": item.submission,
        "prompt": contents.prompt if item.prompt is None else item.prompt,
        "reference_submission": (
            contents.reference_submission if item.reference_submission is None else item.reference_submission
        ),
    }
    row: dict[str, Any] = {"id": item_id, "description": item.description}
    for column, text in given.items():
        if texts and (text == "" or not isinstance(text, str | None)):
            row[column + _TWIN] = json.dumps(text, ensure_ascii=False)
        else:
            row[column] = text
    rubric = contents.rubric if item.rubric is None else item.rubric
    for name, label in by_name(item.ground_truth, rubric).items():
        row[TRUTH + name] = _label_text(label, rubric.by_name(name) if rubric else None) if texts else label
    for key, value in item.metadata.items():
        row[META + key] = _to_text(value) if texts else value
    return row


def _label_text(label: Json, criterion: BaseCriterion | None) -> str:
    if isinstance(label, (dict, list)):
        return json.dumps(label, ensure_ascii=False)
    answer = criterion.parse_truth(label) if criterion is not None else None
    code = label if answer is None or answer.code is None else answer.code
    return code if isinstance(code, str) else json.dumps(code, ensure_ascii=False)


def parquet_of(table: Table) -> bytes:
    """Encode a table as a Parquet file in which every column contains strings."""
    pyarrow = load_pyarrow()
    try:
        arrays = {
            column: pyarrow.array([row.get(column) for row in table.rows], type=pyarrow.string())
            for column in table.columns
        }
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ArgumentError(f"cannot write an unpaired surrogate, {half!r}, to a file") from None
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays), buffer)
    return buffer.getvalue()


def frame_of(table: Table) -> pd.DataFrame:
    """Convert a table to a DataFrame with columns of type object and None for empty cells."""
    import pandas as pd

    cells = {column: [row.get(column) for row in table.rows] for column in table.columns}
    return pd.DataFrame(cells, dtype=object)


def hf_rows(given: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a `datasets.Dataset` or `datasets.IterableDataset`, with class labels as names."""
    if isinstance(given, Mapping) and given and all(map(_is_dataset, given.values())):
        splits, first = ", ".join(map(repr, given)), next(iter(given))
        raise ArgumentError(
            f"got a {type(given).__name__} with the splits {splits}; pass one of them, as dataset[{first!r}]"
        )
    if not _is_dataset(given):
        raise ArgumentError(
            f"{short_repr(given)} is not a Hugging Face dataset; pass a datasets.Dataset or IterableDataset. "
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
    return to_json_cell(cell)
