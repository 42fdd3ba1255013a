"""Results of `variance_components`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autorubric._blocks import Block, Cell, TableBlock, TextBlock
from autorubric.metrics._audit._findings import FIGURE_COLUMNS, Findings, figure_cells, said
from autorubric.metrics._audit._generalisability import Plan
from autorubric.metrics._estimate import Estimate


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
class VarianceComponents(Findings):
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
