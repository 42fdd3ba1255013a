"""What `panel_audit` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from autorubric._blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock
from autorubric.metrics._audit._findings import FIGURE_COLUMNS, Findings, figure_cells
from autorubric.metrics._audit._first_looks import panel_sentence
from autorubric.metrics._estimate import Estimate

Search: TypeAlias = Literal["exhaustive", "greedy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCorrelation:
    """How far two judges err together.

    Attributes:
        first: A judge.
        second: Another.
        pooled: Correlation of their errors within criteria: Σ_c S_ab / √(Σ_c S_aa Σ_c S_bb), the sums of
            squares and products S being around each criterion's own means.
        per_criterion: The correlation on each criterion; phi where errors are 0 or 1.
    """

    first: str
    second: str
    pooled: Estimate
    per_criterion: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeInPanel:
    """What a judge is to its panel.

    Attributes:
        alone: The judge's own figure.
        without: The figure of the panel of the others.
        gain: Panel minus `without`, paired by item: what the judge adds.
    """

    alone: Estimate
    without: Estimate
    gain: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelChoice:
    """Judges chosen on one part of the items and reported on the other.

    Attributes:
        judges: The chosen ones; empty where none could be chosen.
        chosen: Their figure on the items that they were not chosen on.
        panel: The figure of all judges on these items.
        difference: Panel minus chosen, paired by item.
        n_items_chosen_on: Items that decided.
        n_items_reported: Items of the figures.
        search: Whether all panels were tried, or judges were added one at a time.
    """

    judges: tuple[str, ...]
    chosen: Estimate
    panel: Estimate
    difference: Estimate
    n_items_chosen_on: int
    n_items_reported: int
    search: Search


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatorComparison:
    """Dawid–Skene labels against the majority's, on categorical criteria.

    Attributes:
        dawid_skene: Figure of the labels that Dawid–Skene infers from the decisions, without the truth.
        majority: Figure of the majority on the same cells.
        difference: Dawid–Skene minus majority, paired by item.
    """

    dawid_skene: Estimate
    majority: Estimate
    difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAudit(Findings):
    """Whether the judges of a panel are worth their number.

    The figure of a panel is the mean over criteria of how right it is, in [0, 1]: accuracy where answers are
    categories (1/t where the true one is among t that lead), 1 - mean absolute error where they have values.

    Attributes:
        judges: The judges.
        n_items: Items with a cell that counts.
        n_cells: Cells with a label and some judge's answer.
        n_complete: Those that every judge answered; on them all panels are compared.
        left_out: Criteria whose answers cannot be set against a label: numbers without a range, texts.
        coverage: Share of the labelled cells that every judge answered, on [0, 1]. The panel, judges and
            smaller panels are compared on these; None without a labelled cell.
        epsilon: What the smallest panel may fall short by.
        panel: Figure of all judges.
        per_judge: What each judge is to the panel.
        correlations: Error correlations of all pairs of judges.
        mean_correlation: Their mean r̄, over the pairs whose correlation is defined.
        n_pairs_defined: How many pairs these are.
        effective_judges: k / (1 + (k - 1) r̄): so many judges with independent errors would leave the mean
            error the same variance. None where the denominator is not above 0 (`errors_cancel`).
        best_single: The best judge against the panel.
        smallest_panel: The smallest panel within `epsilon` of all judges.
        aggregators: Dawid–Skene against majority.
    """

    judges: tuple[str, ...]
    n_items: int
    n_cells: int
    n_complete: int
    coverage: float | None
    left_out: tuple[str, ...]
    epsilon: float
    panel: Estimate
    per_judge: Mapping[str, JudgeInPanel]
    correlations: tuple[ErrorCorrelation, ...]
    mean_correlation: Estimate
    n_pairs_defined: int
    effective_judges: Estimate
    best_single: PanelChoice
    smallest_panel: PanelChoice
    aggregators: AggregatorComparison

    def blocks(self) -> list[Block]:
        """The figures, what to look at first coming first."""
        defined = f"{self.n_pairs_defined} of {len(self.correlations)} pairs"
        blocks: list[Block] = [
            TextBlock(text=panel_sentence(self)),
            ScalarBlock(
                title="Panel",
                figures=(
                    ("judges", len(self.judges)),
                    ("items", self.n_items),
                    ("labelled cells", self.n_cells),
                    ("answered by every judge", self.n_complete),
                    ("coverage", self.coverage),
                ),
            ),
            _figures(
                "Panel against the truth",
                {
                    "panel (mean over criteria)": self.panel,
                    f"mean error correlation ({defined})": self.mean_correlation,
                    "effective number of judges": self.effective_judges,
                },
            ),
            _judges(self.per_judge),
            _figures(
                "Error correlations within criteria",
                {f"{one.first} – {one.second}": one.pooled for one in self.correlations},
            ),
            _choice("Best single judge against the panel", self.best_single),
            _choice(f"Smallest panel within {self.epsilon:g}", self.smallest_panel),
            _figures(
                "Dawid–Skene against majority (categories)",
                {
                    "Dawid–Skene": self.aggregators.dawid_skene,
                    "majority": self.aggregators.majority,
                    "difference": self.aggregators.difference,
                },
            ),
        ]
        if self.left_out:
            text = f"Left out, for answers that cannot be set against a label: {', '.join(self.left_out)}"
            blocks.append(TextBlock(title="Warnings", text=text))
        return blocks


def _figures(title: str, figures: Mapping[str, Estimate]) -> TableBlock:
    return TableBlock(
        title=title,
        columns=("figure", *FIGURE_COLUMNS),
        rows=tuple((name, *figure_cells(one)) for name, one in figures.items()),
    )


def _judges(per_judge: Mapping[str, JudgeInPanel]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (name, one.alone.value, one.without.value, one.gain.value, one.gain.low, one.gain.high)
        for name, one in per_judge.items()
    ]
    return TableBlock(
        title="Leave one judge out",
        columns=("judge", "alone", "panel without", "gain by the judge", "low", "high"),
        rows=tuple(rows),
    )


def _choice(title: str, choice: PanelChoice) -> TableBlock:
    who = ", ".join(choice.judges) or "none"
    figures = {f"chosen: {who}": choice.chosen, "all judges": choice.panel, "difference": choice.difference}
    note = f"{choice.n_items_chosen_on} items to choose on, {choice.n_items_reported} to report on"
    if len(choice.judges) > 1 or choice.search == "greedy":
        note += f", {choice.search} search"
    return _figures(f"{title} ({note})", figures)
