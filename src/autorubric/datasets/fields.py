"""Mapping of a table's columns to the fields of an item."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypedDict

from autorubric.criteria.base import BaseCriterion
from autorubric.datasets.csv_files import make_distinct
from autorubric.datasets.item import DataItem, decode_cell, is_no_label
from autorubric.errors import ArgumentError, DatasetError, ReplyError
from autorubric.rubric.rubric import Rubric
from autorubric.support.names import clean_name, match_name
from autorubric.support.objects import Json
from autorubric.support.reading_errors import Faults, FilePath, nearest_key, short_repr

TRUTH = "truth."
"""Prefix of label columns in tables of the dataset format; a criterion's name follows."""
META = "meta."
"""Prefix of metadata columns in tables of the dataset format; a key follows."""

_PLAIN = ("id", "submission", "description", "prompt", "reference")


class _Rule(NamedTuple):
    """Names of columns that hold a field: in lower case, with `_` between words, with or without `_text`."""

    names: str
    ends: str = ""
    others: str = ""
    last: str = ""


_RULES: Final[Mapping[str, _Rule]] = {
    "submission": _Rule(
        "submission response output actual_output completion reply generation prediction model_output "
        "model_response generated candidate assistant",
        ends="reply response output completion answer generation submission",
        others="text full_text summary essay message content body bot_said said_by_bot",
        last="transcript comment",
    ),
    "prompt": _Rule(
        "prompt question input query instruction task user_input user_message user",
        ends="question query instruction prompt input",
        last="document diff",
    ),
    "reference": _Rule(
        "reference reference_answer expected expected_output ideal gold golden_answer target ground_truth",
        ends="reply response output completion answer generation submission summary essay solution",
    ),
}
ID_NAMES: Final = (
    "id item_id example_id sample_id row_id doc_id uid uuid message_id request_id trace_id case_id ticket_id "
    "session_id conversation_id conv_id"
)
"""Names of columns of ids, the most specific first; others end in `_id`."""
_RATERS: Final = "rater coder annotator labeller labeler reviewer evaluator grader assessor worker"
_PEOPLE: Final = f"{_RATERS} user username person scorer email"
_PEOPLE_OR_COLUMNS: Final = (  # or raters with own columns
    "judge expert agent participant customer author doctor physician clinician teacher examiner moderator"
)
_REFERENCE_STARTS: Final = ("reference", "expected", "gold", "golden", "ideal", "ground", "target")
"""First words of names that are only references, never texts to grade or prompts."""
_MODEL_ANSWER: Final = ("model_answer", "model_answer_text")
"""Names of the model's answers next to a reference, and of references otherwise."""
_LABEL_NAMES: Final = (
    *("{}", "truth_{}", "label_{}", "human_{}", "gold_{}"),
    *("{}_truth", "{}_label", "{}_human"),
)
_VERDICTS: Final = {"MET", "UNMET", "CANNOT_ASSESS"}
"""A column that contains only these values is a column of labels, whatever its name."""


_Values: TypeAlias = Callable[[str], Iterable[Any]] | None
"""Function that returns the cells of a column, if they are known."""


class FieldMap(TypedDict, total=False):
    """Mapping of fields to table columns. Columns with common names are detected for unmapped fields.

    Attributes:
        id: Column of item ids.
        submission: Column of texts to grade.
        description: Column of short descriptions for human readers.
        prompt: Column of prompts that the submissions answer.
        reference: Column of reference answers.
        truth: Label columns by criterion name, or the prefix before the criterion name in label columns.
        metadata: Columns to keep as metadata; by default, all columns that are not mapped.
    """

    id: str
    submission: str
    description: str
    prompt: str
    reference: str
    truth: str | Mapping[str, str]
    metadata: Sequence[str]


def pair_columns(
    fields: FieldMap, columns: Sequence[str], own: Collection[str], rubric: Rubric | None, faults: Faults
) -> list[tuple[str, str]]:
    """Return pairs of a column of the dataset format and the column of the table that it is taken from."""
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
            hint = _did_you_mean(column, columns)
            faults.add((), f"column {column!r}{word} not found.{hint} Columns: {', '.join(columns)}")
    taken, used = {name for name, _ in wanted}, {column for _, column in wanted}
    kept = [column for column in columns if column not in used | taken and _is_own(column, own, rubric)]
    wanted += [(column, column) for column in kept]
    if "metadata" not in fields:
        rest = [column for column in columns if column not in used.union(kept)]
        names, changed = make_distinct([META + column for column in rest], [name for name, _ in wanted])
        wanted += zip(names, rest, strict=True)
        kept_as = [
            f"column {given!r} conflicts with another and is kept as metadata {name.removeprefix(META)!r}"
            for name, given in changed.items()
        ]
        kept_as += [
            f"column {column!r} is kept as metadata: the rubric has no criterion of that name. "
            f"Criteria: {', '.join(rubric.names)}"
            for column in rest
            if rubric is not None and column.startswith(TRUTH) and column not in taken
        ]
        for text in kept_as:
            warnings.warn(f"{faults.source}: {text}", stacklevel=2)
    return [(name, column) for name, column in wanted if column in columns]


