"""Estimates of all raters from one set of resampled items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from autorubric.metrics.core.contingency import divide
from autorubric.metrics.core.estimate import Estimate, Reason, is_rounding
from autorubric.metrics.core.estimation import DEGENERATE_SHARE, Figure, estimate, proportion
from autorubric.metrics.core.intervals import Ends
from autorubric.metrics.core.resampling import IntervalOptions, Resampling, Units
from autorubric.metrics.core.scales import Array
from autorubric.metrics.summaries import table_metrics as metrics
from autorubric.metrics.summaries.macro_bootstrap import (
    kappa_ends,
    resampled_metrics,
    share_ends,
    share_parts,
)
from autorubric.metrics.summaries.raters import HEADLINES, Contestant, HeadlineFigures, MacroFigures
from autorubric.metrics.summaries.table_metrics import SHARES, TABLE_METRICS, ScaleGroup, SumLayout


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

    layout: SumLayout
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
class _DrawParts:
    """Properties of the complete data that are needed to compute metrics from resampled sums.

    Attributes:
        layout: Layout of the sums.
        n_raters: Number of raters.
        n_people: Number of people.
        on: Criteria on which each metric is defined, for raters, people and stand-ins.
        on_pooled: Criteria on which each metric is defined for the pairs of all people together.
        chances: Position in `CHANCES` for each rater and person, by scale.
    """

    layout: SumLayout
    n_raters: int
    n_people: int
    on: Mapping[str, Array]
    on_pooled: Mapping[str, Array]
    chances: Sequence[Array]

    def at(self, sums: Array) -> dict[str, Array]:
        """Compute all metrics from sums `(…, n_everyone, width)`, keyed by part of the report."""
        layout, n = self.layout, self.n_raters + self.n_people
        each = metrics.by_criterion(layout, sums)
        macro = metrics.macro(each, self.on)
        own = sums[..., :n, :]
        micro = metrics.micro(layout, own, self.on["kappa"][:n])
        found = {"macro": macro[..., :n, :], "micro": micro}
        if layout.groups:
            scales = [
                metrics.of_scale(layout, group, own, chance)
                for group, chance in zip(layout.groups, self.chances, strict=True)
            ]
            found["scales"] = np.stack(scales, axis=-2)
        if self.n_people:
            people = slice(self.n_raters, n)
            found["ceiling"] = metrics.mean_of_defined(macro[..., people, :], axis=-2)
            found["ceiling_micro"] = metrics.mean_of_defined(micro[..., people, :], axis=-2)
            together = metrics.by_criterion(layout, sums[..., people, :].sum(-2))
            found["ceiling_pooled"] = metrics.macro(together, self.on_pooled)
            shape = (*macro.shape[:-2], self.n_people, self.n_raters, macro.shape[-1])
            in_place = macro[..., n:, :].reshape(shape)
            found["gap"] = metrics.mean_of_defined(in_place - macro[..., people, None, :], axis=-3)
            on = np.concatenate([self.on[name] for name in each], axis=-1)
            counted = np.where(on, np.concatenate(list(each.values()), axis=-1), np.nan)
            found["people"] = metrics.mean_of_defined(counted[..., people, :], axis=-2)
        return found


def draw(field: Field, layout: SumLayout, resampling: Resampling) -> Draws:
    """Compute the metrics of all raters over one set of resampled items that have a labelled cell."""
    everyone = field.everyone
    labelled = [one.cells.item[one.cells.truth.status > 0] for one in everyone]
    used = np.unique(np.concatenate(labelled)) if labelled else np.zeros(0, dtype=np.int64)
    sums = metrics.dense_if_small(metrics.item_sums(everyone, layout, used))
    total = np.asarray(sums.sum(0), dtype=float).reshape(len(everyone), layout.width)
    n_raters, n_people = len(field.raters), len(field.people)
    n = n_raters + n_people
    parts = _DrawParts(
        layout=layout,
        n_raters=n_raters,
        n_people=n_people,
        on=metrics.defined(metrics.by_criterion(layout, total)),
        on_pooled=metrics.defined(metrics.by_criterion(layout, total[n_raters:n].sum(0))),
        chances=[metrics.chance_of(layout, group, total[:n]) for group in layout.groups],
    )
    values = {name: one[0] for name, one in parts.at(total[None]).items()}
    drawn = {}
    if len(used) > 1:

        def compute(by_rater: Array, _: Array) -> Array:
            found = parts.at(by_rater)
            return np.concatenate([one.reshape(len(by_rater), -1) for one in found.values()], axis=1)

        criteria, people = field.raters[0].cells.criteria, slice(n_raters, n)
        rows = resampled_metrics(sums, len(everyone), layout, criteria, resampling, compute, people)
        ends = np.cumsum([one.size for one in values.values()])[:-1]
        drawn = {
            name: part.reshape(len(rows), *values[name].shape)
            for name, part in zip(values, np.split(rows, ends, axis=1), strict=True)
        }
    return Draws(
        layout=layout,
        sums=sums,
        n_raters=n_raters,
        n_people=n_people,
        values=values,
        chances=parts.chances,
        drawn=drawn,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """Source of the estimates of all raters.

    Attributes:
        draws: Metrics and their values over resampled items.
        resampling: Settings of the resampling.
        known: Cache of item weights for the annotators' metrics, keyed by metric.
    """

    draws: Draws
    resampling: Resampling
    known: dict[tuple[str, bool], Array] = field(default_factory=dict)

    @property
    def layout(self) -> SumLayout:
        """Layout of the sums."""
        return self.draws.layout

    @property
    def n_items(self) -> int:
        """Number of resampled items."""
        return int(self.draws.sums.shape[0])

    def macro(self, rater: int) -> MacroFigures:
        """Return a rater's means over criteria."""
        mine = self.draws.of_items(rater)
        total = mine.sum(0)
        each = metrics.by_criterion(self.layout, total)
        defined = {
            name: (int(np.count_nonzero(~np.isnan(found))), found.shape[-1]) for name, found in each.items()
        }
        figures = {}
        for at, name in enumerate(HEADLINES):
            words = f"mean over criteria, {defined[name][0]} of {defined[name][1]} criteria defined"
            n = self._pairs(total, name)
            weights = metrics.weights_of(metrics.item_parts(self.layout, name, mine))
            what = _What("macro", (rater, at), name, words, n, _why_not_macro(defined[name][1], n), weights)
            figures[name] = self._estimate(what, defined[name][0])
        for name in ("accuracy", "recall", "specificity"):
            if figures[name].low is not None:
                figures[name] = self._mean_share(name, figures[name], mine)
        return MacroFigures(**figures, defined=defined)

    def _mean_share(self, name: str, found: Estimate, mine: Array) -> Estimate:
        """Return the mean proportion with an interval from item effects, as `compute_metrics` computes it."""
        se, weights = share_parts(*metrics.share_counts(self.layout, mine, name))
        assert found.value is not None
        ends = share_ends(found.value, se, weights, self.resampling.confidence_level)
        return Estimate(found.value, *ends, found.n, f"{found.method.split(';')[0]}; {self._how('logit-t')}")

    def _how(self, method: str) -> str:
        resamples = "" if method == "logit-t" else f", {self.resampling.n_resamples} resamples"
        return f"{method}, {self.resampling.confidence_level:.0%}, {self.n_items} items{resamples}"

    def micro(self, rater: int) -> HeadlineFigures:
        """Return a rater's metrics over all cells pooled; proportions have logit-t intervals over items."""
        mine = self.draws.of_items(rater)
        total = mine.sum(0)
        groups = metrics.one_table(self.layout.groups)
        binary = [group for group in self.layout.groups if group.level == "binary"]
        figures = {}
        for at, name in enumerate(HEADLINES):
            n = self._pairs(total, name, pooled=True)
            reason = _reason(name) if groups or name in ("accuracy", "kappa") else "not_comparable"
            words = "all cells pooled (mixes base rates)" + (
                ", chance agreement within criteria" if name == "kappa" else ""
            )
            weights = metrics.weights_of(metrics.item_parts(self.layout, name, mine, pooled=groups))
            what = _What("micro", (rater, at), name, words, n, reason if n else "no_pairs", weights)
            figures[name] = self._share(mine, what, self.layout.groups if name == "accuracy" else binary)
        return HeadlineFigures(**figures)

    def of_scale(self, rater: int, at_group: int) -> HeadlineFigures:
        """Return a rater's metrics over the pooled cells of one scale."""
        group = self.layout.groups[at_group]
        mine = self.draws.of_items(rater)
        n = int(self.layout.tables(mine.sum(0), group).sum())
        chance = metrics.CHANCES[int(self.draws.chances[at_group][rater])]
        figures = {}
        for at, name in enumerate(HEADLINES):
            words = "cells of one scale pooled" + (f", {chance}" if name == "kappa" else "")
            reason = _why_not_on_scale(name, group) or (_reason(name) if n else "no_pairs")
            weights = metrics.weights_of(metrics.item_parts(self.layout, name, mine, pooled=[group]))
            what = _What("scales", (rater, at_group, at), name, words, n, reason, weights)
            figures[name] = self._share(mine, what, [group])
        return HeadlineFigures(**figures)

    def of_people(self, part: str, at: tuple[int, ...] = ()) -> HeadlineFigures:
        """Return annotators' metrics (`ceiling`, `ceiling_micro`, `ceiling_pooled`) or the raters' `gap`.

        The gap is the mean of rater minus annotator, both compared with the other annotators.
        """
        words = {
            "gap": "rater minus annotator, both compared with the other annotators, mean over annotators",
            "ceiling": "mean over annotators of each annotator's mean over criteria",
            "ceiling_micro": "mean over annotators of each annotator's value on all cells pooled",
            "ceiling_pooled": "mean over criteria, all annotators' pairs pooled",
        }[part]
        pooled = metrics.one_table(self.layout.groups) if part == "ceiling_micro" else None
        figures = {}
        for i, name in enumerate(HEADLINES):
            parts = self._of_all_people(name, pooled) if part != "gap" else np.zeros((0, 0))
            what = _What(part, (*at, i), name, words, self.n_items, "no_pairs", metrics.weights_of(parts))
            n_criteria = len(metrics.places_with(self.layout, name))
            figures[name] = self._estimate(what, n_criteria)
        return HeadlineFigures(**figures)

    def of_people_on(self, place: int) -> HeadlineFigures:
        """Return means over annotators on one criterion."""
        figures = {}
        for i, name in enumerate(HEADLINES):
            places = metrics.places_with(self.layout, name)
            if place not in places:
                figures[name] = Estimate.undefined("not_on_scale", method=name.replace("_", " "))
                continue
            column = places.index(place)
            weights = self._of_all_people(name, None)[:, column] if name != "pearson" else np.zeros(0)
            at = (sum(len(metrics.places_with(self.layout, one)) for one in HEADLINES[:i]) + column,)
            what = _What("people", at, name, "mean over annotators", self.n_items, _reason(name), weights)
            figures[name] = self._estimate(what, 1)
        return HeadlineFigures(**figures)

    def _of_all_people(self, name: str, pooled: Sequence[ScaleGroup] | None) -> Array:
        """Return the mean of `item_parts` over annotators."""
        key = (name, pooled is None)
        if key not in self.known:
            first, n = self.draws.n_raters, self.draws.n_people
            mine = [self.draws.of_items(who) for who in range(first, first + n)]
            parts = [metrics.item_parts(self.layout, name, one, pooled=pooled) for one in mine]
            self.known[key] = np.mean(parts, axis=0)
        return self.known[key]

    def _pairs(self, total: Array, name: str, *, pooled: bool = False) -> int:
        if name == "pearson":
            return int(self.layout.moments(total)[..., 0].sum()) if not pooled else 0
        of_one_table = name in ("balanced_accuracy", "macro_precision", "macro_recall", "macro_f1")
        groups = metrics.one_table(self.layout.groups) if pooled and of_one_table else self.layout.groups
        groups = metrics.groups_with(groups, name)
        return sum(int(self.layout.tables(total, group).sum()) for group in groups)

    def _share(self, mine: Array, what: _What, groups: Sequence[ScaleGroup]) -> Estimate:
        """Return a pooled metric. Proportions over the cells of some scales have a closed-form interval."""
        found = self._estimate(what, sum(len(group.places) for group in self.layout.groups))
        if what.name not in SHARES or found.value is None:
            return found
        tables = [self.layout.tables(mine, group) for group in groups]
        paired = np.sum([one.sum((-1, -2, -3)) for one in tables], axis=0)
        counts = [metrics.hits_and_pairs(one, what.name) for one in tables]
        sides = [np.sum([one.sum(-1) for one in side], axis=0) for side in zip(*counts, strict=True)]
        parts = np.column_stack(sides)[paired > 0]
        units = Units(
            counts=np.ones(len(parts), dtype=np.int64), n=int(paired.sum()), sums=parts, clustered=True
        )
        figure = Figure(
            name=f"{what.name}, {what.words}",
            compute=lambda sums: divide(sums[..., 0], sums[..., 1]),
            reason=lambda sums: _reason(what.name),
            bounds=(0.0, 1.0),
            auto="analytic",
            auto_clustered="analytic",
            analytic=proportion,
            trials=lambda sums: sums[..., 1],
            on_table=False,
        )
        return estimate(figure, units, IntervalOptions(confidence_level=self.resampling.confidence_level))

    def _estimate(self, what: _What, n_criteria: int) -> Estimate:
        value = float(self.draws.values[what.part][what.at])
        name = f"{what.name.replace('_', ' ')}, {what.words}"
        if np.isnan(value):
            return Estimate.undefined(what.reason, n=what.n, method=name)
        if self.n_items < 2:
            return Estimate(value, n=what.n, method=name, reason="too_few_units")
        drawn = np.moveaxis(self.draws.drawn[what.part], 0, -1)[what.at]
        ends, how = self._ends(value, drawn, what, n_criteria)
        undefined = int(np.count_nonzero(np.isnan(drawn)))
        text = f"{name}; {self._how(how)}" + (f"; undefined resamples: {undefined}" if undefined else "")
        if ends.low is None or ends.high is None:
            lost = undefined > DEGENERATE_SHARE * len(drawn)
            reason: Reason = "degenerate_resamples" if lost else "too_few_units"
            return Estimate(value, n=what.n, method=text, reason=reason)
        if is_rounding(ends.high - ends.low, max(abs(value), 1.0)):
            return Estimate(value, n=what.n, method=text, reason="no_variance")
        return Estimate(value, *ends, what.n, text)

    def _ends(self, value: float, drawn: Array, what: _What, n_criteria: int) -> tuple[Ends, str]:
        """Return an interval and the name of the method that computed it."""
        level, defined = self.resampling.confidence_level, drawn[~np.isnan(drawn)]
        if len(defined) < 2 or len(drawn) - len(defined) > DEGENERATE_SHARE * len(drawn):
            return Ends(None, None, None), "smoothed bootstrap"
        if what.name == "pearson" and what.part != "gap":
            tail = (1 - level) / 2
            low, high = np.quantile(defined, (tail, 1 - tail))
            return Ends(float(low), float(high), float(defined.std(ddof=1))), "percentile bootstrap"
        if what.name in ("kappa", "pearson") or what.part == "gap":
            signed = what.name in ("kappa", "pearson")
            most = (2.0 if signed else 1.0) if what.part == "gap" else 1.0
            ends = kappa_ends(value, drawn, self.n_items, n_criteria, level, most=most)
            return ends, "smoothed bootstrap around the value"
        ends = share_ends(value, float(defined.std(ddof=1)), what.weights, level)
        return ends, "logit-t with the standard error of the smoothed bootstrap"


@dataclass(frozen=True, slots=True)
class _What:
    """A metric: report section, position in the resamples, description, pairs, reason and item weights."""

    part: str
    at: tuple[int, ...]
    name: str
    words: str
    n: int
    reason: Reason
    weights: Array


def _reason(name: str) -> Reason:
    return "not_comparable" if name == "pearson" else TABLE_METRICS[name].reason


def _why_not_macro(of: int, n: int) -> Reason:
    return "not_on_scale" if not of else "no_pairs" if not n else "no_criterion_defined"


def _why_not_on_scale(name: str, group: ScaleGroup) -> Reason | None:
    if not metrics.groups_with([group], name):
        return "not_on_scale"
    return "na_as_category" if name == "kappa" and group.weights is None else None
