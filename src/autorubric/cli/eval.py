"""`autorubric eval`."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import autorubric
from autorubric.cli._judges import ApiBase, CacheDir, JudgeNames, parse_judges
from autorubric.cli._output import (
    Exit,
    JsonFlag,
    MeanFailUnder,
    exit_code,
    guarded,
    in_flags,
    notice,
    print_json,
)
from autorubric.cli._tables import print_blocks

if TYPE_CHECKING:
    from autorubric.dataset import RubricDataset
    from autorubric.eval import EvalConfig, EvalResult
    from autorubric.graders import Grader

_MOST_TOLD = 5
_MOST_LOOKED_AT = 100


_SHARD = re.compile(r"(\d{1,9})/(\d{1,9})")


def _shard(given: str) -> tuple[int, int]:
    found = _SHARD.fullmatch(given)
    if found is None:
        raise typer.BadParameter(f"{given!r} is no shard; give two numbers, as 0/8 for the first of eight")
    return int(found[1]), int(found[2])


def _positive(given: float | None) -> float | None:
    if given is not None and not 0 < given < float("inf"):
        raise typer.BadParameter(f"{given} is no amount; give US dollars above 0")
    return given


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
MaxCalls = Annotated[
    int | None,
    typer.Option(
        "--max-calls",
        metavar="N",
        min=1,
        help="Stop once N requests were sent to models; the run can be gone on with.",
        show_default=False,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="Stop before requests cost more than this; every model's price has to be known.",
        show_default=False,
        callback=_positive,
    ),
]
ShardOf = Annotated[
    Any,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Grade only every N-th item from item I on, counted from 0, as a run called NAME-I-of-N; for "
        "schedulers. `merge` makes one run of all N.",
        show_default=False,
        parser=_shard,
    ),
]
ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Who grades: local is this process; ray is a cluster.  [default: local]",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print what the run would take in calls, tokens and US dollars, and send nothing.",
        show_default=False,
    ),
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
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    shard: ShardOf = None,
    executor: ExecutorName = "local",
    dry_run: DryRun = False,
    no_progress: NoProgress = False,
    api_base: ApiBase = None,
    cache_dir: CacheDir = None,
    fail_under: MeanFailUnder = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade a dataset into a run folder.

    A run that is stopped goes on when it is started again under its name.

    With --json the object has: experiment_name, experiment_dir, total_items, successful_items, failed_items,
    mean_score, tokens, cost, calls_saved, seconds, stopped, notices, and items, a list with: id, score,
    error. With --dry-run it has: items, votes, calls, prompt_tokens, completion_tokens, cost, at_most,
    stored_votes, judges and notes.

    \b
    Example:
      autorubric eval essays.json --judge gpt-4.1-mini --judge lexical --name one

    Exit codes: 0 done, 1 below --fail-under, 2 faulty command line or file, 3 could not be judged,
    130 stopped, by the user or at --max-calls or --max-cost.
    """
    items = _opened(dataset, rubric)
    grader = autorubric.CriterionGrader(judges=parse_judges(judge, api_base=api_base, cache_dir=cache_dir))
    if shard and name is None:
        name = dataset.stem
    if dry_run:
        return _tell_estimate(items, grader, name, runs_dir, shard, as_json=as_json)
    chosen = name or made_name(dataset.stem)
    how_to_go_on = f"the same command with --name {shlex.quote(chosen)}"
    result = run_resumable(
        items,
        grader,
        how_to_go_on=how_to_go_on,
        fail_fast=fail_fast,
        show_progress=not no_progress,
        experiment_name=chosen,
        experiments_dir=runs_dir,
        on_mismatch=on_mismatch.value,
        max_calls=max_calls,
        max_cost=max_cost,
        executor=executor,
        shard=shard,
    )
    if result is None:
        return Exit.STOPPED
    result = replace(result, notices=tuple(map(in_flags, result.notices)))
    mean = mean_score(result)
    if as_json:
        print_json(_json(result, mean))
    else:
        print_blocks(result.blocks())
    _tell(result, as_json=as_json)
    if result.stopped is not None:
        notice(f"Stopped at --{result.stopped.replace('_', '-')}; to go on, give {how_to_go_on}.")
        return Exit.STOPPED
    return exit_code(mean, fail_under, unjudged=result.failed_items)


def _opened(path: Path, rubric: Path | None) -> RubricDataset:
    """The dataset in a file; one that can be read row by row stays there."""
    if path.suffix.lower() in (".jsonl", ".parquet"):
        return autorubric.RubricDataset.stream(path, rubric=rubric)
    return autorubric.RubricDataset.from_file(path, rubric=rubric)


def run_resumable(
    dataset: RubricDataset,
    grader: Grader,
    *,
    how_to_go_on: str,
    shard: tuple[int, int] | None = None,
    **options: Any,
) -> EvalResult | None:
    """The run's result; None where it was stopped, and then stderr says how to go on.

    Args:
        dataset: What is graded.
        grader: By whom.
        how_to_go_on: What to give on the command line to go on with the run.
        shard: Which part of the dataset, and of how many; None for all of it.
        options: As for `EvalConfig`, with a name.
    """
    dataset, config = _sharded(dataset, autorubric.EvalConfig(**options), shard)
    try:
        return autorubric.EvalRunner(dataset, grader, config).run_sync()
    except KeyboardInterrupt:
        folder = config.experiments_dir / str(config.experiment_name)
        notice(f"Stopped. What was judged is in {folder}; to go on, give {how_to_go_on}.")
        return None


def _sharded(
    dataset: RubricDataset, config: EvalConfig, shard: tuple[int, int] | None
) -> tuple[RubricDataset, EvalConfig]:
    """The part of the dataset that is graded, with the options of its run."""
    if shard is None:
        return dataset, config
    # Late, since `--help` should not wait for it.
    from autorubric.eval import shard_of

    return shard_of(dataset, config, *shard)


def _tell_estimate(
    dataset: RubricDataset,
    grader: Grader,
    name: str | None,
    runs_dir: Path,
    shard: tuple[int, int] | None,
    *,
    as_json: bool,
) -> Exit:
    dataset, config = _sharded(dataset, autorubric.EvalConfig(experiment_name=name), shard)
    name = config.experiment_name
    found = autorubric.estimate(dataset, grader, experiment_name=name, experiments_dir=runs_dir)
    if as_json:
        print_json(found.to_dict())
    else:
        print_blocks(found.blocks())
    return Exit.DONE


def made_name(stem: str) -> str:
    """A run's name: what a file is called, without what no folder may be called, and the time."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-_") or "run"
    return f"{kept}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def mean_score(result: EvalResult) -> float | None:
    """Mean score of the items that have one; None where none has."""
    return result.item_results.tally.mean_score


def _tell(result: EvalResult, *, as_json: bool) -> None:
    if as_json:
        for text in result.notices:
            notice(text)
    for position, error in result.errors[:_MOST_TOLD]:
        notice(f"item {result.dataset.item_id(position)!r}: {error}")
    if len(result.errors) > _MOST_TOLD:
        notice(f"and {len(result.errors) - _MOST_TOLD} more items with errors")
    first = islice(result.item_results.positions, _MOST_LOOKED_AT)
    if any(result.dataset.item_truth(position) for position in first):
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
        "calls_saved": result.calls_saved,
        "stopped": result.stopped,
        "seconds": result.timing_stats.total_duration_seconds,
        "notices": list(result.notices),
        "items": [
            {"id": line.item_id, "score": line.score, "error": line.error or line.partial}
            for line in sorted(result.item_results.lines(), key=lambda line: line.position)
        ],
    }
