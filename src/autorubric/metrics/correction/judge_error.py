"""Prediction of an item's true score from its judged score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.intervals import Ends
from autorubric.metrics.core.item_scores import (
    LabelledDataset,
    OwnedRun,
    SupportsGradedItem,
    SupportsGradedRun,
)
from autorubric.metrics.core.label_table import dataset_of
from autorubric.metrics.core.scales import Array
from autorubric.metrics.correction.same_judging import (
    check_same_judges,
    check_same_rubric,
    judges_of,
    report_facts,
)
from autorubric.metrics.correction.score_columns import read_item_scores
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.support.objects import IdentityCache

_CHUNK_CELLS = 2_000_000
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Judged and true scores of labelled items, in [0, 1] and without length penalty, shape `(m,)`."""

    judged: Array
    true: Array

    @property
    def n(self) -> int:
        """Number of labelled items."""
        return len(self.true)

    def fewest(self, confidence_level: float) -> int:
        """Return the minimum number of labelled items for an interval of this level narrower than [0, 1]."""
        return math.ceil(confidence_level / (1 - confidence_level) - _SLACK)

    def predict(self, judged: float) -> float:
        """Predict the true score from a judged score by least squares, clipped to [0, 1]."""
        spread = float(((self.judged - self.judged.mean()) ** 2).sum())
        slope = 0.0
        if spread > _SLACK:
            slope = float(((self.judged - self.judged.mean()) * self.true).sum()) / spread
        return min(max(float(self.true.mean()) + slope * (judged - float(self.judged.mean())), 0.0), 1.0)

    def interval(self, judged: float, confidence_level: float) -> Ends:
        """Return the full conformal interval for the true score of a new item with this judged score.

        To test a candidate true score y, the new item (judged, y) is added and a least-squares line is fitted
        to all m + 1 items. y is kept if more than a proportion 1 - level of the residuals are at least as
        large as that of the new item [1, ch. 2.3]. If the new item comes from the same population as the
        labelled ones, the interval covers its true score with at least the confidence level, whatever the
        judges' errors are and however they depend on each other and on the item [2].

        Residuals are linear in y, so only points where two residuals are equal need to be tested.

        References:
            [1] V. Vovk, A. Gammerman, G. Shafer (2005), Algorithmic learning in a random world, Springer.
            [2] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman (2018), Distribution-free
                predictive inference for regression, JASA 113(523), 1094-1111.
        """
        if self.n < self.fewest(confidence_level):
            return Ends(None, None, None)
        constant, slope = self._residuals(judged)
        with np.errstate(divide="ignore", invalid="ignore"):
            points = np.concatenate(
                [
                    (constant[-1] - constant[:-1]) / (slope[:-1] - slope[-1]),
                    -(constant[-1] + constant[:-1]) / (slope[:-1] + slope[-1]),
                ]
            )
        points = np.concatenate([[0.0, 1.0, self.predict(judged)], points[(points >= 0) & (points <= 1)]])
        kept = points[self._is_conforming(constant, slope, points, confidence_level)]
        return Ends(float(kept.min()), float(kept.max()), None) if len(kept) else Ends(None, None, None)

    def _residuals(self, judged: float) -> tuple[Array, Array]:
        """Return constants and slopes in y of the m + 1 residuals, each `(m + 1,)`; the new item is last."""
        x = np.append(self.judged, judged)
        centred = x - x.mean()
        spread = float(centred @ centred)
        weights = centred / spread if spread > _SLACK else np.zeros(len(x))
        true = np.append(self.true, 0.0)
        constant = true - true.mean() - centred * float(weights @ true)
        slope = -1 / len(x) - centred * float(weights[-1])
        slope[-1] += 1.0
        return constant, slope

    def _is_conforming(self, constant: Array, slope: Array, points: Array, confidence_level: float) -> Array:
        """Return whether each of these true scores conforms, shape `(p,)`."""
        found = []
        step = max(1, _CHUNK_CELLS // len(constant))
        for start in range(0, len(points), step):
            residuals = np.abs(constant[:, None] + slope[:, None] * points[None, start : start + step])
            as_large = np.count_nonzero(residuals >= residuals[-1] - _SLACK, axis=0)
            found.append(as_large > (1 - confidence_level) * len(constant) + _SLACK)
        return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class _Calibration:
    """The scores, distinct sets of criterion properties, and judges of a labelled run."""

    scores: LabelledScores
    criteria: tuple[Mapping[str, tuple[object, ...]], ...]
    judges: frozenset[str]


@dataclass(frozen=True, slots=True)
class _ReadRun:
    """Results read into memory once, because a run folder rebuilds its results on each access."""

    item_results: Sequence[SupportsGradedItem]


def labelled_scores(
    run: object, dataset: LabelledDataset | None, report: EnsembleEvaluationReport
) -> LabelledScores:
    """Return the scores of a run's labelled items."""
    if not isinstance(run, SupportsGradedRun):
        raise ArgumentError(
            "judge_error must be a labelled run of the same judges, as returned by evaluate, because error "
            f"counts and other summaries do not show how much items differ; got {type(run).__name__}"
        )
    # Plain lists cannot be weakly referenced.
    known = dataset is None and isinstance(run, OwnedRun) and type(run.item_results) not in (list, tuple)
    found = (
        _CALIBRATIONS.of(run.item_results)(run) if known else _read_calibration(run, dataset_of(run, dataset))
    )
    check_same_rubric(report_facts(report), found.criteria)
    check_same_judges(judges_of([report]), found.judges)
    return found.scores


class _CachedCalibration:
    """A calibration of a run that is computed on the first call and then reused."""

    def __init__(self, results: object) -> None:
        self._found: _Calibration | None = None

    def __call__(self, run: SupportsGradedRun) -> _Calibration:
        if self._found is None:
            self._found = _read_calibration(run, dataset_of(run))
        return self._found


_CALIBRATIONS: IdentityCache[Any, _CachedCalibration] = IdentityCache(_CachedCalibration)


def _read_calibration(run: SupportsGradedRun, dataset: LabelledDataset) -> _Calibration:
    read = _ReadRun(list(run.item_results))
    reports = [one.report for one in read.item_results if one.report is not None]
    scores = read_item_scores(read, dataset)
    usable = ~np.isnan(scores.judged_score + scores.true_score)
    criteria: list[Mapping[str, tuple[object, ...]]] = []
    for one in reports:
        if (facts := report_facts(one)) not in criteria:
            criteria.append(facts)
    return _Calibration(
        LabelledScores(scores.judged_score[usable], scores.true_score[usable]),
        tuple(criteria),
        frozenset(judges_of(reports)),
    )
