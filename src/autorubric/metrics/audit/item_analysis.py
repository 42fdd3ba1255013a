"""Analysis of a rubric's criteria: variation, discrimination, redundancy, and reliability of the total.

References:
    [1] F. M. Lord, M. R. Novick (1968), Statistical theories of mental test scores, ch. 15: corrected
        item-total correlation.
    [2] T. L. Kelley (1939), The selection of upper and lower groups for the validation of test items, Journal
        of Educational Psychology 30, 17-24.
    [3] L. J. Cronbach (1951), Coefficient alpha and the internal structure of tests, Psychometrika 16(3).
    [4] L. J. Cronbach, P. Schönemann, D. McKie (1965), Alpha coefficients for stratified-parallel tests,
        Educational and Psychological Measurement 25, 291-312.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.item_resampling import estimate_over_items, estimate_over_units
from autorubric.metrics.audit.rubric_weights import (
    RubricWeights,
    WeightSensitivity,
    tau_without,
    weight_sensitivity,
    weights_of,
)
from autorubric.metrics.core.contingency import divide, mean_of_defined
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import mean_ends, normal_quantile, wilson
from autorubric.metrics.core.item_scores import PANEL, TRUTH, Rater
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Ends, Resampling, Units, check_number
from autorubric.metrics.core.result import (
    FIGURE_COLUMNS,
    ResultBase,
    figure_cells,
    figure_table,
    format_estimate,
    format_notes,
    titled_figures,
)
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable, distinct_names, order_by_id
from autorubric.metrics.core.wording import compare_in_words, difference_of
from autorubric.metrics.figures.correlation import pearson, pearson_of
from autorubric.metrics.figures.icc import cronbach_alpha
from autorubric.support.blocks import Block, Cell, TableBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionAnalysis:
    name: str
    level: str  # measurement level
    weight: float | None  # in the score, averaged over items; None if no rubric is available
    mean: Estimate  # pass rate of a binary criterion, or mean value of any other criterion
    discrimination: Estimate  # correlation with the mean of the item's other criteria (corrected item–total)
    upper_lower: Estimate  # mean in the best 27% of the items minus mean in the worst 27%
    alpha_without: Estimate  # Cronbach's alpha of the other criteria
    tau_without: Estimate  # Kendall's tau-b between the items' scores with and without the criterion
    dead: Reason | None  # `no_values` (never answered), `no_variance` (never varies), otherwise None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundantPair:
    first: str
    second: str
    correlation: Estimate  # Pearson's r of their values, with an interval adjusted for the number of pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnalysis(ResultBase):
    """The result of `item_analysis`: an analysis of a rubric's criteria.

    Penalty values are reversed to 1 - value wherever criteria are summed or correlated.

    Attributes:
        rater: Rater whose values were used.
        n_items: Number of items that have a value.
        criteria: Analysis of each criterion.
        redundant: Pairs of criteria with |r| of at least `threshold`, sorted by decreasing |r|. A pair is
            shown to be redundant if its whole interval, adjusted for the number of pairs, is.
        threshold: Minimum |r| of a redundant pair.
        dead: Names of the criteria that have no values or never vary.
        weights: How strongly the ranking of the items depends on the weights.
        alpha: Cronbach's alpha over equally weighted criteria, on items that have every value.
        weighted_alpha: Cronbach's alpha over criteria weighted as in the score.
        stratified_alpha: Alpha stratified by the rubric's groups.
        notes: Notes on how the results were computed.
    """

    rater: str
    n_items: int
    criteria: tuple[CriterionAnalysis, ...]
    redundant: tuple[RedundantPair, ...]
    threshold: float
    dead: tuple[str, ...]
    weights: WeightSensitivity
    alpha: Estimate = field(metadata={"title": "Cronbach's alpha"})
    weighted_alpha: Estimate = field(metadata={"title": "Cronbach's alpha, weighted"})
    stratified_alpha: Estimate = field(metadata={"title": "stratified alpha"})
    notes: tuple[str, ...]

    def _sentence(self) -> str:
        """Summarise the criterion that most needs attention."""
        if not self.n_items:
            return f"No item analysis is possible: the rater {self.rater!r} has no values."
        dead, place = "", "first"
        if self.dead:
            dead = f"First check the criteria that never vary or have no values: {', '.join(self.dead)}. "
            place = "next"
        for pair in self.redundant:
            size = pair.correlation if pair.correlation > 0 else pair.correlation.map(lambda value: -value)
            redundant = f"Check {pair.first} and {pair.second} {place}: they are redundant"
            told = compare_in_words(
                size, above=redundant, otherwise="", reference=self.threshold, quantity="|r|"
            )
            if told.startswith(redundant):
                return f"{dead}{told}."
        known = [one for one in self.criteria if one.discrimination.value is not None]
        # Two criteria have the same correlation, that with each other.
        if len(known) < 3:
            few = "No criterion can be compared with others: fewer than three vary, or there are few items."
            return f"{dead}{few}"
        weakest, following = sorted(known, key=lambda one: float(one.discrimination))[:2]
        r = f"r = {format_estimate(weakest.discrimination)}"
        told = compare_in_words(
            difference_of(following.discrimination, weakest.discrimination),
            above=f"Check {weakest.name} {place}: it has the weakest correlation with the rest, {r}",
            otherwise=f"The weakest correlation with the rest is not shown: {weakest.name} has {r}, not "
            f"distinguishable from {following.name}",
            quantity=f"{following.name} minus {weakest.name}",
        )
        return f"{dead}{told}."

    def _tables(self) -> list[Block]:
        perturbed = f"Kendall's tau under perturbed weights (spread {self.weights.spread:g})"
        figures = titled_figures(self) | {
            perturbed: self.weights.tau,
            "probability that the best item stays best": self.weights.top_kept,
        }
        pairs = tuple((one.first, one.second, *figure_cells(one.correlation)) for one in self.redundant)
        return [
            self._criteria_table(),
            figure_table(f"Total score over {self.n_items} items (rater: {self.rater})", figures),
            TableBlock(
                title=f"Pairs with |r| ≥ {self.threshold:g} (intervals adjusted for the number of pairs)",
                columns=("first", "second", *FIGURE_COLUMNS),
                rows=pairs,
            ),
            *format_notes(self.notes),
        ]

    def _criteria_table(self) -> TableBlock:
        rows: list[tuple[Cell, ...]] = [
            (
                one.name, one.level, one.weight, one.mean.n, one.mean.value, one.discrimination.value,
                one.upper_lower.value, one.alpha_without.value, one.tau_without.value, one.dead or "",
            )
            for one in self.criteria
        ]  # fmt: skip
        columns = (
            "criterion", "level", "weight", "n", "mean", "discrimination", "upper − lower", "alpha without",
            "tau without", "uninformative",
        )  # fmt: skip
        return TableBlock(title="Criteria", columns=columns, rows=tuple(rows))


_STRATIFIED_ALPHA = "Cronbach's alpha, stratified by the rubric's groups"


def alpha_of(values: Array, *, confidence_level: float = 0.95, interval: bool = True) -> Estimate:
    """Estimate Cronbach's alpha over columns with any value; items that lack a value are excluded."""
    answered = ~np.isnan(values).all(axis=0)
    return cronbach_alpha(
        values[:, answered], ci="auto" if interval else None, confidence_level=confidence_level
    )


