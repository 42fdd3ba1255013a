"""`autorubric critique` and `autorubric refine`: critique drafts in JSON lines, and rewrite them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import autorubric
from autorubric.cli.app import Exit, guarded, notice, stoppable
from autorubric.cli.gates import ScoreGate, exceeds_max_lost, max_lost_option
from autorubric.cli.options import JsonFlag, MaxCalls, MaxCost, argument, demand, flag, option
from autorubric.cli.output import print_result
from autorubric.cli.panel import Models
from autorubric.cli.runs import report_stop
from autorubric.criteria.values import MAX_LOST
from autorubric.errors import ArgumentError
from autorubric.support.blocks import Block, ScalarBlock, TableBlock

_RESUME_COMMAND: Final = "the command again with --resume"

OutDir = Annotated[Path, option("--out-dir", "D", "Folder to write the output files to.", show_default=True)]
MaxLostDrafts = Annotated[
    float | None,
    max_lost_option(
        "Exit with code 3 if more than this fraction of the drafts could not be judged.  "
        f"[default: {MAX_LOST} with a --fail option, otherwise 0]"
    ),
]


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """Options of a pass over drafts, named as the keywords of the functions that run it."""

    schema: Annotated[
        Path | None,
        option("--schema", "S", "JSON schema for critiques, used instead of the built-in schema."),
    ] = None
    template: Annotated[
        Path | None, option("--template", "T", "Prompt template to replace the built-in one.")
    ] = None
    rubric: Annotated[
        Path | None,
        option(
            "--rubric",
            "R",
            "Rubric file; each criterion yields a score, and the rubric score determines the verdict.",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        option("--threshold", "X", "With --rubric: minimum score for the verdict pass.  [default: 0.7]"),
    ] = None
    limit: Annotated[int | None, option("--limit", "N", "Process at most N drafts.")] = None
    resume: Annotated[bool, flag("--resume", "Resume from the existing records.")] = False
    retry_errors: Annotated[bool, flag("--retry-errors", "With --resume: retry drafts that failed.")] = False
    max_calls: MaxCalls = None
    max_cost: MaxCost = None

    def run(
        self,
        function: Callable[..., dict[str, Any]],
        *inputs: Path,
        out_dir: Path,
        done: str,
        **keywords: Any,
    ) -> dict[str, Any]:
        """Run a pass and return its statistics; if it is interrupted, print how to resume it."""
        with stoppable(out_dir, done=done, command=_RESUME_COMMAND):
            return function(*inputs, out_dir, **vars(self), **keywords)

    def teacher(self, judge: str, models: Models) -> autorubric.judges.JudgeLike:
        """Return the judge of a pass, after checking the options."""
        if self.retry_errors and not self.resume:
            raise ArgumentError("--retry-errors requires --resume; otherwise every draft is processed again")
        return models.judges([judge])[0]


FailOn = Annotated[
    Literal["reject", "revise"] | None,
    option(
        "--fail-on", "V", "Exit with code 1 if a draft gets this verdict or a worse one: revise or reject."
    ),
]


@guarded
def critique(  # noqa: PLR0913 - one parameter per option
    drafts: Annotated[Path, argument("DRAFTS", "JSON lines with keys id, prompt, output and contract.")],
    out_dir: OutDir,
    judge: Annotated[
        str,
        option(
            "--judge",
            "J",
            "Judge that writes the critiques: a model name or, with --rubric, also lexical, "
            "supervised:TRAIN or recorded:CSV#RATER.",
        ),
    ],
    options: PassOptions,
    dry_run: Annotated[
        bool, flag("--dry-run", "Show the planned requests without sending or writing anything.")
    ] = False,
    fail_on: FailOn = None,
    max_lost: MaxLostDrafts = None,
    *,
    models: Models,
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
    teacher = options.teacher(judge, models)
    stats = options.run(
        autorubric.generate_critiques,
        drafts,
        out_dir=out_dir,
        done="judged",
        teacher=teacher,
        dry_run=dry_run,
    )
    print_result(lambda: stats, lambda: _critique_blocks(stats), as_json=as_json)
    if stats["stopped"] is not None:
        return _report_stop(stats["stopped"])
    return Exit.DONE if dry_run else _critique_code(stats, fail_on, max_lost)


def _report_stop(limit: Any) -> Exit:
    if limit == "errors":
        notice(f"Stopped. To resume, run {_RESUME_COMMAND} --retry-errors.")
        return Exit.UNJUDGED
    return report_stop(limit, _RESUME_COMMAND)


def _report_lost(lost: int, total: int, first_error: str | None) -> float:
    """Print how many drafts could not be judged, with the first error, and return their fraction."""
    if not lost:
        return 0.0
    cause = "" if first_error is None else f"; first error: {first_error}"
    notice(f"Warning: {lost} of {total} drafts could not be judged{cause}")
    return lost / total


def _critique_code(stats: Mapping[str, Any], fail_on: str | None, max_lost: float | None) -> Exit:
    """Return BELOW if a verdict fails the gate, UNJUDGED if too many drafts could not be judged."""
    errors = sum(stats["error_counts"].values())
    lost = errors + stats["fault_count"]
    first_error = next(iter(f"{code}: {error}" for code, error in stats["first_errors"].items()), None)
    share = _report_lost(lost, stats["records"] + stats["fault_count"], first_error)
    verdicts = stats["verdict_distribution"]
    failing = {None: (), "reject": ("reject",), "revise": ("revise", "reject")}[fail_on]
    if any(verdicts.get(verdict) for verdict in failing):
        return Exit.BELOW
    is_lost = exceeds_max_lost(share, max_lost, is_gate=fail_on is not None)
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


Risk = Literal["low", "medium", "high"]


@dataclass(frozen=True, kw_only=True)
class RiskOptions:
    """Which drafts to rewrite, and how often."""

    max_rounds: Annotated[
        int, option("--max-rounds", "N", "Rewrite a draft at most N times.", show_default=True)
    ] = 3
    min_risk: Annotated[
        Risk | None, option("--min-risk", "L", "Skip drafts below this risk level: low, medium or high.")
    ] = None
    max_risk: Annotated[Risk | None, option("--max-risk", "L", "Skip drafts above this risk level.")] = None


RequiredRate = Annotated[
    float | None,
    option(
        "--fail-under",
        "P",
        "Exit with code 1 if fewer than P percent of the drafts were refined.",
        callback=demand(
            lambda share: 0 <= share <= 100, "a success rate; it must be a percentage from 0 to 100"
        ),
    ),
]


@guarded
def refine(  # noqa: PLR0913 - one parameter per option
    critiques: Annotated[Path, argument("CRITIQUES", "Critiques file written by autorubric critique.")],
    drafts: Annotated[Path, option("--drafts", "F", "File with the critiqued drafts.")],
    out_dir: OutDir,
    judge: Annotated[str, option("--judge", "J", "Model that rewrites the drafts and critiques them again.")],
    risk: RiskOptions,
    options: PassOptions,
    fail_under: RequiredRate = None,
    max_lost: MaxLostDrafts = None,
    *,
    models: Models,
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
    teacher = options.teacher(judge, models)
    stats = options.run(
        autorubric.apps.drafts.refine,
        critiques,
        drafts,
        out_dir=out_dir,
        done="refined",
        teacher=teacher,
        **vars(risk),
    )
    print_result(lambda: stats, lambda: _refine_blocks(stats), as_json=as_json)
    if stats["stopped"] is not None:
        return _report_stop(stats["stopped"])
    return _refine_code(stats, fail_under, max_lost)


def _refine_code(stats: Mapping[str, Any], fail_under: float | None, max_lost: float | None) -> Exit:
    """Return UNJUDGED if too many drafts have no verdict because their critique or refinement failed."""
    unread = stats["fault_count"]
    failed = stats["critiques_failed"] + unread
    refined = sum(stats[name] for name in ("refined", "rejected", "undecided", "errors"))
    share = max(
        _report_lost(failed, stats["critiques"] + unread, stats["first_critique_error"]),
        _report_lost(stats["errors"], refined, stats["first_error"]),
    )
    if exceeds_max_lost(share, max_lost, is_gate=fail_under is not None):
        return Exit.UNJUDGED
    if stats["success_rate"] is None:
        # There was nothing to refine, so nothing could have failed.
        return Exit.DONE
    return ScoreGate(fail_under=fail_under).exit_code(stats["success_rate"])


def _refine_blocks(stats: Mapping[str, Any]) -> list[Block]:
    names = ("total", "filtered", "processed", "skipped", "removed", "left", "success_rate", "mean_gain")
    figures = tuple((name.replace("_", " "), stats[name]) for name in names)
    outcomes = tuple((name, stats[name]) for name in ("refined", "rejected", "undecided", "errors"))
    reasons = tuple(stats["reason_counts"].items())
    tables = [TableBlock(columns=("outcome", "drafts"), rows=outcomes)]
    if reasons:
        tables.append(TableBlock(columns=("reason", "drafts"), rows=reasons))
    return [ScalarBlock(figures=figures), *tables]
