"""Metrics of a run against the labels of its dataset, with warnings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from autorubric.datasets.item import TruthRule
from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import PANEL, LabelledDataset, SupportsGradedRun, with_truth_rule
from autorubric.metrics.core.read_votes import CannotAssessMode, Modes, NaMode, cells_of, read_votes
from autorubric.metrics.core.resampling import IntervalOptions, check_choice
from autorubric.metrics.core.result import (
    MetricValues,
    Rate,
    ResultBase,
    column_table,
    format_interval,
    spreadsheet_csv,
    true_rates_table,
    warnings_block,
)
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.metrics.figures.bias import BiasResult, ConfidenceInterval
from autorubric.metrics.figures.specs import shown_metrics
from autorubric.metrics.summaries.compared_raters import compared_raters
from autorubric.metrics.summaries.criterion_metrics import names_in_run
from autorubric.metrics.summaries.highlights import fold_warnings, join_names, metric_warnings
from autorubric.metrics.summaries.macro_bootstrap import macro_bootstrap
from autorubric.metrics.summaries.rater_report import UNANSWERED, unanswered_columns
from autorubric.metrics.summaries.rater_table import count_items, rater_metrics, rater_table
from autorubric.metrics.summaries.results import (
    AnyCriterionMetrics,
    CorrelationResult,
    CriterionMetrics,
    JudgeMetrics,
    NominalCriterionMetrics,
    RaterMetrics,
    shown_value,
)
from autorubric.support.blocks import Block, Cell, ConfusionBlock, ScalarBlock, TableBlock, p_cell
from autorubric.support.write import write_text_atomic

FORMAT = 1
"""Version of the JSON format written by `to_file`. Readers should ignore unknown keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsResult(RaterMetrics, ResultBase):
    """Metrics of a run's panel and, if requested, of each judge.

    `to_dataframe` has one row per rater and criterion, and one `macro` row of means per rater.

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
        blocks: list[Block] = [
            _overview(self, self.n_items),
            _macro_table(self),
            *([_pooled_block(self)] if self.pooled.n else []),
            _score_block(self),
            _criteria_table(self.per_criterion),
        ]
        answered = [one for one in self.per_criterion if one.n_samples]
        binary = [one for one in answered if isinstance(one, CriterionMetrics)]
        if binary:
            blocks.append(true_rates_table(map(_true_rates, binary)))
        if self.per_judge:
            blocks.append(_judges_table(self.per_judge))
        categorical = [one for one in answered if isinstance(one, CriterionMetrics | NominalCriterionMetrics)]
        if len(categorical) <= _MATRICES_SHOWN:
            blocks += [
                ConfusionBlock(
                    title=f"Confusion matrix of {one.name}",
                    labels=one.confusion_matrix.labels,
                    counts=one.confusion_matrix.counts,
                )
                for one in categorical
            ]
        return [*blocks, warnings_block(self.warnings)] if self.warnings else blocks

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as JSON-compatible values. Undefined values are None, never NaN."""
        return {"format": FORMAT, **ResultBase.to_dict(self)}

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for who, rater in (("panel", self), *self.per_judge.items()):
            means = {name: getattr(rater, f"criterion_{name}") for name in _BINARY_COLUMNS[:-2]}
            shares = {name: getattr(rater, name) for name in ("coverage", "abstention_rate", "failure_rate")}
            means["kappa"] = rater.mean_kappa
            means |= {_mean_name(name): mean for name, mean in rater.more.items()}
            shares |= {name: getattr(rater.na_stats, name) for name in UNANSWERED.values()}
            rows.append({"rater": who, "criterion": "macro", "n": rater.pooled.n, **shares, **means})
            rows += [_row(who, one) for one in rater.per_criterion]
        return rows

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
            text = spreadsheet_csv(self.to_dataframe())
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
    check_choice("cannot_assess", cannot_assess, CannotAssessMode)
    check_choice("na_mode", na_mode, NaMode)
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
    cells = cells_of(table, modes)
    raters = compared_raters(table, cells)[: None if per_judge else 1]
    intervals = macro_bootstrap(raters, modes, options) if bootstrap else {}
    rows = rater_table(cells, modes, options)
    found = {one.rater: rater_metrics(rows, one.rater, intervals.get(one.rater)) for one in raters}
    panel, n_items = found[PANEL][0], count_items(cells, PANEL)
    warnings = metric_warnings(
        table.criteria, modes, found, n_items, has_probabilities=table.has_probabilities
    )
    compared = [one.name for one in cells.criteria if one.level == "ranking"]
    if compared:
        warnings.append(
            f"means over criteria exclude comparisons ({join_names(compared)}); judge_report includes them"
        )
    n_tied = table.n_tied_labels if table.n_people > 1 else None
    if n_tied:
        warnings.append(f"{n_tied} cells (item × criterion) are excluded because their human labels are tied")
    levels = [criterion.level for criterion in cells.criteria]
    by_level: dict[str, Any] = {
        f"n_{one}_criteria": levels.count(one) for one in ("binary", "ordinal", "nominal", "interval")
    }
    return MetricsResult(
        **{one.name: getattr(panel, one.name) for one in fields(RaterMetrics)},
        per_judge={one.judge_id: one for one, _ in found.values() if isinstance(one, JudgeMetrics)},
        n_items=n_items,
        n_tied_labels=n_tied,
        n_criteria=sum(by_level.values()),
        **by_level,
        cannot_assess=modes.cannot_assess,
        na_mode=modes.na,
        confidence_level=options.confidence_level,
        seed=options.seed if bootstrap else 0,
        warnings=tuple(fold_warnings(warnings)),
    )


