"""Variance components of votes: a generalizability study of judges, samples and orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np

from autorubric.metrics.audit.facets import (
    RESIDUAL,
    Effect,
    FacetLayout,
    effects_of,
    merge_items,
    variance_estimates,
    vote_layouts,
)
from autorubric.metrics.audit.item_resampling import estimate_over_units
from autorubric.metrics.audit.rubric_weights import weights_of
from autorubric.metrics.core.contingency import divide
from autorubric.metrics.core.estimate import RELATIVE_ZERO, Estimate, Reason
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling, ResamplingArguments, check_number, interval_of
from autorubric.metrics.core.result import (
    FIGURE_COLUMNS,
    ResultBase,
    figure_cells,
    figure_table,
    format_estimate,
    format_notes,
    titled_figures,
)
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import order_by_id
from autorubric.metrics.core.wording import compare_in_words
from autorubric.support.blocks import Block, Cell, TableBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The fewest votes that reach a target reliability."""

    judges: int | None = None  # None if no number reaches the target
    samples: int | None = None  # per judge; None if there is no plan
    reached: float | None = None  # coefficient reached by the plan; None if there is no plan
    reason: Reason | None = None  # why there is no plan; None if there is one
    low: float | None = None  # limits of the interval of `reached`
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponent:
    source: str  # `item`, `judge`, `order`, an interaction (`item:judge`), `sample` or `residual`
    variance: Estimate  # 0 if the raw estimate is negative
    raw: float | None  # the raw estimate; None if it is undefined
    negative: bool  # whether the raw estimate is negative
    share: float | None  # the variance as a fraction of the sum of all components


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralisabilityStudy:
    """The variance components of one variable and the reliability of its mean over judges and samples.

    With the design of the run, G is the reliability of the order of items (relative error) and Φ that of the
    values themselves (absolute error), where differences between judges' levels count as error.
    """

    name: str  # of the criterion, or `score`
    components: tuple[VarianceComponent, ...]
    g: Estimate = field(metadata={"title": "G coefficient, ranking of items (run)"})
    phi: Estimate = field(metadata={"title": "Φ coefficient, item scores (run)"})
    single: Estimate = field(metadata={"title": "Φ of a single vote"})
    plan: Plan  # to reach the target by Φ
    plan_g: Plan  # to reach the target by G
    n_votes: int
    n_items: int
    n_judges: int
    n_orders: int
    n_samples: float  # mean number of votes of a judge on an item in one order
    balanced: bool  # whether all combinations of item, judge and order have the same number of votes

    def component(self, source: str) -> VarianceComponent | None:
        """Return the component of a source, or None if it was not estimated separately."""
        return next((one for one in self.components if one.source == source), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents(ResultBase):
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

    def _sentence(self) -> str:
        """Summarise the reliability of the item scores, and the votes needed for the target."""
        phi, plan = self.score.phi, self.score.plan
        if phi.value is None:
            return f"The reliability of item scores is undefined ({phi.reason})."
        if plan.judges is None:
            then = f"no known plan reaches {self.target:g} ({plan.reason})"
        else:
            samples = "1 sample" if plan.samples == 1 else f"{plan.samples} samples"
            judges = "1 judge" if plan.judges == 1 else f"{plan.judges} judges"
            design = f"{judges} with {samples} per judge"
            then = compare_in_words(
                Estimate(plan.reached, plan.low, plan.high, n=self.score.n_items),
                above=f"{design} would reach {self.target:g}",
                otherwise=f"{design} may reach {self.target:g}, which is not shown",
                reference=self.target - 1e-9,
                quantity="Φ of the plan",
            )
        return f"Reliability of the item scores: Φ = {format_estimate(phi)}; {then}."

    def _tables(self) -> list[Block]:
        studies = {"score": self.score, **self.per_criterion}
        blocks: list[Block] = [
            _components_table(self.score),
            figure_table("Reliability of item scores", titled_figures(self.score)),
            _shares_table(studies),
            _plans_table(studies, self.target),
        ]
        if self.left_out:
            text = f"criteria excluded because no vote has a numeric value: {', '.join(self.left_out)}"
            blocks += format_notes((text,))
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


def _shares_table(studies: Mapping[str, GeneralisabilityStudy]) -> TableBlock:
    sources = dict.fromkeys(one.source for study in studies.values() for one in study.components)
    rows: list[tuple[Cell, ...]] = []
    for name, study in studies.items():
        shares = {one.source: one.share for one in study.components}
        rows.append((name, study.n_votes, *(shares.get(source) for source in sources)))
    return TableBlock(title="Shares of variance", columns=("figure", "votes", *sources), rows=tuple(rows))


def _plans_table(studies: Mapping[str, GeneralisabilityStudy], target: float) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (
            name, study.phi.value, one.judges, one.samples, one.reached, one.low, one.high, one.reason or "",
        )
        for name, study in studies.items()
        for one in (study.plan,)
    ]  # fmt: skip
    columns = ("figure", "current Φ", "judges", "samples", "reached Φ", "low", "high", "reason")
    return TableBlock(title=f"Fewest votes needed to reach Φ = {target:g}", columns=columns, rows=tuple(rows))


