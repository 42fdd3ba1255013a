"""Declaration of metrics: the decorator of their public functions, and what results show of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, ParamSpec, TypeAlias, TypedDict, Unpack, get_args

import numpy as np

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import NumberPairs, divide
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.estimation import Figure, delta, proportion, square
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.scales import Array

P = ParamSpec("P")

_OWN = "autorubric."
_SLACK = 1e-9

Needs: TypeAlias = Literal["labels", "numbers", "ratings", "scores", "samples", "probabilities"]
"""Input of a metric: two paired columns (`labels` or `numbers`), a table with one column per rater (`ratings`
for labels, `scores` for numbers), two unpaired `samples`, or the truth and category `probabilities`."""

Bounds: TypeAlias = tuple[float | None, float | None]

CATEGORICAL: tuple[Level, ...] = ("binary", "nominal", "ordinal")
ORDERED: tuple[Level, ...] = ("binary", "ordinal", "interval")
ALL_LEVELS: tuple[Level, ...] = (*CATEGORICAL, "interval")
SIGNED = (-1.0, 1.0)
"""Bounds of a correlation or a coefficient of agreement beyond chance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableMetric:
    """A metric as a function of confusion tables, from which all its values and intervals are computed.

    Attributes:
        name: Name in descriptions of methods.
        compute: Function from counts, shape `(…, K, K)` with the truth in rows, to values, shape `(…)`, NaN
            where undefined. If `weighted`, it also takes agreement weights, shape `(K, K)` or None. Not
            required for a proportion.
        reason: Reason why it is undefined if there are pairs.
        reason_of: Function from a table to the reason; None for always the same.
        bounds: Smallest and largest possible value; in results those of the metric.
        hits: Function from counts to the numerator, shape `(…)`, of a proportion; None for other metrics.
        trials: The same for the denominator.
        denominators: Function from an item's counts to its part in each denominator of the metric, shape
            `(…, m)`; None uses `trials` or, without it, the number of pairs.
        note: Function from a table to a note on the method.
        weighted: Whether it takes agreement weights.
        weighted_name: Name if weights are passed; empty for the same name.
        fewest: Smallest number of categories on which it is defined.
        has_interval: Whether it has intervals.
    """

    name: str
    compute: Callable[..., Array] | None = None
    reason: Reason = "no_pairs"
    reason_of: Callable[[Array], Reason] | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    hits: Callable[[Array], Array] | None = None
    trials: Callable[[Array], Array] = lambda tables: np.asarray(tables.sum((-1, -2)))
    denominators: Callable[[Array], Array] | None = None
    note: Callable[[Array], str] | None = None
    weighted: bool = False
    weighted_name: str = ""
    fewest: int = 1
    has_interval: bool = True

    def of(self, tables: Array, weights: Array | None = None) -> Array:
        """Compute the metric of each table, shape `(…)`; NaN where undefined."""
        if self.compute is not None:
            return np.asarray(self.compute(tables, weights) if self.weighted else self.compute(tables))
        assert self.hits is not None, f"{self.name} has neither compute nor hits"
        hits, trials = self.hits(tables), self.trials(tables)
        if isinstance(self.hits, _CheckedFunction) and (hits > trials + _SLACK).any():
            raise ArgumentError(f"metric {self.hits.key!r}: hits must be at most trials")
        return divide(hits, trials)

    def why_undefined(self, table: Array) -> Reason:
        """Return the reason why the metric of a table is undefined."""
        if not table.sum():
            return "no_pairs"
        return self.reason_of(table) if self.reason_of else self.reason

    def parts(self, tables: Array) -> Array:
        """Return each table's part in the denominators, shape `(…, m)`."""
        if self.denominators is not None:
            return np.asarray(self.denominators(tables))
        return np.asarray(self.trials(tables)[..., None])

    def figure(self, size: int, weights: Array | None = None, *, name: str = "") -> Figure:
        """Return the metric of sums that are the cells of a K × K table, with its intervals.

        Proportions have Wilson intervals (clusters: logit-t), other metrics smoothed bootstrap intervals.
        """
        settings: dict[str, Any] = {"analytic": delta}
        if self.hits is not None:
            settings = {
                "auto": "analytic",
                "analytic": proportion,
                "trials": lambda sums: self.trials(square(sums, size)),
            }
        return Figure(
            name=name or self.name,
            compute=lambda sums: self.of(square(sums, size), weights),
            reason=lambda sums: self.why_undefined(sums.reshape(size, size)),
            bounds=self.bounds,
            **settings,
        )


