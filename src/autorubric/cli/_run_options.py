"""Options shared by commands that run over a dataset."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

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
