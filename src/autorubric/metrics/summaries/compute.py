"""Metrics of a run against the labels of its dataset, with warnings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from autorubric.datasets.item import TruthRule
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import (
    PANEL,
    LabelledDataset,
    Rater,
    SupportsGradedRun,
    with_truth_rule,
)
from autorubric.metrics.core.read_votes import CannotAssessMode, Cells, Modes, NaMode, cells_of, read_votes
from autorubric.metrics.core.resampling import IntervalOptions, Resampling
from autorubric.metrics.core.result import to_plain
from autorubric.metrics.core.votes_table import MeasuredCriterion, VotesTable
from autorubric.metrics.summaries.macro_bootstrap import macro_bootstrap
from autorubric.metrics.summaries.rater_figures import RunContext, judges_agreement, rater_fields
from autorubric.metrics.summaries.rendering import metric_blocks, metric_rows, spreadsheet_safe
from autorubric.metrics.summaries.results import (
    AnyCriterionMetrics,
    BootstrapResults,
    CriterionMetrics,
    JudgeMetrics,
    RaterMetrics,
)
from autorubric.support.blocks import Block, card, render_latex, render_text
from autorubric.support.frames import Library, in_library
from autorubric.support.write import write_text_atomic

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


FEW_ITEMS = 50
"""Number of items below which intervals are wide and their coverage is below the confidence level."""

FEW_OF_A_CLASS = 10
"""Size of the rarer class below which kappa and its interval depend heavily on single items."""

_NAMES_SHOWN = 5


def run_warnings(
    criteria: Sequence[MeasuredCriterion], modes: Modes, panel: RaterMetrics, n_items: int
) -> list[str]:
    """Return warnings about the data and the settings."""
    found = []
    if not panel.na_stats.n_cells:
        found.append("no item has a label, so the judges cannot be compared with the truth (no_pairs)")
    elif n_items < FEW_ITEMS:
        found.append(
            f"only {n_items} items: with fewer than about {FEW_ITEMS}, intervals are wide and unreliable"
        )
    found += _thin_classes(panel.per_criterion)
    repeated = [name for name, n in Counter(one.name for one in criteria).items() if n > 1]
    if repeated:
        found.append(f"scales differ between items for {listed(repeated)}; each scale is reported separately")
    figured = {one.name for one in panel.per_criterion}
    without = [
        one.name
        for one in criteria
        if one.level == "text" or (one.level == "ranking" and one.name not in figured)
    ]
    if without:
        found.append(f"no metrics are computed for these criteria (free text or rankings): {listed(without)}")
    if modes.cannot_assess != "exclude":
        found.append(f"CANNOT_ASSESS is counted {modes.cannot_assess.replace('_', ' ')}")
    if modes.na != "exclude":
        found.append(f"NA is counted {modes.na.replace('_', ' ')}")
    return found


def tied_labels_text(rule: TruthRule | None, n_tied: int) -> str:
    """Describe how several annotators' labels were combined and how many cells have no ground truth."""
    how = (
        "the median on ordinal scales, the mean of numbers, and otherwise the mode"
        if rule is None
        else "the label that more than half of them chose"
        if rule == "majority"
        else f"the {rule} of their labels"
    )
    cells = "cell has" if n_tied == 1 else "cells have"
    return f"If several annotators label a cell, its label is {how}; {n_tied} {cells} no label due to ties."


def fold_warnings(warnings: Iterable[str]) -> list[str]:
    """Merge identical warnings about several raters into one line that names and counts them."""
    raters: dict[str, list[str]] = {}
    for one in warnings:
        who, _, text = one.partition(": ")
        known = text and (who == "panel" or who.startswith("judge ") or " " not in who)
        raters.setdefault(text if known else one, []).extend([who] if known else [])
    return [
        text
        if not who
        else f"{who[0]}: {text}"
        if len(who) == 1
        else f"{', '.join(who)} ({len(who)} raters): {text}"
        for text, who in raters.items()
    ]


def rater_warnings(who: str, rater: RaterMetrics, reasons: Mapping[str, str]) -> list[str]:
    """Return warnings about one rater's failures and undefined metrics, with the reasons."""
    found = []
    stats = rater.na_stats
    if stats.failed:
        found.append(
            f"{who}: failed on {stats.failed} of {stats.n_cells} labelled cells, which all metrics exclude"
        )
    if stats.not_asked:
        found.append(f"{who}: has no vote on {stats.not_asked} of {stats.n_cells} labelled cells")
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    found += [f"{who}: undefined ({reason}): {listed(names)}" for reason, names in by_reason.items()]
    on: dict[tuple[str, str], list[str]] = {}
    for one in rater.per_criterion:
        for name, reason in one.reasons.items():
            on.setdefault((name, reason), []).append(one.name)
    total = len(rater.per_criterion)
    for (name, reason), names in on.items():
        found.append(
            f"{who}: {name} is undefined ({reason}) on {len(names)} of {total} criteria: {listed(names)}"
        )
    return found


def _thin_classes(per_criterion: Sequence[AnyCriterionMetrics]) -> list[str]:
    thin = [
        one.name
        for one in per_criterion
        if isinstance(one, CriterionMetrics)
        and 0 < min(one.support_true, one.n_samples - one.support_true) < FEW_OF_A_CLASS
    ]
    if not thin:
        return []
    return [f"criteria with fewer than {FEW_OF_A_CLASS} labels of the rarer class: {listed(thin)}"]


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


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
        return {"format": FORMAT, **to_plain(self)}

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
        options if bootstrap else None,
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
