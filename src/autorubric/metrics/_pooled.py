"""Metrics of a rater pooled over all cells (pairs of item and criterion) and over the cells of each scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autorubric.metrics import _shares as shares
from autorubric.metrics._cells import Cells, Column, Modes
from autorubric.metrics._chance import kappa_of, undefined_reason
from autorubric.metrics._columns import NumberPairs
from autorubric.metrics._correlation import pearson_estimate
from autorubric.metrics._criterion_figures import Noted, weights_on_values
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._resampling import Array
from autorubric.metrics._results import PooledMetrics
from autorubric.metrics._votes_table import MeasuredCriterion

_CATEGORICAL = ("binary", "nominal", "ordinal")
MET = 1
"""Index of MET among the categories of a binary criterion."""
_OF_ONE_CLASS = ("precision", "recall", "sensitivity", "specificity", "f1")


def pooled_figures(
    cells: Cells, rater: Column, tables: Sequence[Array], modes: Modes
) -> tuple[PooledMetrics, dict[str, PooledMetrics]]:
    """Pool all cells, and the cells of each scale by its labels; `tables` are those returned by `tables_of`.

    Accuracy uses the cells of all categorical criteria. Metrics of a confusion table need a single scale. If
    there are several scales, they use the binary cells, or are None (`not_comparable`) if there are none.
    """
    # The value of a comparison is that of its first candidate, which differs from item to item.
    single = [place for place, one in enumerate(cells.criteria) if one.level != "ranking"]
    every = _pearson(cells, rater, single)

    def of_scale(places: Sequence[int]) -> PooledMetrics:
        linear = every if len(places) == len(single) else _pearson(cells, rater, places)
        return _of_scale(cells, tables, modes, places, linear)

    scales = _scales(cells.criteria)
    by_scale = {" | ".join(labels): of_scale(places) for labels, places in scales.items()}
    if len(scales) == 1:
        places = next(iter(scales.values()))
        return _of_scale(cells, tables, modes, places, every), by_scale
    binary = [place for place, criterion in enumerate(cells.criteria) if criterion.level == "binary"]
    base = _of_scale(cells, tables, modes, binary, every) if binary else _without_scale(cells, every)
    noted = Noted()
    noted.reasons.update(base.reasons)
    categorical = [tables[place] for places in scales.values() for place in places]
    right, n = (sum(int(of(table)) for table in categorical) for of in (shares.hits, np.sum))
    accuracy = noted.take("accuracy", right / n if n else float("nan"), "no_pairs")
    used = n + _n_numbers(cells, rater)
    return replace(base, accuracy=accuracy, n=used, reasons=noted.reasons), by_scale


def _scales(criteria: Sequence[MeasuredCriterion]) -> dict[tuple[str, ...], list[int]]:
    """Return the positions of the categorical criteria, grouped by scale and keyed by the scale's labels."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, criterion in enumerate(criteria):
        if criterion.level in _CATEGORICAL:
            values = tuple(answer.value for answer in criterion.categories)
            found.setdefault((criterion.level, _words(criterion), values), []).append(place)
    named: dict[tuple[str, ...], list[int]] = {}
    for (level, words, _), places in found.items():
        labels = tuple(words) if isinstance(words, tuple) else ()
        # Scales with the same labels but different values or levels are kept separate.
        while labels in named:
            labels = (*labels, str(level))
        named[labels] = places
    return named


def _words(criterion: MeasuredCriterion) -> tuple[str, ...]:
    return tuple(answer.label or str(answer.code) for answer in criterion.categories)


def _values(cells: Cells, column: Column, places: Sequence[int]) -> Array:
    if len(places) == len(cells.criteria):
        return column.value
    return np.concatenate([column.value[:0], *(column.value[cells.spans[place]] for place in places)])


def _n_numbers(cells: Cells, rater: Column) -> int:
    places = [place for place, criterion in enumerate(cells.criteria) if criterion.level == "interval"]
    return int((~np.isnan(_values(cells, cells.truth, places) + _values(cells, rater, places))).sum())


def _pearson(cells: Cells, rater: Column, places: Sequence[int]) -> Estimate:
    """Compute Pearson's r between true and judged values of the criteria at `places`."""
    truth, judged = _values(cells, cells.truth, places), _values(cells, rater, places)
    both = ~np.isnan(truth + judged)
    pairs = NumberPairs(truth[both], judged[both], None, 0)
    return pearson_estimate(pairs, IntervalOptions(ci=None))


def _of_scale(
    cells: Cells, tables: Sequence[Array], modes: Modes, places: Sequence[int], linear: Estimate
) -> PooledMetrics:
    """Compute the metrics of the criteria at `places`, which share a scale; `linear` is Pearson's r."""
    criterion = cells.criteria[places[0]]
    labels = (*_words(criterion), *(("CANNOT_ASSESS",) if modes.has_category else ()))
    table = np.sum([tables[place] for place in places], axis=0)
    noted = Noted()
    none = table.sum() == 0
    one_class: dict[str, float | None] = dict.fromkeys(_OF_ONE_CLASS)
    if criterion.level == "binary":
        one_class = {
            "precision": noted.take(
                "precision", shares.precision_of(table, MET), "no_pairs" if none else "no_positive_in_pred"
            ),
            "recall": noted.take(
                "recall", shares.recall_of(table, MET), "no_pairs" if none else "no_positive_in_truth"
            ),
            "sensitivity": noted.take(
                "sensitivity", shares.recall_of(table, MET), "no_pairs" if none else "no_positive_in_truth"
            ),
            "specificity": noted.take(
                "specificity",
                shares.specificity_of(table, MET),
                "no_pairs" if none else "no_negative_in_truth",
            ),
            "f1": noted.take("f1", shares.f1_of(table, MET), "no_pairs" if none else "no_positive"),
        }
    else:
        for name in one_class:
            noted.refuse(name, "not_comparable")
    weighted = None
    if criterion.level == "ordinal" and not modes.has_category:
        weighted = noted.take(
            "weighted_kappa", kappa_of(table, weights_on_values(criterion)), undefined_reason(table)
        )
    return PooledMetrics(
        n=int(table.sum()),
        n_labelled=sum(int((cells.truth.status[cells.spans[place]] > 0).sum()) for place in places),
        labels=labels,
        accuracy=noted.take("accuracy", shares.accuracy_of(table), "no_pairs"),
        balanced_accuracy=noted.take(
            "balanced_accuracy", shares.balanced_accuracy_of(table), "no_pairs" if none else "single_class"
        ),
        kappa=noted.take("kappa", kappa_of(table), undefined_reason(table)),
        weighted_kappa=weighted,
        mcc=noted.take("mcc", shares.mcc_of(table), "no_pairs" if none else "no_variance"),
        pearson=noted.estimate("pearson", linear),
        reasons=noted.reasons,
        **one_class,
    )


def _without_scale(cells: Cells, linear: Estimate) -> PooledMetrics:
    noted = Noted()
    for name in (*_OF_ONE_CLASS, "balanced_accuracy", "kappa", "weighted_kappa", "mcc"):
        noted.refuse(name, "not_comparable")
    return PooledMetrics(
        n=0,
        n_labelled=int((cells.truth.status > 0).sum()),
        pearson=noted.estimate("pearson", linear),
        reasons=noted.reasons,
    )
