"""Agreement of two raters beyond chance: Cohen's kappa, Scott's pi, Gwet's AC1 and AC2, Brennan-Prediger.

All have the form (po - pe) / (1 - pe) with po = Σ w_ij p_ij, and differ in pe, the agreement expected by
chance. Array functions take counts of shape `(..., K, K)`, truth in the rows, and return NaN if undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, Unpack

import numpy as np

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import read_pair
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import estimate
from autorubric.metrics.core.metric import CATEGORICAL, SIGNED, MetricDisplay, TableMetric, metric, show
from autorubric.metrics.core.resampling import CodedArguments, CodedOptions
from autorubric.metrics.core.scales import Array, Scale, Weights, describe, weight_matrix
from autorubric.metrics.figures.many_raters import (
    CountCoefficient,
    PooledChance,
    ac_chance,
    bp_chance,
    ratings_estimate,
    require_declared,
)

Chance: TypeAlias = Callable[[Array, Array, Array], Array]
"""A function from (row margins, column margins, weights) to expected agreement times n²."""


def _cohen(rows: Array, columns: Array, weights: Array) -> Array:
    return np.asarray(((rows @ weights) * columns).sum(-1))


def _scott(rows: Array, columns: Array, weights: Array) -> Array:
    mean = (rows + columns) / 2
    return np.asarray(((mean @ weights) * mean).sum(-1))


def _gwet(rows: Array, columns: Array, weights: Array) -> Array:
    n = rows.sum(-1)
    return np.asarray(ac_chance((rows + columns) / (2 * n[..., None]), weights) * n * n)


def _correct_for_chance(table: Array, weights: Array | None, chance: Chance) -> Array:
    """Compute (po - pe) / (1 - pe) from terms times n², exact for counts; NaN where 1 - pe is 0."""
    weights = np.eye(table.shape[-1]) if weights is None else weights
    n = table.sum((-1, -2))
    observed = (table * weights).sum((-1, -2))
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = chance(table.sum(-1), table.sum(-2), weights)
        room = n * n - expected
        # A difference this small is rounding error: chance agreement is already at its maximum.
        none = np.abs(room.real) <= 1e-12 * (n * n).real
        return np.where(none, np.nan, (n * observed - expected) / room)


def kappa_of(table: Array, weights: Array | None = None) -> Array:
    """Compute Cohen's kappa of each table, shape `(...)`; see `weight_matrix` for `weights`."""
    return _correct_for_chance(table, weights, _cohen)


def undefined_reason(table: Array) -> Reason:
    """Return the reason why a chance-corrected metric of this table is undefined."""
    if not table.sum():
        return "no_pairs"
    used = np.count_nonzero(table.sum(-1) + table.sum(-2))
    return "single_class" if used == 1 else "no_variance"


