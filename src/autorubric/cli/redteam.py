"""The `autorubric redteam` command."""

from __future__ import annotations

from typing import Annotated

import autorubric
from autorubric.cli.command import Exit, guarded, notice
from autorubric.cli.gates import exceeds_max_lost, max_lost_option
from autorubric.cli.options import Columns, DatasetFile, JsonFlag, NoPreflight, RubricFile, option
from autorubric.cli.output import print_result
from autorubric.cli.panel import JudgeNames, PanelOptions, run_and_close
from autorubric.criteria.values import MAX_LOST

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
