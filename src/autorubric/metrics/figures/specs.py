"""Registry of metrics with their inputs, bounds and references.

To add a metric, write its function with a reference and add a row here; the invariance tests then cover it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.figures.auroc import auroc
from autorubric.metrics.figures.brier import brier, log_loss
from autorubric.metrics.figures.calibration import ece
from autorubric.metrics.figures.classification import (
    accuracy,
    adjacent_accuracy,
    balanced_accuracy,
    f1,
    macro_f1,
    mcc,
    negative_agreement,
    positive_agreement,
    precision,
    recall,
    specificity,
)
from autorubric.metrics.figures.correlation import kendall_tau_b, lin_ccc, mae, pearson, rmse, spearman
from autorubric.metrics.figures.distributions import js_distance, wasserstein_distance
from autorubric.metrics.figures.icc import cronbach_alpha, icc, kendall_w
from autorubric.metrics.figures.kappa import brennan_prediger, cohen_kappa, gwet_ac, scott_pi
from autorubric.metrics.figures.krippendorff import krippendorff_alpha
from autorubric.metrics.figures.many_raters import conger_kappa, fleiss_kappa, percent_agreement
from autorubric.metrics.figures.pairwise import pairwise_accuracy

Needs: TypeAlias = Literal["labels", "numbers", "ratings", "scores", "samples", "probabilities"]
"""Input of a metric: two paired columns (`labels` or `numbers`), a table with one column per rater (`ratings`
for labels, `scores` for numbers), two unpaired `samples`, or the truth and category `probabilities`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """Specification of a metric.

    Attributes:
        name: Name of the metric in `autorubric.metrics`.
        needs: Kind of input that the metric takes.
        levels: Measurement levels at which the metric is meaningful.
        bounds: Smallest and largest possible value; None if there is no such bound.
        perfect: Value of the metric for identical, non-constant inputs.
        symmetric: Whether swapping the inputs leaves the value unchanged.
        one_class: Whether the metric depends on a positive category.
        weighted: Whether the metric accepts agreement weights.
        function: Public function that computes the metric.
        reference: Source or formula of the metric.
    """

    name: str
    needs: Needs
    levels: tuple[Level, ...]
    bounds: tuple[float | None, float | None]
    perfect: float
    symmetric: bool
    function: Callable[..., Estimate]
    reference: str
    one_class: bool = False
    weighted: bool = False


_CATEGORICAL: tuple[Level, ...] = ("binary", "nominal", "ordinal")
_ORDERED: tuple[Level, ...] = ("binary", "ordinal", "interval")
_ALL: tuple[Level, ...] = (*_CATEGORICAL, "interval")
_Bounds: TypeAlias = tuple[float | None, float | None]
_UNIT: _Bounds = (0.0, 1.0)
_SIGNED: _Bounds = (-1.0, 1.0)
_BELOW_ONE: _Bounds = (None, 1.0)
_POSITIVE: _Bounds = (0.0, None)


def _metric(
    function: Callable[..., Estimate],
    reference: str,
    needs: Needs,
    levels: tuple[Level, ...],
    bounds: _Bounds,
    **properties: Any,
) -> MetricSpec:
    """Return the spec of a function, by default of a symmetric metric with the perfect value 1."""
    return MetricSpec(
        name=function.__name__, function=function, reference=reference, needs=needs, levels=levels,
        bounds=bounds, **({"perfect": 1.0, "symmetric": True} | properties),
    )  # fmt: skip


