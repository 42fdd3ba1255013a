"""Results of `bias_report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import stdtr

from autorubric._blocks import Block, Cell, TableBlock, TextBlock, p_cell, p_text
from autorubric.metrics._audit._findings import Findings, said
from autorubric.metrics._estimate import Estimate, TestStatistic

SURE = 0.05
"""A bias is reported as significant if its adjusted p-value is below this level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedBias:
    """A bias with its significance test.

    Attributes:
        effect: The bias with its interval.
        p_value: Two-sided p-value for the null hypothesis of no bias; None if it cannot be tested.
        adjusted_p_value: The p-value adjusted by Holm's method over all judges and all kinds in `BIASES`; for
            the differences in `SHIFTS`, over all judges and these differences.
        test: The test statistic; None if there is no p-value.
    """

    __test__ = False  # keeps pytest from collecting the class

    effect: Estimate
    p_value: float | None = None
    adjusted_p_value: float | None = None
    test: TestStatistic | None = None

    @classmethod
    def by_t(cls, effect: Estimate, df: float) -> TestedBias:
        """Build a bias with the t test implied by its standard error; without one, there is no test."""
        if effect.value is None or not effect.se:
            return cls(effect=effect)
        t = effect.value / effect.se
        p_value = float(2 * stdtr(df, -abs(t)))
        test = TestStatistic(name="t", value=t, df=df, p_value=p_value)
        return cls(effect=effect, p_value=p_value, test=test)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeBias:
    """The biases of one judge.

    Attributes:
        leniency: Asymmetry of errors: the mean error at a true value of ½, which is (FPR - FNR) / 2 on binary
            criteria. Positive values are lenient.
        mean_difference: Mean of judge minus truth, as values in [0, 1]: how far scores shift. Unless the
            truth averages ½, it differs from 0 even if errors are symmetric.
        pass_rate_difference: The judge's pass rate (values of at least ½) minus the true pass rate.
        length_lean: Spearman correlation between an item's mean error and its length, given its mean truth.
        position_lean: Fraction of decided comparisons won by the candidate shown first, minus ½.
        self_preference: Judge minus the judges of other families, on texts of the judge's own family minus on
            other texts (a difference in differences).
        own_error_difference: Judge minus truth, on texts of the judge's own family minus on other texts.
        family: The judge's family.
        n_own_items: Number of judged items whose text was written by the judge's own family.
    """

    leniency: TestedBias
    mean_difference: TestedBias
    pass_rate_difference: TestedBias
    length_lean: TestedBias
    position_lean: TestedBias
    self_preference: TestedBias
    own_error_difference: TestedBias
    family: str
    n_own_items: int


BIASES = {
    "leniency": "leniency (mean error at a true value of ½; (FPR − FNR) / 2 on binary criteria)",
    "length_lean": "length (partial Spearman correlation of error and length, given the truth)",
    "position_lean": "position (win rate of the candidate shown first − ½)",
    "self_preference": "self-preference (own family's texts − other texts, relative to other judges)",
    "own_error_difference": "own-family error (mean error on own family's texts − on other texts)",
}
"""Kinds of bias with their descriptions."""

SHIFTS = {
    "mean_difference": "mean difference (judge − truth, in [0, 1]; depends on the base rate)",
    "pass_rate_difference": "pass rate (judge − truth; depends on the base rate)",
}
"""Differences from the truth that symmetric errors can also cause, so they need not be biases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasReport(Findings):
    """The estimated biases of all judges.

    Attributes:
        per_judge: Biases of each judge, by name.
        n_items: Number of items in the table.
        generators: Number of items written by each generator, by name.
        notes: Notes on how the biases were computed.
    """

    per_judge: Mapping[str, JudgeBias]
    n_items: int
    generators: Mapping[str, int]
    notes: tuple[str, ...]

    def blocks(self) -> list[Block]:
        """Return the results as content blocks for the text, HTML and LaTeX renderers, main finding first."""
        blocks: list[Block] = [TextBlock(text=leaning_sentence(self, BIASES))]
        blocks += [
            TableBlock(
                title=words[0].upper() + words[1:],
                columns=("judge", "estimate", "low", "high", "p", "p (Holm)", "n", "reason"),
                rows=tuple(_row(judge, getattr(one, name)) for judge, one in self.per_judge.items()),
            )
            for name, words in (BIASES | SHIFTS).items()
        ]
        if self.notes:
            blocks.append(TextBlock(title="Notes", text="\n".join(f"- {note}" for note in self.notes)))
        return blocks


def _row(judge: str, bias: TestedBias) -> tuple[Cell, ...]:
    effect = bias.effect
    tests = (p_cell(bias.p_value), p_cell(bias.adjusted_p_value))
    return (judge, effect.value, effect.low, effect.high, *tests, effect.n, effect.reason or "")


def leaning_sentence(report: BiasReport, kinds: dict[str, str]) -> str:
    """Summarise the most significant bias, by the p-value adjusted over all judges and kinds of bias."""
    tested: list[tuple[float, str, str, TestedBias]] = []
    for judge, one in report.per_judge.items():
        for kind in kinds:
            bias: TestedBias = getattr(one, kind)
            if bias.adjusted_p_value is not None:
                tested.append((bias.adjusted_p_value, judge, kind, bias))
    if not tested:
        return "No bias could be tested; the tables give the reasons."
    # Unadjusted p-values break ties between adjusted ones.
    p, judge, kind, bias = min(tested, key=lambda one: (one[0], one[3].p_value or 0.0))
    words = kinds[kind].split(" (")[0]
    over = f"adjusted p {p_text(p)} (Holm, {len(tested)} tests over judges and kinds of bias)"
    if p >= SURE:
        return (
            f"No bias is significant. The smallest p-value is for {judge}'s {words}: "
            f"{said(bias.effect)}, {over}."
        )
    return f"The clearest bias is {judge}'s {words}: {said(bias.effect)}, {over}."
