"""The `autorubric annotate` command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import autorubric
from autorubric.cli.command import Exit, guarded, notice
from autorubric.cli.labels import WhereOption, marks_in
from autorubric.cli.options import Columns, OwnRubric, argument, option
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.runs.review import Mark


ItemsFile = Annotated[
    Path, argument("SOURCE", "Items to label: a dataset file or, with --where, the folder of a run.")
]
PageFile = Annotated[Path, option("-o --out", "PAGE", "HTML file to write.")]
Title = Annotated[str | None, option("--title", "TEXT", "Page heading.  [default: the dataset's name]")]
Seed = Annotated[
    int, option("--seed", "N", "Seed for the item order; combined with the rater's name.", show_default=True)
]


@guarded
def annotate(
    source: ItemsFile,
    out: PageFile,
    rubric: OwnRubric = None,
    *,
    columns: Columns,
    title: Title = None,
    seed: Seed = 0,
    where: WhereOption = None,
) -> Exit:
    """Write an HTML page for labelling items offline.

    The page asks for the rater's name, shows the items in an order specific to the rater, and hides the
    answers of judges and other raters. It works with the keyboard alone, keeps unfinished work, and saves
    the labels as JSON lines for `autorubric labels merge`.

    For a run, the page contains the items selected by --where, and asks only about the criteria concerned.
    To merge these labels with labels merge --decide, also export the items with autorubric labels export.

    \b
    Examples:
      autorubric annotate essays.jsonl --rubric rubric.yaml -o label-essays.html
      autorubric annotate experiments/essays-1 --where wrong -o look-again.html

    Exit codes: 0 success, 2 invalid command line or file.
    """
    # Late, since the page's template takes as long to load as everything else that `--help` needs.
    from autorubric.reports.labelling import write_annotation_page

    items = _items(source, rubric, marks_in(where), columns)
    write_annotation_page(items, out, seed=seed, title=title)
    notice(f"Wrote {out} with {len(items)} items. Open it in a browser; it works offline.")
    return Exit.DONE


def _items(
    source: Path, rubric: Path | None, where: Sequence[Mark], columns: Columns
) -> autorubric.RubricDataset:
    """Return the items of a dataset file, or the marked items of a run."""
    if not source.is_dir():
        if where:
            raise ArgumentError(f"--where requires a run folder; {source} is not a run folder")
        return columns.open(source, rubric)
    if not where:
        raise ArgumentError(
            f"{source} is a folder; to label items of a run, pass --where, such as --where wrong"
        )
    if rubric is not None or columns.field_map():
        raise ArgumentError("--rubric and column options require a dataset file; a run has its own rubric")
    found = autorubric.disputed_items(autorubric.EvalResult.from_experiment(source), where=where)
    if not len(found):
        raise ArgumentError(f"no item in {source} is marked {' or '.join(where)}; there is nothing to label")
    return found
