"""Judges put to the test: by their votes with `autorubric judges`, by attacks with `autorubric redteam`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import autorubric
from autorubric import cli
from autorubric.cli.app import Exit, Without, command_group, guarded, notice
from autorubric.cli.gates import exceeds_max_lost, max_lost_option
from autorubric.cli.labels import Labels, Truth
from autorubric.cli.options import (
    Columns,
    DatasetFile,
    JsonFlag,
    NoPreflight,
    RubricFile,
    RunFolder,
    Seed,
    flag,
    option,
    read_pairs,
)
from autorubric.cli.output import print_result
from autorubric.cli.panel import JudgeNames, PanelOptions, run_and_close
from autorubric.cli.runs import open_stored_run
from autorubric.criteria.values import MAX_LOST, VerdictCounts
from autorubric.errors import ArgumentError
from autorubric.runs.reopen import stored_policy
from autorubric.support.blocks import Block, ScalarBlock, TableBlock, TextBlock

if TYPE_CHECKING:
    from autorubric.cli.audit import PartResult


class AuditPart(StrEnum):
    """A part of an audit; its name is also its key in the JSON output."""

    REPORT = "report"
    RELIABILITY = "reliability"
    PANEL = "panel"
    BIAS = "bias"
    SELF_CONSISTENCY = "self_consistency"
    ITEM_ANALYSIS = "item_analysis"
    VARIANCE_COMPONENTS = "variance_components"
    CORRECTED_SCORE = "corrected_score"
    ALT_TEST = "alt_test"


Full = Annotated[bool, flag("--full", "Print all tables, not the summary.")]
Abstain = Annotated[
    Literal["exclude", "as_category"],
    option(
        "--abstain",
        "MODE",
        "How to treat NA and CANNOT_ASSESS in the report and the alt_test: exclude, or as_category (as "
        "an additional category).  [default: exclude]",
    ),
]

_MAIN_PARTS = (AuditPart.REPORT, AuditPart.BIAS)
_MAIN_FIGURES = ("rater", "coverage", "accuracy", "kappa", "interval of kappa")
_SCREEN = 30

judges_app = command_group(
    "Compare a run's judges with each other, and audit them.",
    "autorubric judges compare experiments/essays-1",
    "autorubric judges audit experiments/essays-1",
)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What to audit: some parts, or the decision on one item."""

    only: Annotated[list[AuditPart] | None, option("--only", "PART", "Show only this part. Repeatable.")] = (
        None
    )
    family: Annotated[
        list[str] | None,
        option(
            "--family",
            "NAME=FAMILY",
            "Model family of a judge or of a model that wrote texts. Repeatable.  [default: its name]",
        ),
    ] = None
    item: Annotated[
        str | None,
        option(
            "--item", "ID", "Instead of the audit, decide whether the score of this item passes --threshold."
        ),
    ] = None
    threshold: Annotated[float | None, option("--threshold", "X", "With --item: minimum passing score.")] = (
        None
    )

    def families(self) -> dict[str, str]:
        """Return the model family of each judge or model that was named."""
        return dict(read_pairs("--family", "NAME=FAMILY", "gpt-6-luna=openai", self.family))


@judges_app.command("compare")
@guarded
def compare(
    run: RunFolder,
    labels: Annotated[Labels, Without("labels", "rater")],
    truth: Truth = None,
    seed: Seed = 0,
    as_json: JsonFlag = False,
) -> Exit:
    """Compare a run's judges with each other, and the panel with its best judge.

    Each pair is compared on the labelled criteria that both judges answered. The result is the difference in
    accuracy (in mean error if no criterion is categorical), with a confidence interval over items and a
    p-value adjusted for multiple comparisons (Holm).

    With --json, prints an object with the keys run and comparison (as in `RunComparison.to_dict`).

    \b
    Example:
      autorubric judges compare experiments/essays-1

    Exit codes: 0 success, 2 no labels, or invalid command line, file or run folder.
    """
    result = open_stored_run(run)
    found = autorubric.metrics.compare_run(result, labels.labelled(result, truth), rng=seed)
    if not found.n_items:
        raise ArgumentError(
            f"{run} has no labels, so judges cannot be compared; pass the labelled dataset with --dataset "
            "(to make one from a table of labels: autorubric labels merge DATASET TABLE -o labelled.jsonl)"
        )
    print_result(lambda: {"run": str(run), "comparison": found.to_dict()}, found.blocks, as_json=as_json)
    return Exit.DONE


