"""Estimates of a judge's biases, each with a test over items.

References:
    [1] J. M. Wooldridge (2010), Econometric analysis of cross section and panel data, 2nd ed., ch. 6:
        differences in differences.
    [2] A. Panickssery, S. R. Bowman, S. Feng (2024), LLM evaluators recognize and favor their own
        generations, NeurIPS.
    [3] Y. Dubois et al. (2024), Length-controlled AlpacaEval, COLM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autorubric.metrics.audit.item_resampling import (
    estimate_over_units,
    mean_and_influences,
    mean_estimate,
    t_estimate,
)
from autorubric.metrics.core.contingency import renumber
from autorubric.metrics.core.estimate import Estimate, Reason, TestStatistic
from autorubric.metrics.core.intervals import t_statistic
from autorubric.metrics.core.read_votes import Modes, cells_of
from autorubric.metrics.core.resampling import Resampling, standard_error, weighted_units
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import (
    ANSWERED,
    VotesTable,
    distinct_names,
    order_by_id,
    single_vote_rows,
)
from autorubric.metrics.figures.correlation import correlation_p_value, correlation_test
from autorubric.metrics.figures.ranks import count_kinds, spearman_matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedBias:
    __test__ = False  # keeps pytest from collecting the class

    effect: Estimate
    p_value: float | None = None  # two-sided, for no bias; None if it cannot be tested
    adjusted_p_value: float | None = None  # by Holm's method over all judges and `BIASES`, or `SHIFTS`
    test: TestStatistic | None = None  # None if there is no p-value

    @classmethod
    def by_t(cls, effect: Estimate, df: float) -> TestedBias:
        """Build a bias with the t test implied by its standard error; without one, there is no test."""
        if effect.value is None or not effect.se:
            return cls(effect=effect)
        test = t_statistic(effect.value / effect.se, df)
        return cls(effect=effect, p_value=test.p_value, test=test)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedValues:
    """Values of decisions and the truth by cell; penalties are reversed, so that higher favours the text."""

    item_ids: tuple[str, ...]
    item: Codes  # item of each cell, shape `(n_cells,)`
    criterion: Codes  # criterion of each cell
    judges: tuple[str, ...]
    value: Array  # shape `(n_cells, n_judges)`; NaN if missing
    truth: Array  # shape `(n_cells,)`; NaN if missing
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
    answered = set(table.criterion[by_judge & (table.status == ANSWERED)].tolist())
    return JudgedValues(
        item_ids=table.item_ids,
        item=cells.item,
        criterion=criterion,
        judges=table.judges,
        value=np.where(penalty[:, None], 1 - value, value),
        truth=np.where(penalty, 1 - cells.truth.value, cells.truth.value),
        left_out=tuple(name for at, name in enumerate(names) if empty[at] and at in answered),
        unanswered=tuple(name for at, name in enumerate(names) if empty[at] and at not in answered),
        has_penalties=bool(penalty.any()),
    )


def undefined_bias(reason: Reason, method: str, n: int = 0) -> TestedBias:
    return TestedBias(effect=Estimate.undefined(reason, n=n, method=method))


def bias_of_mean(values: Array, item: Codes, level: float, method: str, reason: Reason) -> TestedBias:
    """Estimate a mean with a t test over items, unless all values are equal (`no_variance`)."""
    there = ~np.isnan(values)
    if not there.any():
        return undefined_bias(reason, method)
    return TestedBias.by_t(mean_estimate(values, item, level, method), len(np.unique(item[there])) - 1)


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


def leniency(values: JudgedValues, judge: int, level: float) -> TestedBias:
    """Estimate the asymmetry of a judge's errors: the mean of judge minus truth at a true value of ½."""
    error = values.value[:, judge] - values.truth
    there = ~np.isnan(error)
    text = f"{_LENIENCY}; t interval over items, {level:.0%}"
    if not there.any():
        return undefined_bias(values.reason, text)
    item = renumber(values.item[there])
    fit = _fit_intercept(error[there], values.truth[there] - 0.5, values.criterion[there], item)
    n = int(np.count_nonzero(there))
    if fit is None:
        return undefined_bias("single_class", text, n)
    value, se, df = fit
    if item.max() < 1:
        return TestedBias(effect=Estimate(value, n=n, method=text, reason="too_few_units"))
    return TestedBias.by_t(t_estimate(value, se, df, level, scale=1.0, n=n, method=text), df)


