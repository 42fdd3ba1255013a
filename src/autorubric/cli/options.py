"""Options that several commands share; a dataclass is a group that commands take as one parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args

import typer
from pydantic import BaseModel

import autorubric
from autorubric.cli.command import notice
from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.llm.config import LLMConfig
from autorubric.runs.config import EvalConfig
from autorubric.scoring.aggregation import AGGREGATORS
from autorubric.scoring.policies import AggregationPolicy, OnFailure


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
        columns = {
            "submission": self.submission,
            "prompt": self.prompt,
            "reference": self.reference,
            "id": self.id_column,
        }
        found = cast(
            "autorubric.datasets.FieldMap",
            {field: column for field, column in columns.items() if column is not None},
        )
        labels: dict[str, str] = {}
        for criterion, column in read_pairs("--truth", "CRITERION=COL", "polite=human_polite", self.truth):
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


# Judges.

JUDGE = (
    "Judge to grade with; repeat for a panel. Use a model name, lexical, supervised:TRAIN (trained on a "
    "labelled dataset), or recorded:CSV#RATER (votes from a table; omit #RATER if the table has one rater). "
    "Write NAME=J to name the judge in votes and reports."
)
JudgeNames = Annotated[list[str], option("--judge", "J", JUDGE)]


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

    def judges(self, names: Sequence[str]) -> list[autorubric.judges.JudgeLike]:
        """Return the judges that the `--judge` values describe, in order."""
        return autorubric.judges.panel.named_judges(names, cache_dir=self.cache_dir, **self.settings())


_AGGREGATIONS: Final[Mapping[Level, str]] = {
    "binary": "aggregation",
    "ordinal": "ordinal_aggregation",
    "nominal": "nominal_aggregation",
    "ranking": "ranking_aggregation",
}
"""Fields of `AggregationPolicy` by level."""
METHODS: Final = {level: values_of(AggregationPolicy, field) for level, field in _AGGREGATIONS.items()}
_POLICIES: Final = AggregationPolicy()
_DEFAULT_METHODS: Final = ", ".join(getattr(_POLICIES, field) for field in _AGGREGATIONS.values())


@dataclass(frozen=True, kw_only=True)
class Panel(Models):
    """How the judges of a panel vote, and how their votes are combined."""

    temperature: Annotated[
        float | None,
        option(
            "--temperature",
            "T",
            "Sampling temperature of the models, from 0 to 2.  [default: set by the provider]",
            **range_of(LLMConfig, "temperature"),
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
            f"How to combine votes. For binary criteria: {names_of(METHODS['binary'])}. For other levels: "
            f"ordinal=METHOD ({', '.join(METHODS['ordinal'])}), nominal=METHOD "
            f"({', '.join(METHODS['nominal'])}), ranking=METHOD ({', '.join(METHODS['ranking'])}). Repeat "
            f"for several levels.  [default: {_DEFAULT_METHODS}]",
        ),
    ] = None
    on_failure: Annotated[
        OnFailure | None,
        option(
            "--on-failure",
            "HOW",
            "How to count an unreadable reply: conservative (as UNMET, or MET for a penalty), exclude "
            "(ignore it), or raise (leave the item without a score).  "
            f"[default: {_POLICIES.on_failure}]",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of models, other than the cache folder."""
        return {**super().settings(), "temperature": self.temperature, "samples": self.samples}

    def policies(self) -> dict[str, Any]:
        """Return the policies that are set, as arguments of a grader or fields of a run file."""
        policies = aggregation_policies(self.aggregation)
        return policies if self.on_failure is None else {**policies, "on_failure": self.on_failure}

    def grader(self, names: Sequence[str]) -> autorubric.CriterionGrader:
        """Return the grader with these judges."""
        return autorubric.CriterionGrader(judges=self.judges(names), **self.policies())

    def checked_grader(self, names: Sequence[str], *, preflight: bool) -> autorubric.CriterionGrader:
        """Return the grader with these judges; with `preflight`, models get a test request first."""
        judges = self.judges(names)
        return autorubric.runs.preflight.CheckedGrader(preflight=preflight, judges=judges, **self.policies())


def aggregation_policies(values: Sequence[str] | None) -> dict[str, Any]:
    """Return the methods in `--aggregation` values by field of `AggregationPolicy`."""
    known: dict[str, Collection[str]] = {level: AGGREGATORS[level] for level in _AGGREGATIONS}
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