MeanInterval: TypeAlias = Literal["item effects", "logit-t", "around the value", "percentile"]
"""Interval of a mean over criteria: logit-t from the effects of items or with the resamples' standard error,
smoothed resamples around the value, or percentiles of the resamples."""

Page: TypeAlias = Literal["overview", "criteria", "judges"]
Result: TypeAlias = Literal["agreement", "report", "run", "run_mean", "run_pooled"]
"""Parts of results; see `Shown.where`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricDisplay:
    """What results, tables, plots and pages contain of a metric.

    Attributes:
        table: The metric as a function of confusion tables; None for a metric of numbers.
        key: Name in results; empty for the name of the function.
        label: Heading in tables; empty for the key with spaces.
        title: Name on pages; empty for the label.
        column: Heading of columns on pages; empty for the label with a capital.
        tile: Heading of the tile on the first page of a report; empty for the column with `mean of criteria`.
        pages: Pages of a report that have a column or tile.
        explanation: Sentence, without its period, that explains the column.
        at: Levels of the metric at which results contain it.
        where: Levels by part of the results, without the parts that do not contain it; empty for all parts.
            The parts are `agreement` (and each criterion of `judge_report`), `report` (its means and pooled
            values), `run` (each criterion of `compute_metrics`), `run_mean` and `run_pooled`.
        order: Position among all metrics.
        mean_interval: Interval of means over criteria; None chooses by the bounds.
        per_option: Function from the position of a category to the metric of that category against others.
        moments: Function from the sums of pairs of numbers to values, for means over criteria.
        numbers: Function that computes it from pairs of numbers.
        ranks: Function that computes it from ranked pairs.
        bounds: Smallest and largest possible value; always those of the metric.
    """

    table: TableMetric | None = None
    key: str = ""
    label: str = ""
    title: str = ""
    column: str = ""
    tile: str = ""
    pages: tuple[Page, ...] = ("criteria", "judges")
    explanation: str = ""
    at: tuple[Level, ...] = ALL_LEVELS
    where: Mapping[Result, tuple[Level, ...]] = field(default_factory=dict)
    order: int = 1000
    mean_interval: MeanInterval | None = None
    per_option: Callable[[int], TableMetric] | None = None
    moments: Callable[[Array], Array] | None = None
    numbers: Callable[[NumberPairs, IntervalOptions], Estimate] | None = None
    ranks: Callable[..., Estimate] | None = None
    bounds: Bounds = (None, None)

    def complete(self, name: str, levels: tuple[Level, ...], bounds: Bounds) -> MetricDisplay:
        """Return the declaration with its defaults filled in, for a metric with these levels and bounds."""
        parts: tuple[Result, ...] = get_args(Result)
        if self.table is None:
            parts = ("agreement", "report") if self.moments else ("agreement",)
        where = self.where or dict.fromkeys(parts, self.at)
        key = self.key or name
        label = self.label or key.replace("_", " ")
        column = self.column or label[:1].upper() + label[1:]
        by_bounds: dict[Bounds, MeanInterval] = {(0.0, 1.0): "logit-t", SIGNED: "around the value"}
        low, high = bounds
        limits = (-math.inf if low is None else low, math.inf if high is None else high)
        return replace(
            self,
            table=self.table and replace(self.table, bounds=limits),
            key=key,
            label=label,
            title=self.title or label,
            column=column,
            tile=self.tile or f"{column}, mean of criteria",
            where={
                part: tuple(one for one in levels if part in parts and one in where.get(part, ()))
                for part in get_args(Result)
            },
            mean_interval=self.mean_interval or by_bounds.get(bounds, "percentile"),
            bounds=bounds,
        )

    def with_checks(self) -> MetricDisplay:
        """Return the declaration with checks of the values that the functions of its table return."""
        table = self.table
        if table is None:
            return self
        limits = {"compute": table.bounds, "hits": (0.0, math.inf), "trials": (0.0, math.inf)}
        parts: dict[str, Any] = {
            part: _CheckedFunction(self.key, part, function, limits[part])
            for part in limits
            if (function := getattr(table, part)) is not None
        }
        return replace(self, table=replace(table, **parts))

    @property
    def needs_order(self) -> bool:
        """Whether only ordered categories have the metric, so not with abstention as a category."""
        return "ordinal" in self.where["agreement"] and "nominal" not in self.where["agreement"]


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
        shown: What results contain of the metric; None if they do not contain it.
    """

    name: str
    needs: Needs
    levels: tuple[Level, ...]
    bounds: Bounds
    perfect: float = 1.0
    symmetric: bool = True
    function: Callable[..., Estimate]
    reference: str
    shown: MetricDisplay | None = None
    one_class: bool = False
    weighted: bool = False


