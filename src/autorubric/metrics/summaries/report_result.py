"""Result of `judge_report`, and its blocks, which all renderers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from autorubric.datasets.item import TruthRule
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.result import (
    Rate,
    ResultBase,
    column_table,
    format_interval,
    true_rates_table,
    warnings_block,
)
from autorubric.metrics.figures.one_vs_rest import MET
from autorubric.metrics.figures.specs import shown_metric
from autorubric.metrics.summaries.agreement import Agreement
from autorubric.metrics.summaries.highlights import PanelAndBest, highlight_sentences, tied_labels_text
from autorubric.metrics.summaries.probability_figures import FIGURES, ProbabilityFigures
from autorubric.metrics.summaries.rater_report import (
    HeadlineFigures,
    HumanCeilings,
    MacroFigures,
    RaterFailures,
    RaterReport,
    few_items_each,
    metric_on,
    rater_names,
    unanswered_columns,
)
from autorubric.metrics.summaries.reliability import Reliability
from autorubric.metrics.summaries.sides import AbstainMode
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock

RowT = TypeVar("RowT")

_SCORES = ("rmse", "mae", "pearson", "spearman", "kendall", "ccc")


def _without_empty(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if not isinstance(block, TableBlock) or block.rows]


def _ends(found: Estimate) -> str:
    return format_interval(found.low, found.high)


def _heading(name: str) -> str:
    return shown_metric(name).label


def _macro_table(panel: RaterReport) -> TableBlock:
    found = panel.macro.figures()
    columns: dict[str, Callable[[str], Cell]] = {
        "figure": _heading,
        "mean": lambda name: found[name].value,
        "interval": lambda name: _ends(found[name]),
        "criteria defined": lambda name: "{} of {}".format(*panel.macro.defined[name]),
    }
    shown = [name for name, (_, of) in panel.macro.defined.items() if of]
    return column_table("Panel, mean over criteria", shown, columns)


def _raters_table(
    raters: Mapping[str, RaterReport], ceiling: HumanCeilings | None, compared: PanelAndBest | None
) -> TableBlock:
    shown = [name for name, (_, of) in raters["panel"].macro.defined.items() if of]

    def row(who: str, macro: HeadlineFigures, coverage: float | None) -> tuple[Cell, ...]:
        found = [getattr(macro, name) for name in shown]
        leading = [_ends(found[shown.index("kappa")])] if "kappa" in shown else []
        return (who, coverage, *(one.value for one in found), *leading)

    rows = [row(who, one.macro, one.coverage) for who, one in raters.items()]
    if ceiling is not None and not ceiling.made_the_truth:
        rows.append(row("annotators (not comparable)", ceiling.macro, None))
    interval = ("interval of kappa",) if "kappa" in shown else ()
    ties = "; ties count as the conservative answer" if compared and compared.n_ties_answered else ""
    return TableBlock(
        title=f"Judges, mean over criteria, on the labelled cells that each judge answered (coverage){ties}",
        columns=("rater", "coverage", *map(_heading, shown), *interval),
        rows=tuple(rows) if shown else (),
    )


def _people_table(panel: RaterReport, ceiling: HumanCeilings) -> TableBlock:
    """Compare people and raters in their place with the same labels, those of the other people."""
    shown = [name for name, (_, of) in panel.macro.defined.items() if of]
    people = {"annotators (each against the others)": ceiling.macro}
    rows: list[tuple[Cell, ...]] = []
    for who, macro in (people | dict(ceiling.in_place)).items():
        values = [getattr(macro, name).value for name in shown]
        gap = getattr(ceiling.gap[who], shown[0]) if who in ceiling.gap and shown else None
        rows.append((who, *values, gap and gap.value, _ends(gap) if gap else ""))
    difference = f"{_heading(shown[0])} - person's" if shown else ""
    return TableBlock(
        title="People and raters in a person's place, against the other people, mean over criteria",
        columns=("rater", *map(_heading, shown), difference, "interval of the difference"),
        rows=tuple(rows) if shown else (),
    )


def _same_cells_table(found: PanelAndBest) -> TableBlock:
    figures = {"panel": found.panel, found.judge: found.best, "panel - judge": found.difference}
    return TableBlock(
        title=f"Panel and best judge on the same cells: {_heading(found.figure)}, mean over criteria",
        columns=("rater", _heading(found.figure), "interval", "cells", "coverage"),
        rows=tuple(
            (who, one.value, _ends(one), found.n_cells, found.coverage) for who, one in figures.items()
        ),
    )


def _comparisons_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    found = [(who, name, one) for who, rater in raters.items() for name, one in rater.comparisons.items()]
    return column_table(
        "Comparisons: ties and consistency across both orders of the candidates",
        found,
        {
            "rater": lambda row: row[0],
            "criterion": lambda row: row[1],
            "decisions": lambda row: row[2].tie_rate.n,
            "ties": lambda row: row[2].tie_rate.value,
            "asked in both orders": lambda row: row[2].position_consistency.n,
            "position consistency": lambda row: row[2].position_consistency.value,
            "interval": lambda row: _ends(row[2].position_consistency),
        },
    )


def _failures_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    return column_table(
        "Labelled cells without an answer",
        raters,
        {
            "rater": lambda who: who,
            "cells": lambda who: raters[who].failures.n_cells,
            "coverage": lambda who: raters[who].coverage,
            "abstained": lambda who: raters[who].failures.abstention_rate.value,
            "failed": lambda who: raters[who].failures.failure_rate.value,
            "not asked": lambda who: raters[who].failures.not_asked_rate.value,
            "tied": lambda who: raters[who].failures.undecided_rate.value,
            "not applicable": lambda who: raters[who].failures.not_applicable,
            **unanswered_columns(raters, lambda who: raters[who].failures),
        },
    )


def _criteria_table(
    panel: RaterReport, ceiling: HumanCeilings | None, reliability: Mapping[str, Reliability]
) -> TableBlock:
    agreed = panel.per_criterion
    columns: dict[str, Callable[[str], Cell]] = {
        "criterion": lambda name: name,
        "level": lambda name: agreed[name].level,
        "n": lambda name: agreed[name].n,
        "accuracy": lambda name: agreed[name].accuracy.value,
        "kappa": lambda name: metric_on(agreed[name], "kappa").value,
        "interval": lambda name: _ends(metric_on(agreed[name], "kappa")),
        "pearson": lambda name: agreed[name].pearson.value,
        "RMSE": lambda name: agreed[name].rmse.value,
    }
    if ceiling is not None:
        people, panels = ceiling.per_criterion, ceiling.in_place_per_criterion["panel"]
        columns |= {
            "people's kappa": lambda name: people[name].kappa.value if name in people else None,
            "panel's in their place": lambda name: panels[name].kappa.value if name in panels else None,
        }
    columns |= _other_columns(agreed)
    if any(one.abstentions.n_answered for one in agreed.values()):
        columns["answered NA"] = lambda name: agreed[name].abstentions.n_answered
    if reliability:
        columns["alpha among judges"] = lambda name: reliability[name].alpha.value
    return column_table("Panel on each criterion", agreed, columns)


def _other_columns(
    results: Mapping[RowT, Agreement] | Mapping[RowT, HeadlineFigures],
) -> dict[str, Callable[[RowT], Cell]]:
    """Return the columns of metrics of installed packages, without those that are undefined everywhere."""

    def column(metric: str) -> Callable[[RowT], Cell]:
        return lambda row: results[row].more[metric].value if metric in results[row].more else None

    names = dict.fromkeys(name for one in results.values() for name in one.more)
    columns = {_heading(name): column(name) for name in names}
    return {
        heading: cell for heading, cell in columns.items() if any(cell(row) is not None for row in results)
    }


def _true_rates(name: str, one: Agreement) -> tuple[str, Rate, Rate]:
    met = sum(one.table[MET])
    tpr, tnr = one.recall, one.specificity
    return name, (tpr.value, _ends(tpr), met), (tnr.value, _ends(tnr), one.n - met)


def _pooled_table(title: str, found: HeadlineFigures) -> TableBlock:
    rows = [(_heading(name), one.value, _ends(one), one.n) for name, one in found.figures().items()]
    shown = tuple(row for row in rows if row[1] is not None)
    return TableBlock(title=title, columns=("figure", "estimate", "interval", "n"), rows=shown)


def _scales_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    found = {(who, scale): one for who, rater in raters.items() for scale, one in rater.by_scale.items()}
    columns: dict[str, Callable[[tuple[str, str]], Cell]] = {
        "rater": lambda row: row[0],
        "scale": lambda row: row[1],
        "n": lambda row: found[row].accuracy.n,
        "accuracy": lambda row: found[row].accuracy.value,
        "balanced accuracy": lambda row: found[row].balanced_accuracy.value,
        "kappa": lambda row: found[row].kappa.value,
        "interval": lambda row: _ends(found[row].kappa),
    }
    return column_table("Cells pooled by scale", found, columns | _other_columns(found))


def _with_probabilities(raters: Mapping[str, RaterReport]) -> list[tuple[str, str, ProbabilityFigures]]:
    """Return rater, criterion and figures of probabilities."""
    # The panel of one judge repeats the judge.
    shown = {who: one for who, one in raters.items() if one.kind != "panel" or len(raters) > 2}
    return [(who, key, one) for who, rater in shown.items() for key, one in rater.probabilities.items()]


def _probabilities_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (who, key, one.brier.n, _ends(one.brier), *(each.value for each in one.figures().values()))
        for who, key, one in _with_probabilities(raters)
    ]
    title = "Probabilities, given that the rater answers (lower is better, except AUROC)"
    columns = ("rater", "criterion", "n", "interval of Brier", *FIGURES.values())
    return TableBlock(title=title, columns=columns, rows=tuple(rows))


def _reliability_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    """Return a table of the bins of reliability diagrams."""
    bins: list[tuple[Cell, ...]] = [
        (who, key, f"{at.low:g} to {at.high:g}", at.n, at.forecast, at.rate.value, _ends(at.rate))
        for who, key, one in _with_probabilities(raters)
        for at in one.curve.bins
    ]
    title = "Reliability: P(MET) and rate of MET, or largest probability and accuracy"
    columns = ("rater", "criterion", "bin", "n", "mean forecast", "rate", "interval")
    return TableBlock(title=title, columns=columns, rows=tuple(bins))


def _scores_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (who, one.n, *(getattr(one, name).value for name in _SCORES), one.bias.mean_bias, one.bias.p_value)
        for who, rater in raters.items()
        if (one := rater.scores) is not None
    ]
    names = ("RMSE", "MAE", *_SCORES[2:], "mean difference (rater - truth)", "p of the mean difference")
    return TableBlock(
        title="Item scores, without length penalty", columns=("rater", "n", *names), rows=tuple(rows)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport(ResultBase):
    """Report on the quality of the judges in a run or in a table of labels.

    `to_dataframe` has one row per rater, criterion (or `macro` or `micro`) and metric.

    Attributes:
        panel: Report on the panel, whose decisions combine the judges' votes.
        per_judge: Report on each judge, keyed by judge id.
        panel_and_best: Comparison of the panel with the best judge on the cells that both answered; None if
            there are fewer than two judges, or if no metric or cell can be compared.
        human_ceiling: Agreement among annotators; None if no two annotators labelled the same cell.
        reliability: Agreement among the judges on each criterion, regardless of the truth. Excludes Kendall's
            W; empty if there is only one judge.
        n_items: Number of items with a label.
        n_cells: Number of cells (pairs of item and criterion) with a label.
        n_tied_labels: Number of cells that two or more annotators labelled but that have no label because of
            a tie; None if there are fewer than two annotators.
        truth: Rule that combines annotators' labels; None uses the default rule for each measurement level.
        abstain: How abstentions are counted.
        confidence_level: Confidence level of the intervals.
        n_resamples: Number of times that items are resampled.
        seed: Seed for the resampling.
        warnings: Warnings about undefined metrics (with reasons), sparse data and unusual settings.
    """

    panel: RaterReport
    per_judge: Mapping[str, RaterReport]
    panel_and_best: PanelAndBest | None
    human_ceiling: HumanCeilings | None
    reliability: Mapping[str, Reliability]
    n_items: int
    n_cells: int
    n_tied_labels: int | None
    truth: TruthRule | None
    abstain: AbstainMode
    confidence_level: float
    n_resamples: int
    seed: int
    warnings: tuple[str, ...]

    @property
    def macro(self) -> MacroFigures:
        """The panel's means over criteria, which are the headline metrics."""
        return self.panel.macro

    @property
    def micro(self) -> HeadlineFigures:
        """The panel's metrics over all cells pooled; pooling mixes base rates."""
        return self.panel.micro

    @property
    def per_criterion(self) -> Mapping[str, Agreement]:
        """Agreement between the panel and the truth on each criterion."""
        return self.panel.per_criterion

    @property
    def failures(self) -> Mapping[str, RaterFailures]:
        """Counts and rates of unanswered cells, keyed by judge id; the panel's key is `"panel"`."""
        return {name: one.failures for name, one in self.raters().items()}

    def raters(self) -> dict[str, RaterReport]:
        """Return the reports keyed by `"panel"` and judge id; a judge named `panel` is `"judge panel"`."""
        everyone = [self.panel, *self.per_judge.values()]
        return dict(zip(rater_names(everyone), everyone, strict=True))

    def blocks(self) -> list[Block]:
        """Return the report as content blocks for text, HTML and LaTeX, most important first."""
        raters, panel = self.raters(), self.panel
        blocks = self.headline_blocks()
        if len(raters) > 1:
            blocks.append(_criteria_table(panel, self.human_ceiling, self.reliability))
        pooled = "Panel, all cells pooled, chance within criteria (mixes base rates; see the means first)"
        binary = {name: one for name, one in panel.per_criterion.items() if one.level == "binary" and one.n}
        blocks += [
            true_rates_table(_true_rates(*one) for one in binary.items()),
            _pooled_table(pooled, panel.micro),
            _reliability_table(raters),
        ]
        if len(panel.by_scale) > 1 or any(few_items_each(one) is not None for one in raters.values()):
            blocks.append(_scales_table(raters))
        if panel.scores is not None:
            blocks.append(_scores_table(raters))
        if self.warnings:
            blocks.append(warnings_block(self.warnings))
        settings = (
            f"abstain={self.abstain!r}; intervals: {self.confidence_level:.0%}, "
            f"{self.n_resamples} resamples, seed {self.seed}"
        )
        return _without_empty([*blocks, TextBlock(title="Settings", text=settings)])

    def headline_blocks(self) -> list[Block]:
        """Return the report's first blocks, which summarize all criteria."""
        raters, ceiling, compared = self.raters(), self.human_ceiling, self.panel_and_best
        size = (self.n_items, self.n_cells)
        sentences = highlight_sentences(raters, ceiling, compared, size, self.abstain)
        blocks: list[Block] = [TextBlock(title="What to look at first", text="\n".join(sentences))]
        if self.n_tied_labels is not None:
            blocks.append(TextBlock(text=tied_labels_text(self.truth, self.n_tied_labels)))
        if len(raters) > 1:
            if any(done for done, _ in self.macro.defined.values()):
                blocks.append(_macro_table(self.panel))
            blocks.append(_raters_table(raters, ceiling, compared))
            if ceiling is not None:
                blocks.append(_people_table(self.panel, ceiling))
            if compared is not None:
                blocks.append(_same_cells_table(compared))
            blocks += [_comparisons_table(raters), _failures_table(raters)]
        blocks.append(_probabilities_table(raters))
        return _without_empty(blocks)

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        people = self.human_ceiling.per_human.items() if self.human_ceiling else ()
        for who, one in (*self.raters().items(), *people):
            parts = {"macro": one.macro.figures(), "micro": one.micro.figures()}
            parts |= {
                name: found.figures()
                | (one.probabilities[name].figures() if name in one.probabilities else {})
                for name, found in one.per_criterion.items()
            }
            for criterion, figures in parts.items():
                for figure, found in figures.items():
                    at = {"rater": who, "kind": one.kind, "criterion": criterion, "figure": figure}
                    rows.append(at | found.to_dict())
        return rows
