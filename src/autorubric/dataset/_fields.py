"""Mapping of a table's columns to the fields of an item."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypedDict

from autorubric._files import Faults, FilePath, nearest_key, shortened
from autorubric.criteria import BaseCriterion
from autorubric.dataset._item import DataItem
from autorubric.errors import ArgumentError, DatasetError, ReplyError
from autorubric.rubric import Rubric
from autorubric.values import Json

TRUTH = "truth."
"""Prefix of label columns in tables of the dataset format; a criterion's name follows."""
META = "meta."
"""Prefix of metadata columns in tables of the dataset format; a key follows."""

_PLAIN = ("id", "submission", "description", "prompt", "reference")


_LIKELY: Final[Mapping[str, Sequence[str]]] = {
    "submission": (
        *("response", "output", "completion", "reply", "generation", "prediction", "model_output"),
        *("model_response", "generated_text", "candidate", "answer", "text", "summary", "essay", "message"),
        *("content", "body"),
    ),
    "prompt": ("question", "input", "query", "instruction", "task", "user_input", "user_message"),
    "reference": (
        *("reference_answer", "expected", "expected_output", "ideal", "gold", "golden_answer", "target"),
    ),
    "id": ("id", "item_id", "example_id", "sample_id", "row_id", "doc_id", "uid", "uuid"),
}
"""Column names that are recognised, most likely first; a column with the name of the field has priority."""
_LIKELY_ENDS: Final[Mapping[str, Collection[str]]] = {
    "submission": ("reply", "response", "output", "completion", "answer", "generation", "submission"),
    "prompt": ("question", "query", "instruction", "prompt", "input"),
}
"""Last words of column names, such as `bot_reply`, that are recognised if only one column has them."""
_LAST: Final[Mapping[str, Sequence[str]]] = {
    "submission": ("transcript", "comment"),
    "prompt": ("document", "diff"),
}
"""Column names that are recognised if no other column is."""
_LABEL_NAMES: Final = (
    *("{}", "truth_{}", "label_{}", "human_{}", "gold_{}"),
    *("{}_truth", "{}_label", "{}_human"),
)
_VERDICTS: Final = {"MET", "UNMET", "CANNOT_ASSESS"}
"""A column that contains only these values is a column of labels, whatever its name."""


class FieldMap(TypedDict, total=False):
    """Names of a table's columns by field. For missing fields, columns with common names are detected.

    Attributes:
        id: Column of item ids.
        submission: Column of texts to grade.
        description: Column of short descriptions for human readers.
        prompt: Column of prompts that the submissions respond to.
        reference: Column of reference answers.
        truth: Label columns by criterion, or the prefix of label columns before the criterion name.
        metadata: Columns to keep as metadata; by default, all columns that are not mapped.
    """

    id: str
    submission: str
    description: str
    prompt: str
    reference: str
    truth: str | Mapping[str, str]
    metadata: Sequence[str]


