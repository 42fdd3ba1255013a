"""Formatting of estimates for the results of corrections."""

from __future__ import annotations

from collections.abc import Mapping

from autorubric._blocks import Cell, TableBlock
from autorubric.metrics._estimate import Estimate


def ends_text(low: float | None, high: float | None) -> str:
    """Format an interval; return an empty string if there is none."""
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def figure_text(found: Estimate) -> str:
    """Format an estimate with its interval, or the reason why it is undefined."""
    if found.value is None:
        return f"undefined ({found.reason})"
    return f"{found.value:.3f} {ends_text(found.low, found.high)}".rstrip()


def figures_table(figures: Mapping[str, Estimate], title: str = "") -> TableBlock:
    """Return a table of named estimates with interval, n, and the reason if something is missing."""
    rows: list[tuple[Cell, ...]] = [
        (name, one.value, ends_text(one.low, one.high), one.n, one.reason or "")
        for name, one in figures.items()
    ]
    return TableBlock(
        title=title, columns=("figure", "estimate", "interval", "n", "reason"), rows=tuple(rows)
    )
