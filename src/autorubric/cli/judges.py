"""The `autorubric judges` command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import autorubric
from autorubric.cli.audit_parts import Audit, AuditPart, Told
from autorubric.cli.metrics import LabelledFile, LabelTable, RunFolder, Truth, labelled_dataset
from autorubric.cli.options import Raters
from autorubric.cli.output import Exit, JsonFlag, notice, print_json, report_errors
from autorubric.cli.tables import print_blocks
from autorubric.errors import ArgumentError
from autorubric.support.blocks import Block, ScalarBlock, TableBlock, TextBlock

if TYPE_CHECKING:
    from autorubric.criteria.values import VerdictCounts
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.datasets.item import TruthRule
    from autorubric.runs.result import EvalResult


Seed = Annotated[
    int,
    typer.Option("--seed", metavar="N", min=0, help="Seed for resampling.  [default: 0]", show_default=False),
]
Families = Annotated[
    list[str] | None,
    typer.Option(
        "--family",
        metavar="NAME=FAMILY",
        help="Model family of a judge or of a model that wrote texts. Repeatable.  [default: its name]",
        show_default=False,
    ),
]
Only = Annotated[
    list[AuditPart] | None,
    typer.Option("--only", metavar="PART", help="Show only this part. Repeatable.", show_default=False),
]
Full = Annotated[bool, typer.Option("--full", help="Print all tables, not the summary.", show_default=False)]
ItemId = Annotated[
    str | None,
    typer.Option(
        "--item",
        metavar="ID",
        help="Instead of the audit, decide whether the score of this item passes --threshold.",
        show_default=False,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="X", help="With --item: minimum passing score.", show_default=False),
]
Abstain = Annotated[
    Literal["exclude", "as_category"],
    typer.Option(
        "--abstain",
        metavar="MODE",
        help="How to treat NA and CANNOT_ASSESS in the report and the alt_test: exclude, or as_category (as "
        "an additional category).  [default: exclude]",
        show_default=False,
    ),
]

_MAIN_PARTS = (AuditPart.REPORT, AuditPart.BIAS)
_MAIN_FIGURES = ("rater", "coverage", "accuracy", "kappa", "interval of kappa")
_SCREEN = 30

judges_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@judges_app.command("compare")
@report_errors
def compare(
    run: RunFolder,
    dataset: LabelledFile = None,
    truth: Truth = None,
    seed: Seed = 0,
    as_json: JsonFlag = False,
) -> Exit:
    """Compare a run's judges with each other, and the panel with its best judge.

    Each pair is compared on the labelled criteria that both judges answered. The result is the difference in
    accuracy (in mean error if no criterion is categorical), with a confidence interval over items and a
    p-value adjusted for multiple comparisons (Holm). Without labels, it compares nothing and shows a notice.

    With --json, prints an object with the keys run and comparison (as in `RunComparison.to_dict`).

    \b
    Example:
      autorubric judges compare experiments/essays-1

    Exit codes: 0 success, 2 invalid command line, file or run folder.
    """
    # Imported late, since it loads numpy.
    from autorubric.metrics.summaries.run_comparison import compare_run

    result, labelled = _read(run, dataset, truth)
    found = compare_run(result, labelled, rng=seed)
    if not found.n_items:
        notice(f"{run} has no labels, so judges cannot be compared; pass the labelled dataset with --dataset")
        found = replace(found, judges=(), panel=None)
    if as_json:
        print_json({"run": str(run), "comparison": found.to_dict()})
    elif found.n_items:
        print_blocks(found.blocks())
    return Exit.DONE


@judges_app.command("audit")
@report_errors
def audit(  # noqa: PLR0913 - one parameter an option
    run: RunFolder,
    dataset: LabelledFile = None,
    labels: LabelTable = None,
    rater: Raters = None,
    only: Only = None,
    family: Families = None,
    item: ItemId = None,
    threshold: Threshold = None,
    truth: Truth = None,
    abstain: Abstain = "exclude",
    seed: Seed = 0,
    full: Full = False,
    as_json: JsonFlag = False,
) -> Exit:
    """Audit a run's judges: how reliable they are, what each one adds, and how they are biased.

    \b
    The parts, in this order:
      report               the judges' main metrics against human labels
      reliability          how well the judges agree with each other
      panel                whether their errors coincide, and what each judge adds
      bias                 leniency; length, position and own-family bias
      self_consistency     whether a judge repeats its answer when asked again
      item_analysis        whether each criterion separates good from bad texts
      variance_components  how reliable scores are, and how many votes are enough
      corrected_score      the mean score, corrected for the judges' errors
      alt_test             whether the panel can replace a human annotator

    A part that cannot be computed is listed with the reason. Without labels, parts that need labels are
    omitted. With --item and --threshold, the output is the decision on one item: PASS, FAIL or UNDECIDED.

    A final table counts the verdicts requested, answered, abstained, lost and assumed, by judge and for the
    panel, over all items and criteria, whether or not they are labelled.

    With --json, prints an object with the keys run, verdicts (by judge and for the panel, as for `eval`),
    the name of each part (as in its `to_dict`, but report excludes individual criteria, and reliability and
    alt_test are by criterion; null if not computed) and not_computed (reasons by part). With --item, the
    keys are run, item and decision.

    \b
    Examples:
      autorubric judges audit experiments/essays-1
      autorubric judges audit experiments/essays-1 --only bias \\
          --family gpt-6-luna=openai --family claude=anthropic
      autorubric judges audit experiments/essays-1 --item essay-7 --threshold 0.6

    Exit codes: 0 success, 2 invalid command line, file or run folder.
    """
    families = _families(family or [])
    if (item is None) != (threshold is None):
        raise ArgumentError("--item and --threshold must be used together")
    result, labelled = _read(run, dataset, truth, labels, rater)
    audited = Audit(result, labelled, families, seed, abstain)
    if item is not None and threshold is not None:
        from autorubric.runs.reopen import stored_policy

        return _decide(run, audited.decision(item, threshold, stored_policy(run)), item, as_json=as_json)
    if not audited.has_labels:
        notice(
            f"{run} has no labels, so parts that need labels are omitted. Pass --labels FILE, or a labelled "
            "dataset with --dataset"
        )
    notice(f"Computing the audit of {len(result.item_results)} items …")
    told = {name: audited.part(name) for name in AuditPart if only is None or name in only}
    verdicts = audited.verdicts() if AuditPart.REPORT in told else {}
    if as_json:
        print_json({"run": str(run), **_counts_json(verdicts), **_content(told)})
    else:
        print_blocks((_blocks if full or only is not None else _one_screen)(told, verdicts))
    return Exit.DONE


def _verdicts_block(verdicts: Mapping[str, VerdictCounts]) -> TableBlock:
    """Return the counts over all items and criteria, with or without labels."""
    names = ("asked", "answered", "abstained", "lost", "assumed")
    rows = tuple((who, *(getattr(one, name) for name in names)) for who, one in verdicts.items())
    return TableBlock(title="Verdicts on all items and criteria", columns=("rater", *names), rows=rows)


def _content(told: dict[AuditPart, Told]) -> dict[str, Any]:
    content = {str(name): one.content for name, one in told.items()}
    return content | {"not_computed": {str(name): one.reason for name, one in told.items() if one.reason}}


def _counts_json(verdicts: Mapping[str, VerdictCounts]) -> dict[str, Any]:
    return {"verdicts": {who: counts.to_dict() for who, counts in verdicts.items()}} if verdicts else {}


def _blocks(told: Mapping[AuditPart, Told], verdicts: Mapping[str, VerdictCounts]) -> list[Block]:
    blocks = [block for one in told.values() for block in one.blocks]
    if verdicts:
        blocks.append(_verdicts_block(verdicts))
    reasons = [f"- {name}: {one.reason}" for name, one in told.items() if one.reason]
    return [*blocks, TextBlock(title="Not computed", text="\n".join(reasons))] if reasons else blocks


def _one_screen(told: Mapping[AuditPart, Told], verdicts: Mapping[str, VerdictCounts]) -> list[Block]:
    """Return the main findings and figures of the judges, and the verdicts if some are missing."""
    every = [block for one in told.values() for block in one.blocks if isinstance(block, TableBlock)]
    tables = [_main_figures(one) for one in every if one.title.startswith("Judges, mean")] or every[:1]
    if any(one.lost or one.assumed for one in verdicts.values()):
        tables.append(_verdicts_block(verdicts))
    findings = [
        (name in _MAIN_PARTS and block is one.blocks[0], line)
        for name, one in told.items()
        for block in one.blocks
        if isinstance(block, TextBlock)
        for line in block.text.splitlines()
    ]
    findings.sort(key=lambda one: not one[0])
    # Below and between the blocks are about five lines; a table has a title, a header and a rule.
    room = _SCREEN - 5 - sum(len(one.rows) + 4 for one in tables)
    shown = []
    for is_main, line in findings:
        room -= 1 + len(line) // 80
        if is_main or room >= 0:
            shown.append(f"- {line.removeprefix('- ')}")
    left = len(findings) - len(shown)
    more = f"All tables{f' and {left} more findings' if left else ''} with --full."
    missing = ", ".join(name for name, one in told.items() if one.reason)
    if missing:
        more = f"Not computed: {missing}; use --full for the reasons.\n{more}"
    looks = TextBlock(title="What to look at first", text="\n".join(shown))
    return [looks, *tables, TextBlock(text=more)]


def _main_figures(table: TableBlock) -> TableBlock:
    """Return the table with fewer figures if it has kappa."""
    names = table.columns
    kept = [at for at, name in enumerate(names) if name in _MAIN_FIGURES or "kappa" not in names]
    rows = tuple(tuple(row[at] for at in kept) for row in table.rows)
    return TableBlock(title=table.title, columns=tuple(names[at] for at in kept), rows=rows)


def _families(given: list[str]) -> dict[str, str]:
    families = {}
    for one in given:
        name, equals, kin = one.rpartition("=")
        if not (name and equals and kin):
            raise ArgumentError(f"--family must be NAME=FAMILY, such as gpt-6-luna=openai; got {one!r}")
        families[name] = kin
    return families


def _decide(run: Path, made: dict[str, Any], item: str, *, as_json: bool) -> Exit:
    if as_json:
        print_json({"run": str(run), "item": item, "decision": made})
        return Exit.DONE
    figures = (
        ("verdict", made["verdict"]),
        ("threshold", made["threshold"]),
        ("score", made["score"]["value"]),
        ("low", made["low"]),
        ("high", made["high"]),
        ("score if criteria without an answer get the worst one", made["hard_low"]),
        ("score if criteria without an answer get the best one", made["hard_high"]),
        ("criteria without an answer", made["n_open"]),
        ("sources of variance", ", ".join(made["sources"]) or f"none ({made['score']['reason']})"),
    )
    print_blocks([ScalarBlock(title=f"Decision on {item}", figures=figures)])
    return Exit.DONE


def _read(
    run: Path,
    dataset: Path | None,
    truth: TruthRule | None,
    labels: Path | None = None,
    rater: list[str] | None = None,
) -> tuple[EvalResult, RubricDataset | None]:
    result = autorubric.EvalResult.from_experiment(run)
    for text in result.notices:
        notice(text)
    return result, labelled_dataset(result, dataset, truth, labels, rater)
