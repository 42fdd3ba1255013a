"""The `autorubric rejudge` command."""

from __future__ import annotations

import shlex
from typing import Annotated

import autorubric
from autorubric.cli.command import Exit, guarded, notice
from autorubric.cli.options import (
    JsonFlag,
    JudgeNames,
    MaxCalls,
    MaxCost,
    NoPreflight,
    NoProgress,
    Panel,
    RunFolder,
    Seed,
    option,
)
from autorubric.cli.output import print_blocks, print_json, run_blocks
from autorubric.cli.runs import new_run_name, report_stop, run_resumable

NewName = Annotated[
    str | None,
    option(
        "--name",
        "NAME",
        "Name of the new run, created next to the old run; an existing run with this name is resumed.  "
        "[default: the old run's name and the time]",
    ),
]


@guarded
def rejudge(  # noqa: PLR0913 - one parameter per option
    run: RunFolder,
    judge: JudgeNames,
    name: NewName = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    no_preflight: NoPreflight = False,
    no_progress: NoProgress = False,
    *,
    panel: Panel,
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
    chosen = name or new_run_name(f"{before.experiment_name}-rejudged", run.parent)
    resume_command = f"the same command with --name {shlex.quote(chosen)}"
    after = run_resumable(
        before.dataset,
        panel.grader(judge),
        resume_command=resume_command,
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
        runs = {"run": str(run), "rejudged": str(after.experiment_dir)}
        print_json({**runs, "regressed": found.regressed, "difference": found.to_dict()})
    else:
        print_blocks([*run_blocks(after), *found.blocks()])
    if after.stopped is not None:
        return report_stop(after.stopped, resume_command)
    return Exit.UNJUDGED if after.failed_items else Exit.DONE