_MATRICES_SHOWN = 12


def _labels() -> dict[str, str]:
    """Return the headings of metrics by name; recall is shown as sensitivity."""
    return {name: one.label for one in shown_metrics() for name in names_in_run(one) if name != "recall"}


def _mean_name(name: str) -> str:
    """Return the metric of which a field of `RaterMetrics` is the mean over criteria."""
    return name.removeprefix("criterion_").removeprefix("mean_")


def _overview(panel: RaterMetrics, n_items: int) -> ScalarBlock:
    stats = panel.na_stats
    return ScalarBlock(
        title="Panel against the ground truth",
        figures=(
            ("items", n_items),
            ("labelled cells", stats.n_cells),
            ("pairs used", sum(one.n_samples for one in panel.per_criterion)),
            ("coverage", panel.coverage),
            *((name, cell(stats)) for name, cell in unanswered_columns([stats], lambda one: one).items()),
            ("abstention rate", panel.abstention_rate),
            ("failure rate", panel.failure_rate),
        ),
    )


def _macro_table(panel: RaterMetrics) -> TableBlock:
    labels = _labels()
    names = {name: _mean_name(name) for name in panel.defined if _mean_name(name) in labels}
    intervals = {"sensitivity": panel.criterion_sensitivity_ci, "specificity": panel.criterion_specificity_ci}
    if panel.bootstrap is not None:
        intervals |= {"accuracy": panel.bootstrap.accuracy_ci, "kappa": panel.bootstrap.kappa_ci}
    return column_table(
        "Mean over criteria",
        [name for name in names if panel.defined[name][1]],
        {
            "figure": lambda name: labels[names[name]],
            "mean": lambda name: getattr(panel, name),
            "interval": lambda name: _ends(intervals.get(names[name])),
            "criteria defined": lambda name: "{} of {}".format(*panel.defined[name]),
        },
    )


def _ends(interval: ConfidenceInterval | None) -> str:
    return "" if interval is None else format_interval(interval.lower, interval.upper)


def _pooled_block(panel: RaterMetrics) -> ScalarBlock:
    labels = _labels() | {"pearson": "Pearson"}
    names = [*map(_mean_name, panel.defined), "weighted_kappa", "mcc", "pearson"]
    shown = [name for name in names if name in labels and hasattr(panel.pooled, name)]
    figures = [(labels[name], getattr(panel.pooled, name)) for name in shown]
    return ScalarBlock(
        title="All cells in one table (mixes base rates; read the means over criteria first)",
        figures=(("pairs", panel.pooled.n), *((name, value) for name, value in figures if value is not None)),
    )


def _score_block(panel: RaterMetrics) -> ScalarBlock:
    rmse = _ends(panel.bootstrap.rmse_ci) if panel.bootstrap else ""
    figures: list[tuple[str, Cell]] = [
        ("items with both scores", panel.n_scores),
        ("RMSE", panel.score_rmse),
        *([("RMSE interval", rmse)] if rmse else []),
        ("MAE", panel.score_mae),
    ]
    for name, found in (
        ("Pearson", panel.score_pearson),
        ("Spearman", panel.score_spearman),
        ("Kendall tau-b", panel.score_kendall),
    ):
        figures += [(name, found.coefficient), (f"{name} p", p_cell(found.p_value))]
    bias = panel.bias
    figures += [
        ("mean difference (judge - truth)", bias.mean_bias),
        ("p of the mean difference", p_cell(bias.p_value)),
        ("d_z of the mean difference", bias.effect_size),
    ]
    return ScalarBlock(title="Item scores, without length penalty", figures=tuple(figures))


