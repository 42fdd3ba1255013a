"""Makes the README's picture of a terminal from the demo run: `python .ci/terminal_picture.py`."""

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
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "assets" / "terminal.svg"
_COLUMNS = 92


def picture(command: str, output: str) -> str:
    """An SVG of a terminal with a command and what it printed; it loads nothing, so no font either."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}"))
    console.print(Text.from_ansi(output.rstrip("\n")))
    drawn = console.export_svg(title="autorubric", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def main() -> None:
    """Runs the demo in a folder of its own, shows its run and writes the picture."""
    settings = {"COLUMNS": str(_COLUMNS), "FORCE_COLOR": "1"}
    told = ""
    with tempfile.TemporaryDirectory() as folder:
        for command in ("autorubric demo", COMMAND):
            done = subprocess.run(
                [sys.executable, "-c", "from autorubric.cli import main; main()", *command.split()[1:]],
                cwd=folder,
                env={**os.environ, **settings},
                capture_output=True,
                encoding="utf-8",
                check=True,
            )
            told = done.stdout
    PICTURE.write_text(picture(COMMAND, told), encoding="utf-8")


if __name__ == "__main__":
    main()
