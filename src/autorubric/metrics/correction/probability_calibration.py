"""Fits of calibrations of a judge's probabilities, and their losses on held-out items."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logit

from autorubric.errors import ArgumentError
from autorubric.metrics.core.item_scores import LabelledDataset, SupportsGradedRun
from autorubric.metrics.core.label_table import dataset_of, table_of
from autorubric.metrics.core.metric import CATEGORICAL
from autorubric.metrics.core.read_votes import Modes, cells_of
from autorubric.metrics.core.resampling import NO_ENDS, IntervalOptions, check_choice, check_number
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import DECIDED, VotesTable
from autorubric.metrics.figures import forecasts
from autorubric.scoring.calibration import (
    QUESTIONS,
    SMALLEST,
    CalibrationMethod,
    HeldOutLoss,
    ProbabilityCalibration,
    calibrated_shares,
)

_FEWEST: Final = 10  # items that a fit and an interval need


class _LabelledVote(NamedTuple):
    item: str
    criterion: str
    truth: int  # position of the label among the answers
    shares: tuple[float, ...]  # probability of each answer given that one is given


def calibrate_probabilities(
    run: SupportsGradedRun,
    labels: LabelledDataset | None = None,
    *,
    method: CalibrationMethod = "temperature",
    judge: str | None = None,
    held_out: float | Collection[str] = 0.5,
    rng: int | np.random.Generator = 0,
) -> ProbabilityCalibration:
    """Fit a calibration of a judge's probabilities on some labelled items, and test it on the others.

    Each criterion has its own parameters. `"temperature"` raises probabilities to the power 1/T, which keeps
    their order [1]; `"platt"` is a logistic regression on the logit [2], and `"isotonic"` a monotone function
    kept 1/(n + 2) away from 0 and 1 [3], both fitted on each answer against the rest and divided by their sum
    (1 for two answers). Probabilities of NA and CANNOT_ASSESS do not change. `EvalResult.rescore` and
    `CriterionGrader(votes="soft", calibrations=[…])` apply the result; votes keep the judge's own
    probabilities.

    Args:
        run: A run whose votes have probabilities, which are calibrated as the judge gave them.
        labels: Dataset with the labels; None uses the run's dataset.
        method: Method of the fit.
        judge: Id of the judge; can be omitted if only one judge gives probabilities.
        held_out: Share of the labelled items on which the calibration is tested, or their ids.
        rng: Seed or numpy random generator for the split and for 1000 paired resamples of held-out items.

    Raises:
        ArgumentError: If the 95% interval of the held-out improvement of the log loss or of the Brier score
            is not above 0, if there are fewer than 10 held-out items or items to fit a criterion on, or if
            the judge has no probabilities or has them from several backends or models.

    References:
        [1] C. Guo et al. (2017), On calibration of modern neural networks, ICML 34, 1321-1330.
        [2] J. Platt (1999), Probabilistic outputs for support vector machines, in Advances in Large Margin
            Classifiers, 61-74.
        [3] B. Zadrozny, C. Elkan (2002), Transforming classifier scores into accurate multiclass probability
            estimates, KDD 8, 694-699.
    """
    check_choice("method", method, CalibrationMethod)
    options, table = IntervalOptions(ci="percentile", rng=rng).with_fixed_seed(), table_of(run, labels)
    judge, origin = _only_judge(table, judge)
    votes = _labelled_votes(table, judge)
    later = _held_out_items(sorted({one.item for one in votes}), held_out, options)
    fitted, tested = ([one for one in votes if (one.item in later) is side] for side in (False, True))
    names = sorted({one.criterion for one in votes})
    parameters = {name: _fit(method, name, [v for v in fitted if v.criterion == name]) for name in names}
    made = [calibrated_shares(method, parameters[one.criterion], one.shares) for one in tested]
    return ProbabilityCalibration(
        method=method,
        judge=judge,
        origin=origin,
        questions=_questions(dataset_of(run, labels), names),
        parameters=parameters,
        data=sha256(json.dumps([judge, *votes]).encode("ascii")).hexdigest(),
        n_items=len({one.item for one in fitted}),
        n_held_out=len(later),
        **_held_out_losses(f"{method} calibration of judge {judge!r}", tested, made, options),
    )


def _only_judge(table: VotesTable, judge: str | None) -> tuple[str, str]:
    """Return the judge and the origin of its probabilities."""
    if not table.origins:
        raise ArgumentError("no vote has probabilities; grade with a judge that gives them")
    known = {one: sorted(origins) for one, origins in table.origins.items() if judge in (None, one)}
    if [len(origins) for origins in known.values()] != [1]:
        told = "; ".join(f"{one!r}, from {' and '.join(table.origins[one])}" for one in sorted(table.origins))
        raise ArgumentError(
            f"judge={judge!r}: pass a judge with probabilities of one origin; available: {told}"
        )
    return next((one, origins[0]) for one, origins in known.items())


def _labelled_votes(table: VotesTable, judge: str) -> list[_LabelledVote]:
    cells, found = cells_of(table, Modes()), []
    labels = [forecasts.labels_of(cells, place) for place in range(len(table.criteria))]
    mine = (table.rater == table.raters.index(("judge", judge))) & (table.sample != DECIDED)
    for row in (row for row in np.flatnonzero(mine).tolist() if table.probabilities[row] is not None):
        measured, item = table.criteria[table.criterion[row]], int(table.item[row])
        truth = labels[table.criterion[row]].get(item)
        shares, abstained = forecasts.split_mass(measured, [table.probabilities[row]])
        if measured.level in CATEGORICAL and truth is not None and abstained < 1:
            found.append(_LabelledVote(table.item_ids[item], measured.name, truth, tuple(shares.tolist())))
    return sorted(found)


def _held_out_items(items: Sequence[str], held_out: Any, options: IntervalOptions) -> set[str]:
    if isinstance(held_out, float | int):
        n = round(len(items) * check_number("held_out", held_out, "(0, 1)"))
        later = {items[at] for at in options.generator().permutation(len(items))[:n]}
    else:
        later = set(held_out) & set(items)
    if not items:
        raise ArgumentError("no item has both a label and probabilities; add labels to the dataset")
    if len(later) < _FEWEST:
        raise ArgumentError(f"{len(later)} of {len(items)} labelled items are held out; {_FEWEST} are needed")
    return later


def _questions(dataset: LabelledDataset, names: Sequence[str]) -> dict[str, str]:
    rubrics = {id(one): one for one in map(dataset.get_item_rubric, range(len(dataset.items)))}
    whole = [one for rubric in rubrics.values() for one in rubric]
    criteria = [part for one in whole for part in (one, *one.part_fields.values()) if part.name in names]
    found = sorted({(one.name or "", QUESTIONS.of(one)) for one in criteria})
    if len(found) > len(names):
        raise ArgumentError("items have different criteria with the same name; calibrate on one rubric")
    return dict(found)


def _fit(
    method: CalibrationMethod, name: str, votes: Sequence[_LabelledVote]
) -> tuple[tuple[float, ...], ...]:
    if (n := len({one.item for one in votes})) < _FEWEST:
        raise ArgumentError(f"criterion {name!r} has {n} labelled items to fit on; {_FEWEST} are needed")
    prob = np.array([one.shares for one in votes])
    hits = np.eye(prob.shape[1], dtype=bool)[[one.truth for one in votes]]
    if method == "temperature":
        return (_fit_temperature(prob, hits),) * len(prob.T)
    fit = _fit_platt if method == "platt" else _fit_isotonic
    return tuple(fit(p, hit) for p, hit in zip(prob.T, hits.T, strict=True))


def _fit_temperature(prob: Array, hits: Array) -> tuple[float, ...]:
    def loss(scale: Array) -> float:
        return -float(log_softmax(np.log(prob.clip(SMALLEST)) * np.exp(scale), axis=1)[hits].mean())

    return (math.exp(-minimize(loss, [0.0], method="L-BFGS-B", bounds=[(-3.0, 3.0)]).x[0]),)


def _fit_platt(p: Array, hit: Array) -> tuple[float, ...]:
    x = logit(p.clip(SMALLEST, 1 - SMALLEST))
    # Platt's targets, which keep the slope finite if the answers are separable.
    target = np.where(hit, (hit.sum() + 1) / (hit.sum() + 2), 1 / ((~hit).sum() + 2))

    def loss(line: Array) -> float:
        z = line[0] * x + line[1]
        return float(np.mean(np.logaddexp(0, z) - target * z))

    return tuple(minimize(loss, [1.0, 0.0]).x.tolist())


def _fit_isotonic(p: Array, hit: Array) -> tuple[float, ...]:
    from sklearn.isotonic import IsotonicRegression  # imported here because scikit-learn is slow to load

    margin = 1 / (len(p) + 2)
    found = IsotonicRegression(y_min=margin, y_max=1 - margin).fit(p, hit)
    return tuple(np.column_stack([found.X_thresholds_, found.y_thresholds_]).ravel().tolist())


def _held_out_losses(
    called: str, votes: Sequence[_LabelledVote], made: Sequence[Sequence[float]], options: IntervalOptions
) -> dict[str, Any]:
    """Return the losses before and after calibration; refuse a calibration that does not improve both."""

    def brier_score(shares: Sequence[float], truth: int) -> float:
        squares = math.fsum((p - (at == truth)) ** 2 for at, p in enumerate(shares))
        return squares / 2 if len(shares) == 2 else squares

    places = {item: at for at, item in enumerate(dict.fromkeys(one.item for one in votes))}
    clusters = np.array([places[one.item] for one in votes])
    found = {}
    for field, name, loss in (
        ("log_loss", "log loss", lambda shares, truth: -math.log(max(shares[truth], SMALLEST))),
        ("brier", "Brier score", brier_score),
    ):
        before = np.array([loss(one.shares, one.truth) for one in votes])
        after = np.array([loss(shares, one.truth) for shares, one in zip(made, votes, strict=True)])
        mean = forecasts.mean_score(before - after)
        figure = forecasts.weighted_figure(name, mean, lambda value, level: NO_ENDS)
        figure = replace(figure, bounds=(-math.inf, math.inf))
        gain = forecasts.Observations(len(votes), clusters, 0).estimate(figure, options)
        # If the losses do not vary, there is no interval.
        one = HeldOutLoss(
            before=float(before.mean()), after=float(after.mean()), low=gain.low or 0.0, high=gain.high or 0.0
        )
        if one.low <= 0:
            raise ArgumentError(
                f"the {called} is refused, because the interval of its improvement is not above 0: on "
                f"{len(places)} held-out items, the {name} is {one.before:.4f} before and {one.after:.4f} "
                f"after, an improvement of {one.before - one.after:+.4f} [{one.low:+.4f}, {one.high:+.4f}]. "
                "Label more items, or use the judge's probabilities"
            )
        found[field] = one
    return found
