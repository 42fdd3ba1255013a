"""All agreement metrics of two raters on one scale, from one reading and one resampling of the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics import _classification as classification, _one_class as one_class, _shares as shares
from autorubric.metrics._bias import BiasResult, bias_of
from autorubric.metrics._chance import gwet_figure, kappa_figure
from autorubric.metrics._columns import NumberPairs, number_pairs
from autorubric.metrics._contingency import table_units
from autorubric.metrics._correlation import (
    ccc_estimate,
    kendall_estimate,
    pearson_estimate,
    spearman_estimate,
)
from autorubric.metrics._errors import mae_estimate, rmse_estimate
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._estimation import Figure, estimate, estimates, share_figure
from autorubric.metrics._judge_report._agreement_result import (
    FIGURES,
    Abstentions,
    Agreement,
    OptionAgreement,
)
from autorubric.metrics._judge_report._sides import AbstainMode, Sides, read_sides
from autorubric.metrics._options import IntervalArguments, IntervalOptions
from autorubric.metrics._ranks import rank_pairs
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Binary, Codes, Interval, Nominal, Ordinal, Scale
from autorubric.metrics._votes_table import ABSTAINED, ANSWERED, FAILED
from autorubric.metrics._weights import Weights, describe, weight_matrix
from autorubric.values import Level

_NUMBERS = ("spearman", "kendall", "pearson", "ccc", "rmse", "mae")
_ORDERED = ("weighted_kappa", "adjacent_accuracy", "adjacent_by_chance", *_NUMBERS)
_MET = 1


class _Named(NamedTuple):
    """A metric of the confusion table, with an additional note for its method."""

    figure: Figure
    note: str = ""


class _OfTable(TypedDict):
    """Fields of an `Agreement` that depend on the confusion table."""

    table: tuple[tuple[int, ...], ...]
    per_option: tuple[OptionAgreement, ...]


def agreement(
    truth: Iterable[Any],
    pred: Iterable[Any],
    *,
    scale: Scale,
    weights: Weights = None,
    abstain: AbstainMode = "exclude",
    **interval: Unpack[IntervalArguments],
) -> Agreement:
    """Compute all agreement metrics that the scale supports, with a confusion table and abstention counts.

    Each metric and its interval equal the result of the function with the same name and arguments (`kappa`:
    `cohen_kappa`, `ac1`: `gwet_ac`, `phi`: `mcc`). `macro_precision` and `macro_recall` have no such
    function. All metrics of the confusion table use the same resampled tables. On an ordinal scale, numeric
    metrics use the scale's values.

    Args:
        truth: Ground-truth labels, or one rater's labels. None and NaN are missing; NA and CANNOT_ASSESS are
            abstentions unless they are on the scale; INVALID is a failure and counts as missing.
        pred: Labels from the judge or the second rater, in the same form as `truth`.
        scale: Scale that declares all categories.
        weights: Agreement weights that give partial credit for near misses in `kappa`, `ac1` and
            `weighted_kappa`. None uses quadratic weights for `weighted_kappa` and no weights for the others.
        abstain: `"exclude"` ignores abstentions. `"as_category"` makes them a category, so metrics that need
            an order are undefined (`na_as_category`). `"as_negative"` counts them as the lowest answer.
        **interval: Interval options; see `IntervalArguments`. A metric that does not support the requested
            `ci` method uses its default method.

    Raises:
        ArgumentError: If the scale or the mode is unknown, a label is not on the scale, `truth` and `pred`
            differ in length, or the scale does not support the mode or the weights.
    """
    options = IntervalOptions(**interval)
    if isinstance(scale, Interval) and weights is not None:
        raise ArgumentError(f"weights={weights!r} need categories, but {scale} has none")
    return agreement_of(read_sides(truth, pred, scale, abstain, options.cluster), weights, options, abstain)


def agreement_of(sides: Sides, weights: Weights, options: IntervalOptions, abstain: AbstainMode) -> Agreement:
    """Compute `agreement` for labels that have already been read."""
    pairs = number_pairs(sides.numbers(sides.truth), sides.numbers(sides.pred), sides.cluster)
    on_table = not isinstance(sides.scale, Interval)
    n, n_missing = pairs.n, pairs.n_missing
    figures: dict[str, Estimate] = {}
    of_table: _OfTable = {"table": (), "per_option": ()}
    if on_table:
        figures, of_table, n, n_missing = _of_table(sides, weights, options)
    if isinstance(sides.scale, Ordinal | Interval) and not sides.has_category:
        figures |= number_figures(pairs, options)
    for name in FIGURES:
        if name not in figures:
            figures[name] = Estimate.undefined(
                _why_not(name, sides), n=n, method=name.replace("_", " "), n_missing=n_missing
            )
    return Agreement(
        level=level_of(sides.scale),
        labels=sides.labels,
        n=n,
        n_missing=n_missing,
        abstain=abstain,
        coverage=_coverage(sides, options),
        bias=_bias(sides, pairs, options),
        abstentions=_abstentions(sides, options),
        **figures,
        **of_table,
    )


def level_of(scale: Scale) -> Level:
    """Return the measurement level of a scale."""
    match scale:
        case Binary():
            return "binary"
        case Nominal():
            return "nominal"
        case Ordinal():
            return "ordinal"
        case Interval():
            return "interval"


def _why_not(name: str, sides: Sides) -> Reason:
    lost = sides.has_category and (name in ("kappa", "ac1") or isinstance(sides.scale, Ordinal))
    return "na_as_category" if lost and name in ("kappa", "ac1", *_ORDERED) else "not_on_scale"


def _of_table(
    sides: Sides, weights: Weights, options: IntervalOptions
) -> tuple[dict[str, Estimate], _OfTable, int, int]:
    size = sides.size
    units, n_missing = table_units(sides.truth.code, sides.pred.code, size, sides.cluster)
    table = units.total().reshape(size, size)
    named = _figures(sides, table, weights)
    for place in range(size):
        named[f"precision {place}"] = _Named(one_class.precision_figure(size, place))
        named[f"recall {place}"] = _Named(one_class.recall_figure(size, place))
        named[f"f1 {place}"] = _Named(one_class.f1_figure(size, place))
    found = estimates(
        [one.figure for one in named.values()],
        units,
        options,
        n_missing=n_missing,
        notes=[one.note for one in named.values()],
    )
    figures = dict(zip(named, found, strict=True))
    per_option = tuple(
        OptionAgreement(
            label=label,
            precision=figures.pop(f"precision {place}"),
            recall=figures.pop(f"recall {place}"),
            f1=figures.pop(f"f1 {place}"),
            support_true=int(table[place].sum()),
            support_pred=int(table[:, place].sum()),
        )
        for place, label in enumerate(sides.labels)
    )
    if isinstance(sides.scale, Ordinal) and not sides.has_category:
        figures["adjacent_by_chance"] = _adjacent_by_chance(table, units.n, n_missing)
    if size < 2:
        figures["ac1"] = Estimate.undefined(
            "single_category_scale", n=units.n, method="Gwet's AC1", n_missing=n_missing
        )
    counts = tuple(tuple(int(count) for count in row) for row in table)
    return figures, {"table": counts, "per_option": per_option}, units.n, n_missing


def _figures(sides: Sides, table: Array, weights: Weights) -> dict[str, _Named]:
    """Return the metrics of the confusion table that the scale supports."""
    size, scale = sides.size, sides.scale
    assert not isinstance(scale, Interval)
    named = {
        "accuracy": _Named(classification.accuracy_figure(size)),
        "balanced_accuracy": _Named(classification.balanced_accuracy_figure(size)),
        "macro_f1": _Named(classification.macro_f1_figure(size), classification.classes_note(table)),
        "phi": _Named(classification.mcc_figure(size)),
    }
    if weights is None or not sides.has_category:
        matrix = weight_matrix(weights, scale, size)
        named["kappa"] = _Named(kappa_figure(matrix), describe(weights))
        if size > 1:
            named["ac1"] = _Named(gwet_figure(matrix, weighted=weights is not None), describe(weights))
    if isinstance(scale, Nominal):
        named |= {
            "macro_precision": _Named(
                classification.macro_precision_figure(size),
                f"{np.count_nonzero(table.sum(0))} of {size} classes occur in the predictions",
            ),
            "macro_recall": _Named(
                classification.macro_recall_figure(size),
                f"{np.count_nonzero(table.sum(1))} of {size} classes occur in the truth",
            ),
        }
    if isinstance(scale, Binary):
        named |= {
            "precision": _Named(one_class.precision_figure(size, _MET)),
            "recall": _Named(one_class.recall_figure(size, _MET)),
            "specificity": _Named(one_class.specificity_figure(size, _MET)),
            "f1": _Named(one_class.f1_figure(size, _MET)),
            "positive_agreement": _Named(one_class.positive_agreement_figure(size, _MET)),
            "negative_agreement": _Named(one_class.negative_agreement_figure(size, _MET)),
        }
    if isinstance(scale, Ordinal) and not sides.has_category:
        on_order = "quadratic" if weights is None else weights
        named["weighted_kappa"] = _Named(
            kappa_figure(weight_matrix(on_order, scale, size)), describe(on_order)
        )
        note = classification.adjacent_note(table)
        named["adjacent_accuracy"] = _Named(classification.adjacent_figure(size), note)
    return named


def _adjacent_by_chance(table: Array, n: int, n_missing: int) -> Estimate:
    chance = classification.adjacent_by_chance(table)
    method = "adjacent accuracy expected by chance, given the margins"
    if math.isnan(chance):
        return Estimate.undefined("no_pairs", method=method, n_missing=n_missing)
    return Estimate(chance, n=n, method=method, n_missing=n_missing)


def number_figures(pairs: NumberPairs, options: IntervalOptions) -> dict[str, Estimate]:
    """Compute correlations, concordance and errors for two numeric columns, keyed by metric name."""
    if options.ci == "smoothed" or (options.ci == "analytic" and pairs.cluster is not None):
        options = replace(options, ci="auto")
    ranked, missing = rank_pairs(pairs), pairs.n_missing
    return {
        "spearman": spearman_estimate(ranked, options, n_missing=missing),
        "kendall": kendall_estimate(ranked, options, n_missing=missing),
        "pearson": pearson_estimate(pairs, options),
        "ccc": ccc_estimate(pairs, options),
        "rmse": rmse_estimate(pairs, options),
        "mae": mae_estimate(pairs, options),
    }


def _bias(sides: Sides, pairs: NumberPairs, options: IntervalOptions) -> BiasResult:
    if isinstance(sides.scale, Nominal):
        return BiasResult(mean_bias=None, reason="not_on_scale")
    if sides.has_category:
        return BiasResult(mean_bias=None, reason="na_as_category")
    return bias_of(pairs, options)


def _coverage(sides: Sides, options: IntervalOptions) -> Estimate:
    labelled = sides.truth.status > 0
    if isinstance(sides.scale, Interval):
        used = ~np.isnan(sides.truth.number + sides.pred.number)
    else:
        used = (sides.truth.code >= 0) & (sides.pred.code >= 0)
    return share_estimate("coverage", used, labelled, sides.cluster, options)


def share_estimate(
    name: str, flags: Array, counted: Array, cluster: Codes | None, options: IntervalOptions
) -> Estimate:
    """Return the proportion of counted units with a flag, with a Wilson (clusters: logit-t) interval."""
    right = np.where(counted, flags, -1).astype(np.int64)
    units, n_missing = table_units(np.ones_like(right), right, 2, cluster)
    figure = share_figure(name, 2, shares.accuracy_of, lambda cells: cells.sum((-1, -2)), "no_values")
    return estimate(figure, units, replace(options, ci=options.ci and "auto"), n_missing=n_missing)


def _abstentions(sides: Sides, options: IntervalOptions) -> Abstentions:
    labelled = sides.truth.status > 0
    left, right = sides.truth.status == ABSTAINED, labelled & (sides.pred.status == ABSTAINED)
    return Abstentions(
        n_labelled=int(np.count_nonzero(labelled)),
        n_truth=int(np.count_nonzero(left)),
        n_pred=int(np.count_nonzero(right)),
        n_both=int(np.count_nonzero(left & right)),
        n_failed=int(np.count_nonzero(labelled & (sides.pred.status == FAILED))),
        truth_rate=share_estimate("abstentions of the truth", left, labelled, sides.cluster, options),
        pred_rate=share_estimate("abstentions of the judge", right, labelled, sides.cluster, options),
        kappa=abstention_kappa(sides, options),
    )


def abstention_kappa(sides: Sides, options: IntervalOptions) -> Estimate:
    """Compute Cohen's kappa for abstaining or not, over the units that have a label and a vote."""
    left, right = sides.truth.status, sides.pred.status
    voted = (right == ANSWERED) | (right == ABSTAINED)
    units, n_missing = table_units(
        np.where(left > 0, left == ABSTAINED, -1).astype(np.int64),
        np.where(voted, right == ABSTAINED, -1).astype(np.int64),
        2,
        sides.cluster,
    )
    auto = replace(options, ci=options.ci and "auto")
    return estimate(kappa_figure(np.eye(2)), units, auto, n_missing=n_missing, note="of abstaining")
