"""`autorubric eval`."""

from __future__ import annotations

import re
import shlex
import statistics
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import autorubric
from autorubric.cli._judges import ApiBase, CacheDir, JudgeNames, parse_judges
from autorubric.cli._output import Exit, JsonFlag, MeanFailUnder, exit_code, guarded, notice, print_json
from autorubric.cli._tables import print_blocks

if TYPE_CHECKING:
    from autorubric.dataset import RubricDataset
    from autorubric.eval import EvalResult
    from autorubric.graders import Grader

_MOST_TOLD = 5


class OnMismatch(StrEnum):
    """What to do where a stored run depends on something that has changed."""

    refuse = "refuse"
    rejudge = "rejudge"
    fork = "fork"


DatasetFile = Annotated[
    Path,
    typer.Argument(metavar="DATASET", help="A JSON, JSONL, YAML, CSV or Parquet file.", show_default=False),
]
RubricFile = Annotated[
    Path | None,
    typer.Option(
        "--rubric",
        metavar="R",
        help="A rubric file, in place of the dataset's rubric.",
        show_default=False,
    ),
]
RunName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="The run's name; a run of that name is gone on with. Left out, it is made from the "
        "dataset's name and the time.",
        show_default=False,
    ),
]
RunsDir = Annotated[
    Path,
    typer.Option(
        "--runs-dir",
        metavar="DIR",
        help="The folder of runs.  [default: experiments]",
        show_default=False,
    ),
]
Mismatch = Annotated[
    OnMismatch,
    typer.Option(
        "--on-mismatch",
        metavar="HOW",
        help="Where the run of that name was made with something else: refuse and say what; rejudge what "
        "changed; or fork, which goes on in a new folder.  [default: refuse]",
        show_default=False,
    ),
]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="End with the first item that fails.", show_default=False)
]
NoProgress = Annotated[
    bool, typer.Option("--no-progress", help="Show no progress on stderr.", show_default=False)
]


@guarded
def evaluate(  # noqa: PLR0913
    dataset: DatasetFile,
    judge: JudgeNames,
    rubric: RubricFile = None,
    name: RunName = None,
    runs_dir: RunsDir = Path("experiments"),
    on_mismatch: Mismatch = OnMismatch.refuse,
    fail_fast: FailFast = False,
    no_progress: NoProgress = False,
    api_base: ApiBase = None,
    cache_dir: CacheDir = None,
    fail_under: MeanFailUnder = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade a dataset into a run folder.

    A run that is stopped goes on when it is started again under its name.

    With --json the object has: experiment_name, experiment_dir, total_items, successful_items, failed_items,
    mean_score, tokens, cost, seconds, notices, and items, a list with: id, score, error.

    \b
    Example:
      autorubric eval essays.json --judge gpt-4.1-mini --judge lexical --name one

    Exit codes: 0 done, 1 below --fail-under, 2 faulty command line or file, 3 could not be judged,
    130 stopped.
    """
    items = autorubric.RubricDataset.from_file(dataset, rubric=rubric)
    grader = autorubric.CriterionGrader(judges=parse_judges(judge, api_base=api_base, cache_dir=cache_dir))
    chosen = name or made_name(dataset.stem)
    result = run_resumable(
        items,
        grader,
        how_to_go_on=f"the same command with --name {shlex.quote(chosen)}",
        fail_fast=fail_fast,
        show_progress=not no_progress,
        experiment_name=chosen,
        experiments_dir=runs_dir,
        on_mismatch=on_mismatch.value,
    )
    if result is None:
        return Exit.STOPPED
    mean = mean_score(result)
    if as_json:
        print_json(_json(result, mean))
    else:
        print_blocks(result.blocks())
    _tell(result, as_json=as_json)
    return exit_code(mean, fail_under, unjudged=result.failed_items)


def run_resumable(
    dataset: RubricDataset, grader: Grader, *, how_to_go_on: str, **options: Any
) -> EvalResult | None:
    """The run's result; None where it was stopped, and then stderr says how to go on.

    Args:
        dataset: What is graded.
        grader: By whom.
        how_to_go_on: What to give on the command line to go on with the run.
        options: As for `EvalConfig`, with a name.
    """
    # Late, since `--help` should not wait for it.
    import logging

    # How to go on is said here, in the command line's own terms.
    logging.getLogger("autorubric.eval").addHandler(logging.NullHandler())
    config = autorubric.EvalConfig(**options)
    try:
        return autorubric.EvalRunner(dataset, grader, config).run_sync()
    except KeyboardInterrupt:
        folder = config.experiments_dir / str(config.experiment_name)
        notice(f"Stopped. What was judged is in {folder}; to go on, give {how_to_go_on}.")
        return None


def made_name(stem: str) -> str:
    """A run's name: what a file is called, without what no folder may be called, and the time."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-_") or "run"
    return f"{kept}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def mean_score(result: EvalResult) -> float | None:
    """Mean score of the items that have one; None where none has."""
    scores = [score for score in result.get_scores() if score is not None]
    return statistics.fmean(scores) if scores else None


def _tell(result: EvalResult, *, as_json: bool) -> None:
    if as_json:
        for text in result.notices:
            notice(text)
    for position, error in result.errors[:_MOST_TOLD]:
        notice(f"item {result.dataset.item_id(position)!r}: {error}")
    if len(result.errors) > _MOST_TOLD:
        notice(f"and {len(result.errors) - _MOST_TOLD} more items with errors")
    if any(result.dataset.item_truth(one.item_idx) for one in result.item_results):
        notice(f"How far to trust it: autorubric metrics {shlex.quote(str(result.experiment_dir))}")


def _json(result: EvalResult, mean: float | None) -> dict[str, Any]:
    usage = result.total_token_usage
    return {
        "experiment_name": result.experiment_name,
        "experiment_dir": str(result.experiment_dir),
        "total_items": result.total_items,
        "successful_items": result.successful_items,
        "failed_items": result.failed_items,
        "mean_score": mean,
        "tokens": usage.total_tokens if usage else None,
        "cost": result.total_completion_cost,
        "seconds": result.timing_stats.total_duration_seconds,
        "notices": list(result.notices),
        "items": [
            {
                "id": result.dataset.item_id(one.item_idx),
                "score": one.report.score if one.report else None,
                "error": one.error or (one.report.error if one.report else None),
            }
            for one in result.item_results
        ],
    }
