"""Metrics of categorical labels: accuracy, macro averages, and one category against the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, Unpack

import numpy as np

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import OneVsRestRate, TableInput, read_pair
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import estimate
from autorubric.metrics.core.metric import CATEGORICAL, SIGNED, Shown, TableMetric, metric, show
from autorubric.metrics.core.resampling import CodedArguments, CodedOptions
from autorubric.metrics.core.scales import Array, Binary, Interval, Nominal, Scale, as_sequence, infer_scale

MET = 1
"""Index of MET among the categories of a binary criterion."""

ACCURACY = TableMetric(name="accuracy", hits=shares.hits)
BALANCED_ACCURACY = TableMetric(
    name="balanced accuracy",
    compute=shares.balanced_accuracy_of,
    reason="single_class",
    denominators=lambda tables: tables.sum(-1),
)
MACRO_F1 = TableMetric(
    name="macro F1",
    compute=shares.macro_f1_of,
    denominators=lambda tables: tables.sum(-1) + tables.sum(-2),
    note=lambda table: f"{np.count_nonzero(table.sum(0) + table.sum(1))} of {len(table)} classes occur",
)
MACRO_PRECISION = TableMetric(
    name="macro precision",
    compute=shares.macro_precision_of,
    denominators=lambda tables: tables.sum(-2),
    note=lambda table: f"{np.count_nonzero(table.sum(0))} of {len(table)} classes occur in the predictions",
)
MACRO_RECALL = TableMetric(
    name="macro recall",
    compute=shares.macro_recall_of,
    denominators=lambda tables: tables.sum(-1),
    note=lambda table: f"{np.count_nonzero(table.sum(1))} of {len(table)} classes occur in the truth",
)
MCC = TableMetric(
    name="Matthews correlation", compute=shares.mcc_of, reason="no_variance", bounds=(-1.0, 1.0)
)

show(
    Shown(
        table=MACRO_PRECISION,
        over=("nominal",),
        run=(),
        run_mean=(),
        run_pooled=(),
        pages=("judges",),
        order=80,
    ),
    "macro_precision",
    ("nominal",),
)
show(
    Shown(
        table=MACRO_RECALL, over=("nominal",), run=(), run_mean=(), run_pooled=(), pages=("judges",), order=90
    ),
    "macro_recall",
    ("nominal",),
)


@metric(
    inputs="labels",
    levels=CATEGORICAL,
    reference="share of agreement",
    shown=Shown(
        table=ACCURACY,
        tile="Agreement with labels",
        pages=("overview", "criteria", "judges"),
        order=10,
        mean_interval="item effects",
    ),
)
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
    return _estimate(ACCURACY, truth, pred, scale, table, CodedOptions(**interval))


def _estimate(
    computed: TableMetric,
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    scale: Scale | None,
    table: Any,
    options: CodedOptions,
) -> Estimate:
    pair = read_pair(truth, pred, table, scale, options)
    note = computed.note(pair.table) if computed.note else ""
    return estimate(computed.figure(pair.size), pair.units, options, n_missing=pair.n_missing, note=note)


@metric(
    inputs="labels",
    levels=CATEGORICAL,
    reference="Brodersen et al. 2010",
    symmetric=False,
    shown=Shown(table=BALANCED_ACCURACY, order=20, pages=()),
)
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
    return _estimate(BALANCED_ACCURACY, truth, pred, scale, table, CodedOptions(**interval))


@metric(
    inputs="labels",
    levels=CATEGORICAL,
    reference="mean one-against-rest F1",
    shown=Shown(
        table=MACRO_F1,
        label="macro F1",
        over=("nominal",),
        run=("nominal", "ordinal"),
        run_mean=(),
        run_pooled=(),
        pages=("judges",),
        order=70,
    ),
)
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
    return _estimate(MACRO_F1, truth, pred, scale, table, CodedOptions(**interval))


@metric(
    inputs="labels",
    levels=CATEGORICAL,
    bounds=SIGNED,
    reference="Matthews 1975; Gorodkin 2004",
    shown=Shown(
        table=MCC,
        key="phi",
        label="Matthews correlation",
        title="Matthews' correlation",
        over=(),
        run=("binary",),
        run_mean=(),
        pages=(),
        order=60,
    ),
)
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
    return _estimate(MCC, truth, pred, scale, table, CodedOptions(**interval))


def _adjacent(k: int) -> TableMetric:
    """Return `adjacent_accuracy` for a maximum distance."""

    def note(table: Array) -> str:
        chance = float(_adjacent_by_chance(table, k)) if table.sum() else 0.0
        return f"k={k}, {chance:.3f} by chance"

    return TableMetric(
        name="adjacent accuracy",
        hits=lambda tables: (tables * shares.near(tables.shape[-1], k)).sum((-1, -2)),
        note=note,
    )


def _adjacent_by_chance(tables: Array, k: int = 1) -> Array:
    """Compute the `adjacent_accuracy` expected from the two margins; NaN without pairs."""
    expected = tables.sum(-1)[..., :, None] * tables.sum(-2)[..., None, :]
    return shares.adjacent_accuracy_of(expected, k)


show(
    Shown(
        table=TableMetric(
            name="adjacent accuracy expected by chance, given the margins",
            compute=_adjacent_by_chance,
            has_interval=False,
        ),
        title="at most one option off, by chance",
        over=(),
        run_mean=(),
        run_pooled=(),
        pages=(),
        order=160,
    ),
    "adjacent_by_chance",
    ("ordinal",),
)


@metric(
    inputs="labels",
    levels=("ordinal",),
    reference="share within k places",
    shown=Shown(
        table=_adjacent(1),
        title="at most one option off",
        over=(),
        run_mean=(),
        run_pooled=(),
        pages=(),
        order=150,
    ),
)
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
    within = _adjacent(k)
    note = within.note(pair.table) if within.note else ""
    return estimate(within.figure(pair.size), pair.units, options, n_missing=pair.n_missing, note=note)


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
    metric_of: OneClassMetric,
    truth: Iterable[Any] | None,
    pred: Iterable[Any] | None,
    positive: Any,
    scale: Scale | None,
    table: Any,
    options: CodedOptions,
) -> Estimate:
    pair, index = _table_and_class(truth, pred, positive, scale, table, options)
    return estimate(metric_of(index).figure(pair.size), pair.units, options, n_missing=pair.n_missing)


@metric(
    inputs="labels",
    levels=CATEGORICAL,
    reference="TP / (TP + FP)",
    symmetric=False,
    one_class=True,
    shown=Shown(table=precision_at(MET), per_option=precision_at, at=_BINARY, pages=(), order=100),
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
    inputs="labels",
    levels=CATEGORICAL,
    reference="TP / (TP + FN)",
    symmetric=False,
    one_class=True,
    shown=Shown(
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
    inputs="labels",
    levels=CATEGORICAL,
    reference="TN / (TN + FP)",
    symmetric=False,
    one_class=True,
    shown=Shown(
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
    inputs="labels",
    levels=CATEGORICAL,
    reference="2 TP / (2 TP + FP + FN)",
    one_class=True,
    shown=Shown(table=f1_at(MET), per_option=f1_at, label="F1", at=_BINARY, pages=(), order=130),
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
    inputs="labels",
    levels=CATEGORICAL,
    reference="Feinstein and Cicchetti 1990",
    one_class=True,
    shown=Shown(
        table=positive_agreement_at(MET),
        at=_BINARY,
        over=(),
        run=(),
        run_mean=(),
        run_pooled=(),
        pages=(),
        order=140,
    ),
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
    inputs="labels",
    levels=CATEGORICAL,
    reference="Feinstein and Cicchetti 1990",
    one_class=True,
    shown=Shown(
        table=negative_agreement_at(MET),
        at=_BINARY,
        over=(),
        run=(),
        run_mean=(),
        run_pooled=(),
        pages=(),
        order=145,
    ),
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
