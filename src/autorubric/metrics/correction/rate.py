"""Pass rates corrected for the errors of an imperfect judge."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np

from autorubric.metrics.core.contingency import check_lengths, divide
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.intervals import normal_quantile, t_quantile
from autorubric.metrics.core.resampling import NO_ENDS, Ends
from autorubric.metrics.core.result import ResultBase, describe_estimate, interval_table
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.correction import ppi
from autorubric.metrics.correction.ppi import ppi_estimate
from autorubric.metrics.correction.samples import (
    CorrectionArguments,
    CorrectionMethod,
    CorrectionOptions,
    LabelledSample,
    Sampled,
    Strata,
    binary_codes,
    check_method,
    joint_clusters,
    percentile_ends,
    share_estimate,
    small_sample_factor,
    strata_of,
)
from autorubric.support.blocks import Block, ScalarBlock

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
    """Return the interval of Lang and Reiczigel (2014, eq. 4), as used by Lee et al. (2025)."""
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
    rate = min(max((p + sp - 1) / room, 0.0), 1.0)
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
    if not units.clustered:
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
        if grouped and spread > 0 and variance > 0:
            size = min(size, spread / float(variance))
        elif grouped:
            size = float(sum(int(part.counts[part.rows[:, of] > 0].sum()) for part in units.parts))
        sizes.append(size)
    return sizes, shares, covariance - np.diag(variances)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectedRate(ResultBase, Estimate):
    """A pass rate corrected for the judge's errors, with the rates used for the correction.

    As an `Estimate`, it is the corrected rate. If the rate cannot be corrected, `value` is None and `reason`
    states why. `n` is the number of items under test that have a verdict, and `n_missing` is the number of
    items (under test or labelled) that were excluded because a verdict or label was missing.

    Attributes:
        raw: The judge's own pass rate on the items under test.
        sensitivity: Fraction of the labelled passes that the judge passes.
        specificity: Fraction of the labelled failures that the judge fails.
        labelled_only: Pass rate of the labels alone; undefined if the labelled items were hand-picked.
        lam: λ of ppi++, in [0, 1]: how much the correction relies on the judge, where 0 uses only the labels.
            None for other methods.
        correction: Correction method.
        sampled: How the labelled items were selected.
        n_calibration: Number of labelled items that have a verdict.
    """

    raw: Estimate
    sensitivity: Estimate
    specificity: Estimate
    labelled_only: Estimate
    lam: float | None
    correction: CorrectionMethod
    sampled: Sampled
    n_calibration: int

    _heading: ClassVar[str] = "Corrected rate"
    _omits_empty_tests: ClassVar[bool] = True

    def _sentence(self) -> str:
        raw = describe_estimate(self.raw)
        if self.value is None:
            return f"The pass rate could not be corrected ({self.reason}); the judge's own rate is {raw}."
        without = "" if self.low is not None or not self.reason else f" ({self.reason})"
        return (
            f"Corrected with {self.correction}, the pass rate is {describe_estimate(self)}{without}; "
            f"the judge's own rate is {raw}."
        )

    def _tables(self) -> list[Block]:
        figures = {"corrected": self, "judged": self.raw, "labels only": self.labelled_only}
        figures |= {"sensitivity": self.sensitivity, "specificity": self.specificity}
        counts = (("labelled items", self.n_calibration), ("excluded", self.n_missing), ("lambda", self.lam))
        return [
            interval_table("", figures),
            ScalarBlock(figures=counts if self.lam is not None else counts[:2]),
        ]


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
      both. The interval is Lang and Reiczigel's [2], also used by Lee et al. [3]; it accounts for the
      sampling errors of p, se and sp.
    - `"ppi++"` [4]: `λ mean(f_U) + mean(Y - λ f_L)`, where f_U and f_L are the judge's verdicts on the items
      under test and on the labelled items, Y are the labels, and λ is `lam` or, by default, `cov(Y, f_L) /
      ((1 + n/N) var(f))` clipped to [0, 1]. `lam=1` is prediction-powered inference as first published [5].
      The interval is narrower, but valid only if the labelled items are a random sample of the items under
      test. It is the score interval for the number of items that yields the same variance, with 1/4 added to
      each table cell (or, with clusters, a logit-t interval).

    The corrected rate is undefined if there is no verdict (`no_values`); with rogan-gladen, also if there is
    no labelled pass or no labelled failure (`too_few_labels`) or se + sp <= 1 (`uninformative_judge`); and
    with ppi++, also with fewer than 50 labelled units, or 2 with `ci="bootstrap-t"` (`too_few_labels`).

    Args:
        judge: The judge's binary verdicts on the items under test, preferably not including the labelled
            items. None, NaN, NA, CANNOT_ASSESS and INVALID count as missing, here and in the labels.
        calib_truth: True verdicts on the labelled items.
        calib_judge: The judge's verdicts on the labelled items.
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
    """
    options = CorrectionOptions(**interval)
    check_method(method, sampled, options)
    sample = _read_verdicts(judge, calib_truth, calib_judge, cluster, calib_cluster)
    return _correct_rate(sample, method, sampled, options)


