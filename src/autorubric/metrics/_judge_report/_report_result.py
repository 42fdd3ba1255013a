"""Result of `judge_report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from autorubric._blocks import Block, TextBlock
from autorubric._frames import Library, in_library
from autorubric.dataset import TruthRule
from autorubric.metrics._audit._findings import Findings
from autorubric.metrics._judge_report._agreement_result import Agreement
from autorubric.metrics._judge_report._panel_and_best import PanelAndBest
from autorubric.metrics._judge_report._rater_report import (
    HeadlineFigures,
    HumanCeilings,
    MacroFigures,
    RaterFailures,
    RaterReport,
    names_of,
)
from autorubric.metrics._judge_report._reliability import Reliability
from autorubric.metrics._judge_report._report_blocks import headline_blocks, report_blocks
from autorubric.metrics._judge_report._sides import AbstainMode
from autorubric.metrics._warnings import tied_labels_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport(Findings):
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
