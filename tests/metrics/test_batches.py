"""Figures over several sets of units at once, or over equal units counted together, are those of each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from autorubric.metrics import Binary, Nominal, Ordinal, kendall_w
from autorubric.metrics.core.contingency import table_units
from autorubric.metrics.core.estimation import estimates_of_each
from autorubric.metrics.core.resampling import CiMethod, IntervalOptions
from autorubric.metrics.core.scales import CategoricalScale, Weights
from autorubric.metrics.figures.classification import ACCURACY
from autorubric.metrics.figures.kappa import KAPPA
from autorubric.metrics.summaries.agreement import agreement_of, agreements_of
from autorubric.metrics.summaries.sides import Sides, read_sides


@pytest.mark.parametrize("ci", ["auto", "analytic", "percentile", "bca", "smoothed", None])
@pytest.mark.parametrize("clustered", [False, True])
def test_estimates_of_several_tables_are_those_of_each(ci: CiMethod | None, clustered: bool) -> None:
    rng = np.random.default_rng(0)
    units, n_missing = [], []
    for n in (0, 1, 2, 5, 40, 40):
        left, right = rng.integers(-1, 3, (2, n))
        found, missing = table_units(left, right, 3, rng.integers(0, 9, n) if clustered else None)
        units.append(found)
        n_missing.append(missing)
    figures = [KAPPA.figure(3), ACCURACY.figure(3)]
    notes = [[f"note {at}", ""] for at in range(len(units))]
    options = IntervalOptions(ci=ci, n_resamples=60, rng=3)
    together = estimates_of_each(figures, units, options, n_missing=n_missing, notes=notes)
    alone = [
        estimates_of_each(figures, [one], options, n_missing=[missing], notes=[note])[0]
        for one, missing, note in zip(units, n_missing, notes, strict=True)
    ]
    assert [[one.to_dict() for one in row] for row in together] == [
        [one.to_dict() for one in row] for row in alone
    ]


@pytest.mark.parametrize("scale", [Binary(), Nominal("abc"), Ordinal("abcd")])
def test_agreements_on_one_scale_are_those_of_each_pair(scale: CategoricalScale) -> None:
    rng = np.random.default_rng(1)
    labels = [*scale.labels, None, "CANNOT_ASSESS"]
    batch: list[Sides] = []
    for n in (0, 1, 3, 30, 200):
        truth, pred = ([labels[at] for at in rng.integers(0, len(labels), n)] for _ in range(2))
        batch.append(read_sides(truth, pred, scale, "exclude", None))
    options = IntervalOptions(n_resamples=50)
    weights: Weights = "quadratic" if isinstance(scale, Ordinal) else None
    together = agreements_of(batch, weights, options, "exclude")
    alone = [agreement_of(one, weights, options, "exclude") for one in batch]
    assert [one.to_dict() for one in together] == [one.to_dict() for one in alone]


@pytest.mark.parametrize("n_values", [3, 1000])
def test_kendall_w_of_equal_units_is_that_of_the_units(n_values: int) -> None:
    ratings = np.random.default_rng(2).integers(0, n_values, (300, 3)).astype(float)
    ratings[:, 1] = np.where(ratings[:, 1] > n_values / 2, ratings[:, 1], ratings[:, 0])

    def w_of(drawn: np.ndarray) -> float:
        n, m = drawn.shape
        ranks = np.column_stack([rankdata(column) for column in drawn.T])
        ties = sum(
            (counts**3 - counts).sum() for counts in (np.unique(c, return_counts=True)[1] for c in drawn.T)
        )
        spread = ((ranks.sum(1) - m * (n + 1) / 2) ** 2).sum()
        return float(12 * spread / (m**2 * (n**3 - n) - m * ties))

    drawn = np.random.default_rng(5).integers(0, 300, size=(40, 300))
    low, high = np.quantile([w_of(ratings[row]) for row in drawn], (0.025, 0.975))
    found = kendall_w(ratings, n_resamples=40, rng=5)
    assert found.value == pytest.approx(w_of(ratings), rel=1e-12)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)
