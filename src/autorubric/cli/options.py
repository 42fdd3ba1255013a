"""Options that several commands share; a dataclass is a group that commands take as one parameter."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer

import autorubric
from autorubric.cli.command import Exit, exit_code, notice
from autorubric.criteria.values import MAX_LOST, VerdictCounts
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.datasets.fields import FieldMap
    from autorubric.grading.grader import CriterionGrader
    from autorubric.judges.panel import JudgeLike


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


def _check_amount(value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not an amount; it must be a positive number of US dollars")
    return value


def _check_score(value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a score; it must be a finite number")
    return value


# Runs and their output.

RunFolder = Annotated[Path, argument("RUN", "Folder of the run.")]
JsonFlag = Annotated[bool, flag("--json", "Print one JSON object on stdout instead of tables.")]
Seed = Annotated[int, option("--seed", "N", "Seed for resampling.  [default: 0]", min=0)]
RunsDir = Annotated[Path, option("--runs-dir", "DIR", "Folder for the runs.  [default: experiments]")]
NoPreflight = Annotated[bool, flag("--no-preflight", "Skip the test request to each model before the run.")]


NoProgress = Annotated[bool, flag("--no-progress", "Do not show progress on stderr.")]
MaxCalls = Annotated[
    int | None, option("--max-calls", "N", "Stop after N requests to models; the run can be resumed.", min=1)
]
MaxCost = Annotated[
    float | None,
    option(
        "--max-cost",
        "USD",
        "Stop before the run costs more than this; the price of every model must be known.",
        callback=_check_amount,
    ),
]

# Gates.


def max_lost_option(help: str) -> Any:
    """Return the `--max-lost` option, which takes a fraction in [0, 1]."""
    return option("--max-lost", "SHARE", help, min=0, max=1)


MaxLost = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of verdicts was lost or assumed.  "
        f"[default: {MAX_LOST} with a --fail option]"
    ),
]


def fail_under_option(help: str, **settings: Any) -> Any:
    """Return a `--fail-under` option that takes a score."""
    return option("--fail-under", "X", help, callback=_check_score, **settings)


FailUnder = Annotated[
    float | None,
    fail_under_option(
        "Exit with code 1 if the score, or the mean score of the items, is below X (0 to 1).", min=0, max=1
    ),
]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The gates on scores and on lost verdicts."""

    fail_under: FailUnder = None
    max_lost: MaxLost = None

    def exit_code(self, score: float | None, verdicts: VerdictCounts, *, unjudged: int = 0) -> Exit:
        """Return the exit code for a score, and print a notice if a gate fails."""
        return exit_code(score, self.fail_under, unjudged=unjudged, verdicts=verdicts, max_lost=self.max_lost)


# Datasets and their columns.

