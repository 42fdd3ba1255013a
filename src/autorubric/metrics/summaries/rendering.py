"""Conversion of metrics to renderable blocks, to rows of a DataFrame and to cells safe in spreadsheets."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from autorubric.metrics.core.result import MetricValues, format_interval
from autorubric.metrics.figures.bias import BiasResult, ConfidenceInterval
from autorubric.metrics.figures.specs import shown_metrics
from autorubric.metrics.summaries.criterion_metrics import names_in_run
from autorubric.metrics.summaries.results import (
    AnyCriterionMetrics,
    CorrelationResult,
    CriterionMetrics,
    JudgeMetrics,
    NominalCriterionMetrics,
    RaterMetrics,
    shown_value,
)
from autorubric.support.blocks import Block, Cell, ConfusionBlock, ScalarBlock, TableBlock, TextBlock, p_cell

if TYPE_CHECKING:
    import pandas as pd


# Characters that spreadsheets treat as the beginning of a formula, including full-width forms.
_STARTS: Final = frozenset("=+-@\t\r\n＝＋－＠")


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of a table with `'` before any text that a spreadsheet would run as a formula.

    Such text starts with `=`, `+`, `-`, `@` (or their full-width forms), a tab or a line break, optionally
    after spaces and invisible characters. Column and row names are also escaped. Numbers are unchanged. The
    result is for human readers, because other programs treat the `'` as part of the text.

    Args:
        frame: Table to escape, for example the result of `EvalResult.votes_table`.
    """
    marked = frame.map(_escape).rename(index=_escape, columns=_escape)
    return marked.rename_axis(index=_escape, columns=_escape)


def _escape(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _begins_formula(cell) else cell


def _begins_formula(text: str) -> bool:
    # Unicode category C contains control and invisible characters, and Z all kinds of spaces.
    seen = (letter for letter in text if letter in _STARTS or unicodedata.category(letter)[0] not in "CZ")
    return next(seen, "") in _STARTS


_MATRICES_SHOWN = 12


_Row = TypeVar("_Row")


def column_table(
    title: str, rows: Iterable[_Row], columns: Mapping[str, Callable[[_Row], Cell]]
) -> TableBlock:
    """Return a table with one row per element, from a function for each heading."""
    cells = tuple(tuple(cell(row) for cell in columns.values()) for row in rows)
    return TableBlock(title=title, columns=tuple(columns), rows=cells)


def others_of(results: Iterable[MetricValues]) -> list[str]:
    """Return the names of the metrics of installed packages in any of the results."""
    return list(dict.fromkeys(name for one in results for name in one.more))


Rate: TypeAlias = tuple[float | None, str, int]
"""A rate with its interval and the number of labels."""


def true_rates_table(rows: Iterable[tuple[str, Rate, Rate]]) -> TableBlock:
    """Return a table of sensitivity and specificity by criterion."""
    return TableBlock(
        title="Sensitivity and specificity, with MET as the positive class",
        columns=("criterion", "TPR", "TPR interval", "MET", "TNR", "TNR interval", "UNMET"),
        rows=tuple((name, *tpr, *tnr) for name, tpr, tnr in rows),
    )


def warnings_block(warnings: Iterable[str]) -> TextBlock:
    """Return a block that lists warnings."""
    return TextBlock(title="Warnings", text="\n".join(f"- {warning}" for warning in warnings))


def _labels() -> dict[str, str]:
    """Return the headings of metrics by name; recall is shown as sensitivity."""
    return {name: one.label for one in shown_metrics() for name in names_in_run(one) if name != "recall"}


def _mean_name(name: str) -> str:
    """Return the metric of which a field of `RaterMetrics` is the mean over criteria."""
    return name.removeprefix("criterion_").removeprefix("mean_")


def metric_blocks(
    panel: RaterMetrics, judges: Mapping[str, JudgeMetrics], n_items: int, warnings: Sequence[str]
) -> list[Block]:
    """Return the metrics as blocks, beginning with the overview."""
    blocks: list[Block] = [
        _overview(panel, n_items),
        _macro_table(panel),
        *([_pooled_block(panel)] if panel.pooled.n else []),
        _score_block(panel),
        _criteria_table(panel.per_criterion),
    ]
    binary = [one for one in panel.per_criterion if isinstance(one, CriterionMetrics)]
    if binary:
        blocks.append(true_rates_table(map(_true_rates, binary)))
    if judges:
        blocks.append(_judges_table(judges))
    categorical = [
        one for one in panel.per_criterion if isinstance(one, CriterionMetrics | NominalCriterionMetrics)
    ]
    if len(categorical) <= _MATRICES_SHOWN:
        blocks += [
            ConfusionBlock(
                title=f"Confusion matrix of {one.name}",
                labels=one.confusion_matrix.labels,
                counts=one.confusion_matrix.counts,
            )
            for one in categorical
        ]
    return [*blocks, warnings_block(warnings)] if warnings else blocks


def _overview(panel: RaterMetrics, n_items: int) -> ScalarBlock:
    stats = panel.na_stats
    return ScalarBlock(
        title="Panel against the ground truth",
        figures=(
            ("items", n_items),
            ("labelled cells", stats.n_cells),
            ("pairs used", sum(one.n_samples for one in panel.per_criterion)),
            ("coverage", panel.coverage),
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
        title="All cells pooled (mixes base rates; read the means over criteria first)",
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
        ("bias (judge - truth)", bias.mean_bias),
        ("bias p", p_cell(bias.p_value)),
        ("bias d_z", bias.effect_size),
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
            **_other_columns(per_criterion),
        },
    )


def _other_columns(results: Sequence[MetricValues]) -> dict[str, Callable[[MetricValues], Cell]]:
    """Return columns of the metrics of installed packages, by heading."""
    labels = _labels()

    def column(name: str) -> Callable[[MetricValues], Cell]:
        return lambda one: one.more.get(name)

    return {labels[_mean_name(name)]: column(name) for name in others_of(results)}


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
            **_other_columns(list(judges.values())),
        },
    )


def metric_rows(panel: RaterMetrics, judges: Mapping[str, JudgeMetrics]) -> list[dict[str, Any]]:
    """Return one row per rater and criterion, and one row of means per rater."""
    rows = []
    for who, rater in (("panel", panel), *judges.items()):
        means = {name: getattr(rater, f"criterion_{name}") for name in _BINARY_COLUMNS[:-2]}
        shares = {name: getattr(rater, name) for name in ("coverage", "abstention_rate", "failure_rate")}
        means |= {"kappa": rater.mean_kappa, **{_mean_name(name): mean for name, mean in rater.more.items()}}
        rows.append({"rater": who, "criterion": "macro", "n": rater.pooled.n, **shares, **means})
        rows += [_row(who, one) for one in rater.per_criterion]
    return rows


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
    }
    for name in _COLUMNS[one.criterion_type]:
        found: Any = shown_value(one, name) if name == "accuracy" else getattr(one, name)
        if isinstance(found, CorrelationResult):
            found = found.coefficient
        row[name] = found.mean_bias if isinstance(found, BiasResult) else found
    return row | dict(one.more)
