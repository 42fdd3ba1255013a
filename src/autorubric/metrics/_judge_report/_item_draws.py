"""Metrics of all raters and their values in each resample, from one set of resampled items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autorubric.metrics._judge_report import _headlines as headlines
from autorubric.metrics._judge_report._contestants import Contestant
from autorubric.metrics._judge_report._item_sums import Layout, item_sums
from autorubric.metrics._options import Resampling
from autorubric.metrics._resampling import Array, Units, replicates
from autorubric.metrics._smoothed_means import PseudoPairs
from autorubric.metrics._votes_table import MeasuredCriterion


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Raters that are resampled together: raters, people, and each rater in the place of each person.

    Attributes:
        raters: Panel and judges.
        people: Each person compared with the others.
        stand_ins: For each person, the raters compared with the same others, on the person's cells.
    """

    raters: Sequence[Contestant]
    people: Sequence[Contestant]
    stand_ins: Sequence[Contestant]

    @property
    def everyone(self) -> list[Contestant]:
        """Raters, people and stand-ins, in this order."""
        return [*self.raters, *self.people, *self.stand_ins]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Metrics of all raters and their values over resampled items.

    Attributes:
        layout: Layout of the sums.
        sums: Contribution of each item to the sums, shape `(n_items, n_everyone * width)`.
        n_raters: Number of raters.
        n_people: Number of people.
        values: Metrics by part of the report, such as `macro` or `micro`.
        chances: Position in `CHANCES` for each rater and person, by scale.
        drawn: Metrics in each resample by part; empty if there are fewer than two items.
    """

    layout: Layout
    sums: Array
    n_raters: int
    n_people: int
    values: dict[str, Array]
    chances: Sequence[Array]
    drawn: dict[str, Array]

    def of_items(self, rater: int) -> Array:
        """Return each item's contribution to the sums of a rater, shape `(n_items, width)`."""
        width = self.layout.width
        mine = self.sums[:, rater * width : (rater + 1) * width]
        return np.asarray(mine if isinstance(mine, np.ndarray) else mine.toarray(), dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Properties of the complete data that are needed to compute metrics from resampled sums.

    Attributes:
        layout: Layout of the sums.
        n_raters: Number of raters.
        n_people: Number of people.
        on: Criteria on which each metric is defined, for raters, people and stand-ins.
        on_pooled: Criteria on which each metric is defined for the pairs of all people together.
        chances: Position in `CHANCES` for each rater and person, by scale.
    """

    layout: Layout
    n_raters: int
    n_people: int
    on: Mapping[str, Array]
    on_pooled: Mapping[str, Array]
    chances: Sequence[Array]

    def at(self, sums: Array) -> dict[str, Array]:
        """Compute all metrics from sums `(…, n_everyone, width)`, keyed by part of the report."""
        layout, n = self.layout, self.n_raters + self.n_people
        each = headlines.by_criterion(layout, sums)
        macro = headlines.macro(each, self.on)
        own = sums[..., :n, :]
        micro = headlines.micro(layout, own, self.on["kappa"][:n])
        found = {"macro": macro[..., :n, :], "micro": micro}
        if layout.groups:
            scales = [
                headlines.of_scale(layout, group, own, chance)
                for group, chance in zip(layout.groups, self.chances, strict=True)
            ]
            found["scales"] = np.stack(scales, axis=-2)
        if self.n_people:
            people = slice(self.n_raters, n)
            found["ceiling"] = headlines.mean_of_defined(macro[..., people, :], axis=-2)
            found["ceiling_micro"] = headlines.mean_of_defined(micro[..., people, :], axis=-2)
            together = headlines.by_criterion(layout, sums[..., people, :].sum(-2))
            found["ceiling_pooled"] = headlines.macro(together, self.on_pooled)
            shape = (*macro.shape[:-2], self.n_people, self.n_raters, macro.shape[-1])
            in_place = macro[..., n:, :].reshape(shape)
            found["gap"] = headlines.mean_of_defined(in_place - macro[..., people, None, :], axis=-3)
            for name, one in each.items():
                counted = np.where(self.on[name], one, np.nan)[..., people, :]
                found[f"on {name}"] = headlines.mean_of_defined(counted, axis=-2)
        return found


def draw(field: Field, layout: Layout, resampling: Resampling) -> Draws:
    """Compute the metrics of all raters over one set of resampled items that have a labelled cell."""
    everyone = field.everyone
    labelled = [one.cells.item[one.cells.truth.status > 0] for one in everyone]
    used = np.unique(np.concatenate(labelled)) if labelled else np.zeros(0, dtype=np.int64)
    sums = item_sums(everyone, layout, used)
    total = np.asarray(sums.sum(0), dtype=float).reshape(len(everyone), layout.width)
    n_raters, n_people = len(field.raters), len(field.people)
    n = n_raters + n_people
    parts = _Parts(
        layout=layout,
        n_raters=n_raters,
        n_people=n_people,
        on=headlines.defined(headlines.by_criterion(layout, total)),
        on_pooled=headlines.defined(headlines.by_criterion(layout, total[n_raters:n].sum(0))),
        chances=[headlines.chance_of(layout, group, total[:n]) for group in layout.groups],
    )
    values = {name: one[0] for name, one in parts.at(total[None]).items()}
    drawn = _drawn(sums, total, parts, field.raters[0].cells.criteria, resampling) if len(used) > 1 else {}
    return Draws(
        layout=layout,
        sums=sums,
        n_raters=n_raters,
        n_people=n_people,
        values=values,
        chances=parts.chances,
        drawn=drawn,
    )


def _drawn(
    sums: Array, total: Array, parts: _Parts, criteria: Sequence[MeasuredCriterion], resampling: Resampling
) -> dict[str, Array]:
    """Compute all metrics in each resample, keyed by part of the report."""
    layout, shapes = parts.layout, {name: one.shape[1:] for name, one in parts.at(total[None]).items()}
    assert isinstance(resampling.rng, int)
    tables = [(place, group.size) for group in layout.groups for place in group.places]
    # People get separate pseudo-pairs; otherwise a judge that copies them would always match them.
    more = [PseudoPairs(criteria, tables, resampling.rng + at) for at in range(2 if parts.n_people else 1)]
    kind = np.zeros(len(total), dtype=np.int64)
    kind[parts.n_raters : parts.n_raters + parts.n_people] = 1
    some = _with_pairs(layout, total)

    def flat(totals: Array) -> Array:
        by_rater = np.array(totals, dtype=float).reshape(len(totals), *total.shape)
        added = np.stack([one.draw(len(totals)) for one in more], axis=1)
        by_rater[..., : layout.start] += added[:, kind] * some
        found = parts.at(by_rater)
        return np.concatenate([one.reshape(len(totals), -1) for one in found.values()], axis=1)

    units = Units(counts=np.ones(sums.shape[0], dtype=np.int64), n=sums.shape[0], sums=sums)
    drawn = replicates(units, flat, resampling.n_resamples, resampling.generator())
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())])
    return {
        name: drawn[:, ends[at] : ends[at + 1]].reshape(len(drawn), *shape)
        for at, (name, shape) in enumerate(shapes.items())
    }


def _with_pairs(layout: Layout, total: Array) -> Array:
    """Return a mask of the table cells of criteria with at least one pair, shape `(n_everyone, start)`."""
    found = [np.zeros((len(total), 0))]
    for group in layout.groups:
        n = layout.tables(total, group).sum((-1, -2)) > 0
        found.append(np.repeat(n, group.size**2, axis=-1).astype(float))
    return np.concatenate(found, axis=-1)