def stratified_alpha(values: Array, strata: Sequence[str], resampling: Resampling) -> Estimate:
    """Estimate 1 - Σ_g σ²_g (1 - α_g) / σ²_T over groups of criteria, where σ² are variances of sums."""
    answered = np.asarray(~np.isnan(values).all(axis=0))
    kept = values[:, answered]
    rows = kept[~np.isnan(kept).any(axis=1)]
    named = [name for name, there in zip(strata, answered, strict=True) if there]
    groups = list(dict.fromkeys(named))
    if len(groups) < 2 or len(groups) == len(named):
        return Estimate.undefined("not_comparable", n=len(rows), method=_STRATIFIED_ALPHA)
    size = rows.shape[1]
    centred = rows - rows.mean(0) if len(rows) else rows
    products = (centred[:, :, None] * centred[:, None, :]).reshape(len(rows), size * size)
    sums = np.column_stack([np.ones(len(rows)), centred, products])
    members = [np.array([name == group for name in named]) for group in groups]

    def compute(totals: Array) -> Array:
        n, first = totals[:, 0], totals[:, 1 : 1 + size]
        safe = np.maximum(n, 1.0)[:, None, None]
        covariance = (
            totals[:, 1 + size :].reshape(-1, size, size) - first[:, :, None] * first[:, None, :] / safe
        )
        unexplained = np.zeros(len(totals))
        for member in members:
            part = covariance[:, member][:, :, member]
            whole, own = part.sum((1, 2)), np.trace(part, axis1=1, axis2=2)
            m = int(member.sum())
            # σ² (1 - α) with α = m / (m - 1) (1 - own / whole).
            unexplained += whole if m < 2 else whole - m / (m - 1) * (whole - own)
        return (1 - divide(unexplained, np.maximum(covariance.sum((1, 2)), 0.0)))[:, None]

    n = [len(rows)]
    return estimate_over_items(sums, compute, resampling, _STRATIFIED_ALPHA, n=n, reason="no_variance")[0]


