"""The base class of audit results: conversion to JSON, blocks and text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from autorubric._blocks import Block, Cell, card, render_latex, render_text
from autorubric.metrics._estimate import Estimate


class Findings(ABC):
    """A frozen result whose figures are `Estimate` objects."""

    __slots__ = ()

    @abstractmethod
    def blocks(self) -> list[Block]:
        """Return the figures as blocks, for any renderer."""

    def summary(self) -> str:
        """Return the figures as plain text."""
        return render_text(self.blocks())

    def _repr_html_(self) -> str:
        return card(self.blocks())

    def to_latex(self) -> str:
        """Return the tables as LaTeX `tabular` environments, for the package booktabs."""
        return render_latex(self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON-serialisable data; never NaN."""
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


FIGURE_COLUMNS = ("estimate", "low", "high", "n", "why not")
"""Columns that `figure_cells` fills."""


def figure_cells(figure: Estimate) -> tuple[Cell, ...]:
    """Return a figure as table cells: value, low, high, n, and the reason if something is missing."""
    return figure.value, figure.low, figure.high, figure.n, figure.reason or ""
