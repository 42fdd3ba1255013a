"""Reading of label tables and of files saved by annotation pages, and conversion of labels to ratings."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from autorubric.criteria.base import BaseCriterion
from autorubric.datasets.csv_files import CSV_SUFFIXES, CsvTable, read_csv, repeated_column
from autorubric.datasets.fields import ID_NAMES, are_labels, columns_of_criteria, people_columns, plain_name
from autorubric.datasets.item import DataItem, all_by_name, bind_item, by_name, decode_cell, is_no_label
from autorubric.errors import DatasetError, ReplyError
from autorubric.rubric.rubric import Rubric
from autorubric.support.field_types import NonEmptyText
from autorubric.support.names import match_name, merge_names
from autorubric.support.objects import Json
from autorubric.support.read import format_fault, format_of, read_structured
from autorubric.support.reading_errors import Faults, FilePath, nearest_key, short_repr

_NAMES: Final = {
    "item_id": f"item_id|id|item|{ID_NAMES} conversation conv",
    "criterion": "criterion|criteria question item_criterion",
    "rater": "rater",
    "value": "value|rating label score verdict",
}
"""Names of the columns of label tables; those before a bar come first."""
_VALUES: Final = ("value", "rating", "label", "score", "verdict", "stars", "grade", "points")
_IS_ID: Final = re.compile(r"(?:^|[_.])(?:uu|u)?id$").search
_IS_NUMBER: Final = re.compile(r"[\d\s.]+").fullmatch
_LAYOUTS: Final = (
    "use one row per label (item_id, criterion, rater, and value or probabilities) or one column per "
    "annotator (item_id, criterion and names; select them with --rater NAME)"
)
_SUFFIXES: Final = {**dict.fromkeys(CSV_SUFFIXES, "csv"), ".jsonl": "jsonl"}


LABELS_FORMAT: Final = 1
"""The newest format of label files that this version reads."""


class Label(BaseModel):
    """One label in a label file; `time`, `sha256` and `reason` are empty if they are missing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item_id: NonEmptyText
    criterion: NonEmptyText
    rater: NonEmptyText
    value: Any
    time: str = ""  # in ISO 8601, UTC
    sha256: str = ""  # hash of the text that the rater saw
    reason: str = ""
    source: ClassVar[str]
    """File name and line number, which are set for each label when its file is read."""


class LongRow(NamedTuple):
    """One row of a long label table. The page on formats shows the attributes.

    Attributes:
        item_id: Id of the item.
        criterion: Name of the criterion.
        rater: Name of the rater.
        rater_type: Type of the rater, `human` or `llm`; empty if the table has no types.
        value: Raw text of the label.
        sample: Index of the rater's sample, from 0.
        reason: The rater's reason; empty if the table has no reasons.
        confidence: Probability in [0, 1] that the label is correct; None if the table has no confidences.
        line: Line number in the file.
        probabilities: Probabilities of the answers, by label or by part and label; None if there are none.
    """

    item_id: str
    criterion: str
    rater: str
    rater_type: str
    value: str
    sample: int
    reason: str
    confidence: float | None
    line: int
    probabilities: Mapping[str, Any] | None = None


def _likely_columns(columns: Collection[str], people: Collection[str]) -> dict[str, list[str]]:
    """Return the likely columns of a label table by key; without `rater` and `value` if it is wide."""
    found = {}
    for key, names in _NAMES.items():
        likely = [[one for one in columns if plain_name(one) in part.split()] for part in names.split("|")]
        found[key] = [key] if key in columns else next(filter(None, likely), [])
    others = [one for one in columns if plain_name(one).endswith("_id") and one not in people]
    found["item_id"] = found["item_id"] or others
    found["rater"] = found["rater"] or [*people]
    if not {"rater", "value"} & {*columns} and not (found["rater"] and found["value"]):
        # A wide table may have the items' questions next to the labels.
        found["criterion"] = [one for one in found["criterion"] if plain_name(one) != "question"]
        if not people:
            del found["rater"], found["value"]
    return found


def read_long_table(
    path: str | Path,
    tell: Callable[[str], None] | None = None,
    *,
    criteria: Mapping[str, BaseCriterion] | None = None,
    labels: Collection[str] = (),
    raters: Collection[str] | None = None,
    probabilities: Mapping[str, str] | None = None,
) -> list[LongRow]:
    """Read labels from a table with one row per label or one column per rater, or from an annotation page.

    Names of raters that are equal after folding are merged, with a warning.

    criteria: Criteria by name; a column named like one contains its labels if no column has the criteria.
    labels: Further values that are labels.
    raters: Raters to read if they are columns.
    probabilities: Labels by the columns that contain their probabilities.
    tell: Receives the columns that were chosen, if they have other names.
    """
    rows = _read_rows(path, tell, criteria or {}, labels, raters or (), probabilities or {})
    names = merge_names((row.rater for row in rows), f"{path}: raters")
    return [row._replace(rater=names[row.rater]) for row in rows]


