"""Registry of the metrics that the families declare with `@metric`; the invariance tests cover every row."""

from __future__ import annotations

from autorubric.errors import ArgumentError
from autorubric.metrics.core.metric import DECLARED, MetricSpec
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
    pairwise,
)

_FAMILIES = (
    classification,
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


def spec(name: str) -> MetricSpec:
    """Return the specification of the metric called `name`.

    Raises:
        ArgumentError: If no metric has this name.
    """
    for one in SPECS:
        if one.name == name:
            return one
    raise ArgumentError(f"unknown metric {name!r}; available: {', '.join(one.name for one in SPECS)}")
