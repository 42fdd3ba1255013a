"""Biases of judges: leniency, length, position, and preference for texts of their own family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError
from autorubric.metrics.audit.bias_estimates import (
    OWN_ERROR,
    JudgedValues,
    TestedBias,
    bias_of_mean,
    contrast_own,
    length_biases,
    leniency,
    position_bias,
    read_values,
    self_preference,
    undefined_bias,
)
from autorubric.metrics.audit.compare_judges import adjust_pvalues
from autorubric.metrics.audit.rubric_weights import RubricWeights, dataset_or_own, weights_of
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling, ResamplingArguments
from autorubric.metrics.core.result import ResultBase, format_estimate, format_notes, titles_of
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.support.blocks import Block, Cell, TableBlock, p_cell, p_text

PASS_FROM = 0.5

SURE = 0.05
"""A bias is reported as significant if its adjusted p-value is below this level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeBias:
    """The biases of one judge, as defined in `bias_report`."""

    leniency: TestedBias = field(
        metadata={"title": "leniency (mean error at a true value of ½; (FPR − FNR) / 2 on binary criteria)"}
    )
    mean_difference: TestedBias = field(
        metadata={"title": "mean difference (judge − truth, in [0, 1]; depends on the base rate)"}
    )
    pass_rate_difference: TestedBias = field(
        metadata={"title": "pass rate (judge − truth; depends on the base rate)"}
    )
    length_lean: TestedBias = field(
        metadata={"title": "length (partial Spearman correlation of error and length, given the truth)"}
    )
    position_lean: TestedBias = field(
        metadata={"title": "position (win rate of the candidate shown first − ½)"}
    )
    self_preference: TestedBias = field(
        metadata={"title": "self-preference (own family's texts − other texts, relative to other judges)"}
    )
    own_error_difference: TestedBias = field(
        metadata={"title": "own-family error (mean error on own family's texts − on other texts)"}
    )
    family: str
    n_own_items: int  # judged items whose text was written by the judge's own family


_TITLES = titles_of(JudgeBias)

SHIFTS = {name: _TITLES[name] for name in ("mean_difference", "pass_rate_difference")}
"""Differences from the truth that symmetric errors can also cause, so they need not be biases."""