def _read_rows(
    path: str | Path,
    tell: Callable[[str], None] | None,
    criteria: Mapping[str, BaseCriterion],
    values: Collection[str],
    raters: Collection[str],
    probabilities: Mapping[str, str],
) -> list[LongRow]:
    faults = Faults.by_line(str(path), first=1)
    if format_of(path, suffixes=_SUFFIXES, error=DatasetError) == "jsonl":
        return _read_annotations(path)
    table = read_csv(path)
    if absent := [column for column in probabilities if column not in table.columns]:
        faults.add((), f"no column {absent[0]!r} for probabilities; columns: {', '.join(table.columns)}")
    if repeated := [one for one, n in Counter(probabilities.values()).items() if n > 1]:
        faults.add((), f"probabilities= names the label {repeated[0]!r} for several columns")
    faults.raise_as(DatasetError)

    # Numbers may be ids, and any name is a valid text, but nobody is called like other labels.
    has_values = any(plain_name(one).rpartition("_")[2] in _VALUES for one in table.columns)
    known = [one for one in criteria.values() if not (has_values and one.level == "text")]
    named = [match_name(rater, table.columns) for rater in raters]

    def is_labelled(column: str) -> bool:
        held = {cells[column] for _, cells in table.rows}.difference(("",))
        if column in named or (has_values and (not criteria or all(map(_IS_NUMBER, held)))):
            return column in named
        own = [one for one in held if any(are_labels([one], criterion) for criterion in known)]
        return not criteria or (bool(held) and held.issubset([*own, *values]))

    people = people_columns(table.columns, is_labelled)
    found = _likely_columns(table.columns, people)
    if (probabilities or "probabilities" in table.columns) and not found.get("value"):
        found = _likely_columns([*table.columns, "value"], people)
    chosen = {key: likely[0] for key, likely in found.items() if len(likely) == 1}
    rest = [one for one in table.columns if one not in {*chosen.values(), *LongRow._fields}]
    labels: dict[str, str] = {}
    if "criterion" not in table.columns:
        for name, _, column in columns_of_criteria(rest, criteria):
            labels.setdefault(name, column)
    if named and "item_id" in chosen and not {None, *chosen.values()} & {*named}:
        return _wide_rows(table, chosen, {one: one for one in named if one})
    others = [one for one in rest if one not in labels.values()]
    if "rater" not in found and labels and others:
        warnings.warn(f"{path}: not named like criteria and not read: {', '.join(others)}", stacklevel=3)
    if labels:
        chosen.pop("value", None)
    elif "rater" in found and not found["value"] and len(rest) == 1:
        chosen["value"] = rest[0]
    for column in table.repeated.values():
        if "rater" not in found or column in {*LongRow._fields, *chosen.values(), *labels.values()}:
            faults.add((), repeated_column(column))
    faults.raise_as(DatasetError)
    renamed = [f"{key}={column}" for key, column in {**chosen, **labels}.items() if key != column]
    if tell is not None and renamed:
        tell(f"columns of {path}: {', '.join(renamed)}")
    if labels and "item_id" in chosen and len(found.get("rater", ())) < 2:
        return _wide_rows(table, chosen, labels, Path(path).stem)
    wide = {one: plain_name(one) for one in table.columns if one not in chosen.values()}
    # Beside a column of values, and where a column holds ids, other columns may name people.
    is_unclear = len(wide) > 1 and not {*_VALUES}.isdisjoint(wide.values())
    if "rater" not in found and "item_id" in chosen and not (is_unclear or any(map(_IS_ID, wide.values()))):
        return _wide_rows(table, chosen, {one: one for one in wide})
    if len(criteria) == 1 and not found["criterion"]:
        chosen["criterion"] = ""
    if missing := [name for name in _NAMES if name not in chosen]:
        message = f"column {', '.join(map(repr, missing))} not found; {_LAYOUTS}"
        faults.add((), f"not a table of labels: {message}. Columns: {', '.join(table.columns)}")
        faults.raise_as(DatasetError)
    return _long_rows(table, chosen, probabilities, faults)


