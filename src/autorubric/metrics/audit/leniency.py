"""Results of `bias_report`; leniency, position bias and mean differences from the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from scipy.special import stdtr

from autorubric.metrics.audit.labelled_votes import distinct_names
from autorubric.metrics.audit.resampled import AuditFindings, mean_estimate, said
from autorubric.metrics.core.estimate import Estimate, Reason, TestStatistic, is_rounding
from autorubric.metrics.core.intervals import t_quantile
from autorubric.metrics.core.read_votes import Modes, cells_of
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import ANSWERED, DECIDED, VotesTable
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock, p_cell, p_text

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
class BiasReport(AuditFindings):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """Values of the judges' decisions and of the truth, without abstentions and failures.

    Values of penalties are reversed to 1 - value, so that higher values always favour the text.

    Attributes:
        item_ids: Ids of the items.
        item: Position of the item of each cell (one criterion of one item), shape `(n_cells,)`.
        criterion: Position of each cell's criterion, same shape.
        judges: Ids of the judges.
        value: Each judge's value, shape `(n_cells, n_judges)`; NaN if missing.
        truth: The label's value, shape `(n_cells,)`; NaN if missing.
        n_items: Number of items in the table.
        left_out: Names of criteria whose answers have no value.
        unanswered: Names of criteria that no judge answered.
        has_penalties: Whether any values were reversed.
    """

    item_ids: tuple[str, ...]
    item: Codes
    criterion: Codes
    judges: tuple[str, ...]
    value: Array
    truth: Array
    n_items: int
    left_out: tuple[str, ...]
    unanswered: tuple[str, ...]
    has_penalties: bool

    @property
    def reason(self) -> str:
        """Reason why values cannot be compared with the truth."""
        return "no_pairs" if bool((~np.isnan(self.truth)).any()) else "no_truth"


def valued_of(table: VotesTable, weights: Array) -> Valued:
    """Return the values in a votes table, reversed where `weights`, `(n_items, n_criteria)`, are negative."""
    cells = cells_of(table, Modes())
    criterion = np.repeat(np.arange(len(cells.criteria)), [span.stop - span.start for span in cells.spans])
    penalty = weights[cells.item, criterion] < 0
    columns = [cells.raters["judge", judge].value for judge in table.judges]
    value = np.column_stack(columns) if columns else np.zeros((len(cells.item), 0))
    names = distinct_names(table.criteria)
    empty = [bool(columns) and bool(np.isnan(value[span]).all()) for span in cells.spans]
    by_judge = np.array([kind == "judge" for kind, _ in table.raters], dtype=bool)[table.rater]
    answered = set(table.criterion[by_judge & (table.status == ANSWERED)].tolist())
    return Valued(
        item_ids=table.item_ids,
        item=cells.item,
        criterion=criterion,
        judges=table.judges,
        value=np.where(penalty[:, None], 1 - value, value),
        truth=np.where(penalty, 1 - cells.truth.value, cells.truth.value),
        n_items=table.n_items,
        left_out=tuple(name for at, name in enumerate(names) if empty[at] and at in answered),
        unanswered=tuple(name for at, name in enumerate(names) if empty[at] and at not in answered),
        has_penalties=bool(penalty.any()),
    )


_POSITION_BIAS = "share of decided comparisons won by the candidate shown first, minus 1/2"


def position_lean(table: VotesTable, judge: str, confidence_level: float) -> TestedBias:
    """Estimate the share of decided single votes won by the candidate shown first, minus ½."""
    mine = table.rater == table.raters.index(("judge", judge))
    known = np.array([order is not None for order in table.order.tolist()], dtype=bool)
    ranked = np.array([one.level == "ranking" for one in table.criteria], dtype=bool)
    single = mine & known & (table.sample != DECIDED) & (table.status == ANSWERED)
    rows = np.flatnonzero(single & ranked[table.criterion])
    won = np.array([_won(table.order[row], table.label[row]) for row in rows], dtype=float)
    return tested_mean(won - 0.5, table.item[rows], confidence_level, _POSITION_BIAS, "no_order")


def _won(order: str, label: str | None) -> float:
    """Return 1 if the candidate shown first won, 0 if another did, NaN if there is no single winner."""
    shown = order.split(", ")
    winner = _winner(label, shown)
    return float("nan") if winner is None else float(winner == shown[0])


def _winner(label: str | None, shown: list[str]) -> str | None:
    """Return the winner in labels such as `a`, `a by 2` or `a > b > c`; None without a single winner."""
    if label is None:
        return None
    leader = label.split(" > ")[0]
    if leader in shown:
        return leader
    name, by, _ = leader.rpartition(" by ")
    return name if by and name in shown else None


PASS_FROM = 0.5
_LENIENCY = "mean error at a true value of 1/2 (half of FPR - FNR on binary criteria)"


def leniency(valued: Valued, judge: int, confidence_level: float) -> TestedBias:
    """Estimate the asymmetry of a judge's errors: the mean of judge minus truth at a true value of ½.

    This is the intercept a in a least-squares regression of error on (truth - ½), with one slope per
    criterion. On a binary criterion, a = (FPR - FNR) / 2. Unlike the mean error, it is 0 at every base rate
    for a judge whose errors are symmetric with rate e, since their mean is -2e (truth - ½).

    The variance is the larger of two, both clustered by item: the variance under symmetric errors, from the
    residuals with a = 0 and their mean square in each criterion, as in the score test of two proportions; and
    the leverage-corrected sandwich of the fit (HC3). The t distribution has the effective number of items
    minus one degrees of freedom.
    """
    error = valued.value[:, judge] - valued.truth
    there = ~np.isnan(error)
    text = f"{_LENIENCY}; t interval over items, {confidence_level:.0%}"
    if not there.any():
        return TestedBias(effect=Estimate.undefined(cast("Reason", valued.reason), method=text))
    error, x = error[there], valued.truth[there] - 0.5
    fit = _fitted(error, x, valued.criterion[there])
    if fit is None:
        return TestedBias(effect=Estimate.undefined("single_class", n=len(error), method=text))
    item = np.unique(valued.item[there], return_inverse=True)[1].reshape(-1)
    n, n_items = len(error), int(item.max()) + 1
    if n_items < 2:
        return TestedBias(effect=Estimate(fit.value, n=n, method=text, reason="too_few_units"))
    se = fit.standard_error(item, n_items)
    if is_rounding(se, 1.0):
        return TestedBias(effect=Estimate(fit.value, n=n, method=text, reason="no_variance"))
    df = fit.degrees_of_freedom(item)
    half = t_quantile(confidence_level, df) * se
    effect = Estimate(fit.value, fit.value - half, fit.value + half, se, n, text)
    return TestedBias.by_t(effect, df)


class _Fit(NamedTuple):
    """The intercept, and the parts of its variance by cell, each of shape `(n,)`.

    `part` is the constant 1 after the slopes are projected out. `null` are the residuals with a = 0, and
    `variance` is their mean square in the criterion. `left` are the leverage-corrected residuals of the fit.
    """

    value: float
    part: Array
    null: Array
    variance: Array
    left: Array

    def standard_error(self, item: Codes, n_items: int) -> float:
        def summed(values: Array) -> float:
            return float((np.bincount(item, weights=values, minlength=n_items) ** 2).sum())

        within = summed(self.part * self.null) - float(((self.part * self.null) ** 2).sum())
        symmetric = float((self.part**2 * self.variance).sum())
        largest = max(symmetric, symmetric + within, summed(self.part * self.left))
        return math.sqrt(largest) / float((self.part**2).sum())

    def degrees_of_freedom(self, item: Codes) -> float:
        each = np.bincount(item, weights=self.part**2)
        return max(1.0, float(each.sum() ** 2 / (each**2).sum()) - 1)


def _fitted(error: Array, x: Array, criterion: Codes) -> _Fit | None:
    """Fit the regression, or return None if no criterion has texts on both sides of ½ or at ½."""
    place = np.unique(criterion, return_inverse=True)[1].reshape(-1)

    def sums(values: Array) -> Array:
        return np.asarray(np.bincount(place, weights=values))

    squares = sums(x * x)
    room = np.where(squares > 0, squares, 1.0)
    part = 1 - x * (sums(x) / room)[place]
    part = np.where(np.abs(part) < 1e-9, 0.0, part)
    total = float((part**2).sum())
    if total < 1e-9:
        return None
    value = float((part * error).sum()) / total
    null = error - x * (sums(x * error) / room)[place]
    slope = (sums(x * (error - value)) / room)[place]
    leverage = part**2 / total + x * x / room[place]
    left = (error - value - slope * x) / np.maximum(1 - leverage, 0.05)
    variance = (sums(null**2) / np.maximum(sums(np.ones_like(x)) - 1, 1.0))[place]
    return _Fit(value=value, part=part, null=null, variance=variance, left=left)


def mean_difference(valued: Valued, judge: int, confidence_level: float) -> TestedBias:
    """Estimate the mean difference between judge and truth."""
    apart = valued.value[:, judge] - valued.truth
    return tested_mean(apart, valued.item, confidence_level, "judge - truth", valued.reason)


def pass_rate_difference(valued: Valued, judge: int, confidence_level: float) -> TestedBias:
    """Estimate the judge's pass rate minus that of the truth."""
    both = ~np.isnan(valued.value[:, judge] - valued.truth)
    passes = (valued.value[:, judge] >= PASS_FROM).astype(float) - (valued.truth >= PASS_FROM)
    apart = np.where(both, passes, np.nan)
    return tested_mean(apart, valued.item, confidence_level, "pass rates, judge - truth", valued.reason)


def tested_mean(values: Array, item: Codes, confidence_level: float, method: str, reason: str) -> TestedBias:
    """Estimate a mean with a t test over items, unless all values are equal (`no_variance`)."""
    there = ~np.isnan(values)
    if not there.any():
        return TestedBias(effect=Estimate.undefined(cast("Reason", reason), method=method))
    effect = mean_estimate(values, item, confidence_level, method)
    n_items = len(np.unique(item[there]))
    return TestedBias.by_t(effect, n_items - 1)