TAIL = 0.27
"""Share of the items in the upper and the lower group, which is Kelley's optimum for normal scores."""

FEWEST_PAIRS = 10
"""Minimum number of common items of a redundant pair, since few items may correlate by chance."""


def mean_estimate_of(values: Array, confidence_level: float, *, binary: bool) -> Estimate:
    """Return the pass rate with Wilson's interval, or the mean value with a t interval."""
    kept = values[~np.isnan(values)]
    n_missing = len(values) - len(kept)
    if not len(kept):
        return Estimate.undefined("no_values", method="mean value", n_missing=n_missing)
    if binary:
        return wilson(int(kept.sum()), len(kept), confidence_level=confidence_level)
    ends = mean_ends(kept, np.arange(len(kept)), confidence_level)
    method = f"mean value; t, {confidence_level:.0%}"
    reason: Reason | None = None
    if ends.low is None:
        reason = "too_few_units" if ends.se is None else "no_variance"
    low, high = (None if end is None else min(max(end, 0.0), 1.0) for end in (ends.low, ends.high))
    return Estimate(float(kept.mean()), low, high, ends.se, len(kept), method, reason, n_missing)


def upper_lower(values: Array, totals: Array, resampling: Resampling) -> Estimate:
    """Return the mean value among the best 27% of items minus that among the worst."""
    method = f"mean among the best {TAIL:.0%} of items - mean among the worst {TAIL:.0%}"
    kept = ~(np.isnan(values) | np.isnan(totals))
    n = int(np.count_nonzero(kept))
    # Identical items form one unit with a count, because few distinct values occur.
    alike, counts = np.unique(
        np.column_stack([np.round(totals[kept], 12), values[kept]]), axis=0, return_counts=True
    )
    seen, place = np.unique(alike[:, 0], return_inverse=True)
    place, x = place.reshape(-1), alike[:, 1]

    def compute(weights: Array) -> Array:
        flat = (np.arange(len(weights))[:, None] * len(seen) + place).reshape(-1)
        tied = np.bincount(flat, weights=weights.reshape(-1), minlength=len(weights) * len(seen))
        tied = tied.reshape(-1, len(seen))
        share = _edge_shares(tied)
        mirrored = _edge_shares(tied[:, ::-1])[:, ::-1]
        low, high = (weights * one[:, place] for one in (share, mirrored))
        return (divide(high @ x, high.sum(1)) - divide(low @ x, low.sum(1)))[:, None]

    units = Units(counts=counts.astype(np.int64), n=n) if n and len(seen) > 1 else None
    reason: Reason = "no_variance" if n else "no_values"
    return estimate_over_units(units, compute, resampling, [method], n=[n], reasons=[reason])[0]


def _edge_shares(tied: Array) -> Array:
    """Return the share of each group of tied items that lies within the first 27% of the weight."""
    wanted = TAIL * tied.sum(1, keepdims=True)
    before = np.cumsum(tied, axis=1) - tied
    return np.asarray(np.clip((wanted - before) / np.where(tied > 0, tied, 1.0), 0.0, 1.0))


