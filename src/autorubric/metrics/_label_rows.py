"""Long tables of labels with one row per label: DataFrames, CSV rows, lists of dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from autorubric._frames import as_pandas, is_frame
from autorubric.errors import ArgumentError
from autorubric.metrics._item_scores import PANEL, TRUTH, Rater
from autorubric.metrics._scales import is_missing
from autorubric.values import VoteStatus

if TYPE_CHECKING:
    import pandas as pd

LabelTable: TypeAlias = "pd.DataFrame | Iterable[Mapping[str, Any]]"
"""Rows with `item_id, criterion, rater, label` (or `value`), and optionally `rater_kind` (or `rater_type`:
human, judge or llm, panel, truth), `sample`, `order` and `status`."""

_KINDS: Mapping[str, str] = {
    "human": "human", "judge": "judge", "llm": "judge", "panel": "panel", "truth": "truth", "gold": "truth",
}  # fmt: skip
NEEDED = ("item_id", "criterion", "rater")
"""Required columns of a long table."""

_READ = (
    *NEEDED, "label", "value", "rater_kind", "rater_type", "sample", "order", "number", "status",
)  # fmt: skip


class LabelRow(NamedTuple):
    """A row of a label table.

    Attributes:
        item_id: Id of the item.
        criterion: Name of the criterion.
        rater: Rater who gave the label.
        sample: Index of the rater's pass; None for a decision, or if the table does not specify it.
        order: Order in which the candidates were shown.
        label: Raw label from the table.
        number: The label as a number, if the table has a separate column for it.
        status: Status of the vote; None if the table does not specify it.
    """

    item_id: str
    criterion: str
    rater: Rater
    sample: int | None
    order: str | None
    label: Any
    number: float | None
    status: str | None


def label_rows(table: Any) -> list[LabelRow]:
    """Read the rows of a long table.

    Raises:
        ArgumentError: If `table` is not a table, lacks a column, or has an unknown kind of rater or status.
    """
    table = as_pandas(table)
    if is_frame(table) and (rows := _frame_rows(table)) is not None:
        return rows
    return [_row(number, row) for number, row in enumerate(_mappings(table))]


def _frame_rows(frame: Any) -> list[LabelRow] | None:
    """Read a DataFrame by column, parsing each distinct value once; None if it must be read by row."""
    names = list(frame.columns)
    if not {*NEEDED}.issubset(names) or len(set(names)) != len(names) or not {"label", "value"} & set(names):
        return None
    columns = {name: frame[name].tolist() for name in names if name in _READ}
    nothing = [None] * len(frame)
    kinds = columns.get("rater_kind", columns.get("rater_type", nothing))
    labels = columns["label" if "label" in columns else "value"]
    try:
        numbers = list(
            zip(
                _each(labels, is_missing),
                columns.get("number", nothing),
                columns.get("value", nothing),
                strict=True,
            )
        )
        return list(
            map(
                LabelRow,
                _each(columns["item_id"], _name),
                _each(columns["criterion"], _name),
                _each(list(zip(columns["rater"], kinds, strict=True)), _named_rater),
                _each(columns.get("sample", nothing), lambda sample: _whole(0, sample)),
                _each(columns.get("order", nothing), lambda order: None if is_missing(order) else str(order)),
                _each(labels, lambda label: None if is_missing(label) or label == "" else label),
                nothing if "label" not in columns else _each(numbers, lambda given: _number(*given)),
                _each(columns.get("status", nothing), lambda status: _status(0, status)),
            )
        )
    except (ArgumentError, TypeError, ValueError):
        # Reading by row reports where an error is, and also accepts values that cannot be hashed.
        return None


def _each(column: list[Any], read: Callable[[Any], Any]) -> list[Any]:
    """Apply `read` to each value, calling it once per distinct type and value."""
    known: dict[Any, Any] = {}
    found = []
    for value in column:
        key = (value.__class__, value)
        if key not in known:
            known[key] = read(value)
        found.append(known[key])
    return found


def _name(value: Any) -> str:
    if is_missing(value):
        raise ValueError("no name")
    return str(value)


def _named_rater(given: tuple[Any, Any]) -> Rater:
    return _rater(0, _name(given[0]), given[1])


def _mappings(table: Any) -> Iterator[Mapping[str, Any]]:
    records = getattr(table, "to_dict", None)
    rows = records("records") if callable(records) and hasattr(table, "columns") else table
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise ArgumentError(
            "result must be an EvalResult or a table of labels (a DataFrame or rows with item_id, criterion, "
            f"rater and label); got {type(table).__name__}"
        )
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ArgumentError(
                f"row {number} of the label table must be a mapping with item_id, criterion, rater and "
                f"label; got {type(row).__name__}"
            )
        yield row


def _row(number: int, row: Mapping[str, Any]) -> LabelRow:
    missing = [name for name in NEEDED if is_missing(row.get(name))]
    if not ("label" in row or "value" in row):
        missing.append("label")
    if missing:
        raise ArgumentError(
            f"row {number} of the label table has no {', '.join(missing)}; columns: {list(row)!r}. "
            "Required columns: item_id, criterion, rater and label (or value)"
        )
    label = row["label"] if "label" in row else row["value"]
    return LabelRow(
        item_id=str(row["item_id"]),
        criterion=str(row["criterion"]),
        rater=_rater(number, str(row["rater"]), row.get("rater_kind", row.get("rater_type"))),
        sample=_whole(number, row.get("sample")),
        order=None if is_missing(row.get("order")) else str(row["order"]),
        label=None if is_missing(label) or label == "" else label,
        number=_number(is_missing(label), row.get("number"), row.get("value")) if "label" in row else None,
        status=_status(number, row.get("status")),
    )


def _number(unlabelled: bool, number: Any, value: Any) -> float | None:
    """Return the row's number or, if it has neither a label nor a number, its value in [0, 1]."""
    for given in (number, value) if unlabelled else (number,):
        if not is_missing(given):
            return float(given)
    return None


def _status(number: int, status: Any) -> str | None:
    if is_missing(status):
        return None
    if status not in (*get_args(VoteStatus), "not_applicable"):
        raise ArgumentError(f"row {number} of the label table has an unknown status {status!r}")
    return str(status)


def _rater(number: int, name: str, given: Any) -> Rater:
    if is_missing(given) or given == "":
        return {"truth": TRUTH, "panel": PANEL}.get(name, ("judge", name))
    match _KINDS.get(str(given).lower()):
        case "human":
            return ("human", name)
        case "judge":
            return ("judge", name)
        case "panel":
            return PANEL
        case "truth":
            return TRUTH
        case _:
            raise ArgumentError(
                f"row {number} of the label table: rater kind must be one of {list(_KINDS)}; got {given!r}"
            )


def _whole(number: int, sample: Any) -> int | None:
    if is_missing(sample) or sample == "":
        return None
    try:
        return int(sample)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"row {number} of the label table: sample must be an integer; got {sample!r}"
        ) from None
