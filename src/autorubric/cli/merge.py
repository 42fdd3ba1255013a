"""The `autorubric merge` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import autorubric
from autorubric.cli.output import Exit, JsonFlag, notice, print_json, report_errors, run_blocks
from autorubric.cli.runs import run_counts
from autorubric.cli.tables import print_blocks

RunFolders = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders of the runs to merge.", show_default=False)
]
OutFolder = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", help="Folder for the merged run; must not exist yet.", show_default=False
    ),
]


@report_errors
def merge(runs: RunFolders, out: OutFolder, as_json: JsonFlag = False) -> Exit:
    """Merge several runs into one: the shards of a dataset, or other runs with the same judges.

    Runs with different inputs or contradictory votes are rejected. Missing items are reported.

    With --json, prints an object with the keys experiment_dir, total_items, successful_items,
    partly_scored_items, failed_items, mean_score, verdicts (as for `eval`) and notices.

    \b
    Example:
      autorubric merge experiments/essays-*-of-8 --out experiments/essays

    Exit codes: 0 success, 2 invalid command line or run folder.
    """
    result = autorubric.merge_runs(runs, out)
    for text in result.notices:
        notice(text)
    if as_json:
        print_json(
            {
                "experiment_dir": str(result.experiment_dir),
                **run_counts(result),
                "notices": list(result.notices),
            }
        )
    else:
        print_blocks(run_blocks(result))
    return Exit.DONE
