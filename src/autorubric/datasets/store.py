"""The path from files to datasets and back: a table of formats, which read rows and convert them to items."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from autorubric.datasets.csv_files import write_csv
from autorubric.datasets.fields import FieldMap, guess_row_fields
from autorubric.datasets.read import FORMAT, Contents, DatasetReader, Header
from autorubric.datasets.stream import has_dataset_keys, stream_lines, stream_parquet
from autorubric.datasets.tables import (
    contents_of_csv,
    contents_of_parquet,
    hf_rows,
    items_of_rows,
    parquet_of,
    table_of_items,
)
from autorubric.errors import ArgumentError, DatasetError
from autorubric.rubric.rubric import Rubric
from autorubric.support.extensions import IMPORTERS_GROUP, load_extension
from autorubric.support.objects import Json, fewer_gc_collections
from autorubric.support.read import (
    Document,
    dump_structured,
    format_of,
    parse_structured,
    read_errors_as,
    read_structured,
    text_or_path,
)
from autorubric.support.reading_errors import Faults, FilePath
from autorubric.support.write import write_bytes_atomic, write_text_atomic


class FileFormat(NamedTuple):
    """How dataset files of a format are read and written."""

    read: Callable[[Path, Rubric | None, FieldMap | None], Contents]
    write: Callable[[Path, Contents, Sequence[str]], None]
    stream: Callable[[Path, Rubric | None], Contents] | None = None  # reads items on access
    has_rows: bool = False  # one row or line per item
    saves_labels: bool = True  # whether new labels can be saved into the file that was read


def find_importer(path: str | Path) -> Any:
    """Return the importer that an installed package provides for files with this suffix, if any."""
    suffix = Path(path).suffix.lower()
    return load_extension(IMPORTERS_GROUP, suffix[1:]) if suffix and suffix not in FORMATS else None


@fewer_gc_collections()
def contents_of_file(path: str | Path, rubric: Rubric | None, fields: FieldMap | None = None) -> Contents:
    """Return the dataset in a file; the suffix determines the format."""
    return format_of(path, suffixes=FORMATS, error=DatasetError).read(Path(path), rubric, fields)


def streamed_contents(path: str | Path, rubric: Rubric | None) -> Contents:
    """Return the dataset in a file whose items are read on access."""
    suffixes = {suffix: form.stream for suffix, form in FORMATS.items() if form.stream is not None}
    stream = format_of(path, suffixes=suffixes, error=DatasetError)
    with read_errors_as(path, DatasetError):
        return stream(Path(path), rubric)


def can_stream(path: Path) -> bool:
    """Return whether a file can be read row by row: Parquet, or JSON lines in the dataset format."""
    form = FORMATS.get(path.suffix.lower())
    return form is not None and form.stream is not None and (form is not _LINES or has_dataset_keys(path))


def write(path: str | Path, contents: Contents, ids: Sequence[str]) -> None:
    """Write a dataset to a file; the suffix determines the format."""
    format_of(path, suffixes=FORMATS, error=DatasetError).write(Path(path), contents, ids)


def contents_of_text(given: str | Path) -> Contents:
    """Return the dataset in JSON text, or in a file: a path, or a file name with the suffix `.json`."""
    path = text_or_path(given, "json")
    if path is not None:
        return contents_of_file(path, None)
    document = parse_structured(str(given), "json", source="RubricDataset.from_json", error=DatasetError)
    return _read_mapping(document)


def contents_of_mapping(given: Mapping[str, Any]) -> Contents:
    """Return the dataset in a mapping with the structure of JSON dataset files."""
    return _read_mapping(Document(data=given, source="RubricDataset.from_dict"))


def _read_document(path: Path, rubric: Rubric | None, fields: FieldMap | None) -> Contents:
    return _read_mapping(read_structured(path, error=DatasetError), path.parent, rubric, fields)


def _read_mapping(
    document: Document,
    folder: Path | None = None,
    rubric: Rubric | None = None,
    fields: FieldMap | None = None,
) -> Contents:
    data = document.data
    at: FilePath = ("items",)
    if isinstance(data, list):
        data, at = {"items": data}, ()
    if not isinstance(data, Mapping) or not isinstance(data.get("items"), list):
        keys = ", ".join(("items", *Header.model_fields))
        message = f"a dataset must be a list of items, or a mapping with a list 'items'; keys: {keys}"
        raise DatasetError.whole(document.source, message)
    header = {key: value for key, value in data.items() if key != "items"}
    rows = [((*at, position), item) for position, item in enumerate(data["items"])]
    return _read_rows(DatasetReader(document.faults(), folder), header, (), rows, rubric, fields)


def _read_lines(path: Path, rubric: Rubric | None, fields: FieldMap | None) -> Contents:
    document = read_structured(path, error=DatasetError)
    rows: list[tuple[FilePath, Json]] = [((line,), row) for line, row in enumerate(document.data)]
    has_header = isinstance(rows[0][1], Mapping) and "format" in rows[0][1]
    header = rows.pop(0)[1] if has_header else {}
    return _read_rows(DatasetReader(document.faults(), path.parent), header, (0,), rows, rubric, fields)


def _read_rows(
    reader: DatasetReader,
    header: Mapping[str, Json],
    header_at: FilePath,
    rows: Sequence[tuple[FilePath, Json]],
    rubric: Rubric | None,
    fields: FieldMap | None,
) -> Contents:
    """Return the dataset in a header and rows; without a header, the fields of other keys are guessed."""
    guess = fields or not header
    if not guess or (chosen := guess_row_fields(rows, fields or {}, rubric, reader.faults)) is None:
        return reader.contents(header, rows, header_at=header_at, rubric=rubric)
    items, pairs = items_of_rows(rows, chosen, rubric, reader.faults)
    contents = reader.contents(header, items, header_at=header_at, rubric=rubric)
    return contents._replace(fields=chosen, pairs=pairs)


def _write_document(path: Path, contents: Contents, ids: Sequence[str]) -> None:
    form = "json" if path.suffix.lower() == ".json" else "yaml"
    write_text_atomic(path, dump_structured(mapping_of(contents), form))


def _write_lines(path: Path, contents: Contents, ids: Sequence[str]) -> None:
    rows = [header_of(contents), *(item.to_dict() for item in contents.items)]
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
    write_text_atomic(path, "".join(lines))


def _write_csv(path: Path, contents: Contents, ids: Sequence[str]) -> None:
    _check_table(path, contents)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    write_text_atomic(path, write_csv(*table_of_items(contents, ids, texts=True), delimiter))


def _write_parquet(path: Path, contents: Contents, ids: Sequence[str]) -> None:
    _check_table(path, contents)
    write_bytes_atomic(path, parquet_of(table_of_items(contents, ids, texts=True)))


def _check_table(path: Path, contents: Contents) -> None:
    for kept in ("rubric", "ratings", "reasons"):
        if any(getattr(item, kept) for item in contents.items):
            message = f"a table cannot hold the {kept} of items; write .json, .jsonl or .yaml"
            raise ArgumentError(f"{path}: {message}")


_DOCUMENT: Final = FileFormat(_read_document, _write_document)
_LINES: Final = FileFormat(_read_lines, _write_lines, stream_lines, has_rows=True)
_CSV: Final = FileFormat(contents_of_csv, _write_csv, has_rows=True)
_PARQUET: Final = FileFormat(
    contents_of_parquet, _write_parquet, stream_parquet, has_rows=True, saves_labels=False
)

FORMATS: Final[Mapping[str, FileFormat]] = {
    ".json": _DOCUMENT,
    ".jsonl": _LINES,
    ".yaml": _DOCUMENT,
    ".yml": _DOCUMENT,
    ".csv": _CSV,
    ".tsv": _CSV,
    ".parquet": _PARQUET,
}
"""Formats of dataset files by suffix; a new format is one row."""


def contents_of_hf(given: Any, rubric: Rubric | None, fields: FieldMap) -> Contents:
    """Return the dataset in a Hugging Face `datasets.Dataset`, which is recognised by its attributes."""
    faults = Faults("RubricDataset.from_hf")
    placed = ((("rows", position), row) for position, row in enumerate(hf_rows(given)))
    rows, _ = items_of_rows(placed, fields, rubric, faults)
    return DatasetReader(faults).contents({}, rows, rubric=rubric)


def header_of(contents: Contents) -> dict[str, Json]:
    """Return the shared data in the format of dataset files, without missing values."""
    head = {
        "name": contents.name,
        "metadata": contents.metadata or None,
        "prompt": contents.prompt,
        "reference_submission": contents.reference_submission,
        "rubric": contents.rubric.to_dict() if contents.rubric is not None else None,
    }
    return {"format": FORMAT, **{key: value for key, value in head.items() if value is not None}}


def header_snapshot(contents: Contents) -> dict[str, Json]:
    """Return the shared data for storage, with unregistered checks as qualified names."""
    rubric = contents.rubric
    stored = {"rubric": rubric.snapshot()} if rubric is not None else {}
    return {**header_of(contents._replace(rubric=None)), **stored}


def mapping_of(contents: Contents) -> dict[str, Json]:
    """Return the dataset as a mapping with the structure of JSON and YAML files."""
    return {**header_of(contents), "items": [item.to_dict() for item in contents.items]}
