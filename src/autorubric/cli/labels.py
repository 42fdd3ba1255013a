"""The `autorubric labels export` and `autorubric labels merge` commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

import autorubric
from autorubric.cli import options as _datasets
from autorubric.cli.output import Exit, JsonFlag, notice, print_json, report_errors
from autorubric.cli.tables import print_blocks
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.metrics.summaries.human_agreement import HumanAgreement
    from autorubric.runs.review import Mark


Source = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="Run folder or dataset file.", show_default=False)
]
Split = Annotated[
    Literal["any", "people", "judges"], typer.Option("--split", help="Who must disagree on exported items.")
]


class Where(StrEnum):
    """Which items of a run to select, by status."""

    WRONG = "wrong"
    SPLIT = "split"
    ABSTAINED = "abstained"
    LOST = "lost"


WhereOption = Annotated[
    list[Where] | None,
    _datasets.option(
        "--where",
        "MARK",
        "Which items of a run to select: wrong (a verdict differs from the label), split (votes differ), "
        "abstained (a vote abstains), or lost (a vote failed or could not be read, or the item has no "
        "score). Repeatable.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        "--tolerance",
        metavar="X",
        help="Maximum difference (from 0 to 1) at which two scale values or numbers count as equal.",
    ),
]
ItemsOut = Annotated[Path, _datasets.option("-o --out", "FILE", "Dataset file to write: .jsonl or .json.")]
LabelledDataset = Annotated[
    Path, typer.Argument(metavar="DATASET", help="Dataset that was labelled.", show_default=False)
]
LabelFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="LABELS...", help="Files saved by annotation pages, or tables.", show_default=False
    ),
]
MergedOut = Annotated[
    Path, _datasets.option("-o --out", "FILE", "Labelled dataset file to write: .jsonl, .json or .yaml.")
]
DatasetRubric = Annotated[
    Path | None, _datasets.option("--rubric", "R", "Rubric file.  [default: the dataset's own rubric]")
]
Decide = Annotated[
    Path | None,
    _datasets.option(
        "--decide", "FILE", "Items written by labels export; their labels become the ground truth."
    ),
]


def marks_in(where: Sequence[Where] | None) -> list[Mark]:
    """Return the values of `--where`; empty if the option was not set."""
    return cast("list[Mark]", [one.value for one in where or ()])


labels_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@labels_app.command("export")
@report_errors
def export(
    source: Source,
    out: ItemsOut,
    split: Split = "any",
    tolerance: Tolerance = 0.0,
    where: WhereOption = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Export items on which annotators or judges disagree, for a human decision.

    With --where, export the items of a run in which verdicts differ from the labels, votes differ or
    abstain, or verdicts were lost.

    To label the items, use autorubric annotate: its page asks only about the disputed criteria and hides
    earlier answers. Then merge the labels with autorubric labels merge --decide.

    With --json, prints an object with the keys out, items and criteria (number of disputed items by name).

    \b
    Examples:
      autorubric labels export experiments/essays-1 -o disputed.jsonl
      autorubric labels export experiments/essays-1 --where wrong -o wrong.jsonl

    Exit codes: 0 success, 2 invalid command line, file or run folder.
    """
    given = (
        autorubric.EvalResult.from_experiment(source)
        if source.is_dir()
        else autorubric.RubricDataset.from_file(source)
    )
    marks = marks_in(where) or None
    if marks and (split != "any" or tolerance):
        raise ArgumentError("--where cannot be combined with --split or --tolerance")
    found = autorubric.disputed_items(given, split=split, tolerance=tolerance, where=marks)
    found.to_file(out)
    counts: dict[str, int] = {}
    for item in found:
        for name in item.metadata["disputed"]:
            counts[name] = counts.get(name, 0) + 1
    if as_json:
        print_json({"out": str(out), "items": len(found), "criteria": counts})
    else:
        told = ", ".join(f"{name}: {count}" for name, count in counts.items())
        chosen = f"marked {' or '.join(marks)}" if marks else "in dispute"
        notice(f"Wrote {out} with {len(found)} items {chosen}{f' ({told})' if told else ''}.")
    return Exit.DONE


