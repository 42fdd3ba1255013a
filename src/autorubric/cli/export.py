"""The `autorubric export` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from autorubric.cli.command import Exit, guarded, notice
from autorubric.cli.options import RunFolder, max_lost_option, option
from autorubric.cli.runs import open_run
from autorubric.criteria.values import MAX_LOST
from autorubric.errors import ArgumentError
from autorubric.support.write import write_bytes_atomic

Format = Annotated[
    Literal["csv", "parquet", "jsonl", "markdown", "junit"],
    option("--format", None, "Format of the exported file."),
]
OutFile = Annotated[Path | None, option("-o --out", "FILE", "File to write.  [default: standard output]")]
Table = Annotated[
    Literal["scores", "votes"],
    option(
        "--table",
        None,
        "csv, parquet, jsonl: a row per item (scores) or per vote, decision or label (votes).",
        show_default=True,
    ),
]
CaseFailUnder = Annotated[
    float | None,
    option("--fail-under", "X", "With junit: report an item whose score is below X as a failure."),
]

CaseMaxLost = Annotated[
    float,
    max_lost_option(
        "With junit and --fail-under: report an item as an error if more than this fraction of its verdicts "
        f"was lost or assumed.  [default: {MAX_LOST}]"
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
    result = open_run(run)
    content = result.export(format, table=table, fail_under=fail_under, max_lost=max_lost)
    if out is None:
        if hasattr(sys.stdout, "buffer"):
            # As UTF-8, whatever the terminal's encoding is: XML declares it, and data are never escaped.
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content.decode("utf-8"))
    else:
        write_bytes_atomic(out, content)
        notice(f"Wrote {out}.")
    return Exit.DONE
