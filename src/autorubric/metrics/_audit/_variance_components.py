"""Variance components of votes: a generalisability study of judges, samples and orders.

References:
    [1] R. L. Brennan (2001), Generalizability theory, Springer.
    [2] H. O. Hartley, J. N. K. Rao, L. R. LaMotte (1978), A simple 'synthesis'-based method of variance
        component estimation, Biometrics 34, 233-242.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._audit._components_results import (
    GeneralisabilityStudy,
    VarianceComponent,
    VarianceComponents,
)
from autorubric.metrics._audit._decided import order_by_id
from autorubric.metrics._audit._facets import Layout, single_votes
from autorubric.metrics._audit._generalisability import Design, Plan, plan_for, reliability
from autorubric.metrics._audit._mivque import RESIDUAL, Effect, component_figures, effects_of
from autorubric.metrics._audit._resampled import resampled_units, units_of
from autorubric.metrics._audit._rubric_weights import weights_of
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._label_table import table_of
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array

_FACETS = ("item", "judge", "order")
_RELATIVE_ZERO = 1e-12


def variance_components(
    result: Any,
    dataset: Any = None,
    *,
    target: float = 0.8,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> VarianceComponents:
    """Split the variance of votes by item, judge, order and sample; find the votes for a target reliability.

    The design is item × judge (× order, if the votes record it), with all facets random and crossed (Brennan
    2001). A judge's samples are independent draws with no common effect across items, so they are nested in
    item × judge × order, and their variance is the remainder (`sample`). If no question was asked repeatedly,
    this variance cannot be separated from the highest-order interaction, and both are reported as one,
    `residual`. With a single judge, `item` includes that judge's own view of an item. Estimates are MIVQUE(0)
    (Hartley et al. 1978): they equal the ANOVA estimates in a balanced design and remain unbiased if votes
    are missing; no vote is dropped. Negative estimates are set to 0 and flagged; `raw` keeps the original.

    Values are in [0, 1]; numbers without a range are used unchanged. Item scores are computed for each judge
    and sample with the rubric's weights, if the judge answered everything asked about the item. G is the
    reliability of the item ranking and Φ the reliability of the values, for the mean over the run's judges,
    orders and samples: σ²_p / (σ²_p + error). The plan is the smallest number of votes (judges × samples in
    one order) that reaches `target`, or has a reason if there is none: `unattainable` (with 1,000 judges and
    10 samples, or 1,000 samples of a single judge), `no_repeats` (one judge that voted once) or `no_variance`
    (between items). All results are undefined with fewer than two items or three votes. Intervals resample
    items and keep the judges fixed, so with few judges they understate the uncertainty about other judges.

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the rubrics; the run's own dataset by default.
        target: Target reliability, in (0, 1).
        confidence_level: Confidence level of the intervals.
        n_resamples: Number of item resamples.
        rng: Seed or NumPy generator for the resampling.

    Raises:
        ArgumentError: If `target` is out of range, or the table cannot be read.
    """
    if not 0.0 < target < 1.0:
        raise ArgumentError(f"target must be a reliability between 0 and 1, such as 0.8; got {target!r}")
    given = Resampling(confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    resampling, table = given.fixed(), table_of(result, dataset)
    votes = single_votes(table)
    layouts = {name: votes.of_criterion(at) for at, name in enumerate(votes.names)}
    weights = weights_of(result, dataset, table).by_item[order_by_id(table.item_ids)]
    return VarianceComponents(
        score=_study("score", votes.of_scores(weights), target, resampling),
        per_criterion={
            name: _study(name, layout, target, resampling) for name, layout in layouts.items() if layout.n
        },
        target=float(target),
        left_out=tuple(name for name, layout in layouts.items() if not layout.n),
    )


def _study(name: str, layout: Layout, target: float, resampling: Resampling) -> GeneralisabilityStudy:
    n_items, n_judges, n_orders = layout.shape
    effects = effects_of(layout)
    n_cells = int(np.count_nonzero(layout.counts))
    design = _design(layout)
    single = Design(judges=1.0, samples=1.0, orders=1.0)
    sums, components = component_figures(layout, effects)

    def compute(totals: Array) -> Array:
        found = components(totals)
        variances = np.maximum(found, 0.0)
        coefficients = [reliability(found, effects, at, kind) for at, kind in _wanted(design, single)]
        return np.column_stack([variances, *coefficients, found])

    size = len(effects)
    enough = n_items > 1 and layout.n > 2
    reason: Reason = "no_ratings" if not layout.n else "too_few_units" if not enough else "no_variance"
    names = [*(f"variance of {source_of(one, layout)}" for one in effects), "G", "Phi", "Phi of one vote"]
    figures = resampled_units(
        units_of(sums) if enough else None,
        compute,
        resampling,
        [*(f"{one}; MIVQUE(0)" for one in names), *names[:size]],
        n=[layout.n] * (2 * size + 3),
        reasons=[reason] * (2 * size + 3),
    )
    found = _components(layout, effects, figures[:size], figures[size + 3 :])
    g, phi, one = figures[size : size + 3]
    plans = _plans(layout, effects, found, target, reason)
    return GeneralisabilityStudy(
        name=name,
        components=found,
        g=g,
        phi=phi,
        single=one,
        plan=plans[0],
        plan_g=plans[1],
        n_votes=layout.n,
        n_items=n_items,
        n_judges=n_judges,
        n_orders=n_orders,
        n_samples=layout.n / n_cells if n_cells else 0.0,
        balanced=layout.is_balanced,
    )


def _wanted(design: Design, single: Design) -> list[tuple[Design, Any]]:
    return [(design, "g"), (design, "phi"), (single, "phi")]


def _design(layout: Layout) -> Design:
    """Return the numbers of judges, samples and orders per item, averaged over the items of the run."""
    asked = layout.counts > 0
    items = max(int(np.count_nonzero(asked.any(axis=(1, 2)))), 1)
    judges = float(asked.any(axis=2).sum()) / items
    orders = float(asked.sum()) / max(float(asked.any(axis=2).sum()), 1.0)
    samples = layout.n / max(float(asked.sum()), 1.0)
    return Design(judges=max(judges, 1.0), samples=max(samples, 1.0), orders=max(orders, 1.0))


def source_of(effect: Effect, layout: Layout) -> str:
    """Return the name of a source of variance."""
    if effect == RESIDUAL:
        return "sample" if layout.has_repeats else "residual"
    return ":".join(_FACETS[facet] for facet in sorted(effect))


def _components(
    layout: Layout, effects: list[Effect], variances: list[Estimate], raw: list[Estimate]
) -> tuple[VarianceComponent, ...]:
    total = math.fsum(one.value for one in variances if one.value is not None)
    tolerance = _RELATIVE_ZERO * max(float(layout.squares.sum()), 1e-300)
    return tuple(
        VarianceComponent(
            source=source_of(effect, layout),
            variance=variance,
            raw=came.value,
            negative=came.value is not None and came.value < -tolerance,
            share=None if variance.value is None or total <= 0 else variance.value / total,
        )
        for effect, variance, came in zip(effects, variances, raw, strict=True)
    )


def _plans(
    layout: Layout, effects: list[Effect], found: tuple[VarianceComponent, ...], target: float, reason: Reason
) -> tuple[Plan, Plan]:
    values = {effect: one.variance.value for effect, one in zip(effects, found, strict=True)}
    known = {effect: value for effect, value in values.items() if value is not None}
    if len(known) < len(values):
        nothing = Plan(judges=None, samples=None, reached=None, reason=reason)
        return nothing, nothing
    judges_vary, repeats = layout.shape[1] > 1, layout.has_repeats
    by_phi, by_g = (
        plan_for(known, target, kind, judges_vary=judges_vary, repeats=repeats) for kind in _KINDS
    )
    return by_phi, by_g


_KINDS: tuple[Any, Any] = ("phi", "g")
