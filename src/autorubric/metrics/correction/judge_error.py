"""Labelled runs of the same judges: checks that they were judged alike, and prediction of true scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import (
    FingerprintedRun,
    GradedItems,
    LabelledDataset,
    OwnedRun,
    SupportsGradedRun,
)
from autorubric.metrics.core.label_table import dataset_of
from autorubric.metrics.core.resampling import NO_ENDS, Ends, chunks
from autorubric.metrics.core.scales import Array
from autorubric.metrics.correction.score_columns import criterion_facts, read_item_scores
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.support.objects import IdentityCache

_BY_NAME = {"judges": "judge", "checks": "check"}


def check_same_judging(result: SupportsGradedRun, calibration: object) -> FingerprintedRun:
    """Check that both runs were judged in the same way, and return the calibration run."""
    for name, run in (("result", result), ("calibration", calibration)):
        if not isinstance(run, FingerprintedRun):
            raise ArgumentError(
                f"{name} must be an EvalResult, as returned by evaluate or EvalResult.from_experiment; "
                f"got {type(run).__name__}"
            )
    assert isinstance(result, FingerprintedRun) and isinstance(calibration, FingerprintedRun)
    differences = [*_compare_fingerprints(result.fingerprint, calibration.fingerprint)]
    own, other = _list_rubrics(result), _list_rubrics(calibration)
    # Guidelines are in every prompt.
    if {rubric.guidelines for rubric in own} != {rubric.guidelines for rubric in other}:
        differences.append("the rubrics have different guidelines")
    differences += _compare_entries("criterion", _criteria_by_name(own), _criteria_by_name(other))
    if differences:
        raise ArgumentError(
            f"calibration was not judged in the same way as result: {'; '.join(differences)}. Pass a "
            "labelled run with the same judges, prompts and criteria; otherwise, judges' errors may differ"
        )
    return calibration


def _compare_fingerprints(own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for part in dict.fromkeys([*own, *other]):
        ours, theirs = own.get(part), other.get(part)
        if part == "sampling":
            # The seed only decides the order in which options are shown.
            ours, theirs = ({**(side or {}), "seed": None} for side in (ours, theirs))
        if ours == theirs:
            continue
        if part in _BY_NAME and isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            yield from _compare_entries(_BY_NAME[part], ours, theirs)
        else:
            name = part.replace("_", " ")
            verb = "differ" if name.endswith("s") else "differs"
            yield f"{name} {verb}{_format_fields(ours, theirs)}"


def _compare_entries(kind: str, own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*own, *other]):
        if name not in other:
            yield f"{kind} {name!r} occurs only in result"
        elif name not in own:
            yield f"{kind} {name!r} occurs only in calibration"
        elif own[name] != other[name]:
            yield f"{kind} {name!r} differs{_format_fields(own[name], other[name])}"


def _format_fields(own: object, other: object) -> str:
    """Format the fields that differ, with both values."""
    if not isinstance(own, Mapping) or not isinstance(other, Mapping):
        return ""

    def value(fields: Mapping[str, Any], name: str) -> str:
        # Fingerprints omit values equal to the default.
        return repr(fields[name]) if name in fields else "the default"

    names = [name for name in dict.fromkeys([*own, *other]) if own.get(name) != other.get(name)]
    return f" ({', '.join(f'{name}: {value(own, name)} and {value(other, name)}' for name in names[:3])})"


def _list_rubrics(run: FingerprintedRun) -> list[Rubric]:
    rubrics = (run.dataset.get_item_rubric(i) for i in range(len(run.dataset.items)))
    return list({id(rubric): rubric for rubric in rubrics}.values())


def _criteria_by_name(rubrics: Sequence[Rubric]) -> dict[str, set[str]]:
    """Return what was asked and counted under each name."""
    found: dict[str, set[str]] = {}
    for one in (one for rubric in rubrics for one in rubric):
        found.setdefault(one.name or "", set()).add(repr((one.vote_fields(), criterion_facts(one))))
    return found


_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Judged and true scores of labelled items, in [0, 1] and without length penalty, shape `(m,)`."""

    judged: Array
    true: Array

    @property
    def n(self) -> int:
        return len(self.true)

    def predict(self, judged: float) -> float:
        """Predict the true score from a judged score by least squares, clipped to [0, 1]."""
        centre = float(self.judged.mean())
        centred = self.judged - centre
        spread = float((centred**2).sum())
        slope = float((centred * self.true).sum()) / spread if spread > _SLACK else 0.0
        return min(max(float(self.true.mean()) + slope * (judged - centre), 0.0), 1.0)

    def interval(self, judged: float, confidence_level: float) -> Ends:
        """Return the full conformal interval for the true score of a new item with this judged score.

        A line is fitted to the labelled items and the new item with a candidate true score, which is
        kept unless the new item's residual is too large [1, ch. 2.3]. If the new item comes from the
        same population, the interval covers its true score with at least the confidence level,
        whatever the judges' errors are [2]. Residuals are linear in the candidate, so only points
        where two are equal are tested.
        [1] V. Vovk, A. Gammerman, G. Shafer (2005), Algorithmic learning in a random world.
        [2] J. Lei et al. (2018), Distribution-free predictive inference for regression, JASA
        113(523).
        """
        # With fewer labelled items, no interval of this level is narrower than [0, 1].
        if self.n < math.ceil(confidence_level / (1 - confidence_level) - _SLACK):
            return NO_ENDS
        constant, slope = self._residuals(judged)
        with np.errstate(divide="ignore", invalid="ignore"):
            equal = (constant[-1] - constant[:-1]) / (slope[:-1] - slope[-1])
            opposite = -(constant[-1] + constant[:-1]) / (slope[:-1] + slope[-1])
        points = np.concatenate([[0.0, 1.0, self.predict(judged)], equal, opposite])
        points = points[(points >= 0) & (points <= 1)]
        kept = points[self._is_conforming(constant, slope, points, confidence_level)]
        return Ends(float(kept.min()), float(kept.max()), None) if len(kept) else NO_ENDS

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
        found, done = [], 0
        for size in chunks(len(points), len(constant)):
            residuals = np.abs(constant[:, None] + slope[:, None] * points[None, done : done + size])
            done += size
            as_large = np.count_nonzero(residuals >= residuals[-1] - _SLACK, axis=0)
            found.append(as_large > (1 - confidence_level) * len(constant) + _SLACK)
        return np.concatenate(found)


