"""The `autorubric annotate` command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import autorubric
from autorubric.cli import options as _datasets
from autorubric.cli.labels import WhereOption, marks_in
from autorubric.cli.output import Exit, notice, report_errors
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.datasets.fields import FieldMap
    from autorubric.runs.review import Mark


ItemsFile = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="Items to label: a dataset file or, with --where, the folder of a run.",
        show_default=False,
    ),
]
PageFile = Annotated[Path, _datasets.option("-o --out", "PAGE", "HTML file to write.")]
ItemsRubric = Annotated[
    Path | None, _datasets.option("--rubric", "R", "Rubric file.  [default: the dataset's own rubric]")
]
Title = Annotated[
    str | None, _datasets.option("--title", "TEXT", "Page heading.  [default: the dataset's name]")
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed for the item order; combined with the rater's name.")
]


@report_errors
def annotate(  # noqa: PLR0913
    source: ItemsFile,
    out: PageFile,
    rubric: ItemsRubric = None,
    submission: _datasets.SubmissionColumn = None,
    prompt: _datasets.PromptColumn = None,
    reference: _datasets.ReferenceColumn = None,
    item_id: _datasets.IdColumn = None,
    truth: _datasets.TruthColumns = None,
    meta: _datasets.MetaColumns = None,
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

    fields = _datasets.field_map(submission, prompt, reference, item_id, truth, meta)
    items = _items(source, rubric, marks_in(where), fields)
    write_annotation_page(items, out, seed=seed, title=title)
    notice(f"Wrote {out} with {len(items)} items. Open it in a browser; it works offline.")
    return Exit.DONE


def _items(
    source: Path, rubric: Path | None, where: Sequence[Mark], fields: FieldMap
) -> autorubric.RubricDataset:
    """Return the items of a dataset file, or the marked items of a run."""
    if not source.is_dir():
        if where:
            raise ArgumentError(f"--where requires a run folder; {source} is not a run folder")
        return _datasets.open_dataset(source, rubric, fields)
    if not where:
        raise ArgumentError(
            f"{source} is a folder; to label items of a run, pass --where, such as --where wrong"
        )
    if rubric is not None or fields:
        raise ArgumentError("--rubric and column options require a dataset file; a run has its own rubric")
    found = autorubric.disputed_items(autorubric.EvalResult.from_experiment(source), where=where)
    if not len(found):
        raise ArgumentError(f"no item in {source} is marked {' or '.join(where)}; there is nothing to label")
    return found
