"""The `autorubric report` command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import autorubric
from autorubric.cli.command import Exit, guarded
from autorubric.cli.options import JsonFlag, RunFolder, option
from autorubric.cli.output import print_json
from autorubric.cli.runs import open_run
from autorubric.errors import ArgumentError

Baseline = Annotated[
    Path | None, option("--baseline", "RUN2", "Folder of another run of the same items to compare with.")
]
OutFile = Annotated[
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

    before = autorubric.EvalResult.from_experiment(baseline) if baseline is not None else None
    write_report(
        open_run(run),
        out,
        baseline=before,
        critique=_read_critique(critique) if critique is not None else None,
        max_chars=DEFAULT_MAX_CHARS if max_chars is None else max_chars,
    )
    if as_json:
        other = None if baseline is None else str(baseline)
        print_json({"run": str(run), "baseline": other, "report": str(out), "bytes": out.stat().st_size})
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
