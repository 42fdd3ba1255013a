"""The `autorubric eval` command."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import autorubric
from autorubric.cli.options import (
    DryRun,
    ExecutorName,
    FailFast,
    IdColumn,
    MaxCalls,
    MaxCost,
    MetaColumns,
    Mismatch,
    NoPreflight,
    NoProgress,
    OnMismatch,
    PromptColumn,
    ReferenceColumn,
    RubricFile,
    RunName,
    ShardOf,
    SubmissionColumn,
    TruthColumns,
    field_map,
    notice_columns,
)
from autorubric.cli.output import (
    Exit,
    FailUnder,
    JsonFlag,
    MaxLost,
    exit_code,
    in_flags,
    notice,
    print_json,
    report_errors,
    run_blocks,
)
from autorubric.cli.panel import (
    Aggregation,
    ApiBase,
    ApiKeyEnv,
    CacheDir,
    FailurePolicy,
    Panel,
    RunsFolder,
    Samples,
    Source,
    Temperature,
    override,
    parse_aggregation,
    read_source,
)
from autorubric.cli.runs import (
    default_run_name,
    mean_score,
    report_stop,
    run_counts,
    run_resumable,
    shard_options,
)
from autorubric.cli.tables import print_blocks

if TYPE_CHECKING:
    from autorubric.criteria.values import VerdictCounts
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.grading.base import Grader
    from autorubric.runs.config import EvalConfig
    from autorubric.runs.result import EvalResult


_MOST_TOLD = 5
_MOST_LOOKED_AT = 100


@report_errors
def evaluate(  # noqa: PLR0913
    dataset: Source = None,
    judge: Panel = None,
    rubric: RubricFile = None,
    submission: SubmissionColumn = None,
    prompt: PromptColumn = None,
    reference: ReferenceColumn = None,
    item_id: IdColumn = None,
    truth: TruthColumns = None,
    meta: MetaColumns = None,
    name: RunName = None,
    runs_dir: RunsFolder = None,
    on_mismatch: Mismatch = OnMismatch.refuse,
    fail_fast: FailFast = False,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    shard: ShardOf = None,
    executor: ExecutorName = "local",
    dry_run: DryRun = False,
    no_preflight: NoPreflight = False,
    no_progress: NoProgress = False,
    api_base: ApiBase = None,
    api_key_env: ApiKeyEnv = None,
    cache_dir: CacheDir = None,
    temperature: Temperature = None,
    samples: Samples = None,
    aggregation: Aggregation = None,
    on_failure: FailurePolicy = None,
    fail_under: FailUnder = None,
    max_lost: MaxLost = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade a dataset and store the results in a run folder.

    Without a dataset, the run file autorubric.yaml in the working directory determines what is graded and
    how; flags override it. To resume a stopped run, run the command again with the --name of the run.

    With --json, prints an object with the keys experiment_name, experiment_dir, total_items,
    successful_items, partly_scored_items, failed_items, mean_score, verdicts (asked, answered, abstained,
    lost, assumed, lost_cause, assumed_cause), tokens, cost, calls_saved, seconds, stopped, notices and items
    (id, score and error of each). With --dry-run, the keys are items, votes, calls, prompt_tokens,
    completion_tokens, cost, at_most, stored_votes, judges and notes.

    \b
    Examples:
      autorubric eval
      autorubric eval replies.csv --rubric rubric.yaml --submission reply \\
          --judge gpt-6-luna
      autorubric eval essays.json --judge gpt-6-luna --judge lexical --name one

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line or file, 3 an item was not judged,
    more verdicts were lost or assumed than --max-lost allows, or a judge kept failing with the same error,
    130 interrupted or stopped at --max-calls or --max-cost.
    """
    file = read_source(dataset, judge)
    changes = {
        "rubric": rubric,
        "name": name,
        "runs_dir": runs_dir,
        "cache_dir": cache_dir,
        "on_failure": None if on_failure is None else on_failure.value,
        "budget": file.budget.replaced(max_calls=max_calls, max_cost=max_cost),
        "data": file.data.replaced(field_map(submission, prompt, reference, item_id, truth, meta)),
        **parse_aggregation(aggregation),
    }
    settings = {
        "api_base": api_base,
        "api_key_env": api_key_env,
        "temperature": temperature,
        "samples": samples,
    }
    setup = override(file, judge, changes, settings)
    notice_columns(setup.dataset)
    config = setup.config
    stem = file.data.path.stem
    if shard and config.experiment_name is None:
        config = config.model_copy(update={"experiment_name": stem})
    if dry_run:
        return _print_estimate(setup.dataset, setup.grader, config, shard, as_json=as_json)
    chosen = config.experiment_name or default_run_name(stem, config.experiments_dir)
    how_to_go_on = "the same command"
    if name is not None or file.name is None:
        how_to_go_on += f" with --name {shlex.quote(chosen)}"
    options = {
        **config.model_dump(exclude={"shard"}),
        "fail_fast": fail_fast,
        "show_progress": not no_progress,
        "experiment_name": chosen,
        "on_mismatch": on_mismatch.value,
        "executor": executor,
    }
    result = run_resumable(
        setup.dataset,
        setup.grader,
        how_to_go_on=how_to_go_on,
        preflight=not no_preflight,
        shard=shard,
        **options,
    )
    result = replace(result, notices=tuple(map(in_flags, result.notices)))
    mean = mean_score(result)
    if as_json:
        print_json(_json(result))
    else:
        print_blocks(run_blocks(result))
    _tell(result, as_json=as_json)
    if result.stopped is not None:
        return report_stop(result.stopped, how_to_go_on)
    if fail_under is None and max_lost is None:
        _report_missing(result.verdicts)
    return exit_code(
        mean, fail_under, unjudged=result.failed_items, verdicts=result.verdicts, max_lost=max_lost
    )


