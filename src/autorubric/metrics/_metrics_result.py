"""What `compute_metrics` gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autorubric._blocks import Block, render_text
from autorubric._files import write_text_atomic
from autorubric.errors import ArgumentError
from autorubric.metrics._cells import CannotAssessMode, NaMode
from autorubric.metrics._rendering import metric_blocks, metric_rows
from autorubric.metrics._results import JudgeMetrics, RaterMetrics
from autorubric.metrics._spreadsheet import spreadsheet_safe

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
"""Version of the file that `to_file` writes; readers pass over keys that they do not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsResult(RaterMetrics):
    """The figures of a run: those of the panel, and of each judge where asked for.

    Attributes:
        per_judge: Figures of each judge, by id; empty unless asked for.
        n_items: Items with a label and a report.
        n_tied_labels: Cells that two people or more labelled and that have no label, because no one of theirs
            leads; None with fewer than two people.
        n_criteria: Criteria that have figures.
        n_binary_criteria: Binary ones among them.
        n_ordinal_criteria: Ordinal ones.
        n_nominal_criteria: Nominal ones.
        n_interval_criteria: Those of numbers.
        cannot_assess: How CANNOT_ASSESS counted.
        na_mode: How NA counted.
        confidence_level: Level of the intervals.
        seed: Seed of the resampling.
        warnings: What the reader should know: figures that are None and why, thin data, odd settings.
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
        """The figures, for any renderer."""
        return metric_blocks(self, self.per_judge, self.n_items, self.warnings)

    def summary(self) -> str:
        """The figures as plain text."""
        return render_text(self.blocks())

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON can carry them; never NaN."""
        return {"format": FORMAT, **_plain(self)}

    def to_dataframe(self) -> pd.DataFrame:
        """One row a rater and criterion, and one a rater for the means, its `criterion` being `macro`."""
        import pandas as pd  # only for those who ask for a frame

        return pd.DataFrame(metric_rows(self, self.per_judge))

    def to_file(self, path: str | Path) -> None:
        """Writes all figures as JSON, or the rows of `to_dataframe` as CSV; the suffix says which.

        The CSV is for spreadsheets: texts in it that would be formulas are marked, see `spreadsheet_safe`.

        Raises:
            ArgumentError: The suffix is neither.
            FileError: The file cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".json":
            text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        elif suffix == ".csv":
            text = spreadsheet_safe(self.to_dataframe()).to_csv(index=False)
        else:
            raise ArgumentError(f"{path}: metrics are written as .json or .csv; got {suffix!r}")
        write_text_atomic(path, text)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value
