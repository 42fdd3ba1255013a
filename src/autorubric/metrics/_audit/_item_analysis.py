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

from dataclasses import replace
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._audit._decided import distinct_names
from autorubric.metrics._audit._discrimination import mean_of, redundant_pairs, rest_means, upper_lower
from autorubric.metrics._audit._item_order import order_by_id
from autorubric.metrics._audit._item_results import CriterionAnalysis, ItemAnalysis
from autorubric.metrics._audit._resampled import mean_of_defined
from autorubric.metrics._audit._rubric_weights import RubricWeights, weights_of
from autorubric.metrics._audit._total_reliability import alpha_of, stratified_alpha
from autorubric.metrics._audit._weight_sensitivity import tau_without, weight_sensitivity
from autorubric.metrics._correlation import pearson
from autorubric.metrics._estimate import Reason
from autorubric.metrics._item_scores import PANEL, TRUTH, Rater
from autorubric.metrics._label_table import table_of
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array
from autorubric.metrics._votes_table import VotesTable


def item_analysis(
    result: Any,
    dataset: Any = None,
    *,
    rater: str = "panel",
    redundant_from: float = 0.7,
    spread: float = 0.25,
    n_draws: int = 200,
    rng: int | np.random.Generator = 0,
) -> ItemAnalysis:
    """Analyse the criteria of a rubric: their discrimination, their redundancy and the effect of weights.

    All results use one rater's decisions as values on [0, 1]; criteria without values are excluded. Values of
    penalties (negative weights) are reversed to 1 - value wherever criteria are combined.

    - Discrimination is the correlation of a criterion with the mean of the item's other criteria [1], and the
      difference between the means of the best and the worst 27 % of items by mean value [2]; items tied at
      the cut-off are included in part.
    - Pairs of criteria are redundant if they have at least ten items in common and |r| reaches
      `redundant_from`.
    - Sensitivity to weights: the weights are multiplied by e^(spread z), with z standard normal, and the
      scores are compared with the original ones by Kendall's tau-b.
    - Reliability is Cronbach's alpha [3] over items that have every value, unweighted and weighted as in the
      score, and alpha stratified by the rubric's groups [4]. It is undefined if rubrics differ between items
      (`no_ratings`).

    Scores are Σ w v / Σ positive w, with nested weights multiplied out. Gates, conditions and bonuses, which
    weights cannot express, are ignored and noted. A label table without a dataset weights all criteria
    equally. A mean without values is undefined (`no_values`), criteria that do not vary have no correlation
    (`no_variance`), and a single criterion cannot be compared with others (`no_pairs`).

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the rubrics; the run's own dataset by default.
        rater: Rater whose values are used: `panel`, `truth`, or the name of a judge.
        redundant_from: Smallest |r| of a redundant pair, in (0, 1].
        spread: Size of the random changes to the weights; 0.25 changes them by about a quarter.
        n_draws: Number of random sets of weights.
        rng: Seed or NumPy generator of the resamples and draws.

    Raises:
        ArgumentError: If the rater is unknown, or an option is out of range.
    """
    if not 0.0 < redundant_from <= 1.0:
        raise ArgumentError(f"redundant_from must be greater than 0 and at most 1; got {redundant_from!r}")
    if spread < 0 or n_draws < 1:
        raise ArgumentError(f"spread must be at least 0 and n_draws at least 1; got {spread!r}, {n_draws!r}")
    resampling, table = Resampling(rng=rng).fixed(), table_of(result, dataset)
    order = order_by_id(table.item_ids)
    weights = weights_of(result, dataset, table)
    weights = replace(weights, by_item=weights.by_item[order])
    values = _values_of(table, _rater(table, rater))[order]
    turned = np.where(weights.of_criterion < 0, 1 - values, values)
    names = distinct_names(table.criteria)
    reversal = weights.of_criterion < 0
    criteria = _criteria(table, values, turned, weights, resampling)
    level = resampling.confidence_level
    return ItemAnalysis(
        rater=rater,
        n_items=int(np.count_nonzero(~np.isnan(values).all(axis=1))) if values.size else 0,
        criteria=criteria,
        redundant=redundant_pairs(turned, names, redundant_from, level),
        threshold=float(redundant_from),
        dead=tuple(one.name for one in criteria if one.dead is not None),
        weights=weight_sensitivity(values, weights.by_item, float(spread), n_draws, resampling),
        alpha=alpha_of(turned, confidence_level=level),
        weighted_alpha=alpha_of(turned * np.abs(weights.of_criterion), confidence_level=level),
        stratified_alpha=stratified_alpha(
            turned, [weights.group.get(at, name) for at, name in enumerate(names)], resampling
        ),
        notes=_notes(weights, bool(reversal.any())),
    )


def _rater(table: VotesTable, name: str) -> Rater:
    found: Rater = {"panel": PANEL, "truth": TRUTH}.get(name, ("judge", name))
    if name not in ("panel", "truth") and found not in table.raters:
        raise ArgumentError(f"rater must be 'panel', 'truth' or one of {list(table.judges)!r}; got {name!r}")
    return found


def _values_of(table: VotesTable, rater: Rater) -> Array:
    values = np.full((table.n_items, len(table.criteria)), np.nan)
    if rater in table.raters:
        rows = table.rows_of(rater)
        values[table.item[rows], table.criterion[rows]] = table.value[rows]
    return values


def _criteria(
    table: VotesTable, values: Array, turned: Array, weights: RubricWeights, resampling: Resampling
) -> tuple[CriterionAnalysis, ...]:
    level, rest, totals = resampling.confidence_level, rest_means(turned), mean_of_defined(turned)
    found = []
    for at, (criterion, name) in enumerate(zip(table.criteria, distinct_names(table.criteria), strict=True)):
        found.append(
            CriterionAnalysis(
                name=name,
                level=criterion.level,
                weight=float(weights.of_criterion[at]) if weights.known else None,
                mean=mean_of(values[:, at], level, binary=criterion.level == "binary"),
                discrimination=pearson(rest[:, at], turned[:, at], confidence_level=level),
                upper_lower=upper_lower(turned[:, at], totals, resampling),
                alpha_without=alpha_of(np.delete(turned, at, axis=1), interval=False),
                tau_without=tau_without(values, weights.by_item, at),
                dead=_dead(values[:, at]),
            )
        )
    return tuple(found)


def _dead(values: Array) -> Reason | None:
    kept = values[~np.isnan(values)]
    if not len(kept):
        return "no_values"
    return "no_variance" if float(np.ptp(kept)) <= 1e-12 else None


def _notes(weights: RubricWeights, turned: bool) -> tuple[str, ...]:
    notes = []
    if not weights.known:
        notes.append("no rubric is available, so all criteria have the same weight")
    if weights.simplified:
        notes.append("gates, conditions and bonuses are ignored in the scores compared here")
    if turned:
        notes.append("values of penalties are reversed in correlations and alpha, but not in means")
    return tuple(notes)
