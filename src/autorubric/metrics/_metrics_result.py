"""Result of `compute_metrics`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from autorubric._blocks import Block, card, render_latex, render_text
from autorubric._files import write_text_atomic
from autorubric._frames import Library, in_library
from autorubric.errors import ArgumentError
from autorubric.metrics._cells import CannotAssessMode, NaMode
from autorubric.metrics._rendering import metric_blocks, metric_rows, spreadsheet_safe
from autorubric.metrics._results import JudgeMetrics, RaterMetrics

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FORMAT = 1
"""Version of the JSON format written by `to_file`. Readers should ignore unknown keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsResult(RaterMetrics):
    """Metrics of a run's panel and, if requested, of each judge.

    Attributes:
        per_judge: Metrics of each judge, keyed by judge id; empty unless requested.
        n_items: Number of items with both a label and a report.
        n_tied_labels: Number of cells (pairs of item and criterion) without ground truth because people's
            labels are tied; None if fewer than two people labelled items.
        n_criteria: Number of criteria with metrics.
        n_binary_criteria: Number of binary criteria.
        n_ordinal_criteria: Number of ordinal criteria.
        n_nominal_criteria: Number of nominal criteria.
        n_interval_criteria: Number of numeric criteria.
        cannot_assess: How CANNOT_ASSESS answers were counted.
        na_mode: How NA answers were counted.
        confidence_level: Confidence level of the intervals.
        seed: Seed for the resampling.
        warnings: Warnings about undefined metrics (with the reason), sparse data and unusual settings.
    """

    per_judge: Mapping[str, JudgeMetrics]
    n_items: int
    n_tied_labels: int | None
    n_criteria: int
    n_binary_criteria: int
    n_ordinal_criteria: int
    n_nominal_criteria: int
    n_interval_criteria: int
    cannot_assess: CannotAssessMode
    na_mode: NaMode
    confidence_level: float
    seed: int
    warnings: tuple[str, ...]

    def blocks(self) -> list[Block]:
        """Return the metrics as renderable blocks."""
        return metric_blocks(self, self.per_judge, self.n_items, self.warnings)

    def _repr_html_(self) -> str:
        return card(self.blocks())

    def summary(self) -> str:
        """Return the metrics as plain text."""
        return render_text(self.blocks())

    def __str__(self) -> str:
        return self.summary()

    def to_latex(self) -> str:
        """Return the tables as LaTeX `tabular` environments, which require the booktabs package."""
        return render_latex(self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as JSON-compatible values. Undefined values are None, never NaN."""
        return {"format": FORMAT, **_plain(self)}

    @overload
    def to_dataframe(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_dataframe(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def to_dataframe(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return a DataFrame with one row per rater and criterion, and one `macro` row of means per rater.

        With `library="polars"`, the result is a polars DataFrame in which columns of mixed types are strings.
        """
        import pandas as pd  # imported here so that pandas is loaded only when needed

        return in_library(pd.DataFrame(metric_rows(self, self.per_judge)), library)

    def to_file(self, path: str | Path) -> None:
        """Write all metrics as JSON, or the rows of `to_dataframe` as CSV, depending on the file extension.

        The CSV is safe to open in a spreadsheet: text that would run as a formula is escaped; see
        `spreadsheet_safe`.

        Raises:
            ArgumentError: If the file extension is neither .json nor .csv.
            FileError: If the file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".json":
            text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        elif suffix == ".csv":
            text = spreadsheet_safe(self.to_dataframe()).to_csv(index=False)
        else:
            raise ArgumentError(f"{path}: the file extension must be .json or .csv; got {suffix!r}")
        write_text_atomic(path, text)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value
