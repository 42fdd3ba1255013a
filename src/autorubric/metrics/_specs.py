"""Registry of metrics with their inputs, bounds and references.

To add a metric, write its function with a reference and add a row here; the invariance tests then cover it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from autorubric.errors import ArgumentError
from autorubric.metrics._chance import brennan_prediger, cohen_kappa, gwet_ac, scott_pi
from autorubric.metrics._classification import accuracy, adjacent_accuracy, balanced_accuracy, macro_f1, mcc
from autorubric.metrics._concordance import kendall_w
from autorubric.metrics._correlation import kendall_tau_b, lin_ccc, pearson, spearman
from autorubric.metrics._errors import mae, rmse
from autorubric.metrics._estimate import Estimate
from autorubric.metrics._icc import cronbach_alpha, icc
from autorubric.metrics._krippendorff import krippendorff_alpha
from autorubric.metrics._many_raters import conger_kappa, fleiss_kappa, percent_agreement
from autorubric.metrics._one_class import (
    f1,
    negative_agreement,
    positive_agreement,
    precision,
    recall,
    specificity,
)
from autorubric.metrics._preferences._pair_figures import pairwise_accuracy
from autorubric.metrics._probabilities._auroc import auroc
from autorubric.metrics._probabilities._brier_parts import brier, log_loss
from autorubric.metrics._probabilities._calibration import ece
from autorubric.metrics.distribution import js_distance, wasserstein_distance
from autorubric.values import Level

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
        bounds: Smallest and largest possible value; None for a missing bound.
        perfect: Value of the metric if both inputs are identical and not constant.
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


def _share(
    name: str, function: Callable[..., Estimate], reference: str, *, symmetric: bool = False
) -> MetricSpec:
    return MetricSpec(
        name=name, needs="labels", levels=_CATEGORICAL, bounds=(0.0, 1.0), perfect=1.0, symmetric=symmetric,
        function=function, reference=reference,
    )  # fmt: skip


def _one_class(
    name: str, function: Callable[..., Estimate], reference: str, *, symmetric: bool
) -> MetricSpec:
    return MetricSpec(
        name=name, needs="labels", levels=_CATEGORICAL, bounds=(0.0, 1.0), perfect=1.0, symmetric=symmetric,
        function=function, reference=reference, one_class=True,
    )  # fmt: skip


def _chance(name: str, function: Callable[..., Estimate], reference: str) -> MetricSpec:
    return MetricSpec(
        name=name, needs="labels", levels=_CATEGORICAL, bounds=(-1.0, 1.0), perfect=1.0, symmetric=True,
        function=function, reference=reference, weighted=True,
    )  # fmt: skip


def _numbers(
    name: str,
    function: Callable[..., Estimate],
    reference: str,
    low: float,
    high: float | None,
    perfect: float,
) -> MetricSpec:
    return MetricSpec(
        name=name, needs="numbers", levels=_ORDERED, bounds=(low, high), perfect=perfect, symmetric=True,
        function=function, reference=reference,
    )  # fmt: skip


def _ratings(name: str, function: Callable[..., Estimate], reference: str, low: float) -> MetricSpec:
    return MetricSpec(
        name=name, needs="ratings", levels=_CATEGORICAL, bounds=(low, 1.0), perfect=1.0, symmetric=True,
        function=function, reference=reference, weighted=True,
    )  # fmt: skip


def _scores(name: str, function: Callable[..., Estimate], reference: str, low: float | None) -> MetricSpec:
    return MetricSpec(
        name=name, needs="scores", levels=_ORDERED, bounds=(low, 1.0), perfect=1.0, symmetric=True,
        function=function, reference=reference,
    )  # fmt: skip


def _probabilities(
    name: str, function: Callable[..., Estimate], reference: str, high: float | None, perfect: float
) -> MetricSpec:
    return MetricSpec(
        name=name, needs="probabilities", levels=_CATEGORICAL, bounds=(0.0, high), perfect=perfect,
        symmetric=False, function=function, reference=reference,
    )  # fmt: skip


SPECS: tuple[MetricSpec, ...] = (
    _share("accuracy", accuracy, "share of agreement", symmetric=True),
    _share("balanced_accuracy", balanced_accuracy, "Brodersen et al. 2010"),
    _share("macro_f1", macro_f1, "mean one-against-rest F1", symmetric=True),
    MetricSpec(
        name="mcc", needs="labels", levels=_CATEGORICAL, bounds=(-1.0, 1.0), perfect=1.0, symmetric=True,
        function=mcc, reference="Matthews 1975; Gorodkin 2004",
    ),
    MetricSpec(
        name="adjacent_accuracy", needs="labels", levels=("ordinal",), bounds=(0.0, 1.0), perfect=1.0,
        symmetric=True, function=adjacent_accuracy, reference="share within k places",
    ),
    _one_class("precision", precision, "TP / (TP + FP)", symmetric=False),
    _one_class("recall", recall, "TP / (TP + FN)", symmetric=False),
    _one_class("specificity", specificity, "TN / (TN + FP)", symmetric=False),
    _one_class("f1", f1, "2 TP / (2 TP + FP + FN)", symmetric=True),
    _one_class("positive_agreement", positive_agreement, "Feinstein and Cicchetti 1990", symmetric=True),
    _one_class("negative_agreement", negative_agreement, "Feinstein and Cicchetti 1990", symmetric=True),
    _chance("cohen_kappa", cohen_kappa, "Cohen 1960, 1968"),
    _chance("scott_pi", scott_pi, "Scott 1955"),
    _chance("gwet_ac", gwet_ac, "Gwet 2008, 2014"),
    _chance("brennan_prediger", brennan_prediger, "Brennan and Prediger 1981"),
    _numbers("pearson", pearson, "Fisher 1921", -1.0, 1.0, 1.0),
    _numbers("spearman", spearman, "Bonett and Wright 2000", -1.0, 1.0, 1.0),
    _numbers("kendall_tau_b", kendall_tau_b, "Kendall 1945", -1.0, 1.0, 1.0),
    _numbers("lin_ccc", lin_ccc, "Lin 1989", -1.0, 1.0, 1.0),
    _numbers("rmse", rmse, "root mean square error", 0.0, None, 0.0),
    _numbers("mae", mae, "mean absolute error", 0.0, None, 0.0),
    _numbers("pairwise_accuracy", pairwise_accuracy, "Deutsch, Foster and Freitag 2023", 0.0, 1.0, 1.0),
    _ratings("fleiss_kappa", fleiss_kappa, "Fleiss 1971; Gwet 2014", -1.0),
    _ratings("conger_kappa", conger_kappa, "Conger 1980; Gwet 2014", -1.0),
    _ratings("percent_agreement", percent_agreement, "share of agreeing pairs", 0.0),
    MetricSpec(
        name="krippendorff_alpha", needs="ratings", levels=(*_CATEGORICAL, "interval"), bounds=(-1.0, 1.0),
        perfect=1.0, symmetric=True, function=krippendorff_alpha, reference="Krippendorff 2004, 2011",
    ),
    _scores("icc", icc, "Shrout and Fleiss 1979; McGraw and Wong 1996", None),
    _scores("cronbach_alpha", cronbach_alpha, "Cronbach 1951; Feldt 1965", None),
    _scores("kendall_w", kendall_w, "Kendall and Babington Smith 1939", 0.0),
    MetricSpec(
        name="wasserstein_distance", needs="samples", levels=_ORDERED, bounds=(0.0, None), perfect=0.0,
        symmetric=True, function=wasserstein_distance, reference="Rubner, Tomasi and Guibas 2000",
    ),
    MetricSpec(
        name="js_distance", needs="samples", levels=(*_CATEGORICAL, "interval"), bounds=(0.0, 1.0),
        perfect=0.0, symmetric=True, function=js_distance, reference="Lin 1991; Endres and Schindelin 2003",
    ),
    _probabilities("brier", brier, "Brier 1950", 2.0, 0.0),
    _probabilities("log_loss", log_loss, "Good 1952", None, 0.0),
    _probabilities("ece", ece, "Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017", 1.0, 0.0),
    _probabilities("auroc", auroc, "Hanley and McNeil 1982; DeLong et al. 1988", 1.0, 1.0),
)  # fmt: skip


def spec(name: str) -> MetricSpec:
    """Return the specification of the metric with this name.

    Raises:
        ArgumentError: If no metric has this name.
    """
    for one in SPECS:
        if one.name == name:
            return one
    raise ArgumentError(f"unknown metric {name!r}; available: {', '.join(one.name for one in SPECS)}")