def _fit_intercept(
    error: Array, x: Array, criterion: Codes, item: Codes
) -> tuple[float, float, float] | None:
    """Regress error on x with one slope per criterion; return the intercept, its error and its df.

    The result is None if no criterion has texts on both sides of ½ or at ½. On a binary criterion, the
    intercept is (FPR - FNR) / 2. Unlike the mean error, it is 0 at every base rate for a judge with
    symmetric errors. Its variance, clustered by item, is the larger of that under symmetric errors, as in
    the score test of two proportions, and the leverage-corrected sandwich (HC3). The degrees of freedom
    are the effective number of items minus one.
    """
    place = renumber(criterion)

    def by_criterion(values: Array) -> Array:
        return np.asarray(np.bincount(place, weights=values))

    def squared_by_item(values: Array) -> float:
        return float((np.bincount(item, weights=values) ** 2).sum())

    squares = by_criterion(x * x)
    room = np.where(squares > 0, squares, 1.0)
    # The constant 1 after the slopes are projected out.
    part = 1 - x * (by_criterion(x) / room)[place]
    part = np.where(np.abs(part) < 1e-9, 0.0, part)
    total = float((part**2).sum())
    if total < 1e-9:
        return None
    value = float((part * error).sum()) / total
    null = error - x * (by_criterion(x * error) / room)[place]
    slope = (by_criterion(x * (error - value)) / room)[place]
    leverage = part**2 / total + x * x / room[place]
    left = (error - value - slope * x) / np.maximum(1 - leverage, 0.05)
    variance = (by_criterion(null**2) / np.maximum(by_criterion(np.ones_like(x)) - 1, 1.0))[place]
    within = squared_by_item(part * null) - float(((part * null) ** 2).sum())
    symmetric = float((part**2 * variance).sum())
    largest = max(symmetric, symmetric + within, squared_by_item(part * left))
    each = np.bincount(item, weights=part**2)
    df = max(1.0, float(each.sum() ** 2 / (each**2).sum()) - 1)
    return value, math.sqrt(largest) / total, df


_PREFERENCE = "judge minus judges of other families: mean on own family's texts - mean on other texts"
OWN_ERROR = "judge minus truth: mean on own family's texts - mean on other texts"


def self_preference(
    values: JudgedValues, judge: int, others: Sequence[int], by_own: Array, level: float
) -> TestedBias:
    """Estimate self-preference as a difference in differences relative to judges of other families."""
    if not others:
        return undefined_bias("no_generator" if np.isnan(by_own).all() else "one_judge", _PREFERENCE)
    rest = values.value[:, list(others)]
    there = ~np.isnan(rest)
    mean = np.where(there, rest, 0.0).sum(1) / np.where(there.any(1), there.sum(1), np.nan)
    return contrast_own(values.value[:, judge] - mean, values.item, by_own, level, _PREFERENCE)


def contrast_own(values: Array, item: Codes, by_own: Array, level: float, method: str) -> TestedBias:
    """Estimate the mean over own texts minus that over other texts, with Welch's t interval over items."""
    text = f"{method}; Welch's t interval over items, {level:.0%}"
    if np.isnan(by_own).all():
        return undefined_bias("no_generator", text)
    kind = np.where(np.isnan(values), np.nan, by_own[item])
    n = int(np.count_nonzero(~np.isnan(kind)))
    groups = [np.flatnonzero(kind == which) for which in (1.0, 0.0)]
    if not all(len(group) for group in groups):
        return undefined_bias("no_pairs", text, n)
    (own, own_effects), (other, other_effects) = (
        mean_and_influences(values[group], renumber(item[group])) for group in groups
    )
    difference = own - other
    sizes = (len(own_effects), len(other_effects))
    if min(sizes) < 2:
        return TestedBias(effect=Estimate(difference, n=n, method=text, reason="too_few_units"))
    errors = [standard_error(effects, len(effects)) for effects in (own_effects, other_effects)]
    se, scale = math.hypot(*errors), float(np.nanmax(np.abs(values)))
    parts = sum(error**4 / (size - 1) for error, size in zip(errors, sizes, strict=True))
    df = se**4 / parts if parts > 0 else float(min(sizes) - 1)
    return TestedBias.by_t(t_estimate(difference, se, df, level, scale=scale, n=n, method=text), df)


