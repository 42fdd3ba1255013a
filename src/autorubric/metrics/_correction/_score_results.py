"""What `corrected_score` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from autorubric._blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock, render_text
from autorubric.metrics._correction._arguments import CorrectionMethod
from autorubric.metrics._correction._sayings import ends_text, figure_text, figures_table
from autorubric.metrics._estimate import Estimate, Reason

CorrectedOn: TypeAlias = Literal["criteria", "items"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedCriterion:
    """One criterion's mean value, corrected.

    Attributes:
        value: Mean value on [0, 1]; of a binary criterion the pass rate.
        raw: The judges' own mean value.
        distribution: Corrected shares of its answers by label; None for ppi++ and where refused.
        lam: λ of ppi++; else None.
        n: Items judged.
        n_calibration: Items judged and labelled.
        reason: Why there is no corrected value.
    """

    value: Estimate
    raw: Estimate
    distribution: Mapping[str, float] | None
    lam: float | None
    n: int
    n_calibration: int
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedScore:
    """The mean score of a run, corrected.

    Attributes:
        score: The corrected mean of normalised scores before clamping and length penalty, which penalties can
            bring below 0 and bonuses above 1; on items after clamping, on [0, 1].
        raw: The same mean by the judges' decisions.
        labelled_only: The same mean of the labels alone, where every criterion has some.
        per_criterion: The criteria; empty for `on="items"`.
        method: Method of the correction.
        on: What was corrected.
        n_items: Items judged.
        n_labelled: Those of them that have labels.
        n_clamped: Items whose weighted sum leaves [0, 1]: with any, the mean score after clamping is another.
        n_incomplete: Items judged on some criteria only: their own scores have smaller denominators, which a
            sum over criteria does not follow.
        n_unjudged: Items without a decision, as where every verdict was lost or assumed: left out.
        n_labelled_unjudged: Items with labels and without a decision, of the calibration too: left out.
        bends: What makes the score another thing than a weighted sum: groups, gates, conditions. This and the
            counts of clamped and incomplete items are of criteria, and say nothing on items.
        reason: Why there is no corrected score.
    """

    score: Estimate
    raw: Estimate
    labelled_only: Estimate
    per_criterion: Mapping[str, CorrectedCriterion]
    method: CorrectionMethod
    on: CorrectedOn
    n_items: int
    n_labelled: int
    n_clamped: int = 0
    n_incomplete: int = 0
    n_unjudged: int = 0
    n_labelled_unjudged: int = 0
    bends: tuple[str, ...] = ()
    reason: Reason | None

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON can carry them; never NaN."""
        return {**asdict(self), "bends": list(self.bends)}

    def blocks(self) -> list[Block]:
        """The score in a sentence, then the figures and each criterion, for any renderer."""
        counts: tuple[tuple[str, Cell], ...] = (
            ("items", self.n_items),
            ("labelled items", self.n_labelled),
            ("items without a decision, left out", self.n_unjudged),
            ("labelled items without a decision, left out", self.n_labelled_unjudged),
        )
        if self.on == "criteria":
            counts += (
                ("items at which clamping bites", self.n_clamped),
                ("items with abstentions", self.n_incomplete),
                ("bent by", ", ".join(self.bends) or "nothing"),
            )
        figures = {"corrected": self.score, "judged": self.raw, "labelled items alone": self.labelled_only}
        blocks: list[Block] = [
            TextBlock(title="Corrected score", text=self._sentence()),
            figures_table(figures, "Mean score" + (" before clamping" if self.on == "criteria" else "")),
            ScalarBlock(figures=counts),
        ]
        return [*blocks, self._criteria()] if self.per_criterion else blocks

    def summary(self) -> str:
        """The score and the criteria as plain text."""
        return render_text(self.blocks())

    def _sentence(self) -> str:
        judged = "undefined" if self.raw.value is None else f"{self.raw.value:.3f}"
        if self.score.value is None:
            text = f"The mean score is not corrected ({self.reason}); the judges' own is {judged}."
            if self.reason != "too_few_labels":
                return text
            return f"{text} Label items, or give calibration=, a labelled run of the same judges."
        without = "" if self.score.low is not None or not self.score.reason else f" ({self.score.reason})"
        return (
            f"Corrected by {self.method}, the mean score is {figure_text(self.score)}{without}; the judges' "
            f"own is {judged}."
        )

    def _criteria(self) -> TableBlock:
        rows: list[tuple[Cell, ...]] = [
            (
                name, one.raw.value, one.value.value, ends_text(one.value.low, one.value.high), one.n,
                one.n_calibration, one.value.reason or "",
            )
            for name, one in self.per_criterion.items()
        ]  # fmt: skip
        columns = ("criterion", "judged", "corrected", "interval", "n", "labelled", "why not")
        return TableBlock(title="Mean value of each criterion", columns=columns, rows=tuple(rows))