def redundant_pairs(
    values: Array, names: Sequence[str], threshold: float, confidence_level: float
) -> tuple[RedundantPair, ...]:
    """Return the pairs of criteria with |r| at or above the threshold, in order of decreasing |r|."""
    there = (~np.isnan(values)).astype(float)
    # Centring keeps constant columns from varying by rounding.
    x = np.where(there > 0, values - mean_of_defined(values, axis=0), 0.0)
    n, first, square = there.T @ there, x.T @ there, (x * x).T @ there
    r = pearson_of(np.stack([n, first, first.T, square, square.T, x.T @ x], axis=-1))
    tested = np.triu(n >= FEWEST_PAIRS, 1)
    level = 1 - (1 - confidence_level) / max(int(tested.sum()), 1)
    found = [
        RedundantPair(first=names[a], second=names[b], correlation=_correlation(values[:, [a, b]], level))
        for a, b in np.argwhere(tested & (np.abs(r) >= threshold - 1e-12))
    ]
    return tuple(sorted(found, key=lambda one: -abs(one.correlation.value or 0.0)))


def _correlation(values: Array, confidence_level: float) -> Estimate:
    """Estimate Pearson's r with an interval on Fisher's z scale for values of any distribution.

    The standard error is the larger of Fisher's and that from the influence of each item. One more item that
    does not follow the correlation is added, since r = ±1 in a sample does not show that r is ±1.
    """
    kept = values[~np.isnan(values).any(axis=1)]
    n, found = len(kept), pearson(kept[:, 0], kept[:, 1], ci=None)
    x, y = ((kept - kept.mean(0)) / kept.std(0)).T
    r = float(found) * n / (n + 1)
    effects = np.append(x * y - r * (x * x + y * y) / 2, r)
    se = max(math.sqrt(float((effects**2).sum())) / (n + 1) / (1 - r * r), 1 / math.sqrt(n - 3))
    half = normal_quantile(confidence_level) * se
    method = f"{found.method}; Fisher's z with influences, {confidence_level:.5g}"
    ends = Ends(math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), se * (1 - r * r))
    return Estimate(found.value, *ends.extend_to(float(found)), n, method)


