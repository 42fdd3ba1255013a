"""Results of `corrected_score`."""

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
    """The corrected mean value of one criterion.

    Attributes:
        value: Mean value on [0, 1]; the pass rate of a binary criterion.
        raw: The judges' own mean value.
        distribution: Corrected shares of the answers, by label; None for ppi++ and if refused.
        lam: λ of ppi++; else None.
        n: Number of items judged.
        n_calibration: Number of items judged and labelled.
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
    """The corrected mean score of a run.

    Attributes:
        score: The corrected mean of normalised scores before clamping and length penalty, which penalties can
            move below 0 and bonuses above 1; for `on="items"`, after clamping, on [0, 1].
        raw: The same mean, from the judges' decisions.
        labelled_only: The same mean, from the labels alone, if every criterion has some.
        per_criterion: The corrected criteria; empty for `on="items"`.
        method: Method of the correction.
        on: Whether criteria or item scores were corrected.
        n_items: Number of items judged.
        n_labelled: Number of judged items that have labels.
        n_clamped: Number of items whose weighted sum lies outside [0, 1]; if there are any, the mean score
            after clamping differs.
        n_incomplete: Number of items judged on some criteria only: their own scores have smaller
            denominators, which a sum over criteria does not reproduce.
        n_unjudged: Number of items without a decision, for example if every verdict was lost or assumed; left
            out.
        n_labelled_unjudged: Number of items with labels but without a decision, including those of the
            calibration; left out.
        bends: What makes the score differ from a weighted sum: groups, gates, conditions. Like the counts of
            clamped and incomplete items, it only applies to `on="criteria"`.
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
        """Return all fields as JSON-serialisable data; never NaN."""
        return {**asdict(self), "bends": list(self.bends)}

    def blocks(self) -> list[Block]:
        """Return the score in a sentence, then the figures and each criterion, for any renderer."""
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
        """Return the score and the criteria as plain text."""
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