@judges_app.command("audit")
@guarded
def audit(  # noqa: PLR0913 - one parameter per option
    run: RunFolder,
    labels: Labels,
    parts: Parts,
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
    families = parts.families()
    if (parts.item is None) != (parts.threshold is None):
        raise ArgumentError("--item and --threshold must be used together")
    result = open_stored_run(run)
    found = cli.audit.Audit(result, labels.labelled(result, truth), families, seed, abstain)
    if parts.item is not None and parts.threshold is not None:
        made = found.decision(parts.item, parts.threshold, stored_policy(run))
        print_result(
            lambda: {"run": str(run), "item": parts.item, "decision": made},
            lambda: [_decision_block(f"Decision on {parts.item}", made)],
            as_json=as_json,
        )
        return Exit.DONE
    if not found.has_labels:
        notice(
            f"{run} has no labels, so parts that need labels are omitted. Pass --labels FILE, or a labelled "
            "dataset with --dataset"
        )
    notice(f"Computing the audit of {found.n_items} items …")
    only = parts.only
    computed = {name: found.part(name) for name in AuditPart if only is None or name in only}
    verdicts = found.verdicts() if AuditPart.REPORT in computed else {}
    shown = _all_blocks if full or only is not None else _summary_blocks
    print_result(lambda: _json(run, computed, verdicts), lambda: shown(computed, verdicts), as_json=as_json)
    return Exit.DONE


def _json(
    run: Path, parts: Mapping[AuditPart, PartResult], verdicts: Mapping[str, VerdictCounts]
) -> dict[str, Any]:
    counts = {"verdicts": {who: one.to_dict() for who, one in verdicts.items()}} if verdicts else {}
    contents = {str(name): one.content for name, one in parts.items()}
    reasons = {str(name): one.reason for name, one in parts.items() if one.reason}
    return {"run": str(run), **counts, **contents, "not_computed": reasons}


def _verdicts_block(verdicts: Mapping[str, VerdictCounts]) -> TableBlock:
    """Return the counts over all items and criteria, with or without labels."""
    names = ["asked", "answered", "abstained", "lost", "assumed"]
    names += ["not_judged"] if any(one.not_judged for one in verdicts.values()) else []
    rows = tuple((who, *(getattr(one, name) for name in names)) for who, one in verdicts.items())
    columns = ("rater", *(name.replace("_", " ") for name in names))
    return TableBlock(title="Verdicts on all items and criteria", columns=columns, rows=rows)


def _all_blocks(parts: Mapping[AuditPart, PartResult], verdicts: Mapping[str, VerdictCounts]) -> list[Block]:
    blocks = [block for one in parts.values() for block in one.blocks]
    if verdicts:
        blocks.append(_verdicts_block(verdicts))
    reasons = [f"- {name}: {one.reason}" for name, one in parts.items() if one.reason]
    return [*blocks, TextBlock(title="Not computed", text="\n".join(reasons))] if reasons else blocks


def _summary_blocks(
    parts: Mapping[AuditPart, PartResult], verdicts: Mapping[str, VerdictCounts]
) -> list[Block]:
    """Return the main findings and figures of the judges, and the verdicts if some are missing."""
    every = [block for one in parts.values() for block in one.blocks if isinstance(block, TableBlock)]
    leading = ("Judges, mean", "People and raters")
    tables = [_main_figures(one) for one in every if one.title.startswith(leading)] or every[:1]
    if any(one.missing for one in verdicts.values()):
        tables.append(_verdicts_block(verdicts))
    findings = [
        (name in _MAIN_PARTS and block is one.blocks[0], line)
        for name, one in parts.items()
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
    missing = ", ".join(name for name, one in parts.items() if one.reason)
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


def _decision_block(title: str, made: Mapping[str, Any]) -> ScalarBlock:
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
    return ScalarBlock(title=title, figures=figures)


Attacks = Annotated[
    str | None,
    option(
        "--attacks",
        "A,B",
        "Comma-separated attack families or ids; controls are always included.  [default: all]",
    ),
]
AttackedItems = Annotated[int | None, option("--limit", "N", "Attack only the first N items.", min=1)]
FailOver = Annotated[
    float | None,
    option("--fail-over", "X", "Exit with code 1 if the overall flip rate exceeds X.", min=0, max=1),
]
MaxLostAnswers = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of verdicts could not be obtained.  "
        f"[default: {MAX_LOST} with --fail-over, otherwise 0]"
    ),
]


@guarded
def redteam(  # noqa: PLR0913 - one parameter per option
    dataset: DatasetFile,
    judge: JudgeNames,
    rubric: RubricFile = None,
    *,
    columns: Columns,
    attacks: Attacks = None,
    limit: AttackedItems = None,
    no_preflight: NoPreflight = False,
    panel: PanelOptions,
    fail_over: FailOver = None,
    max_lost: MaxLostAnswers = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Attack your own judges with prompt injections, and measure how often verdicts flip.

    Each item is graded twice unchanged, and once with each of forty attacks and two harmless texts: 44
    gradings per item. A flip is a verdict that changes in the direction of the attack; verdicts that cannot
    change in that direction are excluded. The noise is the rate of such changes without an attack.

    With --json, prints an object with the keys items, attacks, gradings, tokens, cost, n_unjudged, overall
    and control (rate, noise, excess and counts), by_family, by_criterion and by_attack (the same by name),
    flips (item_id, criterion, attack, family, clean and attacked of each) and notices.

    \b
    Examples:
      autorubric redteam essays.json --judge gpt-6-luna --limit 20
      autorubric redteam essays.json --rubric rubric.yaml --judge lexical \\
          --attacks roles,override-plain --fail-over 0.05

    Exit codes: 0 success, 1 above --fail-over, 2 invalid command line or file, 3 a verdict could not be
    obtained (with --fail-over: more verdicts than --max-lost allows), 130 interrupted.
    """
    tested = autorubric.apps.redteam
    names = [] if attacks is None else [name.strip() for name in attacks.split(",") if name.strip()]
    chosen = tested.builtin_attacks() if attacks is None else tested.choose_attacks(names)
    items = columns.open(dataset, rubric)
    grader = panel.checked_grader(judge, preflight=not no_preflight)
    report = run_and_close(grader, tested.red_team(items, grader, attacks=chosen, limit=limit))
    print_result(report.to_dict, report.blocks, as_json=as_json)
    if as_json:
        notice(*report.notices())
    rate = report.overall.rate.value
    share = report.n_failed / max(1, report.n_verdicts)
    if rate is None or exceeds_max_lost(share, max_lost, is_gate=fail_over is not None):
        return Exit.UNJUDGED
    return Exit.BELOW if fail_over is not None and rate > fail_over else Exit.DONE
