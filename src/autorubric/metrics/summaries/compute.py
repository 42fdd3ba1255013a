"""Metrics of a run against the labels of its dataset, with warnings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from autorubric.datasets.item import TruthRule
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import PANEL, LabelledDataset, SupportsGradedRun, with_truth_rule
from autorubric.metrics.core.read_votes import CannotAssessMode, Cells, Modes, NaMode, cells_of, read_votes
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.result import AuditFindings
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.metrics.summaries.compared_raters import compared_raters
from autorubric.metrics.summaries.data_warnings import fold_warnings, join_names, metric_warnings
from autorubric.metrics.summaries.macro_bootstrap import macro_bootstrap
from autorubric.metrics.summaries.rater_table import count_items, rater_metrics, rater_table
from autorubric.metrics.summaries.rendering import metric_blocks, metric_rows, spreadsheet_safe
from autorubric.metrics.summaries.results import JudgeMetrics, RaterMetrics
from autorubric.support.blocks import Block
from autorubric.support.frames import Library, in_library
from autorubric.support.write import write_text_atomic

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


FORMAT = 1
"""Version of the JSON format written by `to_file`. Readers should ignore unknown keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsResult(RaterMetrics, AuditFindings):
    """Metrics of a run's panel and, if requested, of each judge.

    Attributes:
        per_judge: Metrics of each judge, keyed by judge id; empty unless requested.
        n_items: Number of items with both a label and a report.
        n_tied_labels: Number of cells (pairs of item and criterion) that have no ground truth because
            annotators' labels tie; None if fewer than two annotators labelled items.
        n_criteria: Number of criteria with metrics.
        n_binary_criteria: Number of binary criteria.
        n_ordinal_criteria: Number of ordinal criteria.
        n_nominal_criteria: Number of nominal criteria.
        n_interval_criteria: Number of numeric criteria.
        cannot_assess: How CANNOT_ASSESS answers were counted.
        na_mode: How NA answers were counted.
        confidence_level: Confidence level of the intervals.
        seed: Seed for the resampling.
        warnings: Warnings about undefined metrics (with reasons), sparse data and unusual settings.
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
        """Return the metrics as content blocks for the text, HTML and LaTeX renderers."""
        return metric_blocks(self, self.per_judge, self.n_items, self.warnings)

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as JSON-compatible values. Undefined values are None, never NaN."""
        return {"format": FORMAT, **AuditFindings.to_dict(self)}

    @overload
    def to_dataframe(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_dataframe(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def to_dataframe(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return a DataFrame with one row per rater and criterion, and one `macro` row of means per rater.

        With `library="polars"`, returns a polars DataFrame in which columns of mixed types are strings.
        """
        import pandas as pd  # imported here so that pandas is loaded only when needed

        return in_library(pd.DataFrame(metric_rows(self, self.per_judge)), library)

    def to_file(self, path: str | Path) -> None:
        """Write all metrics as JSON, or the rows of `to_dataframe` as CSV, depending on the file extension.

        The CSV file is safe to open in a spreadsheet: text that would run as a formula is escaped; see
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


def compute_metrics(  # noqa: PLR0913 - the public entry point; it makes options objects at once
    result: SupportsGradedRun,
    dataset: LabelledDataset,
    *,
    bootstrap: bool = False,
    n_bootstrap: int = 1000,
    per_judge: bool = False,
    cannot_assess: CannotAssessMode = "exclude",
    na_mode: NaMode = "exclude",
    truth: TruthRule | None = None,
    confidence_level: float = 0.95,
    seed: int | None = None,
) -> MetricsResult:
    """Compute metrics of a run's panel, and optionally of each judge, against the dataset's labels.

    Items may have their own rubrics: criteria are matched by name and scale, never by position. Failed votes
    and default answers that replace unreadable replies do not count as answers.

    Args:
        result: Run to evaluate.
        dataset: The dataset that was graded, with labels.
        bootstrap: Whether to compute bootstrap confidence intervals of the macro metrics by resampling items.
        n_bootstrap: Number of resamples.
        per_judge: Whether to also compute the metrics of each judge.
        cannot_assess: Whether CANNOT_ASSESS is excluded, counts as UNMET (or the worst option of a scale), or
            is a separate category.
        na_mode: Whether NA is excluded, counts as the worst option, or is a separate category, in which case
            metrics that need an order are None.
        truth: Rule that combines the labels of several annotators into one; see `judge_report`.
        confidence_level: Confidence level of all intervals.
        seed: Seed for the resampling; None means 0.

    Raises:
        ArgumentError: If an option is invalid, or the run and the dataset do not match.
    """
    for name, given, allowed in (
        ("cannot_assess", cannot_assess, get_args(CannotAssessMode)),
        ("na_mode", na_mode, get_args(NaMode)),
    ):
        if given not in allowed:
            raise ArgumentError(f"{name} must be one of {list(allowed)}; got {given!r}")
    options = IntervalOptions(confidence_level=confidence_level, n_resamples=n_bootstrap, rng=seed or 0)
    return metrics_of_table(
        read_votes(result, with_truth_rule(dataset, truth)),
        Modes(cannot_assess=cannot_assess, na=na_mode),
        options,
        bootstrap=bootstrap,
        per_judge=per_judge,
    )


def metrics_of_table(
    table: VotesTable, modes: Modes, options: IntervalOptions, *, bootstrap: bool, per_judge: bool
) -> MetricsResult:
    """Compute the metrics of a votes table."""
    cells = cells_of(table, modes)
    raters = compared_raters(table, cells)[: None if per_judge else 1]
    intervals = macro_bootstrap(raters, modes, options) if bootstrap else {}
    rows = rater_table(cells, modes, options)
    found = {one.rater: rater_metrics(rows, one.rater, intervals.get(one.rater)) for one in raters}
    panel, n_items = found[PANEL][0], count_items(cells, PANEL)
    warnings = metric_warnings(table.criteria, modes, found, n_items)
    compared = [one.name for one in cells.criteria if one.level == "ranking"]
    if compared:
        warnings.append(
            f"means over criteria exclude comparisons ({join_names(compared)}); judge_report includes them"
        )
    n_tied = table.n_tied_labels if table.n_people > 1 else None
    if n_tied:
        warnings.append(f"{n_tied} cells (item × criterion) are excluded because their human labels are tied")
    return MetricsResult(
        **{one.name: getattr(panel, one.name) for one in fields(RaterMetrics)},
        per_judge={one.judge_id: one for one, _ in found.values() if isinstance(one, JudgeMetrics)},
        n_items=n_items,
        n_tied_labels=n_tied,
        **_counts(cells),
        cannot_assess=modes.cannot_assess,
        na_mode=modes.na,
        confidence_level=options.confidence_level,
        seed=options.seed if bootstrap else 0,
        warnings=tuple(fold_warnings(warnings)),
    )


def _counts(cells: Cells) -> dict[str, Any]:
    levels = [criterion.level for criterion in cells.criteria]
    by_level = {
        f"n_{name}_criteria": levels.count(name) for name in ("binary", "ordinal", "nominal", "interval")
    }
    return {"n_criteria": sum(by_level.values()), **by_level}
