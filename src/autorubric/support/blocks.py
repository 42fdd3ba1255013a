"""Blocks, which hold the content of metrics and reports independently of how it is rendered."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias, assert_never

Cell: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """A paragraph of text."""

    title: str = ""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarBlock:
    """A list of named values."""

    title: str = ""
    figures: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBlock:
    """A table."""

    title: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # rows as tuples with one value per column


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionBlock:
    """A confusion matrix."""

    title: str = ""
    labels: tuple[str, ...]  # categories, in order
    # Counts of shape `(n_labels, n_labels)`; rows are the ground truth, columns the judge.
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveBlock:
    """The points of a curve."""

    title: str = ""
    x_label: str
    y_label: str
    points: tuple[tuple[float, float], ...]  # pairs (x, y), in order


Block: TypeAlias = TextBlock | ScalarBlock | TableBlock | ConfusionBlock | CurveBlock


def as_table(block: ConfusionBlock | CurveBlock) -> TableBlock:
    """Return a matrix or a curve as a table."""
    if isinstance(block, CurveBlock):
        return TableBlock(title=block.title, columns=(block.x_label, block.y_label), rows=block.points)
    rows: list[tuple[Cell, ...]] = [(a, *row) for a, row in zip(block.labels, block.counts, strict=True)]
    return TableBlock(title=block.title, columns=("truth \\ judge", *block.labels), rows=tuple(rows))


# Characters that could move a terminal's cursor or change its colours or text direction.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text with control characters escaped, so that it cannot control a terminal."""
    plain = text.replace("\r\n", "\n")
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), plain)


def as_text(cell: Cell) -> str:
    """Format a cell as plain text, with three decimals for floats and a dash for missing figures."""
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def p_text(p: float) -> str:
    """Format a p-value with its sign: `= 0.012`, or `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def p_cell(p: float | None) -> Cell:
    """Format a p-value as a cell, never as `0.000`."""
    return "< 0.001" if p is not None and p < 0.001 else p


def render_text(blocks: Sequence[Block]) -> str:
    """Render blocks as plain text without control characters, separated by blank lines."""
    return printable("\n\n".join(_render_block(block) for block in blocks))


def _render_block(block: Block) -> str:
    head = [block.title] if block.title else []
    match block:
        case TextBlock():
            return "\n".join([*head, block.text])
        case ScalarBlock():
            width = max((len(name) for name, _ in block.figures), default=0)
            return "\n".join([*head, *(f"  {name:<{width}}  {as_text(v)}" for name, v in block.figures)])
        case TableBlock():
            return "\n".join([*head, *_align(block.columns, block.rows)])
        case ConfusionBlock() | CurveBlock():
            return _render_block(as_table(block))
        case _:
            assert_never(block)


_LATEX: dict[str, str] = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip


def render_latex(blocks: Sequence[Block]) -> str:
    """Render the tables among the blocks as LaTeX for the package booktabs, with titles as comments."""
    return "\n\n".join(_latex_table(block) for block in blocks if isinstance(block, TableBlock))


def _latex_table(block: TableBlock) -> str:
    def row(cells: Sequence[str]) -> str:
        texts = ("".join(_LATEX.get(one, one) for one in printable(cell)) for cell in cells)
        line = " & ".join(texts)
        # After a rule or a row, LaTeX would read a bracket or a star as an argument.
        return ("{}" if line.startswith(("[", "*")) else "") + line + r" \\"

    numeric = [all(not isinstance(one[at], str) for one in block.rows) for at in range(len(block.columns))]
    return "\n".join(
        [
            *([f"% {printable(block.title)}"] if block.title else []),
            rf"\begin{{tabular}}{{{''.join('r' if one else 'l' for one in numeric)}}}",
            r"\toprule",
            row(block.columns),
            r"\midrule",
            *(row([as_text(cell) for cell in one]) for one in block.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


_CARD_BLOCKS, _CARD_ROWS, _CARD_CHARS = 4, 20, 300
"""Maximum numbers of blocks in a card, rows in a table, and characters in a cell."""


def card(blocks: Sequence[Block]) -> str:
    """Render blocks as a short HTML card for notebooks, escaped and without scripts or styles."""
    parts = [_card_block(block) for block in blocks[:_CARD_BLOCKS]]
    if len(blocks) > _CARD_BLOCKS:
        parts.append("<p><em>summary() shows everything.</em></p>")
    return f"<div>{''.join(parts)}</div>"


def _card_block(block: Block) -> str:
    head = f"<h4>{_escape(block.title)}</h4>" if block.title else ""
    match block:
        case TextBlock():
            return f"{head}<p>{_escape(block.text).replace(chr(10), '<br>')}</p>"
        case ScalarBlock():
            return head + _card_table((), block.figures)
        case TableBlock():
            return head + _card_table(block.columns, block.rows)
        case ConfusionBlock() | CurveBlock():
            return _card_block(as_table(block))
        case _:
            assert_never(block)


def _card_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    names = "".join(f"<th>{_escape(name)}</th>" for name in columns)
    lines = [
        "<tr>" + "".join(f"<td>{_escape(as_text(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:_CARD_ROWS]
    ]
    more = f"<p><em>and {len(rows) - _CARD_ROWS} more rows</em></p>" if len(rows) > _CARD_ROWS else ""
    return f"<table>{f'<tr>{names}</tr>' if names else ''}{''.join(lines)}</table>{more}"


def _escape(text: str) -> str:
    kept = text if len(text) <= _CARD_CHARS else f"{text[:_CARD_CHARS]}…"
    return escape(printable(kept))


def _align(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    texts = [[as_text(cell) for cell in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in texts)]) for i, name in enumerate(columns)]
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return "  " + "  ".join(padded).rstrip()

    return [line(columns), "  " + "  ".join("-" * width for width in widths), *map(line, texts)]