SPECS: tuple[MetricSpec, ...] = (
    _metric(accuracy, "share of agreement", "labels", _CATEGORICAL, _UNIT),
    _metric(balanced_accuracy, "Brodersen et al. 2010", "labels", _CATEGORICAL, _UNIT, symmetric=False),
    _metric(macro_f1, "mean one-against-rest F1", "labels", _CATEGORICAL, _UNIT),
    _metric(mcc, "Matthews 1975; Gorodkin 2004", "labels", _CATEGORICAL, _SIGNED),
    _metric(adjacent_accuracy, "share within k places", "labels", ("ordinal",), _UNIT),
    _metric(precision, "TP / (TP + FP)", "labels", _CATEGORICAL, _UNIT, symmetric=False, one_class=True),
    _metric(recall, "TP / (TP + FN)", "labels", _CATEGORICAL, _UNIT, symmetric=False, one_class=True),
    _metric(specificity, "TN / (TN + FP)", "labels", _CATEGORICAL, _UNIT, symmetric=False, one_class=True),
    _metric(f1, "2 TP / (2 TP + FP + FN)", "labels", _CATEGORICAL, _UNIT, one_class=True),
    _metric(
        positive_agreement, "Feinstein and Cicchetti 1990", "labels", _CATEGORICAL, _UNIT, one_class=True
    ),
    _metric(
        negative_agreement, "Feinstein and Cicchetti 1990", "labels", _CATEGORICAL, _UNIT, one_class=True
    ),
    _metric(cohen_kappa, "Cohen 1960, 1968", "labels", _CATEGORICAL, _SIGNED, weighted=True),
    _metric(scott_pi, "Scott 1955", "labels", _CATEGORICAL, _SIGNED, weighted=True),
    _metric(gwet_ac, "Gwet 2008, 2014", "labels", _CATEGORICAL, _SIGNED, weighted=True),
    _metric(brennan_prediger, "Brennan and Prediger 1981", "labels", _CATEGORICAL, _SIGNED, weighted=True),
    _metric(pearson, "Fisher 1921", "numbers", _ORDERED, _SIGNED),
    _metric(spearman, "Bonett and Wright 2000", "numbers", _ORDERED, _SIGNED),
    _metric(kendall_tau_b, "Kendall 1945", "numbers", _ORDERED, _SIGNED),
    _metric(lin_ccc, "Lin 1989", "numbers", _ORDERED, _SIGNED),
    _metric(rmse, "root mean square error", "numbers", _ORDERED, _POSITIVE, perfect=0.0),
    _metric(mae, "mean absolute error", "numbers", _ORDERED, _POSITIVE, perfect=0.0),
    _metric(pairwise_accuracy, "Deutsch, Foster and Freitag 2023", "numbers", _ORDERED, _UNIT),
    _metric(fleiss_kappa, "Fleiss 1971; Gwet 2014", "ratings", _CATEGORICAL, _SIGNED, weighted=True),
    _metric(conger_kappa, "Conger 1980; Gwet 2014", "ratings", _CATEGORICAL, _SIGNED, weighted=True),
    _metric(percent_agreement, "share of agreeing pairs", "ratings", _CATEGORICAL, _UNIT, weighted=True),
    _metric(krippendorff_alpha, "Krippendorff 2004, 2011", "ratings", _ALL, _SIGNED),
    _metric(icc, "Shrout and Fleiss 1979; McGraw and Wong 1996", "scores", _ORDERED, _BELOW_ONE),
    _metric(cronbach_alpha, "Cronbach 1951; Feldt 1965", "scores", _ORDERED, _BELOW_ONE),
    _metric(kendall_w, "Kendall and Babington Smith 1939", "scores", _ORDERED, _UNIT),
    _metric(
        wasserstein_distance, "Rubner, Tomasi and Guibas 2000", "samples", _ORDERED, _POSITIVE, perfect=0.0
    ),
    _metric(js_distance, "Lin 1991; Endres and Schindelin 2003", "samples", _ALL, _UNIT, perfect=0.0),
    _metric(brier, "Brier 1950", "probabilities", _CATEGORICAL, (0.0, 2.0), perfect=0.0, symmetric=False),
    _metric(log_loss, "Good 1952", "probabilities", _CATEGORICAL, _POSITIVE, perfect=0.0, symmetric=False),
    _metric(
        ece,
        "Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017",
        "probabilities",
        _CATEGORICAL,
        _UNIT,
        perfect=0.0,
        symmetric=False,
    ),
    _metric(
        auroc,
        "Hanley and McNeil 1982; DeLong et al. 1988",
        "probabilities",
        _CATEGORICAL,
        _UNIT,
        symmetric=False,
    ),
)


def spec(name: str) -> MetricSpec:
    """Return the specification of the metric called `name`.

    Raises:
        ArgumentError: If no metric has this name.
    """
    for one in SPECS:
        if one.name == name:
            return one
    raise ArgumentError(f"unknown metric {name!r}; available: {', '.join(one.name for one in SPECS)}")
