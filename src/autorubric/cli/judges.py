"""`autorubric judges`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import autorubric
from autorubric.cli._output import Exit, JsonFlag, guarded, notice, print_json
from autorubric.cli._tables import print_blocks
from autorubric.cli.metrics import LabelledFile, RunFolder
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.dataset import RubricDataset
    from autorubric.eval import EvalResult
    from autorubric.metrics import JudgeReport

Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", min=0, help="Seed of the resampling.  [default: 0]", show_default=False
    ),
]

judges_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@judges_app.command("compare")
@guarded
def compare(run: RunFolder, dataset: LabelledFile = None, seed: Seed = 0, as_json: JsonFlag = False) -> Exit:
    """Compare every two judges of a run, and the panel with the best of them.

    Each pair on the cells that both answered: the difference of their shares of right answers (without
    criteria of categories, of their mean errors), with an interval over items and p-values adjusted for their
    number (Holm).

    With --json the object has: run, and comparison, the figures as `RunComparison.to_dict` names them.

    \b
    Example:
      autorubric judges compare experiments/essays-1

    Exit codes: 0 done, 2 faulty command line, file or run folder.
    """
    # Late, since it loads numpy, and `--help` need not wait for it.
    from autorubric.metrics import compare_run

    result, labelled = _read(run, dataset)
    found = compare_run(result, labelled, rng=seed)
    if not found.n_items:
        raise _without_labels(run)
    if as_json:
        print_json({"run": str(run), "comparison": found.to_dict()})
    else:
        print_blocks(found.blocks())
    return Exit.DONE


@judges_app.command("audit")
@guarded
def audit(run: RunFolder, dataset: LabelledFile = None, seed: Seed = 0, as_json: JsonFlag = False) -> Exit:
    """Audit the judges of a run: how far to trust them, what each adds, where they lean.

    First the headline of the judge report: means over criteria with intervals over items, beside what people
    reach among each other where several labelled an item, and cells without an answer. Then the panel:
    whether judges err together, what each of them adds, and how few would do. Then leanings: leniency,
    length, position, and favour of texts of one's own family.

    With --json the object has: run; report, the judge report without single criteria; panel and bias, as
    `PanelAudit.to_dict` and `BiasReport.to_dict` name them.

    \b
    Example:
      autorubric judges audit experiments/essays-1

    Exit codes: 0 done, 2 faulty command line, file or run folder.
    """
    # Late, since it loads numpy, and `--help` need not wait for it.
    from autorubric.metrics import bias_report, judge_report, panel_audit

    result, labelled = _read(run, dataset)
    report = judge_report(result, labelled, rng=seed)
    if not report.n_cells:
        raise _without_labels(run)
    panel, bias = panel_audit(result, labelled, rng=seed), bias_report(result, labelled, rng=seed)
    if as_json:
        told = {"report": _headline(report), "panel": panel.to_dict(), "bias": bias.to_dict()}
        print_json({"run": str(run), **told})
    else:
        print_blocks([*report.headline_blocks(), *panel.blocks(), *bias.blocks()])
    return Exit.DONE


def _read(run: Path, dataset: Path | None) -> tuple[EvalResult, RubricDataset | None]:
    result = autorubric.EvalResult.from_experiment(run)
    for text in result.notices:
        notice(text)
    return result, autorubric.RubricDataset.from_file(dataset) if dataset is not None else None


def _without_labels(run: Path) -> ArgumentError:
    return ArgumentError(f"{run} has no labels to measure against; give the labelled dataset with --dataset")


def _headline(report: JudgeReport) -> dict[str, Any]:
    """The report without what it says of single criteria and people."""
    found = report.to_dict()
    for one in (found["panel"], *found["per_judge"].values()):
        del one["per_criterion"]
    del found["reliability"]
    if found["human_ceiling"] is not None:
        del found["human_ceiling"]["per_criterion"], found["human_ceiling"]["per_human"]
    return found
