"""Registry of the metrics that the families declare with `@metric`; the invariance tests cover every row."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from functools import cache

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError, MissingDependencyError
from autorubric.metrics.core.metric import DECLARED, PACKAGE_KEYS, SHOWN, MetricDisplay, MetricSpec
from autorubric.metrics.core.result import MetricValues
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
from autorubric.support.extensions import METRICS_GROUP, extension_names, extension_packages, load_extension

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
    """Return the metrics of results in order, those of packages last; unusable ones are omitted."""
    found = dict(SHOWN)
    taken = {name for kind in _result_classes(MetricValues) for name in dir(kind)}
    for name in extension_names(METRICS_GROUP):
        try:
            shown = spec(name).shown
            if shown is not None:
                _check_key(shown.key, name, taken | found.keys())
                found[name] = shown
                PACKAGE_KEYS.add(name)
        except (ArgumentError, MissingDependencyError) as error:
            package = ", ".join(extension_packages(METRICS_GROUP, name))
            warnings.warn(
                f"results do not contain the metric {name!r} of {package}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
    return tuple(sorted(found.values(), key=lambda one: one.order))


def _result_classes(kind: type[MetricValues]) -> Iterator[type[MetricValues]]:
    for each in kind.__subclasses__():
        yield each
        yield from _result_classes(each)


def _check_key(key: str, name: str, taken: Collection[str]) -> None:
    if key != name:
        raise ArgumentError(f"its entry point must have the name of the metric in results, {key!r}")
    if not key.isidentifier() or key.startswith("_"):
        raise ArgumentError("its name must be a Python identifier that does not begin with '_'")
    if {key, f"criterion_{key}", f"mean_{key}"} & set(taken):
        raise ArgumentError("results already have an attribute of this name; rename the metric")


@cache
def metrics_over(level: Level) -> tuple[MetricDisplay, ...]:
    """Return the metrics of confusion tables that are combined over criteria of a level."""
    return tuple(one for one in shown_metrics() if level in one.where["report"] and one.table)


@cache
def shown_metric(key: str) -> MetricDisplay:
    return next(one for one in shown_metrics() if one.key == key)


def spec(name: str) -> MetricSpec:
    """Return the specification of a metric of the library or of an installed package.

    Raises:
        ArgumentError: If no metric has this name.
    """
    for one in SPECS:
        if one.name == name:
            return one
    if (function := load_extension(METRICS_GROUP, name)) is not None:
        for one in DECLARED.get(getattr(function, "__module__", ""), ()):
            if one.function is function:
                return one
        raise ArgumentError(
            f"{name!r} of the entry point group {METRICS_GROUP!r} is not declared with @metric"
        )
    known = [*(one.name for one in SPECS), *extension_names(METRICS_GROUP)]
    raise ArgumentError(f"unknown metric {name!r}; available: {', '.join(known)}")
