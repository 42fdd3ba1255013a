"""Metrics of one category against all others: precision, recall, specificity, F1, specific agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeAlias, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics import _shares as shares
from autorubric.metrics._contingency import TableInput, read_pair
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._estimation import Figure, estimate, share_figure, smooth_figure
from autorubric.metrics._options import CodedArguments, CodedOptions
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Binary, Interval, Scale, as_sequence, infer_scale

OneClassFigure: TypeAlias = Callable[[int, int], Figure]
"""Function that returns the figure for the category at a place (second) of a K × K table (first)."""


def _share(
    name: str, of: Callable[[Array, int], Array], trials: Callable[[Array, int], Array], reason: Reason
) -> OneClassFigure:
    return lambda size, positive: share_figure(
        name, size, lambda cells: of(cells, positive), lambda cells: trials(cells, positive), reason
    )


def _smooth(name: str, of: Callable[[Array, int], Array], reason: Reason) -> OneClassFigure:
    return lambda size, positive: smooth_figure(name, size, lambda cells: of(cells, positive), reason)


precision_figure = _share(
    "precision",
    shares.precision_of,
    lambda cells, positive: cells[..., :, positive].sum(-1),
    "no_positive_in_pred",
)
recall_figure = _share(
    "recall",
    shares.recall_of,
    lambda cells, positive: cells[..., positive, :].sum(-1),
    "no_positive_in_truth",
)
specificity_figure = _share(
    "specificity",
    shares.specificity_of,
    lambda cells, positive: cells.sum((-1, -2)) - cells[..., positive, :].sum(-1),
    "no_negative_in_truth",
)
f1_figure = _smooth("F1", shares.f1_of, "no_positive")
positive_agreement_figure = _smooth("positive agreement", shares.f1_of, "no_positive")
negative_agreement_figure = _smooth("negative agreement", shares.negative_agreement_of, "no_negative")


def _one_class(
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    positive: Any,
    scale: Scale | None,
    table: Any,
    options: CodedOptions,
) -> tuple[TableInput, int]:
    """Return the table and the index of its positive category."""
    if truth is not None and pred is not None and positive is not None:
        truth, pred = as_sequence(truth, "truth"), as_sequence(pred, "pred")
        if scale is None and options.labels is None and table is None:
            scale = infer_scale(chain(truth, pred, [positive]))
    pair = read_pair(truth, pred, table, scale, options)
    if pair.scale is not None:
        scale = pair.scale
    if positive is None and (isinstance(scale, Binary) or (scale is None and pair.size == 2)):
        return pair, 1
    if positive is None and pair.size:
        raise ArgumentError(f"there are {pair.size} categories; pass positive=… to select the positive one")
    if positive is None:
        return pair, 0
    if scale is None:
        if not isinstance(positive, int | np.integer) or not 0 <= positive < pair.size:
            raise ArgumentError(f"positive must be a category code, 0..{pair.size - 1}; got {positive!r}")
        return pair, int(positive)
    assert not isinstance(scale, Interval)
    return pair, scale.code(positive)


def _estimate(
    figure: OneClassFigure,
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    positive: Any,
    scale: Scale | None,
    table: Any,
    options: CodedOptions,
) -> Estimate:
    pair, index = _one_class(truth, pred, positive, scale, table, options)
    return estimate(figure(pair.size, index), pair.units, options, n_missing=pair.n_missing)


def precision(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    positive: Any = None,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute precision, TP / (TP + FP), the proportion of predicted positives that are true positives.

    Precision is undefined if there are no predicted positives (`no_positive_in_pred`), and 0.0 if all of them
    are false. The interval is Wilson's over the predicted positives, or logit-t if clusters are passed.

    Args:
        truth: Ground-truth labels. Pairs in which either label is None or NaN are dropped.
        pred: Labels assigned by the judge, in the same order as `truth`.
        positive: Positive category. None selects MET, True or 1 for binary labels, and the second category of
            a 2 × 2 table that has no scale.
        scale: Scale that declares the categories; None uses the categories that occur.
        table: K × K counts with the truth in the rows; replaces `truth` and `pred`.
        **interval: Interval options; see `CodedArguments`.
    """
    return _estimate(precision_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


def recall(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    positive: Any = None,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute recall (sensitivity), TP / (TP + FN), the proportion of actual positives that are found.

    It is undefined if the truth has no positives (`no_positive_in_truth`). See `precision` for the arguments.
    """
    return _estimate(recall_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


def specificity(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    positive: Any = None,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute specificity, TN / (TN + FP), the proportion of actual negatives that are found.

    It is undefined if the truth has no negatives (`no_negative_in_truth`). See `precision` for the arguments.
    """
    return _estimate(specificity_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


def f1(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    positive: Any = None,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute F1, the harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN).

    F1 is undefined if there are neither actual nor predicted positives (`no_positive`), and 0.0 if there are
    no true positives. See `precision` for the arguments.
    """
    return _estimate(f1_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


def positive_agreement(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    positive: Any = None,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute agreement on the positive category, 2 TP / (2 TP + FP + FN) [1].

    The result equals F1 and is symmetric in the two raters. It is undefined if neither rater assigns a
    positive label (`no_positive`). If one category is rare, report this metric together with
    `negative_agreement`. See `precision` for the arguments.

    References:
        [1] A. R. Feinstein, D. V. Cicchetti (1990), High agreement but low kappa: I. The problems of two
            paradoxes, Journal of Clinical Epidemiology 43(6), 543-549.
    """
    return _estimate(positive_agreement_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


def negative_agreement(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    positive: Any = None,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute agreement on the negative category, 2 TN / (2 TN + FP + FN) [1].

    All categories except the positive one count as negative. The result is undefined if neither rater assigns
    a negative label (`no_negative`). See `precision` for the arguments.

    References:
        [1] A. R. Feinstein, D. V. Cicchetti (1990), Journal of Clinical Epidemiology 43(6), 543-549.
    """
    return _estimate(negative_agreement_figure, truth, pred, positive, scale, table, CodedOptions(**interval))