_FACETS = ("item", "judge", "order")


def variance_components(
    result: Any, dataset: Any = None, *, target: float = 0.8, **resampling: Unpack[ResamplingArguments]
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
    The interval of a plan does not: it divides each mean square by draws of χ² / df (Weerahandi 1993), which
    is exact in this sense for normal effects in a balanced design and approximate otherwise.

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the rubrics; the run's own dataset by default.
        target: Target reliability, in (0, 1).
        **resampling: `confidence_level`, `n_resamples` (number of item resamples) and `rng`; see
            `ResamplingArguments`.

    Raises:
        ArgumentError: If `target` is out of range, or the table cannot be read.
    """
    check_number("target", target, "(0, 1)", hint="a reliability such as 0.8")
    options, table = Resampling(**resampling).with_fixed_seed(), table_of(result, dataset)
    weights = weights_of(result, dataset, table).by_item[order_by_id(table.item_ids)]
    scores, layouts = vote_layouts(table, weights)
    return VarianceComponents(
        score=_study("score", scores, target, options),
        per_criterion={
            name: _study(name, layout, target, options) for name, layout in layouts.items() if layout.n
        },
        target=float(target),
        left_out=tuple(name for name, layout in layouts.items() if not layout.n),
    )


def _study(name: str, layout: FacetLayout, target: float, resampling: Resampling) -> GeneralisabilityStudy:
    n_items, n_judges, n_orders = layout.shape
    effects, design = effects_of(layout), _design(layout)
    wanted: list[tuple[Design, Coefficient]] = [(design, "g"), (design, "phi"), (Design(), "phi")]
    enough = n_items > 1 and layout.n > 2
    merged, units = merge_items(layout) if enough else (layout, None)

    def compute(weights: Array) -> Array:
        found = variance_estimates(merged, effects, weights)
        coefficients = [reliability(found, effects, at, kind) for at, kind in wanted]
        return np.column_stack([np.maximum(found, 0.0), *coefficients, found])

    size = len(effects)
    reason: Reason = "no_ratings" if not layout.n else "too_few_units" if not enough else "no_variance"
    names = [*(f"variance of {component_of(one, layout)}" for one in effects), "G", "Phi", "Phi of one vote"]
    figures = estimate_over_units(
        units,
        compute,
        resampling,
        [*(f"{one}; MIVQUE(0)" for one in names), *names[:size]],
        n=[layout.n] * (2 * size + 3),
        reasons=[reason] * (2 * size + 3),
    )
    found = _components(layout, effects, figures[:size], figures[size + 3 :])
    g, phi, one = figures[size : size + 3]
    n_cells = int(np.count_nonzero(layout.counts))
    return GeneralisabilityStudy(
        name=name,
        components=found,
        g=g,
        phi=phi,
        single=one,
        plan=_plan(layout, effects, found, target, "phi", reason, resampling),
        plan_g=_plan(layout, effects, found, target, "g", reason, resampling),
        n_votes=layout.n,
        n_items=n_items,
        n_judges=n_judges,
        n_orders=n_orders,
        n_samples=layout.n / n_cells if n_cells else 0.0,
        balanced=layout.n > 0 and bool((layout.counts == layout.counts.max()).all()),
    )


def _design(layout: FacetLayout) -> Design:
    """Return the numbers of judges, samples and orders per item, averaged over the items of the run."""
    asked = layout.counts > 0
    items = max(int(np.count_nonzero(asked.any(axis=(1, 2)))), 1)
    judges = float(asked.any(axis=2).sum()) / items
    orders = float(asked.sum()) / max(float(asked.any(axis=2).sum()), 1.0)
    samples = layout.n / max(float(asked.sum()), 1.0)
    return Design(judges=max(judges, 1.0), samples=max(samples, 1.0), orders=max(orders, 1.0))


def component_of(effect: Effect, layout: FacetLayout) -> str:
    """Return the name of a source of variance."""
    if effect == RESIDUAL:
        return "sample" if layout.has_repeats else "residual"
    return ":".join(_FACETS[facet] for facet in sorted(effect))


def _components(
    layout: FacetLayout, effects: list[Effect], variances: list[Estimate], raw: list[Estimate]
) -> tuple[VarianceComponent, ...]:
    total = math.fsum(one.value for one in variances if one.value is not None)
    tolerance = RELATIVE_ZERO * max(float(layout.squares.sum()), 1e-300)
    return tuple(
        VarianceComponent(
            source=component_of(effect, layout),
            variance=variance,
            raw=came.value,
            negative=came.value is not None and came.value < -tolerance,
            share=None if variance.value is None or total <= 0 else variance.value / total,
        )
        for effect, variance, came in zip(effects, variances, raw, strict=True)
    )


Coefficient: TypeAlias = Literal["phi", "g"]

MOST_SAMPLES = 10
"""Maximum number of samples per judge in a plan."""

MOST_JUDGES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The numbers of judges, samples and orders in a mean, which may be fractional if they are averages."""

    judges: float | Codes = 1.0
    samples: float | Codes = 1.0  # of a judge in each order
    orders: float = 1.0


def reliability(components: Array, effects: list[Effect], design: Design, coefficient: Coefficient) -> Array:
    """Compute G or Φ from components of shape `(..., m)`; NaN if there is no variance."""
    parts = np.moveaxis(np.maximum(components, 0.0), -1, 0)
    true, error = np.zeros(parts.shape[1:]), np.zeros(parts.shape[1:])
    for part, effect in zip(parts, effects, strict=True):
        if effect == frozenset({0}):
            true = true + part
        elif coefficient == "phi" or 0 in effect or effect == RESIDUAL:
            # The number of levels of the effect over which a mean is taken.
            size = (design.judges if 1 in effect else 1.0) * (design.orders if 2 in effect else 1.0)
            if effect == RESIDUAL:
                size = design.judges * design.orders * design.samples
            error = error + part / size
    # Reliability is undefined without variance.
    return np.where(np.isnan(components).any(-1), np.nan, divide(true, true + error))


def _plan(
    layout: FacetLayout,
    effects: list[Effect],
    found: Sequence[VarianceComponent],
    target: float,
    coefficient: Coefficient,
    reason: Reason,
    resampling: Resampling,
) -> Plan:
    """Find the smallest number of votes (judges × samples in one order) that reaches the target.

    Of plans of equal size, it is the one with the fewest judges. With only one judge, other judges are
    unknown, so samples are added. Without repeated votes, the variance between samples is unknown, so
    plans use one sample.
    """
    values = np.array([one.variance.value for one in found], dtype=float)
    if np.isnan(values).any():
        return Plan(reason=reason)
    if not any(effect == frozenset({0}) and value > 0 for effect, value in zip(effects, values, strict=True)):
        return Plan(reason="no_variance")
    judges_vary, repeats = layout.shape[1] > 1, layout.has_repeats
    if not judges_vary and not repeats:
        return Plan(reason="no_repeats")
    most = MOST_SAMPLES if judges_vary else MOST_JUDGES
    judges_of = np.arange(1, MOST_JUDGES + 1 if judges_vary else 2)
    samples_of = np.arange(1, most + 1 if repeats else 2)
    plans = Design(judges=judges_of[:, None], samples=samples_of)
    reached = reliability(values, effects, plans, coefficient)
    votes = np.where(reached < target - 1e-9, np.inf, judges_of[:, None] * samples_of)
    if np.isinf(votes).all():
        return Plan(reason="unattainable")
    # The first of the plans with the fewest votes has the fewest judges.
    best = np.unravel_index(votes.argmin(), votes.shape)
    judges, samples = int(judges_of[best[0]]), int(samples_of[best[1]])
    drawn = _draw_components(layout, effects, found, resampling)
    design = Design(judges=judges, samples=samples)
    ends, _ = interval_of(reliability(drawn, effects, design, coefficient), resampling)
    return Plan(judges=judges, samples=samples, reached=float(reached[best]), low=ends.low, high=ends.high)


def _draw_components(
    layout: FacetLayout, effects: list[Effect], found: Sequence[VarianceComponent], resampling: Resampling
) -> Array:
    """Draw components from their generalised confidence distribution, shape `(n_resamples, n_effects)`.

    The expected mean square of an effect f is Σ σ²_g n / n_g over the effects g that contain f, where n_g is
    the number of groups of g, and the residual variance.
    """
    groups = [math.prod(layout.shape[facet] for facet in one) for one in effects]
    df = np.array([math.prod(layout.shape[facet] - 1 for facet in one) for one in effects], dtype=float)
    df[-1] = max(layout.n - 1 - df[:-1].sum(), 1.0)
    within = np.array(
        [[g == RESIDUAL or (f != RESIDUAL and f <= g) for g in effects] for f in effects], dtype=float
    )
    expected = within * np.where([one == RESIDUAL for one in effects], 1.0, layout.n / np.array(groups))
    squares = np.maximum(expected @ np.array([one.raw for one in found], dtype=float), 0.0)
    chi = resampling.generator().chisquare(df, size=(resampling.n_resamples, len(df)))
    return np.maximum(np.linalg.solve(expected, (squares * df / chi).T).T, 0.0)
