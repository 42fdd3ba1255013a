"""`autorubric critique` and `autorubric refine`: critique drafts in JSON lines, and rewrite them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import autorubric
from autorubric.cli.options import (
    HOW_TO_GO_ON,
    CritiqueRubric,
    Limit,
    MaxCalls,
    MaxCost,
    MaxLostDrafts,
    OutDir,
    Resume,
    RetryErrors,
    SchemaFile,
    TemplateFile,
    Threshold,
    are_too_many,
    demand_resume,
    report_lost,
    tell_stopped,
)
from autorubric.cli.output import Exit, JsonFlag, exit_code, print_json, report_errors, stoppable
from autorubric.cli.panel import ApiBase, ApiKeyEnv, CacheDir, parse_judges
from autorubric.cli.tables import print_blocks
from autorubric.support.blocks import Block, ScalarBlock, TableBlock


class FailOn(StrEnum):
    """Least severe verdict that fails the gate."""

    reject = "reject"
    revise = "revise"


DraftsFile = Annotated[
    Path,
    typer.Argument(
        metavar="DRAFTS", help="JSON lines with keys id, prompt, output and contract.", show_default=False
    ),
]
TeacherName = Annotated[
    str,
    typer.Option(
        "--judge",
        metavar="J",
        help="Judge that writes the critiques: a model name or, with --rubric, also lexical, "
        "supervised:TRAIN or recorded:CSV#RATER.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Show the planned requests without sending or writing anything.", show_default=False
    ),
]
FailOnVerdict = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        metavar="V",
        help="Exit with code 1 if a draft gets this verdict or a worse one: revise or reject.",
        show_default=False,
    ),
]


@report_errors
def critique(  # noqa: PLR0913
    drafts: DraftsFile,
    out_dir: OutDir,
    judge: TeacherName,
    schema: SchemaFile = None,
    template: TemplateFile = None,
    rubric: CritiqueRubric = None,
    threshold: Threshold = None,
    limit: Limit = None,
    resume: Resume = False,
    retry_errors: RetryErrors = False,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    fail_on: FailOnVerdict = None,
    max_lost: MaxLostDrafts = None,
    api_base: ApiBase = None,
    api_key_env: ApiKeyEnv = None,
    cache_dir: CacheDir = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Critique drafts and write the critiques as JSON lines.

    Writes critiques_v1.jsonl, critiques_v1_manifest.json and critiques_v1_stats.json. To resume after a
    stop, use --resume.

    With --json, prints the statistics as an object with the keys total, processed, skipped,
    critique_parse_rate, critique_schema_valid_rate, verdict_distribution, issue_type_counts,
    risk_level_distribution, avg_scores, records, removed, error_counts, first_errors, unresolved_evidence,
    id_mismatches, tokens, cost, stopped, left, faults, fault_count, notices and seconds.

    \b
    Example:
      autorubric critique drafts.jsonl --out-dir out --judge gpt-6-luna \\
          --fail-on reject

    Records for drafts that are no longer in DRAFTS stay in the output file but are not counted.

    Exit codes: 0 success, 1 a draft fails --fail-on, 2 invalid command line or file, 3 a draft could not be
    judged (with --fail-on: more drafts than --max-lost allows), 130 interrupted or stopped at a limit.
    """
    demand_resume(resume, retry_errors)
    teacher = parse_judges([judge], api_base=api_base, api_key_env=api_key_env, cache_dir=cache_dir)[0]
    with stoppable(out_dir, done="judged", how_to_go_on=HOW_TO_GO_ON):
        stats = autorubric.generate_critiques(
            drafts,
            out_dir,
            teacher,
            schema=schema,
            template=template,
            rubric=rubric,
            threshold=threshold,
            limit=limit,
            resume=resume,
            retry_errors=retry_errors,
            max_calls=max_calls,
            max_cost=max_cost,
            dry_run=dry_run,
        )
    if as_json:
        print_json(stats)
    else:
        print_blocks(_critique_blocks(stats))
    if stats["stopped"] is not None:
        return tell_stopped(stats["stopped"])
    return Exit.DONE if dry_run else _critique_code(stats, fail_on, max_lost)


def _critique_code(stats: Mapping[str, Any], fail_on: FailOn | None, max_lost: float | None) -> Exit:
    """Return BELOW if a verdict fails the gate, UNJUDGED if too many drafts could not be judged."""
    errors = sum(stats["error_counts"].values())
    lost = errors + stats["fault_count"]
    first_error = next(iter(f"{code}: {told}" for code, told in stats["first_errors"].items()), None)
    share = report_lost(lost, stats["records"] + stats["fault_count"], first_error)
    verdicts = stats["verdict_distribution"]
    failing = {None: (), FailOn.reject: ("reject",), FailOn.revise: ("revise", "reject")}[fail_on]
    if any(verdicts.get(verdict) for verdict in failing):
        return Exit.BELOW
    is_lost = are_too_many(share, max_lost, is_gate=fail_on is not None)
    return Exit.UNJUDGED if is_lost else Exit.DONE


def _critique_blocks(stats: Mapping[str, Any]) -> list[Block]:
    names = ["total", "processed", "skipped", "removed", "left", "pending", "records", "prompt_characters"]
    rates = ["critique_parse_rate", "critique_schema_valid_rate", "unresolved_evidence", "tokens", "cost"]
    figures = tuple((name.replace("_", " "), stats[name]) for name in [*names, *rates] if name in stats)
    tables = [
        TableBlock(columns=(title, "drafts"), rows=tuple(stats[name].items()))
        for name, title in (("verdict_distribution", "verdict"), ("risk_level_distribution", "risk"))
    ]
    issues = tuple((name, count) for name, count in stats["issue_type_counts"].items() if count)
    if issues:
        tables.append(TableBlock(columns=("issue", "count"), rows=issues))
    if stats["avg_scores"]:
        tables.append(TableBlock(columns=("score", "mean"), rows=tuple(stats["avg_scores"].items())))
    first = stats["first_errors"]
    errors = tuple((code, count, first.get(code)) for code, count in stats["error_counts"].items() if count)
    if errors:
        tables.append(TableBlock(columns=("error", "drafts", "first error"), rows=errors))
    return [ScalarBlock(figures=figures), *tables]


