"""The `autorubric report` command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import autorubric
from autorubric.cli.metrics import RunFolder
from autorubric.cli.output import Exit, JsonFlag, notice, print_json, report_errors
from autorubric.errors import ArgumentError

Baseline = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="RUN2",
        help="Folder of another run of the same items to compare with.",
        show_default=False,
    ),
]
OutFile = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="HTML file to write; an existing file is replaced.  [default: report.html]",
        show_default=False,
    ),
]
Critique = Annotated[
    Path | None,
    typer.Option(
        "--critique",
        metavar="FILE",
        help="Critique to include as a section: the output of `critique-text --json`.",
        show_default=False,
    ),
]
MaxChars = Annotated[
    int | None,
    typer.Option(
        "--max-chars",
        metavar="N",
        min=0,
        help="Maximum number of characters to keep per text; 0 omits the texts.  [default: 20000]",
        show_default=False,
    ),
]


@report_errors
def report(
    run: RunFolder,
    baseline: Baseline = None,
    out: OutFile = Path("report.html"),
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
    # Imported late, since it loads numpy.
    from autorubric.reports.page import DEFAULT_MAX_CHARS, write_report

    result = autorubric.EvalResult.from_experiment(run)
    before = autorubric.EvalResult.from_experiment(baseline) if baseline is not None else None
    for text in result.notices:
        notice(text)
    write_report(
        result,
        out,
        baseline=before,
        critique=_read_critique(critique) if critique is not None else None,
        max_chars=DEFAULT_MAX_CHARS if max_chars is None else max_chars,
    )
    if as_json:
        told = None if baseline is None else str(baseline)
        print_json({"run": str(run), "baseline": told, "report": str(out), "bytes": out.stat().st_size})
    else:
        typer.echo(str(out))
    return Exit.DONE


def _read_critique(path: Path) -> autorubric.apps.tool.CritiqueResponse:
    try:
        return autorubric.apps.tool.CritiqueResponse.model_validate(
            json.loads(path.read_text(encoding="utf-8"))
        )
    except ValueError as error:
        raise ArgumentError(
            f"{path} is not a critique ({error}); pass the output of `autorubric critique-text --json`"
        ) from None
