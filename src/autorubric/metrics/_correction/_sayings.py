"""How results of a correction say their figures."""

from __future__ import annotations

from collections.abc import Mapping

from autorubric._blocks import Cell, TableBlock
from autorubric.metrics._estimate import Estimate


def ends_text(low: float | None, high: float | None) -> str:
    """An interval; empty without one."""
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def figure_text(found: Estimate) -> str:
    """A figure with its interval, or why there is none."""
    if found.value is None:
        return f"undefined ({found.reason})"
    return f"{found.value:.3f} {ends_text(found.low, found.high)}".rstrip()


def figures_table(figures: Mapping[str, Estimate], title: str = "") -> TableBlock:
    """Figures by what they are, with interval, observations and the reason of what is missing."""
    rows: list[tuple[Cell, ...]] = [
        (name, one.value, ends_text(one.low, one.high), one.n, one.reason or "")
        for name, one in figures.items()
    ]
    return TableBlock(
        title=title, columns=("figure", "estimate", "interval", "n", "why not"), rows=tuple(rows)
    )
