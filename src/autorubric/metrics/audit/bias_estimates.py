"""Estimates of a judge's biases, each with a test over items.

References:
    [1] J. M. Wooldridge (2010), Econometric analysis of cross section and panel data, 2nd ed., ch. 6:
        differences in differences.
    [2] A. Panickssery, S. R. Bowman, S. Feng (2024), LLM evaluators recognize and favor their own
        generations, NeurIPS.
    [3] Y. Dubois et al. (2024), Length-controlled AlpacaEval, COLM.
    [4] N. Natarajan et al. (2013), Learning with noisy labels, NeurIPS: the method of unbiased estimators.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from autorubric.metrics.core.contingency import mean_of_defined, renumber
from autorubric.metrics.core.estimate import Estimate, Reason, TestStatistic, is_rounding
from autorubric.metrics.core.intervals import mean_ends, normal_quantile, t_quantile, t_statistic, wilson_ends
from autorubric.metrics.core.read_votes import Cells, Modes, cells_of
from autorubric.metrics.core.resampling import NO_ENDS
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import (
    ANSWERED,
    DECIDED,
    VotesTable,
    distinct_names,
    single_vote_rows,
)
from autorubric.metrics.core.wording import side_of

ASSUMED_WRONG = 0.2
"""Largest share of wrong labels that is considered if no two people labelled the same cells."""

MOST_WRONG = 0.49


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedBias:
    __test__ = False  # keeps pytest from collecting the class

    effect: Estimate  # taking the labels as right
    p_value: float | None = None  # two-sided, for no bias, taking the labels as right; None without a test
    adjusted_p_value: float | None = None  # by Holm's method over all judges and `BIASES`, or `SHIFTS`
    # the same for the largest p-values with up to `WrongLabels.most` wrong labels; for self-preference, also
    # the largest of the judge's own errors
    cautious_p_value: float | None = None
    test: TestStatistic | None = None  # None if there is no p-value
    # smallest share of wrong labels (in steps of .01) with which the interval contains 0; None without a test
    # or if no share below .5 suffices
    explained_by: float | None = None

    @classmethod
    def by_t(cls, effect: Estimate, df: float) -> TestedBias:
        """Build a bias with the t test implied by its standard error; without one, there is no test."""
        if effect.value is None or not effect.se:
            return cls(effect=effect)
        test = t_statistic(effect.value / effect.se, df)
        return cls(effect=effect, p_value=test.p_value, cautious_p_value=test.p_value, test=test)

    def confirms(self, other: TestedBias) -> bool:
        """Return whether the interval of this bias is above 0, or below it, on the side of `other`."""
        return side_of(self.effect) != "not shown" and float(self.effect) * float(other.effect) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedValues:
    """Values of decisions and the truth by cell; penalties are reversed, so that higher favours the text."""

    item: Codes  # item of each cell, shape `(n_cells,)`
    criterion: Codes  # criterion of each cell
    judges: tuple[str, ...]
    value: Array  # shape `(n_cells, n_judges)`; NaN if missing
    truth: Array  # shape `(n_cells,)`; NaN if missing
    human_cell: Codes  # cell of each label by a person, shape `(n_human_labels,)`
    human_value: Array  # value of each of these labels
    left_out: tuple[str, ...]  # criteria whose answers have no value
    unanswered: tuple[str, ...]  # criteria that no judge answered
    has_penalties: bool

    @property
    def reason(self) -> Reason:
        """Reason why values cannot be compared with the truth."""
        return "no_pairs" if bool((~np.isnan(self.truth)).any()) else "no_truth"


def read_values(table: VotesTable, weights: Array) -> JudgedValues:
    """Return the values in a votes table, reversed where `weights`, `(n_items, n_criteria)`, are negative."""
    cells = cells_of(table, Modes())
    criterion = cells.criterion
    penalty = weights[cells.item, criterion] < 0
    columns = [cells.raters["judge", judge].value for judge in table.judges]
    value = np.column_stack(columns) if columns else np.zeros((len(cells.item), 0))
    names = distinct_names(table.criteria)
    empty = [bool(columns) and bool(np.isnan(value[span]).all()) for span in cells.spans]
    by_judge = np.array([kind == "judge" for kind, _ in table.raters], dtype=bool)[table.rater]
    human_cell, human_value = _human_labels(table, cells, penalty)
    answered = set(table.criterion[by_judge & (table.status == ANSWERED)].tolist())
    return JudgedValues(
        item=cells.item,
        criterion=criterion,
        judges=table.judges,
        value=np.where(penalty[:, None], 1 - value, value),
        truth=np.where(penalty, 1 - cells.truth.value, cells.truth.value),
        human_cell=human_cell,
        human_value=human_value,
        left_out=tuple(name for at, name in enumerate(names) if empty[at] and at in answered),
        unanswered=tuple(name for at, name in enumerate(names) if empty[at] and at not in answered),
        has_penalties=bool(penalty.any()),
    )


def _human_labels(table: VotesTable, cells: Cells, penalty: Array) -> tuple[Codes, Array]:
    """Return the cells and values of people's labels on the cells."""
    human = np.array([kind == "human" for kind, _ in table.raters], dtype=bool)[table.rater]
    rows = np.flatnonzero(human & (table.sample == DECIDED) & ~np.isnan(table.value))
    keys = cells.criterion * table.n_items + cells.item
    key = table.criterion[rows] * table.n_items + table.item[rows]
    there = np.isin(key, keys)
    at, value = np.searchsorted(keys, key[there]), table.value[rows[there]]
    return at, np.where(penalty[at], 1 - value, value)


