"""The `autorubric rejudge` command."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

import autorubric
from autorubric.cli.judges import Seed
from autorubric.cli.metrics import RunFolder
from autorubric.cli.options import MaxCalls, MaxCost, NoPreflight, NoProgress
from autorubric.cli.output import Exit, JsonFlag, notice, print_json, report_errors, run_blocks
from autorubric.cli.panel import (
    Aggregation,
    ApiBase,
    ApiKeyEnv,
    CacheDir,
    HowFailuresCount,
    JudgeNames,
    OnFailure,
    Samples,
    Temperature,
    parse_aggregation,
    parse_judges,
)
from autorubric.cli.runs import default_run_name, report_stop, run_resumable
from autorubric.cli.tables import print_blocks

NewName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Name of the new run, created next to the old run; an existing run with this name is "
        "resumed.  [default: the old run's name and the time]",
        show_default=False,
    ),
]


@report_errors
def rejudge(  # noqa: PLR0913 - one parameter an option
    run: RunFolder,
    judge: JudgeNames,
    name: NewName = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    no_preflight: NoPreflight = False,
    no_progress: NoProgress = False,
    api_base: ApiBase = None,
    api_key_env: ApiKeyEnv = None,
    cache_dir: CacheDir = None,
    temperature: Temperature = None,
    samples: Samples = None,
    aggregation: Aggregation = None,
    on_failure: HowFailuresCount = OnFailure.conservative,
    seed: Seed = 0,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade the items of a run again with different judges, and compare the two runs.

    The items, their rubric and their labels are read from the run folder. The new run is created next to it;
    the old run is not changed.

    With --json, prints an object with the keys run, rejudged (the new run's folder), regressed and
    difference (as for `compare`).

    \b
    Example:
      autorubric rejudge experiments/essays-1 --judge gpt-6-luna --name by-luna

    Exit codes: 0 success, 2 invalid command line, file or run folder, 3 an item was not judged, 130
    stopped by the user or at --max-calls or --max-cost.
    """
    before = autorubric.EvalResult.from_experiment(run)
    judges = parse_judges(
        judge,
        api_base=api_base,
        api_key_env=api_key_env,
        cache_dir=cache_dir,
        temperature=temperature,
        samples=samples,
    )
    grader = autorubric.CriterionGrader(
        judges=judges, on_failure=on_failure.value, **parse_aggregation(aggregation)
    )
    chosen = name or default_run_name(f"{before.experiment_name}-rejudged", run.parent)
    how_to_go_on = f"the same command with --name {shlex.quote(chosen)}"
    after = run_resumable(
        before.dataset,
        grader,
        how_to_go_on=how_to_go_on,
        preflight=not no_preflight,
        show_progress=not no_progress,
        experiment_name=chosen,
        experiments_dir=run.parent,
        max_calls=max_calls,
        max_cost=max_cost,
    )
    for text in after.notices:
        notice(text)
    found = autorubric.metrics.run_difference(before, after, rng=seed)
    if as_json:
        told = {"run": str(run), "rejudged": str(after.experiment_dir), "regressed": found.regressed}
        print_json({**told, "difference": found.to_dict()})
    else:
        print_blocks([*run_blocks(after), *found.blocks()])
    if after.stopped is not None:
        return report_stop(after.stopped, how_to_go_on)
    return Exit.UNJUDGED if after.failed_items else Exit.DONE
