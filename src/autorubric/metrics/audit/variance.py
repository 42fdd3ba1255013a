"""Variance components of votes: a generalizability study of judges, samples and orders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.facets import (
    RESIDUAL,
    Design,
    Effect,
    FacetLayout,
    Plan,
    component_figures,
    effects_of,
    plan_for,
    reliability,
    single_votes,
)
from autorubric.metrics.audit.item_results import weights_of
from autorubric.metrics.audit.labelled_votes import order_by_id
from autorubric.metrics.audit.resampled import (
    FIGURE_COLUMNS,
    AuditFindings,
    figure_cells,
    resampled_units,
    said,
    units_of,
)
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling
from autorubric.metrics.core.scales import Array
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponent:
    """One source of variance.

    Attributes:
        source: `item`, `judge`, `order`, one of their interactions (such as `item:judge`), or the remainder:
            `sample` if questions were asked repeatedly, otherwise `residual`.
        variance: Variance of the source; 0 if the raw estimate is negative.
        raw: The raw estimate of the variance; None if it is undefined.
        negative: Whether the raw estimate is negative.
        share: The variance as a fraction of the sum of all components.
    """

    source: str
    variance: Estimate
    raw: float | None
    negative: bool
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralisabilityStudy:
    """The variance components of one variable and the reliability of its mean over judges and samples.

    Attributes:
        name: Name of the criterion, or `score`.
        components: The sources of variance.
        g: G coefficient with the design of the run: reliability of the order of items (relative error).
        phi: Φ coefficient with the design of the run: reliability of the values themselves (absolute error),
            where differences between judges' levels count as error.
        single: Φ of a single vote of a single judge.
        plan: The fewest judges × samples that reach the target by Φ.
        plan_g: The fewest judges × samples that reach the target by G.
        n_votes: Number of votes.
        n_items: Number of items.
        n_judges: Number of judges.
        n_orders: Number of orders in which candidates were shown.
        n_samples: Mean number of votes of a judge on an item in one order.
        balanced: Whether all combinations of item, judge and order have the same number of votes.
    """

    name: str
    components: tuple[VarianceComponent, ...]
    g: Estimate
    phi: Estimate
    single: Estimate
    plan: Plan
    plan_g: Plan
    n_votes: int
    n_items: int
    n_judges: int
    n_orders: int
    n_samples: float
    balanced: bool

    def component(self, source: str) -> VarianceComponent | None:
        """Return the component of a source, or None if it was not estimated separately."""
        return next((one for one in self.components if one.source == source), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents(AuditFindings):
    """Variance components of the item scores and of each criterion.

    Attributes:
        score: Generalisability study of the item scores.
        per_criterion: Generalisability study of each criterion's values, by name.
        target: Target reliability of the plans.
        left_out: Names of the criteria that have no numeric votes.
    """

    score: GeneralisabilityStudy
    per_criterion: Mapping[str, GeneralisabilityStudy]
    target: float
    left_out: tuple[str, ...]

    def blocks(self) -> list[Block]:
        """Return the results as content blocks for the text, HTML and LaTeX renderers, main finding first."""
        blocks: list[Block] = [
            TextBlock(text=variance_sentence(self)),
            _components_table(self.score),
            _reliability_table(self.score),
        ]
        studies = {"score": self.score, **self.per_criterion}
        blocks.append(_shares_table(studies))
        blocks.append(_plans_table(studies, self.target))
        if self.left_out:
            text = f"- criteria excluded because no vote has a numeric value: {', '.join(self.left_out)}"
            blocks.append(TextBlock(title="Notes", text=text))
        return blocks


def _components_table(study: GeneralisabilityStudy) -> TableBlock:
    rows = tuple(
        (one.source, *figure_cells(one.variance), one.share, "yes" if one.negative else "")
        for one in study.components
    )
    design = f"{study.n_items} items, {study.n_judges} judges, {study.n_samples:.3g} samples"
    return TableBlock(
        title=f"Variance of item scores ({design})",
        columns=("source", *FIGURE_COLUMNS, "share", "negative estimate"),
        rows=rows,
    )


def _reliability_table(study: GeneralisabilityStudy) -> TableBlock:
    figures = {
        "G coefficient, ranking of items (run)": study.g,
        "Φ coefficient, item scores (run)": study.phi,
        "Φ of a single vote": study.single,
    }
    return TableBlock(
        title="Reliability of item scores",
        columns=("figure", *FIGURE_COLUMNS),
        rows=tuple((name, *figure_cells(one)) for name, one in figures.items()),
    )


def _shares_table(studies: Mapping[str, GeneralisabilityStudy]) -> TableBlock:
    sources = dict.fromkeys(one.source for study in studies.values() for one in study.components)
    rows: list[tuple[Cell, ...]] = []
    for name, study in studies.items():
        shares = {one.source: one.share for one in study.components}
        rows.append((name, study.n_votes, *(shares.get(source) for source in sources)))
    return TableBlock(title="Shares of variance", columns=("figure", "votes", *sources), rows=tuple(rows))


def _plans_table(studies: Mapping[str, GeneralisabilityStudy], target: float) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (name, study.phi.value, one.judges, one.samples, one.reached, one.reason or "")
        for name, study in studies.items()
        for one in (study.plan,)
    ]
    return TableBlock(
        title=f"Fewest votes needed to reach Φ = {target:g}",
        columns=("figure", "current Φ", "judges", "samples", "reached Φ", "reason"),
        rows=tuple(rows),
    )


def variance_sentence(found: VarianceComponents) -> str:
    """Summarise the reliability of the item scores, and the votes needed for the target."""
    study = found.score
    if study.phi.value is None:
        return f"The reliability of item scores is undefined ({study.phi.reason})."
    plan = study.plan
    if plan.judges is None:
        then = f"no known plan reaches {found.target:g} ({plan.reason})"
    else:
        samples = "1 sample" if plan.samples == 1 else f"{plan.samples} samples"
        judges = "1 judge" if plan.judges == 1 else f"{plan.judges} judges"
        then = f"{judges} with {samples} per judge would reach {found.target:g}"
    return f"Reliability of the item scores: Φ = {said(study.phi)}; {then}."


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


def _study(name: str, layout: FacetLayout, target: float, resampling: Resampling) -> GeneralisabilityStudy:
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


def _design(layout: FacetLayout) -> Design:
    """Return the numbers of judges, samples and orders per item, averaged over the items of the run."""
    asked = layout.counts > 0
    items = max(int(np.count_nonzero(asked.any(axis=(1, 2)))), 1)
    judges = float(asked.any(axis=2).sum()) / items
    orders = float(asked.sum()) / max(float(asked.any(axis=2).sum()), 1.0)
    samples = layout.n / max(float(asked.sum()), 1.0)
    return Design(judges=max(judges, 1.0), samples=max(samples, 1.0), orders=max(orders, 1.0))


def source_of(effect: Effect, layout: FacetLayout) -> str:
    """Return the name of a source of variance."""
    if effect == RESIDUAL:
        return "sample" if layout.has_repeats else "residual"
    return ":".join(_FACETS[facet] for facet in sorted(effect))


def _components(
    layout: FacetLayout, effects: list[Effect], variances: list[Estimate], raw: list[Estimate]
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
    layout: FacetLayout,
    effects: list[Effect],
    found: tuple[VarianceComponent, ...],
    target: float,
    reason: Reason,
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
