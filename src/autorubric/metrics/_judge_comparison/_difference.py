"""Estimate of the difference between two judges."""

from __future__ import annotations

import math
from dataclasses import replace

from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Analytic, Figure, delta, estimate
from autorubric.metrics._intervals import Ends, normal_quantile
from autorubric.metrics._judge_comparison._contests import Contest
from autorubric.metrics._judge_comparison._triples import Triples
from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._rater_tables import no_analytic
from autorubric.metrics._resampling import Units


def difference_estimate(
    contest: Contest, triples: Triples, options: IntervalOptions, *, adjusted_wald: bool = False
) -> Estimate:
    """Estimate the metric of a minus that of b; `adjusted_wald` selects that interval for `ci="auto"`."""
    shares = contest.name == "accuracy" and triples.cluster is None
    analytic: Analytic = adjusted_wald_ends if shares else delta if contest.smooth else no_analytic
    bound = math.inf if contest.name == "MAE" or not contest.smooth else 1.0 if shares else 2.0
    figure = Figure(
        name=f"difference of {contest.name}, a - b",
        compute=contest.difference,
        reason=contest.reason,
        bounds=(-bound, bound),
        auto="analytic" if adjusted_wald else "percentile",
        auto_clustered="percentile",
        analytic=analytic,
        on_table=False,
    )
    found = estimate(figure, contest.units, options, n_missing=triples.n_missing)
    if found.low is not None and not contest.movable.any() and "bootstrap" in found.method:
        return replace(found, low=None, high=None, se=None, reason="no_variance")
    return found


def adjusted_wald_ends(figure: Figure, units: Units, value: float, confidence_level: float) -> Ends:
    """Return Bonett and Price's interval: Wald's after adding one discordant item of each kind [1].

    References:
        [1] D. G. Bonett, R. M. Price (2012), Journal of Educational and Behavioral Statistics 37(4), 479-488.
    """
    assert units.sums is not None
    apart = units.sums[:, 1] - units.sums[:, 3]
    n = float(units.counts.sum())
    only_a = (float(units.counts[apart > 0].sum()) + 1) / (n + 2)
    only_b = (float(units.counts[apart < 0].sum()) + 1) / (n + 2)
    half = normal_quantile(confidence_level) * math.sqrt((only_a + only_b - (only_a - only_b) ** 2) / (n + 2))
    se = math.sqrt(max(0.0, float((units.counts * (apart - value) ** 2).sum()))) / n
    centre = only_a - only_b
    return Ends(max(-1.0, centre - half), min(1.0, centre + half), se)


def negated(found: Estimate) -> Estimate:
    """Return the estimate with its sign reversed and its bounds swapped."""

    def turned(number: float | None) -> float | None:
        return None if number is None else 0.0 - number

    return replace(found, value=turned(found.value), low=turned(found.high), high=turned(found.low))