def _correct_rate(
    seen: LabelledSample, method: CorrectionMethod, sampled: Sampled, options: CorrectionOptions
) -> CorrectedRate:
    if method == "ppi++":
        rate, lam = ppi_estimate(ppi.value_units(seen), options, share=True, name="corrected rate")
    else:
        rate, lam = _rogan_gladen(seen, options), None
    level = options.confidence_level
    right = seen.truth == seen.judged
    if sampled == "chosen":
        alone = Estimate.undefined("not_comparable", n=len(seen.truth), method="rate of chosen items")
    else:
        alone = share_estimate("labelled rate", seen.truth, seen.label_cluster, level)
    return CorrectedRate._extending(
        replace(rate, n=len(seen.tested), n_missing=seen.n_missing),
        raw=share_estimate("judged rate", seen.tested, seen.test_cluster, level),
        sensitivity=_conditional_rate("sensitivity", right, seen.truth == 1, seen.label_cluster, level),
        specificity=_conditional_rate("specificity", right, seen.truth == 0, seen.label_cluster, level),
        labelled_only=alone,
        lam=lam,
        correction=method,
        sampled=sampled,
        n_calibration=len(seen.truth),
    )


def _conditional_rate(name: str, right: Array, which: Array, cluster: Codes | None, level: float) -> Estimate:
    members = None if cluster is None else cluster[which]
    absent: Reason = "no_positive_in_truth" if name == "sensitivity" else "no_negative_in_truth"
    return share_estimate(name, right[which].astype(float), members, level, absent)


def _read_verdicts(
    judge: Iterable[Any],
    calib_truth: Iterable[Any],
    calib_judge: Iterable[Any],
    cluster: Iterable[Any] | None,
    calib_cluster: Iterable[Any] | None,
) -> LabelledSample:
    tested = binary_codes(judge, "judge")
    truth, judged = binary_codes(calib_truth, "calib_truth"), binary_codes(calib_judge, "calib_judge")
    check_lengths("labels", calib_truth=truth, calib_judge=judged)
    labels, tests = joint_clusters(calib_cluster, cluster, len(truth), len(tested))
    there, both = tested >= 0, (truth >= 0) & (judged >= 0)
    return LabelledSample(
        truth=truth[both].astype(float),
        judged=judged[both].astype(float),
        tested=tested[there].astype(float),
        label_cluster=None if labels is None else labels[both],
        test_cluster=None if tests is None else tests[there],
        n_missing=len(tested) - int(there.sum()) + len(truth) - int(both.sum()),
    )


def _rogan_gladen(seen: LabelledSample, options: CorrectionOptions) -> Estimate:
    name = "corrected rate (rogan-gladen)"
    if not len(seen.tested):
        return Estimate.undefined("no_values", method=name)
    n = len(seen.tested)
    if not 0 < seen.truth.sum() < len(seen.truth):
        return Estimate.undefined("too_few_labels", n=n, method=name)
    truth, judged = seen.truth, seen.judged
    labels = [truth, truth * judged, 1 - truth, (1 - truth) * (1 - judged)]
    units = strata_of(labels, [np.ones(n), seen.tested], seen)
    value = float(rate_of(units.total()))
    if np.isnan(value):
        return Estimate.undefined("uninformative_judge", n=n, method=name)
    if options.ci is None:
        return Estimate(value, n=n, method=name)
    if options.ci == "percentile":
        ends, undefined = percentile_ends(units, rate_of, options)
        reason: Reason = "degenerate_resamples" if undefined else "too_few_units"
        text = f"{name}; {options.describe(units.describe())}"
        text += f"; undefined resamples: {undefined}" if undefined else ""
    else:
        ends, reason = analytic_ends(units, options.confidence_level), "too_few_units"
        text = f"{name}; Lang and Reiczigel, {options.confidence_level:.0%}, {units.describe()}"
        if units.df is None or units.df > 0:
            reason = "uninformative_judge"
    if ends.low is None or ends.high is None:
        return Estimate(value, n=n, method=text, reason=reason)
    return Estimate(value, *ends.extend_to(value), n, text)
