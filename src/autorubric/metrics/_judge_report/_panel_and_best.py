"""Comparison of the panel with its best judge on the cells that both answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from autorubric.metrics._cells import Cells, Modes
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._item_scores import PANEL, Rater
from autorubric.metrics._judge_report._contestants import Contestant
from autorubric.metrics._judge_report._item_draws import Field, draw
from autorubric.metrics._judge_report._item_resampling import Resampled
from autorubric.metrics._judge_report._item_sums import layout_of
from autorubric.metrics._judge_report._rater_report import RaterReport
from autorubric.metrics._options import Resampling

HeadlineName: TypeAlias = Literal["kappa", "pearson", "accuracy"]
"""Metric that summarizes a rater, which is the first of these metrics that is defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAndBest:
    """Comparison of the panel with the best single judge on the labelled cells that both answered.

    Cells (pairs of item and criterion) on which the judges' votes tie are excluded, even if a run's panel
    answers them, so a run and a label table with the same votes have the same metrics.

    Attributes:
        judge: Id of the best judge. It is selected on the same items, which overstates its quality.
        figure: Name of the compared metric, a mean over criteria.
        panel: The panel's value of the metric.
        best: The best judge's value of the metric.
        difference: Panel minus judge, from paired resamples of items.
        n_cells: Number of compared cells.
        coverage: Compared cells as a fraction of the labelled cells, in [0, 1].
        n_ties: Number of labelled cells on which the judges' votes tie.
        n_ties_answered: Number of tied cells that the panel still answers and that its other metrics include.
    """

    judge: str
    figure: HeadlineName
    panel: Estimate
    best: Estimate
    difference: Estimate
    n_cells: int
    coverage: float
    n_ties: int
    n_ties_answered: int


def headline_name(rater: RaterReport) -> HeadlineName | None:
    """Return the name of the metric that summarizes a rater; None if all candidates are undefined."""
    return next((one for one in get_args(HeadlineName) if rater.macro.defined[one][0]), None)


def best_alone(judges: Mapping[str, RaterReport], figure: HeadlineName) -> list[str]:
    """Return the judges for which the mean metric is defined, best first."""
    alone = {
        who: one.value
        for who, rater in judges.items()
        if (one := getattr(rater.macro, figure)).value is not None
    }
    return sorted(alone, key=lambda who: -alone[who])


def panel_and_best(
    cells: Cells, modes: Modes, panel: RaterReport, judges: Mapping[str, RaterReport], resampling: Resampling
) -> PanelAndBest | None:
    """Compare the panel with the best of two or more judges; None if no metric or cell can be compared."""
    figure = headline_name(panel)
    ranked = best_alone(judges, figure) if figure else []
    labelled = cells.truth.status > 0
    if figure is None or len(judges) < 2 or not ranked or not labelled.any():
        return None
    raters: list[Rater] = [PANEL, ("judge", ranked[0])]
    columns = [cells.raters[one] for one in raters]
    both = labelled & columns[0].answered & columns[1].answered & ~cells.tied
    if not both.any():
        return None
    first = Contestant(rater=raters[0], kind="panel", cells=cells, column=columns[0].only(both))
    second = Contestant(rater=raters[1], kind="judge", cells=cells, column=columns[1].only(both))
    # The judge is treated as a person, so that the panel's gap is the panel minus the judge.
    field = Field(raters=[first], people=[second], stand_ins=[first])
    resampled = Resampled(draws=draw(field, layout_of(cells, modes), resampling), resampling=resampling)
    difference: Estimate = getattr(resampled.of_people("gap", (0,)), figure)
    words = f"{figure}, panel minus judge, mean over criteria"
    method = "; ".join([words, *difference.method.split("; ")[1:]])
    tied = labelled & cells.tied
    return PanelAndBest(
        judge=ranked[0],
        figure=figure,
        panel=getattr(resampled.macro(0), figure),
        best=getattr(resampled.macro(1), figure),
        difference=replace(difference, method=method),
        n_cells=int(np.count_nonzero(both)),
        coverage=float(np.count_nonzero(both) / np.count_nonzero(labelled)),
        n_ties=int(np.count_nonzero(tied)),
        n_ties_answered=int(np.count_nonzero(tied & columns[0].answered)),
    )
