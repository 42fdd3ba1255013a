"""The `autorubric labels` and `autorubric annotate` commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import autorubric
from autorubric.cli.app import Exit, Without, command_group, guarded, notice
from autorubric.cli.options import Columns, JsonFlag, OwnRubric, argument, option
from autorubric.cli.output import print_blocks, print_json
from autorubric.datasets.item import TruthRule
from autorubric.datasets.ratings import read_long_table
from autorubric.errors import ArgumentError
from autorubric.runs.items import Mark, SplitKind
from autorubric.support.names import match_name

Raters = Annotated[
    list[str] | None,
    option(
        "--rater",
        "NAME",
        "Rater whose labels to read, or the rater's column in the table. Repeatable.  [default: all]",
    ),
]
LabelledFile = Annotated[
    Path | None,
    option(
        "--dataset",
        "D",
        "Dataset with other labels for the graded items.  [default: the labels stored with the run]",
    ),
]
Truth = Annotated[
    TruthRule | None,
    option(
        "--truth",
        "RULE",
        "How to combine several annotators' labels: mode, majority (more than half), median or mean. "
        " [default: median for ordinal scales, mean for numbers, otherwise mode]",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The human labels that a run's verdicts are compared with."""

    dataset: LabelledFile = None
    labels: Annotated[
        Path | None,
        option(
            "--labels",
            "FILE",
            "File with human labels that replace those stored with the run: a table (CSV, TSV) with one row "
            "per label (item_id, criterion, rater, value) or one column per annotator (item_id, criterion "
            "and names), or the labels.jsonl of `autorubric view`.",
        ),
    ] = None
    rater: Raters = None

    def labelled(
        self, result: autorubric.EvalResult, truth: TruthRule | None
    ) -> autorubric.RubricDataset | None:
        """Return the dataset with the labels to compare with, or None for the labels stored with the run."""
        if self.rater and self.labels is None:
            raise ArgumentError("--rater requires --labels FILE, the file that contains the raters")
        labelled = autorubric.RubricDataset.from_file(self.dataset) if self.dataset is not None else None
        if self.labels is not None:
            stored = result.dataset if labelled is None else labelled
            bare = [item.model_copy(update={"ground_truth": None, "ratings": {}}) for item in stored]
            labelled = stored.with_items(bare).with_ratings(self.labels, raters=self.rater or None)
            notice_labels(self.labels, labelled, self.rater)
        if truth is None:
            return labelled
        return (result.dataset if labelled is None else labelled).with_truth(truth)


def notice_labels(
    path: Path, labelled: autorubric.RubricDataset, raters: Sequence[str] | None = None
) -> None:
    """Print the annotators' names, and warn about labels for items that are not in the dataset."""
    criteria = {one.name or "": one for rubric in labelled.rubrics() for one in rubric}
    table = read_long_table(path, notice, criteria=criteria, raters=raters)
    wanted = {match_name(rater, {row.rater for row in table}) for rater in raters or ()}
    rows = [row for row in table if not raters or row.rater in wanted]
    known = set(labelled.item_ids())
    people = dict.fromkeys(row.rater for row in rows if row.rater_type in ("", "human"))
    notice(f"labels in {path} by: {', '.join(people)}")
    others = sum(row.item_id not in known for row in rows)
    if others:
        notice(f"warning: {others} of {len(rows)} labels belong to items that are not in the dataset")


RunOrDataset = Annotated[Path, argument("SOURCE", "Run folder or dataset file.")]
Split = Annotated[
    SplitKind, option("--split", None, "Who must disagree on exported items.", show_default=True)
]


class Where(StrEnum):
    """Which items of a run to select, by `Mark`; Typer repeats no options with literals."""

    WRONG = "wrong"
    SPLIT = "split"
    ABSTAINED = "abstained"
    LOST = "lost"


WhereOption = Annotated[
    list[Where] | None,
    option(
        "--where",
        "MARK",
        "Which items of a run to select: wrong (a verdict differs from the label), split (votes differ), "
        "abstained (a vote abstains), or lost (a vote failed or could not be read, or the item has no "
        "score). Repeatable.",
    ),
]
Tolerance = Annotated[
    float,
    option(
        "--tolerance",
        "X",
        "Maximum difference (from 0 to 1) at which two scale values or numbers count as equal.",
        show_default=True,
    ),
]
ItemsOut = Annotated[Path, option("-o --out", "FILE", "Dataset file to write: .jsonl or .json.")]
LabelledDataset = Annotated[Path, argument("DATASET", "Dataset that was labelled.")]
LabelFiles = Annotated[list[Path], argument("LABELS...", "Files saved by annotation pages, or tables.")]
MergedOut = Annotated[
    Path, option("-o --out", "FILE", "Labelled dataset file to write: .jsonl, .json or .yaml.")
]
Decide = Annotated[
    Path | None,
    option("--decide", "FILE", "Items written by labels export; their labels become the ground truth."),
]


