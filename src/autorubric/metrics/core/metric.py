"""Declaration of metrics: the decorator of their public functions, and the specifications that it records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, ParamSpec, TypeAlias, TypedDict, Unpack

from autorubric.criteria.values import Level
from autorubric.metrics.core.estimate import Estimate

P = ParamSpec("P")

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
    perfect: float = 1.0
    symmetric: bool = True
    function: Callable[..., Estimate]
    reference: str
    one_class: bool = False
    weighted: bool = False


CATEGORICAL: tuple[Level, ...] = ("binary", "nominal", "ordinal")
ORDERED: tuple[Level, ...] = ("binary", "ordinal", "interval")
ALL_LEVELS: tuple[Level, ...] = (*CATEGORICAL, "interval")
SIGNED = (-1.0, 1.0)
"""Bounds of a correlation or a coefficient of agreement beyond chance."""

DECLARED: dict[str, list[MetricSpec]] = {}
"""The declared metrics of each module, by the name of the module."""


class _Properties(TypedDict, total=False):
    perfect: float
    symmetric: bool
    one_class: bool
    weighted: bool


def metric(
    *,
    inputs: Needs,
    levels: tuple[Level, ...],
    reference: str,
    bounds: tuple[float | None, float | None] = (0.0, 1.0),
    **properties: Unpack[_Properties],
) -> Callable[[Callable[P, Estimate]], Callable[P, Estimate]]:
    """Declare that a public function computes a metric; see `MetricSpec` for the arguments."""

    def declare(function: Callable[P, Estimate]) -> Callable[P, Estimate]:
        declared = MetricSpec(
            name=function.__name__,
            needs=inputs,
            levels=levels,
            bounds=bounds,
            function=function,
            reference=reference,
            **properties,
        )
        DECLARED.setdefault(function.__module__, []).append(declared)
        return function

    return declare