def undefined_bias(reason: Reason, method: str, n: int = 0) -> TestedBias:
    return TestedBias(effect=Estimate.undefined(reason, n=n, method=method))


def bias_of_mean(values: Array, item: Codes, level: float, method: str, reason: Reason) -> TestedBias:
    """Estimate a mean with a t test over items, unless all values are equal (`no_variance`)."""
    there = ~np.isnan(values)
    if not there.any():
        return undefined_bias(reason, method)
    kept, members = values[there], renumber(item[there])
    ends = mean_ends(kept, members, level)
    why: Reason | None = None
    if ends.low is None:
        why, ends = "no_variance" if ends.se == 0 else "too_few_units", NO_ENDS
    text = f"{method}; t interval over items, {level:.0%}"
    return TestedBias.by_t(Estimate(float(kept.mean()), *ends, len(kept), text, why), int(members.max()))


_POSITION_BIAS = "share of decided comparisons won by the candidate shown first, minus 1/2"


def position_bias(table: VotesTable, judge: str, level: float) -> TestedBias:
    """Estimate the share of decided single votes won by the candidate shown first, minus ½."""
    ranked = np.array([one.level == "ranking" for one in table.criteria], dtype=bool)
    known = np.array([order is not None for order in table.order.tolist()], dtype=bool)
    rows = single_vote_rows(table)
    mine = table.rater[rows] == table.raters.index(("judge", judge))
    rows = rows[mine & known[rows] & ranked[table.criterion[rows]]]
    won = np.array([_is_first_best(table.order[row], table.label[row]) for row in rows], dtype=float)
    return bias_of_mean(won - 0.5, table.item[rows], level, _POSITION_BIAS, "no_order")


def _is_first_best(order: str, label: str | None) -> float:
    """Return 1 if the candidate shown first won (labels: `a`, `a by 2`, `a > b`), NaN without a winner."""
    if label is None:
        return float("nan")
    shown, winner = order.split(", "), label.split(" > ")[0]
    if winner not in shown:
        name, by, _ = winner.rpartition(" by ")
        if not by or name not in shown:
            return float("nan")
        winner = name
    return float(winner == shown[0])


_LENIENCY = "mean error at a true value of 1/2 (half of FPR - FNR on binary criteria)"
_PREFERENCE = "judge minus judges of other families, own family's texts minus other texts"
_OWN_ERROR = "judge minus truth, own family's texts minus other texts"
_LENGTH = "judge minus truth, longer minus shorter half of the texts"
_WITHIN = ", within criterion and true value"

_Regression: TypeAlias = tuple[Array, Array, Array, Array, Codes]
"""Arguments of `_fit` except `item`."""


