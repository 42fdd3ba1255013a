"""Grading on the command line: `autorubric grade` for one text, and `autorubric eval` for a dataset."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import autorubric
from autorubric.cli.app import Exit, Without, guarded, in_flags, notice
from autorubric.cli.gates import ScoreGate
from autorubric.cli.options import (
    RUN_DEFAULTS,
    Columns,
    JsonFlag,
    MaxCalls,
    MaxCost,
    NoPreflight,
    NoProgress,
    RubricFile,
    argument,
    check_texts,
    flag,
    is_empty,
    notice_columns,
    option,
)
from autorubric.cli.output import print_result, read_input, report_json, run_blocks
from autorubric.cli.panel import JUDGE, JudgeNames, PanelOptions, run_and_close
from autorubric.cli.runs import mean_score, new_run_name, report_stop, run_counts, run_resumable, shard_inputs
from autorubric.datasets.store import FORMATS
from autorubric.errors import ArgumentError
from autorubric.llm.names import owner_of
from autorubric.runs.config import OnMismatch

_TABLES: Final = tuple(suffix for suffix, form in FORMATS.items() if form.has_rows)
"""Suffixes of files whose rows are items; other files hold one text."""


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """The text to grade, and what it responds to."""

    text: Annotated[str | None, argument("TEXT", "Text to grade; - reads stdin.")] = None
    file: Annotated[
        Path | None,
        option(
            "--file",
            "F",
            "Read the text from this file; - reads standard input. A CSV, TSV, Parquet or JSONL file is read "
            "as a table: its only row is graded, or the row selected by --item-id.",
        ),
    ] = None
    query: Annotated[str | None, option("--query", "Q", "Prompt that the text responds to.")] = None
    reference: Annotated[
        str | None,
        option(
            "--reference",
            "TEXT",
            "Reference answer to compare with; for a table, the column that contains it.",
        ),
    ] = None
    item_id: Annotated[
        str | None,
        option("--item-id", "ID", "Id of the text; selects its recorded votes and its row in a table."),
    ] = None

    def item(self, rubric: Path, columns: Columns) -> tuple[autorubric.DataItem, str | None]:
        """Return the item to grade and its id."""
        file = self.file
        if file is not None and self.text is None and file.suffix.lower() in _TABLES:
            item = self._row(replace(columns, reference=self.reference).open(file, rubric), file)
            return item, item.id
        if columns.field_map():
            raise ArgumentError(
                "--submission, --prompt, --id, --truth and --meta name columns; pass a table with --file "
                f"({', '.join(_TABLES)})"
            )
        if (self.text is None) == (file is None):
            raise ArgumentError("pass the text either as an argument or with --file; - reads standard input")
        text = read_input(file) if self.text is None or self.text == "-" else self.text
        item = autorubric.DataItem(submission=text, prompt=self.query, reference_submission=self.reference)
        return item, self.item_id

    def _row(self, dataset: autorubric.RubricDataset, file: Path) -> autorubric.DataItem:
        """Return the row of a table with the id, or its only row."""
        item_id = self.item_id
        if item_id is None and len(dataset) != 1:
            raise ArgumentError(
                f"{file} has {len(dataset)} rows, but grade takes one text. Pass --item-id ID to select a "
                f"row, or grade all rows with: autorubric eval {shlex.quote(str(file))} --rubric R --judge J"
            )
        for position in range(len(dataset)):
            if item_id is None or dataset.item_id(position) == item_id:
                check_texts(file, dataset, position)
                return dataset[position]
        raise ArgumentError(f"{file} has no row with id {item_id!r}")


@guarded
def grade(  # noqa: PLR0913 - one parameter per option
    rubric: Annotated[Path, option("--rubric", "R", "Rubric file (YAML, JSON or TOML).")],
    judge: JudgeNames,
    source: TextSource,
    columns: Annotated[Columns, Without("reference")],
    no_preflight: NoPreflight = False,
    *,
    panel: PanelOptions,
    gate: ScoreGate,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade one text against a rubric.

    Prints a table with the answer and the reason for each criterion, and the score.

    With --json, prints an object with the keys truth and metadata (the labels and other columns of a table's
    row), score, raw_score, error, node_scores, judge_scores, mean_agreement, cannot_assess_count, verdicts
    (asked, answered, abstained, lost, assumed, lost_cause, assumed_cause, not_judged), tokens, cost and
    criteria. Each criterion has the keys name, weight, status, answer, value, reason, agreement, tie, error
    and votes; each vote has the keys judge, sample, status, answer, value, reason, confidence, probabilities,
    probability_source, probability_backend, probability_reason and error.

    \b
    Examples:
      autorubric grade "Paris it is." --rubric rubric.yaml --judge lexical
      autorubric grade --file answer.txt --rubric rubric.yaml \\
          --judge gpt-6-luna --judge lexical --fail-under 0.7

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line or file, 3 the text could not be
    judged, or more verdicts were lost or abstained than --max-lost or --max-abstained allows, 130
    interrupted.
    """
    criteria = autorubric.Rubric.from_file(rubric)
    item, item_id = source.item(rubric, columns)
    if item.submission is not None and is_empty(item.submission):
        raise ArgumentError("the text is empty; there is nothing to judge")
    grader = panel.checked_grader(judge, preflight=not no_preflight)
    report = run_and_close(
        grader,
        criteria.grade(
            item.submission,
            grader,
            query=item.prompt,
            reference_submission=item.reference_submission,
            item_id=item_id,
        ),
    )
    print_result(
        lambda: {"truth": item.ground_truth, "metadata": item.metadata, **report_json(report)},
        report.blocks,
        as_json=as_json,
    )
    if isinstance(item.ground_truth, dict) and not as_json:
        notice(f"labels: {', '.join(f'{name}={label}' for name, label in item.ground_truth.items())}")
    if report.error is not None:
        notice(f"{'No score' if report.score is None else 'Warning'}: {report.error}")
    return gate.exit_code(report.score, report.verdicts)