def _print_estimate(
    dataset: RubricDataset,
    grader: Grader,
    config: EvalConfig,
    shard: tuple[int, int] | None,
    *,
    as_json: bool,
) -> Exit:
    dataset, config = shard_options(dataset, config, shard)
    found = autorubric.estimate(
        dataset, grader, experiment_name=config.experiment_name, experiments_dir=config.experiments_dir
    )
    if as_json:
        print_json(found.to_dict())
    else:
        print_blocks(found.blocks())
    return Exit.DONE


def _tell(result: EvalResult, *, as_json: bool) -> None:
    if as_json:
        for text in result.notices:
            notice(text)
    # If the run stopped because of a repeated error, its notice contains the error.
    shown = 0 if result.stopped == "same_error" else _MOST_TOLD
    for position, error in result.errors[:shown]:
        notice(f"item {result.dataset.item_id(position)!r}: {error}")
    if len(result.errors) > shown > 0:
        notice(f"and {len(result.errors) - _MOST_TOLD} more items with errors")
    first = islice(result.item_results.positions, _MOST_LOOKED_AT)
    if any(result.dataset.item_truth(position) for position in first):
        notice(f"Compare it with the labels: autorubric metrics {shlex.quote(str(result.experiment_dir))}")


def _report_missing(verdicts: VerdictCounts) -> None:
    missing = verdicts.lost + verdicts.assumed
    if missing:
        notice(
            f"{missing:,} of {verdicts.asked:,} verdicts were lost or assumed ({verdicts.lost:,} lost, "
            f"{verdicts.assumed:,} assumed); pass --max-lost or --fail-under to exit with code 3 instead"
        )


def _json(result: EvalResult) -> dict[str, Any]:
    usage = result.total_token_usage
    return {
        "experiment_name": result.experiment_name,
        "experiment_dir": str(result.experiment_dir),
        **run_counts(result),
        "tokens": usage.total_tokens if usage else None,
        "cost": result.total_completion_cost,
        "calls_saved": result.calls_saved,
        "stopped": result.stopped,
        "seconds": result.timing_stats.total_duration_seconds,
        "notices": list(result.notices),
        "items": [
            {"id": line.item_id, "score": line.score, "error": line.error or line.partial}
            for line in sorted(result.item_results.lines(), key=lambda line: line.position)
        ],
    }