def _criteria_table(per_criterion: Sequence[AnyCriterionMetrics]) -> TableBlock:
    return column_table(
        "Criteria",
        per_criterion,
        {
            "criterion": lambda one: one.name,
            "level": lambda one: one.criterion_type,
            "n": lambda one: one.n_samples,
            "coverage": lambda one: one.coverage,
            "accuracy": lambda one: shown_value(one, "accuracy"),
            "kappa": lambda one: shown_value(one, "kappa"),
            "F1": lambda one: shown_value(one, "f1"),
            "RMSE": lambda one: shown_value(one, "rmse"),
            **unanswered_columns(per_criterion, lambda one: one),
            **_other_columns(per_criterion),
        },
    )


def _other_columns(results: Sequence[MetricValues]) -> dict[str, Callable[[MetricValues], Cell]]:
    """Return columns of the metrics of installed packages, by heading."""
    labels = _labels()

    def column(name: str) -> Callable[[MetricValues], Cell]:
        return lambda one: one.more.get(name)

    names = dict.fromkeys(name for one in results for name in one.more)
    return {labels[_mean_name(name)]: column(name) for name in names}


def _true_rates(one: CriterionMetrics) -> tuple[str, Rate, Rate]:
    met, unmet = one.support_true, one.n_samples - one.support_true
    tpr, tnr = _ends(one.sensitivity_ci), _ends(one.specificity_ci)
    return one.name, (one.sensitivity, tpr, met), (one.specificity, tnr, unmet)


def _judges_table(judges: Mapping[str, JudgeMetrics]) -> TableBlock:
    return column_table(
        "Judges",
        judges.values(),
        {
            "judge": lambda one: one.judge_id,
            "n": lambda one: one.pooled.n,
            "coverage": lambda one: one.coverage,
            "accuracy": lambda one: one.criterion_accuracy,
            "balanced accuracy": lambda one: one.criterion_balanced_accuracy,
            "kappa": lambda one: one.mean_kappa,
            "score RMSE": lambda one: one.score_rmse,
            "score Pearson": lambda one: one.score_pearson.coefficient,
            "bias": lambda one: one.bias.mean_bias,
            **unanswered_columns(list(judges.values()), lambda one: one.na_stats),
            **_other_columns(list(judges.values())),
        },
    )


_BINARY_COLUMNS = (
    "accuracy", "balanced_accuracy", "precision", "recall", "sensitivity", "specificity", "f1", "kappa",
    "mcc",
)  # fmt: skip
_NOMINAL_COLUMNS = ("accuracy", "balanced_accuracy", "macro_f1", "kappa")
_COLUMNS: Mapping[str, Sequence[str]] = {
    "binary": _BINARY_COLUMNS,
    "nominal": _NOMINAL_COLUMNS,
    "ordinal": (
        *_NOMINAL_COLUMNS, "weighted_kappa", "adjacent_accuracy", "rmse", "mae", "spearman", "kendall",
    ),
    "interval": ("rmse", "mae", "ccc", "bias", "pearson", "spearman", "kendall"),
    "ranking": ("accuracy", "kappa", "tie_rate", "position_consistency"),
}  # fmt: skip
"""Columns of the DataFrame that a criterion fills, by level."""


def _row(who: str, one: AnyCriterionMetrics) -> dict[str, Any]:
    row: dict[str, Any] = {
        "rater": who,
        "criterion": one.name,
        "level": one.criterion_type,
        "n": one.n_samples,
        "coverage": one.coverage,
        "abstention_rate": one.abstention_rate,
        "failure_rate": one.failure_rate,
        **{name: getattr(one, name) for name in UNANSWERED.values()},
    }
    for name in _COLUMNS[one.criterion_type]:
        found: Any = shown_value(one, name) if name == "accuracy" else getattr(one, name)
        if isinstance(found, CorrelationResult):
            found = found.coefficient
        row[name] = found.mean_bias if isinstance(found, BiasResult) else found
    return row | dict(one.more)
