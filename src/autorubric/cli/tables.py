"""Tables and texts in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import typer

from autorubric.errors import Fault, FileError
from autorubric.support.blocks import (
    Block,
    Cell,
    ConfusionBlock,
    CurveBlock,
    ScalarBlock,
    TableBlock,
    TextBlock,
    as_table,
    as_text,
    printable,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


_BROAD = 20
"""Width in characters from which the cells of a column may be wrapped."""
_GAP = 2
_COLOURS = {
    **dict.fromkeys(("MET", "PASS"), "green"),
    # Of a penalty UNMET is good, so it is not red.
    "UNMET": "magenta",
    **dict.fromkeys(("FAIL", "failed", "lost"), "red"),
    **dict.fromkeys(("CANNOT_ASSESS", "UNDECIDED", "abstained", "undecided", "not asked"), "yellow"),
}
"""Colours of verdicts and statuses; the words say the same without them."""
_BOX = "    \n    \n -- \n" + "    \n" * 5
"""A rule under the header, made of hyphens, which every encoding has."""


def print_blocks(blocks: Sequence[Block]) -> None:
    """Print blocks on stdout, separated by blank lines; colors are used only on a capable terminal."""
    # Late, since rich takes as long to load as everything else that `--help` needs.
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = console.width or 80  # COLUMNS=0
    with console.capture() as captured:
        for position, block in enumerate(blocks):
            if position:
                console.print()
            for part in _renderables(block, console):
                console.print(part)
    # Tables are padded to the right, which is useless in a pipe.
    for line in captured.get().splitlines():
        typer.echo(line.rstrip(), color=console.is_terminal)


def _renderables(block: Block, console: Console) -> Iterator[RenderableType]:
    from rich.text import Text

    if block.title:
        yield Text(printable(block.title), style="bold")
    match block:
        case TextBlock():
            yield Text(printable(block.text))
        case ScalarBlock():
            yield _figures(block)
        case TableBlock():
            yield from _tables(block.columns, block.rows, console.width)
        case ConfusionBlock() | CurveBlock():
            table = as_table(block)
            yield from _tables(table.columns, table.rows, console.width)
        case _:
            assert_never(block)


def _figures(block: ScalarBlock) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0))
    for name, value in block.figures:
        table.add_row(Text(printable(name), style="dim"), Text(printable(as_text(value)), overflow="fold"))
    return table


def _tables(columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int) -> Iterator[RenderableType]:
    """Yield the table, or several tables that repeat the first column if its columns do not fit.

    Continued tables omit rows that are empty in them.
    """
    texts = [[printable(as_text(cell)) for cell in row] for row in rows]
    widths = [max(map(_width, [name, *(row[at] for row in texts)])) for at, name in enumerate(columns)]
    for part, chosen in enumerate(_portions(widths, width)):
        if not part:
            yield _table(columns, rows, texts, chosen)
            continue
        kept = [at for at, row in enumerate(texts) if any(row[column] for column in chosen[1:])]
        if kept:
            yield ""
            yield _table(columns, [rows[at] for at in kept], [texts[at] for at in kept], chosen)


def _width(text: str) -> int:
    """Return the number of terminal columns of the text's longest line."""
    from rich.cells import cell_len

    return max(map(cell_len, text.splitlines()), default=0)


def _portions(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the positions of the columns of each table; a broad column takes the remaining width."""
    needed = [min(one, _BROAD) + _GAP for one in widths]
    chosen, taken = [0], needed[0]
    for at in range(1, len(widths)):
        if taken + needed[at] > width and len(chosen) > 1:
            yield chosen
            chosen, taken = [0], needed[0]
        chosen.append(at)
        taken += needed[at]
    yield chosen


def _style(text: str) -> str:
    """Return the colour of a cell that begins with a verdict or a status; empty for other cells."""
    return _COLOURS.get(text.split("\n")[0].split(" (")[0].strip(), "")


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    texts: Sequence[Sequence[str]],
    chosen: Sequence[int],
) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # The box puts a blank between columns itself.
    table = Table(box=box.Box(_BOX, ascii=True), pad_edge=False, padding=(0, _GAP - 1, 0, 0), show_edge=False)
    for at in chosen:
        numeric = all(not row[at] or not isinstance(row[at], str) for row in rows)
        narrow = max(map(_width, [columns[at], *(row[at] for row in texts)])) <= _BROAD
        table.add_column(
            Text(printable(columns[at])),
            justify="right" if numeric else "left",
            no_wrap=narrow,
            overflow="fold",
        )
    for row in texts:
        table.add_row(*(Text(row[at], style=_style(row[at])) for at in chosen))
    return table


def read_input(file: Path | None) -> str:
    """Read text from a file, or from standard input if `file` is None or `-`."""
    from autorubric.support.read import MAX_LINE_BYTES, read_bounded

    if file is not None and str(file) != "-":
        source = str(file)
        with file.open("rb") as opened:
            raw = read_bounded(opened, source, most=MAX_LINE_BYTES)
    else:
        source = "standard input"
        raw = read_bounded(sys.stdin.buffer, source, most=MAX_LINE_BYTES)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(source, [Fault(path="", message=f"the input is not UTF-8 text: {error}")]) from None
