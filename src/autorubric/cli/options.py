"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

import autorubric
from autorubric.cli.output import Exit, max_lost_option, notice
from autorubric.criteria.values import MAX_LOST
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.datasets.fields import FieldMap


_SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")


def _shard(given: str) -> tuple[int, int]:
    found = _SHARD.fullmatch(given)
    if found is None:
        raise typer.BadParameter(
            f"{given!r} is not a shard; it must be I/N, such as 0/8 for the first of eight"
        )
    return int(found[1]), int(found[2])


def _positive(given: float | None) -> float | None:
    if given is not None and not 0 < given < float("inf"):
        raise typer.BadParameter(f"{given} is not an amount; it must be a positive number of US dollars")
    return given


class OnMismatch(StrEnum):
    """Action to take if a stored run's inputs have changed."""

    refuse = "refuse"
    rejudge = "rejudge"
    fork = "fork"


DatasetFile = Annotated[
    Path,
    typer.Argument(metavar="DATASET", help="JSON, JSONL, YAML, CSV, TSV or Parquet.", show_default=False),
]
RubricFile = Annotated[
    Path | None,
    typer.Option(
        "--rubric", metavar="R", help="Rubric file that replaces the dataset's rubric.", show_default=False
    ),
]
NoPreflight = Annotated[
    bool, typer.Option("--no-preflight", help="Skip the test request to each model before the run.")
]
RunName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Name of the run; an existing run with this name is resumed.  [default: the dataset's "
        "name and the time]",
        show_default=False,
    ),
]
RunsDir = Annotated[
    Path,
    typer.Option(
        "--runs-dir", metavar="DIR", help="Folder for the runs.  [default: experiments]", show_default=False
    ),
]
Mismatch = Annotated[
    OnMismatch,
    typer.Option(
        "--on-mismatch",
        metavar="HOW",
        help="What to do if the existing run has different inputs: refuse (list the differences), rejudge "
        "(request affected votes again), or fork (continue in a new folder).  [default: refuse]",
        show_default=False,
    ),
]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="Stop at the first item that fails.", show_default=False)
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        "--max-calls",
        metavar="N",
        min=1,
        help="Stop after N requests to models; the run can be resumed.",
        show_default=False,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="Stop before the run costs more than this; the price of every model must be known.",
        show_default=False,
        callback=_positive,
    ),
]
ShardOf = Annotated[
    Any,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="For job schedulers: grade only every N-th item, starting with item I (from 0), as a run named "
        "NAME-I-of-N. `merge` combines all N runs.",
        show_default=False,
        parser=_shard,
    ),
]
ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Where to grade: local (this process) or ray (a Ray cluster).  [default: local]",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Estimate the run's calls, tokens and cost without sending any request.",
        show_default=False,
    ),
]
NoProgress = Annotated[
    bool, typer.Option("--no-progress", help="Do not show progress on stderr.", show_default=False)
]


HOW_TO_GO_ON: Final = "the command again with --resume"
OutDir = Annotated[Path, typer.Option("--out-dir", metavar="D", help="Folder to write the output files to.")]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="S",
        help="JSON schema for critiques, used instead of the built-in schema.",
        show_default=False,
    ),
]
TemplateFile = Annotated[
    Path | None,
    typer.Option(
        "--template", metavar="T", help="Prompt template to replace the built-in one.", show_default=False
    ),
]
CritiqueRubric = Annotated[
    Path | None,
    typer.Option(
        "--rubric",
        metavar="R",
        help="Rubric file; each criterion yields a score, and the rubric score determines the verdict.",
        show_default=False,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="X",
        help="With --rubric: minimum score for the verdict pass.  [default: 0.7]",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Process at most N drafts.", show_default=False)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume from the existing records.", show_default=False)
]
RetryErrors = Annotated[
    bool, typer.Option("--retry-errors", help="With --resume: retry drafts that failed.", show_default=False)
]


MaxLostDrafts = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of the drafts could not be judged.  "
        f"[default: {MAX_LOST} with a --fail option, otherwise 0]"
    ),
]


def are_too_many(share: float, max_lost: float | None, *, is_gate: bool) -> bool:
    """Return whether `share` exceeds `max_lost`, which defaults to `MAX_LOST` with a gate, otherwise 0."""
    allowed = MAX_LOST if is_gate else 0.0
    return share > (allowed if max_lost is None else max_lost)


def report_lost(lost: int, total: int, first_error: str | None) -> float:
    """Print how many drafts could not be judged, with the first error, and return their fraction."""
    if not lost:
        return 0.0
    cause = "" if first_error is None else f"; first error: {first_error}"
    notice(f"Warning: {lost} of {total} drafts could not be judged{cause}")
    return lost / total


def demand_resume(resume: bool, retry_errors: bool) -> None:
    """Reject flags that require --resume."""
    if retry_errors and not resume:
        raise ArgumentError("--retry-errors requires --resume; otherwise every draft is processed again")


def tell_stopped(limit: str) -> Exit:
    """Print how to resume a pass that a limit or an error stopped, and return the exit code."""
    if limit == "errors":
        notice(f"Stopped. To resume, run {HOW_TO_GO_ON} --retry-errors.")
        return Exit.UNJUDGED
    notice(f"Stopped at --{limit.replace('_', '-')}. To resume, run {HOW_TO_GO_ON}.")
    return Exit.STOPPED


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
    """Return the column mapping that the options specify."""
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


def open_dataset(path: Path, rubric: Path | None, fields: FieldMap) -> RubricDataset:
    """Open a dataset file, and print which columns were used if it is a table."""
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
    from autorubric.datasets.ratings import read_long_table

    rows = [row for row in read_long_table(path, notice) if not raters or row.rater in raters]
    known = set(labelled.item_ids())
    people = dict.fromkeys(row.rater for row in rows if row.rater_type in ("", "human"))
    notice(f"labels in {path} by: {', '.join(people)}")
    others = sum(row.item_id not in known for row in rows)
    if others:
        notice(f"warning: {others} of {len(rows)} labels belong to items that are not in the dataset")