def guess_fields(
    fields: FieldMap,
    columns: Sequence[str],
    own: Collection[str],
    rubric: Rubric | None,
    values: _Values = None,
    ids: _Values = None,
) -> FieldMap | None:
    """Return a mapping completed with columns that have likely names for the missing fields.

    `ids` returns the cells of a column of ids, if those of other columns are unknown.
    """
    _check(fields)
    unknown = [column for column in columns if not _is_own(column, own, rubric)]
    if not fields and not unknown:
        return None
    found: FieldMap = {**fields}
    truth = fields.get("truth", {})
    named = {*(truth.values() if isinstance(truth, Mapping) else ()), *fields.get("metadata", ())}
    named |= {str(fields[field]) for field in _PLAIN if field in fields}  # type: ignore[literal-required]
    free = {column: plain_name(column) for column in unknown if column not in named}
    if not isinstance(truth, str) and rubric is not None:
        criteria = [name for name in rubric.names if TRUTH + name not in columns and name not in truth]
        labels = _likely_labels(free, criteria, rubric, values)
        free = {column: name for column, name in free.items() if column not in labels.values()}
        if labels or truth:
            found["truth"] = {**labels, **truth}

    def is_text(column: str) -> bool:
        labelled = (are_labels(values and values(column), one) for one in rubric or ())
        if free[column] == "ground_truth" and (values is None or any(labelled)):
            return False
        cells = [] if values is None else [cell for cell in values(column) if not is_no_label(cell)]
        return not cells or not all(isinstance(cell, str) and cell in _VERDICTS for cell in cells)

    given = {field for field in _RULES if field in fields or {*_columns_of(field)} & {*columns}}
    for field, candidates in _candidates(filter(is_text, free), given).items():
        if len(candidates) == 1:
            found[field] = candidates[0]  # type: ignore[literal-required]
    if "id" not in columns and "id" not in fields and (likely := _likely_ids(free, ids or values)):
        found["id"] = likely[0]
    return found


def _columns_of(field: str) -> tuple[str, str]:
    """Return the columns of the dataset format that hold a field."""
    column = "reference_submission" if field == "reference" else field
    return column, f"{column}_json"


def _candidates(columns: Iterable[str], given: Collection[str] = ()) -> dict[str, list[str]]:
    """Return the columns that may hold each field that is not given; several if names do not decide."""
    # Columns of promptfoo, such as `__expected`, hold assertions and options.
    free = {one: plain_name(one) for one in columns if not one.startswith((TRUTH, META, "__"))}
    model = {one: name for one, name in free.items() if name in _MODEL_ANSWER}
    references = {one: n for one, n in free.items() if n.partition("_")[0] in _REFERENCE_STARTS}
    # Without a column of the assistant's messages, `user` is a person.
    person = () if "assistant" in free.values() else ("user",)
    others = {one: n for one, n in free.items() if one not in {*model, *references} and n not in person}
    found = {field: _likely(rule, others) for field, rule in _RULES.items()}
    found["reference"] = _likely(_RULES["reference"], references)
    if "reference" in given or found["reference"]:
        found["submission"] = _likely(_RULES["submission"], {**others, **model})
    elif "submission" in given or found["submission"]:
        found["reference"] = [*model]
    return {field: likely for field, likely in found.items() if field not in given}


def _likely(rule: _Rule, free: Mapping[str, str]) -> list[str]:
    def first(names: str) -> list[str]:
        forms = (form for name in names.split() for form in (name, f"{name}_text"))
        return next((found for form in forms if (found := [c for c in free if free[c] == form])), [])

    ends = rule.ends.split()
    ending = [c for c in free if free[c].removesuffix("_text").rpartition("_")[2] in ends]
    return first(rule.names) or list(dict.fromkeys([*ending, *first(rule.others)])) or first(rule.last)


