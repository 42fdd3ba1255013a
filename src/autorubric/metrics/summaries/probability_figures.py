"""Metrics of the probabilities that raters give, by rater and criterion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from autorubric.criteria.values import NamedDict
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.item_scores import PANEL, Rater
from autorubric.metrics.core.metric import CATEGORICAL
from autorubric.metrics.core.read_votes import Cells
from autorubric.metrics.core.resampling import IntervalArguments
from autorubric.metrics.core.result import Record, titles_of
from autorubric.metrics.core.votes_table import DECIDED, VotesTable, distinct_names
from autorubric.metrics.figures.auroc import auroc
from autorubric.metrics.figures.brier import brier, log_loss
from autorubric.metrics.figures.calibration import ReliabilityCurve, ece, reliability_curve
from autorubric.metrics.figures.forecasts import labels_of, split_mass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityFigures(Record):
    """How well a rater's probabilities on a criterion predict the labels. The units are items.

    The figures compare probabilities given that the rater answers, `p / (1 - abstention)`. Cells whose label
    is an abstention are excluded, and so are those on which the rater is certain to abstain.

    Attributes:
        origin: Source of the probabilities, with the backend and model if known.
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

    origin: str
    brier: Estimate = field(metadata={"title": "Brier"})
    log_loss: Estimate = field(metadata={"title": "log loss"})
    ece: Estimate = field(metadata={"title": "ECE"})
    ece_equal_mass: Estimate = field(metadata={"title": "ECE, equal mass"})
    ece_debiased: Estimate = field(metadata={"title": "ECE, debiased"})
    auroc: Estimate = field(metadata={"title": "AUROC"})
    abstention: Estimate = field(metadata={"title": "P(abstention)"})
    curve: ReliabilityCurve

    def figures(self) -> dict[str, Estimate]:
        """Return the metrics keyed by name."""
        return {one: getattr(self, one) for one in FIGURES}


FIGURES: Final = titles_of(ProbabilityFigures)
"""Headings of the metrics of probabilities."""


def probability_figures(
    table: VotesTable, cells: Cells, confidence_level: float
) -> dict[Rater, dict[str, ProbabilityFigures]]:
    """Return the figures of each rater by criterion, without raters whose probabilities have several origins.

    The probabilities of soft votes are those of the decisions. Those of hard votes are a judge's mean over
    its samples, and the panel has none.
    """
    found: dict[Rater, dict[str, ProbabilityFigures]] = {}
    names = distinct_names(table.criteria)
    level: IntervalArguments = {"confidence_level": confidence_level}
    for (rater, place), items in sorted(_by_criterion(table).items()):
        measured, labels = table.criteria[place], labels_of(cells, place)
        mine = [item for item in items if item in labels]
        origins = [one for judge, one in table.origins.items() if rater in (PANEL, ("judge", judge))]
        is_mixed = any(len(one) > 1 for one in origins)
        if is_mixed or len(mine) < 2 or measured.level not in CATEGORICAL or len(measured.categories) < 2:
            continue
        split = [split_mass(measured, items[item]) for item in mine]
        truth, prob = np.array([labels[item] for item in mine]), np.array([chances for chances, _ in split])
        prob = prob[:, 1] if measured.level == "binary" else prob
        abstained = float(np.mean([rest for _, rest in split]))
        found.setdefault(rater, NamedDict())[names[place]] = ProbabilityFigures(
            origin=" + ".join(sorted(frozenset[str]().union(*origins))),
            brier=brier(truth, prob, **level),
            log_loss=log_loss(truth, prob, **level),
            ece=ece(truth, prob, **level),
            ece_equal_mass=ece(truth, prob, strategy="mass", **level),
            ece_debiased=ece(truth, prob, debiased=True, **level),
            auroc=auroc(truth, prob, **level),
            abstention=Estimate(abstained, n=len(mine), method="mean probability of CANNOT_ASSESS and NA"),
            curve=reliability_curve(truth, prob, **level),
        )
    return found


def _by_criterion(table: VotesTable) -> dict[tuple[Rater, int], dict[int, list[Mapping[str, float]]]]:
    """Return probabilities by rater and criterion, and then by item."""
    found: dict[tuple[Rater, int], dict[int, list[Mapping[str, float]]]] = {}
    decided = []
    for row, given in enumerate(table.probabilities if table.origins else ()):
        rater, place, item = table.raters[table.rater[row]], int(table.criterion[row]), int(table.item[row])
        if given is not None and table.sample[row] == DECIDED:
            decided.append(((rater, place), item, given))
        elif given is not None:
            found.setdefault((rater, place), {}).setdefault(item, []).append(given)
            found.setdefault((PANEL, place), {})[item] = []
    for key, item, given in decided:
        # A decision from votes without any probabilities is not a forecast.
        if item in found.get(key, {}):
            found[key][item] = [given]
    return {key: {item: one for item, one in items.items() if one} for key, items in found.items()}
