"""The mean score of a run, corrected for the judges' errors on each criterion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import expanded_tail
from autorubric.metrics.core.item_scores import LabelledDataset, SupportsGradedRun
from autorubric.metrics.core.label_table import dataset_of
from autorubric.metrics.core.resampling import MOST_UNDEFINED_CORRECTED, check_choice, interval_of
from autorubric.metrics.core.result import (
    ResultBase,
    describe_estimate,
    format_interval,
    interval_table,
    titled_figures,
)
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.wording import answered_in_words
from autorubric.metrics.correction import ppi
from autorubric.metrics.correction.judge_error import check_same_judging
from autorubric.metrics.correction.ppi import ppi_estimate
from autorubric.metrics.correction.samples import (
    CorrectionArguments,
    CorrectionMethod,
    CorrectionOptions,
    LabelledSample,
    Sampled,
    check_method,
)
from autorubric.metrics.correction.score_columns import (
    CorrectionSums,
    CriterionColumns,
    ScoredRun,
    correction_sums,
    join_calibration,
    read_item_scores,
    read_scores,
    resample_corrections,
    why_undefined,
)
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock

CorrectedOn: TypeAlias = Literal["criteria", "items"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedCriterion:
    """The corrected mean value of one criterion.

    Attributes:
        value: Mean value in [0, 1]; for a binary criterion, the pass rate.
        raw: The judges' own mean value.
        distribution: Corrected proportion of each answer, by label; None for ppi++ or if undefined.
        lam: λ of ppi++; None for other methods.
        n: Number of judged items.
        n_calibration: Number of items that are both judged and labelled.
        reason: Reason why there is no corrected value; None if there is one.
    """

    value: Estimate
    raw: Estimate
    distribution: Mapping[str, float] | None
    lam: float | None
    n: int
    n_calibration: int
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedScore(ResultBase):
    """The corrected mean score of a run.

    Attributes:
        score: Corrected mean of normalised scores before clamping and length penalty; it can be below 0 with
            penalties and above 1 with bonuses. With `on="items"`, it is clamped to [0, 1].
        raw: The same mean computed from the judges' decisions.
        labelled_only: The same mean from the labels alone; undefined unless every criterion has labels.
        per_criterion: Corrected criteria by name; empty with `on="items"`.
        method: Correction method.
        on: Whether criteria or item scores were corrected.
        n_items: Number of judged items, including items with abstentions.
        n_labelled: Number of judged items that have labels.
        n_abstained: Number of judged items on which the panel abstained on some criterion.
        n_clamped: Number of items whose weighted sum is outside [0, 1]. If there are any, the mean of the
            clamped scores differs from `score`.
        n_incomplete: Number of items with an answer on only some of the criteria. Their scores have smaller
            denominators, which a sum over criteria does not reproduce.
        n_unjudged: Number of items excluded because they have no decision (e.g. all verdicts were lost).
        n_labelled_unjudged: Number of excluded items that have labels, including items of the calibration
            run.
        bends: Features that make the score nonlinear: groups, gates, conditions. Like `n_clamped` and
            `n_incomplete`, they apply only to `on="criteria"`.
        reason: Reason why there is no corrected score; None if there is one.
    """

    score: Estimate = field(metadata={"title": "corrected"})
    raw: Estimate = field(metadata={"title": "judged"})
    labelled_only: Estimate = field(metadata={"title": "labels only"})
    per_criterion: Mapping[str, CorrectedCriterion]
    method: CorrectionMethod
    on: CorrectedOn
    n_items: int
    n_labelled: int
    n_abstained: int = 0
    n_clamped: int = 0
    n_incomplete: int = 0
    n_unjudged: int = 0
    n_labelled_unjudged: int = 0
    bends: tuple[str, ...] = ()
    reason: Reason | None

    _heading: ClassVar[str] = "Corrected score"

    def _sentence(self) -> str:
        judged = "undefined"
        if self.raw.value is not None:
            counts, units = [(one.raw.n, one.n) for one in self.per_criterion.values()], "cells"
            if not counts:
                counts, units = [(self.raw.n, self.n_items)], "items"
            n_answered, n = map(sum, zip(*counts, strict=True))
            judged = f"{self.raw.value:.3f}{answered_in_words(n_answered, n, units, 'they')}"
        if self.n_abstained:
            judged += f" ({self.n_abstained} of {self.n_items} items have abstentions)"
        if self.score.value is None:
            text = f"The mean score could not be corrected ({self.reason}); the judges' own mean is {judged}."
            if self.reason != "too_few_labels":
                return text
            return f"{text} Label more items, or pass a labelled run of the same judges as calibration."
        without = "" if self.score.low is not None or not self.score.reason else f" ({self.score.reason})"
        return (
            f"Corrected with {self.method} on {self.n_labelled} labelled items, the mean score is "
            f"{describe_estimate(self.score)}{without}; the judges' own mean is {judged}."
        )

    def _tables(self) -> list[Block]:
        counts: tuple[tuple[str, Cell], ...] = (
            ("items", self.n_items),
            ("labelled items", self.n_labelled),
            ("items with abstentions", self.n_abstained),
            ("items excluded because they have no decision", self.n_unjudged),
            ("labelled items excluded because they have no decision", self.n_labelled_unjudged),
        )
        if self.on == "criteria":
            counts += (
                ("items with a clamped score", self.n_clamped),
                ("items without an answer on some criterion", self.n_incomplete),
                ("nonlinear parts", ", ".join(self.bends) or "none"),
            )
        title = "Mean score" + (" before clamping" if self.on == "criteria" else "")
        blocks: list[Block] = [interval_table(title, titled_figures(self)), ScalarBlock(figures=counts)]
        return [*blocks, self._criteria_table()] if self.per_criterion else blocks

    def _criteria_table(self) -> TableBlock:
        rows: list[tuple[Cell, ...]] = [
            (
                name, one.raw.value, one.value.value, format_interval(one.value.low, one.value.high), one.n,
                one.n_calibration, one.value.reason or "",
            )
            for name, one in self.per_criterion.items()
        ]  # fmt: skip
        columns = ("criterion", "judged", "corrected", "interval", "n", "labelled", "reason")
        return TableBlock(title="Mean value of each criterion", columns=columns, rows=tuple(rows))


def corrected_score(
    result: SupportsGradedRun,
    dataset: LabelledDataset | None = None,
    *,
    calibration: SupportsGradedRun | None = None,
    method: CorrectionMethod = "rogan-gladen",
    on: CorrectedOn = "criteria",
    sampled: Sampled = "random",
    **interval: Unpack[CorrectionArguments],
) -> CorrectedScore:
    """Correct a run's mean score for the judges' errors, as estimated from labelled items.

    The corrected score is `start + Σ_c w_c θ_c / D`, where θ_c is a criterion's corrected mean value, w_c its
    signed weight, D the score's denominator, and `start` is 0, or 1 if there are only penalties. Criteria
    determine only this weighted sum, before clamping. If groups, gates or conditions make the score
    nonlinear, it is undefined (`nonlinear_score`) and only the criteria are reported. `n_clamped` is the
    number of items with a clamped score, and `n_incomplete` the number with abstentions. `on="items"`
    corrects the item scores directly with ppi++, for any rubric.

    - `"rogan-gladen"`: θ_c = Σ_k v_k π_k with `π = M⁻¹ q`, where v_k is the value of answer k, q_k its
      proportion among the panel's answers on all items, and M_jk the proportion of answers j among items
      whose true answer is k. π is projected onto valid proportions if needed (for two answers, this is the
      Rogan-Gladen correction). θ_c is undefined if the panel gives an answer that is never true
      (`too_few_labels`), if det M <= 0 (`uninformative_judge`), and for numbers (`not_comparable`).
    - `"ppi++"`: the method of `corrected_rate` applied to values, with the unlabelled items as the items
      under test. θ_c is undefined if there are fewer than 50 labelled items (`too_few_labels`) or no
      unlabelled items (`no_values`).

    Intervals resample labelled and unlabelled items separately and keep all criteria of an item together,
    which preserves the correlation between criteria. Their quantiles are expanded to correct for few labels
    of the rarest answer [1], and tables are smoothed by 1/K² per table cell, one item in total. If more than
    a tenth of the resamples cannot be corrected, there is no interval (`degenerate_resamples`); label more
    items. Missing judgments are excluded for each criterion. Means stay within the range of possible scores.

    Args:
        result: Run to correct. With `on="criteria"`, all items must have the same rubric.
        dataset: Dataset with the labels; the run's own dataset by default.
        calibration: Another run with the same judges, prompts and criteria. Its labelled items are used to
            estimate the errors; the mean is over the items of `result`, whose own labels are ignored. Items
            of both runs are resampled, so that the interval includes the sampling error of both. ppi++
            assumes that the items of both runs are samples of one population; rogan-gladen only assumes that
            the judges make the same errors.
        method: Correction method.
        on: Whether to correct criteria or item scores.
        sampled: How the labelled items were selected; see `corrected_rate`.
        **interval: See `CorrectionArguments`. For criteria, `ci` must be `"auto"`, `"percentile"` or None.

    Raises:
        ArgumentError: If an option is invalid, items have different rubrics, `result` is a table of labels
            (without weights), or `calibration` has different judges, prompts or criteria, which are named.

    References:
        [1] T. C. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician
            69(4), 371-386, section 4.3.
    """
    options = CorrectionOptions(**interval)
    check_method(method, sampled, options)
    check_choice("on", on, CorrectedOn)
    if on == "items" and method != "ppi++":
        raise ArgumentError(f"on='items' requires method='ppi++'; got method={method!r}")
    if on == "criteria" and options.ci not in ("auto", "percentile", None):
        raise ArgumentError(f"ci must be 'auto', 'percentile' or None with on='criteria'; got {options.ci!r}")
    if not isinstance(result, SupportsGradedRun):
        raise ArgumentError(
            f"result must be an EvalResult, because only a run has weights; got {type(result).__name__}"
        )
    read = read_item_scores if on == "items" else read_scores
    run = read(result, dataset_of(result, dataset))
    if calibration is not None:
        other = check_same_judging(result, calibration)
        run = join_calibration(run, read(other, other.dataset))
    return _correct_items(run, options) if on == "items" else correct_criteria(run, method, sampled, options)


def _mean(values: Array, name: str) -> Estimate:
    kept = values[~np.isnan(values)]
    if not len(kept):
        return Estimate.undefined("no_values", method=name)
    return Estimate(float(kept.mean()), n=len(kept), method=name)


def _correct_items(run: ScoredRun, options: CorrectionOptions) -> CorrectedScore:
    judged, labelled = run.judged, run.labelled
    sample = LabelledSample(
        truth=run.true_score[labelled],
        judged=run.judged_score[labelled],
        tested=run.judged_score[judged & ~labelled & run.tested],
    )
    score = ppi_estimate(ppi.value_units(sample), options, share=False, name="corrected mean item score").mean
    # The correction may exceed the range of a mean score.
    value, low, high = (
        None if one is None else min(max(one, 0.0), 1.0) for one in (score.value, score.low, score.high)
    )
    score = replace(score, value=value, low=low, high=high)
    return CorrectedScore(
        score=score,
        raw=_mean(run.judged_score[run.tested], "judged mean item score"),
        labelled_only=_mean(run.true_score, "labelled mean item score"),
        per_criterion={},
        method="ppi++",
        on="items",
        n_items=run.n_judged,
        n_labelled=int(labelled.sum()),
        n_abstained=run.n_abstained,
        n_unjudged=run.n_unjudged,
        n_labelled_unjudged=run.n_labelled_unjudged,
        reason=score.reason if score.value is None else None,
    )


def correct_criteria(
    run: ScoredRun, method: CorrectionMethod, sampled: Sampled, options: CorrectionOptions
) -> CorrectedScore:
    parts = [correction_sums(one, run.tested, method, options.lam) for one in run.criteria]
    refused = [why_undefined(one, part, method) for one, part in zip(run.criteria, parts, strict=True)]
    drawn = np.zeros((0, len(parts)))
    if options.ci is not None:
        drawn = resample_corrections(run, parts, refused, options)
    criteria = {
        one.name: _correct_criterion(one, run.tested, part, reason, drawn[:, place], method, options)
        for place, (one, part, reason) in enumerate(zip(run.criteria, parts, refused, strict=True))
    }
    shares = np.array([one.share for one in run.criteria])
    values = [one.value.value for one in criteria.values()]
    name = f"corrected mean score before clamping ({method})"
    n = run.n_judged
    judged = [one.judged_value[run.tested] for one in run.criteria]
    bad: Reason | None = "nonlinear_score" if run.bends else next((r for r in refused if r), None)
    if bad is not None or not values:
        score = Estimate.undefined(bad or "no_values", n=n, method=name)
    else:
        total = run.start + float(shares @ np.array(values, dtype=float))
        df = min((part.df for part in parts if part.df is not None), default=None)
        score = _with_interval(total, run.start + drawn @ shares, n, name, options, df)
    name = "labelled mean score before clamping"
    labelled_only = _weighted_mean(run, [one.true_value for one in run.criteria], name)
    if sampled == "chosen":
        labelled_only = Estimate.undefined("not_comparable", method=name)
    return CorrectedScore(
        score=score,
        raw=_weighted_mean(run, judged, "judged mean score before clamping"),
        labelled_only=labelled_only,
        per_criterion=criteria,
        method=method,
        on="criteria",
        n_items=n,
        n_labelled=int(run.labelled.sum()),
        n_abstained=run.n_abstained,
        n_clamped=run.clamped,
        n_incomplete=run.n_incomplete,
        n_unjudged=run.n_unjudged,
        n_labelled_unjudged=run.n_labelled_unjudged,
        bends=run.bends,
        reason=bad,
    )


def _weighted_mean(run: ScoredRun, columns: list[Array], name: str) -> Estimate:
    means = [_mean(column, name).value for column in columns]
    if not means or run.bends or any(mean is None for mean in means):
        return Estimate.undefined("nonlinear_score" if run.bends else "no_values", method=name)
    n = int(np.any([~np.isnan(column) for column in columns], axis=0).sum())
    shares = [one.share for one in run.criteria]
    return Estimate(run.start + float(np.dot(shares, np.array(means, dtype=float))), n=n, method=name)


def _correct_criterion(
    one: CriterionColumns,
    tested: Array,
    part: CorrectionSums,
    refused: Reason | None,
    drawn: Array,
    method: CorrectionMethod,
    options: CorrectionOptions,
) -> CorrectedCriterion:
    judged = one.judged_value[tested]
    n = int(np.count_nonzero(one.decided[tested]))
    name = f"corrected mean value ({method})"
    total = part.sums.sum(axis=0)[None, :]
    distribution, lam = None, None
    if refused is not None:
        value = Estimate.undefined(refused, n=n, method=name)
    else:
        value = _with_interval(float(part.correct(total)[0]), drawn, n, name, options, part.df)
        if part.size:
            shares = part.distribution(total)[0].tolist()
            distribution = dict(zip(one.labels, shares, strict=True))
        else:
            lam = float(part.ppi_means(total).lam[0])
    return CorrectedCriterion(
        value=value,
        raw=_mean(judged, "judged mean value"),
        distribution=distribution,
        lam=lam,
        n=n,
        n_calibration=part.n_labelled,
        reason=refused,
    )


def _with_interval(
    value: float, drawn: Array, n: int, name: str, options: CorrectionOptions, df: int | None
) -> Estimate:
    if options.ci is None:
        return Estimate(value, n=n, method=name)
    quantiles = None
    if df is not None:
        tail = expanded_tail(options.confidence_level, df)
        quantiles = tail, 1 - tail
    ends, undefined = interval_of(
        drawn, options, quantiles=quantiles, most_undefined=MOST_UNDEFINED_CORRECTED
    )
    text = f"{name}; {options.describe()}"
    text += f"; undefined resamples: {undefined}" if undefined else ""
    reason: Reason | None = "degenerate_resamples" if ends.low is None else None
    return Estimate(value, *ends.extend_to(value), n, text, reason)
