"""The `autorubric merge` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import autorubric
from autorubric.cli.command import Exit, guarded, notice
from autorubric.cli.options import JsonFlag, argument, option
from autorubric.cli.output import print_blocks, print_json, run_blocks
from autorubric.cli.runs import run_counts

RunFolders = Annotated[list[Path], argument("RUN...", "Folders of the runs to merge.")]
OutFolder = Annotated[Path, option("--out", "DIR", "Folder for the merged run; must not exist yet.")]


@guarded
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
