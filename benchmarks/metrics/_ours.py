"""The cases: each builds its input and returns the call to time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from autorubric.metrics import cohen_kappa, dawid_skene, fleiss_kappa, kendall_tau_b, krippendorff_alpha
from autorubric.metrics.core.read_votes import Modes
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.summaries.compute import metrics_of_table
from benchmarks.metrics._inputs import Sizes, binary_votes, pair, units

Call: TypeAlias = Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case.

    Attributes:
        title: Description at full size.
        prepare: Function from sizes to the call to time.
        target: Maximum seconds at full size; None for no target.
        target_mb: Maximum megabytes allocated at full size.
    """

    title: str
    prepare: Callable[[Sizes], Call]
    target: float | None = None
    target_mb: float | None = None


def _run(sizes: Sizes, *, bootstrap: bool = False) -> Call:
    table = binary_votes(sizes.n_items, sizes.n_criteria, sizes.n_judges)
    options = IntervalOptions(n_resamples=sizes.n_resamples)
    return lambda: metrics_of_table(table, Modes(), options, bootstrap=bootstrap, per_judge=True)


def _run_plain(sizes: Sizes) -> Call:
    return _run(sizes)


def _run_resampled(sizes: Sizes) -> Call:
    return _run(sizes, bootstrap=True)


def _kappa(size: int) -> Callable[[Sizes], Call]:
    def prepare(sizes: Sizes) -> Call:
        truth, pred = pair(sizes.n_pairs, size)
        return lambda: cohen_kappa(truth, pred, labels=size, n_resamples=sizes.n_resamples)

    return prepare


def _alpha(sizes: Sizes) -> Call:
    ratings = units(sizes.n_pairs, sizes.n_raters, 5) + 1
    return lambda: krippendorff_alpha(ratings, level="ordinal", n_resamples=sizes.n_resamples)


def _fleiss(sizes: Sizes) -> Call:
    ratings = units(sizes.n_pairs, sizes.n_raters, 5)
    return lambda: fleiss_kappa(ratings, labels=5, n_resamples=sizes.n_resamples)


def _dawid_skene(sizes: Sizes) -> Call:
    ratings = units(sizes.n_votes, sizes.n_raters, 4)
    return lambda: dawid_skene(ratings, labels=4)


def _kendall(sizes: Sizes) -> Call:
    rng = np.random.default_rng(0)
    x = rng.normal(size=sizes.n_items)
    y = x + rng.normal(size=sizes.n_items)
    return lambda: kendall_tau_b(x, y)


CASES: dict[str, Case] = {
    "run": Case(
        title="all metrics of a run, 10,000 items × 10 criteria × 3 judges", prepare=_run_plain, target=0.25
    ),
    "run-resampled": Case(
        title="the same with 1,000 resamples of the items",
        prepare=_run_resampled,
        target=2.0,
        target_mb=200.0,
    ),
    "kappa-2": Case(title="kappa of 10⁶ pairs, K = 2, with interval", prepare=_kappa(2), target=0.02),
    "kappa-5": Case(title="kappa of 10⁶ pairs, K = 5, with interval", prepare=_kappa(5), target=0.02),
    "alpha": Case(title="ordinal alpha of 10⁶ × 5 ratings, with interval", prepare=_alpha, target=0.2),
    "fleiss": Case(title="Fleiss' kappa of 10⁶ × 5 ratings, K = 5, with interval", prepare=_fleiss),
    "dawid-skene": Case(title="Dawid–Skene on 10⁵ × 5 votes, K = 4", prepare=_dawid_skene, target=0.05),
    "kendall": Case(title="tau-b of 10⁴ pairs without ties, with interval", prepare=_kendall),
}
"""By name."""