DatasetFile = Annotated[Path, argument("DATASET", "JSON, JSONL, YAML, CSV, TSV or Parquet.")]
RubricFile = Annotated[
    Path | None, option("--rubric", "R", "Rubric file that replaces the dataset's rubric.")
]
OwnRubric = Annotated[
    Path | None, option("--rubric", "R", "Rubric file.  [default: the dataset's own rubric]")
]
Raters = Annotated[
    list[str] | None,
    option(
        "--rater",
        "NAME",
        "Rater whose labels to read, or the rater's column in the table. Repeatable.  [default: all]",
    ),
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

    def field_map(self) -> FieldMap:
        """Return the column mapping that the options specify."""
        columns = {
            "submission": self.submission,
            "prompt": self.prompt,
            "reference": self.reference,
            "id": self.id_column,
        }
        found = cast("FieldMap", {field: column for field, column in columns.items() if column is not None})
        labels = {}
        for text in self.truth or ():
            criterion, equals, column = text.rpartition("=")
            if not (criterion and equals and column):
                raise ArgumentError(
                    f"--truth must be CRITERION=COL, such as polite=human_polite; got {text!r}"
                )
            if criterion in labels:
                raise ArgumentError(
                    f"--truth names {criterion} twice. To use several annotators' labels, pass --labels FILE "
                    "to autorubric metrics, or add them to the dataset with: autorubric labels merge"
                )
            labels[criterion] = column
        if labels:
            found["truth"] = labels
        if self.meta:
            found["metadata"] = list(self.meta)
        return found

    def open(self, path: Path, rubric: Path | None) -> RubricDataset:
        """Open a dataset file, and print which columns were used if it is a table."""
        dataset = autorubric.RubricDataset.from_file(path, rubric=rubric, **self.field_map())
        notice_columns(dataset)
        return dataset


def notice_columns(dataset: RubricDataset) -> None:
    """Print which columns were used, if the dataset was read from a table."""
    columns = dataset.columns_line()
    if columns is not None:
        notice(f"columns: {columns}")


# Human labels.

TruthRuleName: TypeAlias = Literal["mode", "majority", "median", "mean"]
LabelledFile = Annotated[
    Path | None,
    option(
        "--dataset",
        "D",
        "Dataset with other labels for the graded items.  [default: the labels stored with the run]",
    ),
]
Truth = Annotated[
    TruthRuleName | None,
    option(
        "--truth",
        "RULE",
        "How to combine several annotators' labels: mode, majority (more than half), median or mean. "
        " [default: median for ordinal scales, mean for numbers, otherwise mode]",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The human labels that a run's verdicts are compared with."""

    dataset: LabelledFile = None
    labels: Annotated[
        Path | None,
        option(
            "--labels",
            "FILE",
            "File with human labels that replace those stored with the run: a table (CSV, TSV) with one row "
            "per label (item_id, criterion, rater, value) or one column per annotator (item_id, criterion "
            "and names), or the labels.jsonl of `autorubric view`.",
        ),
    ] = None
    rater: Raters = None

    def labelled(self, result: autorubric.EvalResult, truth: TruthRuleName | None) -> RubricDataset | None:
        """Return the dataset with the labels to compare with, or None for the labels stored with the run."""
        if self.rater and self.labels is None:
            raise ArgumentError("--rater requires --labels FILE, the file that contains the raters")
        labelled = autorubric.RubricDataset.from_file(self.dataset) if self.dataset is not None else None
        if self.labels is not None:
            stored = result.dataset if labelled is None else labelled
            bare = [item.model_copy(update={"ground_truth": None, "ratings": {}}) for item in stored]
            labelled = stored.with_items(bare).with_ratings(self.labels, raters=self.rater or None)
            notice_labels(self.labels, labelled, self.rater)
        if truth is None:
            return labelled
        return (result.dataset if labelled is None else labelled).with_truth(truth)


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


# Judges.

JUDGE = (
    "Judge to grade with; repeat for a panel. Use a model name, lexical, supervised:TRAIN (trained on a "
    "labelled dataset), or recorded:CSV#RATER (votes from a table; omit #RATER if the table has one rater). "
    "Write NAME=J to name the judge in votes and reports."
)
JudgeNames = Annotated[list[str], option("--judge", "J", JUDGE)]


class OnFailure(StrEnum):
    """Policy for unreadable replies."""

    conservative = "conservative"
    exclude = "exclude"
    raise_ = "raise"


@dataclass(frozen=True, kw_only=True)
class Models:
    """How to reach the judges that are models."""

    api_base: Annotated[
        str | None,
        option(
            "--api-base",
            "URL",
            "Base URL of an OpenAI-compatible server, used for all judges that are models.",
        ),
    ] = None
    api_key_env: Annotated[
        str | None,
        option(
            "--api-key-env",
            "NAME",
            "Environment variable that holds the API key of the models.  [default: the provider's "
            "variable; with --api-base, AUTORUBRIC_API_KEY]",
        ),
    ] = None
    cache_dir: Annotated[
        Path | None,
        option(
            "--cache-dir",
            "DIR",
            "Cache model responses in this folder, and reuse them for identical requests.",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of models, other than the cache folder."""
        return {"api_base": self.api_base, "api_key_env": self.api_key_env}

    def judges(self, names: Sequence[str]) -> list[JudgeLike]:
        """Return the judges that the `--judge` values describe, in order."""
        return parse_judges(names, cache_dir=self.cache_dir, **self.settings())


@dataclass(frozen=True, kw_only=True)
class Panel(Models):
    """How the judges of a panel vote, and how their votes are combined."""

    temperature: Annotated[
        float | None,
        option(
            "--temperature",
            "T",
            "Sampling temperature of the models, from 0 to 2.  [default: set by the provider]",
            min=0,
            max=2,
        ),
    ] = None
    samples: Annotated[
        int | None,
        option("--samples", "N", "Number of votes that each model casts per criterion.  [default: 1]", min=1),
    ] = None
    aggregation: Annotated[
        list[str] | None,
        option(
            "--aggregation",
            "[LEVEL=]METHOD",
            "How to combine votes. For binary criteria: majority, weighted, unanimous or any. For other "
            "levels: ordinal=METHOD (mean, median, weighted_mean, mode, min, max), nominal=METHOD (mode, "
            "weighted_mode, unanimous), ranking=METHOD (borda, bradley_terry). Repeat for several levels.  "
            "[default: majority, mean, mode, borda]",
        ),
    ] = None
    on_failure: Annotated[
        OnFailure | None,
        option(
            "--on-failure",
            "HOW",
            "How to count an unreadable reply: conservative (as UNMET, or MET for a penalty), exclude "
            "(ignore it), or raise (leave the item without a score).  [default: conservative]",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of models, other than the cache folder."""
        return {**super().settings(), "temperature": self.temperature, "samples": self.samples}

    def grader(self, names: Sequence[str]) -> CriterionGrader:
        """Return the grader with these judges."""
        return autorubric.CriterionGrader(**self._policies(names))

    def checked_grader(self, names: Sequence[str], *, preflight: bool) -> CriterionGrader:
        """Return the grader with these judges; with `preflight`, models get a test request first."""
        # Late, since it loads the judges.
        from autorubric.runs.preflight import CheckedGrader

        return CheckedGrader(preflight=preflight, **self._policies(names))

    def _policies(self, names: Sequence[str]) -> dict[str, Any]:
        policy = self.on_failure or OnFailure.conservative
        return {
            "judges": self.judges(names),
            "on_failure": policy.value,
            **parse_aggregation(self.aggregation),
        }


def parse_judges(names: Sequence[str], **settings: Any) -> list[JudgeLike]:
    """Return the judges that the `--judge` values describe, in order; see `named_judges`."""
    from autorubric.judges.panel import named_judges

    return named_judges(names, **settings)


def parse_aggregation(values: Sequence[str] | None) -> dict[str, Any]:
    """Convert `--aggregation` values to arguments of `CriterionGrader`."""
    from autorubric.scoring.aggregation import AGGREGATORS

    known: dict[str, Collection[str]] = {
        level: AGGREGATORS[level] for level in ("binary", "ordinal", "nominal", "ranking")
    }
    found: dict[str, Any] = {}
    for text in values or ():
        level, _, method = text.rpartition("=")
        methods = known.get(level or "binary")
        if methods is None:
            raise ArgumentError(
                f"--aggregation {text!r}: unknown level {level!r}; available: {', '.join(known)}"
            )
        if method not in methods:
            others = [f"{one}={method}" for one in known if method in known[one]]
            hint = f"; did you mean {' or '.join(others)}?" if others and not level else ""
            raise ArgumentError(
                f"--aggregation {text!r}: unknown method {method!r} for {level or 'binary'} criteria; "
                f"available: {', '.join(methods)}{hint}"
            )
        found["aggregation" if level in ("", "binary") else f"{level}_aggregation"] = method
    return found
