"""Estimates of all raters from one set of resampled items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from autorubric.metrics.core.contingency import mean_of_defined
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import estimate, proportion, ratio_figure
from autorubric.metrics.core.metric import MetricDisplay
from autorubric.metrics.core.resampling import (
    MOST_UNDEFINED,
    NO_ENDS,
    Ends,
    IntervalOptions,
    Resampling,
    Units,
    interval_of,
    is_point,
)
from autorubric.metrics.core.scales import Array
from autorubric.metrics.summaries import table_metrics as metrics
from autorubric.metrics.summaries.compared_raters import ComparedRater
from autorubric.metrics.summaries.macro_bootstrap import (
    kappa_ends,
    resampled_metrics,
    share_ends,
    share_parts,
)
from autorubric.metrics.summaries.rater_report import HeadlineFigures, MacroFigures
from autorubric.metrics.summaries.table_metrics import ScaleGroup, SumLayout, headlines

_ALL_CELLS = ("accuracy", "kappa")
"""Metrics whose pooled value does not need all cells on one scale."""

_OF_PEOPLE = {
    "gap": "rater minus annotator, both compared with the other annotators, mean over annotators",
    "ceiling": "mean over annotators of each annotator's mean over criteria",
    "ceiling_micro": "mean over annotators of each annotator's value on all cells pooled",
    "ceiling_pooled": "mean over criteria, all annotators' pairs pooled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Properties of the complete data that are needed to compute metrics from resampled sums."""

    layout: SumLayout
    n_raters: int
    n_people: int
    on: Mapping[str, Array]  # criteria on which each metric is defined, by rater, person and rater in place
    on_pooled: Mapping[str, Array]  # the same for the pairs of all people together
    chances: Sequence[Array]  # positions in `CHANCES` of the raters and people, by scale

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
            found["ceiling"] = mean_of_defined(macro[..., people, :], axis=-2)
            found["ceiling_micro"] = mean_of_defined(micro[..., people, :], axis=-2)
            together = metrics.by_criterion(layout, sums[..., people, :].sum(-2))
            found["ceiling_pooled"] = metrics.macro(together, self.on_pooled)
            shape = (*macro.shape[:-2], self.n_people, self.n_raters, macro.shape[-1])
            replaced = macro[..., n:, :].reshape(shape)
            found["gap"] = mean_of_defined(replaced - macro[..., people, None, :], axis=-3)
            on = np.concatenate([self.on[name] for name in each], axis=-1)
            counted = np.where(on, np.concatenate(list(each.values()), axis=-1), np.nan)
            found["people"] = mean_of_defined(counted[..., people, :], axis=-2)
        return found

    def in_place(self, total: Array) -> Array:
        """Compute raters' metrics in annotators' places, over and then by criterion, `(n_raters, n)`."""
        each = metrics.by_criterion(self.layout, total)
        on = np.concatenate([self.on[name] for name in each], axis=-1)
        counted = np.where(on, np.concatenate(list(each.values()), axis=-1), np.nan)
        found = np.concatenate([metrics.macro(each, self.on), counted], axis=-1)
        replaced = found[self.n_raters + self.n_people :].reshape(self.n_people, self.n_raters, -1)
        return np.asarray(mean_of_defined(replaced, axis=0))


