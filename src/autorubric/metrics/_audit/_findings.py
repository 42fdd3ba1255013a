"""The base class of audit results, with conversion to JSON, blocks and text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from autorubric._blocks import Block, Cell, card, render_latex, render_text
from autorubric.metrics._estimate import Estimate


class Findings(ABC):
    """Base class of frozen results that consist of `Estimate` objects."""

    __slots__ = ()

    @abstractmethod
    def blocks(self) -> list[Block]:
        """Return the results as blocks for a renderer."""

    def summary(self) -> str:
        """Return the results as plain text."""
        return render_text(self.blocks())

    def _repr_html_(self) -> str:
        return card(self.blocks())

    def to_latex(self) -> str:
        """Return the tables as LaTeX `tabular` environments, which require the booktabs package."""
        return render_latex(self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable data without NaN."""
        found: dict[str, Any] = plain(self)
        return found


def plain(value: Any) -> Any:
    """Convert dataclasses, mappings and sequences to dicts and lists, recursively."""
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


FIGURE_COLUMNS = ("estimate", "low", "high", "n", "reason")
"""Headings of the columns that `figure_cells` fills."""


def figure_cells(figure: Estimate) -> tuple[Cell, ...]:
    """Return an estimate as table cells: value, low, high, n, and the reason if something is missing."""
    return figure.value, figure.low, figure.high, figure.n, figure.reason or ""


def said(found: Estimate) -> str:
    """Format an estimate with its interval, if it has one."""
    if found.low is None or found.high is None:
        return f"{found:.3f}"
    return f"{found:.3f} [{found.low:.3f}, {found.high:.3f}]"