_MOST_ERRORS_SHOWN = 5
_MOST_LOOKED_AT = 100
_RUN_FILE: Final = "autorubric.yaml"


def _read_shard(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is not a shard; it must be I/N, such as 0/8 for the first of eight"
        )
    return int(found[1]), int(found[2])


DatasetOrRunFile = Annotated[
    Path | None,
    argument(
        "[DATASET]",
        "Dataset (JSON, JSONL, YAML, CSV, TSV, Parquet) or run file (YAML).  [default: autorubric.yaml]",
    ),
]
Judges = Annotated[list[str] | None, option("--judge", "J", f"{JUDGE} Replaces the run file's judges.")]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How the run is stored, limited and executed."""

    name: Annotated[
        str | None,
        option(
            "--name",
            "NAME",
            "Name of the run; an existing run with this name is resumed.  [default: the dataset's name and "
            "the time]",
        ),
    ] = None
    runs_dir: Annotated[
        Path | None,
        option("--runs-dir", "DIR", f"Folder for the runs.  [default: {RUN_DEFAULTS.experiments_dir}]"),
    ] = None
    on_mismatch: Annotated[
        OnMismatch,
        option(
            "--on-mismatch",
            "HOW",
            "What to do if the existing run has different inputs: refuse (list the differences), rejudge "
            "(request affected votes again), or fork (continue in a new folder).  "
            f"[default: {RUN_DEFAULTS.on_mismatch}]",
        ),
    ] = RUN_DEFAULTS.on_mismatch
    fail_fast: Annotated[bool, flag("--fail-fast", "Stop at the first item that fails.")] = False
    max_calls: MaxCalls = None
    max_cost: MaxCost = None
    shard: Annotated[
        Any,
        option(
            "--shard",
            "I/N",
            "For job schedulers: grade only every N-th item, starting with item I (from 0), as a run named "
            "NAME-I-of-N. `merge` combines all N runs.",
            parser=_read_shard,
        ),
    ] = None
    executor: Annotated[
        str,
        option(
            "--executor",
            "NAME",
            "Where to grade: local (this process) or ray (a Ray cluster).  "
            f"[default: {RUN_DEFAULTS.executor}]",
        ),
    ] = RUN_DEFAULTS.executor
    batch: Annotated[
        bool,
        flag(
            "--batch",
            "Send requests to models in batches of the provider: at about half the price, within 24 hours. "
            "The same command collects the replies; exit code 4 while some are outstanding.",
        ),
    ] = False
    finish_direct: Annotated[
        bool,
        flag(
            "--finish-direct",
            "Collect what the batches of the run have answered, cancel them, and send the rest directly.",
        ),
    ] = False
    dry_run: Annotated[
        bool, flag("--dry-run", "Estimate the run's calls, tokens and cost without sending any request.")
    ] = False
    no_preflight: NoPreflight = False
    no_progress: NoProgress = False


@guarded
def evaluate(  # noqa: PLR0913 - one parameter per group of options
    dataset: DatasetOrRunFile = None,
    judge: Judges = None,
    rubric: RubricFile = None,
    *,
    columns: Columns,
    run: RunOptions,
    panel: PanelOptions,
    gate: ScoreGate,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade a dataset and store the results in a run folder.

    Without a dataset, the run file autorubric.yaml in the working directory determines what is graded and
    how; flags override it. To resume a stopped run, run the command again with the --name of the run.

    With --json, prints an object with the keys experiment_name, experiment_dir, total_items,
    successful_items, partly_scored_items, failed_items, unfinished_items, mean_score, verdicts (asked,
    answered, abstained, lost, assumed, lost_cause, assumed_cause, not_judged), tokens, cost, calls_saved,
    seconds, stopped, notices and items (id, score and error of each). With --dry-run, the keys are items,
    votes, calls, prompt_tokens, completion_tokens, cost, at_most, stored_votes, judges and notes.

    \b
    Examples:
      autorubric eval
      autorubric eval replies.csv --rubric rubric.yaml --submission reply \\
          --judge gpt-6-luna
      autorubric eval essays.json --judge gpt-6-luna --judge lexical --name one

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line or file, 3 an item was not judged,
    more verdicts were lost or abstained than --max-lost or --max-abstained allows, or a judge kept failing
    with the same error, 4 waiting for batches of the provider, 130 interrupted or stopped at --max-calls or
    --max-cost, 143 ended by SIGTERM.
    """
    file = _read_source(dataset, judge)
    changes = {
        "rubric": rubric,
        "name": run.name,
        "runs_dir": run.runs_dir,
        "cache_dir": panel.cache_dir,
        "budget": file.budget.replace_limits(max_calls=run.max_calls, max_cost=run.max_cost),
        "data": file.data.replace_columns(columns.field_map()),
        **panel.policies(),
    }
    setup = _override_setup(file, judge, changes, panel.settings())
    notice_columns(setup.dataset)
    check_texts(file.folder / file.data.path, setup.dataset)
    stem = file.data.path.stem
    if run.shard and setup.config.experiment_name is None:
        setup = replace(setup, config=setup.config.model_copy(update={"experiment_name": stem}))
    config = setup.config
    if run.dry_run:
        data, config = shard_inputs(setup.dataset, config, run.shard)
        found = autorubric.estimate(
            data,
            setup.grader,
            experiment_name=config.experiment_name,
            experiments_dir=config.experiments_dir,
            batch=run.batch,
        )
        print_result(found.to_dict, found.blocks, as_json=as_json)
        return Exit.DONE
    name = config.experiment_name or new_run_name(stem, config.experiments_dir)
    resume_command = "the same command"
    if run.name is not None or file.name is None:
        resume_command += f" with --name {shlex.quote(name)}"
    options = {
        **config.model_dump(exclude={"shard"}),
        "fail_fast": run.fail_fast,
        "show_progress": not run.no_progress,
        "experiment_name": name,
        "on_mismatch": run.on_mismatch,
        "executor": run.executor,
        "batch": run.batch,
        "finish_direct": run.finish_direct,
    }
    result = run_resumable(
        setup.dataset,
        setup.grader,
        resume_command=resume_command,
        preflight=not (run.no_preflight or run.batch or run.finish_direct),
        shard=run.shard,
        **options,
    )
    result = replace(result, notices=tuple(map(in_flags, result.notices)))
    print_result(lambda: _json(result), lambda: run_blocks(result), as_json=as_json)
    _print_notices(result, as_json=as_json)
    if result.stopped is not None:
        return report_stop(result.stopped, resume_command, batch=run.batch)
    if gate.fail_under is None and not gate.is_set:
        verdicts = result.verdicts
        if missing := verdicts.lost + verdicts.assumed:
            notice(
                f"{missing:,} of {verdicts.asked:,} verdicts were lost or assumed ({verdicts.lost:,} lost, "
                f"{verdicts.assumed:,} assumed); pass --max-lost or --fail-under to exit with code 3 instead"
            )
    return gate.exit_code(mean_score(result), result.verdicts, unjudged=result.failed_items)