@dataclass(frozen=True, slots=True)
class _Metric:
    """A metric with report section, position in its array, description, pairs, reason and item weights."""

    part: str
    at: tuple[int, ...]
    shown: MetricDisplay
    words: str
    n: int
    reason: Reason
    weights: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampledMetrics:
    """Metrics of all raters, and their values over resampled items, from which their estimates are made."""

    parts: _Parts
    resampling: Resampling
    sums: Array  # contribution of each item, (n_items, n_everyone * width)
    values: dict[str, Array]  # metrics by part of the report, such as "macro" or "micro"
    drawn: dict[str, Array]  # the same in each resample; empty if there are fewer than two items
    replaced: Array  # metrics of raters in annotators' places; empty without annotators
    known: dict[tuple[str, bool], Array] = field(default_factory=dict)  # item weights of people by metric

    @property
    def layout(self) -> SumLayout:
        return self.parts.layout

    @property
    def n_items(self) -> int:
        return int(self.sums.shape[0])

    def of_items(self, rater: int) -> Array:
        """Return each item's contribution to the sums of a rater, shape `(n_items, width)`."""
        width = self.layout.width
        mine = self.sums[:, rater * width : (rater + 1) * width]
        # Sums of the few cells of a table are many times as fast if items are adjacent in memory.
        return np.asfortranarray(mine if isinstance(mine, np.ndarray) else mine.toarray(), dtype=float)

    def macro(self, rater: int) -> MacroFigures:
        """Return a rater's means over criteria."""
        mine = self.of_items(rater)
        total = mine.sum(0)
        each = metrics.by_criterion(self.layout, total)
        counts = {name: (int(np.count_nonzero(~np.isnan(one))), one.shape[-1]) for name, one in each.items()}

        def mean(at: int, metric: MetricDisplay) -> Estimate:
            done, of = counts[metric.key]
            words = f"mean over criteria, {done} of {of} criteria defined"
            n = self._pairs(total, metric)
            reason: Reason = "not_on_scale" if not of else "no_pairs" if not n else "no_criterion_defined"
            weights = metrics.interval_weights(metrics.item_parts(self.layout, metric, mine))
            found = self._estimate(_Metric("macro", (rater, at), metric, words, n, reason, weights), done)
            share = metric.table if metric.mean_interval == "item effects" else None
            if share is None or found.value is None or found.low is None:
                return found
            # The interval from item effects, which `compute_metrics` reports too.
            groups = metrics.groups_with(self.layout.groups, metric)
            se, weights = share_parts(*metrics.share_counts(self.layout, mine, groups, share))
            ends = share_ends(found.value, se, weights, self.resampling.confidence_level)
            return Estimate(found.value, *ends, n, f"{found.method.split(';')[0]}; {self._how('logit-t')}")

        return MacroFigures(**MacroFigures.arrange(_each(mean)), defined=MacroFigures.in_order(counts))

    def micro(self, rater: int) -> HeadlineFigures:
        """Return a rater's metrics over all cells pooled; proportions have logit-t intervals over items."""
        mine = self.of_items(rater)
        groups = metrics.one_table(self.layout.groups)

        def pooled(at: int, metric: MetricDisplay) -> Estimate:
            n = self._pairs(mine.sum(0), metric, pooled=True)
            reason = _reason(metric) if groups or metric.key in _ALL_CELLS else "not_comparable"
            within = ", chance agreement within criteria" if metric.key == "kappa" else ""
            words = f"all cells pooled (mixes base rates){within}"
            weights = metrics.interval_weights(metrics.item_parts(self.layout, metric, mine, pooled=groups))
            what = _Metric("micro", (rater, at), metric, words, n, reason if n else "no_pairs", weights)
            return self._share(mine, what, self.layout.groups if metric.key == "accuracy" else groups)

        return _headline_figures(pooled)

    def of_scale(self, rater: int, at_group: int) -> HeadlineFigures:
        """Return a rater's metrics over the pooled cells of one scale."""
        group = self.layout.groups[at_group]
        mine = self.of_items(rater)
        n = int(self.layout.tables(mine.sum(0), group).sum())
        chance = metrics.CHANCES[int(self.parts.chances[at_group][rater])]

        def pooled(at: int, metric: MetricDisplay) -> Estimate:
            words = "cells of one scale pooled" + (f", {chance}" if metric.key == "kappa" else "")
            reason: Reason = _reason(metric) if n else "no_pairs"
            if not metrics.groups_with([group], metric):
                reason = "not_on_scale"
            elif group.weights is None and (metric.key == "kappa" or metric.needs_order):
                reason = "na_as_category"
            weights = metrics.interval_weights(metrics.item_parts(self.layout, metric, mine, pooled=[group]))
            what = _Metric("scales", (rater, at_group, at), metric, words, n, reason, weights)
            return self._share(mine, what, [group])

        return _headline_figures(pooled)

    def of_people(self, part: str, at: tuple[int, ...] = ()) -> HeadlineFigures:
        """Return a part of `_OF_PEOPLE`: metrics of annotators, or the gap between raters and annotators."""
        pooled = metrics.one_table(self.layout.groups) if part == "ceiling_micro" else None

        def mean(i: int, metric: MetricDisplay) -> Estimate:
            parts = self._of_all_people(metric, pooled) if part != "gap" else np.zeros((0, 0))
            weights = metrics.interval_weights(parts)
            what = _Metric(part, (*at, i), metric, _OF_PEOPLE[part], self.n_items, "no_pairs", weights)
            return self._estimate(what, len(metrics.places_with(self.layout, metric)))

        return _headline_figures(mean)

    def of_people_on(self, place: int) -> HeadlineFigures:
        """Return means over annotators on one criterion."""
        on = [metrics.places_with(self.layout, one) for one in headlines()]

        def mean(i: int, metric: MetricDisplay) -> Estimate:
            if place not in on[i]:
                return Estimate.undefined("not_on_scale", method=metric.key.replace("_", " "))
            column = on[i].index(place)
            weights = self._of_all_people(metric, None)[:, column] if metric.table else np.zeros(0)
            at, words = (sum(map(len, on[:i])) + column,), "mean over annotators"
            what = _Metric("people", at, metric, words, self.n_items, _reason(metric), weights)
            return self._estimate(what, 1)

        return _headline_figures(mean)

    def in_place(self, rater: int, place: int | None = None) -> HeadlineFigures:
        """Return a rater's metrics in an annotator's place, over all criteria or on the one at `place`."""
        on = [metrics.places_with(self.layout, one) for one in headlines()]

        def mean(i: int, metric: MetricDisplay) -> Estimate:
            method = f"{metric.key.replace('_', ' ')}, in an annotator's place, mean over annotators"
            if place is not None and place not in on[i]:
                return Estimate.undefined("not_on_scale", method=method)
            at = i if place is None else len(on) + sum(map(len, on[:i])) + on[i].index(place)
            value = float(self.replaced[rater, at])
            if np.isnan(value):
                return Estimate.undefined("no_pairs", n=self.n_items, method=method)
            return Estimate(value, n=self.n_items, method=method, reason="not_requested")

        return _headline_figures(mean)

    def _of_all_people(self, metric: MetricDisplay, pooled: Sequence[ScaleGroup] | None) -> Array:
        """Return the mean of `item_parts` over annotators."""
        key = (metric.key, pooled is None)
        if key not in self.known:
            first, n = self.parts.n_raters, self.parts.n_people
            mine = [self.of_items(who) for who in range(first, first + n)]
            parts = [metrics.item_parts(self.layout, metric, one, pooled=pooled) for one in mine]
            self.known[key] = np.mean(parts, axis=0)
        return self.known[key]

    def _pairs(self, total: Array, metric: MetricDisplay, *, pooled: bool = False) -> int:
        if metric.moments:
            return int(self.layout.moments(total)[..., 0].sum()) if not pooled else 0
        groups: Sequence[ScaleGroup] = self.layout.groups
        if pooled and metric.key not in _ALL_CELLS:
            groups = metrics.one_table(groups)
        groups = metrics.groups_with(groups, metric)
        return sum(int(self.layout.tables(total, group).sum()) for group in groups)

    def _how(self, method: str) -> str:
        resamples = "" if method == "logit-t" else f", {self.resampling.n_resamples} resamples"
        return f"{method}, {self.resampling.confidence_level:.0%}, {self.n_items} items{resamples}"

    def _share(self, mine: Array, what: _Metric, groups: Sequence[ScaleGroup]) -> Estimate:
        """Return a pooled metric. Proportions over the cells of some scales have a closed-form interval."""
        found = self._estimate(what, sum(len(group.places) for group in self.layout.groups))
        share = what.shown.table
        if share is None or share.hits is None or found.value is None:
            return found
        tables = [self.layout.tables(mine, group) for group in groups]
        paired = np.sum([one.sum((-1, -2, -3)) for one in tables], axis=0)
        sides = metrics.share_counts(self.layout, mine, groups, share)
        parts = np.column_stack([side.sum(-1) for side in sides])[paired > 0]
        units = Units(
            counts=np.ones(len(parts), dtype=np.int64), n=int(paired.sum()), sums=parts, clustered=True
        )
        name = f"{what.shown.key}, {what.words}"
        figure = ratio_figure(name, proportion, reason=share.reason, trials=lambda sums: sums[..., 1])
        return estimate(figure, units, IntervalOptions(confidence_level=self.resampling.confidence_level))

    def _estimate(self, what: _Metric, n_criteria: int) -> Estimate:
        value = float(self.values[what.part][what.at])
        name = f"{what.shown.key.replace('_', ' ')}, {what.words}"
        if np.isnan(value):
            return Estimate.undefined(what.reason, n=what.n, method=name)
        if self.n_items < 2:
            return Estimate(value, n=what.n, method=name, reason="too_few_units")
        drawn = np.moveaxis(self.drawn[what.part], 0, -1)[what.at]
        ends, how = self._ends(value, drawn, what, n_criteria)
        undefined = int(np.count_nonzero(np.isnan(drawn)))
        text = f"{name}; {self._how(how)}" + (f"; undefined resamples: {undefined}" if undefined else "")
        if ends.low is None or ends.high is None:
            lost = undefined > MOST_UNDEFINED * len(drawn)
            reason: Reason = "degenerate_resamples" if lost else "too_few_units"
            return Estimate(value, n=what.n, method=text, reason=reason)
        if is_point(ends.low, ends.high, value):
            return Estimate(value, n=what.n, method=text, reason="no_variance")
        return Estimate(value, *ends, what.n, text)

    def _ends(self, value: float, drawn: Array, what: _Metric, n_criteria: int) -> tuple[Ends, str]:
        """Return an interval and the name of the method that computed it."""
        percentiles, _ = interval_of(drawn, self.resampling)
        if percentiles.se is None:
            return NO_ENDS, "smoothed bootstrap"
        rule = "around the value" if what.part == "gap" else what.shown.mean_interval
        if rule == "percentile":
            return percentiles, "percentile bootstrap"
        if rule == "around the value":
            low, high = (math.inf if one is None else one for one in what.shown.bounds)
            # A gap of metrics in [-1, 1] is in [-2, 2].
            most = abs(high - low) if what.part == "gap" and high < math.inf else high
            ends = kappa_ends(value, drawn, self.n_items, n_criteria, self.resampling, most=most)
            return ends, "smoothed bootstrap around the value"
        ends = share_ends(value, percentiles.se, what.weights, self.resampling.confidence_level)
        return ends, "logit-t with the standard error of the smoothed bootstrap"


