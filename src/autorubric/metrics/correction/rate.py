"""Pass rates corrected for the errors of an imperfect judge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Unpack

import numpy as np

from autorubric.metrics.core.contingency import check_lengths, divide
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import normal_quantile, t_quantile
from autorubric.metrics.core.label_rows import NO_ANSWER
from autorubric.metrics.core.resampling import NO_ENDS, Ends
from autorubric.metrics.core.result import ResultBase, describe_estimate, interval_table
from autorubric.metrics.core.scales import Array, Binary, Codes
from autorubric.metrics.core.wording import answered_in_words
from autorubric.metrics.correction import ppi
from autorubric.metrics.correction.ppi import ppi_estimate
from autorubric.metrics.correction.samples import (
    ABSTAINED_AS,
    CorrectionArguments,
    CorrectionMethod,
    CorrectionOptions,
    LabelledSample,
    Sampled,
    Strata,
    answer_or_none,
    check_method,
    joint_clusters,
    labels_of,
    percentile_ends,
    share_estimate,
    small_sample_factor,
    strata_of,
)
from autorubric.metrics.correction.score_columns import PRIOR, distribution_of
from autorubric.support.blocks import Block, Cell, ScalarBlock

_ADDED = 2.0


def rate_of(sums: Array) -> Array:
    """Compute (p + sp - 1) / (se + sp - 1), clipped to [0, 1]."""
    passed, hits, failed, rejections, n, positive = (sums[..., j] for j in range(6))
    p, se, sp = divide(positive, n), divide(hits, passed), divide(rejections, failed)
    room = se + sp - 1
    with np.errstate(invalid="ignore"):
        informative = np.where(room > 1e-12, room, 0.0)
    return np.clip(divide(p + sp - 1, informative), 0.0, 1.0)


def analytic_ends(units: Strata, confidence_level: float) -> Ends:
    """Return the interval of Lang and Reiczigel (2014, eq. 4), clipped to [0, 1] after their shift."""
    df = units.df
    if df is not None and df < 1:
        return NO_ENDS
    q = normal_quantile(confidence_level) if df is None else t_quantile(confidence_level, df)
    sizes, shares, between = _effective_shares(units)
    (n_p, n_se, n_sp), (p, se, sp) = sizes, shares
    # Agresti–Coull for the test items; one success and one failure more for each calibration share.
    n_p, p = n_p + q * q, (n_p * p + q * q / 2) / (n_p + q * q)
    se, sp = ((size * share + 1) / (size + _ADDED) for size, share in ((n_se, se), (n_sp, sp)))
    n_se, n_sp = n_se + _ADDED, n_sp + _ADDED
    room = se + sp - 1
    if room <= 0:
        return NO_ENDS
    rate = (p + sp - 1) / room
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    slopes = np.array([1.0, -rate, 1 - rate])
    variance = p * (1 - p) / n_p + rate**2 * of_se + (1 - rate) ** 2 * of_sp
    variance += float(slopes @ between @ slopes)
    se_rate = math.sqrt(max(variance, 0.0)) / room
    centre = rate + 2 * q * q * (rate * of_se - (1 - rate) * of_sp)
    return Ends(max(0.0, centre - q * se_rate), min(1.0, centre + q * se_rate), se_rate)


def _effective_shares(units: Strata) -> tuple[list[float], list[float], Array]:
    """Return sizes, values and covariances of the raw pass rate, sensitivity and specificity."""
    total, square = units.total(), units.square()
    places = ((4, 5), (0, 1), (2, 3))
    shares = [float(total[hit] / total[of]) for of, hit in places]
    binary = all(np.isin(part.rows, (0, 1)).all() for part in units.parts)
    if not units.clustered and binary:
        return [float(total[of]) for of, _ in places], shares, np.zeros((3, 3))
    effects = np.zeros((3, len(total)))
    factors = [math.sqrt(small_sample_factor(n)) for n in (units.n_tested, *[units.n_labelled] * 2)]
    for row, ((of, hit), share, factor) in enumerate(zip(places, shares, factors, strict=True)):
        effects[row, [hit, of]] = np.array([1.0, -share]) * factor / total[of]
    covariance = effects @ square @ effects.T
    clustered = (units.clustered_tests, units.clustered_labels, units.clustered_labels)
    sizes = []
    variances = np.diagonal(covariance)
    for (of, _), share, variance, grouped in zip(places, shares, variances, clustered, strict=True):
        size, spread = float(total[of]), share * (1 - share)
        if spread > 0 and variance > 0:
            # Scores of abstentions vary less than verdicts, and items of a cluster are alike.
            size = min(size, spread / float(variance)) if grouped else spread / float(variance)
        elif grouped:
            size = float(sum(int(part.counts[part.rows[:, of] > 0].sum()) for part in units.parts))
        sizes.append(size)
    return sizes, shares, covariance - np.diag(variances)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectedRate(ResultBase, Estimate):
    """A pass rate corrected for the judge's errors, with the rates used for the correction.

    As an `Estimate`, it is the corrected rate. If the rate cannot be corrected, `value` is None and `reason`
    states why. `n` is the number of items under test, including those on which the judge abstained, and
    `n_missing` the number of items (under test or labelled) that were excluded because a verdict was INVALID
    or a label was missing.

    Attributes:
        raw: The judge's own pass rate on the items under test that it answered.
        sensitivity: Fraction of the labelled passes that the judge passes. An abstention is not a pass.
        specificity: Fraction of the labelled failures that the judge fails. An abstention is not a failure.
        labelled_only: Pass rate of all labels with an answer; undefined if the labelled items were
            hand-picked.
        lam: λ of ppi++, in [0, 1]: how much the correction relies on the judge, where 0 uses only the labels.
            None for other methods.
        correction: Correction method.
        sampled: How the labelled items were selected.
        n_calibration: Number of labelled items, including those that the next two numbers count.
        n_abstained: Number of items under test on which the judge abstained.
        n_calibration_abstained: Number of labelled items on which the judge abstained.
        n_unanswered_labels: Number of labelled items whose label is NA or CANNOT_ASSESS.
    """

    raw: Estimate
    sensitivity: Estimate
    specificity: Estimate
    labelled_only: Estimate
    lam: float | None
    correction: CorrectionMethod
    sampled: Sampled
    n_calibration: int
    n_abstained: int = 0
    n_calibration_abstained: int = 0
    n_unanswered_labels: int = 0

    _heading: ClassVar[str] = "Corrected rate"
    _omits_empty_tests: ClassVar[bool] = True

    def _sentence(self) -> str:
        raw = describe_estimate(self.raw) + answered_in_words(self.raw.n, self.n, "items")
        if self.value is None:
            return f"The pass rate could not be corrected ({self.reason}); the judge's own rate is {raw}."
        without = "" if self.low is not None or not self.reason else f" ({self.reason})"
        return (
            f"Corrected with {self.correction}, the pass rate is {describe_estimate(self)}{without}; "
            f"the judge's own rate is {raw}."
        )

    def _tables(self) -> list[Block]:
        figures = {"corrected": self, "judged": self.raw, "labels only": self.labelled_only}
        note = ", abstentions as errors" if self.n_calibration_abstained else ""
        figures |= {f"sensitivity{note}": self.sensitivity, f"specificity{note}": self.specificity}
        counts: tuple[tuple[str, Cell], ...] = (
            ("items under test", self.n),
            ("items with abstentions", self.n_abstained),
            ("labelled items", self.n_calibration),
            ("labelled items with abstentions", self.n_calibration_abstained),
            ("labels without an answer", self.n_unanswered_labels),
            ("excluded items", self.n_missing),
        )
        if self.lam is not None:
            counts += (("lambda", self.lam),)
        return [interval_table("", figures), ScalarBlock(figures=counts)]


def corrected_rate(
    judge: Iterable[Any],
    calib_truth: Iterable[Any],
    calib_judge: Iterable[Any],
    *,
    method: CorrectionMethod = "rogan-gladen",
    sampled: Sampled = "random",
    cluster: Iterable[Any] | None = None,
    calib_cluster: Iterable[Any] | None = None,
    **interval: Unpack[CorrectionArguments],
) -> CorrectedRate:
    """Correct a pass rate for the judge's errors, as estimated from labelled items.

    Let p be the judge's pass rate, and let se and sp be its sensitivity and specificity on labelled items:

    - `"rogan-gladen"` [1]: `(p + sp - 1) / (se + sp - 1)`, clipped to [0, 1]. It is valid even if labelled
      items pass more or less often than the items under test, as long as the judge makes the same errors on
      both. The interval is Lang and Reiczigel's [2] (the rate is shifted and only then the ends are clipped
      to [0, 1]); it accounts for the sampling errors of p, se and sp. Lee et al. [3] clip before the shift.
    - `"ppi++"` [4]: `λ mean(f_U) + mean(Y - λ f_L)`, where f_U and f_L are the judge's verdicts on the items
      under test and on the labelled items, Y are the labels, and λ is `lam` or, by default, `cov(Y, f_L) /
      ((1 + n/N) var(f))` clipped to [0, 1]. `lam=1` is prediction-powered inference as first published [5].
      The interval is narrower, but valid only if the labelled items are a random sample of the items under
      test. It is the score interval for the number of items that yields the same variance, with one item
      added, split equally over the table cells: 1/4 to each, or 1/6 with abstentions (or, with clusters or
      labels without an answer, a logit-t interval).

    An abstention is a third answer, because judges abstain more often where they would err. ppi++ takes it
    as f = 1/2 and keeps every label. For rogan-gladen, it is a third row of the confusion matrix: p, se and
    1 - sp are means of scores of the three answers over all items, passes and failures, with which the rate
    is the solution of least squares with the weights of [6].
    The rate is the proportion of passes among items whose label has an answer. If the judge abstains and some
    labels have no answer, such items are a third true class of rogan-gladen, with a bootstrap interval.

    The corrected rate is undefined if there is no verdict (`no_values`); with rogan-gladen, also if there is
    no labelled pass or no labelled failure (`too_few_labels`) or se + sp <= 1 (`uninformative_judge`); and
    with ppi++, also with fewer than 50 labelled items or clusters, or 2 with `ci="bootstrap-t"`
    (`too_few_labels`).

    Args:
        judge: The judge's binary verdicts on the items under test, preferably not including the labelled
            items. NA, CANNOT_ASSESS, None and NaN are abstentions; omit items that the judge has not
            seen. INVALID counts as missing.
        calib_truth: True verdicts on the labelled items. NA and CANNOT_ASSESS mean that there is no answer;
            None, NaN and INVALID count as missing.
        calib_judge: The judge's verdicts on the labelled items, as in `judge`.
        method: Correction method.
        sampled: `"random"` if the labelled items are a random sample of the items under test; `"chosen"` if
            they were picked by hand, which ppi++ cannot correct for. Never pick items by the judge's verdict.
        cluster: Cluster id of each item under test, such as a prompt or document.
        calib_cluster: Cluster id of each labelled item; ids shared with `cluster` denote the same cluster.
        **interval: See `CorrectionArguments`.

    Raises:
        ArgumentError: If lengths differ, a verdict or option is invalid, or ppi++ gets hand-picked items.

    References:
        [1] W. J. Rogan, B. Gladen (1978), Estimating prevalence from the results of a screening test,
            American Journal of Epidemiology 107(1), 71-76.
        [2] Z. Lang, J. Reiczigel (2014), Confidence limits for prevalence of disease adjusted for estimated
            sensitivity and specificity, Preventive Veterinary Medicine 113(1), 13-22.
        [3] C. Lee et al. (2025), How to correctly report LLM-as-a-judge evaluations, arXiv:2511.21140.
        [4] A. N. Angelopoulos, J. C. Duchi, T. Zrnic (2023), PPI++: efficient prediction-powered inference,
            arXiv:2311.01453.
        [5] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic (2023), Prediction-powered
            inference, Science 382(6671), 669-674.
        [6] J. Neyman (1949), Contribution to the theory of the χ² test, Proceedings of the Berkeley
            Symposium, 239-273.
    """
    options = CorrectionOptions(**interval)
    check_method(method, sampled, options)
    seen = _read_verdicts(judge, calib_truth, calib_judge, cluster, calib_cluster)
    if np.isnan(seen.tested).all():
        rate, lam = Estimate.undefined("no_values", method=f"corrected rate ({method})"), None
    elif method == "ppi++":
        rate, lam = ppi_estimate(ppi.value_units(seen), options, share=True, name="corrected rate")
    else:
        rate, lam = _rogan_gladen(seen, options), None
    level = options.confidence_level
    right = seen.truth == seen.judged
    unanswered, abstained, answered = np.isnan(seen.truth), np.isnan(seen.judged), ~np.isnan(seen.tested)
    if sampled == "chosen":
        alone = Estimate.undefined("not_comparable", n=len(seen.truth), method="rate of chosen items")
    else:
        alone = _share("labelled rate", seen.truth, ~unanswered, seen.label_cluster, level)
    return CorrectedRate._extending(
        replace(rate, n=len(seen.tested), n_missing=seen.n_missing),
        raw=_share("judged rate", seen.tested, answered, seen.test_cluster, level),
        sensitivity=_share("sensitivity", right, seen.truth == 1, seen.label_cluster, level),
        specificity=_share("specificity", right, seen.truth == 0, seen.label_cluster, level),
        labelled_only=alone,
        lam=lam,
        correction=method,
        sampled=sampled,
        n_calibration=len(seen.truth),
        n_abstained=int((~answered).sum()),
        n_calibration_abstained=int(abstained.sum()),
        n_unanswered_labels=int(unanswered.sum()),
    )


_ABSENT: Mapping[str, Reason] = {"sensitivity": "no_positive_in_truth", "specificity": "no_negative_in_truth"}


def _share(name: str, hits: Array, which: Array, cluster: Codes | None, level: float) -> Estimate:
    members = None if cluster is None else cluster[which]
    return share_estimate(name, hits[which].astype(float), members, level, _ABSENT.get(name, "no_values"))


def _read_verdicts(
    judge: Iterable[Any],
    calib_truth: Iterable[Any],
    calib_judge: Iterable[Any],
    cluster: Iterable[Any] | None,
    calib_cluster: Iterable[Any] | None,
) -> LabelledSample:
    tested, there = _binary_answers(judge, "judge", blank="abstained")
    truth, known = _binary_answers(calib_truth, "calib_truth", blank="missing")
    judged, seen = _binary_answers(calib_judge, "calib_judge", blank="abstained")
    check_lengths("labels", calib_truth=truth, calib_judge=judged)
    labels, tests = joint_clusters(calib_cluster, cluster, len(truth), len(tested))
    both = known & seen
    return LabelledSample(
        truth=truth[both],
        judged=judged[both],
        tested=tested[there],
        label_cluster=None if labels is None else labels[both],
        test_cluster=None if tests is None else tests[there],
        n_missing=len(tested) - int(there.sum()) + len(truth) - int(both.sum()),
    )


def _binary_answers(
    column: Iterable[Any], what: str, *, blank: Literal["abstained", "missing"]
) -> tuple[Array, Array]:
    """Return verdicts as 0, 1 and NaN for no answer, and whether each is there, both of shape `(n,)`."""
    labels, where = labels_of(column, what), None
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        levels, where = np.unique(labels, return_inverse=True)
        labels = levels.tolist()
    codes = Binary().encode([answer_or_none(label) for label in labels]).astype(float)
    there = codes >= 0
    for at in np.flatnonzero(~there).tolist():
        label = labels[at]
        status = NO_ANSWER.get(label.strip().upper(), blank) if isinstance(label, str) else blank
        there[at] = status == "abstained"
    codes = np.where(codes >= 0, codes, np.nan)
    return (codes, there) if where is None else (codes[where], there[where])


def _scored_units(seen: LabelledSample) -> Strata:
    """Build units for `rate_of` from scores of the three answers in [0, 1], which are 0 and 1 for two.

    With these scores, the rate is the solution of weighted least squares. It is consistent for any scores,
    so that its variance is that for fixed ones to first order.
    """
    truth = seen.truth
    judged, tested = (
        np.stack([column == 1, column == 0, np.isnan(column)]) for column in (seen.judged, seen.tested)
    )
    apart = judged[:, truth == 1].mean(axis=1) - judged[:, truth == 0].mean(axis=1)
    scores = np.array([1.0, 0.0, ABSTAINED_AS])
    if apart @ scores > 0:
        scores = apart / (judged.sum(axis=1) + tested.sum(axis=1) + PRIOR)
        scores = (scores - scores.min()) / np.ptp(scores)
    hits = scores @ judged
    labels = [truth, truth * hits, 1 - truth, (1 - truth) * (1 - hits)]
    return strata_of(labels, [np.ones(len(seen.tested)), scores @ tested], seen)


def _units_of_three(seen: LabelledSample) -> Strata:
    """Build units for `rate_of_three`: counts of label × verdict, then of verdicts on items under test."""
    truth, judged, tested = (
        [column == 0, column == 1, np.isnan(column)] for column in (seen.truth, seen.judged, seen.tested)
    )
    table = [(label & verdict).astype(float) for label in truth for verdict in judged]
    return strata_of(table, [one.astype(float) for one in tested], seen)


def rate_of_three(sums: Array) -> Array:
    """Compute the proportion of passes among true passes and failures, with `no answer` as a third class."""
    tables, answers = sums[..., :9].reshape(-1, 3, 3), sums[..., 9:]
    return distribution_of(tables, answers, 2)[..., 1]


def _rogan_gladen(seen: LabelledSample, options: CorrectionOptions) -> Estimate:
    name = "corrected rate (rogan-gladen)"
    n, truth = len(seen.tested), seen.truth
    if not 0 < np.nansum(truth) < np.count_nonzero(~np.isnan(truth)):
        return Estimate.undefined("too_few_labels", n=n, method=name)
    abstains = bool(np.isnan(np.concatenate([seen.judged, seen.tested])).any())
    three = abstains and bool(np.isnan(truth).any())
    compute = rate_of_three if three else rate_of
    units = _units_of_three(seen) if three else _scored_units(seen.only(~np.isnan(truth)))
    value = float(compute(units.total()[None, :])[0])
    if np.isnan(value):
        return Estimate.undefined("uninformative_judge", n=n, method=name)
    if options.ci is None:
        return Estimate(value, n=n, method=name)
    if options.ci == "percentile" or three:
        ends, undefined = percentile_ends(units, compute, options)
        reason: Reason = "degenerate_resamples" if undefined else "too_few_units"
        text = f"{name}; {options.describe(units.describe())}"
        text += f"; undefined resamples: {undefined}" if undefined else ""
    else:
        ends, reason = analytic_ends(units, options.confidence_level), "too_few_units"
        text = f"{name}; Lang and Reiczigel, clipped after the shift, {options.confidence_level:.0%}, "
        text += units.describe()
        if units.df is None or units.df > 0:
            reason = "uninformative_judge"
    if ends.low is None or ends.high is None:
        return Estimate(value, n=n, method=text, reason=reason)
    return Estimate(value, *ends.extend_to(value), n, text)
