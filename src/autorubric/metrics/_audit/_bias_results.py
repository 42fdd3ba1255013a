"""What `bias_report` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autorubric._blocks import Block, Cell, TableBlock, TextBlock
from autorubric.metrics._audit._findings import Findings
from autorubric.metrics._audit._first_looks import leaning_sentence
from autorubric.metrics._estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedBias:
    """A bias with its test.

    Attributes:
        effect: The bias, with its interval.
        p_value: Two-sided p that there is none; None where it cannot be tested.
        adjusted_p_value: The same adjusted over the judges (Holm), for each kind of bias on its own.
    """

    __test__ = False  # the name is no test's

    effect: Estimate
    p_value: float | None = None
    adjusted_p_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeBias:
    """The biases of one judge.

    Attributes:
        leniency: Mean of judge minus truth, by value on [0, 1]; above 0 is lenient.
        pass_rate_difference: Share of passes (values of at least ½) of the judge minus the truth's.
        length_lean: Spearman correlation of an item's mean error with its length, given its mean truth.
        position_lean: Share of decided comparisons won by the candidate shown first, minus ½.
        self_preference: Judge minus the judges of other families, on texts of the own family minus on
            others: a difference in differences.
        own_error_difference: Judge minus truth on texts of the own family minus on others.
        family: The judge's family.
        n_own_items: Items of the own family that count.
    """

    leniency: TestedBias
    pass_rate_difference: TestedBias
    length_lean: TestedBias
    position_lean: TestedBias
    self_preference: TestedBias
    own_error_difference: TestedBias
    family: str
    n_own_items: int


BIASES = {
    "leniency": "leniency (judge − truth, on [0, 1])",
    "pass_rate_difference": "pass rate (judge − truth)",
    "length_lean": "length (partial Spearman of error and length, given truth)",
    "position_lean": "position (wins of the first shown − ½)",
    "self_preference": "self-preference (own family − others, against other judges)",
    "own_error_difference": "own family (error on own − on others)",
}
"""Kinds of bias, and words for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasReport(Findings):
    """Where judges lean.

    Attributes:
        per_judge: The biases of each judge.
        n_items: Items of the table.
        generators: How many items each generator wrote.
        notes: What the reader should know.
    """

    per_judge: Mapping[str, JudgeBias]
    n_items: int
    generators: Mapping[str, int]
    notes: tuple[str, ...]

    def blocks(self) -> list[Block]:
        """The figures, what to look at first coming first."""
        blocks: list[Block] = [TextBlock(text=leaning_sentence(self, BIASES))]
        blocks += [
            TableBlock(
                title=words[0].upper() + words[1:],
                columns=("judge", "estimate", "low", "high", "p", "p (Holm)", "n", "why not"),
                rows=tuple(_row(judge, getattr(one, name)) for judge, one in self.per_judge.items()),
            )
            for name, words in BIASES.items()
        ]
        if self.notes:
            blocks.append(TextBlock(title="Mind", text="\n".join(f"- {note}" for note in self.notes)))
        return blocks


def _row(judge: str, bias: TestedBias) -> tuple[Cell, ...]:
    effect = bias.effect
    tests = (bias.p_value, bias.adjusted_p_value)
    return (judge, effect.value, effect.low, effect.high, *tests, effect.n, effect.reason or "")