_Facts: TypeAlias = Mapping[str, tuple[object, ...]]
"""Properties of criteria that affect the score, by name."""


@dataclass(frozen=True, slots=True)
class _Calibration:
    """The scores, distinct sets of criteria, and judges of a labelled run."""

    scores: LabelledScores
    criteria: tuple[_Facts, ...]
    judges: set[str]

    def check_same_judging(self, report: EnsembleEvaluationReport) -> None:
        """Raise an error if a report has other criteria or judges than the run."""
        own, judges = _facts_of(report), _judges_of([report])
        for facts in self.criteria:
            names = sorted(name for name in own.keys() | facts.keys() if own.get(name) != facts.get(name))
            if names:
                raise ArgumentError(
                    f"the judge_error run and the report have different criteria: {names!r} differ in name, "
                    "weight or answers; pass a run with the same rubric"
                )
        if judges and judges != self.judges:
            raise ArgumentError(
                f"the judge_error run has the judges {sorted(self.judges)!r} but the report has "
                f"{sorted(judges)!r}; pass a run of the same judges, because different judges make different "
                "errors"
            )


def _facts_of(report: EnsembleEvaluationReport) -> _Facts:
    return {one.name: criterion_facts(one.criterion) for one in report.report}


def _judges_of(reports: Iterable[EnsembleEvaluationReport]) -> set[str]:
    return {vote.judge_id for report in reports for one in report.report for vote in one.votes}


_CALIBRATIONS: IdentityCache[Any, list[tuple[LabelledDataset, _Calibration]]] = IdentityCache(
    lambda results: []
)
"""The calibration of each run with its dataset, which is computed when it is first needed."""


def labelled_scores(
    run: object, dataset: LabelledDataset | None, report: EnsembleEvaluationReport
) -> LabelledScores:
    if not isinstance(run, SupportsGradedRun):
        raise ArgumentError(
            "judge_error must be a labelled run of the same judges, as returned by evaluate, because error "
            f"counts and other summaries do not show how much items differ; got {type(run).__name__}"
        )
    # Plain lists cannot be weakly referenced.
    kept: list[tuple[LabelledDataset, _Calibration]] = []
    labelled = dataset_of(run, dataset)
    if dataset is None and isinstance(run, OwnedRun) and type(run.item_results) not in (list, tuple):
        kept = _CALIBRATIONS.of(run.item_results)
    if not kept or kept[0][0] is not labelled:
        kept[:] = [(labelled, _read_calibration(run, labelled))]
    calibration = kept[0][1]
    calibration.check_same_judging(report)
    return calibration.scores


def _read_calibration(run: SupportsGradedRun, dataset: LabelledDataset) -> _Calibration:
    read = GradedItems(list(run.item_results))
    reports = [one.report for one in read.item_results if one.report is not None]
    scores = read_item_scores(read, dataset)
    usable = ~np.isnan(scores.judged_score + scores.true_score)
    criteria: list[_Facts] = []
    for one in reports:
        if (facts := _facts_of(one)) not in criteria:
            criteria.append(facts)
    labelled = LabelledScores(scores.judged_score[usable], scores.true_score[usable])
    return _Calibration(labelled, tuple(criteria), _judges_of(reports))
