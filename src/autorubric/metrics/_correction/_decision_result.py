"""The result of `decision`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from autorubric._blocks import Block, Cell, ScalarBlock, TextBlock, render_text
from autorubric.metrics._correction._sayings import ends_text
from autorubric.metrics._estimate import Estimate, Reason

Verdict: TypeAlias = Literal["PASS", "FAIL", "UNDECIDED"]
Source: TypeAlias = Literal["samples", "judges", "judge_error"]

SLACK = 1e-9
"""Tolerance below the threshold, since scores are sums of floats."""

_WORDS = {"samples": "repeated samples", "judges": "several judges", "judge_error": "labelled items"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """A verdict on whether a score reaches a threshold.

    Attributes:
        verdict: `"PASS"` if the interval and the hard bounds reach the threshold, `"FAIL"` if they are below
            it, and `"UNDECIDED"` otherwise; always `"UNDECIDED"` without a source of spread.
        threshold: The lowest score that passes.
        score: The score with its interval: the report's own score or, with `judge_error`, the true score
            predicted from the labelled items.
        raw: The report's own score.
        low: Lower bound of the interval of `score`; None if there is no interval.
        high: Upper bound of the interval of `score`; None if there is no interval.
        hard_low: The lower bound if every open or failed criterion had its worst value; without a source of
            spread, the score of the votes with these criteria at their worst.
        hard_high: The upper bound if every such criterion had its best value.
        sources: Sources of spread in the interval: repeated samples and a panel of judges, or only
            `judge_error`, the differences between true and judged scores of labelled items, which include the
            other two.
        n_open: Number of criteria that were left open, failed or were not asked.
        confidence_level: Confidence level of the interval.
        reason: Reason why there is no interval: `no_spread` (one vote per criterion and no labelled items),
            `no_values` (no score), `too_few_labels` (fewer labelled items than the level requires, 19 at 95
            %) or `degenerate_resamples` (no score in more than a tenth of the resamples).
    """

    verdict: Verdict
    threshold: float
    score: Estimate
    raw: Estimate
    low: float | None
    high: float | None
    hard_low: float | None
    hard_high: float | None
    sources: tuple[Source, ...]
    n_open: int
    confidence_level: float
    reason: Reason | None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable data without NaN."""
        return {**asdict(self), "score": self.score.to_dict(), "sources": list(self.sources)}

    def blocks(self) -> list[Block]:
        """Return blocks with the verdict in a sentence and its figures."""
        figures: tuple[tuple[str, Cell], ...] = (
            ("score", self.score.value),
            (f"interval, {self.confidence_level:.0%}", ends_text(self.low, self.high) or "none"),
            ("score of the report", self.raw.value),
            ("sources of spread", ", ".join(_WORDS[one] for one in self.sources) or "none"),
            ("open criteria", self.n_open),
        )
        if self.n_open:
            figures += (("bounds with these at worst or best", ends_text(self.hard_low, self.hard_high)),)
        return [TextBlock(title="Decision", text=self._sentence()), ScalarBlock(figures=figures)]

    def summary(self) -> str:
        """Return the verdict and its figures as plain text."""
        return render_text(self.blocks())

    def _sentence(self) -> str:
        level, threshold = f"{self.confidence_level:.0%}", f"{self.threshold:g}"
        if self.verdict == "PASS":
            return f"PASS: at {level} confidence, the score reaches {threshold}."
        if self.verdict == "FAIL":
            return f"FAIL: at {level} confidence, the score is below {threshold}."
        if self.reason == "no_spread":
            return (
                "UNDECIDED: one vote per criterion shows no spread; grade with several samples or judges, or "
                "pass judge_error, a labelled run of the same judge."
            )
        if self.reason == "too_few_labels":
            return f"UNDECIDED: {self.score.n} labelled items are too few for an interval at {level}."
        if self.reason is not None:
            return f"UNDECIDED: the score has no interval ({self.reason})."
        if self.n_open and decided(self.threshold, self.low, self.high) != "UNDECIDED":
            return f"UNDECIDED: the open criteria could still move the score across {threshold}."
        return f"UNDECIDED: at {level} confidence, the score may be on either side of {threshold}."


def decided(threshold: float, low: float | None, high: float | None) -> Verdict:
    """Return the verdict for an interval with these bounds."""
    if low is None or high is None:
        return "UNDECIDED"
    if low >= threshold - SLACK:
        return "PASS"
    return "FAIL" if high < threshold - SLACK else "UNDECIDED"
