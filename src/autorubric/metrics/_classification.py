"""How well one rater's categories match another's: accuracy, precision, recall, F1 and their kin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics import _shares as shares
from autorubric.metrics._contingency import read_pair
from autorubric.metrics._contingency_figures import share_figure, smooth_figure
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Figure, estimate
from autorubric.metrics._options import CodedArguments, CodedOptions
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Binary, Interval, Nominal, Scale


def accuracy(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Share of pairs that agree: Σ p_ii.

    Wilson's interval [1], or logit-t over clusters. No pair: undefined (`no_pairs`).

    Args:
        truth: True labels; None and NaN are missing, and drop the pair.
        pred: Judged labels.
        scale: Declared categories; None takes those seen.
        table: Counts, K × K, rows truth, instead of labels.
        **interval: See `CodedArguments`.

    References:
        [1] E. B. Wilson (1927), JASA 22(158), 209-212.
    """
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return estimate(accuracy_figure(pair.size), pair.units, options, n_missing=pair.n_missing)


def accuracy_figure(size: int) -> Figure:
    """`accuracy` of a K × K table."""
    return share_figure("accuracy", size, shares.accuracy_of, lambda cells: cells.sum((-1, -2)), "no_pairs")


def balanced_accuracy(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Mean recall over the classes that occur in truth [1].

    One true class: undefined (`single_class`). Arguments as in `accuracy`.

    References:
        [1] K. H. Brodersen, C. S. Ong, K. E. Stephan, J. M. Buhmann (2010), The balanced accuracy and its
            posterior distribution, ICPR, 3121-3124.
    """
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return estimate(balanced_accuracy_figure(pair.size), pair.units, options, n_missing=pair.n_missing)


def balanced_accuracy_figure(size: int) -> Figure:
    """`balanced_accuracy` of a K × K table."""
    return smooth_figure("balanced accuracy", size, shares.balanced_accuracy_of, "single_class")


def macro_f1(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Mean of each class's F1 against the rest, over the classes that occur on either side.

    Classes of the scale that occur on neither side are skipped; `method` counts them. Arguments as in
    `accuracy`.
    """
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    figure, note = macro_f1_figure(pair.size), classes_note(pair.table)
    return estimate(figure, pair.units, options, n_missing=pair.n_missing, note=note)


def macro_f1_figure(size: int) -> Figure:
    """`macro_f1` of a K × K table."""
    return smooth_figure("macro F1", size, shares.macro_f1_of, "no_pairs")


def macro_precision_figure(size: int) -> Figure:
    """Mean precision over the classes of a K × K table that were judged."""
    return smooth_figure("macro precision", size, shares.macro_precision_of, "no_pairs")


def macro_recall_figure(size: int) -> Figure:
    """Mean recall over the classes of a K × K table that occur in truth."""
    return smooth_figure("macro recall", size, shares.macro_recall_of, "no_pairs")


def classes_note(table: Array) -> str:
    """How many classes of a table occur on either side."""
    return f"{np.count_nonzero(table.sum(0) + table.sum(1))} of {len(table)} classes occur"


def mcc(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Matthews' correlation, for more classes Gorodkin's R_K; on two classes phi, and Pearson's r [1, 2].

    `(n Σ n_kk - Σ r_k c_k) / √((n² - Σ r_k²)(n² - Σ c_k²))`. A constant side: undefined (`no_variance`).
    Arguments as in `accuracy`.

    References:
        [1] B. W. Matthews (1975), Comparison of the predicted and observed secondary structure of T4 phage
            lysozyme, Biochimica et Biophysica Acta 405, 442-451.
        [2] J. Gorodkin (2004), Comparing two K-category assignments by a K-category correlation coefficient,
            Computational Biology and Chemistry 28, 367-374.
    """
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return estimate(mcc_figure(pair.size), pair.units, options, n_missing=pair.n_missing)


def mcc_figure(size: int) -> Figure:
    """`mcc` of a K × K table."""
    return smooth_figure("Matthews correlation", size, shares.mcc_of, "no_variance", low=-1.0)


def adjacent_accuracy(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    k: int = 1,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Share of pairs at most k places apart on an ordinal scale.

    On three categories this is nearly free, so `method` says what the two margins would give by chance.

    Args:
        truth: True labels; None and NaN are missing, and drop the pair.
        pred: Judged labels.
        scale: `Ordinal(labels)`, or `labels=K` for codes; binary labels need none.
        k: Places apart that still count.
        table: Counts, K × K, rows truth, instead of labels.
        **interval: See `CodedArguments`.

    Raises:
        ArgumentError: The scale is not declared or has no order.
    """
    options = CodedOptions(**interval)
    if k < 0:
        raise ArgumentError(f"k={k!r}; give a number of places, from 0")
    if isinstance(scale, Nominal | Interval):
        raise ArgumentError(f"{scale} has no order of categories; give scale=Ordinal(labels)")
    pair = read_pair(truth, pred, table, scale, options)
    if not pair.declared and not (pair.scale is None or isinstance(pair.scale, Binary)):
        raise ArgumentError(
            f"adjacent accuracy needs a declared order, for unused categories lie between others; the labels "
            f"seen are {list(pair.scale.labels)!r}: give scale=Ordinal(labels)"
        )
    figure, note = adjacent_figure(pair.size, k), adjacent_note(pair.table, k)
    return estimate(figure, pair.units, options, n_missing=pair.n_missing, note=note)


def adjacent_figure(size: int, k: int = 1) -> Figure:
    """`adjacent_accuracy` of a K × K table."""
    return share_figure(
        "adjacent accuracy",
        size,
        lambda cells: shares.adjacent_accuracy_of(cells, k),
        lambda cells: cells.sum((-1, -2)),
        "no_pairs",
    )


def adjacent_by_chance(table: Array, k: int = 1) -> float:
    """What the two margins of a table would give of `adjacent_accuracy`; NaN without a pair."""
    return float(shares.adjacent_accuracy_of(np.outer(table.sum(1), table.sum(0)), k))


def adjacent_note(table: Array, k: int = 1) -> str:
    """How far apart still counts, and what that gives by chance."""
    chance = adjacent_by_chance(table, k) if table.sum() else 0.0
    return f"k={k}, {chance:.3f} by chance"
