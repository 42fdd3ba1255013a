"""Agreement of two raters beyond chance: Cohen's kappa, Scott's pi, Gwet's AC1 and AC2, Brennan-Prediger.

All have the form (po - pe) / (1 - pe) with po = Σ w_ij p_ij and differ in pe, the agreement expected by
chance. The functions of a table take counts of shape `(..., K, K)`, rows truth, and give NaN where undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics._contingency import TableInput, read_pair
from autorubric.metrics._counts import CountCoefficient, ac_chance, bp_chance, ratings_estimate
from autorubric.metrics._estimate import Estimate, Reason
from autorubric.metrics._estimation import Figure, delta, estimate
from autorubric.metrics._options import CodedArguments, CodedOptions, IntervalOptions
from autorubric.metrics._resampling import Array
from autorubric.metrics._scales import Scale
from autorubric.metrics._weights import Weights, describe, weight_matrix

Chance: TypeAlias = Callable[[Array, Array, Array], Array]
"""(row margins, column margins, weights) to expected agreement times n²."""


def _cohen(rows: Array, columns: Array, weights: Array) -> Array:
    return np.asarray(((rows @ weights) * columns).sum(-1))


def _scott(rows: Array, columns: Array, weights: Array) -> Array:
    mean = (rows + columns) / 2
    return np.asarray(((mean @ weights) * mean).sum(-1))


def _gwet(rows: Array, columns: Array, weights: Array) -> Array:
    n = rows.sum(-1)
    return np.asarray(ac_chance((rows + columns) / (2 * n[..., None]), weights) * n * n)


def _brennan_prediger(rows: Array, columns: Array, weights: Array) -> Array:
    return np.asarray(bp_chance(rows, weights) * rows.sum(-1) ** 2)


def corrected(table: Array, weights: Array, chance: Chance) -> Array:
    """(po - pe) / (1 - pe) of each table, shape `(...)`, NaN where 1 - pe is 0.

    Everything is multiplied by n², so that tables of counts are exact: zero is zero.
    """
    n = table.sum((-1, -2))
    observed = (table * weights).sum((-1, -2))
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = chance(table.sum(-1), table.sum(-2), weights)
        room = n * n - expected
        # Beyond rounding of the two squares nothing is left: chance agrees as much as anything can.
        none = np.abs(room.real) <= 1e-12 * (n * n).real
        return np.where(none, np.nan, (n * observed - expected) / room)


def kappa_of(table: Array, weights: Array | None = None) -> Array:
    """Cohen's kappa of each table, shape `(...)`; `weights` as from `weight_matrix`."""
    return corrected(table, np.eye(table.shape[-1]) if weights is None else weights, _cohen)


def undefined_reason(table: Array) -> Reason:
    """Why a chance-corrected figure of this table is undefined."""
    if not table.sum():
        return "no_pairs"
    used = np.count_nonzero(table.sum(-1) + table.sum(-2))
    return "single_class" if used == 1 else "no_variance"


