"""Makes the pictures of the README and the site with Chromium: `python .ci/pictures.py`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMAND = "autorubric show experiments/demo --sort score --limit 6"
ASSETS = Path(__file__).resolve().parents[1] / "docs" / "assets"
# Pages of the report of the real judges, with the height of the picture in pixels.
PAGES = {"overview": ("", 860), "judges": ("#/judges", 780), "item": ("#/item/72", 860)}
_COLUMNS = 92


def draw_terminal(command: str, output: str) -> str:
    """An SVG of a terminal with a command and what it printed; it loads nothing, so no font either."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}"))
    console.print(Text.from_ansi(output.rstrip("\n")))
    drawn = console.export_svg(title="autorubric", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def run(command: str, folder: str) -> str:
    """What a command of autorubric prints in a folder."""
    return subprocess.run(
        [sys.executable, "-c", "from autorubric.cli import main; main()", *command.split()[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(_COLUMNS), "FORCE_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout


def photograph(report: Path) -> None:
    """Saves the pages of a report as PNG files of 1280 pixels' width."""
    for name, (address, height) in PAGES.items():
        options = ("--headless", "--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=10000")
        picture = f"--screenshot={ASSETS / f'report-{name}.png'}"
        subprocess.run(
            ["chromium", *options, f"--window-size=1280,{height}", picture, f"{report.as_uri()}{address}"],
            capture_output=True,
            check=True,
        )


def main() -> None:
    """Runs the demo in a temporary folder and makes the pictures of both of its runs."""
    with tempfile.TemporaryDirectory() as folder:
        run("autorubric demo --report", folder)
        shown = run(COMMAND, folder)
        photograph(Path(folder) / "experiments" / "demo-summaries" / "report.html")
    (ASSETS / "terminal.svg").write_text(draw_terminal(COMMAND, shown), encoding="utf-8")


if __name__ == "__main__":
    main()