def marks_in(where: Sequence[Where] | None) -> list[Mark]:
    """Return the values of `--where`; empty if the option was not set."""
    return cast("list[Mark]", [one.value for one in where or ()])


labels_app = command_group(
    "Export disputed items for labelling, and merge human labels into a dataset.",
    "autorubric labels export experiments/essays-1 -o disputed.jsonl",
    "autorubric labels merge essays.json disputed.jsonl -o labelled.json",
)


@labels_app.command("export")
@guarded
def export(
    source: RunOrDataset,
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
    graded = (
        autorubric.EvalResult.from_experiment(source)
        if source.is_dir()
        else autorubric.RubricDataset.from_file(source)
    )
    marks = marks_in(where) or None
    if marks and (split != "any" or tolerance):
        raise ArgumentError("--where cannot be combined with --split or --tolerance")
    found = autorubric.disputed_items(graded, split=split, tolerance=tolerance, where=marks)
    found.to_file(out)
    counts = Counter(name for item in found for name in item.metadata["disputed"])
    if as_json:
        print_json({"out": str(out), "items": len(found), "criteria": counts})
    else:
        by_name = ", ".join(f"{name}: {count}" for name, count in counts.items())
        chosen = f"marked {' or '.join(marks)}" if marks else "in dispute"
        notice(f"Wrote {out} with {len(found)} items {chosen}{f' ({by_name})' if by_name else ''}.")
    return Exit.DONE


@labels_app.command("merge")
@guarded
def merge(  # noqa: PLR0913 - one parameter per option
    dataset: LabelledDataset,
    labels: LabelFiles,
    out: MergedOut,
    rubric: OwnRubric = None,
    *,
    columns: Annotated[Columns, Without("reference", "truth", "meta")],
    rater: Raters = None,
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
    known = columns.open(dataset, rubric)
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
        notice_labels(path, known, rater)
    after, raters = _ratings(known)
    merged = autorubric.datasets.MergedLabels(
        dataset=known, n_labels=after - before, raters=tuple(sorted(raters - people)), notices=()
    )
    if pages:
        of_pages = autorubric.merge_labels(merged.dataset, pages, disputed=handed_out)
        merged = replace(
            of_pages, n_labels=merged.n_labels + of_pages.n_labels, raters=(*merged.raters, *of_pages.raters)
        )
    merged.dataset.to_file(out)
    notice(*merged.notices)
    several = len(_ratings(merged.dataset)[1]) > 1
    agreement = autorubric.metrics.human_agreement(merged.dataset) if several else None
    if as_json:
        content: dict[str, Any] = {"out": str(out), "labels": merged.n_labels, "raters": list(merged.raters)}
        figures = None if agreement is None else agreement.to_dict()
        print_json({**content, "notices": list(merged.notices), "agreement": figures})
        return Exit.DONE
    notice(f"Wrote {out} with {merged.n_labels} labels from {', '.join(merged.raters)}.")
    if agreement is not None:
        print_blocks(agreement.blocks())
    return Exit.DONE


def _ratings(dataset: autorubric.RubricDataset) -> tuple[int, set[str]]:
    """Return the number of ratings in a dataset and the names of the raters."""
    rated = [dataset.item_ratings(at) for at in range(len(dataset))]
    return sum(len(labels) for one in rated for labels in one.values()), {who for one in rated for who in one}


ItemsFile = Annotated[
    Path, argument("SOURCE", "Items to label: a dataset file or, with --where, the folder of a run.")
]
PageFile = Annotated[Path, option("-o --out", "PAGE", "HTML file to write.")]
Title = Annotated[str | None, option("--title", "TEXT", "Page heading.  [default: the dataset's name]")]
OrderSeed = Annotated[
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
    seed: OrderSeed = 0,
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
    items = _items(source, rubric, marks_in(where), columns)
    autorubric.reports.write_annotation_page(items, out, seed=seed, title=title)
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
