"""The `autorubric grade` command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import autorubric
from autorubric.cli import options as _datasets
from autorubric.cli.options import NoPreflight
from autorubric.cli.output import (
    Exit,
    FailUnder,
    JsonFlag,
    MaxLost,
    exit_code,
    notice,
    print_json,
    report_errors,
    report_json,
)
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
from autorubric.cli.tables import print_blocks, read_input
from autorubric.errors import ArgumentError

if TYPE_CHECKING:
    from autorubric.datasets.dataset import RubricDataset
    from autorubric.datasets.item import DataItem
    from autorubric.grading.base import Grader
    from autorubric.rubric.rubric import Rubric
    from autorubric.scoring.reports import EnsembleEvaluationReport


_TABLES: Final = (".csv", ".tsv", ".parquet", ".jsonl")
"""Suffixes of files whose rows are items; other files hold one text."""

RubricFile = Annotated[Path, typer.Option("--rubric", metavar="R", help="Rubric file (YAML, JSON or TOML).")]
Text = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="Text to grade; - reads stdin.", show_default=False)
]
TextFile = Annotated[
    Path | None,
    _datasets.option(
        "--file",
        "F",
        "Read the text from this file; - reads standard input. A CSV, TSV, Parquet or JSONL file is "
        "read as a table: its only row is graded, or the row selected by --item-id.",
    ),
]
Query = Annotated[str | None, _datasets.option("--query", "Q", "Prompt that the text responds to.")]
Reference = Annotated[
    str | None,
    _datasets.option(
        "--reference", "TEXT", "Reference answer to compare with; for a table, the column that contains it."
    ),
]
ItemId = Annotated[
    str | None,
    _datasets.option("--item-id", "ID", "Id of the text; selects its recorded votes and its row in a table."),
]


@report_errors
def grade(  # noqa: PLR0913
    rubric: RubricFile,
    judge: JudgeNames,
    text: Text = None,
    file: TextFile = None,
    query: Query = None,
    reference: Reference = None,
    item_id: ItemId = None,
    submission: _datasets.SubmissionColumn = None,
    prompt: _datasets.PromptColumn = None,
    id_column: _datasets.IdColumn = None,
    truth: _datasets.TruthColumns = None,
    meta: _datasets.MetaColumns = None,
    no_preflight: NoPreflight = False,
    api_base: ApiBase = None,
    api_key_env: ApiKeyEnv = None,
    cache_dir: CacheDir = None,
    temperature: Temperature = None,
    samples: Samples = None,
    aggregation: Aggregation = None,
    on_failure: HowFailuresCount = OnFailure.conservative,
    fail_under: FailUnder = None,
    max_lost: MaxLost = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Grade one text against a rubric.

    Prints a table with the answer and the reason for each criterion, and the score.

    With --json, prints an object with the keys truth and metadata (the labels and other columns of a table's
    row), score, raw_score, error, node_scores, judge_scores, mean_agreement, cannot_assess_count, verdicts
    (asked, answered, abstained, lost, assumed, lost_cause, assumed_cause), tokens, cost and criteria. Each
    criterion has the keys name, weight, status, answer, value, reason, agreement, tie, error and votes; each
    vote has the keys judge, sample, status, answer, value, reason, confidence and error.

    \b
    Examples:
      autorubric grade "Paris it is." --rubric rubric.yaml --judge lexical
      autorubric grade --file answer.txt --rubric rubric.yaml \\
          --judge gpt-6-luna --judge lexical --fail-under 0.7

    Exit codes: 0 success, 1 below --fail-under, 2 invalid command line or file, 3 the text could not be
    judged, or more verdicts were lost or assumed than --max-lost allows, 130 interrupted.
    """
    from autorubric.runs.preflight import CheckedGrader

    criteria = autorubric.Rubric.from_file(rubric)
    fields = _datasets.field_map(submission, prompt, reference, id_column, truth, meta)
    if file is not None and text is None and file.suffix.lower() in _TABLES:
        given = _row(_datasets.open_dataset(file, rubric, fields), file, item_id)
        item_id = given.id
    else:
        if submission or prompt or id_column or truth or meta:
            raise ArgumentError(
                "--submission, --prompt, --id, --truth and --meta name columns; pass a table with --file "
                f"({', '.join(_TABLES)})"
            )
        given = autorubric.DataItem(
            submission=_text(text, file), prompt=query, reference_submission=reference
        )
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
    report = _grade_texts(criteria, grader, given, item_id)
    if as_json:
        print_json({"truth": given.ground_truth, "metadata": given.metadata, **report_json(report)})
    else:
        print_blocks(report.blocks())
        if isinstance(given.ground_truth, dict):
            notice(f"labels: {', '.join(f'{name}={label}' for name, label in given.ground_truth.items())}")
    if report.error is not None:
        notice(f"{'No score' if report.score is None else 'Warning'}: {report.error}")
    return exit_code(report.score, fail_under, verdicts=report.verdicts, max_lost=max_lost)


def _text(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        raise ArgumentError("pass the text either as an argument or with --file; - reads standard input")
    if text is not None and text != "-":
        return text
    return read_input(file)


def _row(dataset: RubricDataset, file: Path, item_id: str | None) -> DataItem:
    """Return the row of a table with this id, or its only row."""
    if item_id is None and len(dataset) != 1:
        raise ArgumentError(
            f"{file} has {len(dataset)} rows, but grade takes one text. Pass --item-id ID to select a row, "
            f"or grade all rows with: autorubric eval {shlex.quote(str(file))} --rubric R --judge J"
        )
    for position in range(len(dataset)):
        if item_id is None or dataset.item_id(position) == item_id:
            return dataset[position]
    raise ArgumentError(f"{file} has no row with id {item_id!r}")


def _grade_texts(
    rubric: Rubric, grader: Grader, given: DataItem, item_id: str | None
) -> EnsembleEvaluationReport:
    import asyncio

    async def work() -> EnsembleEvaluationReport:
        try:
            return await rubric.grade(
                given.submission,
                grader,
                query=given.prompt,
                reference_submission=given.reference_submission,
                item_id=item_id,
            )
        finally:
            await grader.aclose()

    return asyncio.run(work())
