"""Metrics of the probabilities that raters give, by rater and criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from autorubric.criteria.values import NamedDict
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.item_scores import PANEL, Rater
from autorubric.metrics.core.read_votes import Cells
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.result import Record
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import (
    ABSTAINED,
    ANSWERED,
    DECIDED,
    MeasuredCriterion,
    VotesTable,
    distinct_names,
)
from autorubric.metrics.figures.auroc import auroc
from autorubric.metrics.figures.brier import brier, log_loss
from autorubric.metrics.figures.calibration import ReliabilityCurve, ece, reliability_curve
from autorubric.metrics.figures.forecasts import Observations, logit_ends, mean_score, weighted_figure

LEVELS: Final = ("binary", "nominal", "ordinal")
"""Levels of criteria whose probabilities are compared with labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityFigures(Record):
    """How well a rater's probabilities on a criterion predict the labels. The units are items.

    The figures compare probabilities given that the rater answers: `p / (1 - abstention)`. Cells whose label
    is an abstention are excluded, and so are cells on which the rater is certain to abstain.

    Attributes:
        criterion: Name of the criterion.
        backend: What computed the probabilities: their source, and the server or library if known. A rater's
            probabilities from different backends are never combined in a figure.
        brier: Brier score of the positive answer, in [0, 1], for a binary criterion; otherwise the sum over
            answers, in [0, 2], which is halved for two answers.
        log_loss: Logarithmic loss in nats, not clipped: undefined (`infinite_loss`) if an answer with
            probability 0 is a label.
        ece: Expected calibration error in 10 bins of equal width. It and the figures below compare
            P(positive) with the rate of positive labels for a binary criterion, and otherwise the largest
            probability with the accuracy of the answer that has it. Bins include their upper edge.
        ece_equal_mass: The same in 10 bins with roughly equal numbers of cells.
        ece_debiased: `ece` minus an estimate of its upward bias, which is considerable for few items.
        auroc: Area under the ROC curve; the mean over answers, each against the rest, if there are several.
        abstention: Mean probability of CANNOT_ASSESS and NA.
        curve: Reliability diagram: observed rate by mean forecast, in the bins of `ece`.
    """

    criterion: str
    backend: str
    brier: Estimate
    log_loss: Estimate
    ece: Estimate
    ece_equal_mass: Estimate
    ece_debiased: Estimate
    auroc: Estimate
    abstention: Estimate
    curve: ReliabilityCurve

    def figures(self) -> dict[str, Estimate]:
        """Return the metrics keyed by name."""
        return {one: getattr(self, one) for one in FIGURES}


FIGURES: Final = ("brier", "log_loss", "ece", "ece_equal_mass", "ece_debiased", "auroc", "abstention")


def split_mass(criterion: MeasuredCriterion, given: Sequence[Mapping[str, float]]) -> tuple[Array, float]:
    """Return the probability of each category given that it is answered (NaN without), and the other mass."""
    places = {answer.label: at for at, answer in enumerate(criterion.categories)}
    mass = np.zeros(len(places) + 1)
    for one in given:
        for label, share in one.items():
            mass[places.get(label, -1)] += share
    answered = float(mass[:-1].sum())
    return (mass[:-1] / answered if answered else np.full(len(places), np.nan)), mass[-1] / mass.sum()


def truth_codes(cells: Cells, place: int) -> dict[int, int]:
    """Return the category of the label of each item that has an answer as its label on a criterion."""
    span = cells.spans[place]
    codes, status = cells.truth.code[span], cells.truth.status[span]
    there = (status == ANSWERED) & (codes >= 0)
    return dict(zip(cells.item[span][there].tolist(), codes[there].tolist(), strict=True))


def probability_figures(
    table: VotesTable, cells: Cells, options: IntervalOptions
) -> dict[Rater, dict[str, ProbabilityFigures]]:
    """Return the figures of each rater by criterion, or by criterion and backend if there are several.

    The probabilities of soft votes are those of the decisions. Those of hard votes are a judge's mean over
    its samples, and the panel has none.
    """
    found: dict[Rater, dict[str, ProbabilityFigures]] = {}
    names = distinct_names(table.criteria)
    given = _by_backend(table)
    for (who, place, backend), items in given.items():
        measured, truth = table.criteria[place], truth_codes(cells, place)
        labelled = [item for item in items if item in truth]
        if measured.level not in LEVELS or len(measured.categories) < 2 or not labelled:
            continue
        several = sum(key[:2] == (who, place) for key in given) > 1
        split = [split_mass(measured, items[item]) for item in labelled]
        made = _figures(
            names[place],
            backend,
            np.array([truth[item] for item in labelled]),
            np.array([prob for prob, _ in split]),
            np.array([abstained for _, abstained in split]),
            binary=measured.level == "binary",
            options=options,
        )
        key = f"{names[place]} ({backend})" if several else names[place]
        found.setdefault(table.raters[who], NamedDict())[key] = made
    return found


def _by_backend(table: VotesTable) -> dict[tuple[int, int, str], dict[int, list[Mapping[str, float]]]]:
    """Return probabilities by rater, criterion and backend, and then by item."""
    rows = np.flatnonzero(np.not_equal(table.probabilities, None).astype(bool))
    at = zip(
        table.rater[rows].tolist(), table.criterion[rows].tolist(), table.item[rows].tolist(), strict=True
    )
    decided: dict[tuple[int, int, int], Mapping[str, float]] = {}
    votes: dict[tuple[int, int, int], list[int]] = {}
    panel = table.raters.index(PANEL) if PANEL in table.raters else -1
    for row, (who, place, item) in zip(rows.tolist(), at, strict=True):
        if table.sample[row] == DECIDED:
            decided[who, place, item] = table.probabilities[row]
        elif table.status[row] in (ANSWERED, ABSTAINED):
            votes.setdefault((who, place, item), []).append(row)
            votes.setdefault((panel, place, item), []).append(row)
    found: dict[tuple[int, int, str], dict[int, list[Mapping[str, float]]]] = {}
    for (who, place, item), mine in sorted(votes.items()):
        soft = decided.get((who, place, item))
        if soft is None and who == panel:
            continue
        backend = " + ".join(sorted({table.backends[one] for one in table.backend[mine]}))
        given = [table.probabilities[row] for row in mine] if soft is None else [soft]
        found.setdefault((who, place, backend), {})[item] = given
    return found


def _figures(
    name: str,
    backend: str,
    truth: Codes,
    prob: Array,
    abstained: Array,
    *,
    binary: bool,
    options: IntervalOptions,
) -> ProbabilityFigures:
    forecast = prob[:, 1] if binary else prob
    level: dict[str, Any] = {"confidence_level": options.confidence_level}
    seen = Observations(len(abstained), None, 0)
    effects = (abstained - abstained.mean()) / len(abstained)
    mean = weighted_figure(
        "probability of CANNOT_ASSESS and NA, mean",
        mean_score(abstained),
        logit_ends(seen, lambda: effects, 1.0),
    )
    return ProbabilityFigures(
        criterion=name,
        backend=backend,
        brier=brier(truth, forecast, **level),
        log_loss=log_loss(truth, forecast, **level),
        ece=ece(truth, forecast, **level),
        ece_equal_mass=ece(truth, forecast, strategy="mass", **level),
        ece_debiased=ece(truth, forecast, debiased=True, **level),
        auroc=auroc(truth, forecast, **level),
        abstention=seen.estimate(mean, IntervalOptions(**level)),
        curve=reliability_curve(truth, forecast, **level),
    )
