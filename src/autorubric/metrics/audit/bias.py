"""Biases of judges: leniency, length, position, and preference for texts of their own family.

References:
    [1] J. M. Wooldridge (2010), Econometric analysis of cross section and panel data, 2nd ed., ch. 6:
        differences in differences.
    [2] A. Panickssery, S. R. Bowman, S. Feng (2024), LLM evaluators recognize and favor their own
        generations, NeurIPS.
    [3] Y. Dubois et al. (2024), Length-controlled AlpacaEval, COLM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError
from autorubric.metrics.audit.contests import adjust_pvalues
from autorubric.metrics.audit.item_results import RubricWeights, weights_of
from autorubric.metrics.audit.labelled_votes import order_by_id
from autorubric.metrics.audit.leniency import (
    BIASES,
    SHIFTS,
    BiasReport,
    JudgeBias,
    TestedBias,
    Valued,
    leniency,
    mean_difference,
    pass_rate_difference,
    position_lean,
    valued_of,
)
from autorubric.metrics.audit.resampled import clustered_error, influences, resampled_units
from autorubric.metrics.core.estimate import Estimate, Reason, is_rounding
from autorubric.metrics.core.intervals import t_quantile
from autorubric.metrics.core.item_scores import OwnedRun, SupportsGradedRun
from autorubric.metrics.core.label_table import dataset_of, table_of
from autorubric.metrics.core.rater_tables import weighted_units
from autorubric.metrics.core.resampling import Compute, Resampling
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.metrics.figures.correlation import correlation_p_value, correlation_test
from autorubric.metrics.figures.ranks import Ranked, spearman_of

_PREFERENCE = "judge minus judges of other families: mean on own family's texts - mean on other texts"
_ERROR = "judge minus truth: mean on own family's texts - mean on other texts"


def self_preference(
    valued: Valued, judge: int, others: Sequence[int], by_own: Array, confidence_level: float
) -> TestedBias:
    """Estimate self-preference as a difference in differences relative to judges of other families."""
    if not others:
        reason = "no_generator" if np.isnan(by_own).all() else "one_judge"
        return TestedBias(effect=Estimate.undefined(cast("Reason", reason), method=_PREFERENCE))
    rest = valued.value[:, list(others)]
    there = ~np.isnan(rest)
    mean = np.where(there, rest, 0.0).sum(1) / np.where(there.any(1), there.sum(1), np.nan)
    return _contrast(valued.value[:, judge] - mean, valued.item, by_own, confidence_level, _PREFERENCE)


def own_error_difference(valued: Valued, judge: int, by_own: Array, confidence_level: float) -> TestedBias:
    """Estimate the difference in errors between texts of the judge's own family and other texts."""
    errors = valued.value[:, judge] - valued.truth
    if np.isnan(valued.truth).all():
        return TestedBias(effect=Estimate.undefined("no_truth", method=_ERROR))
    return _contrast(errors, valued.item, by_own, confidence_level, _ERROR)


def _contrast(values: Array, item: Codes, by_own: Array, confidence_level: float, method: str) -> TestedBias:
    """Estimate the mean over own texts minus that over other texts, with Welch's t interval over items."""
    text = f"{method}; Welch's t interval over items, {confidence_level:.0%}"
    if np.isnan(by_own).all():
        return TestedBias(effect=Estimate.undefined("no_generator", method=text))
    kind = np.where(np.isnan(values), np.nan, by_own[item])
    n = int(np.count_nonzero(~np.isnan(kind)))
    groups = [np.flatnonzero(kind == which) for which in (1.0, 0.0)]
    if not all(len(group) for group in groups):
        return TestedBias(effect=Estimate.undefined("no_pairs", n=n, method=text))
    (own, own_effects), (other, other_effects) = (
        influences(values[group], np.unique(item[group], return_inverse=True)[1].reshape(-1))
        for group in groups
    )
    difference = own - other
    if min(len(own_effects), len(other_effects)) < 2:
        return TestedBias(effect=Estimate(difference, n=n, method=text, reason="too_few_units"))
    errors = [clustered_error(effects) for effects in (own_effects, other_effects)]
    se = math.hypot(*errors)
    if is_rounding(se, float(np.nanmax(np.abs(values)))):
        return TestedBias(effect=Estimate(difference, n=n, method=text, reason="no_variance"))
    sizes = (len(own_effects), len(other_effects))
    parts = sum(error**4 / (size - 1) for error, size in zip(errors, sizes, strict=True))
    df = se**4 / parts if parts > 0 else float(min(sizes) - 1)
    half = t_quantile(confidence_level, df) * se
    effect = Estimate(difference, difference - half, difference + half, se, n, text)
    return TestedBias.by_t(effect, df)


