"""One set of resampled items, and from it the intervals of all raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autorubric.metrics._audit._resampled import Resampling, estimate_of
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._estimation import Figure, estimate, proportion
from autorubric.metrics._intervals import resampled_t_ends
from autorubric.metrics._judge_report import _headlines as headlines
from autorubric.metrics._judge_report._contestants import Contestant
from autorubric.metrics._judge_report._item_sums import Layout, ScaleGroup, item_sums
from autorubric.metrics._judge_report._rater_report import HEADLINES, HeadlineFigures, MacroFigures
from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._resampling import Array, Units, replicates
from autorubric.metrics._shares import divide

_MEANS_OVER_CRITERIA = ("macro", "ceiling", "ceiling_pooled", "gap")
_REASONS: dict[str, Reason] = {
    "accuracy": "no_pairs",
    "balanced_accuracy": "single_class",
    "kappa": "single_class",
    "precision": "no_positive_in_pred",
    "recall": "no_positive_in_truth",
    "f1": "no_positive",
    "pearson": "not_comparable",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """Figures of all raters and their values over resampled items.

    Attributes:
        layout: Where the sums stand.
        sums: What each item adds, shape `(n_items, n_raters * width)`.
        n_everyone: How many raters and people there are.
        resampling: How the items were drawn.
        values: The figures by part.
        draws: Their values in each resample, likewise; no rows where there are too few items.
    """

    layout: Layout
    sums: Array
    n_everyone: int
    resampling: Resampling
    values: dict[str, Array]
    draws: dict[str, Array]

    @property
    def n_items(self) -> int:
        """Items that are drawn."""
        return int(self.sums.shape[0])

    def macro(self, rater: int) -> MacroFigures:
        """Means over criteria of a rater."""
        total = self._total(rater)
        each = headlines.by_criterion(self.layout, total)
        defined = {
            name: (int(np.count_nonzero(~np.isnan(found))), found.shape[-1]) for name, found in each.items()
        }
        figures = {
            name: self._estimate(
                "macro",
                (rater, at),
                f"mean over criteria, {defined[name][0]} of {defined[name][1]} criteria defined",
                self._pairs(total, name),
                _why_not_macro(defined[name][1], self._pairs(total, name)),
            )
            for at, name in enumerate(HEADLINES)
        }
        return MacroFigures(**figures, defined=defined)

    def micro(self, rater: int) -> HeadlineFigures:
        """All cells of a rater pooled; shares by logit-t over items."""
        total = self._total(rater)
        one_scale = bool(headlines.one_table(self.layout))
        figures = {}
        for at, name in enumerate(HEADLINES):
            n = self._pairs(total, name, pooled=True)
            reason = _REASONS[name] if one_scale or name in ("accuracy", "kappa") else "not_comparable"
            words = "all cells pooled, mixes base rates" + (
                ", chance within criteria" if name == "kappa" else ""
            )
            found = self._estimate("micro", (rater, at), words, n, reason if n else "no_pairs")
            figures[name] = self._share(rater, name, words) if found.value is not None else found
            if figures[name] is None:
                figures[name] = found
        return HeadlineFigures(**{name: one for name, one in figures.items() if one is not None})

    def of_scale(self, rater: int, at_group: int) -> HeadlineFigures:
        """The cells of one scale pooled."""
        group = self.layout.groups[at_group]
        n = int(self.layout.tables(self._total(rater), group).sum())
        figures = {
            name: self._estimate(
                "scales",
                (rater, at_group, at),
                "cells of one scale pooled",
                n,
                _why_not_on_scale(name, group) or (_REASONS[name] if n else "no_pairs"),
            )
            for at, name in enumerate(HEADLINES)
        }
        return HeadlineFigures(**figures)

    def of_people(self, part: str, at: tuple[int, ...] = ()) -> HeadlineFigures:
        """What people reach (`ceiling`, `ceiling_micro`, `ceiling_pooled`), or raters minus it (`gap`)."""
        words = {
            "gap": "rater minus people",
            "ceiling": "mean over people of means over criteria",
            "ceiling_micro": "mean over people of pooled cells",
            "ceiling_pooled": "mean over criteria, all people together",
        }
        figures = {
            name: self._estimate(
                part,
                (*at, i),
                words[part],
                self.n_items,
                "no_pairs",
            )
            for i, name in enumerate(HEADLINES)
        }
        return HeadlineFigures(**figures)

    def of_people_on(self, place: int) -> HeadlineFigures:
        """Means over people on one criterion."""
        figures = {}
        for name in HEADLINES:
            places = headlines.places_with(self.layout, name)
            if place not in places:
                figures[name] = Estimate.undefined("not_on_scale", method=name.replace("_", " "))
                continue
            at = (places.index(place),)
            figures[name] = self._estimate(f"on {name}", at, "mean over people", self.n_items, _REASONS[name])
        return HeadlineFigures(**figures)

    def _total(self, rater: int) -> Array:
        total = np.asarray(self.sums.sum(0)).reshape(self.n_everyone, self.layout.width)
        return np.asarray(total[rater], dtype=float)

    def _pairs(self, total: Array, name: str, *, pooled: bool = False) -> int:
        if name == "pearson":
            return int(self.layout.moments(total)[..., 0].sum()) if not pooled else 0
        groups = self.layout.groups
        if name in ("precision", "recall", "f1"):
            groups = tuple(group for group in groups if group.level == "binary")
        elif pooled and name == "balanced_accuracy":
            groups = tuple(headlines.one_table(self.layout))
        return sum(int(self.layout.tables(total, group).sum()) for group in groups)

    def _share(self, rater: int, name: str, words: str) -> Estimate | None:
        """A pooled share with its interval over items; None for other figures."""
        masks = headlines.share_masks(self.layout)
        if name not in masks:
            return None
        width = self.layout.width
        mine = self.sums[:, rater * width : (rater + 1) * width]
        paired = np.asarray(mine @ masks["accuracy"][1])
        if name != "accuracy":
            paired = np.asarray(mine @ _pair_mask(self.layout, "binary"))
        parts = np.column_stack([np.asarray(mine @ mask) for mask in masks[name]])[paired > 0]
        units = Units(
            counts=np.ones(len(parts), dtype=np.int64), n=int(paired.sum()), sums=parts, clustered=True
        )
        figure = Figure(
            name=f"{name}, {words}",
            compute=lambda sums: divide(sums[..., 0], sums[..., 1]),
            reason=lambda sums: _REASONS[name],
            bounds=(0.0, 1.0),
            auto="analytic",
            auto_clustered="analytic",
            analytic=proportion,
            trials=lambda sums: sums[..., 1],
            on_table=False,
        )
        return estimate(figure, units, IntervalOptions(confidence_level=self.resampling.confidence_level))

    def _estimate(self, part: str, at: tuple[int, ...], words: str, n: int, reason: Reason) -> Estimate:
        value = float(self.values[part][at])
        name = f"{HEADLINES[at[-1]].replace('_', ' ')}, {words}" if not part.startswith("on ") else words
        if np.isnan(value):
            return Estimate.undefined(reason, n=n, method=name)
        if self.n_items < 2:
            return Estimate(value, n=n, method=name, reason="too_few_units")
        mean_kappa = part in _MEANS_OVER_CRITERIA and HEADLINES[at[-1]] == "kappa"
        how = "t with the standard error of the bootstrap" if mean_kappa else "percentile bootstrap"
        level, draws = self.resampling.confidence_level, np.moveaxis(self.draws[part], 0, -1)[at]
        text = f"{name}; {how}, {level:.0%}, {self.n_items} items, {self.resampling.n_resamples} resamples"
        found = estimate_of(value, draws, self.resampling, text, n=n, reason=reason)
        if not mean_kappa or found.se is None:
            return found
        most = 2.0 if part == "gap" else 1.0
        low, high = resampled_t_ends(value, found.se, self.n_items, level, most=most)
        return replace(found, low=low, high=high)


def _pair_mask(layout: Layout, level: str) -> Array:
    mask = np.zeros(layout.width)
    for group in layout.groups:
        if group.level == level:
            mask[group.start : group.stop] = 1.0
    return mask


def _why_not_macro(of: int, n: int) -> Reason:
    return "not_on_scale" if not of else "no_pairs" if not n else "no_criterion_defined"


def _why_not_on_scale(name: str, group: ScaleGroup) -> Reason | None:
    if name == "pearson" or (name in ("precision", "recall", "f1") and group.level != "binary"):
        return "not_on_scale"
    return "na_as_category" if name == "kappa" and group.weights is None else None


def resample(
    raters: Sequence[Contestant], people: Sequence[Contestant], layout: Layout, resampling: Resampling
) -> Resampled:
    """Figures of all raters and people over one set of resampled items, those with a cell that counts."""
    everyone = [*raters, *people]
    labelled = [one.cells.item[one.cells.truth.status > 0] for one in everyone]
    used = np.unique(np.concatenate(labelled)) if labelled else np.zeros(0, dtype=np.int64)
    sums = item_sums(everyone, layout, used)
    shapes: dict[str, tuple[int, ...]] = {}

    def parts(totals: Array) -> dict[str, Array]:
        by_rater = totals.reshape(*totals.shape[:-1], len(everyone), layout.width)
        return _parts(layout, by_rater, len(raters))

    def flat(totals: Array) -> Array:
        found = parts(totals)
        shapes.update({name: one.shape[1:] for name, one in found.items()})
        return np.concatenate([one.reshape(len(totals), -1) for one in found.values()], axis=1)

    values = {name: one[0] for name, one in parts(np.asarray(sums.sum(0)).reshape(1, -1)).items()}
    draws: dict[str, Array] = {}
    if len(used) > 1:
        units = Units(counts=np.ones(len(used), dtype=np.int64), n=len(used), sums=sums)
        drawn = replicates(units, flat, resampling.n_resamples, resampling.generator())
        start = 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            draws[name] = drawn[:, start : start + size].reshape(len(drawn), *shape)
            start += size
    return Resampled(
        layout=layout, sums=sums, n_everyone=len(everyone), resampling=resampling, values=values, draws=draws
    )


def _parts(layout: Layout, sums: Array, n_raters: int) -> dict[str, Array]:
    """All figures at sums `(…, n_everyone, width)`, by part."""
    macro, micro = headlines.macro(layout, sums), headlines.micro(layout, sums)
    scales = [headlines.of_scale(layout, group, sums) for group in layout.groups]
    found = {"macro": macro, "micro": micro}
    if scales:
        found["scales"] = np.stack(scales, axis=-2)
    if sums.shape[-2] > n_raters:
        ceiling = headlines.mean_of_defined(macro[..., n_raters:, :], axis=-2)
        found["ceiling"] = ceiling
        found["ceiling_micro"] = headlines.mean_of_defined(micro[..., n_raters:, :], axis=-2)
        found["ceiling_pooled"] = headlines.macro(layout, sums[..., n_raters:, :].sum(-2))
        found["gap"] = macro[..., :n_raters, :] - ceiling[..., None, :]
        on_each = headlines.by_criterion(layout, sums[..., n_raters:, :])
        found |= {f"on {name}": headlines.mean_of_defined(one, axis=-2) for name, one in on_each.items()}
    return found
