"""Accuracy of a judge that abstains where it is least confident."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._columns import numeric_column
from autorubric.metrics._contingency import cluster_codes, encode
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._options import CodedArguments, CodedOptions, IntervalOptions
from autorubric.metrics._probabilities._forecasts import Observations, rate, t_ends, weighted_figure
from autorubric.metrics._rater_tables import dense
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Codes, Scale

_MOST_POINTS = 100
_NAME = "area under the risk-coverage curve, with equal confidences as one step"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePoint:
    """Accuracy of the most confident answers at one coverage level.

    Attributes:
        coverage: Fraction of answers kept, in (0, 1].
        threshold: Lowest confidence among the kept answers.
        accuracy: Fraction of kept answers that are correct.
        n: Number of answers kept.
    """

    coverage: float
    threshold: float
    accuracy: Estimate
    n: int

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. Undefined values are None, never NaN."""
        return {
            "coverage": self.coverage, "threshold": self.threshold, "accuracy": self.accuracy.to_dict(),
            "n": self.n,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageCurve:
    """Accuracy as a function of coverage, the fraction of answers kept.

    Attributes:
        points: Points in order of increasing coverage.
        aurc: Area under the risk-coverage curve, the mean error rate over coverages. Lower is better;
            uninformative confidences give roughly the overall error rate.
        n: Number of answers that have a label and a confidence.
        n_missing: Number of excluded answers.
        reason: Reason why there are no points; None if there are points.
    """

    points: tuple[CoveragePoint, ...]
    aurc: Estimate
    n: int
    n_missing: int
    reason: Reason | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. Undefined values are None, never NaN."""
        return {
            "points": [one.to_dict() for one in self.points], "aurc": self.aurc.to_dict(), "n": self.n,
            "n_missing": self.n_missing, "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Steps:
    """Answers in order of decreasing confidence; equal confidences form one step.

    Attributes:
        wrong: 1 if the answer is wrong, otherwise 0, in that order, shape `(n,)`.
        step: Step of each answer, 0..S-1, in increasing order.
        ends: Number of answers up to the end of each step, shape `(S,)`.
        thresholds: Confidence of each step, in decreasing order.
        seen: Observations and clusters used for resampling.
    """

    wrong: Array
    step: Codes
    ends: Codes
    thresholds: Array
    seen: Observations

    def area(self, weights: Array) -> Array:
        """Compute `Σ_s (share of answers in s) · (error rate up to the end of s)`, shape `(...)`."""
        kept = np.cumsum(weights, axis=-1)[..., self.ends - 1]
        errors = np.cumsum(weights * self.wrong, axis=-1)[..., self.ends - 1]
        gained = np.diff(kept, axis=-1, prepend=0.0)
        risk = errors / np.where(kept == 0, 1.0, kept)
        return np.asarray((gained * risk).sum(-1) / weights.sum(-1))

    def effects(self) -> Array:
        """Return the first-order effect of each answer on the area, shape `(n,)`.

        Each answer adds a coverage level and changes the risk at its own step and all later ones.
        """
        n = len(self.wrong)
        gained = np.diff(self.ends, prepend=0)
        risk = np.cumsum(self.wrong)[self.ends - 1] / self.ends
        share = gained / self.ends
        beyond, of_risk = (np.cumsum(x[::-1])[::-1][self.step] for x in (share, share * risk))
        raw = risk[self.step] + self.wrong * beyond - of_risk
        return np.asarray((raw - raw.mean()) / n)


def accuracy_at_coverage(
    truth: Iterable[Any],
    pred: Iterable[Any],
    confidence: Iterable[Any] | None,
    *,
    coverages: Sequence[float] | None = None,
    scale: Scale | None = None,
    **interval: Unpack[CodedArguments],
) -> CoverageCurve:
    """Compute the accuracy of the most confident answers at increasing coverages, and the AURC [1].

    Coverage is the fraction of answers kept, most confident first. Answers with equal confidence form one
    step, so the order of rows does not matter; a coverage within a step is reported at the end of the step.
    AURC, the area above the accuracy curve, is `Σ_s (share of answers in step s) · (error rate up to s)`; if
    all confidences differ, it is the mean over answers defined in [1]. If `confidence` is None, there are no
    points and AURC is undefined (`no_confidence`); the same applies if no answer is complete (`no_pairs`).

    Args:
        truth: True labels. Answers whose label is None or NaN are dropped.
        pred: Predicted labels. Answers whose prediction is None or NaN are dropped.
        confidence: Numbers on any scale, because only their order matters; None and NaN are missing.
        coverages: Coverages in (0, 1] to report; None reports every step or, if there are more than 100
            steps, 1%, 2%, … 100%.
        scale: Declared categories; None uses the labels that occur.
        **interval: See `CodedArguments`. Accuracies have Wilson's interval, or a logit-t interval with
            clusters; AURC has a delta-method t interval.

    References:
        [1] Y. Geifman, R. El-Yaniv (2017), Selective classification for deep neural networks, NeurIPS 30; the
            area: Y. Geifman, G. Uziel, R. El-Yaniv (2019), Bias-reduced uncertainty estimation for deep
            neural classifiers, ICLR.
    """
    options = CodedOptions(**interval)
    steps, reason = _steps(truth, pred, confidence, scale, options)
    seen = steps.seen
    if reason is not None:
        nothing = Estimate.undefined(reason, n=0, method=_NAME, n_missing=seen.n_missing)
        return CoverageCurve(points=(), aurc=nothing, n=0, n_missing=seen.n_missing, reason=reason)
    figure = weighted_figure(_NAME, steps.area, t_ends(seen, steps.effects))
    points = tuple(_point(steps, place, options) for place in _reported(steps, coverages))
    return CoverageCurve(
        points=points, aurc=seen.estimate(figure, options), n=seen.n, n_missing=seen.n_missing
    )


def _steps(
    truth: Iterable[Any],
    pred: Iterable[Any],
    confidence: Iterable[Any] | None,
    scale: Scale | None,
    options: CodedOptions,
) -> tuple[_Steps, Reason | None]:
    left, right = encode((truth, pred), scale, options.labels).codes
    sure = np.full(len(left), np.nan) if confidence is None else numeric_column(confidence, "confidence")
    if not len(left) == len(right) == len(sure):
        raise ArgumentError(
            f"truth has {len(left)} labels, pred has {len(right)} and confidence has {len(sure)} numbers; "
            "pass one of each per answer"
        )
    kept = (left >= 0) & (right >= 0) & ~np.isnan(sure)
    reason: Reason | None = None
    if not kept.any():
        reason = "no_confidence" if len(sure) and np.isnan(sure).all() else "no_pairs"
    members = dense(cluster_codes(options.cluster, len(left)), kept)
    order = np.argsort(-sure[kept], kind="stable")
    thresholds, starts, step = np.unique(-sure[kept][order], return_index=True, return_inverse=True)
    n = int(np.count_nonzero(kept))
    seen = Observations(n, None if members is None else members[order], len(left) - n)
    wrong = (left != right)[kept][order].astype(float)
    return _Steps(wrong, step.reshape(-1), np.append(starts[1:], n), -thresholds, seen), reason


def _reported(steps: _Steps, coverages: Sequence[float] | None) -> list[int]:
    if coverages is None:
        if len(steps.ends) <= _MOST_POINTS:
            return list(range(len(steps.ends)))
        coverages = [percent / _MOST_POINTS for percent in range(1, _MOST_POINTS + 1)]
    wrong = [share for share in coverages if not 0.0 < share <= 1.0]
    if wrong:
        raise ArgumentError(f"coverages must be greater than 0 and at most 1; got {wrong[0]!r}")
    # Rounding must not add an answer to the number that the coverage implies.
    wanted = np.ceil(np.array(coverages, dtype=float) * steps.seen.n - 1e-9)
    return sorted({int(place) for place in np.searchsorted(steps.ends, wanted)})


def _point(steps: _Steps, place: int, options: IntervalOptions) -> CoveragePoint:
    n = int(steps.ends[place])
    cluster = None if steps.seen.cluster is None else steps.seen.cluster[:n]
    return CoveragePoint(
        coverage=n / steps.seen.n,
        threshold=float(steps.thresholds[place]),
        accuracy=rate("accuracy of the most confident", 1 - steps.wrong[:n], cluster, options),
        n=n,
    )