def _wide_rows(
    table: CsvTable, chosen: Mapping[str, str], labels: Mapping[str, str], rater: str = ""
) -> list[LongRow]:
    """Return labels by rater or, with a `rater` for tables without people, by criterion and rater."""
    item, criterion, people = (chosen.get(name, "") for name in ("item_id", "criterion", "rater"))

    def who(name: str, cells: Mapping[str, str]) -> tuple[str, str]:
        return (name, cells.get(people, rater)) if rater else (cells.get(criterion, ""), name)

    return [
        LongRow(cells[item], *who(name, cells), cells.get("rater_type", "human"), value, 0, "", None, line)
        for line, cells in table.rows
        for name, column in labels.items()
        if (value := cells[column]).strip()
    ]


def _long_rows(
    table: CsvTable, chosen: Mapping[str, str], columns: Mapping[str, str], faults: Faults
) -> list[LongRow]:
    rows = [
        LongRow(
            **{name: cells.get(column, "") for name, column in chosen.items()},
            rater_type=cells.get("rater_type", ""),
            sample=_sample(cells.get("sample") or "0", line, faults),
            reason=cells.get("reason", ""),
            confidence=_share(cells.get("confidence", ""), "confidence", line, faults),
            line=line,
            probabilities=_probabilities(cells, columns, line, faults),
        )
        for line, cells in table.rows
    ]
    faults.raise_as(DatasetError)
    return rows


def read_labels(paths: Iterable[str | Path]) -> list[Label]:
    """Read the labels in JSON lines files saved by annotation pages; header lines are skipped.

    Names of raters that are equal after folding are merged, with a warning.
    """
    labels = [label for path in paths for label in _read_label_file(path)]
    names = merge_names((label.rater for label in labels), "raters")
    return [one.model_copy(update={"rater": names[one.rater]}) for one in labels]


def _read_label_file(path: str | Path) -> Iterator[Label]:
    document = read_structured(path, suffixes={".jsonl": "jsonl"}, error=DatasetError)
    faults, name = document.faults(), Path(path).name
    labels = []
    for position, row in enumerate(document.data):
        at: FilePath = (position,)
        if isinstance(row, Mapping) and "format" in row:
            if fault := format_fault(row["format"], LABELS_FORMAT):
                faults.add(at, fault)
        elif (label := faults.validate(Label, row, at)) is not None:
            # Not a field, because a file must not contain it.
            label.__dict__["source"] = f"{name}:{document.line_of(at)}"
            labels.append(label)
    faults.raise_as(DatasetError)
    yield from labels


def _read_annotations(path: str | Path) -> list[LongRow]:
    """Read labels saved by annotation pages or `autorubric view`; a later one replaces an earlier one."""
    rows = {}
    for label in read_labels([path]):
        cell = label.item_id, label.criterion, label.rater
        value = label.value if isinstance(label.value, str) else json.dumps(label.value, ensure_ascii=False)
        line = int(label.source.rpartition(":")[2])
        rows[cell] = LongRow(*cell, "human", value, 0, "", None, line)
    return list(rows.values())


def _sample(text: str, line: int, faults: Faults) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    faults.add((line,), f"sample must be a non-negative integer; got {text!r}")
    return 0


def _share(text: str, name: str, line: int, faults: Faults) -> float | None:
    if not text.strip():
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if 0.0 <= share <= 1.0:
        return share
    faults.add((line,), f"{name} must be a number from 0 to 1, or empty; got {text!r}")
    return None


def _probabilities(
    cells: Mapping[str, str], columns: Mapping[str, str], line: int, faults: Faults
) -> Mapping[str, Any] | None:
    """Return the probabilities in a row: from columns by label, or from a JSON object in one column."""
    if columns:
        shares = {label: _share(cells[name], name, line, faults) for name, label in columns.items()}
        return {label: share for label, share in shares.items() if share is not None} or None
    text = cells.get("probabilities", "")
    if not text.strip():
        return None
    if isinstance(found := decode_cell(text), dict) and found:
        return found
    told = "probabilities must be a JSON object of different labels with numbers"
    faults.add((line,), f"{told}; got {short_repr(text)}")
    return None


def label_of(criterion: BaseCriterion, text: str) -> Json:
    """Return the label in a table cell; JSON is decoded if only the decoded value is a valid label."""
    try:
        criterion.parse_truth(text)
    except ReplyError:
        decoded = decode_cell(text)
        if isinstance(decoded, str):
            raise
        criterion.parse_truth(decoded)
        return decoded
    return text


