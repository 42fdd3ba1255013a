"""The `autorubric export` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

import autorubric
from autorubric.cli._output import Exit, guarded, max_lost_option, notice
from autorubric.cli.metrics import RunFolder
from autorubric.errors import ArgumentError
from autorubric.values import MAX_LOST

Format = Annotated[
    Literal["csv", "parquet", "jsonl", "markdown", "junit"],
    typer.Option("--format", help="The format of the file.", show_default=False),
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="FILE", help="The file.  [default: standard output]", show_default=False
    ),
]
Table = Annotated[
    Literal["scores", "votes"],
    typer.Option(
        "--table", help="One row per item, or per vote, decision and label; for csv, parquet and jsonl."
    ),
]
CaseFailUnder = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        metavar="X",
        help="In junit, an item whose score is below X is a failure.",
        show_default=False,
    ),
]

CaseMaxLost = Annotated[
    float,
    max_lost_option(
        "In junit with --fail-under, an item is an error if more than this share of its verdicts was "
        f"lost or assumed.  [default: {MAX_LOST}]"
    ),
]


@guarded
def export(
    run: RunFolder,
    format: Format,
    out: OutFile = None,
    table: Table = "scores",
    fail_under: CaseFailUnder = None,
    max_lost: CaseMaxLost = MAX_LOST,
) -> Exit:
    """Export a run as a table, a page, or a report for build servers.

    In CSV, texts that a spreadsheet would run as formulas get a leading '. In JUnit each item is a test case;
    an item without a score is an error.

    \b
    Examples:
      autorubric export experiments/essays-1 --format csv -o essays.csv
      autorubric export experiments/essays-1 --format jsonl --table votes
      autorubric export experiments/essays-1 --format junit \\
          --fail-under 0.7 -o essays.xml

    Exit codes: 0 done, 2 invalid command line or run folder.
    """
    if fail_under is not None and format != "junit":
        raise ArgumentError(f"--fail-under needs --format junit; {format} contains the scores")
    if table == "votes" and format in ("markdown", "junit"):
        raise ArgumentError(f"--table votes needs --format csv, parquet or jsonl, not {format}")
    if out is None and format == "parquet":
        raise ArgumentError("Parquet is binary; name the file with --out")
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
        # Late, since it loads pydantic, and `--help` should not wait for that.
        from autorubric._files import write_bytes_atomic

        write_bytes_atomic(out, content)
        notice(f"Wrote {out}.")
    return Exit.DONE
