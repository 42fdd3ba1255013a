"""Biases of judges: leniency, length, position, and preference for texts of their own family.

References:
    [1] J. M. Wooldridge (2010), Econometric analysis of cross section and panel data, 2nd ed., ch. 6:
        differences in differences.
    [2] A. Panickssery, S. R. Bowman, S. Feng (2024), LLM evaluators recognize and favor their own
        generations, NeurIPS.
    [3] Y. Dubois et al. (2024), Length-controlled AlpacaEval, COLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._audit._bias_results import BIASES, SHIFTS, BiasReport, JudgeBias
from autorubric.metrics._audit._item_facts import ItemFacts, facts_of
from autorubric.metrics._audit._length_lean import length_lean
from autorubric.metrics._audit._leniency import leniency, mean_difference, pass_rate_difference
from autorubric.metrics._audit._position_lean import position_lean
from autorubric.metrics._audit._rubric_weights import RubricWeights, weights_of
from autorubric.metrics._audit._self_preference import own_error_difference, self_preference
from autorubric.metrics._audit._valued import Valued, valued_of
from autorubric.metrics._judge_comparison import adjust_pvalues
from autorubric.metrics._label_table import table_of
from autorubric.metrics._options import Resampling
from autorubric.metrics._votes_table import VotesTable


def bias_report(
    result: Any,
    dataset: Any = None,
    *,
    families: Mapping[str, str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> BiasReport:
    """Estimate the biases of each judge, with intervals over items and Holm-adjusted p-values.

    All biases are computed from decisions, as values on [0, 1]. Cells (one criterion of one item) without a
    value are excluded: nominal options without a value, and numbers without a range. Values of penalties
    (negative weights) are reversed to 1 - value, so that a positive bias always favours the text. Means are
    over cells; their intervals are t intervals over C items with C - 1 degrees of freedom. The p-values are
    adjusted over all judges and kinds of bias.

    - Leniency: the asymmetry of errors, that is, the mean error expected at a true value of ½. It is the
      intercept of a regression of error on (truth - ½) with one slope per criterion, and equals (FPR - FNR) /
      2 on a binary criterion. A judge that errs equally often in favour of and against texts has a leniency
      of 0 at every base rate. The variance is the larger of the restricted one (score test) and the
      leverage-corrected sandwich; t has the effective number of items minus 1 degrees of freedom.
    - Mean difference and pass rate: the mean of judge minus truth, for values and for passes (values of at
      least ½). They depend on the base rate, so their p-values are adjusted separately.
    - Length: Spearman's rank correlation of an item's mean error with its number of words, controlling for
      the item's mean truth: (r_el - r_et r_lt) / √((1 - r_et²)(1 - r_lt²)). The control matters because
      longer texts may be better and because errors shrink towards the bounds of a scale; neither is a bias. p
      is from t with n - 3 degrees of freedom.
    - Position: the share of decided comparisons won by the candidate shown first, minus ½, over single votes
      with a known order. Ask in both orders; otherwise, showing better candidates first looks like a bias.
    - Self-preference [2]: in each cell, the judge's value minus the mean of the judges of other families. The
      bias is the mean of this difference on texts of the judge's own family minus its mean on other texts
      [1], so neither a good generator nor a lenient judge affects it. The truth cancels out, so no labels are
      needed. The test is Welch's t over items. `own_error_difference` is the same contrast of judge minus
      truth, without the other judges.

    Undefined biases have a reason: `no_truth`, `no_text` (no lengths), `no_order` (no comparisons of known
    order), `no_generator` (no item names a generator), `single_class` (for leniency, no truth varies),
    `one_judge` (no judge of another family), `no_pairs` (no text of the judge's own family, or only such
    texts).

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the texts, `metadata["generator"]` and labels; the run's own dataset by default.
        families: Family of each judge and generator, by name; a name that is not listed forms its own family.
        confidence_level: Confidence level of the intervals.
        n_resamples: Number of resamples of items, for the length bias.
        rng: Seed or NumPy generator of the resampling.

    Raises:
        ArgumentError: If `families` does not name any judge or generator of the run.
    """
    given = Resampling(confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    table = table_of(result, dataset)
    facts = facts_of(result, dataset, table.item_ids)
    known = _checked(families or {}, table, facts)
    weights = weights_of(result, dataset, table)
    valued = valued_of(table, weights.by_item)
    resampling = given.fixed()
    found = {judge: _of_judge(table, valued, facts, known, judge, resampling) for judge in table.judges}
    counts = {one: facts.generators.count(one) for one in dict.fromkeys(facts.generators) if one is not None}
    return BiasReport(
        per_judge=_adjusted(found),
        n_items=table.n_items,
        generators=counts,
        notes=_notes(valued, weights, counts, known),
    )


def _checked(families: Mapping[str, str], table: VotesTable, facts: ItemFacts) -> dict[str, str]:
    there = [*table.judges, *dict.fromkeys(one for one in facts.generators if one is not None)]
    if families and not set(families) & set(there):
        raise ArgumentError(
            f"families must name a judge or generator; got {sorted(families)!r}. Available: {there!r}"
        )
    return dict(families)


def _of_judge(
    table: VotesTable,
    valued: Valued,
    facts: ItemFacts,
    families: Mapping[str, str],
    judge: str,
    resampling: Resampling,
) -> JudgeBias:
    at, level = table.judges.index(judge), resampling.confidence_level
    own = families.get(judge, judge)
    written = [None if one is None else families.get(one, one) for one in facts.generators]
    others = [place for place, name in enumerate(table.judges) if families.get(name, name) != own]
    by_own = np.array([np.nan if one is None else float(one == own) for one in written])
    mine = valued.item[~np.isnan(valued.value[:, at])]
    return JudgeBias(
        leniency=leniency(valued, at, level),
        mean_difference=mean_difference(valued, at, level),
        pass_rate_difference=pass_rate_difference(valued, at, level),
        length_lean=length_lean(valued, at, facts.lengths, resampling),
        position_lean=position_lean(table, judge, level),
        self_preference=self_preference(valued, at, others, by_own, level),
        own_error_difference=own_error_difference(valued, at, by_own, level),
        family=own,
        n_own_items=int(np.count_nonzero(by_own[np.unique(mine)] == 1)),
    )


def _adjusted(found: Mapping[str, JudgeBias]) -> dict[str, JudgeBias]:
    """Adjust the p-values of each family of tests (judges × kinds of bias) together."""
    adjusted = dict(found)
    for family in (BIASES, SHIFTS):
        tests = [(judge, kind, getattr(one, kind)) for judge, one in found.items() for kind in family]
        p_values = adjust_pvalues([bias.p_value for _, _, bias in tests], method="holm")
        for (judge, kind, bias), p_value in zip(tests, p_values, strict=True):
            changed: dict[str, Any] = {kind: replace(bias, adjusted_p_value=p_value)}
            adjusted[judge] = replace(adjusted[judge], **changed)
    return adjusted


def _notes(
    valued: Valued, weights: RubricWeights, generators: Mapping[str, int], families: Mapping[str, str]
) -> tuple[str, ...]:
    notes = []
    if valued.left_out:
        notes.append(f"criteria excluded for lack of values on [0, 1]: {', '.join(valued.left_out)}")
    if not weights.known:
        notes.append(
            "no rubric is available, so values of penalties are not reversed and count in favour of the "
            "text; pass the dataset if there are penalties"
        )
    if valued.has_penalties:
        notes.append("values of penalties are reversed, so a positive bias favours the text")
    kin = {families.get(one, one) for one in valued.judges} & {families.get(one, one) for one in generators}
    if generators and not kin:
        notes.append("no judge belongs to a generator's family; pass families={name: family} to declare them")
    return tuple(notes)
