"""Biases of judges: leniency, length, position, and preference for texts of their own family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError
from autorubric.metrics.audit.bias_estimates import (
    MOST_WRONG,
    BiasTests,
    JudgedValues,
    TestedBias,
    WrongLabels,
    bias_of_mean,
    position_bias,
    read_values,
    wrong_labels,
)
from autorubric.metrics.audit.compare_judges import adjust_pvalues
from autorubric.metrics.audit.rubric_weights import RubricWeights, dataset_or_own, weights_of
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling, ResamplingArguments
from autorubric.metrics.core.result import ResultBase, format_estimate, format_notes, titles_of
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import VotesTable
from autorubric.metrics.core.wording import side_of
from autorubric.support.blocks import Block, Cell, TableBlock, p_cell, p_text

PASS_FROM = 0.5

SURE = 0.05
"""A bias is reported as significant if its adjusted p-value is below this level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeBias:
    """The biases of one judge, as defined in `bias_report`."""

    leniency: TestedBias = field(
        metadata={"title": "leniency (pass rate where half of the texts pass − ½; (FPR − FNR) / 2)"}
    )
    mean_difference: TestedBias = field(
        metadata={"title": "mean difference (judge − truth, in [0, 1]; depends on the base rate)"}
    )
    pass_rate_difference: TestedBias = field(
        metadata={"title": "pass rate (judge − truth; depends on the base rate)"}
    )
    length_lean: TestedBias = field(
        metadata={"title": "length (pass rate, longer − shorter half of the texts, within criterion × truth)"}
    )
    position_lean: TestedBias = field(
        metadata={"title": "position (win rate of the candidate shown first − ½)"}
    )
    self_preference: TestedBias = field(
        metadata={
            "title": "self-preference (own family's texts − other texts, relative to other judges, within "
            "criterion × truth)"
        }
    )
    own_error_difference: TestedBias = field(
        metadata={"title": "own-family error (own family's texts − other texts, within criterion × truth)"}
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
        wrong_labels: Estimated share of wrong labels, and the largest share that a named bias must withstand.
        notes: Notes on how the biases were computed.
    """

    per_judge: Mapping[str, JudgeBias]
    n_items: int
    generators: Mapping[str, int]
    wrong_labels: WrongLabels
    notes: tuple[str, ...]

    def _sentence(self) -> str:
        """Name the most significant bias, if it withstands the wrong labels that are possible."""
        tested = [
            (bias.cautious_p_value, bias.adjusted_p_value, judge, kind, bias)
            for judge, one in self.per_judge.items()
            for kind in BIASES
            if (bias := getattr(one, kind)).p_value is not None
        ]
        if not tested:
            return "No bias could be tested; the tables give the reasons."
        # Unadjusted p-values break ties between adjusted ones.
        cautious, p, judge, kind, bias = min(tested, key=lambda one: (*one[:2], one[4].p_value or 0.0))
        what = f"{judge}'s {BIASES[kind].split(' (')[0]}: {format_estimate(bias.effect)}"
        if kind != "position_lean":
            what += f", that is {100 * float(bias.effect):+.1f} points of pass rate"
        what += f", adjusted p {p_text(p)} (Holm, {len(tested)} tests over judges and kinds of bias)"
        if bias.explained_by:
            what += f". {bias.explained_by:.0%} wrong labels suffice to explain it"
            what += f"; {self.wrong_labels.describe()}"
        elif kind != "position_lean" and p < SURE:
            what += f". No share of wrong labels below {MOST_WRONG:.0%} explains it"
        if kind == "self_preference":
            own = self.per_judge[judge].own_error_difference
            what += "" if own.confirms(bias) else ". The judge's own-family error does not confirm it"
        if cautious < SURE and side_of(bias.effect) != "not shown":
            return f"The clearest bias is {what}."
        return f"No bias is {'shown' if p < SURE else 'significant'}. The smallest p-value is for {what}."

    def _tables(self) -> list[Block]:
        tables = [
            TableBlock(
                title=title[0].upper() + title[1:],
                columns=(
                    *("judge", "estimate", "low", "high", "p", "p (Holm)"),
                    *("wrong labels that explain it", "n", "reason"),
                ),
                rows=tuple(_row(judge, getattr(one, name)) for judge, one in self.per_judge.items()),
            )
            for name, title in (BIASES | SHIFTS).items()
        ]
        return [*tables, *format_notes(self.notes)]


def _row(judge: str, bias: TestedBias) -> tuple[Cell, ...]:
    effect = bias.effect
    tests = (p_cell(bias.p_value), p_cell(bias.adjusted_p_value))
    suffices = "" if bias.explained_by is None else f"{bias.explained_by:.0%}"
    return (judge, effect.value, effect.low, effect.high, *tests, suffices, effect.n, effect.reason or "")


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
    label_error: float | None = None,
    **resampling: Unpack[ResamplingArguments],
) -> BiasReport:
    """Estimate each judge's biases, with intervals over items and Holm-adjusted p-values.

    Biases are of decisions as values in [0, 1], in points of pass rate (0.1 is 10 points; on graded criteria,
    of the mean value). A cell (one criterion of one item) without a value, such as a number without a range,
    is excluded. Values of penalties (negative weights) are reversed to 1 - value, so that a positive bias
    favours the text. Intervals are t intervals clustered over items, whose degrees of freedom are the
    (effective) number of items minus 1. P-values are adjusted over all judges and kinds of bias.

    - Leniency: the mean error at a true value of ½, that is, the intercept of a regression of error on
      (truth - ½) with one slope per criterion; (FPR - FNR) / 2 on a binary criterion, the pass rate minus ½
      if half of the texts pass. It is 0 at every base rate for errors that favour and penalise texts equally.
    - Mean difference and pass rate: the mean of judge minus truth, of values and of passes (values from ½).
      Both depend on the base rate, so their p-values are adjusted separately.
    - Length: the slope of a regression of a cell's error on the rank of the text's number of words, from 0
      (shortest) to 2 (longest), with an intercept per criterion × true value (rounded to tenths): the longer
      minus the shorter half of the texts. Without these intercepts, unequal error rates or longer texts that
      are better would look like a bias.
    - Position: the fraction of decided comparisons won by the candidate shown first, minus ½, over single
      votes with a known order. Use both orders; otherwise, showing better candidates first looks like a bias.
    - Self-preference (Panickssery et al. 2024): the judge's value minus the mean value of judges from other
      families, on its own family's texts minus on other texts, within criterion × true value. Contrasts of
      strata are weighted by n₁ n₀ / (n₁ + n₀). Without labels, self-preference cannot be told from the
      accuracy of the judge or the quality of the generator, so it is undefined. `own_error_difference` is
      the same contrast of judge minus truth. A bias of the other judges has the same contrast (with one
      other family, both judges have the same figure), so the summary names a self-preference only if
      `own_error_difference` has an interval on the same side of 0 and a cautious p-value below .05 as well.

    Wrong labels can look like each of these biases except position. `explained_by` is the smallest share of
    wrong labels with which the interval contains 0, if they are wrong at random (Natarajan et al. 2013).
    Other figures take the labels as right, but the summary names a bias only by `cautious_p_value`, adjusted
    from the largest p-values up to the possible share of wrong labels: `label_error`; otherwise the upper
    limit of the share that the disagreement of people who labelled the same cells implies, or 20%, and at
    most the upper limit of the share of labels that differ from a judge's value where it gives that value.

    Reasons for undefined biases: `no_truth`, `no_text` (no lengths), `no_order` (no comparison with a known
    order), `no_generator` (no item names one), `single_class` (leniency: the truth does not vary within any
    criterion), `one_judge` (no judge of another family), `no_pairs` (no, or only, texts of the own family).

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the texts, `metadata["generator"]` and labels; the run's own dataset by default.
        families: Family of each judge and generator, by name; a name that is not listed forms its own family.
        label_error: Share of wrong labels, in [0, 0.49]; 0 takes the labels as right. None estimates it from
            people who labelled the same cells, and otherwise assumes up to .2.
        **resampling: See `ResamplingArguments`; only `confidence_level` is used.

    Raises:
        ArgumentError: If `families` names neither a judge nor a generator of the run, or `label_error` is not
            in its range.
    """
    if label_error is not None and not 0 <= label_error <= MOST_WRONG:
        raise ArgumentError(f"label_error must be in [0, {MOST_WRONG}]; got {label_error!r}")
    options, table = Resampling(**resampling).with_fixed_seed(), table_of(result, dataset)
    lengths, generators = _lengths_and_generators(result, dataset, table.n_items)
    counts = {one: generators.count(one) for one in dict.fromkeys(generators) if one is not None}
    known, there = dict(families or {}), [*table.judges, *counts]
    if known and not known.keys() & {*there}:
        told = f"got {sorted(known)!r}. Available: {there!r}"
        raise ArgumentError(f"families must name a judge or generator; {told}")
    weights = weights_of(result, dataset, table)
    values = read_values(table, weights.by_item)
    wrong = wrong_labels(values, label_error, options.confidence_level)
    written = [None if one is None else known.get(one, one) for one in generators]
    found = {}
    for at, judge in enumerate(table.judges):
        family = known.get(judge, judge)
        by_own = np.array([np.nan if one is None else float(one == family) for one in written])
        others = [place for place, name in enumerate(table.judges) if known.get(name, name) != family]
        tests = BiasTests(values, at, wrong, options.confidence_level)
        found[judge] = _judge_bias(table, tests, lengths, family, by_own, others)
    notes = _notes(values, weights, counts, known)
    return BiasReport(
        per_judge=_adjust_tests(found),
        n_items=table.n_items,
        generators=counts,
        wrong_labels=wrong,
        notes=notes,
    )


def _judge_bias(
    table: VotesTable, tests: BiasTests, lengths: Array, family: str, by_own: Array, others: Sequence[int]
) -> JudgeBias:
    values, level = tests.values, tests.level
    mine = values.value[:, tests.judge]
    errors = mine - values.truth
    passes = (mine >= PASS_FROM).astype(float) - (values.truth >= PASS_FROM)
    passes = np.where(np.isnan(errors), np.nan, passes)
    differences = {"judge - truth": errors, "pass rates, judge - truth": passes}
    mean, passed = (
        bias_of_mean(one, values.item, level, name, values.reason) for name, one in differences.items()
    )
    return JudgeBias(
        leniency=tests.leniency(),
        mean_difference=mean,
        pass_rate_difference=passed,
        length_lean=tests.length(lengths),
        position_lean=position_bias(table, values.judges[tests.judge], level),
        self_preference=tests.self_preference(others, by_own),
        own_error_difference=tests.own_error_difference(by_own),
        family=family,
        n_own_items=int(np.count_nonzero(by_own[np.unique(values.item[~np.isnan(mine)])] == 1)),
    )


def _adjust_tests(found: Mapping[str, JudgeBias]) -> dict[str, JudgeBias]:
    """Adjust the p-values of each family of tests (judges × kinds of bias) together."""
    adjusted = dict(found)
    # A contrast to other judges may be a bias of theirs, so the judge's own errors must confirm it.
    for judge, one in found.items():
        bias, own = one.self_preference, one.own_error_difference
        if bias.cautious_p_value is not None:
            alone = own.cautious_p_value or 0.0 if own.confirms(bias) else 1.0
            bias = replace(bias, cautious_p_value=max(bias.cautious_p_value, alone))
            adjusted[judge] = replace(one, self_preference=bias)
    for family in (BIASES, SHIFTS):
        tests = [(judge, kind, getattr(one, kind)) for judge, one in adjusted.items() for kind in family]
        p_values = adjust_pvalues([bias.p_value for _, _, bias in tests], method="holm")
        cautious = adjust_pvalues([bias.cautious_p_value for _, _, bias in tests], method="holm")
        for (judge, kind, bias), p, most in zip(tests, p_values, cautious, strict=True):
            changed: dict[str, Any] = {kind: replace(bias, adjusted_p_value=p, cautious_p_value=most)}
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
    if generators and np.isnan(values.truth).all():
        notes.append(
            "without labels, self-preference cannot be told from accuracy: a judge that is more accurate "
            "than the others, or a better generator, has the same contrast; label some of the items"
        )
    own = {families.get(one, one) for one in values.judges}
    if len(own) == 2 and generators:
        notes.append(
            "with one other family, self-preference is the same figure for judges of both families; "
            "own-family error tells them apart"
        )
    kin = own & {families.get(one, one) for one in generators}
    if generators and not kin:
        notes.append("no judge belongs to a generator's family; pass families={name: family} if any do")
    return tuple(notes)
