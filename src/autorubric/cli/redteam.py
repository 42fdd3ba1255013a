"""The `autorubric redteam` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from autorubric.cli import options as _datasets
from autorubric.cli.options import DatasetFile, NoPreflight, RubricFile, are_too_many
from autorubric.cli.output import Exit, JsonFlag, max_lost_option, notice, print_json, report_errors
from autorubric.cli.panel import (
    Aggregation,
    ApiBase,
    ApiKeyEnv,
    CacheDir,
    HowFailuresCount,
    JudgeNames,
    OnFailure,
    Samples,
    Temperature,
    parse_aggregation,
    parse_judges,
)
from autorubric.cli.tables import print_blocks
from autorubric.criteria.values import MAX_LOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autorubric.apps.redteam.attacks import Attack
    from autorubric.apps.redteam.report import RedteamReport
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.grading.base import Grader


Attacks = Annotated[
    str | None,
    typer.Option(
        "--attacks",
        metavar="A,B",
        help="Comma-separated attack families or ids; controls are always included.  [default: all]",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="Attack only the first N items.", show_default=False),
]
FailOver = Annotated[
    float | None,
    typer.Option(
        "--fail-over",
        metavar="X",
        min=0,
        max=1,
        help="Exit with code 1 if the overall flip rate exceeds X.",
        show_default=False,
    ),
]
MaxLostVerdicts = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of verdicts could not be obtained.  "
        f"[default: {MAX_LOST} with --fail-over, otherwise 0]"
    ),
]


@report_errors
def redteam(  # noqa: PLR0913 - one parameter an option
    dataset: DatasetFile,
    judge: JudgeNames,
    rubric: RubricFile = None,
    submission: _datasets.SubmissionColumn = None,
    prompt: _datasets.PromptColumn = None,
    reference: _datasets.ReferenceColumn = None,
    item_id: _datasets.IdColumn = None,
    truth: _datasets.TruthColumns = None,
    meta: _datasets.MetaColumns = None,
    attacks: Attacks = None,
    limit: Limit = None,
    no_preflight: NoPreflight = False,
    api_base: ApiBase = None,
    api_key_env: ApiKeyEnv = None,
    cache_dir: CacheDir = None,
    temperature: Temperature = None,
    samples: Samples = None,
    aggregation: Aggregation = None,
    on_failure: HowFailuresCount = OnFailure.conservative,
    fail_over: FailOver = None,
    max_lost: MaxLostVerdicts = None,
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
    # Imported late, since they load numpy.
    from autorubric.apps.redteam.attacks import builtin_attacks, choose_attacks
    from autorubric.runs.preflight import CheckedGrader

    chosen = builtin_attacks() if attacks is None else choose_attacks(_split(attacks))
    fields = _datasets.field_map(submission, prompt, reference, item_id, truth, meta)
    items = _datasets.open_dataset(dataset, rubric, fields)
    judges = parse_judges(
        judge,
        api_base=api_base,
        api_key_env=api_key_env,
        cache_dir=cache_dir,
        temperature=temperature,
        samples=samples,
    )
    grader = CheckedGrader(
        judges=judges,
        on_failure=on_failure.value,
        preflight=not no_preflight,
        **parse_aggregation(aggregation),
    )
    report = _run(items, grader, chosen, limit)
    if as_json:
        print_json(report.to_dict())
        for text in report.notices():
            notice(text)
    else:
        print_blocks(report.blocks())
    return _code(report, fail_over, max_lost)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _run(
    dataset: RubricDataset, grader: Grader, attacks: Sequence[Attack], limit: int | None
) -> RedteamReport:
    import asyncio

    from autorubric.apps.redteam.run import red_team

    async def work() -> RedteamReport:
        try:
            return await red_team(dataset, grader, attacks=attacks, limit=limit)
        finally:
            await grader.aclose()

    return asyncio.run(work())


def _code(report: RedteamReport, fail_over: float | None, max_lost: float | None) -> Exit:
    rate = report.overall.rate.value
    share = report.n_failed / max(1, report.n_verdicts)
    if rate is None or are_too_many(share, max_lost, is_gate=fail_over is not None):
        return Exit.UNJUDGED
    return Exit.BELOW if fail_over is not None and rate > fail_over else Exit.DONE
