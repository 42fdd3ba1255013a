"""Metrics of categorical labels: accuracy, macro averages, and one category against the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeAlias, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import OneVsRestRate, TableInput, read_pair
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import Figure, estimate, share_figure, smooth_figure
from autorubric.metrics.core.metric import CATEGORICAL, SIGNED, metric
from autorubric.metrics.core.resampling import CodedArguments, CodedOptions
from autorubric.metrics.core.scales import Array, Binary, Interval, Nominal, Scale, as_sequence, infer_scale

TableFigure: TypeAlias = Callable[[int], Figure]
"""Function that returns the figure for a K × K table."""


def _smooth_on_table(
    name: str, of: Callable[[Array], Array], reason: Reason, low: float = 0.0
) -> TableFigure:
    return lambda size: smooth_figure(name, size, of, reason, low)


def accuracy_figure(size: int) -> Figure:
    """Return the `Figure` of `accuracy` for a K × K table."""
    return share_figure("accuracy", size, shares.accuracy_of, lambda cells: cells.sum((-1, -2)), "no_pairs")


balanced_accuracy_figure = _smooth_on_table("balanced accuracy", shares.balanced_accuracy_of, "single_class")
macro_f1_figure = _smooth_on_table("macro F1", shares.macro_f1_of, "no_pairs")
macro_precision_figure = _smooth_on_table("macro precision", shares.macro_precision_of, "no_pairs")
macro_recall_figure = _smooth_on_table("macro recall", shares.macro_recall_of, "no_pairs")
mcc_figure = _smooth_on_table("Matthews correlation", shares.mcc_of, "no_variance", low=-1.0)


@metric(inputs="labels", levels=CATEGORICAL, reference="share of agreement")
def accuracy(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute accuracy, the proportion of pairs that agree, Σ p_ii.

    The interval is Wilson's [1] or, with clusters, logit-t. Accuracy is undefined if there are no pairs.

    Args:
        truth: Ground-truth labels; pairs with None or NaN are dropped.
        pred: Labels from the judge.
        scale: Declared categories; None uses the observed ones.
        table: K × K contingency table with truth in the rows, instead of `truth` and `pred`.
        **interval: See `CodedArguments`.

    References:
        [1] E. B. Wilson (1927), JASA 22(158), 209-212.
    """
    return _estimate(accuracy_figure, truth, pred, scale, table, CodedOptions(**interval))


def _estimate(
    figure: TableFigure,
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    scale: Scale | None,
    table: Any,
    options: CodedOptions,
) -> Estimate:
    pair = read_pair(truth, pred, table, scale, options)
    return estimate(figure(pair.size), pair.units, options, n_missing=pair.n_missing)


