"""`autorubric refine`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import autorubric
from autorubric._blocks import Block, ScalarBlock, TableBlock
from autorubric.cli._judges import ApiBase, CacheDir, parse_judges
from autorubric.cli._output import Exit, JsonFlag, guarded, notice, print_json
from autorubric.cli._tables import print_blocks
from autorubric.cli.critique import (
    CritiqueRubric,
    Limit,
    OutDir,
    Resume,
    RetryErrors,
    SchemaFile,
    TemplateFile,
    Threshold,
)


class RiskLevel(StrEnum):
    """A risk of hallucination."""

    low = "low"
    medium = "medium"
    high = "high"


CritiquesFile = Annotated[
    Path,
    typer.Argument(metavar="CRITIQUES", help="What autorubric critique wrote.", show_default=False),
]
Drafts = Annotated[
    Path, typer.Option("--drafts", metavar="F", help="The drafts that were critiqued.", show_default=False)
]
Writer = Annotated[
    str,
    typer.Option(
        "--judge", metavar="J", help="The model that rewrites and critiques again.", show_default=False
    ),
]
Rounds = Annotated[
    int, typer.Option("--max-rounds", metavar="N", help="Rewrite a draft N times at most.", show_default=True)
]
MinRisk = Annotated[
    RiskLevel | None,
    typer.Option(
        "--min-risk",
        metavar="L",
        help="Leave out drafts of a lower risk: low, medium, high.",
        show_default=False,
    ),
]
MaxRisk = Annotated[
    RiskLevel | None,
    typer.Option("--max-risk", metavar="L", help="Leave out drafts of a higher risk.", show_default=False),
]


@guarded
def refine(  # noqa: PLR0913
    critiques: CritiquesFile,
    drafts: Drafts,
    out_dir: OutDir,
    judge: Writer,
    max_rounds: Rounds = 3,
    min_risk: MinRisk = None,
    max_risk: MaxRisk = None,
    schema: SchemaFile = None,
    template: TemplateFile = None,
    rubric: CritiqueRubric = None,
    threshold: Threshold = None,
    limit: Limit = None,
    resume: Resume = False,
    retry_errors: RetryErrors = False,
    api_base: ApiBase = None,
    cache_dir: CacheDir = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Rewrite the drafts whose verdict is revise, and critique them again.

    Writes refined_v1.jsonl, rejected_v1.jsonl, undecided_v1.jsonl, errors_v1.jsonl and
    refined_v1_stats.json. The drafts with the worst issues come first. A pass that is stopped goes on with
    --resume.

    With --json the object is the statistics: total, filtered, processed, skipped, refined, rejected,
    undecided, errors, success_rate, reason_counts, rounds_distribution, mean_gain, faults, fault_count,
    notices, inputs, generated_at, seconds.

    \b
    Example:
      autorubric refine out/critiques_v1.jsonl --drafts drafts.jsonl \\
          --out-dir out --judge gpt-4.1-mini

    Exit codes: 0 done, 2 faulty command line or file, 3 a draft could not be refined for an error,
    130 stopped.
    """
    teacher = parse_judges([judge], api_base=api_base, cache_dir=cache_dir)[0]
    try:
        stats = autorubric.refine(
            critiques,
            drafts,
            out_dir,
            teacher,
            max_rounds=max_rounds,
            min_risk=min_risk.value if min_risk else None,
            max_risk=max_risk.value if max_risk else None,
            schema=schema,
            template=template,
            rubric=rubric,
            threshold=threshold,
            limit=limit,
            resume=resume,
            retry_errors=retry_errors,
        )
    except KeyboardInterrupt:
        told = (
            f"What was refined is in {shlex.quote(str(out_dir))}; to go on, give the command with --resume."
        )
        notice(f"Stopped. {told}")
        return Exit.STOPPED
    if as_json:
        print_json(stats)
    else:
        print_blocks(_blocks(stats))
    return Exit.UNJUDGED if stats["errors"] or stats["fault_count"] else Exit.DONE


def _blocks(stats: Mapping[str, Any]) -> list[Block]:
    names = ("total", "filtered", "processed", "skipped", "success_rate", "mean_gain")
    figures = tuple((name.replace("_", " "), stats[name]) for name in names)
    outcomes = tuple((name, stats[name]) for name in ("refined", "rejected", "undecided", "errors"))
    reasons = tuple(stats["reason_counts"].items())
    tables = [TableBlock(columns=("outcome", "drafts"), rows=outcomes)]
    if reasons:
        tables.append(TableBlock(columns=("ended by", "drafts"), rows=reasons))
    return [ScalarBlock(figures=figures), *tables]
