"""Tables of other people's making: which of their columns is which field of an item."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from autorubric._files import Faults, FilePath, nearest_key, shortened
from autorubric.dataset._item import DataItem
from autorubric.errors import ArgumentError, DatasetError
from autorubric.rubric import Rubric
from autorubric.values import Json

TRUTH = "truth."
"""Before a criterion's name, the column of its label in the house's own tables."""
META = "meta."
"""Before a key, the column of an item's metadata there."""

_PLAIN = ("id", "submission", "description", "prompt", "reference")


class FieldMap(TypedDict, total=False):
    """Columns of a table of your own, by what they hold; what is not named is looked for under its own name.

    Attributes:
        id: The column of the items' ids.
        submission: That of what is graded.
        description: That of a word for people.
        prompt: That of what the submissions answer.
        reference: That of model answers.
        truth: Columns of labels by criterion, or what stands before a criterion's name in their names.
        metadata: Columns that are kept as metadata, the others left out; by default all others are kept.
    """

    id: str
    submission: str
    description: str
    prompt: str
    reference: str
    truth: str | Mapping[str, str]
    metadata: Sequence[str]


class Renaming(NamedTuple):
    """How a table becomes one of the house's own.

    Attributes:
        pairs: The house's column and the given one that it is taken from.
    """

    pairs: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> list[str]:
        """The house's columns."""
        return [own for own, _ in self.pairs]

    def row(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """A row in the house's columns; cells that it lacks are left out."""
        return {own: cells[given] for own, given in self.pairs if given in cells}


def renaming(
    fields: FieldMap, columns: Sequence[str], own: Collection[str], rubric: Rubric | None, faults: Faults
) -> Renaming:
    """How a table with these columns becomes one of the house's own.

    Args:
        fields: What the caller said of the columns.
        columns: The table's.
        own: The house's columns but for labels and metadata.
        rubric: The dataset's, whose criteria labels are of.
        faults: Gets the columns that are not there, and criteria that the rubric has not.

    Raises:
        ArgumentError: A field is none, or says no column.
    """
    _check(fields)
    wanted = [
        ("reference_submission" if field == "reference" else field, str(column))
        for field, column in fields.items()
        if field in _PLAIN
    ]
    wanted += _truth_columns(fields.get("truth", {}), columns, rubric, faults)
    wanted += [(META + column, column) for column in fields.get("metadata", ())]
    for name, column in wanted:
        if column not in columns:
            word = "reference" if name == "reference_submission" else name
            faults.add((), f"there is no column {column!r} for {word}; {nearest_key(column, columns)}")
    taken, used = {name for name, _ in wanted}, {column for _, column in wanted}
    rest = [column for column in columns if column not in used]
    wanted += [(column, column) for column in rest if _is_own(column, own) and column not in taken]
    if "metadata" not in fields:
        found = {name for name, _ in wanted}
        wanted += [
            (META + column, column)
            for column in rest
            if (not _is_own(column, own) or column in taken) and META + column not in found
        ]
    return Renaming(tuple((name, column) for name, column in wanted if column in columns))


def _check(fields: FieldMap) -> None:
    for field, given in fields.items():
        if field not in FieldMap.__annotations__:
            raise ArgumentError(
                f"there is no field {field!r} to map; {nearest_key(field, list(FieldMap.__annotations__))}"
            )
        texts = given if field == "metadata" and not isinstance(given, str) else [given]
        if field == "truth" and isinstance(given, Mapping):
            texts = [*given, *given.values()]
        if not isinstance(texts, Iterable) or not all(isinstance(one, str) and one for one in texts):
            raise ArgumentError(f"{field}={shortened(given)} names no column; {_WORDS.get(field, _A_TEXT)}")
        if field == "metadata" and isinstance(given, str):
            raise ArgumentError(f"metadata={given!r}; {_WORDS['metadata']}")


_A_TEXT = "give its name, a text"
_WORDS = {
    "truth": "give {criterion: column}, or what stands before the criterion's name in the columns' names",
    "metadata": "give a list of columns",
}


def _truth_columns(
    given: str | Mapping[str, str], columns: Sequence[str], rubric: Rubric | None, faults: Faults
) -> list[tuple[str, str]]:
    if isinstance(given, str):
        found = {column.removeprefix(given): column for column in columns if column.startswith(given)}
        if not found:
            near = nearest_key(given, columns)
            faults.add((), f"no column begins with {given!r}, which truth says of those with labels; {near}")
    else:
        found = dict(given)
    if rubric is not None:
        for name in found:
            if name not in rubric.names:
                hint = nearest_key(name, rubric.names)
                faults.add((), f"truth names {name!r}, which is no criterion of the rubric; {hint}")
        found = {name: column for name, column in found.items() if name in rubric.names}
    return [(TRUTH + name, column) for name, column in found.items()]


def _is_own(column: str, own: Collection[str]) -> bool:
    return column in own or column.startswith((TRUTH, META))


def mapped_rows(
    placed: Iterable[tuple[FilePath, Json]], fields: FieldMap, rubric: Rubric | None, faults: Faults
) -> Iterator[tuple[FilePath, Json]]:
    """Rows that are mappings of values, as items; what has no field of its own becomes metadata.

    Args:
        placed: The rows, each with where it stands.
        fields: Which of their keys is which.
        rubric: The dataset's, where it is known by now.
        faults: Gets what is wrong with the keys; rows are then not gone into.

    Raises:
        ArgumentError: A field is none, or says no column.
        DatasetError: Keys are missing from all rows.
    """
    rows = list(placed)
    keys = dict.fromkeys(str(key) for _, row in rows if isinstance(row, Mapping) for key in row)
    named = renaming(fields, list(keys), list(DataItem.model_fields), rubric, faults)
    faults.raise_as(DatasetError)
    for at, row in rows:
        if isinstance(row, Mapping) and fields.get("submission", "submission") not in row:
            faults.add(at, f"the key {fields.get('submission', 'submission')!r} is missing")
        # What is no mapping is told by whoever reads items.
        yield at, _item(named.row(row)) if isinstance(row, Mapping) else row


def _item(cells: Mapping[str, Any]) -> dict[str, Json]:
    found = {own: cell for own, cell in cells.items() if not own.startswith((TRUTH, META))}
    labels, metadata = _under(TRUTH, cells), _under(META, cells)
    if isinstance(found.get("id"), int):
        found["id"] = str(found["id"])
    if isinstance(truth := found.get("ground_truth") or {}, Mapping) and (truth or labels):
        found["ground_truth"] = {**truth, **labels}
    if isinstance(kept := found.get("metadata") or {}, Mapping):
        found["metadata"] = {**kept, **metadata}
    return {"submission": None, **found}


def _under(prefix: str, cells: Mapping[str, Any]) -> dict[str, Any]:
    return {
        own.removeprefix(prefix): cell
        for own, cell in cells.items()
        if own.startswith(prefix) and cell is not None
    }