def item_analysis(  # noqa: PLR0913 - a public entry point with many options
    result: Any,
    dataset: Any = None,
    *,
    rater: str = "panel",
    redundant_from: float = 0.7,
    spread: float = 0.25,
    n_draws: int = 200,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> ItemAnalysis:
    """Analyse a rubric's criteria: discrimination, redundancy, sensitivity to weights, and reliability.

    All results use one rater's decisions as values in [0, 1]; criteria that have no values are listed in
    `dead`. Penalty values (negative weights) are reversed to 1 - value wherever criteria are combined.

    - Discrimination is the correlation between a criterion and the mean of the item's other criteria (Lord
      and Novick 1968), and the criterion's mean among the best 27% of items minus its mean among the worst
      27% (Kelley 1939). Items are ordered by mean value; ties at the cut-off are included in part.
    - A pair of criteria may be redundant if they have at least ten items in common and |r| is at least
      `redundant_from`. It is called redundant if its whole interval is, at a level adjusted for the number of
      pairs (Bonferroni).
    - A criterion is called the weakest if the interval of its difference in discrimination from the next one
      excludes 0.
    - Sensitivity to weights is Kendall's tau-b between the original scores and the scores after each weight
      is multiplied by e^(spread z), where z is standard normal.
    - Reliability is Cronbach's alpha over items that have every value, unweighted and weighted as in the
      score, and alpha stratified by the rubric's groups (Cronbach, Schönemann and McKie 1965). Alpha is
      undefined if fewer than two items have every value (`too_few_units`), e.g. because rubrics differ.

    Scores are Σ w v / Σ positive w, with nested weights multiplied out. Gates, conditions and bonuses, which
    weights cannot express, are ignored and reported in `notes`. If a label table has no dataset, all criteria
    have equal weights. A mean of no values is undefined (`no_values`), a criterion that does not vary has no
    correlation (`no_variance`), and a single criterion cannot be compared with others (`no_pairs`).

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the rubrics; the run's own dataset by default.
        rater: Rater whose values are used: `panel`, `truth`, or the name of a judge.
        redundant_from: Minimum |r| of a redundant pair, in (0, 1].
        spread: Size of the random weight changes; 0.25 changes weights by about a quarter.
        n_draws: Number of random weight sets.
        n_resamples: Number of resamples of items.
        rng: Seed or NumPy generator for the resamples and random weights.

    Raises:
        ArgumentError: If the rater is unknown, or an option is out of range.
    """
    check_number("redundant_from", redundant_from, "(0, 1]")
    check_number("spread", spread, "[0, inf)")
    check_number("n_draws", n_draws, "[1, inf)", whole=True)
    resampling = Resampling(n_resamples=n_resamples, rng=rng).with_fixed_seed()
    table = table_of(result, dataset)
    order = order_by_id(table.item_ids)
    weights = weights_of(result, dataset, table)
    weights = replace(weights, by_item=weights.by_item[order])
    values = _values_of(table, rater)[order]
    sensitivity = weight_sensitivity(values, weights.by_item, float(spread), n_draws, resampling)
    names, reversal = distinct_names(table.criteria), weights.of_criterion < 0
    oriented = np.where(reversal, 1 - values, values)
    criteria = _criteria(table, values, oriented, weights, resampling)
    level = resampling.confidence_level
    return ItemAnalysis(
        rater=rater,
        n_items=int(np.count_nonzero(~np.isnan(values).all(axis=1))) if values.size else 0,
        criteria=criteria,
        redundant=redundant_pairs(oriented, names, redundant_from, level),
        threshold=float(redundant_from),
        dead=tuple(one.name for one in criteria if one.dead is not None),
        weights=sensitivity,
        alpha=alpha_of(oriented, confidence_level=level),
        weighted_alpha=alpha_of(oriented * np.abs(weights.of_criterion), confidence_level=level),
        stratified_alpha=stratified_alpha(
            oriented, [weights.group.get(at, name) for at, name in enumerate(names)], resampling
        ),
        notes=_notes(weights, bool(reversal.any())),
    )


def _values_of(table: VotesTable, name: str) -> Array:
    rater: Rater = {"panel": PANEL, "truth": TRUTH}.get(name, ("judge", name))
    if name not in ("panel", "truth") and rater not in table.raters:
        raise ArgumentError(f"rater must be 'panel', 'truth' or one of {list(table.judges)!r}; got {name!r}")
    values = np.full((table.n_items, len(table.criteria)), np.nan)
    rows = table.rows_of(rater)
    values[table.item[rows], table.criterion[rows]] = table.value[rows]
    return values


def _criteria(
    table: VotesTable, values: Array, oriented: Array, weights: RubricWeights, resampling: Resampling
) -> tuple[CriterionAnalysis, ...]:
    level, totals = resampling.confidence_level, mean_of_defined(oriented)
    there = ~np.isnan(oriented)
    filled = np.where(there, oriented, 0.0)
    others = (there.sum(1, keepdims=True) - there).astype(float)
    # The mean of each item's other criteria for each criterion.
    rest = divide(filled.sum(1, keepdims=True) - filled, others)
    return tuple(
        CriterionAnalysis(
            name=name,
            level=criterion.level,
            weight=float(weights.of_criterion[at]) if weights.known else None,
            mean=mean_estimate_of(values[:, at], level, binary=criterion.level == "binary"),
            discrimination=pearson(rest[:, at], oriented[:, at], confidence_level=level),
            upper_lower=upper_lower(oriented[:, at], totals, resampling),
            alpha_without=alpha_of(np.delete(oriented, at, axis=1), interval=False),
            tau_without=tau_without(values, weights.by_item, at),
            dead=_why_uninformative(values[:, at]),
        )
        for at, (criterion, name) in enumerate(
            zip(table.criteria, distinct_names(table.criteria), strict=True)
        )
    )


def _why_uninformative(values: Array) -> Reason | None:
    kept = values[~np.isnan(values)]
    if not len(kept):
        return "no_values"
    return "no_variance" if float(np.ptp(kept)) <= 1e-12 else None


def _notes(weights: RubricWeights, oriented: bool) -> tuple[str, ...]:
    notes = []
    if not weights.known:
        notes.append("no rubric is available, so all criteria have the same weight")
    if weights.simplified:
        notes.append("gates, conditions and bonuses are ignored in the scores compared here")
    if oriented:
        notes.append("penalties are reversed (1 - value) in correlations and alpha, but not in means")
    return tuple(notes)