class Renaming(NamedTuple):
    """Renaming of a table's columns to those of the dataset format.

    Attributes:
        pairs: Pairs of a column of the dataset format and the table's column that it is taken from.
    """

    pairs: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> list[str]:
        """The columns of the dataset format."""
        return [own for own, _ in self.pairs]

    def row(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with the columns of the dataset format, without missing cells."""
        return {own: cells[given] for own, given in self.pairs if given in cells}


def renaming(
    fields: FieldMap, columns: Sequence[str], own: Collection[str], rubric: Rubric | None, faults: Faults
) -> Renaming:
    """Return the renaming of these columns to those of the dataset format.

    Args:
        fields: The caller's mapping of columns.
        columns: Columns of the table.
        own: Columns of the dataset format, without labels and metadata.
        rubric: Rubric of the dataset, whose criteria the labels belong to.
        faults: Collects errors about missing columns and unknown criteria.

    Raises:
        ArgumentError: If a field is unknown or its value is not a column name.
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
            word = "" if name.startswith(META) else f" for {name.removesuffix('_submission')}"
            near = difflib.get_close_matches(column, columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            faults.add((), f"column {column!r}{word} not found.{hint} Columns: {', '.join(columns)}")
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


def completed(
    fields: FieldMap,
    columns: Sequence[str],
    own: Collection[str],
    rubric: Rubric | None,
    values: Callable[[str], Iterable[Any]] | None = None,
) -> FieldMap | None:
    """Return a mapping completed with columns that have likely names for the missing fields.

    Args:
        fields: The caller's mapping of columns.
        columns: Columns of the table.
        own: Columns of the dataset format, without labels and metadata.
        rubric: Rubric of the dataset, whose criteria the labels belong to.
        values: Function that returns the cells of a column, which must be unique and non-empty in ids.

    Returns:
        The mapping; None if the table is in the dataset format and `fields` is empty.
    """
    _check(fields)
    unknown = [column for column in columns if not _is_own(column, own)]
    if not fields and not unknown:
        return None
    found: FieldMap = {**fields}
    free = {_plain_name(column): column for column in reversed(unknown) if column not in _named_in(fields)}
    truth = fields.get("truth", {})
    labels = {}
    if not isinstance(truth, str) and rubric is not None:
        criteria = [name for name in rubric.names if TRUTH + name not in columns and name not in truth]
        labels = _likely_labels(free, criteria, rubric, values)
        free = {name: column for name, column in free.items() if column not in labels.values()}
        if labels or truth:
            found["truth"] = {**labels, **truth}
    if values is not None:
        free = {name: column for name, column in free.items() if not _are_verdicts(values(column))}
    for field, names in _LIKELY.items():
        of_format = "reference_submission" if field == "reference" else field
        if field in fields or of_format in columns or f"{of_format}_json" in columns:
            continue
        names = ("reference", *names) if field == "reference" else names
        column = _first(names, free) or _by_end(field, free) or _first(_LAST.get(field, ()), free)
        if column is None or (field == "id" and not _are_ids(column, values)):
            continue
        found[field] = column  # type: ignore[literal-required]
        free = {name: other for name, other in free.items() if other != column}
    return found


def missing_submission(columns: Sequence[str]) -> str:
    """Return the error message for a table without a submission column."""
    near = difflib.get_close_matches("submission", columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"column 'submission' not found.{hint} Columns: {', '.join(columns) or 'none'}. "
        'Use --submission NAME (submission="NAME" in Python).'
    )


def _named_in(fields: FieldMap) -> set[str]:
    truth = fields.get("truth", {})
    labels = list(truth.values()) if isinstance(truth, Mapping) else []
    return {str(fields[field]) for field in _PLAIN if field in fields} | {  # type: ignore[literal-required]
        *labels,
        *fields.get("metadata", ()),
    }


def _plain_name(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")


def _first(names: Sequence[str], free: Mapping[str, str]) -> str | None:
    return next((free[name] for name in names if name in free), None)


def _by_end(field: str, free: Mapping[str, str]) -> str | None:
    ends = _LIKELY_ENDS.get(field, ())
    found = [column for name, column in free.items() if name.rpartition("_")[2] in ends]
    return found[0] if len(found) == 1 else None


def _are_ids(column: str, values: Callable[[str], Iterable[Any]] | None) -> bool:
    if values is None:
        return False
    cells = [str(value) for value in values(column) if value not in (None, "")]
    total = sum(1 for _ in values(column))
    return len(set(cells)) == total


def _likely_labels(
    free: Mapping[str, str],
    criteria: Sequence[str],
    rubric: Rubric,
    values: Callable[[str], Iterable[Any]] | None,
) -> dict[str, str]:
    """Return the likely label columns by criterion.

    If a criterion has a name that is common for texts, such as `summary`, the column of that name counts as
    a label column only if every cell is a label.
    """
    texts = {name for names in _LIKELY.values() for name in names} | {*_PLAIN}
    found = {}
    for name in criteria:
        candidates = (form.format(_plain_name(name)) for form in _LABEL_NAMES)
        for one in candidates:
            if one not in free or (one in texts and not _are_labels(free[one], rubric.by_name(name), values)):
                continue
            found[name] = free[one]
            break
    return found


def _are_verdicts(cells: Iterable[Any]) -> bool:
    given = [cell for cell in cells if cell not in (None, "")]
    return bool(given) and all(isinstance(cell, str) and cell in _VERDICTS for cell in given)


def _are_labels(column: str, criterion: BaseCriterion, values: Callable[[str], Iterable[Any]] | None) -> bool:
    try:
        for value in values(column) if values is not None else ("",):
            if value not in (None, ""):
                criterion.parse_truth(value)
    except ReplyError:
        return False
    return values is not None


def described(fields: FieldMap, columns: Sequence[str]) -> str:
    """Describe a mapping in one line, such as `submission=reply, id=ticket; metadata: channel`."""
    pairs = [f"{field}={fields[field]}" for field in _PLAIN if field in fields]  # type: ignore[literal-required]
    truth = fields.get("truth", {})
    if isinstance(truth, str):
        pairs.append(f"truth={truth}*")
    else:
        shared = {column.removesuffix(name) for name, column in truth.items() if column.endswith(name)}
        if len(truth) > 2 and len(shared) == 1 and all(map(str.endswith, truth.values(), truth)):
            pairs.append(f"truth={shared.pop()}* ({len(truth)} criteria)")
        else:
            pairs += [f"truth {name}={column}" for name, column in truth.items()]
    used = _named_in(fields)
    plain = {*_PLAIN, "reference_submission"}
    kept = fields.get(
        "metadata",
        [column for column in columns if column not in used | plain and not _is_own(column, plain)],
    )
    return ", ".join(pairs) + (f"; metadata: {', '.join(kept)}" if kept else "")


def _check(fields: FieldMap) -> None:
    for field, given in fields.items():
        if field not in FieldMap.__annotations__:
            raise ArgumentError(
                f"unknown field {field!r}; {nearest_key(field, list(FieldMap.__annotations__))}"
            )
        texts = given if field == "metadata" and not isinstance(given, str) else [given]
        if field == "truth" and isinstance(given, Mapping):
            texts = [*given, *given.values()]
        if not isinstance(texts, Iterable) or not all(isinstance(one, str) and one for one in texts):
            raise ArgumentError(f"{field}={shortened(given)} is not a column; {_WORDS.get(field, _A_TEXT)}")
        if field == "metadata" and isinstance(given, str):
            raise ArgumentError(f"metadata={given!r}; {_WORDS['metadata']}")


_A_TEXT = "pass the column name as a string"
_WORDS = {
    "truth": "pass {criterion: column} or the common prefix of the label columns",
    "metadata": "pass a list of columns",
}


def _truth_columns(
    given: str | Mapping[str, str], columns: Sequence[str], rubric: Rubric | None, faults: Faults
) -> list[tuple[str, str]]:
    if isinstance(given, str):
        found = {column.removeprefix(given): column for column in columns if column.startswith(given)}
        if not found:
            near = nearest_key(given, columns)
            faults.add((), f"no column begins with {given!r}, the prefix passed as truth; {near}")
    else:
        found = dict(given)
    if rubric is not None:
        for name in found:
            if name not in rubric.names:
                hint = nearest_key(name, rubric.names)
                faults.add((), f"truth contains {name!r}, which is not a criterion of the rubric; {hint}")
        found = {name: column for name, column in found.items() if name in rubric.names}
    return [(TRUTH + name, column) for name, column in found.items()]


def _is_own(column: str, own: Collection[str]) -> bool:
    return column in own or column.startswith((TRUTH, META))


def completed_for_rows(
    rows: Sequence[tuple[FilePath, Json]], fields: FieldMap, rubric: Rubric | None
) -> FieldMap | None:
    """Return the mapping of fields for rows that are mappings; see `completed`.

    The result is None if a key is nearly a key of the dataset format, so that the reader reports the key.
    """
    mappings = [row for _, row in rows if isinstance(row, Mapping)]
    keys = list(dict.fromkeys(str(key) for row in mappings for key in row))
    own = list(DataItem.model_fields)
    missing = [name for name in own if name not in keys]
    if not fields and any(difflib.get_close_matches(key, missing, n=1, cutoff=0.85) for key in keys):
        return None
    return completed(fields, keys, own, rubric, lambda key: [row.get(key) for row in mappings])


def mapped_rows(
    placed: Iterable[tuple[FilePath, Json]], fields: FieldMap, rubric: Rubric | None, faults: Faults
) -> Iterator[tuple[FilePath, Json]]:
    """Yield rows with the keys of the dataset format; other keys become metadata.

    Args:
        placed: The rows, each with its path in the file.
        fields: Mapping of fields to the rows' keys.
        rubric: Rubric of the dataset, if it is known.
        faults: Collects errors in the keys.

    Raises:
        ArgumentError: If a field is unknown or its value is not a key.
        DatasetError: If no row has a mapped key.
    """
    rows = list(placed)
    keys = dict.fromkeys(str(key) for _, row in rows if isinstance(row, Mapping) for key in row)
    named = renaming(fields, list(keys), list(DataItem.model_fields), rubric, faults)
    faults.raise_as(DatasetError)
    for at, row in rows:
        if isinstance(row, Mapping) and fields.get("submission", "submission") not in row:
            faults.add(at, f"the key {fields.get('submission', 'submission')!r} is missing")
        # The reader of items reports rows that are not mappings.
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
