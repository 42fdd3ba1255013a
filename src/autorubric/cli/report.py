"""Runs as HTML pages and files: `autorubric report`, `view` and `export`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

import autorubric
from autorubric import cli
from autorubric.apps.tool.response import CritiqueResponse
from autorubric.cli.command import Exit, guarded, notice
from autorubric.cli.gates import fail_under_option, max_lost_option
from autorubric.cli.options import Columns, JsonFlag, RunFolder, flag, option
from autorubric.cli.output import open_in_browser, print_json
from autorubric.cli.runs import open_stored_run
from autorubric.criteria.values import MAX_LOST
from autorubric.errors import ArgumentError
from autorubric.runs.export import ExportFormat, ExportTable
from autorubric.support.write import write_bytes_atomic

Baseline = Annotated[
    Path | None, option("--baseline", "RUN2", "Folder of another run of the same items to compare with.")
]
ReportFile = Annotated[
    Path,
    option("--out -o", "FILE", "HTML file to write; an existing file is replaced.  [default: report.html]"),
]
Critique = Annotated[
    Path | None,
    option("--critique", "FILE", "Critique to include as a section: the output of `critique-text --json`."),
]
MaxChars = Annotated[
    int | None,
    option(
        "--max-chars",
        "N",
        "Maximum number of characters to keep per text; 0 omits the texts.  [default: 20000]",
        min=0,
    ),
]


@guarded
def report(
    run: RunFolder,
    baseline: Baseline = None,
    out: ReportFile = Path("report.html"),
    critique: Critique = None,
    max_chars: MaxChars = None,
    as_json: JsonFlag = False,
) -> Exit:
    """Write a run's report as a single HTML file.

    The report contains the scores, criteria, judges and texts, and every vote with its reason. The file is
    self-contained: viewing it requires no server, network access or other files.

    With --json, prints an object with the keys run, baseline, report (path of the file) and bytes (its size).

    \b
    Examples:
      autorubric report experiments/essays-1
      autorubric report experiments/essays-2 \\
          --baseline experiments/essays-1 -o essays.html

    Exit codes: 0 success, 2 invalid command line, file or run folder.
    """
    result = open_stored_run(run)
    before = autorubric.EvalResult.from_experiment(baseline) if baseline is not None else None
    shown = _read_critique(critique) if critique is not None else None
    result.to_html(out, baseline=before, critique=shown, max_chars=max_chars)
    if as_json:
        other = None if baseline is None else str(baseline)
        print_json({"run": str(run), "baseline": other, "report": str(out), "bytes": out.stat().st_size})
    else:
        typer.echo(str(out))
    return Exit.DONE


def _read_critique(path: Path) -> CritiqueResponse:
    try:
        return CritiqueResponse.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ArgumentError(
            f"{path} is not a critique ({error}); pass the output of `autorubric critique-text --json`"
        ) from None


SavedDataset = Annotated[
    Path | None,
    option(
        "--dataset",
        "FILE",
        "Dataset that was graded (.csv, .json, .jsonl or .yaml); labels are saved to this file.",
    ),
]
Rater = Annotated[
    str, option("--rater", "NAME", "Name of the annotator, stored with the labels.", show_default=True)
]
Port = Annotated[int, option("--port", "N", "Port on 127.0.0.1.  [default: any free port]", min=0, max=65535)]
NoBrowser = Annotated[bool, flag("--no-browser", "Print the address; do not open a browser.")]


@guarded
def view(
    run: RunFolder,
    dataset: SavedDataset = None,
    *,
    columns: Columns,
    rater: Rater = "viewer",
    port: Port = 0,
    no_browser: NoBrowser = False,
) -> Exit:
    """Open a run's report in a browser, follow a run in progress, and label its items.

    The page is served on 127.0.0.1 to anyone who has its address, which contains a random token. While a run
    is in progress, the page shows new items, the progress, the cost and the failures.

    On the page of an item, each criterion can be labelled. Labels are saved at once to labels.jsonl in the
    run folder and, with --dataset, to the dataset file. In a CSV file, only the label's cell changes.

    \b
    Examples:
      autorubric view experiments/essays-1
      autorubric view experiments/essays-1 --dataset essays.csv \\
          --truth polite=human_polite --rater ada

    Exit codes: 0 stopped with Ctrl-C, 2 invalid command line, file or run folder.
    """
    viewed = cli.view_server.RunPage(run, dataset, columns.field_map(), rater)
    try:
        server = cli.view_server.ViewServer(viewed, port)
    except OSError as error:
        raise ArgumentError(f"--port {port}: {error.strerror}; omit --port to use any free port") from None
    typer.echo(server.url)
    notice("Press Ctrl-C to stop.")
    if not no_browser:
        open_in_browser(server.url)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    if viewed.n_saved:
        notice(f"Saved {viewed.n_saved} labels to {viewed.saved_to}.")
    return Exit.DONE


Format = Annotated[ExportFormat, option("--format", None, "Format of the exported file.")]
ExportFile = Annotated[Path | None, option("-o --out", "FILE", "File to write.  [default: standard output]")]
Table = Annotated[
    ExportTable,
    option(
        "--table",
        None,
        "csv, parquet, jsonl: a row per item (scores) or per vote, decision or label (votes).",
        show_default=True,
    ),
]
CaseFailUnder = Annotated[
    float | None, fail_under_option("With junit: report an item whose score is below X as a failure.")
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
    out: ExportFile = None,
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
    result = open_stored_run(run)
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
