"""Options that map the columns of a dataset, and functions that open the dataset with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

import autorubric
from autorubric.cli._output import notice
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.dataset import FieldMap, RubricDataset


def option(names: str, metavar: str, what: str) -> typer.models.OptionInfo:
    """Return an option with a value and without a printed default; `names` are separated by blanks."""
    found: typer.models.OptionInfo = typer.Option(
        *names.split(), metavar=metavar, help=what, show_default=False
    )
    return found


_RATER = "Rater whose labels to read, or the rater's column in the table. Repeatable.  [default: all]"
_META = "Column to keep as metadata. Repeatable.  [default: every other column]"
_TRUTH = "Column with the labels of a criterion. Repeatable."

SubmissionColumn = Annotated[str | None, option("--submission", "COL", "Column with the texts to grade.")]
PromptColumn = Annotated[str | None, option("--prompt", "COL", "Column with the prompts.")]
ReferenceColumn = Annotated[str | None, option("--reference", "COL", "Column with the reference answers.")]
IdColumn = Annotated[str | None, option("--id", "COL", "Column with the unique ids.")]
TruthColumns = Annotated[list[str] | None, option("--truth", "CRITERION=COL", _TRUTH)]
MetaColumns = Annotated[list[str] | None, option("--meta", "COL", _META)]
Raters = Annotated[list[str] | None, option("--rater", "NAME", _RATER)]


def field_map(
    submission: str | None = None,
    prompt: str | None = None,
    reference: str | None = None,
    item_id: str | None = None,
    truth: Sequence[str] | None = None,
    meta: Sequence[str] | None = None,
) -> FieldMap:
    """Return the column mapping that the options specify.

    Raises:
        ArgumentError: If a value of `--truth` is not CRITERION=COL.
    """
    columns = {"submission": submission, "prompt": prompt, "reference": reference, "id": item_id}
    found = cast("FieldMap", {field: column for field, column in columns.items() if column is not None})
    labels = {}
    for text in truth or ():
        criterion, equals, column = text.rpartition("=")
        if not (criterion and equals and column):
            raise ArgumentError(f"--truth must be CRITERION=COL, such as polite=human_polite; got {text!r}")
        if criterion in labels:
            raise ArgumentError(
                f"--truth names {criterion} twice. To use several annotators' labels, pass --labels FILE to "
                "autorubric metrics, or add them to the dataset with: autorubric labels merge"
            )
        labels[criterion] = column
    if labels:
        found["truth"] = labels
    if meta:
        found["metadata"] = list(meta)
    return found


def opened(path: Path, rubric: Path | None, fields: FieldMap) -> RubricDataset:
    """Open a dataset file, and print which columns were used if it is a table.

    Args:
        path: The dataset file.
        rubric: A rubric file; None to use the dataset's own rubric.
        fields: The column mapping from the options.
    """
    dataset = autorubric.RubricDataset.from_file(path, rubric=rubric, **fields)
    notice_columns(dataset)
    return dataset


def notice_columns(dataset: RubricDataset) -> None:
    """Print which columns were used, if the dataset was read from a table."""
    chosen = dataset.columns_line()
    if chosen is not None:
        notice(f"columns: {chosen}")


def notice_labels(path: Path, labelled: RubricDataset, raters: Sequence[str] | None = None) -> None:
    """Print the annotators' names, and warn about labels for items that are not in the dataset."""
    # Late, since few commands read labels.
    from autorubric.dataset import read_long_table

    rows = [row for row in read_long_table(path, notice) if not raters or row.rater in raters]
    known = set(labelled.item_ids())
    people = dict.fromkeys(row.rater for row in rows if row.rater_type in ("", "human"))
    notice(f"labels in {path} by: {', '.join(people)}")
    others = sum(row.item_id not in known for row in rows)
    if others:
        notice(f"warning: {others} of {len(rows)} labels belong to items that are not in the dataset")