def _each(compute: Callable[[int, MetricDisplay], Estimate]) -> dict[str, Estimate]:
    return {one.key: compute(at, one) for at, one in enumerate(headlines())}


def _headline_figures(compute: Callable[[int, MetricDisplay], Estimate]) -> HeadlineFigures:
    return HeadlineFigures(**HeadlineFigures.arrange(_each(compute)))


def _reason(metric: MetricDisplay) -> Reason:
    return metric.table.reason if metric.table else "not_comparable"


def resample(
    raters: Sequence[ComparedRater],
    people: Sequence[ComparedRater],
    in_place: Sequence[ComparedRater],
    layout: SumLayout,
    resampling: Resampling,
) -> ResampledMetrics:
    """Compute the metrics of raters and people (see `People`) over one set of resampled labelled items."""
    everyone = [*raters, *people, *in_place]
    labelled = [one.cells.item[one.cells.truth.status > 0] for one in everyone]
    used = np.unique(np.concatenate(labelled)) if labelled else np.zeros(0, dtype=np.int64)
    sums = metrics.dense_if_small(metrics.item_sums(everyone, layout, used))
    total = np.asarray(sums.sum(0), dtype=float).reshape(len(everyone), layout.width)
    n_raters, n = len(raters), len(raters) + len(people)
    parts = _Parts(
        layout=layout,
        n_raters=n_raters,
        n_people=len(people),
        on=metrics.where_defined(metrics.by_criterion(layout, total)),
        on_pooled=metrics.where_defined(metrics.by_criterion(layout, total[n_raters:n].sum(0))),
        chances=[metrics.chance_of(layout, group, total[:n]) for group in layout.groups],
    )
    values = {name: one[0] for name, one in parts.at(total[None]).items()}
    drawn = {}
    if len(used) > 1:

        def compute(by_rater: Array, _: Array) -> Array:
            found = parts.at(by_rater)
            return np.concatenate([one.reshape(len(by_rater), -1) for one in found.values()], axis=1)

        criteria, persons = raters[0].cells.criteria, slice(n_raters, n)
        rows = resampled_metrics(sums, len(everyone), layout, criteria, resampling, compute, persons)
        ends = np.cumsum([one.size for one in values.values()])[:-1]
        drawn = {
            name: part.reshape(len(rows), *values[name].shape)
            for name, part in zip(values, np.split(rows, ends, axis=1), strict=True)
        }
    replaced = parts.in_place(total) if people else np.zeros((0, 0))
    return ResampledMetrics(
        parts=parts, resampling=resampling, sums=sums, values=values, drawn=drawn, replaced=replaced
    )