def kappa_parts(table: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """What kappa is the ratio of, in pairs: agreement beyond chance, and the room for it; 0 without a pair.

    Added up over tables, they give a kappa whose chance is that within each table.
    """
    credit = np.eye(table.shape[-1]) if weights is None else weights
    n = table.sum((-1, -2))
    expected = _cohen(table.sum(-1), table.sum(-2), credit) / np.where(n == 0, 1, n)
    return (table * credit).sum((-1, -2)) - expected, n - expected


def _figure(name: str, weights: Array, chance: Chance) -> Figure:
    size = len(weights)
    return Figure(
        name=name,
        compute=lambda sums: corrected(sums.reshape(*sums.shape[:-1], size, size), weights, chance),
        reason=lambda sums: undefined_reason(sums.reshape(size, size)),
        analytic=delta,
    )


def kappa_figure(weights: Array) -> Figure:
    """`cohen_kappa` of a K × K table; `weights` as from `weight_matrix`."""
    return _figure("Cohen's kappa", weights, _cohen)


def gwet_figure(weights: Array, *, weighted: bool) -> Figure:
    """`gwet_ac` of a K × K table; `weights` as from `weight_matrix`."""
    return _figure("Gwet's AC2" if weighted else "Gwet's AC1", weights, _gwet)


def _pair_estimate(
    name: str,
    pair: TableInput,
    weights: Weights,
    chance: Chance,
    options: IntervalOptions,
) -> Estimate:
    matrix = weight_matrix(weights, pair.scale, pair.size)
    words = [describe(weights), "" if pair.declared else "categories seen"]
    note = ", ".join(word for word in words if word)
    if chance in (_gwet, _brennan_prediger) and pair.size == 1:
        return Estimate.undefined(
            "single_category_scale", n=pair.units.n, method=name, n_missing=pair.n_missing
        )
    return estimate(
        _figure(name, matrix, chance),
        pair.units,
        options,
        n_missing=pair.n_missing,
        note=note,
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
    """Cohen's kappa: (po - pe) / (1 - pe), pe = Σ w_ij r_i c_j from each rater's own margins [1, 2].

    Both raters constant and equal: undefined (`single_class`). Both constant and different, or one constant:
    0.0. Unused categories keep their place in the weights. Quadratic weights on equally spaced values make it
    Lin's concordance with 1/n moments. The analytic interval is that of [3].

    Args:
        truth: Labels of one rater; None and NaN are missing, and drop the pair.
        pred: Labels of the other.
        scale: Declared categories; None takes those seen.
        weights: Credit for near misses: `"linear"`, `"quadratic"` on the scale's values, or a matrix.
        table: Counts, K × K, rows truth, instead of labels.
        **interval: See `CodedArguments`.

    References:
        [1] J. Cohen (1960), A coefficient of agreement for nominal scales, Educational and Psychological
            Measurement 20(1), 37-46, eq. 1.
        [2] J. Cohen (1968), Weighted kappa, Psychological Bulletin 70(4), 213-220.
        [3] J. L. Fleiss, J. Cohen, B. S. Everitt (1969), Large sample standard errors of kappa and weighted
            kappa, Psychological Bulletin 72(5), 323-327.
    """
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return _pair_estimate("Cohen's kappa", pair, weights, _cohen, options)


def scott_pi(
    truth: Iterable[Any] | None = None,
    pred: Iterable[Any] | None = None,
    *,
    scale: Scale | None = None,
    weights: Weights = None,
    table: Any = None,
    **interval: Unpack[CodedArguments],
) -> Estimate:
    """Scott's pi: as Cohen's kappa with pe from the mean of the two margins [1].

    Undefined where only one category occurs at all (`single_class`). Both raters constant and different:
    -1.0, where Cohen's kappa is 0.0, for the margins are pooled here. Arguments as in `cohen_kappa`.

    References:
        [1] W. A. Scott (1955), Reliability of content analysis: the case of nominal scale coding, Public
            Opinion Quarterly 19(3), 321-325.
    """
    options = CodedOptions(**interval)
    pair = read_pair(truth, pred, table, scale, options)
    return _pair_estimate("Scott's pi", pair, weights, _scott, options)


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
    """Gwet's AC1, with weights AC2: pe = Σ w · Σ π_k (1 - π_k) / (q (q - 1)) [1, 2].

    π_k is the mean share of category k, q the *declared* number of categories. All ratings in one of several
    declared categories: 1.0. One declared category: undefined (`single_category_scale`).

    Args:
        truth: Labels of one rater; None and NaN are missing, and drop the pair.
        pred: Labels of the other.
        scale: Declared categories; needed unless the labels are binary.
        weights: As in `cohen_kappa`.
        table: Counts, K × K, instead of labels.
        ratings: `(n_units, n_raters)` instead of two columns; None is missing. Units with one rating count
            in π alone.
        **interval: See `CodedArguments`.

    References:
        [1] K. L. Gwet (2008), Computing inter-rater reliability and its variance in the presence of high
            agreement, British Journal of Mathematical and Statistical Psychology 61, 29-48.
        [2] K. L. Gwet (2014), Handbook of inter-rater reliability, 4th ed., ch. 4-5.
    """
    options = CodedOptions(**interval)
    name = "Gwet's AC1" if weights is None else "Gwet's AC2"
    if ratings is not None:
        _alone(truth, pred, table)
        coefficient = CountCoefficient(name, ac_chance, needs_declared=True)
        return ratings_estimate(coefficient, ratings, scale, weights, options)
    pair = _declared(read_pair(truth, pred, table, scale, options), name)
    return _pair_estimate(name, pair, weights, _gwet, options)


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
    """Brennan and Prediger's coefficient, also S or PABAK: pe = Σ w / q², without weights 1/q [1, 2].

    q is the *declared* number of categories; one declared category: undefined (`single_category_scale`).
    Arguments as in `gwet_ac`.

    References:
        [1] R. L. Brennan, D. J. Prediger (1981), Coefficient kappa: some uses, misuses, and alternatives,
            Educational and Psychological Measurement 41, 687-699.
        [2] T. Byrt, J. Bishop, J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical
            Epidemiology 46(5), 423-429.
    """
    options = CodedOptions(**interval)
    name = "Brennan-Prediger"
    if ratings is not None:
        _alone(truth, pred, table)
        coefficient = CountCoefficient(name, bp_chance, needs_declared=True)
        return ratings_estimate(coefficient, ratings, scale, weights, options)
    pair = _declared(read_pair(truth, pred, table, scale, options), name)
    return _pair_estimate(name, pair, weights, _brennan_prediger, options)


def _alone(truth: object, pred: object, table: object) -> None:
    if truth is not None or pred is not None or table is not None:
        raise ArgumentError("ratings stands instead of truth, pred and table")


def _declared(pair: TableInput, name: str) -> TableInput:
    from_binary = pair.scale is not None and pair.size == 2 and pair.scale.labels == ("UNMET", "MET")
    if not (pair.declared or from_binary or pair.size == 0):
        raise ArgumentError(
            f"{name} depends on the number of categories, used or not; give scale=Nominal(labels) or "
            "Ordinal(labels)"
        )
    return pair
