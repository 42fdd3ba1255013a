"""Metrics of one category against all others: precision, recall, specificity, F1 and specific agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import OneVsRestRate, read_pair
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import estimate
from autorubric.metrics.core.metric import MetricDisplay, TableMetric, metric
from autorubric.metrics.core.resampling import CodedArguments, CodedOptions
from autorubric.metrics.core.scales import Array, Binary, Interval, Scale, as_sequence, infer_scale

MET = 1
"""Index of MET among the categories of a binary criterion."""

OneClassMetric: TypeAlias = Callable[[int], TableMetric]
"""Function from the position of a category to the metric of that category against all others."""


def _one_class(
    name: str,
    rate: OneVsRestRate,
    reason: Reason,
    *,
    is_share: bool = False,
    denominators: Callable[[Array], Array] | None = None,
) -> OneClassMetric:
    def metric_of(positive: int) -> TableMetric:
        compute = partial(rate, positive=positive)
        if not is_share:
            return TableMetric(name=name, compute=compute, reason=reason, denominators=denominators)
        return TableMetric(
            name=name,
            compute=compute,
            reason=reason,
            hits=lambda tables: rate.numerator(shares.one_vs_rest(tables, positive)),
            trials=lambda tables: rate.denominator(shares.one_vs_rest(tables, positive)),
        )

    return metric_of


precision_at = _one_class("precision", shares.precision_of, "no_positive_in_pred", is_share=True)
recall_at = _one_class("recall", shares.recall_of, "no_positive_in_truth", is_share=True)
specificity_at = _one_class("specificity", shares.specificity_of, "no_negative_in_truth", is_share=True)
f1_at = _one_class(
    "F1",
    shares.f1_of,
    "no_positive",
    denominators=lambda tables: (tables.sum((-1, -2)) - tables[..., 0, 0])[..., None],
)
positive_agreement_at = _one_class("positive agreement", shares.f1_of, "no_positive")
negative_agreement_at = _one_class("negative agreement", shares.negative_agreement_of, "no_negative")

_BINARY: tuple[Level, ...] = ("binary",)


def _of_class(
    metric_of: OneClassMetric,
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    positive: Any,
    scale: Scale | None,
    table: Any,
    options: CodedOptions,
) -> Estimate:
    if truth is not None and pred is not None and positive is not None:
        truth, pred = as_sequence(truth, "truth"), as_sequence(pred, "pred")
        if scale is None and options.labels is None and table is None:
            scale = infer_scale(truth, pred, [positive])
    pair = read_pair(truth, pred, table, scale, options)
    index = _positive_index(positive, pair.scale or scale, pair.size)
    return estimate(metric_of(index).figure(pair.size), pair.units, options, n_missing=pair.n_missing)


def _positive_index(positive: Any, scale: Scale | None, size: int) -> int:
    if positive is None and (isinstance(scale, Binary) or (scale is None and size == 2)):
        return 1
    if positive is None and size:
        raise ArgumentError(f"there are {size} categories; pass positive=… to select the positive one")
    if positive is None:
        return 0
    if scale is None:
        if not isinstance(positive, int | np.integer) or not 0 <= positive < size:
            raise ArgumentError(f"positive must be a category code, 0..{size - 1}; got {positive!r}")
        return int(positive)
    assert not isinstance(scale, Interval)
    return scale.code(positive)


@metric(
    reference="TP / (TP + FP)",
    symmetric=False,
    one_class=True,
    shown=MetricDisplay(table=precision_at(MET), per_option=precision_at, at=_BINARY, pages=(), order=100),
)
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
    return _of_class(precision_at, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(
    reference="TP / (TP + FN)",
    symmetric=False,
    one_class=True,
    shown=MetricDisplay(
        table=recall_at(MET),
        per_option=recall_at,
        label="sensitivity (recall, TPR)",
        column="TPR",
        explanation="TPR (sensitivity): proportion of items labelled MET that judges answer MET",
        tile="Sensitivity (TPR), mean of criteria",
        pages=("overview", "criteria"),
        at=_BINARY,
        order=110,
        mean_interval="item effects",
    ),
)
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
    return _of_class(recall_at, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(
    reference="TN / (TN + FP)",
    symmetric=False,
    one_class=True,
    shown=MetricDisplay(
        table=specificity_at(MET),
        label="specificity (TNR)",
        column="TNR",
        explanation="TNR (specificity): proportion of items labelled UNMET that judges answer UNMET",
        tile="Specificity (TNR), mean of criteria",
        pages=("overview", "criteria"),
        at=_BINARY,
        order=120,
        mean_interval="item effects",
    ),
)
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
    return _of_class(specificity_at, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(
    reference="2 TP / (2 TP + FP + FN)",
    one_class=True,
    shown=MetricDisplay(table=f1_at(MET), per_option=f1_at, label="F1", at=_BINARY, pages=(), order=130),
)
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
    return _of_class(f1_at, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(
    reference="Feinstein and Cicchetti 1990",
    one_class=True,
    shown=MetricDisplay(table=positive_agreement_at(MET), where={"agreement": _BINARY}, pages=(), order=140),
)
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
    return _of_class(positive_agreement_at, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(
    reference="Feinstein and Cicchetti 1990",
    one_class=True,
    shown=MetricDisplay(table=negative_agreement_at(MET), where={"agreement": _BINARY}, pages=(), order=145),
)
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
    return _of_class(negative_agreement_at, truth, pred, positive, scale, table, CodedOptions(**interval))
