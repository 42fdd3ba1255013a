"""What the results of an audit share: they serialise, and they say themselves as blocks and as text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from autorubric._blocks import Block, Cell, render_text
from autorubric.metrics._estimate import Estimate


class Findings(ABC):
    """A frozen result whose figures are Estimates."""

    __slots__ = ()

    @abstractmethod
    def blocks(self) -> list[Block]:
        """The figures, for any renderer."""

    def summary(self) -> str:
        """The figures as plain text."""
        return render_text(self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON can carry them; never NaN."""
        found: dict[str, Any] = plain(self)
        return found


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as dicts and lists."""
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


FIGURE_COLUMNS = ("estimate", "low", "high", "n", "why not")
"""Columns that `figure_cells` fills."""


def figure_cells(figure: Estimate) -> tuple[Cell, ...]:
    """A figure as the cells of a row: value, ends, n, and the reason of what is missing."""
    return figure.value, figure.low, figure.high, figure.n, figure.reason or ""
