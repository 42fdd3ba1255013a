"""Judges from `--judge` options and run files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.criteria.values import Level
    from autorubric.judges.panel import JudgeLike
    from autorubric.runs.run_file import RunFile
    from autorubric.runs.run_setup import RunSetup


JUDGE = (
    "Judge to grade with; repeat for a panel. Use a model name, lexical, supervised:TRAIN (trained on a "
    "labelled dataset), or recorded:CSV#RATER (votes from a table; omit #RATER if the table has one rater). "
    "Write NAME=J to name the judge in votes and reports."
)


def judge_option(help: str) -> Any:
    """Return the option `--judge`."""
    return typer.Option("--judge", metavar="J", help=help, show_default=False)


JudgeNames = Annotated[list[str], judge_option(JUDGE)]
ApiBase = Annotated[
    str | None,
    typer.Option(
        "--api-base",
        metavar="URL",
        help="Base URL of an OpenAI-compatible server, used for all judges that are models.",
        show_default=False,
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable that holds the API key of the models.  [default: the provider's "
        "variable; with --api-base, AUTORUBRIC_API_KEY]",
        show_default=False,
    ),
]
CacheDir = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        help="Cache model responses in this folder, and reuse them for identical requests.",
        show_default=False,
    ),
]


_LEVELS: tuple[Level, ...] = ("binary", "ordinal", "nominal", "ranking")


class OnFailure(StrEnum):
    """Policy for unreadable replies."""

    conservative = "conservative"
    exclude = "exclude"
    raise_ = "raise"


ON_FAILURE = typer.Option(
    "--on-failure",
    metavar="HOW",
    help="How to count an unreadable reply: conservative (as UNMET, or MET for a penalty), exclude (ignore "
    "it), or raise (leave the item without a score).  [default: conservative]",
    show_default=False,
)
HowFailuresCount = Annotated[OnFailure, ON_FAILURE]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="N",
        min=1,
        help="Number of votes that each model casts per criterion.  [default: 1]",
        show_default=False,
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        metavar="T",
        min=0,
        max=2,
        help="Sampling temperature of the models, from 0 to 2.  [default: set by the provider]",
        show_default=False,
    ),
]
Aggregation = Annotated[
    list[str] | None,
    typer.Option(
        "--aggregation",
        metavar="[LEVEL=]METHOD",
        help="How to combine votes. For binary criteria: majority, weighted, unanimous or any. For other "
        "levels: ordinal=METHOD (mean, median, weighted_mean, mode, min, max), nominal=METHOD (mode, "
        "weighted_mode, unanimous), ranking=METHOD (borda, bradley_terry). Repeat for several levels.  "
        "[default: majority, mean, mode, borda]",
        show_default=False,
    ),
]


def parse_judges(given: Sequence[str], **settings: Any) -> list[JudgeLike]:
    """Return the judges that the `--judge` values describe, in order; see `named_judges`."""
    from autorubric.judges.panel import named_judges

    return named_judges(given, **settings)


def parse_aggregation(given: Sequence[str] | None) -> dict[str, Any]:
    """Convert `--aggregation` values to arguments of `CriterionGrader`."""
    from autorubric.scoring.aggregation import AGGREGATORS

    known: dict[str, Collection[str]] = {level: AGGREGATORS[level] for level in _LEVELS}
    found: dict[str, Any] = {}
    for text in given or ():
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


DEFAULT = "autorubric.yaml"

Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATASET]",
        help="Dataset (JSON, JSONL, YAML, CSV, TSV, Parquet) or run file (YAML).  [default: autorubric.yaml]",
        show_default=False,
    ),
]
Panel = Annotated[list[str] | None, judge_option(f"{JUDGE} Replaces the run file's judges.")]
RunsFolder = Annotated[
    Path | None,
    typer.Option(
        "--runs-dir", metavar="DIR", help="Folder for the runs.  [default: experiments]", show_default=False
    ),
]
FailurePolicy = Annotated[OnFailure | None, ON_FAILURE]


def read_source(source: Path | None, judge: Sequence[str] | None) -> RunFile:
    """Read a run file, or create run file content that only names a dataset."""
    from autorubric.runs.run_file import DataSource, RunFile, is_run_file, read_run_file

    if source is None:
        if not Path(DEFAULT).exists():
            raise ArgumentError(
                f"no dataset was passed, and this folder has no {DEFAULT}; pass a dataset and --judge, or "
                "create a run file with: autorubric init"
            )
        return read_run_file(DEFAULT)
    if is_run_file(source):
        return read_run_file(source)
    if not judge:
        raise ArgumentError(f"no judge for {source}; pass --judge MODEL, or --judge lexical to work offline")
    return RunFile(data=DataSource(path=source))


def override(
    file: RunFile, judge: Sequence[str] | None, changes: Mapping[str, Any], settings: Mapping[str, Any]
) -> RunSetup:
    """Return the run that a run file describes, with flags overriding its settings."""
    from autorubric.judges.panel import demand_models
    from autorubric.llm.names import owner_of
    from autorubric.runs.run_setup import set_up

    given = {key: value for key, value in changes.items() if value is not None}
    for key in ("rubric", "runs_dir", "cache_dir"):
        # Paths of flags start from the working directory, those of the file from its folder.
        if key in given and file.folder != Path():
            given[key] = given[key].absolute()
    if "rubric" in given:
        given["rubric"] = str(given["rubric"])
    file = file.model_copy(update=given)
    chosen = {key: value for key, value in settings.items() if value is not None}
    if judge:
        cache = None if file.cache_dir is None else file.folder / file.cache_dir
        return set_up(file, parse_judges(judge, cache_dir=cache, **chosen))
    models = [entry.model for entry in file.judges if entry.is_model]
    demand_models(models, **chosen)
    variable = chosen.get("api_key_env")
    bases = {entry.api_base or owner_of(entry.model) for entry in file.judges if entry.is_model}
    if variable is not None and len(bases) > 1 and "api_base" not in chosen:
        raise ArgumentError(
            f"--api-key-env {variable}: the judges use several addresses or providers, and a key is sent to "
            "only one of them; set api_key_env for each judge in the run file"
        )
    return set_up(file.with_model_settings(chosen))
