"""Long tables of labels, one row a label, as people have them: frames, CSV rows, lists of dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from autorubric.errors import ArgumentError
from autorubric.metrics._item_scores import PANEL, TRUTH, Rater
from autorubric.metrics._scales import is_missing
from autorubric.values import VoteStatus

if TYPE_CHECKING:
    import pandas as pd

LabelTable: TypeAlias = "pd.DataFrame | Iterable[Mapping[str, Any]]"
"""Rows with `item_id, criterion, rater, label` (or `value`), and where known `rater_kind` (or `rater_type`:
human, judge or llm, panel, truth), `sample`, `order` and `status`."""

_KINDS: Mapping[str, str] = {
    "human": "human", "judge": "judge", "llm": "judge", "panel": "panel", "truth": "truth", "gold": "truth",
}  # fmt: skip
NEEDED = ("item_id", "criterion", "rater")
"""Columns without which no long table is one."""


class LabelRow(NamedTuple):
    """One label.

    Attributes:
        item_id: The item.
        criterion: The criterion's name.
        rater: Who gave it.
        sample: Which of the rater's passes it is from; None for a decision, or where the table says nothing.
        order: Candidates in the order shown.
        label: The label as it stands.
        number: The same as a number, where the table has it apart.
        status: What became of the vote; None where the table says nothing.
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
    """The rows of a long table.

    Raises:
        ArgumentError: It is no table, lacks a column, or a row has a kind of rater or a status that is none.
    """
    return [_row(number, row) for number, row in enumerate(_mappings(table))]


def _mappings(table: Any) -> Iterator[Mapping[str, Any]]:
    records = getattr(table, "to_dict", None)
    rows = records("records") if callable(records) and hasattr(table, "columns") else table
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise ArgumentError(
            f"result is {type(table).__name__}; give an EvalResult, or a long table of labels: a DataFrame "
            "or rows with item_id, criterion, rater and label"
        )
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ArgumentError(
                f"row {number} of the label table is {type(row).__name__}; give a mapping with item_id, "
                "criterion, rater and label"
            )
        yield row


def _row(number: int, row: Mapping[str, Any]) -> LabelRow:
    missing = [name for name in NEEDED if is_missing(row.get(name))]
    if not ("label" in row or "value" in row):
        missing.append("label")
    if missing:
        raise ArgumentError(
            f"row {number} of the label table has no {', '.join(missing)}; its columns are {list(row)!r}, "
            "and item_id, criterion, rater and label (or value) are needed"
        )
    status = row.get("status")
    if not is_missing(status) and status not in (*get_args(VoteStatus), "not_applicable"):
        raise ArgumentError(f"row {number} of the label table has the status {status!r}, which is none")
    label = row["label"] if "label" in row else row["value"]
    return LabelRow(
        item_id=str(row["item_id"]),
        criterion=str(row["criterion"]),
        rater=_rater(number, row),
        sample=_whole(number, row.get("sample")),
        order=None if is_missing(row.get("order")) else str(row["order"]),
        label=None if is_missing(label) or label == "" else label,
        number=_number(row) if "label" in row else None,
        status=None if is_missing(status) else str(status),
    )


def _number(row: Mapping[str, Any]) -> float | None:
    """The answer as a number: in its own units, or, where it has no label either, on [0, 1]."""
    for name in ("number", "value") if is_missing(row["label"]) else ("number",):
        if not is_missing(row.get(name)):
            return float(row[name])
    return None


def _rater(number: int, row: Mapping[str, Any]) -> Rater:
    name = str(row["rater"])
    given = row.get("rater_kind", row.get("rater_type"))
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
                f"row {number} of the label table has a rater of kind {given!r}; give one of {list(_KINDS)}"
            )


def _whole(number: int, sample: Any) -> int | None:
    if is_missing(sample) or sample == "":
        return None
    try:
        return int(sample)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"row {number} of the label table has the sample {sample!r}; give 0, 1, …"
        ) from None