def attach_ratings(
    path: str | Path,
    items: Mapping[str, tuple[DataItem, Rubric]],
    *,
    labels: Mapping[str, Json],
    raters: Collection[str] | None,
    rater_type: str | None,
) -> dict[str, DataItem]:
    """Return the items by id, with the ratings of a long table added."""
    faults = Faults.by_line(str(path))
    criteria = {one.name or "": one for _, rubric in items.values() for one in rubric}
    rows = read_long_table(path, criteria=criteria, labels=labels, raters=raters)
    wanted = _select_rows(rows, items, raters, rater_type, faults)
    known = dict.fromkeys(rater for item, _ in items.values() for rater in item.ratings)
    found: dict[str, dict[str, dict[str, Json]]] = {}
    valid = set[str]()
    invalid: list[tuple[LongRow, ReplyError]] = []
    for row in wanted:
        rubric = items[row.item_id][1]
        if not row.criterion and len(rubric) == 1:
            row = row._replace(criterion=rubric.names[0])
        if not row.criterion:
            read = ", ".join(dict.fromkeys(one.rater for one in wanted))
            what = f"the criterion is missing, and the rubric has {len(rubric)}; {_LAYOUTS}"
            faults.add((), f"{what}. Raters found: {read}")
            break
        if (criterion_name := match_name(row.criterion, rubric.names)) is None:
            hint = nearest_key(row.criterion, rubric.names)
            message = f"item {row.item_id!r} has no criterion {row.criterion!r}; {hint}"
            faults.add((row.line,), message, group=row.criterion)
            continue
        row = row._replace(criterion=criterion_name, rater=match_name(row.rater, known) or row.rater)
        rated = found.setdefault(row.item_id, {}).setdefault(row.rater, {})
        if row.criterion in rated:
            what = f"{row.rater!r} rated {row.criterion!r} of item {row.item_id!r}"
            faults.add((row.line,), f"{what} twice; keep one row")
        criterion = bind_item(rubric.by_name(row.criterion), items[row.item_id][0])
        try:
            rated[row.criterion] = _label(row, labels, criterion)
            if rated[row.criterion] is not None:
                valid.add(row.rater)
        except ReplyError as error:
            invalid.append((row, error))
    _report_invalid(invalid, valid, faults)
    faults.raise_as(DatasetError)
    return {
        item_id: _add_ratings(item, found.get(item_id, {}), rubric)
        for item_id, (item, rubric) in items.items()
    }


def _report_invalid(
    invalid: Iterable[tuple[LongRow, ReplyError]], raters_with_labels: Collection[str], faults: Faults
) -> None:
    """Report values that are not labels, grouped by rater and error, or by rater if it has no labels."""
    for row, why in invalid:
        reason, hint = str(why).replace(short_repr(row.value), ""), ""
        if row.rater not in raters_with_labels:
            others = "Select the others with --rater NAME (raters= in Python). " if raters_with_labels else ""
            reason, hint = "", f"no value is a label. {others}First value: "
        message = f"{hint}item {row.item_id!r}: {why}. To map it, use labels={{{row.value!r}: …}} in Python"
        faults.places[row.line, row.rater] = f"column or rater {row.rater!r}"
        faults.add((row.line, row.rater), message, group=(row.rater, reason))


def _select_rows(
    rows: Iterable[LongRow],
    items: Collection[str],
    raters: Collection[str] | None,
    rater_type: str | None,
    faults: Faults,
) -> list[LongRow]:
    typed = [row for row in rows if not rater_type or row.rater_type in ("", rater_type)]
    known = {row.rater for row in typed}
    wanted = known if raters is None else {match_name(rater, known) for rater in raters}
    for rater in raters or ():
        if match_name(rater, known) is None:
            hint = nearest_key(rater, sorted(known))
            faults.add((), f"the table has no rater {rater!r} of type {rater_type!r}; {hint}")
    chosen = [row for row in typed if row.rater in wanted and row.sample == 0]
    kept = [row for row in chosen if row.item_id in items]
    if not kept and not faults:
        given = sorted({row.item_id for row in chosen})[:3]
        faults.add((), f"no row of type {rater_type!r} belongs to a dataset item; table ids: {given!r} …")
    return kept


def _label(row: LongRow, labels: Mapping[str, Json], criterion: BaseCriterion) -> Json:
    """Return the label in a row; None if it is not a rating."""
    if row.value not in labels and is_no_label(row.value, criterion, "invalid"):
        return None
    label = labels.get(row.value, row.value)
    if isinstance(label, str):
        return label_of(criterion, label)
    criterion.parse_truth(label)
    return label


def _add_ratings(item: DataItem, rated: Mapping[str, Mapping[str, Json]], rubric: Rubric) -> DataItem:
    ratings: dict[str, Json] = dict(item.ratings)
    for rater, labels in rated.items():
        ratings[rater] = {**all_by_name(ratings.get(rater), rubric), **by_name(dict(labels), rubric)}
    return item.model_copy(update={"ratings": ratings})