@dataclass(frozen=True, slots=True)
class BiasTests:
    """Tests of one judge for biases that can only be seen with labels."""

    values: JudgedValues
    judge: int
    wrong: WrongLabels
    level: float

    def leniency(self) -> TestedBias:
        """Estimate the asymmetry of the errors: the mean of judge minus truth at a true value of ½.

        It is undefined if no criterion has texts on both sides of ½ or at ½.
        """
        value, criterion = self.values.value[:, self.judge], self.values.criterion

        def design(cell: Codes, group: Codes, truth: Array, weight: Array) -> _Regression:
            # Slopes on the truth are projected out of the constant and the errors.
            return np.ones(len(cell)), value[cell] - truth, truth - 0.5, weight, criterion[cell]

        return self._test(value, design, _LENIENCY, "single_class")

    def length(self, lengths: Array) -> TestedBias:
        """Estimate the slope of errors on the rank of length, from 0 to 2; `lengths` has shape `(n_items,)`.

        Ranks keep a single very short or long text from deciding the slope. The halves are 1 apart.
        """
        value = self.values.value[:, self.judge]
        if np.isnan(lengths).all() and not np.isnan(value - self.values.truth).all():
            return undefined_bias("no_text", _LENGTH)
        _, place, counts = np.unique(lengths, return_inverse=True, return_counts=True)
        rank = (2 * (np.cumsum(counts) - counts / 2) / len(lengths))[place.reshape(-1)]
        rank = np.where(np.isnan(lengths), np.nan, rank)
        return self._slope(value, rank, _LENGTH, "no_variance", is_error=True)

    def self_preference(self, others: Sequence[int], by_own: Array) -> TestedBias:
        """Estimate the contrast of own and other texts relative to judges of other families."""
        if np.isnan(by_own).all() or not others:
            return undefined_bias("no_generator" if np.isnan(by_own).all() else "one_judge", _PREFERENCE)
        outcome = self.values.value[:, self.judge] - mean_of_defined(self.values.value[:, list(others)])
        return self._slope(outcome, by_own, _PREFERENCE, "no_pairs", is_error=False)

    def own_error_difference(self, by_own: Array) -> TestedBias:
        """Estimate the contrast of own and other texts in the judge's own errors."""
        if np.isnan(by_own).all():
            return undefined_bias("no_generator", _OWN_ERROR)
        return self._slope(self.values.value[:, self.judge], by_own, _OWN_ERROR, "no_pairs", is_error=True)

    def _slope(
        self, outcome: Array, by_item: Array, method: str, reason: Reason, *, is_error: bool
    ) -> TestedBias:
        """Estimate the slope of an outcome on a property of items, with one intercept per stratum.

        Strata are criteria × true values, rounded to tenths. `is_error` subtracts the truth from the outcome.
        """
        property_of = by_item[self.values.item]

        def design(cell: Codes, group: Codes, truth: Array, weight: Array) -> _Regression:
            # A stratum without texts of its own is omitted.
            weight = np.where(np.bincount(group, weight)[group] > 1 - _NOTHING, weight, 0.0)
            error = outcome[cell] - truth * is_error
            return property_of[cell], error, np.ones(len(cell)), weight, group

        known = np.where(np.isnan(property_of), np.nan, outcome)
        return self._test(known, design, method + _WITHIN, reason)

    def _test(
        self, outcome: Array, design: Callable[..., _Regression], method: str, reason: Reason
    ) -> TestedBias:
        """Return the bias with the labels as they are, and whether wrong labels would explain it.

        `design` returns the regression of the results of `_Strata.with_wrong_labels`.
        """
        there = np.flatnonzero(~np.isnan(outcome - self.values.truth))
        if not len(there):
            return undefined_bias(self.values.reason, method)
        item = renumber(self.values.item[there])
        strata = _Strata.of(self.values.truth[there], self.values.criterion[there])

        def fit(share: float) -> tuple[float, float, float] | None:
            cell, *copies = strata.with_wrong_labels(share)
            return _fit(*design(there[cell], *copies), item[cell])

        n, text = len(there), f"{method}; t interval over items, {self.level:.0%}"
        measured = fit(0.0)
        if measured is None:
            return undefined_bias(reason, text, n)
        value, se, df = measured
        half = t_quantile(self.level, df) * se
        effect = Estimate(value, value - half, value + half, se, n, text)
        if is_rounding(se):
            effect = Estimate(value, n=n, method=text, reason="no_variance")
        found = TestedBias.by_t(effect, df)
        if found.p_value is None:
            return found
        alpha = 1 - self.level
        if found.p_value >= alpha:
            return replace(found, explained_by=0.0)

        def p_value(share: float) -> float:
            other = fit(share)
            same = other is not None and other[0] * value > 0
            return t_statistic(other[0] / other[1], other[2]).p_value if other and same else 1.0

        most = self.wrong.most
        largest = max(found.p_value, p_value(most / 2), p_value(most))
        end = next((end for end in range(7, 50, 7) if p_value(end / 100) >= alpha), None)
        steps = range(0 if end is None else end - 6, end or 0)
        least = steps.start + bisect_left(steps, True, key=lambda at: p_value(at / 100) >= alpha)
        return replace(found, cautious_p_value=largest, explained_by=least / 100 if end else None)


