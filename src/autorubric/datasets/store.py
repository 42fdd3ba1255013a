"""Reading and writing dataset files; `_tables` handles tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from autorubric.datasets.csv_files import CSV_SUFFIXES, write_csv
from autorubric.datasets.fields import FieldMap, completed_for_rows, mapped_rows
from autorubric.datasets.read import FORMAT, HEADER_KEYS, Contents, DatasetReader
from autorubric.datasets.tables import contents_of_csv, contents_of_parquet, hf_rows, parquet_of, table_of
from autorubric.errors import ArgumentError, DatasetError, Fault
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json
from autorubric.support.read import (
    Document,
    dump_structured,
    format_of,
    parse_structured,
    read_structured,
    text_or_path,
)
from autorubric.support.reading_errors import Faults, FilePath
from autorubric.support.write import write_bytes_atomic, write_text_atomic

SUFFIXES: Final = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".yaml": "yaml",
    ".yml": "yaml",
    **dict.fromkeys(CSV_SUFFIXES, "csv"),
    ".parquet": "parquet",
}
"""Formats of dataset files by suffix."""


def contents_of_text(given: str | Path) -> Contents:
    """Return the dataset in JSON text, or in a file: a path, or a file name with the suffix `.json`."""
    path = text_or_path(given, "json")
    if path is not None:
        return contents_of_file(path, None)
    document = parse_structured(str(given), "json", source="RubricDataset.from_json", error=DatasetError)
    return _contents(document, None, None)


def contents_of_file(path: str | Path, rubric: Rubric | None, fields: FieldMap | None = None) -> Contents:
    """Return the dataset in a file; the suffix determines the format."""
    form = format_of(path, suffixes=SUFFIXES, error=DatasetError)
    if form == "csv":
        return contents_of_csv(path, rubric, fields)
    if form == "parquet":
        return contents_of_parquet(path, rubric, fields)
    document = read_structured(path, error=DatasetError)
    read = _contents_of_lines if form == "jsonl" else _contents
    return read(document, Path(path).parent, rubric, fields)


def write(path: str | Path, contents: Contents, ids: Sequence[str]) -> None:
    """Write a dataset to a file; the suffix determines the format."""
    form = format_of(path, suffixes=SUFFIXES, error=DatasetError)
    if form in ("csv", "parquet"):
        _refuse_loss(path, contents)
        table = table_of(contents, ids, texts=True)
        if form == "parquet":
            write_bytes_atomic(path, parquet_of(table))
        else:
            delimiter = "\t" if Path(path).suffix.lower() == ".tsv" else ","
            write_text_atomic(path, write_csv(*table, delimiter))
    elif form == "jsonl":
        write_text_atomic(path, lines_of(contents))
    else:
        write_text_atomic(path, dump_structured(mapping_of(contents), form))


def _refuse_loss(path: str | Path, contents: Contents) -> None:
    for kept in ("rubric", "ratings", "reasons"):
        if any(getattr(item, kept) for item in contents.items):
            message = f"a table cannot hold the {kept} of items; write .json, .jsonl or .yaml"
            raise ArgumentError(f"{path}: {message}")


def contents_of_mapping(given: Mapping[str, Any]) -> Contents:
    """Return the dataset in a mapping with the structure of JSON dataset files."""
    return _contents(Document(data=given, source="RubricDataset.from_dict"), None, None)


def _contents(
    document: Document, folder: Path | None, rubric: Rubric | None, fields: FieldMap | None = None
) -> Contents:
    data = document.data
    at: FilePath = ("items",)
    if isinstance(data, list):
        data, at = {"items": data}, ()
    if not isinstance(data, Mapping) or not isinstance(data.get("items"), list):
        keys = ", ".join(("items", *HEADER_KEYS))
        message = f"a dataset must be a list of items, or a mapping with a list 'items'; keys: {keys}"
        raise DatasetError(document.source, [Fault(path="", message=message)])
    header = {key: value for key, value in data.items() if key != "items"}
    placed: Iterable[tuple[FilePath, Json]] = (
        ((*at, position), item) for position, item in enumerate(data["items"])
    )
    reader = DatasetReader(document.faults(), folder)
    rows, read = _chosen_rows(list(placed), fields, rubric, reader.faults, guess=not header)
    return reader.contents(header, rows, rubric=rubric)._replace(**read)


def _chosen_rows(
    placed: list[tuple[FilePath, Json]],
    fields: FieldMap | None,
    rubric: Rubric | None,
    faults: Faults,
    *,
    guess: bool,
) -> tuple[Iterable[tuple[FilePath, Json]], dict[str, Any]]:
    """Return the rows in the dataset format, and the `fields` and `pairs` that were applied to them."""
    chosen = completed_for_rows(placed, fields or {}, rubric) if fields or guess else None
    if chosen is None:
        return placed, {}
    rows, pairs = mapped_rows(placed, chosen, rubric, faults)
    return rows, {"fields": chosen, "pairs": pairs}


def _contents_of_lines(
    document: Document, folder: Path, rubric: Rubric | None, fields: FieldMap | None = None
) -> Contents:
    lines = list(enumerate(document.data))
    header: Json = {}
    if isinstance(lines[0][1], Mapping) and "format" in lines[0][1]:
        header = lines.pop(0)[1]
    placed: Iterable[tuple[FilePath, Json]] = (((line,), item) for line, item in lines)
    reader = DatasetReader(document.faults(), folder)
    rows, read = _chosen_rows(list(placed), fields, rubric, reader.faults, guess=not header)
    return reader.contents(header, rows, header_at=(0,), rubric=rubric)._replace(**read)


def contents_of_hf(given: Any, rubric: Rubric | None, fields: FieldMap) -> Contents:
    """Return the dataset in a Hugging Face `datasets.Dataset`, which is recognised by its attributes."""
    faults = Faults("RubricDataset.from_hf")
    placed = ((("rows", position), row) for position, row in enumerate(hf_rows(given)))
    rows, _ = mapped_rows(placed, fields, rubric, faults)
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


def lines_of(contents: Contents) -> str:
    """Return the dataset as JSON lines: a header with the shared data, then one item per line."""
    rows = [header_of(contents), *(item.to_dict() for item in contents.items)]
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