BIASES = {name: title for name, title in _TITLES.items() if name not in SHIFTS}
"""Kinds of bias with their descriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasReport(ResultBase):
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

    def _sentence(self) -> str:
        """Summarise the most significant bias, by the p-value adjusted over all judges and kinds of bias."""
        tested: list[tuple[float, str, str, TestedBias]] = []
        for judge, one in self.per_judge.items():
            for kind in BIASES:
                bias: TestedBias = getattr(one, kind)
                if bias.adjusted_p_value is not None:
                    tested.append((bias.adjusted_p_value, judge, kind, bias))
        if not tested:
            return "No bias could be tested; the tables give the reasons."
        # Unadjusted p-values break ties between adjusted ones.
        p, judge, kind, bias = min(tested, key=lambda one: (one[0], one[3].p_value or 0.0))
        what = f"{judge}'s {BIASES[kind].split(' (')[0]}: {format_estimate(bias.effect)}"
        over = f"adjusted p {p_text(p)} (Holm, {len(tested)} tests over judges and kinds of bias)"
        if p >= SURE:
            return f"No bias is significant. The smallest p-value is for {what}, {over}."
        return f"The clearest bias is {what}, {over}."

    def _tables(self) -> list[Block]:
        tables = [
            TableBlock(
                title=title[0].upper() + title[1:],
                columns=("judge", "estimate", "low", "high", "p", "p (Holm)", "n", "reason"),
                rows=tuple(_row(judge, getattr(one, name)) for judge, one in self.per_judge.items()),
            )
            for name, title in (BIASES | SHIFTS).items()
        ]
        return [*tables, *format_notes(self.notes)]


def _row(judge: str, bias: TestedBias) -> tuple[Cell, ...]:
    effect = bias.effect
    tests = (p_cell(bias.p_value), p_cell(bias.adjusted_p_value))
    return (judge, effect.value, effect.low, effect.high, *tests, effect.n, effect.reason or "")


def _lengths_and_generators(result: Any, dataset: Any, n_items: int) -> tuple[Array, list[str | None]]:
    """Return the words of each submission (NaN without one text) and its author, if there is a dataset."""
    source = dataset_or_own(result, dataset)
    if source is None:
        return np.full(n_items, np.nan), [None] * n_items
    items = list(source.items)
    parsed = [Submission.parse(one.submission) for one in items]
    lengths = [np.nan if one.text is None or one.candidates else len(one.text.split()) for one in parsed]
    generators = [getattr(one, "metadata", {}).get("generator") for one in items]
    return np.array(lengths, dtype=float), [None if one is None else str(one) for one in generators]


def bias_report(
    result: Any,
    dataset: Any = None,
    *,
    families: Mapping[str, str] | None = None,
    **resampling: Unpack[ResamplingArguments],
) -> BiasReport:
    """Estimate each judge's biases, with intervals over items and Holm-adjusted p-values.

    Biases are of decisions as values in [0, 1]; a cell (one criterion of one item) without a value, such as a
    number without a range, is excluded. Values of penalties (negative weights) are reversed to 1 - value, so
    that a positive bias favours the text. Means are over cells, with t intervals clustered over C items
    (C - 1 degrees of freedom). P-values are adjusted over all judges and kinds of bias.

    - Leniency: the mean error at a true value of ½, that is, the intercept of a regression of error on
      (truth - ½) with one slope per criterion; (FPR - FNR) / 2 on a binary criterion. It is 0 at every base
      rate if errors favour and penalise texts equally often. The variance is the larger of the restricted
      one (score test) and the leverage-corrected sandwich; t has (effective number of items - 1) df.
    - Mean difference and pass rate: the mean of judge minus truth, of values and of passes (values from ½).
      Both depend on the base rate, so their p-values are adjusted separately.
    - Length: Spearman's correlation between an item's mean error and its word count, controlling for its mean
      truth: (r_el - r_et r_lt) / √((1 - r_et²)(1 - r_lt²)). Without the control, that longer texts may be
      better and that errors shrink near the bounds of a scale would look like a bias. t has n - 3 df.
    - Position: the fraction of decided comparisons won by the candidate shown first, minus ½, over single
      votes with a known order. Use both orders; otherwise, showing better candidates first looks like a bias.
    - Self-preference (Panickssery et al. 2024): the judge's value minus the mean value of judges from other
      families, averaged over its own family's texts, minus the average over other texts. Neither a good
      generator nor a lenient judge affects this difference in differences, and it needs no labels. The test
      is Welch's t test over items. `own_error_difference` is the same contrast of judge minus truth.

    Reasons for undefined biases: `no_truth`, `no_text` (no lengths), `no_order` (no comparison with a known
    order), `no_generator` (no item names one), `single_class` (leniency: the truth does not vary within any
    criterion), `one_judge` (no judge of another family), `no_pairs` (no, or only, texts of the own family).

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the texts, `metadata["generator"]` and labels; the run's own dataset by default.
        families: Family of each judge and generator, by name; a name that is not listed forms its own family.
        **resampling: See `ResamplingArguments`; `n_resamples` resamples of items are for the length bias.

    Raises:
        ArgumentError: If `families` names neither a judge nor a generator of the run.
    """
    options, table = Resampling(**resampling).with_fixed_seed(), table_of(result, dataset)
    lengths, generators = _lengths_and_generators(result, dataset, table.n_items)
    counts = {one: generators.count(one) for one in dict.fromkeys(generators) if one is not None}
    known, there = dict(families or {}), [*table.judges, *counts]
    if known and not known.keys() & {*there}:
        told = f"got {sorted(known)!r}. Available: {there!r}"
        raise ArgumentError(f"families must name a judge or generator; {told}")
    weights = weights_of(result, dataset, table)
    values = read_values(table, weights.by_item)
    leans = zip(table.judges, length_biases(values, lengths, options), strict=True)
    found = {
        judge: _judge_bias(table, values, generators, known, judge, lean, options.confidence_level)
        for judge, lean in leans
    }
    tests, notes = _adjust_tests(found), _notes(values, weights, counts, known)
    return BiasReport(per_judge=tests, n_items=table.n_items, generators=counts, notes=notes)


def _judge_bias(
    table: VotesTable,
    values: JudgedValues,
    generators: Sequence[str | None],
    families: Mapping[str, str],
    judge: str,
    length_lean: TestedBias,
    level: float,
) -> JudgeBias:
    at = table.judges.index(judge)
    own = families.get(judge, judge)
    written = [None if one is None else families.get(one, one) for one in generators]
    others = [place for place, name in enumerate(table.judges) if families.get(name, name) != own]
    by_own = np.array([np.nan if one is None else float(one == own) for one in written])
    errors = values.value[:, at] - values.truth
    passes = (values.value[:, at] >= PASS_FROM).astype(float) - (values.truth >= PASS_FROM)
    passes = np.where(np.isnan(errors), np.nan, passes)
    if np.isnan(values.truth).all():
        own_error = undefined_bias("no_truth", OWN_ERROR)
    else:
        own_error = contrast_own(errors, values.item, by_own, level, OWN_ERROR)
    mine = values.item[~np.isnan(values.value[:, at])]
    return JudgeBias(
        leniency=leniency(values, at, level),
        mean_difference=bias_of_mean(errors, values.item, level, "judge - truth", values.reason),
        pass_rate_difference=bias_of_mean(
            passes, values.item, level, "pass rates, judge - truth", values.reason
        ),
        length_lean=length_lean,
        position_lean=position_bias(table, judge, level),
        self_preference=self_preference(values, at, others, by_own, level),
        own_error_difference=own_error,
        family=own,
        n_own_items=int(np.count_nonzero(by_own[np.unique(mine)] == 1)),
    )


def _adjust_tests(found: Mapping[str, JudgeBias]) -> dict[str, JudgeBias]:
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
    values: JudgedValues, weights: RubricWeights, generators: Mapping[str, int], families: Mapping[str, str]
) -> tuple[str, ...]:
    notes = []
    if values.left_out:
        notes.append(f"criteria excluded because they have no values in [0, 1]: {', '.join(values.left_out)}")
    if values.unanswered:
        notes.append(f"criteria excluded because no judge answered them: {', '.join(values.unanswered)}")
    if not weights.known:
        notes.append(
            "no rubric is available, so penalty values are not reversed and penalties count in favour of the "
            "text; pass the dataset if there are penalties"
        )
    if values.has_penalties:
        notes.append("penalties are reversed (1 - value), so a positive bias favours the text")
    kin = {families.get(one, one) for one in values.judges} & {families.get(one, one) for one in generators}
    if generators and not kin:
        notes.append("no judge belongs to a generator's family; pass families={name: family} if any do")
    return tuple(notes)
