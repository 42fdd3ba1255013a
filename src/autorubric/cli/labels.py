"""`autorubric labels export` and `autorubric labels merge`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import autorubric
from autorubric.cli._output import Exit, JsonFlag, guarded, notice, print_json
from autorubric.cli._tables import print_blocks

if TYPE_CHECKING:
    from autorubric.metrics import HumanAgreement

Source = Annotated[
    Path,
    typer.Argument(metavar="SOURCE", help="The folder of a run, or a dataset file.", show_default=False),
]
Split = Annotated[
    Literal["any", "people", "judges"], typer.Option("--split", help="Who is to differ on an item.")
]
Tolerance = Annotated[
    float,
    typer.Option(
        "--tolerance",
        metavar="X",
        help="On scales and numbers, values on 0 to 1 that are no further apart do not differ.",
    ),
]
ItemsOut = Annotated[
    Path,
    typer.Option(
        "-o", "--out", metavar="FILE", help="The dataset file to write: .jsonl, .json.", show_default=False
    ),
]
LabelledDataset = Annotated[
    Path, typer.Argument(metavar="DATASET", help="The dataset that was labelled.", show_default=False)
]
LabelFiles = Annotated[
    list[Path], typer.Argument(metavar="LABELS...", help="What the pages saved.", show_default=False)
]
MergedOut = Annotated[
    Path,
    typer.Option(
        "-o",
        "--out",
        metavar="FILE",
        help="The dataset file with the labels: .jsonl, .json, .yaml.",
        show_default=False,
    ),
]
DatasetRubric = Annotated[
    Path | None,
    typer.Option(
        "--rubric", metavar="R", help="The rubric; the dataset's own if left out.", show_default=False
    ),
]
Decide = Annotated[
    Path | None,
    typer.Option(
        "--decide",
        metavar="FILE",
        help="The labels decide on these items, from labels export: they become the truth.",
        show_default=False,
    ),
]

labels_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@labels_app.command("export")
@guarded
def export(
    source: Source, out: ItemsOut, split: Split = "any", tolerance: Tolerance = 0.0, as_json: JsonFlag = False
) -> Exit:
    """Write the items on which people disagree or judges split, for somebody to decide.

    Have them labelled with autorubric annotate, whose page asks for the criteria in dispute alone and does
    not show what was said; bring the labels back with autorubric labels merge --decide.

    With --json the object has: out, items, and criteria, how many items each is in dispute on.

    \b
    Example:
      autorubric labels export experiments/essays-1 -o disputed.jsonl

    Exit codes: 0 done, 2 faulty command line, file or run folder.
    """
    given = (
        autorubric.EvalResult.from_experiment(source)
        if source.is_dir()
        else autorubric.RubricDataset.from_file(source)
    )
    found = autorubric.disputed_items(given, split=split, tolerance=tolerance)
    found.to_file(out)
    counts: dict[str, int] = {}
    for item in found:
        for name in item.metadata["disputed"]:
            counts[name] = counts.get(name, 0) + 1
    if as_json:
        print_json({"out": str(out), "items": len(found), "criteria": counts})
    else:
        told = ", ".join(f"{name}: {count}" for name, count in counts.items())
        notice(f"Wrote {out} with {len(found)} items in dispute{f' ({told})' if told else ''}.")
    return Exit.DONE


@labels_app.command("merge")
@guarded
def merge(
    dataset: LabelledDataset,
    labels: LabelFiles,
    out: MergedOut,
    rubric: DatasetRubric = None,
    decide: Decide = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Bring labels that people gave back into their dataset, and tell how far the people agree.

    Labels become ratings, with when and in which file each was given in the items' metadata; with --decide
    they become the truth, with who decided and from which votes. What does not belong to the dataset is
    left out and told.

    With --json the object has: out, labels, raters, notices and agreement, which is null with one rater.

    \b
    Examples:
      autorubric labels merge essays.jsonl labels-ada.jsonl labels-bob.jsonl \\
          -o labelled.jsonl
      autorubric labels merge labelled.jsonl labels-eve.jsonl \\
          --decide disputed.jsonl -o decided.jsonl

    Exit codes: 0 done, 2 faulty command line or file.
    """
    known = autorubric.RubricDataset.from_file(dataset, rubric=rubric)
    handed_out = autorubric.RubricDataset.from_file(decide) if decide is not None else None
    merged = autorubric.merge_labels(known, labels, disputed=handed_out)
    merged.dataset.to_file(out)
    for text in merged.notices:
        notice(text)
    agreement = _agreement(merged.dataset)
    if as_json:
        told: dict[str, Any] = {"out": str(out), "labels": merged.n_labels, "raters": list(merged.raters)}
        figures = None if agreement is None else agreement.to_dict()
        print_json({**told, "notices": list(merged.notices), "agreement": figures})
        return Exit.DONE
    notice(f"Wrote {out} with {merged.n_labels} labels of {', '.join(merged.raters)}.")
    if agreement is not None:
        print_blocks(agreement.blocks())
    return Exit.DONE


def _agreement(dataset: autorubric.RubricDataset) -> HumanAgreement | None:
    """How far people agree; None where fewer than two rated."""
    raters = {rater for i in range(len(dataset)) for rater in dataset.item_ratings(i)}
    return autorubric.human_agreement(dataset) if len(raters) > 1 else None