def kappa_parts(table: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Return numerator and denominator of kappa in pairs; the ratio of sums over tables is also a kappa."""
    credit = np.eye(table.shape[-1]) if weights is None else weights
    n = table.sum((-1, -2))
    expected = _cohen(table.sum(-1), table.sum(-2), credit) / np.where(n == 0, 1, n)
    return (table * credit).sum((-1, -2)) - expected, n - expected


def _beyond_chance(name: str, chance: Chance, *, weighted_name: str = "", fewest: int = 1) -> TableMetric:
    return TableMetric(
        name=name,
        compute=lambda tables, weights: _correct_for_chance(tables, weights, chance),
        reason="single_class",
        reason_of=undefined_reason,
        bounds=SIGNED,
        weighted=True,
        weighted_name=weighted_name or name,
        fewest=fewest,
    )


KAPPA = _beyond_chance("Cohen's kappa", _cohen)
_PI = _beyond_chance("Scott's pi", _scott)
_AC = _beyond_chance("Gwet's AC1", _gwet, weighted_name="Gwet's AC2", fewest=2)
_BRENNAN_PREDIGER = _beyond_chance(
    "Brennan-Prediger", lambda rows, _, weights: bp_chance(rows, weights) * rows.sum(-1) ** 2, fewest=2
)


_Pair: TypeAlias = tuple[Iterable[Any] | None, Iterable[Any] | None, Any]
"""The labels of both raters, or their table."""


def _pair_estimate(
    computed: TableMetric, given: _Pair, scale: Scale | None, weights: Weights, options: CodedOptions
) -> Estimate:
    pair = read_pair(*given, scale, options)
    name = computed.name if weights is None else computed.weighted_name
    if computed.fewest > 1:
        require_declared(name, pair)
    matrix = weight_matrix(weights, pair.scale, pair.size)
    note = describe(weights, declared=pair.declared)
    if pair.size == 1 and computed.fewest > 1:
        return Estimate.undefined(
            "single_category_scale", n=pair.units.n, method=name, n_missing=pair.n_missing
        )
    figure = computed.figure(pair.size, matrix, name=name)
    return estimate(figure, pair.units, options, n_missing=pair.n_missing, note=note)


def _declared_estimate(
    computed: TableMetric,
    chance: PooledChance,
    given: _Pair,
    ratings: Any,
    scale: Scale | None,
    weights: Weights,
    options: CodedOptions,
) -> Estimate:
    if ratings is None:
        return _pair_estimate(computed, given, scale, weights, options)
    if any(one is not None for one in given):
        raise ArgumentError("pass only one of: ratings, table, or truth and pred")
    name = computed.name if weights is None else computed.weighted_name
    coefficient = CountCoefficient(name, chance, needs_declared=True)
    return ratings_estimate(coefficient, ratings, scale, weights, options)


_ORDINAL: tuple[Level, ...] = ("ordinal",)
show(
    MetricDisplay(
        table=KAPPA,
        where={"agreement": _ORDINAL, "run": _ORDINAL, "run_pooled": _ORDINAL},
        pages=(),
        order=40,
    ),
    "weighted_kappa",
    _ORDINAL,
    bounds=SIGNED,
)


@metric(
    bounds=SIGNED,
    reference="Cohen 1960, 1968",
    weighted=True,
    shown=MetricDisplay(
        table=KAPPA,
        key="kappa",
        title="Cohen's kappa",
        explanation="Kappa is weighted on ordered scales",
        pages=("overview", "criteria", "judges"),
        order=30,
    ),
)
def cohen_kappa(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute Cohen's kappa, (po - pe) / (1 - pe), with pe = Σ w_ij r_i c_j from the raters' margins [1, 2].

    Kappa is undefined if both raters use the same single category (`single_class`). It is 0.0 if each uses a
    different single category or only one rater is constant. Unused categories of the scale still affect the
    weights. With quadratic weights on equally spaced values, kappa equals Lin's concordance correlation with
    1/n moments. The analytic interval is the one in [3].

    Args:
        truth: Labels of one rater; pairs with None or NaN are dropped.
        pred: Labels of the other rater.
        scale: Declared categories; None uses the observed ones.
        weights: Partial-credit weights: `"linear"` or `"quadratic"` in the scale's values, or a K × K matrix.
        table: K × K contingency table with truth in the rows, instead of `truth` and `pred`.
        **interval: See `CodedArguments`.

    References:
        [1] J. Cohen (1960), A coefficient of agreement for nominal scales, Educational and Psychological
            Measurement 20(1), 37-46, eq. 1.
        [2] J. Cohen (1968), Weighted kappa, Psychological Bulletin 70(4), 213-220.
        [3] J. L. Fleiss, J. Cohen, B. S. Everitt (1969), Large sample standard errors of kappa and weighted
            kappa, Psychological Bulletin 72(5), 323-327.
    """
    return _pair_estimate(KAPPA, (truth, pred, table), scale, weights, CodedOptions(**interval))


@metric(bounds=SIGNED, reference="Scott 1955", weighted=True)
def scott_pi(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute Scott's pi, which is Cohen's kappa with pe based on the mean of the two margins [1].

    Pi is undefined if only one category occurs (`single_class`). If each rater uses a different single
    category, pi is -1.0 and kappa 0.0, as pi pools the margins. See `cohen_kappa` for the arguments.

    References:
        [1] W. A. Scott (1955), Reliability of content analysis: the case of nominal scale coding, Public
            Opinion Quarterly 19(3), 321-325.
    """
    return _pair_estimate(_PI, (truth, pred, table), scale, weights, CodedOptions(**interval))


@metric(
    bounds=SIGNED,
    reference="Gwet 2008, 2014",
    weighted=True,
    shown=MetricDisplay(
        table=_AC, key="ac1", title="Gwet's AC1", where={"agreement": CATEGORICAL}, pages=(), order=50
    ),
)
def gwet_ac(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    table: Any = None,
    ratings: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute Gwet's AC1, or AC2 if weighted, where pe = Σ w · Σ π_k (1 - π_k) / (q (q - 1)) [1, 2].

    π_k is the mean proportion of category k, and q is the *declared* number of categories. If several
    categories are declared but all ratings fall in one, the result is 1.0. If only one category is declared,
    the coefficient is undefined (`single_category_scale`).

    Args:
        truth: Labels of one rater; pairs with None or NaN are dropped.
        pred: Labels of the other rater.
        scale: Declared categories; required unless the labels are binary.
        weights: Partial credit for unequal labels; see `cohen_kappa`.
        table: K × K contingency table, instead of `truth` and `pred`.
        ratings: Labels of shape `(n_units, n_raters)`, instead of `truth` and `pred`; None is missing. A unit
            with a single rating contributes only to π.
        **interval: See `CodedArguments`.

    References:
        [1] K. L. Gwet (2008), Computing inter-rater reliability and its variance in the presence of high
            agreement, British Journal of Mathematical and Statistical Psychology 61, 29-48.
        [2] K. L. Gwet (2014), Handbook of inter-rater reliability, 4th ed., ch. 4-5.
    """
    given, options = (truth, pred, table), CodedOptions(**interval)
    return _declared_estimate(_AC, ac_chance, given, ratings, scale, weights, options)


@metric(bounds=SIGNED, reference="Brennan and Prediger 1981", weighted=True)
def brennan_prediger(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    table: Any = None,
    ratings: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Compute Brennan and Prediger's coefficient (S, PABAK), with pe = Σ w / q², or 1/q if unweighted [1, 2].

    q is the *declared* number of categories. If only one category is declared, the coefficient is undefined
    (`single_category_scale`). See `gwet_ac` for the arguments.

    References:
        [1] R. L. Brennan, D. J. Prediger (1981), Coefficient kappa: some uses, misuses, and alternatives,
            Educational and Psychological Measurement 41, 687-699.
        [2] T. Byrt, J. Bishop, J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical
            Epidemiology 46(5), 423-429.
    """
    given, options = (truth, pred, table), CodedOptions(**interval)
    return _declared_estimate(_BRENNAN_PREDIGER, bp_chance, given, ratings, scale, weights, options)