_LENGTH_BIAS = "partial Spearman correlation of error and length, given the truth"


def length_lean(valued: Valued, judge: int, lengths: Array, resampling: Resampling) -> TestedBias:
    """Estimate the partial rank correlation of mean error and length over items, given the mean truth."""
    errors = valued.value[:, judge] - valued.truth
    there = ~np.isnan(errors)
    counts = np.bincount(valued.item[there], minlength=valued.n_items)
    rated = (counts > 0) & ~np.isnan(lengths)
    if not rated.any():
        reason = "no_text" if there.any() and np.isnan(lengths).all() else valued.reason
        return TestedBias(effect=Estimate.undefined(cast("Reason", reason), method=_LENGTH_BIAS))
    drawn = order_by_id(valued.item_ids)
    drawn = drawn[rated[drawn]]
    error, truth = (
        np.bincount(valued.item[there], weights=column[there], minlength=valued.n_items)[drawn]
        / counts[drawn]
        for column in (errors, valued.truth)
    )
    effect = _partial(error, lengths[drawn], truth, resampling)
    if effect.value is None:
        return TestedBias(effect=effect)
    # Controlling for the truth costs one degree of freedom, so t has n - 3.
    p_value = correlation_p_value(effect.value, effect.n - 1)
    return TestedBias(effect=effect, p_value=p_value, test=correlation_test(effect.value, effect.n - 1))


def _spearman(a: Array, b: Array) -> Compute:
    """Return Spearman's rho of two columns as a function of row weights."""
    (seen_a, x), (seen_b, y) = (np.unique(column, return_inverse=True) for column in (a, b))
    shape = (len(seen_a), len(seen_b))
    units = weighted_units(len(a), None)
    return spearman_of(Ranked(x.reshape(-1), y.reshape(-1), shape, False, units))


