"""All cells of a rater at once, and those of each scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autorubric.metrics import _shares as shares
from autorubric.metrics._cells import Cells, Column, Modes
from autorubric.metrics._chance import kappa_of, undefined_reason
from autorubric.metrics._columns import NumberPairs
from autorubric.metrics._correlation import pearson_estimate
from autorubric.metrics._criterion_figures import Noted, table_of, weights_on_values
from autorubric.metrics._options import IntervalOptions
from autorubric.metrics._resampling import Array
from autorubric.metrics._results import PooledMetrics
from autorubric.metrics._votes_table import MeasuredCriterion

_CATEGORICAL = ("binary", "nominal", "ordinal")
_MET = 1


def pooled(cells: Cells, rater: Column, modes: Modes) -> PooledMetrics:
    """All cells at once.

    Accuracy takes the cells of every categorical criterion. Figures of a table need one scale: where there
    are several, they take the binary cells, and are None (`not_comparable`) where there are none.
    """
    scales = _scales(cells.criteria)
    every = np.arange(len(cells.item))
    if len(scales) == 1:
        places = next(iter(scales.values()))
        return _of_scale(cells, rater, modes, places, every)
    binary = [place for place, criterion in enumerate(cells.criteria) if criterion.level == "binary"]
    if binary:
        base = _of_scale(cells, rater, modes, binary, every)
    else:
        base = _without_scale(cells, rater, every)
    noted = Noted()
    noted.reasons.update(base.reasons)
    right, n = 0, 0
    for places in scales.values():
        for place in places:
            truth, judged = cells.truth.take(cells.spans[place]), rater.take(cells.spans[place])
            both = (truth.code >= 0) & (judged.code >= 0)
            right += int((truth.code[both] == judged.code[both]).sum())
            n += int(both.sum())
    accuracy = noted.take("accuracy", right / n if n else float("nan"), "no_pairs")
    fields = {name: getattr(base, name) for name in PooledMetrics.__dataclass_fields__}
    used = n + _n_numbers(cells, rater)
    return PooledMetrics(**fields | {"accuracy": accuracy, "n": used, "reasons": noted.reasons})


def pooled_by_scale(cells: Cells, rater: Column, modes: Modes) -> dict[str, PooledMetrics]:
    """The cells of each scale at once, by its labels."""
    return {
        " | ".join(labels): _of_scale(cells, rater, modes, places, _cells_at(cells, places))
        for labels, places in _scales(cells.criteria).items()
    }


def _scales(criteria: Sequence[MeasuredCriterion]) -> dict[tuple[str, ...], list[int]]:
    """Categorical criteria by what they have in common: labels, level and values."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, criterion in enumerate(criteria):
        if criterion.level in _CATEGORICAL:
            values = tuple(answer.value for answer in criterion.categories)
            found.setdefault((criterion.level, _words(criterion), values), []).append(place)
    named: dict[tuple[str, ...], list[int]] = {}
    for (level, words, _), places in found.items():
        labels = tuple(words) if isinstance(words, tuple) else ()
        # Scales of one wording may differ in values or level, and stay apart.
        while labels in named:
            labels = (*labels, str(level))
        named[labels] = places
    return named


def _words(criterion: MeasuredCriterion) -> tuple[str, ...]:
    return tuple(answer.label or str(answer.code) for answer in criterion.categories)


def _cells_at(cells: Cells, places: Sequence[int]) -> Array:
    spans = [np.arange(cells.spans[place].start, cells.spans[place].stop) for place in places]
    return np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)


def _take(column: Column, which: Array) -> Column:
    return Column(column.status[which], column.code[which], column.value[which], column.number[which])


def _n_numbers(cells: Cells, rater: Column) -> int:
    places = [place for place, criterion in enumerate(cells.criteria) if criterion.level == "interval"]
    which = _cells_at(cells, places)
    return int((~np.isnan(cells.truth.value[which] + rater.value[which])).sum())


def _pearson(cells: Cells, rater: Column, which: Array, noted: Noted) -> float | None:
    truth, judged = cells.truth.value[which], rater.value[which]
    both = ~np.isnan(truth + judged)
    pairs = NumberPairs(truth[both], judged[both], None, 0)
    return noted.estimate("pearson", pearson_estimate(pairs, IntervalOptions(ci=None)))


def _of_scale(
    cells: Cells, rater: Column, modes: Modes, places: Sequence[int], values_of: Array
) -> PooledMetrics:
    """Figures of the criteria at `places`, which share a scale; Pearson over the cells `values_of`."""
    criterion = cells.criteria[places[0]]
    which = _cells_at(cells, places)
    truth = _take(cells.truth, which)
    labels = (*_words(criterion), *(("CANNOT_ASSESS",) if modes.has_category else ()))
    table = table_of(truth, _take(rater, which), len(labels))
    noted = Noted()
    none = table.sum() == 0
    one_class: dict[str, float | None] = dict.fromkeys(("precision", "recall", "f1"))
    if criterion.level == "binary":
        one_class = {
            "precision": noted.take(
                "precision", shares.precision_of(table, _MET), "no_pairs" if none else "no_positive_in_pred"
            ),
            "recall": noted.take(
                "recall", shares.recall_of(table, _MET), "no_pairs" if none else "no_positive_in_truth"
            ),
            "f1": noted.take("f1", shares.f1_of(table, _MET), "no_pairs" if none else "no_positive"),
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
        n_labelled=int((truth.status > 0).sum()),
        labels=labels,
        accuracy=noted.take("accuracy", shares.accuracy_of(table), "no_pairs"),
        balanced_accuracy=noted.take(
            "balanced_accuracy", shares.balanced_accuracy_of(table), "no_pairs" if none else "single_class"
        ),
        kappa=noted.take("kappa", kappa_of(table), undefined_reason(table)),
        weighted_kappa=weighted,
        mcc=noted.take("mcc", shares.mcc_of(table), "no_pairs" if none else "no_variance"),
        pearson=_pearson(cells, rater, values_of, noted),
        reasons=noted.reasons,
        **one_class,
    )


def _without_scale(cells: Cells, rater: Column, every: Array) -> PooledMetrics:
    noted = Noted()
    for name in ("precision", "recall", "f1", "balanced_accuracy", "kappa", "weighted_kappa", "mcc"):
        noted.refuse(name, "not_comparable")
    return PooledMetrics(
        n=0,
        n_labelled=int((cells.truth.status > 0).sum()),
        pearson=_pearson(cells, rater, every, noted),
        reasons=noted.reasons,
    )
