"""Metrics of a run against the labels of its dataset, and their result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from autorubric._blocks import Block, card, render_latex, render_text
from autorubric._files import write_text_atomic
from autorubric._frames import Library, in_library
from autorubric.dataset import TruthRule
from autorubric.errors import ArgumentError
from autorubric.metrics._cells import CannotAssessMode, Cells, Modes, NaMode, cells_of
from autorubric.metrics._item_scores import PANEL, Rater
from autorubric.metrics._macro_bootstrap import Resampling, macro_bootstrap
from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._rater_figures import RunContext, judges_agreement, rater_fields
from autorubric.metrics._read_votes import read_votes
from autorubric.metrics._rendering import metric_blocks, metric_rows, spreadsheet_safe
from autorubric.metrics._results import BootstrapResults, JudgeMetrics, RaterMetrics
from autorubric.metrics._run_protocols import GradedRun, LabelledDataset, with_truth_rule
from autorubric.metrics._votes_table import VotesTable
from autorubric.metrics._warnings import fold_warnings, listed, rater_warnings, run_warnings

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


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def compute_metrics(  # noqa: PLR0913 - the public entry point; it makes options objects at once
    result: GradedRun,
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
    resampling = Resampling(n_bootstrap=n_bootstrap, confidence_level=confidence_level, seed=seed or 0)
    return metrics_of_table(
        read_votes(result, with_truth_rule(dataset, truth)),
        Modes(cannot_assess=cannot_assess, na=na_mode),
        options,
        resampling if bootstrap else None,
        per_judge=per_judge,
    )


def metrics_of_table(
    table: VotesTable,
    modes: Modes,
    options: IntervalOptions,
    resampling: Resampling | None,
    *,
    per_judge: bool,
) -> MetricsResult:
    """Compute the metrics of a votes table."""
    cells = cells_of(table, modes)
    context = RunContext(cells=cells, modes=modes, options=options, fleiss=judges_agreement(cells, modes))
    judges: list[Rater] = [("judge", judge) for judge in table.judges] if per_judge else []
    raters: list[Rater] = [PANEL, *judges]
    intervals: dict[Rater, BootstrapResults] = (
        macro_bootstrap(cells, raters, modes, resampling) if resampling else {}
    )
    figures = {rater: rater_fields(context, rater) for rater in raters}
    fields = {rater: {**found, "bootstrap": intervals.get(rater)} for rater, (found, _) in figures.items()}
    by_judge = {name: JudgeMetrics(judge_id=name, **fields[kind, name]) for kind, name in judges}
    panel = RaterMetrics(**fields[PANEL])
    n_items = _n_items(cells)
    warnings = run_warnings(table.criteria, modes, panel, n_items)
    warnings += rater_warnings("panel", panel, figures[PANEL][1])
    for rater in judges:
        warnings += rater_warnings(f"judge {rater[1]}", by_judge[rater[1]], figures[rater][1])
    compared = [one.name for one in cells.criteria if one.level == "ranking"]
    if compared:
        warnings.append(
            f"means over criteria exclude comparisons ({listed(compared)}); judge_report includes them"
        )
    n_tied = table.n_tied_labels if table.n_people > 1 else None
    if n_tied:
        warnings.append(f"{n_tied} cells (item × criterion) are excluded because their human labels are tied")
    return MetricsResult(
        **fields[PANEL],
        per_judge=by_judge,
        n_items=n_items,
        n_tied_labels=n_tied,
        **_counts(cells),
        cannot_assess=modes.cannot_assess,
        na_mode=modes.na,
        confidence_level=options.confidence_level,
        seed=resampling.seed if resampling else 0,
        warnings=tuple(fold_warnings(warnings)),
    )


def _n_items(cells: Cells) -> int:
    graded = (cells.truth.status > 0) & (cells.raters[PANEL].status > 0)
    return len(np.unique(cells.item[graded]))


def _counts(cells: Cells) -> dict[str, Any]:
    levels = [criterion.level for criterion in cells.criteria]
    by_level = {
        f"n_{name}_criteria": levels.count(name) for name in ("binary", "ordinal", "nominal", "interval")
    }
    return {"n_criteria": sum(by_level.values()), **by_level}
