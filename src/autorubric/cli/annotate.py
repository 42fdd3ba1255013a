"""`autorubric annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import autorubric
from autorubric.cli._output import Exit, guarded, notice

ItemsFile = Annotated[Path, typer.Argument(metavar="DATASET", help="The items to label.", show_default=False)]
PageFile = Annotated[
    Path, typer.Option("-o", "--out", metavar="PAGE", help="The HTML file to write.", show_default=False)
]
ItemsRubric = Annotated[
    Path | None,
    typer.Option(
        "--rubric", metavar="R", help="The rubric; the dataset's own if left out.", show_default=False
    ),
]
Title = Annotated[
    str | None,
    typer.Option(
        "--title", metavar="TEXT", help="Heading; the dataset's name if left out.", show_default=False
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Decides, with the rater's name, the order of the items.")
]


@guarded
def annotate(
    dataset: ItemsFile, out: PageFile, rubric: ItemsRubric = None, title: Title = None, seed: Seed = 0
) -> Exit:
    """Write one HTML page on which people label the items, offline.

    The page asks for the rater's name, shows the items in an order of the rater's own, and nothing that
    judges or other raters said. It can be used by the keyboard alone, keeps what was done, and saves the
    labels as JSON lines, which `autorubric labels merge` brings back.

    \b
    Example:
      autorubric annotate essays.jsonl --rubric rubric.yaml -o label-essays.html

    Exit codes: 0 done, 2 faulty command line or file.
    """
    # Late, since the page's template takes as long to load as everything else that `--help` needs.
    from autorubric.report import write_annotation_page

    items = autorubric.RubricDataset.from_file(dataset, rubric=rubric)
    write_annotation_page(items, out, seed=seed, title=title)
    notice(f"Wrote {out} with {len(items)} items. Open it in a browser; it needs no network.")
    return Exit.DONE