def _did_you_mean(column: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(column, columns, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def missing_submission(columns: Sequence[str]) -> str:
    """Return the error message for a table without a submission column."""
    hint = _did_you_mean("submission", columns)
    if several := _candidates(columns)["submission"]:
        hint = f" Candidates: {', '.join(several)}."
    return (
        f"column 'submission' not found.{hint} Columns: {', '.join(columns) or 'none'}. "
        'Use --submission NAME (submission="NAME" in Python).'
    )


RUBRIC_KEYS: Final = ("rubrics", "rubric_items", "criteria")  # of a row in files of other tools
_CRITERION_KEYS: Final = (
    "weight points max_score choices options importance id name title criterion text content description "
    "requirement type min max scale_type category axis tags gate bonus when reasoning"
)
"""Keys of criteria in rubric files, also of other tools; items rarely have the first six."""


def check_kind(rows: Iterable[tuple[FilePath, Mapping[str, Json]]], faults: Faults) -> None:
    """Raise an error if the rows of a file, given with their places, are criteria or have rubrics."""
    way_out = "or name the column of texts (--submission NAME, submission=)"
    for place, (at, row) in enumerate(rows):
        if not place and {*row} <= {*_CRITERION_KEYS.split()} and {*_CRITERION_KEYS.split()[:6]} & {*row}:
            use = "pass it as the rubric (--rubric R, rubric=)"
            faults.add(at, f"the file contains criteria, not items; {use}, {way_out}")
        if any(isinstance(decode_cell(row.get(key)), list) for key in RUBRIC_KEYS):
            keys = "'rubrics', 'rubric_items', 'criteria' or, in tables, 'rubric'"
            message = f"the rows have criteria that would not be graded, under {keys}; use from_healthbench,"
            faults.add(at, f"{message} JSON with items' rubrics under the key 'rubric', {way_out}")
            break
    faults.raise_as(DatasetError)


def plain_name(column: str) -> str:
    """Return the name of a column in lower case, with `_` between words; words may be written without it."""
    words = _WORD_START.sub("_", clean_name(column)).casefold().replace("-", " ").replace("_", " ").split()
    return _KNOWN_NAMES.get("".join(words), "_".join(words))


_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KNOWN_NAMES: Final = {
    form.replace("_", ""): form
    for rule in (*_RULES.values(), _Rule(ID_NAMES), _Rule("model_answer"))
    for names in rule
    for name in names.split()
    if "_" in name
    for form in (name, f"{name}_text")
}
"""Names of several words, by their letters."""


def people_columns(columns: Iterable[str], is_labelled: Callable[[str], bool] | None = None) -> list[str]:
    """Return columns that name people: `annotator`, or `rater_id` or `user`, or a `judge` without labels."""
    names = {one: re.sub(r"(?:[^\w#]|_)+", "_", plain_name(one)).strip("_") for one in columns}
    alone = {one: name.removesuffix("s") for one, name in names.items() if "_" not in name}
    people = f"{_PEOPLE} {_PEOPLE_OR_COLUMNS}".split()
    likely = {one for one in names if _PERSON.search(names[one]) or alone.get(one) in _PEOPLE.split()}
    unlabelled = [one for one in alone if is_labelled and alone[one] in people and not is_labelled(one)]
    raters = [one for one, name in alone.items() if name in _RATERS.split()]
    return raters or [one for one in names if one in likely] or unlabelled


_ID_WORDS: Final = "id|ids|uid|uuid|identifier|name|email|initials|no|nr|num|number|code|key|index|#"
_PERSON: Final = re.compile(
    rf"(?:^|_)(?:{'|'.join(f'{_PEOPLE} {_PEOPLE_OR_COLUMNS} human'.split())})s?_?(?:{_ID_WORDS})$"
    rf"|(?:_|ed)by(?:_(?:{_ID_WORDS}))?$"
)
"""Names such as `rater_id`, `annotatorid`, `worker_#`, `rated_by`, `ratedby` and `completed_by_id`."""


def _likely_ids(columns: Iterable[str], values: _Values) -> list[str]:
    """Return the columns that are likely to hold ids and whose cells differ, the likeliest first."""
    known = ID_NAMES.split()
    names = {one: plain_name(one) for one in columns if not one.startswith((TRUTH, META))}
    likely = sorted((one for one in names if names[one] in known), key=lambda one: known.index(names[one]))
    if unique := [one for one in likely if _are_ids(one, values)]:
        return unique
    people = people_columns(names)
    others = [one for one, name in names.items() if name.endswith("_id") and one not in people]
    unique = [one for one in others if _are_ids(one, values)]
    return unique if len(unique) == 1 else []


def _are_ids(column: str, values: _Values) -> bool:
    cells = ["" if cell is None else str(cell) for cell in values(column)] if values is not None else [""]
    return "" not in cells and len({*cells}) == len(cells)


def _likely_labels(
    free: Iterable[str], criteria: Sequence[str], rubric: Rubric, values: _Values
) -> dict[str, str]:
    """Return the likely label columns by criterion."""
    # A column with a name that is common for texts, such as `summary`, must contain only labels.
    texts = {name for rule in _RULES.values() for names in rule for name in names.split()} | {*_PLAIN}
    found: dict[str, str] = {}
    for name, form, column in columns_of_criteria(free, criteria):
        if name not in found and (
            form not in texts or are_labels(values and values(column), rubric.by_name(name))
        ):
            found[name] = column
    return found


def columns_of_criteria(columns: Iterable[str], criteria: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield criteria with the columns named like them, the likeliest first, and the form of the name."""
    by_letters = {plain_name(one).replace("_", "").replace(".", ""): one for one in reversed([*columns])}
    for name in criteria:
        for form in (one.format(plain_name(name)) for one in _LABEL_NAMES):
            if column := by_letters.get(form.replace("_", "")):
                yield name, form, column


def are_labels(cells: Iterable[Any] | None, criterion: BaseCriterion) -> bool:
    """Return whether the cells of a column are known, and each is a label of a criterion or missing."""
    try:
        for cell in cells or ():
            if not is_no_label(cell, criterion):
                criterion.parse_truth(cell)
    except ReplyError:
        return False
    return cells is not None


def describe_columns(pairs: Sequence[tuple[str, str]]) -> str:
    """Describe a renaming in one line, such as `id=ticket, submission=reply; metadata: channel`."""
    held = dict(pairs)
    texts = [f"{field}={held[own]}" for field in _PLAIN for own in _columns_of(field) if own in held]
    truth = {own.removeprefix(TRUTH): given for own, given in pairs if own.startswith(TRUTH)}
    shared = {column.removesuffix(name) for name, column in truth.items() if column.endswith(name)}
    if len(truth) > 2 and len(shared) == 1 and all(map(str.endswith, truth.values(), truth)):
        texts.append(f"truth={shared.pop()}* ({len(truth)} criteria)")
    else:
        texts += [f"truth {name}={column}" for name, column in truth.items()]
    kept = [given for own, given in pairs if own.startswith(META)]
    return ", ".join(texts) + (f"; metadata: {', '.join(kept)}" if kept else "")


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
            raise ArgumentError(f"{field}={short_repr(given)} is not a column; {_WORDS.get(field, _A_TEXT)}")
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
        found = {match_name(name, rubric.names) or name: column for name, column in found.items()}
        for name in found:
            if name not in rubric.names:
                hint = nearest_key(name, rubric.names)
                faults.add((), f"truth contains {name!r}, which is not a criterion of the rubric; {hint}")
        found = {name: column for name, column in found.items() if name in rubric.names}
    return [(TRUTH + name, column) for name, column in found.items()]


def _is_own(column: str, own: Collection[str], rubric: Rubric | None) -> bool:
    if column.startswith(TRUTH) and rubric is not None:
        return column.removeprefix(TRUTH) in rubric.names
    return column in own or column.startswith((TRUTH, META))


def guess_row_fields(
    rows: Sequence[tuple[FilePath, Json]], fields: FieldMap, rubric: Rubric | None, faults: Faults
) -> FieldMap | None:
    """Return the fields of rows of JSON as `guess_fields`; None if a key of the format is misspelt."""
    mappings = [row for _, row in rows if isinstance(row, Mapping)]
    if mappings and not fields:
        check_kind(((at, row) for at, row in rows if isinstance(row, Mapping)), faults)
    keys = list(dict.fromkeys(str(key) for row in mappings for key in row))
    own = list(DataItem.model_fields)
    missing = [name for name in own if name not in keys]
    for key in () if fields else keys:
        near = difflib.get_close_matches(key, missing, n=1, cutoff=0.85)
        # `rating` and `prompts` are likely columns of the user's own, not misspelled keys.
        if near and near[0].rstrip("s") != key.rstrip("s"):
            return None
    return guess_fields(fields, keys, own, rubric, lambda key: [row.get(key) for row in mappings])
