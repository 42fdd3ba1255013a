"""Metrics of categorical labels: accuracy, macro averages, correlation and adjacent accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core import contingency as shares
from autorubric.metrics.core.contingency import TableInput, read_pair
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.estimation import estimate
from autorubric.metrics.core.metric import (
    CATEGORICAL,
    SIGNED,
    MetricDisplay,
    Result,
    TableMetric,
    metric,
    show,
)
from autorubric.metrics.core.resampling import CodedArguments, CodedOptions
from autorubric.metrics.core.scales import Array, Binary, Interval, Nominal, Scale

ACCURACY = TableMetric(name="accuracy", hits=shares.hits)
BALANCED_ACCURACY = TableMetric(
    name="balanced accuracy",
    compute=shares.balanced_accuracy_of,
    reason="single_class",
    denominators=lambda tables: tables.sum(-1),
)


def _macro(name: str, denominators: Callable[[Array], Array], times: int = 1, where: str = "") -> TableMetric:
    """Return the mean over classes of `times` the hits divided by the denominators that are not 0."""

    def compute(tables: Array) -> Array:
        return shares.mean_rate(times * np.diagonal(tables, axis1=-2, axis2=-1), denominators(tables))

    def note(table: Array) -> str:
        return f"{np.count_nonzero(denominators(table))} of {len(table)} classes occur{where}"

    return TableMetric(name=name, compute=compute, denominators=denominators, note=note)


MACRO_F1 = _macro("macro F1", lambda tables: tables.sum(-1) + tables.sum(-2), 2)
MACRO_PRECISION = _macro("macro precision", lambda tables: tables.sum(-2), where=" in the predictions")
MACRO_RECALL = _macro("macro recall", lambda tables: tables.sum(-1), where=" in the truth")
MCC = TableMetric(
    name="Matthews correlation", compute=shares.mcc_of, reason="no_variance", bounds=(-1.0, 1.0)
)

_NOMINAL: tuple[Level, ...] = ("nominal",)
_ORDINAL: tuple[Level, ...] = ("ordinal",)
for _table, _key, _order in ((MACRO_PRECISION, "macro_precision", 80), (MACRO_RECALL, "macro_recall", 90)):
    _shown = MetricDisplay(
        table=_table, where={"agreement": _NOMINAL, "report": _NOMINAL}, pages=("judges",), order=_order
    )
    show(_shown, _key, _NOMINAL)


@metric(
    reference="share of agreement",
    shown=MetricDisplay(
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
    return _estimate_pair(computed, read_pair(truth, pred, table, scale, options), options)


def _estimate_pair(computed: TableMetric, pair: TableInput, options: CodedOptions) -> Estimate:
    note = computed.note(pair.table) if computed.note else ""
    return estimate(computed.figure(pair.size), pair.units, options, n_missing=pair.n_missing, note=note)


@metric(
    reference="Brodersen et al. 2010",
    symmetric=False,
    shown=MetricDisplay(table=BALANCED_ACCURACY, order=20, pages=()),
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
    reference="mean one-against-rest F1",
    shown=MetricDisplay(
        table=MACRO_F1,
        label="macro F1",
        where={"agreement": CATEGORICAL, "report": _NOMINAL, "run": (*_NOMINAL, *_ORDINAL)},
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
    bounds=SIGNED,
    reference="Matthews 1975; Gorodkin 2004",
    shown=MetricDisplay(
        table=MCC,
        key="phi",
        label="Matthews correlation",
        title="Matthews' correlation",
        where={"agreement": CATEGORICAL, "run": ("binary",), "run_pooled": CATEGORICAL},
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
        name="adjacent accuracy", hits=lambda tables: shares.adjacent_hits(tables, k), note=note
    )


def _adjacent_by_chance(tables: Array, k: int = 1) -> Array:
    """Compute the `adjacent_accuracy` expected from the two margins; NaN without pairs."""
    expected = tables.sum(-1)[..., :, None] * tables.sum(-2)[..., None, :]
    return shares.divide(shares.adjacent_hits(expected, k), expected.sum((-1, -2)))


_ON_EACH: Mapping[Result, tuple[Level, ...]] = {"agreement": _ORDINAL, "run": _ORDINAL}
show(
    MetricDisplay(
        table=TableMetric(
            name="adjacent accuracy expected by chance, given the margins",
            compute=_adjacent_by_chance,
            has_interval=False,
        ),
        title="at most one option off, by chance",
        where=_ON_EACH,
        pages=(),
        order=160,
    ),
    "adjacent_by_chance",
    _ORDINAL,
)


@metric(
    levels=("ordinal",),
    reference="share within k places",
    shown=MetricDisplay(
        table=_adjacent(1), title="at most one option off", where=_ON_EACH, pages=(), order=150
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
    return _estimate_pair(_adjacent(k), pair, options)


def position_consistency(
    first: Iterable[Any],
    swapped: Iterable[Any],
    *,
    scale: Scale | None = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute the proportion of comparisons with the same outcome in both orders of the candidates.

    Both arguments use the same names for the candidates, regardless of their order. A judge that always picks
    the first candidate scores 0; a judge that picks one of two at random scores about 1/2. The interval is
    Wilson's. The result is undefined if no pair is complete (`no_pairs`).

    Args:
        first: Outcomes in the declared order. Pairs in which either outcome is None or NaN are dropped.
        swapped: Outcomes in the swapped order, with the same candidate names.
        scale: Scale that declares the outcomes; None uses the outcomes that occur.
        **interval: See `CodedArguments`.
    """
    renamed = replace(ACCURACY, name="position consistency")
    return _estimate(renamed, first, swapped, scale, None, CodedOptions(**interval))