def _read_source(source: Path | None, judge: Sequence[str] | None) -> autorubric.runs.run_file.RunFile:
    """Read a run file, or create run file content that only names a dataset."""
    if source is None:
        if not Path(_RUN_FILE).exists():
            raise ArgumentError(
                f"no dataset was passed, and this folder has no {_RUN_FILE}; pass a dataset and --judge, or "
                "create a run file with: autorubric init"
            )
        return autorubric.runs.run_file.read_run_file(_RUN_FILE)
    if autorubric.runs.run_file.is_run_file(source):
        return autorubric.runs.run_file.read_run_file(source)
    if not judge:
        raise ArgumentError(f"no judge for {source}; pass --judge MODEL, or --judge lexical to work offline")
    return autorubric.runs.run_file.RunFile(data=autorubric.runs.run_file.DataSource(path=source))


def _override_setup(
    file: autorubric.runs.run_file.RunFile,
    judge: Sequence[str] | None,
    changes: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> autorubric.runs.RunSetup:
    """Return the run that a run file describes, with flags overriding its settings."""
    values = {key: value for key, value in changes.items() if value is not None}
    for key in ("rubric", "runs_dir", "cache_dir"):
        # Paths of flags start from the working directory, those of the file from its folder.
        if key in values and file.folder != Path():
            values[key] = values[key].absolute()
    if "rubric" in values:
        values["rubric"] = str(values["rubric"])
    file = file.model_copy(update=values)
    chosen = {key: value for key, value in settings.items() if value is not None}
    if judge:
        cache = None if file.cache_dir is None else file.folder / file.cache_dir
        return autorubric.runs.run_setup.set_up(
            file, autorubric.judges.panel.named_judges(judge, cache_dir=cache, **chosen)
        )
    models = [entry.model for entry in file.judges if entry.is_model]
    autorubric.judges.panel.demand_models(models, **chosen)
    variable = chosen.get("api_key_env")
    bases = {entry.api_base or owner_of(entry.model) for entry in file.judges if entry.is_model}
    if variable is not None and len(bases) > 1 and "api_base" not in chosen:
        raise ArgumentError(
            f"--api-key-env {variable}: the judges use several addresses or providers, and a key is sent to "
            "only one of them; set api_key_env for each judge in the run file"
        )
    return autorubric.runs.run_setup.set_up(file.with_model_settings(chosen))


def _print_notices(result: autorubric.EvalResult, *, as_json: bool) -> None:
    if as_json:
        notice(*result.notices)
    # If the run stopped because of a repeated error, its notice contains the error.
    shown = 0 if result.stopped == "same_error" else _MOST_ERRORS_SHOWN
    for position, error in result.errors[:shown]:
        notice(f"item {result.dataset.item_id(position)!r}: {error}")
    if len(result.errors) > shown > 0:
        notice(f"and {len(result.errors) - _MOST_ERRORS_SHOWN} more items with errors")
    first = islice(result.item_results.positions, _MOST_LOOKED_AT)
    if any(result.dataset.item_truth(position) for position in first):
        notice(f"Compare it with the labels: autorubric metrics {shlex.quote(str(result.experiment_dir))}")


def _json(result: autorubric.EvalResult) -> dict[str, Any]:
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
