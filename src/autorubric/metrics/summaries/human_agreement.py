"""Agreement among the people who labelled a dataset; no judge is involved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import LabelledDataset, Rater, SupportsGradedItem
from autorubric.metrics.core.read_votes import Modes, cells_of, read_votes
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.result import AuditFindings
from autorubric.metrics.summaries.judge_report import judge_report
from autorubric.metrics.summaries.rater_report import HumanCeilings
from autorubric.metrics.summaries.reliability import Reliability, reliability_by_criterion
from autorubric.metrics.summaries.sides import scale_at
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock


@dataclass(frozen=True, slots=True)
class _NoRun:
    """A run without graded items."""

    item_results: tuple[SupportsGradedItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement(AuditFindings):
    """Agreement among the annotators of a dataset.

    Attributes:
        raters: Names of the annotators, in order of appearance.
        n_items: Number of items with a rating.
        n_shared: Number of items on which two or more annotators rated the same criterion.
        n_tied_labels: Number of cells (pairs of item and criterion) that have no label because ratings tie.
        reliability: Reliability on each criterion, by name (numbered if repeated). Excludes Kendall's W.
        ceiling: Agreement of each annotator with the others, and means over criteria and annotators; None if
            no two annotators rated the same cell.
    """

    raters: tuple[str, ...]
    n_items: int
    n_shared: int
    n_tied_labels: int
    reliability: Mapping[str, Reliability]
    ceiling: HumanCeilings | None

    def blocks(self) -> list[Block]:
        """Return the metrics as content blocks for the text, HTML and LaTeX renderers."""
        macro = self.ceiling.macro if self.ceiling is not None else None
        counts: tuple[tuple[str, Cell], ...] = (
            ("raters", len(self.raters)),
            ("items with a rating", self.n_items),
            ("items rated by two or more", self.n_shared),
            ("cells without a label because of ties", self.n_tied_labels),
            ("mean kappa of an annotator with the others", macro.kappa.value if macro else None),
            ("mean agreement of an annotator with the others", macro.accuracy.value if macro else None),
        )
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                one.n_pairable,
                one.percent_agreement.value,
                one.alpha.value,
                one.alpha.low,
                one.alpha.high,
                one.alpha.reason or "",
            )
            for name, one in self.reliability.items()
        ]
        columns = ("criterion", "items shared", "agreement", "alpha", "low", "high", "reason")
        shown: list[Block] = [
            ScalarBlock(title="Agreement among annotators", figures=counts),
            TableBlock(title="Agreement on each criterion", columns=columns, rows=tuple(rows)),
        ]
        if self.n_shared:
            return shown
        return [*shown, TextBlock(text="No item has two annotators; have annotators label the same items.")]


def human_agreement(
    dataset: LabelledDataset, *, confidence_level: float = 0.95, n_resamples: int = 1000, rng: int = 0
) -> HumanAgreement:
    """Measure how well the annotators of a dataset agree on each criterion.

    Computes the metrics of `reliability` on each criterion's own scale, and `human_ceiling` as in
    `judge_report`. Abstentions (CANNOT_ASSESS, NA) are excluded. High agreement does not imply that the
    ratings are correct.

    Args:
        dataset: Dataset whose items have `ratings`.
        confidence_level: Confidence level of the intervals.
        n_resamples: Number of times the items are resampled.
        rng: Seed for the resampling.

    Raises:
        ArgumentError: If fewer than two annotators rated items.
    """
    table = read_votes(_NoRun(), dataset)
    raters = tuple(name for kind, name in table.raters if kind == "human")
    if len(raters) < 2:
        told = f"only the ratings of {raters[0]!r}" if raters else "no ratings"
        raise ArgumentError(f"the dataset has {told}; agreement requires at least two annotators")
    # `cells_of` reads judges, so the people are presented to it as judges.
    people: tuple[Rater, ...] = tuple(
        ("judge", name) if kind == "human" else (kind, name) for kind, name in table.raters
    )
    cells = cells_of(replace(table, raters=people), Modes())
    options = IntervalOptions(confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    judges: list[Rater] = [("judge", name) for name in raters]
    n_ratings = np.sum([cells.raters[one].status > 0 for one in judges], axis=0)
    shared = [
        cells.item[span][n_ratings[span] >= 2]
        for place, span in enumerate(cells.spans)
        if scale_at(cells, place) is not None
    ]
    report = judge_report(table, confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    rated = np.unique(
        table.item[np.isin(table.rater, [table.raters.index(("human", one)) for one in raters])]
    )
    return HumanAgreement(
        raters=raters,
        n_items=len(rated),
        n_shared=len(set().union(*(one.tolist() for one in shared))),
        n_tied_labels=table.n_tied_labels,
        reliability=reliability_by_criterion(cells, judges, Modes(), options),
        ceiling=report.human_ceiling,
    )
