"""Registry of the metrics that the families declare with `@metric`; the invariance tests cover every row."""

from __future__ import annotations

from functools import cache

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core.metric import DECLARED, SHOWN, MetricDisplay, MetricSpec
from autorubric.metrics.figures import (
    auroc,
    brier,
    calibration,
    classification,
    correlation,
    distributions,
    icc,
    kappa,
    krippendorff,
    many_raters,
    one_vs_rest,
    pairwise,
)
from autorubric.support.lazy import METRICS_GROUP, extension_names, load_extension

_FAMILIES = (
    classification,
    one_vs_rest,
    kappa,
    correlation,
    pairwise,
    many_raters,
    krippendorff,
    icc,
    distributions,
    brier,
    calibration,
    auroc,
)


SPECS: tuple[MetricSpec, ...] = tuple(one for family in _FAMILIES for one in DECLARED[family.__name__])


@cache
def shown_metrics() -> tuple[MetricDisplay, ...]:
    """Return the metrics that results contain, in their order, with those of installed packages last."""
    for name in extension_names(METRICS_GROUP):
        spec(name)
    return tuple(sorted(SHOWN.values(), key=lambda one: one.order))


@cache
def metrics_over(level: Level) -> tuple[MetricDisplay, ...]:
    """Return the metrics of confusion tables that are combined over criteria of a level."""
    return tuple(one for one in shown_metrics() if level in one.where["report"] and one.table)


@cache
def shown_metric(key: str) -> MetricDisplay:
    """Return a metric by its name in results."""
    return next(one for one in shown_metrics() if one.key == key)


def spec(name: str) -> MetricSpec:
    """Return the specification of a metric of the library or of an installed package.

    Raises:
        ArgumentError: If no metric has this name.
    """
    for one in SPECS:
        if one.name == name:
            return one
    if function := load_extension(METRICS_GROUP, name):
        for one in DECLARED.get(function.__module__, ()):
            if one.function is function:
                return one
        raise ArgumentError(
            f"{name!r} of the entry point group {METRICS_GROUP!r} is not declared with @metric"
        )
    known = [*(one.name for one in SPECS), *extension_names(METRICS_GROUP)]
    raise ArgumentError(f"unknown metric {name!r}; available: {', '.join(known)}")