DECLARED: dict[str, list[MetricSpec]] = {}
"""The declared metrics of each module, by the name of the module."""

SHOWN: dict[str, MetricDisplay] = {}
"""Metrics of the library that results contain, by key."""

PACKAGE_KEYS: set[str] = set()
"""Keys of the metrics of installed packages that results contain."""


class _Properties(TypedDict, total=False):
    perfect: float
    symmetric: bool
    one_class: bool
    weighted: bool


def metric(
    *,
    inputs: Needs = "labels",
    levels: tuple[Level, ...] = CATEGORICAL,
    reference: str,
    bounds: Bounds = (0.0, 1.0),
    shown: MetricDisplay | None = None,
    **properties: Unpack[_Properties],
) -> Callable[[Callable[P, Estimate]], Callable[P, Estimate]]:
    """Declare that a public function computes a metric.

    See `MetricSpec` for the arguments; the default is a metric of two columns of categorical labels. Results,
    tables and pages contain the metric as declared in `shown` if it is one of the library, or if an installed
    package declares its function as an entry point.

    Raises:
        ArgumentError: If the declaration is invalid.
    """

    def declare(function: Callable[P, Estimate]) -> Callable[P, Estimate]:
        name, is_own = function.__name__, function.__module__.startswith(_OWN)
        completed = None if shown is None else _completed(shown, name, levels, bounds)
        if completed is not None and is_own:
            SHOWN[completed.key] = completed
        elif completed is not None:
            completed = completed.with_checks()
        declared = MetricSpec(
            name=name,
            needs=inputs,
            levels=levels,
            bounds=bounds,
            function=function,
            reference=reference,
            shown=completed,
            **properties,
        )
        DECLARED.setdefault(function.__module__, []).append(declared)
        return function

    return declare


def show(shown: MetricDisplay, name: str, levels: tuple[Level, ...], bounds: Bounds = (0.0, 1.0)) -> None:
    """Declare that results contain a metric of the library that has no function."""
    completed = _completed(shown, name, levels, bounds)
    SHOWN[completed.key] = completed


def _completed(shown: MetricDisplay, name: str, levels: tuple[Level, ...], bounds: Bounds) -> MetricDisplay:
    """Check a declaration, and return it with its defaults."""
    completed, table = shown.complete(name, levels, bounds), shown.table
    if not (table or completed.numbers or completed.ranks):
        raise ArgumentError(
            f"metric {name!r}: shown must have a table; pass shown=MetricDisplay(table=TableMetric(…))"
        )
    if table is not None and table.compute is None and table.hits is None:
        raise ArgumentError(f"metric {name!r}: TableMetric must have compute or, for a proportion, hits")
    for what, given, known in (
        ("levels", levels, get_args(Level)),
        ("where", shown.where, get_args(Result)),
        ("pages", shown.pages, get_args(Page)),
    ):
        if unknown := [one for one in given if one not in known]:
            allowed = ", ".join(map(repr, known))
            raise ArgumentError(f"metric {name!r}: {what} must contain only {allowed}; got {unknown[0]!r}")
    return completed


@dataclass(frozen=True, slots=True)
class _CheckedFunction:
    """A function of tables in a package's metric; a mistake in it is an error that names the metric."""

    key: str
    part: str  # of the metric: compute, hits or trials
    function: Callable[..., Array]
    limits: tuple[float, float]

    def __call__(self, tables: Array, *weights: Array | None) -> Array:
        try:
            values = np.asarray(self.function(tables, *weights), dtype=float)
        except Exception as error:
            raise self._error(f"raised {type(error).__name__}: {error}") from error
        shape = tables.shape[:-2]
        if values.shape != shape:
            raise self._error(f"must return shape {shape} for tables {tables.shape}; got {values.shape}")
        low, high = self.limits
        wrong = np.isinf(values) | (values < low - _SLACK) | (values > high + _SLACK)
        if wrong.any():
            raise self._error(
                f"must return numbers from {low:g} to {high:g}, or NaN; got {values[wrong][0]:g}"
            )
        return values

    def _error(self, message: str) -> ArgumentError:
        return ArgumentError(f"metric {self.key!r}: {self.part} {message}")
