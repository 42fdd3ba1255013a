"""Options that several commands share; a dataclass is a group that commands take as one parameter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args

import typer
from pydantic import BaseModel

import autorubric
from autorubric.cli.app import notice
from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError, DatasetError, Fault, FileError
from autorubric.runs.config import EvalConfig
from autorubric.support.chat_tokens import INVISIBLE


def option(names: str, metavar: str | None, help: str, **settings: Any) -> Any:
    """Return an option without a printed default; `names` are separated by blanks."""
    settings.setdefault("show_default", False)
    return typer.Option(*names.split(), metavar=metavar, help=help, **settings)


def flag(name: str, help: str) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=help, show_default=False)


def argument(metavar: str, help: str) -> Any:
    """Return a positional argument without a printed default."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def range_of(model: type[BaseModel], field: str) -> dict[str, float]:
    """Return the range of a field as settings of an option."""
    rules = model.model_fields[field].metadata
    bounds = {"min": "ge", "max": "le"}
    return {key: getattr(rule, name) for key, name in bounds.items() for rule in rules if hasattr(rule, name)}


def names_of(values: Iterable[str]) -> str:
    """Return names as a list in words: `a, b or c`."""
    *others, last = values
    return f"{', '.join(others)} or {last}" if others else last


def values_of(model: type[BaseModel], field: str) -> tuple[str, ...]:
    """Return the values that a field can have."""
    return get_args(model.model_fields[field].annotation)


def demand(accepts: Callable[[float], bool], rule: str) -> Callable[[float | None], float | None]:
    """Return a callback that rejects other numbers; the message is the number, "is not" and the rule."""

    def check(value: float | None) -> float | None:
        if value is not None and not accepts(value):
            raise typer.BadParameter(f"{value} is not {rule}")
        return value

    return check


