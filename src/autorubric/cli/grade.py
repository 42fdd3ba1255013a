"""The `autorubric grade` command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import autorubric
from autorubric.cli.command import Exit, Without, guarded, notice
from autorubric.cli.gates import ScoreGate
from autorubric.cli.options import Columns, JsonFlag, NoPreflight, argument, option
from autorubric.cli.output import print_result, read_input, report_json
from autorubric.cli.panel import JudgeNames, PanelOptions, run_and_close
from autorubric.datasets.store import FORMATS
from autorubric.errors import ArgumentError

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
        text = self._read_text()
        item = autorubric.DataItem(submission=text, prompt=self.query, reference_submission=self.reference)
        return item, self.item_id

    def _read_text(self) -> str:
        if (self.text is None) == (self.file is None):
            raise ArgumentError("pass the text either as an argument or with --file; - reads standard input")
        return read_input(self.file) if self.text is None or self.text == "-" else self.text

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
    criteria = autorubric.Rubric.from_file(rubric)
    item, item_id = source.item(rubric, columns)
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
