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
        value: Mean value in [0, 1]; for a binary criterion, the pass rate.
        raw: The judges' own mean value.
        distribution: Corrected proportion of each answer, by label; None for ppi++ or if undefined.
        lam: λ of ppi++; None for other methods.
        n: Number of judged items.
        n_calibration: Number of items that are both judged and labelled.
        reason: Reason why there is no corrected value; None if there is one.
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
        score: Corrected mean of normalised scores before clamping and length penalty; it can be below 0 with
            penalties and above 1 with bonuses. With `on="items"`, it is clamped to [0, 1].
        raw: The same mean computed from the judges' decisions.
        labelled_only: The same mean from the labels alone; undefined unless every criterion has labels.
        per_criterion: Corrected criteria by name; empty with `on="items"`.
        method: Correction method.
        on: Whether criteria or item scores were corrected.
        n_items: Number of judged items.
        n_labelled: Number of judged items that have labels.
        n_clamped: Number of items whose weighted sum is outside [0, 1]. If there are any, the mean of the
            clamped scores differs from `score`.
        n_incomplete: Number of items judged on only some of the criteria. Their scores have smaller
            denominators, which a sum over criteria does not reproduce.
        n_unjudged: Number of items excluded because they have no decision (e.g. all verdicts were lost).
        n_labelled_unjudged: Number of excluded items that have labels, including items of the calibration
            run.
        bends: Features that make the score nonlinear: groups, gates, conditions. Like `n_clamped` and
            `n_incomplete`, they apply only to `on="criteria"`.
        reason: Reason why there is no corrected score; None if there is one.
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
        """Return all fields as JSON-serialisable data without NaN."""
        return {**asdict(self), "bends": list(self.bends)}

    def blocks(self) -> list[Block]:
        """Return content blocks: a sentence with the score, its figures and a table of the criteria."""
        counts: tuple[tuple[str, Cell], ...] = (
            ("items", self.n_items),
            ("labelled items", self.n_labelled),
            ("items excluded because they have no decision", self.n_unjudged),
            ("labelled items excluded because they have no decision", self.n_labelled_unjudged),
        )
        if self.on == "criteria":
            counts += (
                ("items with a clamped score", self.n_clamped),
                ("items with abstentions", self.n_incomplete),
                ("nonlinear parts", ", ".join(self.bends) or "none"),
            )
        figures = {"corrected": self.score, "judged": self.raw, "labels only": self.labelled_only}
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
            text = f"The mean score could not be corrected ({self.reason}); the judges' own mean is {judged}."
            if self.reason != "too_few_labels":
                return text
            return f"{text} Label more items, or pass a labelled run of the same judges as calibration."
        without = "" if self.score.low is not None or not self.score.reason else f" ({self.score.reason})"
        return (
            f"Corrected with {self.method}, the mean score is {figure_text(self.score)}{without}; the "
            f"judges' own mean is {judged}."
        )

    def _criteria(self) -> TableBlock:
        rows: list[tuple[Cell, ...]] = [
            (
                name, one.raw.value, one.value.value, ends_text(one.value.low, one.value.high), one.n,
                one.n_calibration, one.value.reason or "",
            )
            for name, one in self.per_criterion.items()
        ]  # fmt: skip
        columns = ("criterion", "judged", "corrected", "interval", "n", "labelled", "reason")
        return TableBlock(title="Mean value of each criterion", columns=columns, rows=tuple(rows))