def read_pairs(option: str, form: str, example: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return both sides of each value of an option of the form `NAME=VALUE`, split at the last `=`."""
    pairs = []
    for text in texts or ():
        name, equals, value = text.rpartition("=")
        if not (name and equals and value):
            raise ArgumentError(f"{option} must be {form}, such as {example}; got {text!r}")
        pairs.append((name, value))
    return pairs


def read_numbers(
    option: str, form: str, example: str, texts: Sequence[str] | None
) -> dict[str, float] | None:
    """Return the numbers in `NAME=NUMBER` values of an option by name; None if there are none."""
    found = {}
    for name, number in read_pairs(option, form, example, texts):
        if name in found:
            raise ArgumentError(f"{option} has two values for {name!r}; pass one")
        try:
            found[name] = float(number)
        except ValueError:
            text = f"{name}={number}"
            raise ArgumentError(f"{option} must be {form}, such as {example}; got {text!r}") from None
    return found or None


# Runs and their output.

RunFolder = Annotated[Path, argument("RUN", "Folder of the run.")]
JsonFlag = Annotated[bool, flag("--json", "Print one JSON object on stdout instead of tables.")]
Seed = Annotated[int, option("--seed", "N", "Seed for resampling.  [default: 0]", min=0)]
RUN_DEFAULTS: Final = EvalConfig()
RunsDir = Annotated[
    Path, option("--runs-dir", "DIR", f"Folder for the runs.  [default: {RUN_DEFAULTS.experiments_dir}]")
]
NoPreflight = Annotated[bool, flag("--no-preflight", "Skip the test request to each model before the run.")]
NoProgress = Annotated[bool, flag("--no-progress", "Do not show progress on stderr.")]
MaxCalls = Annotated[
    int | None,
    option(
        "--max-calls",
        "N",
        "Stop after N requests to models; the run can be resumed.",
        **range_of(EvalConfig, "max_calls"),
    ),
]
MaxCost = Annotated[
    float | None,
    option(
        "--max-cost",
        "USD",
        "Stop before the run costs more than this; the price of every model must be known.",
        callback=demand(
            lambda cost: 0 < cost < math.inf, "an amount; it must be a positive number of US dollars"
        ),
    ),
]

# Datasets and their columns.

DatasetFile = Annotated[Path, argument("DATASET", "JSON, JSONL, YAML, CSV, TSV or Parquet.")]
RubricFile = Annotated[
    Path | None, option("--rubric", "R", "Rubric file that replaces the dataset's rubric.")
]
OwnRubric = Annotated[
    Path | None, option("--rubric", "R", "Rubric file.  [default: the dataset's own rubric]")
]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a table."""

    submission: Annotated[str | None, option("--submission", "COL", "Column with the texts to grade.")] = None
    prompt: Annotated[str | None, option("--prompt", "COL", "Column with the prompts.")] = None
    reference: Annotated[str | None, option("--reference", "COL", "Column with the reference answers.")] = (
        None
    )
    id_column: Annotated[str | None, option("--id", "COL", "Column with the unique ids.")] = None
    truth: Annotated[
        list[str] | None,
        option("--truth", "CRITERION=COL", "Column with the labels of a criterion. Repeatable."),
    ] = None
    meta: Annotated[
        list[str] | None,
        option("--meta", "COL", "Column to keep as metadata. Repeatable.  [default: every other column]"),
    ] = None

    def field_map(self) -> autorubric.datasets.FieldMap:
        """Return the column mapping that the options specify."""
        labels: dict[str, str] = {}
        for criterion, column in read_pairs("--truth", "CRITERION=COL", "polite=human_polite", self.truth):
            if criterion in labels:
                raise ArgumentError(
                    f"--truth names {criterion} twice. To use several annotators' labels, pass --labels FILE "
                    "to autorubric metrics, or add them to the dataset with: autorubric labels merge"
                )
            labels[criterion] = column
        columns = {
            "submission": self.submission,
            "prompt": self.prompt,
            "reference": self.reference,
            "id": self.id_column,
            "truth": labels or None,
            "metadata": self.meta or None,
        }
        chosen = {field: given for field, given in columns.items() if given is not None}
        return cast("autorubric.datasets.FieldMap", chosen)

    def open(self, path: Path, rubric: Path | None) -> autorubric.RubricDataset:
        """Open a dataset file, and print which columns were used if it is a table."""
        dataset = autorubric.RubricDataset.from_file(path, rubric=rubric, **self.field_map())
        notice_columns(dataset)
        return dataset


def notice_columns(dataset: autorubric.RubricDataset) -> None:
    """Print which columns were used, if the dataset was read from a table."""
    columns = dataset.columns_line()
    if columns is not None:
        notice(f"columns: {columns}")


_UNSEEN: Final = re.compile(rf"[\s{INVISIBLE}]*")


def check_texts(file: Path, dataset: autorubric.RubricDataset, position: int | None = None) -> None:
    """Check that there are items, and that every submission (or that at a position) has a text."""
    if not len(dataset):
        raise FileError.whole(file, "the dataset has no items; there is nothing to judge")
    whys = {}
    for at, item in enumerate(dataset):
        if item.submission is None:
            whys[at] = "missing, although other items have one; add its text"
        elif is_empty(item.submission):
            whys[at] = "empty; there is nothing to judge"
    if len(whys) == len(dataset) and all(item.submission is None for item in dataset):
        # The texts are stored elsewhere, as for recorded votes, unless a column was chosen for them.
        chosen = "submission" in (dataset.field_map or {})
        whys = dict.fromkeys(whys, "missing; add its text") if chosen else {}
    faults = [
        Fault(path=f"item {dataset.item_id(at)!r}", message=f"the submission is {why}")
        for at, why in whys.items()
        if position in (None, at)
    ]
    if faults:
        raise DatasetError(str(file), faults)


def is_empty(given: Any) -> bool:
    """Return whether a submission, or one of its candidates, has no visible text and no call of a tool."""
    submission = Submission.parse(given)
    texts = [*submission.candidates.values()] or [submission.text or ""]
    if submission.turns and not any(turn.tool_calls for turn in submission.turns):
        texts = ["".join(turn.text or "" for turn in submission.turns)]
    return any(_UNSEEN.fullmatch(text) for text in texts)