_NOTHING = 1e-9


def _fit(
    x: Array, y: Array, base: Array, weight: Array, group: Codes, item: Codes
) -> tuple[float, float, float] | None:
    """Regress y on x with one coefficient of `base` per group; return slope, standard error and df.

    The variance, clustered by item, is the larger of that under no effect, as in the score test of two
    proportions, and the leverage-corrected sandwich (HC3). The degrees of freedom are the effective number of
    items minus one.
    """
    squares = np.bincount(group, weight * base * base)
    room = np.where(squares > _NOTHING, squares, np.inf)
    part, rest = (one - base * (np.bincount(group, weight * base * one) / room)[group] for one in (x, y))
    leverage = base * base / room[group]
    weighted = weight * part
    total = float((weighted * part).sum())
    if total < _NOTHING:
        return None
    value = float((weighted * rest).sum()) / total
    left = (rest - value * part) / np.maximum(1 - weighted * part / total - leverage, 0.05)
    squares, size = np.bincount(group, weight * rest**2), np.bincount(group, weight)
    variance = np.maximum(squares, 0.0) / np.maximum(size - 1, 1.0)
    score = weighted * rest
    symmetric = float((weighted**2 * variance[group]).sum())
    within = float((np.bincount(item, score) ** 2).sum() - (score**2).sum())
    largest = max(symmetric, symmetric + within, float((np.bincount(item, weighted * left) ** 2).sum()))
    each = np.bincount(item, np.abs(weighted * part))
    df = max(1.0, float(each.sum() ** 2 / (each**2).sum()) - 1)
    return value, math.sqrt(largest) / total, df


@dataclass(frozen=True, slots=True)
class _Strata:
    """Strata of criterion × true value, in order, so that those of a criterion are adjacent."""

    truth: Array  # true value of each cell, shape `(n_cells,)`
    stratum: Codes  # stratum of each cell
    mean: Array  # mean true value of each stratum, shape `(n_strata,)`
    level: Codes  # place of each stratum among those of its criterion
    n_levels: Codes  # number of strata of its criterion

    @classmethod
    def of(cls, truth: Array, criterion: Codes) -> _Strata:
        seen, stratum = np.unique(criterion * 11 + _levels(truth), return_inverse=True)
        stratum = stratum.reshape(-1)
        _, first, owner, n_levels = np.unique(
            seen // 11, return_index=True, return_inverse=True, return_counts=True
        )
        owner = owner.reshape(-1)
        mean = np.bincount(stratum, truth) / np.bincount(stratum)
        return cls(truth, stratum, mean, np.arange(len(seen)) - first[owner], n_levels[owner])

    def with_wrong_labels(self, share: float) -> tuple[Codes, Codes, Array, Array]:
        """Return cell, stratum, true value and weight of copies of cells for a share of wrong labels.

        A wrong label is one level too high or too low (the other one, if there are two), independently of
        everything else. Sums over the copies, one for each level, then have the expectation of the sums over
        cells with their true values [4].
        """
        cell = np.arange(len(self.truth))
        if not share:
            return cell, self.stratum, self.truth, np.ones(len(cell))
        weights = np.zeros((len(self.mean), int(self.n_levels.max(initial=1))))
        for n in np.unique(self.n_levels).tolist():
            mine, up = self.n_levels == n, np.arange(1, n + 1)
            steps = np.eye(n)[np.where(up < n, up, n - 2)] + np.eye(n)[np.minimum(abs(up - 2), n - 1)]
            weights[mine, :n] = np.linalg.inv((1 - share) * np.eye(n) + share * steps / 2)[self.level[mine]]
        copies = self.n_levels[self.stratum]
        cell = np.repeat(cell, copies)
        own = self.stratum[cell]
        place = np.arange(len(cell)) - np.repeat(np.cumsum(copies) - copies, copies)
        other = own - self.level[own] + place
        return cell, other, self.truth[cell] - self.mean[own] + self.mean[other], weights[own, place]


