"""Result of `judge_report`, and its blocks, which all renderers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from autorubric.datasets.item import TruthRule
from autorubric.metrics.audit.resampled import AuditFindings
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.summaries.agreement import Agreement
from autorubric.metrics.summaries.data_warnings import tied_labels_text
from autorubric.metrics.summaries.highlights import PanelAndBest, first_looks
from autorubric.metrics.summaries.rater_report import (
    HeadlineFigures,
    HumanCeilings,
    MacroFigures,
    RaterFailures,
    RaterReport,
    few_items_each,
    names_of,
)
from autorubric.metrics.summaries.reliability import Reliability
from autorubric.metrics.summaries.rendering import TRUE_RATES_COLUMNS, TRUE_RATES_TITLE, table_of
from autorubric.metrics.summaries.sides import AbstainMode
from autorubric.metrics.summaries.table_metrics import MET
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock
from autorubric.support.frames import Library, in_library

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


_WORDS = {
    "f1": "F1",
    "macro_f1": "macro F1",
    "recall": "sensitivity (recall, TPR)",
    "specificity": "specificity (TNR)",
}
_SCORES = ("rmse", "mae", "pearson", "spearman", "kendall", "ccc")


def report_blocks(
    headline: Sequence[Block],
    raters: Mapping[str, RaterReport],
    ceiling: HumanCeilings | None,
    reliability: Mapping[str, Reliability],
    told: Sequence[str],
) -> list[Block]:
    """Return all blocks of a report, headline first. `told` contains the warnings, then the settings."""
    panel = raters["panel"]
    thin = any(few_items_each(one) is not None for one in raters.values())
    blocks = [
        *headline,
        *([_criteria_table(panel, ceiling, reliability)] if len(raters) > 1 else []),
        _true_rates_table(panel),
        _pooled_table("Panel, all cells pooled (mixes base rates; see the means first)", panel.micro),
    ]
    if len(panel.by_scale) > 1 or thin:
        blocks.append(_scales_table(raters))
    if panel.scores is not None:
        blocks.append(_scores_table(raters))
    if told[:-1]:
        blocks.append(TextBlock(title="Warnings", text="\n".join(f"- {warning}" for warning in told[:-1])))
    blocks.append(TextBlock(title="Settings", text=told[-1]))
    return _with_rows(blocks)


def headline_blocks(
    raters: Mapping[str, RaterReport],
    ceiling: HumanCeilings | None,
    compared: PanelAndBest | None,
    size: tuple[int, int],
    abstain: AbstainMode,
) -> list[Block]:
    """Return the blocks that summarize all criteria; `size` is `(n_items, n_cells)`, the labelled ones."""
    looks = first_looks(raters, ceiling, compared, size, abstain)
    blocks: list[Block] = [TextBlock(title="What to look at first", text="\n".join(looks))]
    if len(raters) > 1:
        if any(done for done, _ in raters["panel"].macro.defined.values()):
            blocks.append(_macro_table(raters["panel"], ceiling))
        blocks += [
            _raters_table(raters, ceiling, compared),
            *([_same_cells_table(compared)] if compared is not None else []),
            _comparisons_table(raters),
            _failures_table(raters),
        ]
    return _with_rows(blocks)


def _with_rows(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if not isinstance(block, TableBlock) or block.rows]


def _ends(found: Estimate) -> str:
    return "" if found.low is None or found.high is None else f"[{found.low:.3f}, {found.high:.3f}]"


def _words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def _macro_table(panel: RaterReport, ceiling: HumanCeilings | None) -> TableBlock:
    rows: list[tuple[Cell, ...]] = []
    for name, found in panel.macro.figures().items():
        done, of = panel.macro.defined[name]
        if not of:
            continue
        row: tuple[Cell, ...] = (_words(name), found.value, _ends(found), f"{done} of {of}")
        if ceiling is not None:
            gap = getattr(ceiling.gap["panel"], name)
            row = (*row, getattr(ceiling.macro, name).value, gap.value, _ends(gap))
        rows.append(row)
    ceilings = () if ceiling is None else ("people", "panel - person", "interval of the difference")
    return TableBlock(
        title="Panel, mean over criteria",
        columns=("figure", "mean", "interval", "criteria defined", *ceilings),
        rows=tuple(rows),
    )


def _raters_table(
    raters: Mapping[str, RaterReport], ceiling: HumanCeilings | None, compared: PanelAndBest | None
) -> TableBlock:
    shown = [name for name, (_, of) in raters["panel"].macro.defined.items() if of]

    def row(who: str, macro: HeadlineFigures, coverage: float | None) -> tuple[Cell, ...]:
        found = [getattr(macro, name) for name in shown]
        leading = [_ends(found[shown.index("kappa")])] if "kappa" in shown else []
        return (who, coverage, *(one.value for one in found), *leading)

    rows = [row(who, one.macro, one.coverage) for who, one in raters.items()]
    if ceiling is not None:
        how = "each against the others" if ceiling.made_the_truth else "not comparable"
        rows.append(row(f"annotators ({how})", ceiling.macro, None))
    interval = ("interval of kappa",) if "kappa" in shown else ()
    ties = "; ties count as the conservative answer" if compared and compared.n_ties_answered else ""
    return TableBlock(
        title=f"Judges, mean over criteria, on the labelled cells that each judge answered (coverage){ties}",
        columns=("rater", "coverage", *map(_words, shown), *interval),
        rows=tuple(rows) if shown else (),
    )


def _same_cells_table(found: PanelAndBest) -> TableBlock:
    figures = {"panel": found.panel, found.judge: found.best, "panel - judge": found.difference}
    return TableBlock(
        title=f"Panel and best judge on the same cells: {_words(found.figure)}, mean over criteria",
        columns=("rater", _words(found.figure), "interval", "cells", "coverage"),
        rows=tuple(
            (who, one.value, _ends(one), found.n_cells, found.coverage) for who, one in figures.items()
        ),
    )


def _comparisons_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    found = [(who, name, one) for who, rater in raters.items() for name, one in rater.comparisons.items()]
    return table_of(
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
    return table_of(
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
        },
    )


def kappa_on(found: Agreement) -> Estimate:
    """Return kappa on a criterion, weighted if the criterion is ordinal."""
    return found.weighted_kappa if found.level == "ordinal" else found.kappa


def _criteria_table(
    panel: RaterReport, ceiling: HumanCeilings | None, reliability: Mapping[str, Reliability]
) -> TableBlock:
    agreed = panel.per_criterion
    columns: dict[str, Callable[[str], Cell]] = {
        "criterion": lambda name: name,
        "level": lambda name: agreed[name].level,
        "n": lambda name: agreed[name].n,
        "accuracy": lambda name: agreed[name].accuracy.value,
        "kappa": lambda name: kappa_on(agreed[name]).value,
        "interval": lambda name: _ends(kappa_on(agreed[name])),
        "pearson": lambda name: agreed[name].pearson.value,
        "RMSE": lambda name: agreed[name].rmse.value,
    }
    if ceiling is not None:
        people = ceiling.per_criterion
        columns["people's kappa"] = lambda name: people[name].kappa.value if name in people else None
    if reliability:
        columns["alpha among judges"] = lambda name: reliability[name].alpha.value
    return table_of("Panel on each criterion", agreed, columns)


def _true_rates_table(panel: RaterReport) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(one.recall.value, _ends(one.recall), sum(one.table[MET])),
            *(one.specificity.value, _ends(one.specificity), one.n - sum(one.table[MET])),
        )
        for name, one in panel.per_criterion.items()
        if one.level == "binary" and one.n
    ]
    return TableBlock(title=TRUE_RATES_TITLE, columns=TRUE_RATES_COLUMNS, rows=tuple(rows))


def _pooled_table(title: str, found: HeadlineFigures) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (_words(name), one.value, _ends(one), one.n)
        for name, one in found.figures().items()
        if one.value is not None
    ]
    return TableBlock(title=title, columns=("figure", "estimate", "interval", "n"), rows=tuple(rows))


def _scales_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    found = [(who, scale, one) for who, rater in raters.items() for scale, one in rater.by_scale.items()]
    return table_of(
        "Cells pooled by scale",
        found,
        {
            "rater": lambda row: row[0],
            "scale": lambda row: row[1],
            "n": lambda row: row[2].accuracy.n,
            "accuracy": lambda row: row[2].accuracy.value,
            "balanced accuracy": lambda row: row[2].balanced_accuracy.value,
            "kappa": lambda row: row[2].kappa.value,
            "interval": lambda row: _ends(row[2].kappa),
        },
    )


def _scores_table(raters: Mapping[str, RaterReport]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (who, one.n, *(getattr(one, name).value for name in _SCORES), one.bias.mean_bias, one.bias.p_value)
        for who, rater in raters.items()
        if (one := rater.scores) is not None
    ]
    names = ("RMSE", "MAE", *_SCORES[2:], "bias (rater - truth)", "bias p")
    return TableBlock(
        title="Item scores, without length penalty", columns=("rater", "n", *names), rows=tuple(rows)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport(AuditFindings):
    """Report on the quality of the judges in a run or in a table of labels.

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
        return dict(zip(names_of(everyone), everyone, strict=True))

    def blocks(self) -> list[Block]:
        """Return the report as content blocks for text, HTML and LaTeX, most important first."""
        return report_blocks(
            self.headline_blocks(), self.raters(), self.human_ceiling, self.reliability, self._told()
        )

    def headline_blocks(self) -> list[Block]:
        """Return the report's first blocks, which summarize all criteria."""
        size = (self.n_items, self.n_cells)
        blocks = headline_blocks(self.raters(), self.human_ceiling, self.panel_and_best, size, self.abstain)
        if self.n_tied_labels is None:
            return blocks
        return [blocks[0], TextBlock(text=tied_labels_text(self.truth, self.n_tied_labels)), *blocks[1:]]

    def _told(self) -> list[str]:
        """Return the warnings, followed by the settings."""
        made = (
            f"abstain={self.abstain!r}; intervals: {self.confidence_level:.0%}, "
            f"{self.n_resamples} resamples, seed {self.seed}"
        )
        return [*self.warnings, made]

    @overload
    def to_dataframe(self, library: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_dataframe(self, library: Literal["polars"]) -> pl.DataFrame: ...
    def to_dataframe(self, library: Library = "pandas") -> pd.DataFrame | pl.DataFrame:
        """Return a DataFrame with one row per rater, criterion (or `macro` or `micro`) and metric.

        With `library="polars"`, returns a polars DataFrame in which columns of mixed types are strings.
        """
        import pandas as pd  # imported here so that pandas is loaded only when needed

        rows = []
        people = self.human_ceiling.per_human.items() if self.human_ceiling else ()
        for who, one in (*self.raters().items(), *people):
            parts = {"macro": one.macro.figures(), "micro": one.micro.figures()}
            parts |= {name: found.figures() for name, found in one.per_criterion.items()}
            for criterion, figures in parts.items():
                for figure, found in figures.items():
                    at = {"rater": who, "kind": one.kind, "criterion": criterion, "figure": figure}
                    rows.append(at | found.to_dict())
        return in_library(pd.DataFrame(rows), library)
