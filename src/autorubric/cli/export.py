"""The `autorubric export` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

import autorubric
from autorubric.cli.metrics import RunFolder
from autorubric.cli.output import Exit, max_lost_option, notice, report_errors
from autorubric.criteria.values import MAX_LOST
from autorubric.errors import ArgumentError

Format = Annotated[
    Literal["csv", "parquet", "jsonl", "markdown", "junit"],
    typer.Option("--format", help="Format of the exported file.", show_default=False),
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="FILE", help="File to write.  [default: standard output]", show_default=False
    ),
]
Table = Annotated[
    Literal["scores", "votes"],
    typer.Option(
        "--table", help="csv, parquet, jsonl: a row per item (scores) or per vote, decision or label (votes)."
    ),
]
CaseFailUnder = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        metavar="X",
        help="With junit: report an item whose score is below X as a failure.",
        show_default=False,
    ),
]

CaseMaxLost = Annotated[
    float,
    max_lost_option(
        "With junit and --fail-under: report an item as an error if more than this fraction of its verdicts "
        f"was lost or assumed.  [default: {MAX_LOST}]"
    ),
]


@report_errors
def export(
    run: RunFolder,
    format: Format,
    out: OutFile = None,
    table: Table = "scores",
    fail_under: CaseFailUnder = None,
    max_lost: CaseMaxLost = MAX_LOST,
) -> Exit:
    """Export a run as a table, a Markdown page, or a JUnit report for CI servers.

    In CSV files, texts that a spreadsheet would evaluate as formulas are prefixed with '. In a JUnit report,
    each item is a test case, and an item without a score is an error.

    \b
    Examples:
      autorubric export experiments/essays-1 --format csv -o essays.csv
      autorubric export experiments/essays-1 --format jsonl --table votes
      autorubric export experiments/essays-1 --format junit \\
          --fail-under 0.7 -o essays.xml

    Exit codes: 0 success, 2 invalid command line or run folder.
    """
    if fail_under is not None and format != "junit":
        raise ArgumentError(f"--fail-under requires --format junit; got --format {format}")
    if table == "votes" and format in ("markdown", "junit"):
        raise ArgumentError(f"--table votes requires --format csv, parquet or jsonl, not {format}")
    if out is None and format == "parquet":
        raise ArgumentError("Parquet is a binary format; name the output file with --out")
    result = autorubric.EvalResult.from_experiment(run)
    for text in result.notices:
        notice(text)
    content = result.export(format, table=table, fail_under=fail_under, max_lost=max_lost)
    if out is None:
        if hasattr(sys.stdout, "buffer"):
            # As UTF-8, whatever the terminal's encoding is: XML declares it, and data are never escaped.
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content.decode("utf-8"))
    else:
        # Imported late, since it loads pydantic.
        from autorubric.support.write import write_bytes_atomic

        write_bytes_atomic(out, content)
        notice(f"Wrote {out}.")
    return Exit.DONE
