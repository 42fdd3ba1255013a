"""Output of commands: JSON, blocks as terminal tables, reports and runs; and texts from standard input."""

from __future__ import annotations

import json
import math
import os
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import typer

import autorubric
from autorubric.errors import FileError
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
from autorubric.support.read import MAX_LINE_BYTES, read_bounded

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


def print_json(content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print ASCII-only JSON on stdout, with null in place of non-finite numbers."""
    typer.echo(json.dumps(_finite(content), ensure_ascii=True, allow_nan=False, indent=2))


def print_result(
    content: Callable[[], Mapping[str, Any]], blocks: Callable[[], Sequence[Block]], *, as_json: bool
) -> None:
    """Print a result as JSON or as tables, and compute only what is printed."""
    if as_json:
        print_json(content())
    else:
        print_blocks(blocks())


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {str(key): _finite(value) for key, value in content.items()}
    if isinstance(content, Sequence) and not isinstance(content, str):
        return [_finite(value) for value in content]
    return content


def report_json(report: autorubric.scoring.EnsembleEvaluationReport) -> dict[str, Any]:
    """Return a report as the object that `--json` prints."""
    return {
        "score": report.score,
        "raw_score": report.raw_score,
        "error": report.error,
        "node_scores": report.node_scores,
        "judge_scores": report.judge_scores,
        "mean_agreement": report.mean_agreement,
        "cannot_assess_count": report.cannot_assess_count,
        "verdicts": report.verdicts.to_dict(),
        "tokens": report.token_usage.total_tokens if report.token_usage else None,
        "cost": report.completion_cost,
        "criteria": [_criterion_json(one) for one in report.report],
    }


def _criterion_json(report: autorubric.scoring.CriterionReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "weight": report.criterion.weight,
        "status": report.status,
        "answer": report.final_answer,
        "value": report.score_value,
        "reason": report.final_reason,
        "agreement": report.agreement,
        "tie": report.tie,
        "error": report.error,
        "votes": [_vote_json(vote) for vote in report.votes],
    }


def _vote_json(vote: autorubric.scoring.JudgeVote) -> dict[str, Any]:
    return {
        "judge": vote.judge_id,
        "sample": vote.sample,
        "status": vote.status,
        "answer": vote.answer,
        "value": vote.value,
        "reason": vote.reason,
        "confidence": vote.confidence,
        "probabilities": vote.probabilities,
        "probability_source": vote.probability_source,
        "probability_backend": vote.probability_backend,
        "probability_reason": vote.probability_reason,
        "error": vote.error,
    }


def run_blocks(result: autorubric.EvalResult) -> list[Block]:
    """Return a run's figures as blocks; if the cost is unknown, the reason is shown in its place."""
    blocks = result.blocks()
    head = blocks[0]
    if result.total_completion_cost is None and isinstance(head, ScalarBlock):
        costs = ((name, _why_no_cost(result) if "cost" in name else value) for name, value in head.figures)
        blocks[0] = replace(head, figures=tuple(costs))
    return blocks


def _why_no_cost(result: autorubric.EvalResult) -> str:
    judges = result.fingerprint.get("judges")
    settings = judges.values() if isinstance(judges, dict) else ()
    models = [str(one["model"]) for one in settings if isinstance(one, dict) and "model" in one]
    if not models:
        return "none reported (the panel has no models)"
    if result.total_token_usage is None:
        return "unknown (no reply reported a token count)"
    return f"unknown (no price for {', '.join(dict.fromkeys(models))})"


def open_in_browser(url: str) -> None:
    """Open a page in the browser if stdout is a terminal and a display is available."""
    # Without a display, `webbrowser` would take over the terminal with a text browser.
    graphical = (
        sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if sys.stdout.isatty() and graphical:
        webbrowser.open(url)


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
            for part in _render_block(block, console):
                console.print(part)
    # Tables are padded to the right, which is useless in a pipe.
    for line in captured.get().splitlines():
        typer.echo(line.rstrip(), color=console.is_terminal)


def _render_block(block: Block, console: Console) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    if block.title:
        yield Text(printable(block.title), style="bold")
    match block:
        case TextBlock():
            yield Text(printable(block.text))
        case ScalarBlock():
            grid = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0))
            for name, value in block.figures:
                figure = Text(printable(as_text(value)), overflow="fold")
                grid.add_row(Text(printable(name), style="dim"), figure)
            yield grid
        case TableBlock():
            yield from _table_parts(block.columns, block.rows, console.width)
        case ConfusionBlock() | CurveBlock():
            table = as_table(block)
            yield from _table_parts(table.columns, table.rows, console.width)
        case _:
            assert_never(block)


def _table_parts(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int
) -> Iterator[RenderableType]:
    """Yield the table, or several tables that repeat the first column if its columns do not fit."""
    texts = [[printable(as_text(cell)) for cell in row] for row in rows]
    widths = [max(map(_width, [name, *(row[at] for row in texts)])) for at, name in enumerate(columns)]
    for part, chosen in enumerate(_column_groups(widths, width)):
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


def _column_groups(widths: Sequence[int], width: int) -> Iterator[list[int]]:
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
        # A cell may begin with a verdict or a status.
        starts = {at: row[at].split("\n")[0].split(" (")[0].strip() for at in chosen}
        table.add_row(*(Text(row[at], style=_COLOURS.get(starts[at], "")) for at in chosen))
    return table


def read_input(file: Path | None) -> str:
    """Read text from a file, or from standard input if `file` is None or `-`."""
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
        raise FileError.whole(source, f"the input is not UTF-8 text: {error}") from None