@labels_app.command("merge")
@report_errors
def merge(  # noqa: PLR0913 - one parameter an option
    dataset: LabelledDataset,
    labels: LabelFiles,
    out: MergedOut,
    rubric: DatasetRubric = None,
    submission: _datasets.SubmissionColumn = None,
    prompt: _datasets.PromptColumn = None,
    item_id: _datasets.IdColumn = None,
    rater: _datasets.Raters = None,
    decide: Decide = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Merge human labels into a dataset, and show how well the annotators agree.

    Labels become ratings, and the metadata of the items records the time and file of each label. With
    --decide, labels become the ground truth, and the metadata also records who decided and the earlier
    votes. Labels that do not match the dataset are skipped and reported. A table (CSV, TSV) has one row per
    label (item_id, criterion, rater, value) or one column per annotator (item_id, criterion and names).

    With --json, prints an object with the keys out, labels, raters, notices and agreement (null for one
    rater).

    \b
    Examples:
      autorubric labels merge essays.jsonl labels-ada.jsonl labels-bob.jsonl \\
          -o labelled.jsonl
      autorubric labels merge labelled.jsonl labels-eve.jsonl \\
          --decide disputed.jsonl -o decided.jsonl

    Exit codes: 0 success, 2 invalid command line or file.
    """
    known = _datasets.open_dataset(dataset, rubric, _datasets.field_map(submission, prompt, item_id=item_id))
    handed_out = autorubric.RubricDataset.from_file(decide) if decide is not None else None
    pages = [path for path in labels if path.suffix.lower() == ".jsonl"]
    tables = [path for path in labels if path not in pages]
    if tables and handed_out is not None:
        raise ArgumentError(f"{tables[0]}: --decide requires labels saved by annotation pages, not tables")
    if pages and rater:
        raise ArgumentError(f"{pages[0]}: --rater requires a table (.csv, .tsv); merge pages separately")
    before, people = _ratings(known)
    for path in tables:
        known = known.with_ratings(path, raters=rater or None)
        _datasets.notice_labels(path, known, rater)
    after, raters = _ratings(known)
    merged = autorubric.datasets.MergedLabels(dataset=known, n_labels=0, raters=(), notices=())
    if pages:
        merged = autorubric.merge_labels(known, pages, disputed=handed_out)
    merged = replace(
        merged, n_labels=merged.n_labels + after - before, raters=(*sorted(raters - people), *merged.raters)
    )
    merged.dataset.to_file(out)
    for text in merged.notices:
        notice(text)
    agreement = _agreement(merged.dataset)
    if as_json:
        told: dict[str, Any] = {"out": str(out), "labels": merged.n_labels, "raters": list(merged.raters)}
        figures = None if agreement is None else agreement.to_dict()
        print_json({**told, "notices": list(merged.notices), "agreement": figures})
        return Exit.DONE
    notice(f"Wrote {out} with {merged.n_labels} labels from {', '.join(merged.raters)}.")
    if agreement is not None:
        print_blocks(agreement.blocks())
    return Exit.DONE


def _ratings(dataset: autorubric.RubricDataset) -> tuple[int, set[str]]:
    """Return the number of ratings in a dataset and the names of the raters."""
    rated = [dataset.item_ratings(at) for at in range(len(dataset))]
    return sum(len(labels) for one in rated for labels in one.values()), {who for one in rated for who in one}


def _agreement(dataset: autorubric.RubricDataset) -> HumanAgreement | None:
    """Return the agreement among annotators, or None if there are fewer than two."""
    raters = {rater for i in range(len(dataset)) for rater in dataset.item_ratings(i)}
    return autorubric.metrics.human_agreement(dataset) if len(raters) > 1 else None