class RiskLevel(StrEnum):
    """Level of hallucination risk."""

    low = "low"
    medium = "medium"
    high = "high"


CritiquesFile = Annotated[
    Path,
    typer.Argument(
        metavar="CRITIQUES", help="Critiques file written by autorubric critique.", show_default=False
    ),
]
Drafts = Annotated[
    Path, typer.Option("--drafts", metavar="F", help="File with the critiqued drafts.", show_default=False)
]
Writer = Annotated[
    str,
    typer.Option(
        "--judge",
        metavar="J",
        help="Model that rewrites the drafts and critiques them again.",
        show_default=False,
    ),
]
Rounds = Annotated[
    int, typer.Option("--max-rounds", metavar="N", help="Rewrite a draft at most N times.", show_default=True)
]
MinRisk = Annotated[
    RiskLevel | None,
    typer.Option(
        "--min-risk",
        metavar="L",
        help="Skip drafts below this risk level: low, medium or high.",
        show_default=False,
    ),
]
MaxRisk = Annotated[
    RiskLevel | None,
    typer.Option("--max-risk", metavar="L", help="Skip drafts above this risk level.", show_default=False),
]


def _percentage(given: float | None) -> float | None:
    if given is not None and not 0 <= given <= 100:
        raise typer.BadParameter(f"{given} is not a success rate; it must be a percentage from 0 to 100")
    return given


SuccessFailUnder = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        metavar="P",
        help="Exit with code 1 if fewer than P percent of the drafts were refined.",
        show_default=False,
        callback=_percentage,
    ),
]


@report_errors
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
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    fail_under: SuccessFailUnder = None,
    max_lost: MaxLostDrafts = None,
    api_base: ApiBase = None,
    api_key_env: ApiKeyEnv = None,
    cache_dir: CacheDir = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Rewrite the drafts whose verdict is revise, and critique them again.

    Writes refined_v1.jsonl, rejected_v1.jsonl, undecided_v1.jsonl, errors_v1.jsonl, refined_v1_manifest.json
    and refined_v1_stats.json. Drafts with the most severe issues are processed first. To resume after a
    stop, use --resume.

    The success rate is the percentage of refined drafts among all drafts in the four files, including
    results from before a resume; --fail-under sets its minimum.

    Drafts that are no longer in the drafts file are not counted.

    With --json, prints the statistics as an object with the keys total, filtered, processed, skipped,
    removed, critiques, critiques_failed, first_critique_error, refined, rejected, undecided, errors,
    success_rate, reason_counts, rounds_distribution, mean_gain, first_error, stopped, left, faults,
    fault_count, notices, inputs, generated_at and seconds.

    \b
    Example:
      autorubric refine out/critiques_v1.jsonl --drafts drafts.jsonl \\
          --out-dir out --judge gpt-6-luna --fail-under 80

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line or file, 3 a critique failed or a
    draft could not be refined because of an error (with --fail-under: more than --max-lost allows), 130
    stopped by the user or at a limit.
    """
    demand_resume(resume, retry_errors)
    teacher = parse_judges([judge], api_base=api_base, api_key_env=api_key_env, cache_dir=cache_dir)[0]
    with stoppable(out_dir, done="refined", how_to_go_on=HOW_TO_GO_ON):
        stats = autorubric.apps.drafts.refine(
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
            max_calls=max_calls,
            max_cost=max_cost,
        )
    if as_json:
        print_json(stats)
    else:
        print_blocks(_refine_blocks(stats))
    if stats["stopped"] is not None:
        return tell_stopped(stats["stopped"])
    return _refine_code(stats, fail_under, max_lost)


def _refine_code(stats: Mapping[str, Any], fail_under: float | None, max_lost: float | None) -> Exit:
    """Return UNJUDGED if too many drafts have no verdict because their critique or refinement failed."""
    unread = stats["fault_count"]
    failed = stats["critiques_failed"] + unread
    refined = sum(stats[name] for name in ("refined", "rejected", "undecided", "errors"))
    share = max(
        report_lost(failed, stats["critiques"] + unread, stats["first_critique_error"]),
        report_lost(stats["errors"], refined, stats["first_error"]),
    )
    if are_too_many(share, max_lost, is_gate=fail_under is not None):
        return Exit.UNJUDGED
    if stats["success_rate"] is None:
        # There was nothing to refine, so nothing could have failed.
        return Exit.DONE
    return exit_code(stats["success_rate"], fail_under)


def _refine_blocks(stats: Mapping[str, Any]) -> list[Block]:
    names = ("total", "filtered", "processed", "skipped", "removed", "left", "success_rate", "mean_gain")
    figures = tuple((name.replace("_", " "), stats[name]) for name in names)
    outcomes = tuple((name, stats[name]) for name in ("refined", "rejected", "undecided", "errors"))
    reasons = tuple(stats["reason_counts"].items())
    tables = [TableBlock(columns=("outcome", "drafts"), rows=outcomes)]
    if reasons:
        tables.append(TableBlock(columns=("reason", "drafts"), rows=reasons))
    return [ScalarBlock(figures=figures), *tables]
