"""Classification metrics of categorical labels: accuracy, balanced accuracy, macro F1 and correlation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics import _shares as shares
from autorubric.metrics._contingency import read_pair
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._estimation import Figure, estimate, share_figure, smooth_figure
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
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return estimate(accuracy_figure(pair.size), pair.units, options, n_missing=pair.n_missing)


def accuracy_figure(size: int) -> Figure:
    """Return the `Figure` of `accuracy` for a K × K table."""
    return share_figure("accuracy", size, shares.accuracy_of, lambda cells: cells.sum((-1, -2)), "no_pairs")


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
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return estimate(balanced_accuracy_figure(pair.size), pair.units, options, n_missing=pair.n_missing)


def balanced_accuracy_figure(size: int) -> Figure:
    """Return the `Figure` of `balanced_accuracy` for a K × K table."""
    return smooth_figure("balanced accuracy", size, shares.balanced_accuracy_of, "single_class")


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


def macro_f1_figure(size: int) -> Figure:
    """Return the `Figure` of `macro_f1` for a K × K table."""
    return smooth_figure("macro F1", size, shares.macro_f1_of, "no_pairs")


def macro_precision_figure(size: int) -> Figure:
    """Return the `Figure` of the mean precision over the classes of a K × K table that occur in pred."""
    return smooth_figure("macro precision", size, shares.macro_precision_of, "no_pairs")


def macro_recall_figure(size: int) -> Figure:
    """Return the `Figure` of the mean recall over the classes of a K × K table that occur in truth."""
    return smooth_figure("macro recall", size, shares.macro_recall_of, "no_pairs")


def classes_note(table: Array) -> str:
    """Return a note with the number of classes that occur in the rows or columns of a table."""
    return f"{np.count_nonzero(table.sum(0) + table.sum(1))} of {len(table)} classes occur"


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
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return estimate(mcc_figure(pair.size), pair.units, options, n_missing=pair.n_missing)


def mcc_figure(size: int) -> Figure:
    """Return the `Figure` of `mcc` for a K × K table."""
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