def _partial(error: Array, length: Array, truth: Array, resampling: Resampling) -> Estimate:
    n = len(error)
    # Rounding makes equal means ties.
    error, truth = np.round(error, 12), np.round(truth, 12)

    rhos = [_spearman(a, b) for a, b in ((error, length), (error, truth), (length, truth))]

    def compute(weights: Array) -> Array:
        with_length, with_truth, between = (rho(weights) for rho in rhos)
        # A truth that does not vary explains nothing.
        constant = np.isnan(with_truth) | np.isnan(between)
        with_truth, between = (np.where(constant, 0.0, one) for one in (with_truth, between))
        left = (1 - with_truth**2) * (1 - between**2)
        room = left > 1e-12
        partial = (with_length - with_truth * between) / np.sqrt(np.where(room, left, 1.0))
        return np.clip(np.where(room, partial, np.nan), -1.0, 1.0)[:, None]

    reason: Reason = "too_few_units" if n < 4 else "no_variance"
    if n < 4:
        return Estimate.undefined(reason, n=n, method=_LENGTH_BIAS)
    return resampled_units(
        weighted_units(n, None), compute, resampling, [_LENGTH_BIAS], n=[n], reasons=[reason]
    )[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFacts:
    """Properties of the items other than labels, by position.

    Attributes:
        lengths: Number of words of each submission, shape `(n_items,)`; NaN without text or with named
            candidates.
        generators: Author of each submission from `metadata["generator"]`; None if it is not recorded.
    """

    lengths: Array
    generators: tuple[str | None, ...]


def facts_of(result: Any, dataset: Any, item_ids: Sequence[str]) -> ItemFacts:
    """Return lengths and authors from `dataset` or the run's own dataset; without either, all are missing."""
    source = dataset
    if source is None and isinstance(result, SupportsGradedRun) and isinstance(result, OwnedRun):
        source = dataset_of(result)
    if source is None:
        return ItemFacts(lengths=np.full(len(item_ids), np.nan), generators=(None,) * len(item_ids))
    items = list(source.items)
    return ItemFacts(
        lengths=np.array([_words(one.submission) for one in items], dtype=float),
        generators=tuple(_generator(one) for one in items),
    )


def _words(submission: Any) -> float:
    parsed = Submission.parse(submission)
    if parsed.text is None or parsed.candidates:
        return float("nan")
    return float(len(parsed.text.split()))


def _generator(item: Any) -> str | None:
    generator = getattr(item, "metadata", {}).get("generator")
    return None if generator is None else str(generator)


def bias_report(
    result: Any,
    dataset: Any = None,
    *,
    families: Mapping[str, str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> BiasReport:
    """Estimate each judge's biases, with intervals over items and Holm-adjusted p-values.

    All biases are computed from decisions expressed as values in [0, 1]. A cell (one criterion of one item)
    that has no value is excluded, such as a nominal option without a value or a number without a range.
    Penalty values (criteria with negative weights) are reversed to 1 - value, so that a positive bias always
    favours the text. Means are over cells, with t intervals clustered over C items (C - 1 degrees of
    freedom). P-values are adjusted over all judges and kinds of bias.

    - Leniency: the asymmetry of the judge's errors, that is, the mean error at a true value of ½. It is the
      intercept of a regression of error on (truth - ½) with one slope per criterion, and equals (FPR - FNR) /
      2 on a binary criterion. A judge whose errors favour and penalise texts equally often has a leniency of
      0 at every base rate. The variance is the larger of the restricted variance (score test) and the
      leverage-corrected sandwich variance; t has (effective number of items - 1) degrees of freedom.
    - Mean difference and pass rate: the mean of judge minus truth, computed on values and on passes (values
      of at least ½). Both depend on the base rate, so their p-values are adjusted separately.
    - Length: Spearman's rank correlation between an item's mean error and its word count, controlling for the
      item's mean truth: (r_el - r_et r_lt) / √((1 - r_et²)(1 - r_lt²)). The control is needed because longer
      texts may be better and errors shrink near the bounds of a scale; neither effect is a bias. The p-value
      uses t with n - 3 degrees of freedom.
    - Position: the fraction of decided comparisons won by the candidate shown first, minus ½, over single
      votes with a known order. Use both orders; otherwise, showing better candidates first looks like a bias.
    - Self-preference (Panickssery et al. 2024): for each cell, the judge's value minus the mean value of
      judges from other families. The bias is the mean of this difference on texts from the judge's own family
      minus its mean on other texts (difference in differences), so neither a good generator nor a lenient
      judge affects it. The truth cancels out, so no labels are needed. The test is Welch's t test with items
      as observations. `own_error_difference` is the same contrast of judge minus truth.

    An undefined bias has a reason: `no_truth`, `no_text` (no lengths), `no_order` (no comparisons with a
    known order), `no_generator` (no item names a generator), `single_class` (leniency only: the truth does
    not vary within any criterion), `one_judge` (no judge from another family), `no_pairs` (no text from the
    judge's own family, or only such texts).

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the texts, `metadata["generator"]` and labels; the run's own dataset by default.
        families: Family of each judge and generator, by name; a name that is not listed forms its own family.
        confidence_level: Confidence level of the intervals.
        n_resamples: Number of item resamples for the length bias.
        rng: Seed or NumPy generator for the resampling.

    Raises:
        ArgumentError: If `families` names neither a judge nor a generator of the run.
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
        notes.append(f"criteria excluded because they have no values in [0, 1]: {', '.join(valued.left_out)}")
    if valued.unanswered:
        notes.append(f"criteria excluded because no judge answered them: {', '.join(valued.unanswered)}")
    if not weights.known:
        notes.append(
            "no rubric is available, so penalty values are not reversed and penalties count in favour of the "
            "text; pass the dataset if there are penalties"
        )
    if valued.has_penalties:
        notes.append("penalties are reversed (1 - value), so a positive bias favours the text")
    kin = {families.get(one, one) for one in valued.judges} & {families.get(one, one) for one in generators}
    if generators and not kin:
        notes.append("no judge belongs to a generator's family; pass families={name: family} if any do")
    return tuple(notes)