@metric(inputs="labels", levels=CATEGORICAL, reference="Brodersen et al. 2010", symmetric=False)
def balanced_accuracy(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the mean recall over the classes that occur in truth [1].

    It is undefined if truth has only one class (`single_class`). See `accuracy` for the arguments.

    References:
        [1] K. H. Brodersen, C. S. Ong, K. E. Stephan, J. M. Buhmann (2010), The balanced accuracy and its
            posterior distribution, ICPR, 3121-3124.
    """
    return _estimate(balanced_accuracy_figure, truth, pred, scale, table, CodedOptions(**interval))


@metric(inputs="labels", levels=CATEGORICAL, reference="mean one-against-rest F1")
def macro_f1(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the mean one-vs-rest F1 over the classes that occur in truth or pred.

    Classes of the scale that do not occur are skipped; the estimate's `method` reports how many occur. Macro
    F1 is undefined if there are no pairs (`no_pairs`). See `accuracy` for the arguments.
    """
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    figure, note = macro_f1_figure(pair.size), classes_note(pair.table)
    return estimate(figure, pair.units, options, n_missing=pair.n_missing, note=note)


def classes_note(table: Array) -> str:
    """Return a note with the number of classes that occur in the rows or columns of a table."""
    return f"{np.count_nonzero(table.sum(0) + table.sum(1))} of {len(table)} classes occur"


@metric(inputs="labels", levels=CATEGORICAL, bounds=SIGNED, reference="Matthews 1975; Gorodkin 2004")
def mcc(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the Matthews correlation coefficient or, with more than two classes, Gorodkin's R_K [1, 2].

    `(n Σ n_kk - Σ r_k c_k) / √((n² - Σ r_k²)(n² - Σ c_k²))`. With two classes, R_K equals phi and Pearson's
    r. It is undefined if truth or pred is constant (`no_variance`). See `accuracy` for the arguments.

    References:
        [1] B. W. Matthews (1975), Comparison of the predicted and observed secondary structure of T4 phage
            lysozyme, Biochimica et Biophysica Acta 405, 442-451.
        [2] J. Gorodkin (2004), Comparing two K-category assignments by a K-category correlation coefficient,
            Computational Biology and Chemistry 28, 367-374.
    """
    return _estimate(mcc_figure, truth, pred, scale, table, CodedOptions(**interval))


@metric(inputs="labels", levels=("ordinal",), reference="share within k places")
def adjacent_accuracy(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    k: int = 1,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the proportion of pairs whose labels are at most k categories apart on an ordinal scale.

    With three categories, a high proportion is easy to reach by chance, so the estimate's `method` reports
    the proportion expected by chance from the two margins.

    Args:
        truth: Ground-truth labels; pairs with None or NaN are dropped.
        pred: Labels from the judge.
        scale: `Ordinal(labels)`. Not required for binary labels or for codes with `labels=K`.
        k: Maximum distance, in categories, that counts as agreement.
        table: K × K contingency table with truth in the rows, instead of `truth` and `pred`.
        **interval: See `CodedArguments`.

    Raises:
        ArgumentError: If the scale is not declared or has no order.
    """
    options = CodedOptions(**interval)
    if k < 0:
        raise ArgumentError(f"k must be a non-negative integer; got {k!r}")
    if isinstance(scale, Nominal | Interval):
        raise ArgumentError(f"{scale} does not order its categories; pass scale=Ordinal(labels)")
    pair = read_pair(truth, pred, table, scale, options)
    if not pair.declared and not (pair.scale is None or isinstance(pair.scale, Binary)):
        raise ArgumentError(
            "adjacent accuracy needs a declared order, because unused categories may lie between the "
            f"observed labels {list(pair.scale.labels)!r}; pass scale=Ordinal(labels)"
        )
    figure, note = adjacent_figure(pair.size, k), adjacent_note(pair.table, k)
    return estimate(figure, pair.units, options, n_missing=pair.n_missing, note=note)


def adjacent_figure(size: int, k: int = 1) -> Figure:
    """Return the `Figure` of `adjacent_accuracy` for a K × K table."""
    return share_figure(
        "adjacent accuracy",
        size,
        lambda cells: shares.adjacent_accuracy_of(cells, k),
        lambda cells: cells.sum((-1, -2)),
        "no_pairs",
    )


def adjacent_by_chance(table: Array, k: int = 1) -> float:
    """Compute the `adjacent_accuracy` expected from the two margins of a table; NaN without pairs."""
    return float(shares.adjacent_accuracy_of(np.outer(table.sum(1), table.sum(0)), k))


def adjacent_note(table: Array, k: int = 1) -> str:
    """Return a note with k and the value expected by chance."""
    chance = adjacent_by_chance(table, k) if table.sum() else 0.0
    return f"k={k}, {chance:.3f} by chance"


OneClassFigure: TypeAlias = Callable[[int, int], Figure]
"""Function that returns the figure for the category at a place (second) of a K × K table (first)."""


def _share(name: str, rate: OneVsRestRate, reason: Reason) -> OneClassFigure:
    def trials(cells: Array, positive: int) -> Array:
        return rate.denominator(shares.one_against_rest(cells, positive))

    return lambda size, positive: share_figure(
        name, size, lambda cells: rate(cells, positive), lambda cells: trials(cells, positive), reason
    )


def _smooth(name: str, rate: OneVsRestRate, reason: Reason) -> OneClassFigure:
    return lambda size, positive: smooth_figure(name, size, lambda cells: rate(cells, positive), reason)


precision_figure = _share("precision", shares.precision_of, "no_positive_in_pred")
recall_figure = _share("recall", shares.recall_of, "no_positive_in_truth")
specificity_figure = _share("specificity", shares.specificity_of, "no_negative_in_truth")
f1_figure = _smooth("F1", shares.f1_of, "no_positive")
positive_agreement_figure = _smooth("positive agreement", shares.f1_of, "no_positive")
negative_agreement_figure = _smooth("negative agreement", shares.negative_agreement_of, "no_negative")


def _table_and_class(
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


def _of_class(
    figure: OneClassFigure,
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    positive: Any,
    scale: Scale | None,
    table: Any,
    options: CodedOptions,
) -> Estimate:
    pair, index = _table_and_class(truth, pred, positive, scale, table, options)
    return estimate(figure(pair.size, index), pair.units, options, n_missing=pair.n_missing)


@metric(inputs="labels", levels=CATEGORICAL, reference="TP / (TP + FP)", symmetric=False, one_class=True)
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
    return _of_class(precision_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(inputs="labels", levels=CATEGORICAL, reference="TP / (TP + FN)", symmetric=False, one_class=True)
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
    return _of_class(recall_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(inputs="labels", levels=CATEGORICAL, reference="TN / (TN + FP)", symmetric=False, one_class=True)
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
    return _of_class(specificity_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(inputs="labels", levels=CATEGORICAL, reference="2 TP / (2 TP + FP + FN)", one_class=True)
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
    return _of_class(f1_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(inputs="labels", levels=CATEGORICAL, reference="Feinstein and Cicchetti 1990", one_class=True)
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
    return _of_class(positive_agreement_figure, truth, pred, positive, scale, table, CodedOptions(**interval))


@metric(inputs="labels", levels=CATEGORICAL, reference="Feinstein and Cicchetti 1990", one_class=True)
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
    return _of_class(negative_agreement_figure, truth, pred, positive, scale, table, CodedOptions(**interval))
