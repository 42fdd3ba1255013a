"""`autorubric validate` and `autorubric schema`: check files, and print their JSON schemas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import autorubric
from autorubric.cli import options as _datasets
from autorubric.cli.output import Exit, JsonFlag, notice, print_json, report_errors
from autorubric.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from autorubric.errors import Fault


CheckedFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Rubric, dataset or run file to check.", show_default=False)
]
Kind = Annotated[
    Literal["rubric", "dataset", "run"] | None,
    typer.Option("--as", help="Kind of file.  [default: detected from its content]", show_default=False),
]
DatasetRubric = Annotated[
    Path | None,
    typer.Option(
        "--rubric",
        metavar="R",
        help="Rubric that the labels of a dataset must match.  [default: the dataset's own rubric]",
        show_default=False,
    ),
]


@report_errors
def validate(  # noqa: PLR0913
    file: CheckedFile,
    kind: Kind = None,
    rubric: DatasetRubric = None,
    submission: _datasets.SubmissionColumn = None,
    prompt: _datasets.PromptColumn = None,
    reference: _datasets.ReferenceColumn = None,
    item_id: _datasets.IdColumn = None,
    truth: _datasets.TruthColumns = None,
    meta: _datasets.MetaColumns = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Check a rubric, dataset or run file, and report all errors with their line numbers.

    An empty submission is an error. Criterion names that differ only in case, whitespace, or invisible or
    look-alike characters cause a warning.

    With --json, prints an object with the keys file, kind, valid, criteria, items, faults (path, line and
    message of each) and warnings (a list of strings).

    \b
    Examples:
      autorubric validate rubric.yaml
      autorubric validate essays.jsonl --rubric rubric.yaml

    Exit codes: 0 no errors, with or without warnings; 2 errors or invalid command line.
    """
    from autorubric.runs.run_setup import load_run

    found = kind or _kind_of(file, rubric)
    criteria: int | None = None
    items: int | None = None
    faults: tuple[Fault, ...] = ()
    warnings: list[str] = []
    try:
        if found == "rubric":
            read = autorubric.Rubric.from_file(file)
            criteria, warnings = len(read), _warnings([read])
        else:
            if found == "run":
                dataset = load_run(file).dataset
                _datasets.notice_columns(dataset)
            else:
                fields = _datasets.field_map(submission, prompt, reference, item_id, truth, meta)
                dataset = _datasets.open_dataset(file, rubric, fields)
            criteria, items = dataset.num_criteria, len(dataset)
            warnings = _warnings(dataset.rubrics())
            _check_texts(file, dataset)
    except FileError as error:
        # Errors of another file, such as the rubric of a dataset, are reported for that file.
        if not as_json or error.source != str(file):
            raise
        faults = error.faults
    if as_json:
        told = [{"path": one.path, "line": one.line, "message": one.message} for one in faults]
        head = {"file": str(file), "kind": found, "valid": not faults, "criteria": criteria, "items": items}
        print_json({**head, "faults": told, "warnings": warnings})
    else:
        for warning in warnings:
            notice(f"warning: {warning}")
        holds = f"{criteria} criteria" if items is None else f"{items} items, {criteria} criteria"
        notice(f"{file}: valid {found}{' file' * (found == 'run')} with {holds}.")
    return Exit.USAGE if faults else Exit.DONE


def _check_texts(file: Path, dataset: autorubric.RubricDataset) -> None:
    """Check that every submission has a text.

    A dataset in which all submissions are null is valid: the texts are stored elsewhere, as for recorded
    votes.
    """
    from autorubric.criteria.values import Submission
    from autorubric.errors import DatasetError, Fault

    empty, missing = [], []
    for i, item in enumerate(dataset):
        if item.submission is None:
            message = "the submission is missing, although other items have one; add its text"
            missing.append(Fault(path=f"item {dataset.item_id(i)!r}", message=message))
            continue
        given = Submission.parse(item.submission)
        texts = [*given.candidates.values()] if given.candidates else [given.text or ""]
        if any(not text.strip() for text in texts):
            message = "the submission is empty; there is nothing to judge"
            empty.append(Fault(path=f"item {dataset.item_id(i)!r}", message=message))
    if len(missing) < len(dataset):
        empty += missing
    if empty:
        raise DatasetError(str(file), empty)


def _warnings(rubrics: Iterable[autorubric.Rubric]) -> list[str]:
    """Return warnings about similar names and weights that have no effect, without duplicates."""
    # Late, since only this command looks for them.
    from autorubric.rubric.checks import similar_names

    found = []
    for rubric in rubrics:
        found += [
            f"the criterion names {one!a} and {other!a} are too similar; rename one of them"
            for one, other in similar_names([criterion.name or "" for criterion in rubric])
        ]
        found += [
            f"criterion {one.name!r} has a weight but never enters the score: its options have no values; "
            "add a value (0 to 1) to each, or set scale_type: ordinal for options listed from worst to best"
            for one in rubric
            if isinstance(one, autorubric.Criterion)
            and one.options
            and "weight" in one.model_fields_set
            and all(option.value is None for option in one.options)
        ]
    return list(dict.fromkeys(found))


def _kind_of(file: Path, rubric: Path | None) -> Literal["rubric", "dataset", "run"]:
    """Return the kind of a file: tables, JSON lines and files with items or submissions are datasets."""
    # Late, since only this command reads files without knowing what they are.
    from autorubric.support.read import FORMATS, read_structured

    if rubric is not None or file.suffix.lower() not in FORMATS or file.suffix.lower() == ".jsonl":
        return "dataset"
    try:
        data = read_structured(file).data
    except FileError:
        # Reading the rubric reports the error.
        return "rubric"
    if isinstance(data, dict):
        return "dataset" if "items" in data else "run" if {"data", "judges"} & data.keys() else "rubric"
    first = data[0] if isinstance(data, list) and data else None
    return "dataset" if isinstance(first, dict) and "submission" in first else "rubric"


OfRunFile = Annotated[bool, typer.Option("--run", help="Print the schema of run files (autorubric.yaml).")]


@report_errors
def schema(run: OfRunFile = False) -> Exit:
    """Print the JSON schema of rubric files or run files, for editors.

    \b
    Examples:
      autorubric schema > rubric.schema.json
      autorubric schema --run > run.schema.json
    """
    if run:
        from autorubric.runs.run_file import run_file_schema

        print_json(run_file_schema())
    else:
        print_json(autorubric.Rubric.json_schema())
    return Exit.DONE
