"""Exporting a run as a Markdown page, for example for pull requests."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from autorubric._blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock, as_text, printable
from autorubric.eval._export._run import ExportedRun
from autorubric.eval._export._scores import scores_table

if TYPE_CHECKING:
    import pandas as pd

_MARKS: Final = re.compile(r"([\\`*_{}\[\]<>#|!~&$])")


def markdown_of(run: ExportedRun) -> str:
    """Return the run's figures, criteria and items as Markdown tables."""
    table = scores_table(run)
    blocks = [*run.blocks(), _criteria(table), _items(table)]
    return "\n\n".join(_text(block) for block in blocks) + "\n"


def _criteria(table: pd.DataFrame) -> TableBlock:
    """Return the mean value of each criterion, excluding assumed answers, as reports do."""
    rows: list[tuple[Cell, ...]] = []
    assumed = [json.loads(names) if isinstance(names, str) else () for names in table["assumed"]]
    for column in [one for one in table.columns if one.startswith("value.")]:
        name = column.removeprefix("value.")
        values = table[column][[name not in names for names in assumed]].dropna()
        mean = float(values.mean()) if len(values) else None
        rows.append((name, len(values), len(table) - len(values), mean))
    columns = ("criterion", "with a value", "without a value", "mean value")
    return TableBlock(title="Criteria", columns=columns, rows=tuple(rows))


def _items(table: pd.DataFrame) -> TableBlock:
    chosen = [one for one in table.columns if one in ("item_id", "score") or one.startswith("judge.")]
    cells = table[[*chosen, "error"]].astype(object).where(table[[*chosen, "error"]].notna(), None)
    rows = tuple(tuple(row) for row in cells.itertuples(index=False, name=None))
    heads = tuple(one.replace("judge.", "score by ").replace("item_id", "item") for one in chosen)
    return TableBlock(title="Items", columns=(*heads, "error"), rows=rows)


def _text(block: Block) -> str:
    head = f"## {_plain(block.title)}\n\n" if block.title else ""
    match block:
        case TextBlock():
            lines = [_plain(line) for line in block.text.splitlines()]
            return head + ("\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines))
        case ScalarBlock():
            return head + _table(("figure", "value"), block.figures)
        case TableBlock():
            return head + _table(block.columns, block.rows)
        case _:
            raise AssertionError(f"a run has no {type(block).__name__}")


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    numeric = [all(not isinstance(row[at], str) for row in rows) for at in range(len(columns))]
    lines = [[_plain(one) for one in columns], ["--:" if right else "---" for right in numeric]]
    lines += [["" if cell is None else _plain(as_text(cell)) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Return the text on one line, with Markdown characters escaped."""
    return _MARKS.sub(r"\\\1", " ".join(printable(text).split()))