def _levels(values: Array) -> Codes:
    """Return values in [0, 1] in tenths."""
    return np.round(values * 10).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongLabels:
    """How many labels are wrong, and where `most` comes from."""

    estimate: Estimate  # share of wrong labels; undefined unless two people labelled some of the cells
    most: float  # largest possible share; a bias that it explains is not named
    source: Literal["given", "people", "judges"]

    def describe(self) -> str:
        """Return how many wrong labels are possible, and why, as a clause."""
        if self.source == "given":
            return f"{self.most:.1%} are assumed"
        if self.source == "people":
            return f"people who labelled the same cells imply {self.estimate:.1%}, at most {self.most:.1%}"
        return f"as no two people labelled the same cells, up to {self.most:.1%} are assumed"


_WRONG = "share of wrong labels, from people who labelled the same cells"


def wrong_labels(values: JudgedValues, given: float | None, level: float) -> WrongLabels:
    """Bound the share of wrong labels, if errors of people and judges are independent given the truth.

    Two people with the same error rate e disagree with probability 2 e (1 - e). A label with m more votes for
    it than against it is wrong with probability 1 / (1 + ((1 - e) / e)^m), and at most ½; a label without
    votes counts as one person's. Labels are also wrong at most as often as they differ from a judge's value
    among the cells with that value.
    """
    truth, cell = values.truth, values.human_cell
    labelled = ~np.isnan(truth)
    n = np.bincount(cell, minlength=len(truth))
    alike = np.unique(cell * 11 + _levels(values.human_value), return_counts=True)[1]
    pairs = float((n * (n - 1)).sum() / 2)
    support = np.bincount(cell, np.abs(values.human_value - truth[cell]) < 0.05, minlength=len(truth))
    margin = np.where(n > 0, np.maximum(2 * support - n, 0), 1)[labelled]

    def of_person(disagreement: float) -> float:
        return (1 - math.sqrt(max(1 - 2 * disagreement, 0.0))) / 2

    def of_labels(disagreement: float) -> float:
        error = of_person(disagreement)
        return float((1 / (1 + ((1 - error) / error) ** margin)).mean()) if error else 0.0

    found = Estimate.undefined("no_ratings", method=_WRONG)
    if pairs and labelled.any():
        n_shared = int(np.count_nonzero(n > 1))
        share = 1 - float((alike * (alike - 1)).sum()) / 2 / pairs
        ends = wilson_ends(share, n_shared, normal_quantile(level))
        value, error = of_labels(share), of_person(share)
        # Labels without a majority are as many as disagreements, so their number varies with the share too.
        low, high = (
            choose(of_labels(end), value * (of_person(end) / error if error else 1))
            for choose, end in zip((min, max), ends, strict=True)
        )
        found = Estimate(value, low, min(high, MOST_WRONG), n=n_shared, method=_WRONG)
    if given is not None:
        return WrongLabels(estimate=found, most=given, source="given")
    most = min([MOST_WRONG, *_contradicted(values, level)])
    if found.high is not None:
        return WrongLabels(estimate=found, most=min(most, found.high), source="people")
    return WrongLabels(estimate=found, most=min(most, ASSUMED_WRONG), source="judges")


def _contradicted(values: JudgedValues, level: float) -> list[float]:
    """Return upper limits of the share of labels that differ from a judge's value, by judge and value."""
    found = []
    for mine in values.value.T:
        there = ~np.isnan(values.truth) & ~np.isnan(mine)
        said, apart = _levels(mine[there]), _levels(mine[there]) != _levels(values.truth[there])
        for value in np.unique(said):
            share = apart[said == value]
            found.append(wilson_ends(float(share.mean()), len(share), normal_quantile(level))[1])
    return found
