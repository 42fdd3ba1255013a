"""Exporting a run in one of several formats."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from autorubric._files import load_pyarrow, nearest_key
from autorubric.errors import ArgumentError
from autorubric.eval._export._junit import junit_of
from autorubric.eval._export._markdown import markdown_of
from autorubric.eval._export._run import ExportedRun
from autorubric.eval._export._scores import scores_table

if TYPE_CHECKING:
    import pandas as pd

ExportFormat: TypeAlias = Literal["csv", "parquet", "jsonl", "markdown", "junit"]
ExportTable: TypeAlias = Literal["scores", "votes"]


def exported(
    run: ExportedRun, form: ExportFormat, table: ExportTable, fail_under: float | None, max_lost: float
) -> bytes:
    """Return the run as the content of a file; see `EvalResult.export`."""
    for given, allowed, what in ((form, ExportFormat, "format"), (table, ExportTable, "table")):
        if given not in get_args(allowed):
            raise ArgumentError(f"unknown {what} {given!r}; {nearest_key(str(given), get_args(allowed))}")
    if form == "junit":
        return junit_of(run, fail_under, max_lost)
    if form == "markdown":
        return markdown_of(run).encode("utf-8", "replace")
    frame = scores_table(run) if table == "scores" else run.votes_table()
    if form == "csv":
        return _csv(frame)
    return _parquet(frame) if form == "parquet" else _lines(frame)


def _csv(frame: pd.DataFrame) -> bytes:
    # Imported late: metrics load numpy and more, which a DataFrame has loaded already.
    from autorubric.metrics import spreadsheet_safe

    text: str = spreadsheet_safe(_flat(frame)).to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", "replace")


def _parquet(frame: pd.DataFrame) -> bytes:
    pyarrow = load_pyarrow()
    flat, buffer = _flat(frame), io.BytesIO()
    columns = {
        name: pyarrow.array(flat[name], type=pyarrow.string() if flat[name].dtype == object else None)
        for name in flat.columns
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the DataFrame with all cells converted to strings and numbers."""
    flat = frame.copy()
    for column in flat.columns:
        if flat[column].dtype == object:
            flat[column] = flat[column].map(_cell).astype(object)
    return flat


def _cell(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str) or (isinstance(cell, float) and math.isnan(cell)):
        return cell if isinstance(cell, str) else None
    return json.dumps(cell, ensure_ascii=False, default=str)


def _lines(frame: pd.DataFrame) -> bytes:
    held = frame.astype(object).where(frame.notna(), None)
    rows = (dict(zip(frame.columns, row, strict=True)) for row in held.itertuples(index=False, name=None))
    return "".join(json.dumps(row, allow_nan=False, default=_bare) + "\n" for row in rows).encode("ascii")


def _bare(cell: Any) -> Any:
    return cell.item() if hasattr(cell, "item") else str(cell)