_LENGTH_BIAS = "partial Spearman correlation of error and length, given the truth"


def length_biases(values: JudgedValues, lengths: Array, resampling: Resampling) -> list[TestedBias]:
    """Estimate each judge's partial rank correlation of mean error and length over items, given the truth."""
    columns = [_length_columns(values, judge, lengths) for judge in range(len(values.judges))]
    effects: dict[int, Estimate] = {}
    given = {at: one for at, one in enumerate(columns) if not isinstance(one, TestedBias)}
    for n in {len(one[0]) for one in given.values()}:
        # Judges of equally many items have the same resamples.
        alike = {at: one for at, one in given.items() if len(one[0]) == n}
        effects |= zip(alike, _partial_correlations(list(alike.values()), n, resampling), strict=True)
    return [one if isinstance(one, TestedBias) else _tested(effects[at]) for at, one in enumerate(columns)]


def _tested(effect: Estimate) -> TestedBias:
    if effect.value is None:
        return TestedBias(effect=effect)
    # Controlling for the truth costs one degree of freedom, so t has n - 3.
    p_value = correlation_p_value(effect.value, effect.n - 1)
    return TestedBias(effect=effect, p_value=p_value, test=correlation_test(effect.value, effect.n - 1))


def _length_columns(values: JudgedValues, judge: int, lengths: Array) -> tuple[Array, ...] | TestedBias:
    """Return mean error, length and mean truth of the items that have them, in the order of their ids."""
    errors, n_items = values.value[:, judge] - values.truth, len(values.item_ids)
    there = ~np.isnan(errors)
    counts = np.bincount(values.item[there], minlength=n_items)
    rated = (counts > 0) & ~np.isnan(lengths)
    if not rated.any():
        return undefined_bias(
            "no_text" if there.any() and np.isnan(lengths).all() else values.reason, _LENGTH_BIAS
        )
    drawn = order_by_id(values.item_ids)
    drawn = drawn[rated[drawn]]
    error, truth = (
        np.bincount(values.item[there], weights=column[there], minlength=n_items)[drawn] / counts[drawn]
        for column in (errors, values.truth)
    )
    # Rounding makes equal means ties.
    return np.round(error, 12), lengths[drawn], np.round(truth, 12)


def _partial_correlations(
    columns: Sequence[tuple[Array, ...]], n: int, resampling: Resampling
) -> list[Estimate]:
    """Return the partial rank correlation of the first two of three columns of n items each."""
    m = len(columns)
    reason: Reason = "too_few_units" if n < 4 else "no_variance"
    if n < 4:
        return [Estimate.undefined(reason, n=n, method=_LENGTH_BIAS)] * m
    ranked = [[renumber(column) for column in one] for one in columns]
    kinds = [renumber(renumber(a * n + b) * n + c) for a, b, c in ranked]

    def compute(weights: Array) -> Array:
        return np.stack([_partial(weights, *one) for one in zip(ranked, kinds, strict=True)], axis=1)

    units = weighted_units(n, None, np.ones(n, dtype=np.int64))
    return estimate_over_units(
        units, compute, resampling, [_LENGTH_BIAS] * m, n=[n] * m, reasons=[reason] * m
    )


def _partial(weights: Array, places: Sequence[Codes], kind: Codes) -> Array:
    """Return the partial correlation of ranks in each resample; `kind` numbers the distinct items."""
    n_kinds = int(kind.max()) + 1
    if 2 * n_kinds <= len(kind):
        # Equal items are counted together. The sums are of integers, so their order does not matter.
        weights, first = count_kinds(weights, kind, n_kinds), np.unique(kind, return_index=True)[1]
        places = [one[first] for one in places]
    sizes = [int(one.max()) + 1 for one in places]
    with_length, with_truth, between = spearman_matrix(weights, places, sizes)
    # A truth that does not vary explains nothing.
    constant = np.isnan(with_truth) | np.isnan(between)
    with_truth, between = (np.where(constant, 0.0, one) for one in (with_truth, between))
    left = (1 - with_truth**2) * (1 - between**2)
    room = left > 1e-12
    partial = (with_length - with_truth * between) / np.sqrt(np.where(room, left, 1.0))
    return np.clip(np.where(room, partial, np.nan), -1.0, 1.0)
