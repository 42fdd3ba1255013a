"""Units that are drawn with replacement, and the options of intervals. Since metrics are functions of sums, a
resample takes a single matrix product."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypedDict, get_args

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import is_rounding
from autorubric.metrics.core.scales import Array, Codes

Compute: TypeAlias = Callable[[Array], Array]
"""A function that maps sums of shape `(..., d)` to values of shape `(...)`, NaN where undefined."""

_CHUNK_CELLS = 4_000_000
_CACHED_CELLS = 65_536
_CELLS_AT_ONCE = 500_000
_ROWS_AT_ONCE = 256
_INDEX_DRAW_FROM = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units that are drawn with replacement: cells of a table, items or clusters.

    Equal units are stored once. A metric receives the sum of the drawn `sums` or, if it is computed from
    ranks, how often each observation was drawn.
    """

    counts: Codes  # number of equal units of each kind, shape `(u,)`
    n: int  # total number of observations in all units
    # contribution of each unit, shape `(u, d)`; None if unit j contributes 1 to sum j
    sums: Array | None = None
    # unit of each observation, shape `(n,)`; only for metrics that need weights per observation
    gather: Codes | None = None
    clustered: bool = False  # whether a unit may contain several observations
    # Probability that the pseudo-unit of the smoothed bootstrap is of each kind, shape `(u,)`. Kinds that do
    # not occur in the data have a count of 0. None for tables, whose cells are equally likely.
    prior: Array | None = None

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    def aggregate(self, weights: Array) -> Array:
        """Compute the sums of resamples, shape `(r, d)`, from draw counts of shape `(r, u)`."""
        if self.gather is not None:
            return np.take(weights, self.gather, axis=-1)
        return weights if self.sums is None else weights @ self.sums

    def total(self) -> Array:
        """Compute the sums over all units, shape `(d,)`."""
        if self.sums is not None and self.gather is None:
            # einsum, because starting the threads of a matrix product would cost more than this small sum.
            return np.asarray(np.einsum("u,ud->d", self.counts, self.sums))
        return self.aggregate(self.counts.astype(float))


def row_units(sums: Array, cluster: Codes | None, counts: Codes | None = None) -> Units:
    """Return one sampling unit per row of sums, or per cluster; `counts` is the multiplicity of each row."""
    if cluster is None:
        counts = np.ones(len(sums), dtype=np.int64) if counts is None else counts
        return Units(counts=counts, n=int(counts.sum()), sums=sums)
    n_clusters = int(cluster.max(initial=-1)) + 1
    by_cluster = np.empty((n_clusters, sums.shape[1]))
    for place, column in enumerate(sums.T):
        by_cluster[:, place] = np.bincount(cluster, weights=column, minlength=n_clusters)
    ones = np.ones(n_clusters, dtype=np.int64)
    return Units(counts=ones, n=len(sums), sums=by_cluster, clustered=True)


def weighted_units(n: int, cluster: Codes | None, counts: Codes | None = None) -> Units:
    """Return sampling units for metrics that need draw counts; `counts` is the multiplicity of each unit."""
    if cluster is None and counts is not None:
        return Units(counts=counts, n=int(counts.sum()))
    members = np.arange(n) if cluster is None else cluster
    ones = np.ones(int(members.max(initial=-1)) + 1, dtype=np.int64)
    return Units(counts=ones, n=n, gather=members, clustered=cluster is not None)


def with_prior(units: Units, chances: Array, sums: Array | None = None) -> Units:
    """Add the possible pseudo-units, which only the smoothed bootstrap draws.

    Units of draw counts have no `sums`; their pseudo-units are the last entries of the resamples' sums.
    """
    n_kinds, n_more, gather = len(units.counts), len(chances), units.gather
    return replace(
        units,
        counts=np.append(units.counts, np.zeros(n_more, dtype=np.int64)),
        sums=None if units.sums is None or sums is None else np.concatenate([units.sums, sums]),
        gather=None if gather is None else np.append(gather, n_kinds + np.arange(n_more)),
        prior=np.append(np.zeros(n_kinds), chances),
    )


def replicates(
    units: Units, compute: Compute, n_resamples: int, rng: np.random.Generator, *, smooth: bool = False
) -> Array:
    """Compute the metric in each resample, shape `(n_resamples,)`, NaN where undefined.

    `smooth` adds a pseudo-unit to the draws, which is 1/K² in each cell of a table, or drawn from
    `Units.prior`. With clusters, it has as many observations as the average cluster.
    """
    values = []
    for rows in chunks(n_resamples, max(len(units.counts), _width(units))):
        values.append(compute(_draw_sums(units, rows, rng, smooth)))
    return np.concatenate(values)


def replicates_of_each(
    batch: Sequence[Units], compute: Compute, resampling: Resampling, smooth: bool, on_tables: bool
) -> Array:
    """Compute m metrics in each resample of several sets of units, shape `(m, len(batch), n_resamples)`.

    `on_tables` says whether sums are cells of tables; see `replicates` for `smooth`.
    """
    n, width = resampling.n_resamples, max(max(len(units.counts), _width(units)) for units in batch)
    at_once = _CELLS_AT_ONCE // (n * width) if on_tables and batch[0].prior is None else 0
    values = []
    for start in range(0, len(batch), max(at_once, 1)):
        part = batch[start : start + max(at_once, 1)]
        if at_once:
            drawn = [_draw_sums(units, n, resampling.generator(), smooth).T for units in part]
            # numpy adds up the few cells of a table many times as fast if resamples are adjacent in memory.
            values.append(compute(np.moveaxis(np.ascontiguousarray(np.stack(drawn, axis=1)), 0, -1)))
        else:
            rng = resampling.generator()
            rows = replicates(part[0], lambda sums: compute(sums).T, n, rng, smooth=smooth)
            values.append(rows.T[:, None])
    return np.concatenate(values, axis=1)


def _draw_sums(units: Units, rows: int, rng: np.random.Generator, smooth: bool) -> Array:
    if smooth:
        return _draw_smoothed(units, rows, rng)
    return units.aggregate(draw_weights(units.counts, units.size, rows, rng))


def _width(units: Units) -> int:
    if units.gather is not None:
        return len(units.gather)
    return len(units.counts) if units.sums is None else units.sums.shape[1]


def chunks(rows: int, width: int) -> Iterator[int]:
    """Split rows into parts whose arrays of this width fit into memory; yield the size of each part."""
    step = max(1, _CHUNK_CELLS // max(width, 1))
    for start in range(0, rows, step):
        yield min(step, rows - start)


def draw_weights(counts: Codes, n_drawn: int, rows: int, rng: np.random.Generator) -> Array:
    """Draw how often each distinct unit occurs in `n_drawn` draws, shape `(rows, u)`."""
    u, total = len(counts), int(counts.sum())
    if u >= _INDEX_DRAW_FROM and total <= 2 * u:
        # A multinomial draw needs one binomial per distinct unit; if most are distinct, indices are cheaper.
        kinds = np.repeat(np.arange(u), counts) if (counts != 1).any() else None
        weights = np.empty((rows, u))
        # Few rows at a time, so that the counts stay in the processor's cache.
        step = max(1, _CACHED_CELLS // u)
        for start in range(0, rows, step):
            part = weights[start : start + step]
            drawn = rng.integers(0, total, size=(len(part), n_drawn))
            drawn = drawn if kinds is None else kinds[drawn]
            drawn += np.arange(len(part))[:, None] * u
            part[:] = np.bincount(drawn.reshape(-1), minlength=part.size).reshape(part.shape)
        return weights
    return rng.multinomial(n_drawn, counts / total, size=rows).astype(float)


def _draw_smoothed(units: Units, rows: int, rng: np.random.Generator) -> Array:
    total = units.size
    if units.sums is None and units.prior is None:
        cells = len(units.counts)
        return rng.multinomial(total, (units.counts + 1.0 / cells) / (total + 1), size=rows).astype(float)
    weights = draw_weights(np.append(units.counts, 1), total, rows, rng)
    observations = units.n / total if units.clustered else 1.0
    n_extra, weights = np.rint(weights[:, -1] * observations).astype(np.int64), weights[:, :-1]
    if units.prior is not None:
        start = int(np.argmax(units.prior > 0))
        chances = units.prior[start:]
        weights[:, start:] += rng.multinomial(n_extra, chances / chances.sum())
        return units.aggregate(weights)
    assert units.sums is not None
    cells = units.sums.shape[1]
    return np.asarray(weights @ units.sums + rng.multinomial(n_extra, np.full(cells, 1.0 / cells)))


def influence(units: Units, compute: Compute) -> Array:
    """Compute the first-order effect of each unit without `gather` on the metric, shape `(u,)`.

    The gradient is computed by a complex step (Squire and Trapp 1998), which is exact up to rounding. The
    effects sum to zero, since scaling all sums does not change a metric.
    """
    total = units.total()
    step = 1e-30 * max(float(np.abs(total).max()), 1.0)
    occupied = np.flatnonzero(total)
    moved = np.repeat(total[None, :].astype(complex), len(occupied), axis=0)
    moved[np.arange(len(occupied)), occupied] += 1j * step
    gradient = np.zeros(len(total))
    gradient[occupied] = compute(moved).imag / step
    return gradient if units.sums is None else np.asarray(units.sums @ gradient)


def standard_error(effects: Array, n_units: int, counts: Codes | int = 1) -> float:
    """Compute √(Σ effect² C / (C - 1)) from the first-order effects of C independent units."""
    return math.sqrt(float((counts * effects**2).sum()) * n_units / (n_units - 1))


def jackknife(units: Units, compute: Compute) -> Array:
    """Compute the metric after removing one unit of each distinct kind, shape `(u,)`, NaN where undefined."""
    values = []
    start = 0
    for rows in chunks(len(units.counts), max(len(units.counts), _width(units))):
        left = np.repeat(units.counts[None, :].astype(float), rows, axis=0)
        which = np.arange(start, start + rows)
        left[np.arange(rows), which] -= np.minimum(units.counts[which], 1)
        values.append(compute(units.aggregate(left)))
        start += rows
    return np.concatenate(values)


def check_choice(name: str, given: object, choices: Any, *, or_none: bool = False) -> None:
    """Raise an error if an argument is not one of the values of a `Literal` type."""
    allowed = get_args(choices)
    if given not in allowed and not (or_none and given is None):
        options = f"{list(allowed)}{' or None' if or_none else ''}"
        raise ArgumentError(f"{name} must be one of {options}; got {given!r}")


def check_number(
    name: str, given: object, within: str = "(-inf, inf)", *, whole: bool = False, hint: str = ""
) -> float:
    """Return a finite number as a float; raise an error if it is outside an interval such as `[0, 1)`."""
    low, high = (float(end) for end in within[1:-1].split(","))
    if isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given):
        number = float(given)
        above = number >= low if within[0] == "[" else number > low
        below = number <= high if within[-1] == "]" else number < high
        if above and below and (number.is_integer() or not whole):
            return number
    at_least = f"{'of at least' if within[0] == '[' else 'above'} {low:g}"
    limits = {
        "[]": f" from {low:g} to {high:g}",
        "()": f" between {low:g} and {high:g}",
        "(]": f" {at_least} and at most {high:g}",
        "[)": f" {at_least} and below {high:g}",
    }[within[0] + within[-1]]
    if high == math.inf:
        limits = "" if low == -math.inf else f" {at_least}"
    kind = "an integer" if whole else "a finite number"
    raise ArgumentError(f"{name} must be {kind}{limits}{hint and ', '}{hint}; got {given!r}")


CiMethod: TypeAlias = Literal["auto", "analytic", "percentile", "bca", "smoothed"]


class ResamplingArguments(TypedDict, total=False):
    """Keyword arguments of metrics whose intervals are computed by resampling.

    Attributes:
        confidence_level: Confidence level of the interval, in (0, 1).
        n_resamples: Number of bootstrap resamples.
        rng: Seed or numpy random generator for the resampling.
    """

    confidence_level: float
    n_resamples: int
    rng: int | np.random.Generator


class IntervalArguments(ResamplingArguments, total=False):
    """Keyword arguments of all metrics, which select the interval method, the clusters and the resampling.

    Attributes:
        cluster: Cluster id of each unit, such as its prompt. Units of a cluster are resampled together.
        ci: Method used to compute the interval; None computes no interval.
    """

    cluster: Iterable[Any] | None
    ci: CiMethod | None


class CodedArguments(IntervalArguments, total=False):
    """Keyword arguments of all metrics of categorical labels.

    Attributes:
        labels: Number of categories K if the labels are already integer codes 0..K-1, where -1 means missing.
    """

    labels: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """Validated resampling arguments; see `ResamplingArguments` for the attributes."""

    confidence_level: float = 0.95
    n_resamples: int = 1000
    rng: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        check_number("confidence_level", self.confidence_level, "(0, 1)")
        if not isinstance(self.n_resamples, Integral) or self.n_resamples < 1:
            raise ArgumentError(f"n_resamples must be a positive integer; got {self.n_resamples!r}")
        is_seed = isinstance(self.rng, int | np.integer) and not isinstance(self.rng, bool) and self.rng >= 0
        if not is_seed and not isinstance(self.rng, np.random.Generator):
            raise ArgumentError(f"rng must be a non-negative integer or a numpy Generator; got {self.rng!r}")

    @property
    def seed(self) -> int:
        """The seed of the draws; not available if `rng` is a generator."""
        assert not isinstance(self.rng, np.random.Generator)
        return int(self.rng)

    def generator(self) -> np.random.Generator:
        """Return the random generator. The same seed always gives the same draws."""
        return np.random.default_rng(self.rng)

    def describe(self, about: str = "", kind: str = "percentile") -> str:
        """Describe an interval from resamples for the `method` of an estimate."""
        parts = (f"{kind} bootstrap", f"{self.confidence_level:.0%}", about, f"{self.n_resamples} resamples")
        return ", ".join(filter(None, parts))

    def with_fixed_seed(self) -> Self:
        """Return a copy with a fixed seed, so that all metrics computed with it use the same draws."""
        if isinstance(self.rng, np.random.Generator):
            return replace(self, rng=int(self.rng.integers(2**31)))
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalOptions(Resampling):
    """Validated interval arguments; see `IntervalArguments` for the attributes."""

    cluster: Iterable[Any] | None = None
    ci: CiMethod | None = "auto"

    def arguments(self, cluster: Iterable[Any] | None) -> IntervalArguments:
        """Return the options as arguments of another metric, with these clusters."""
        return IntervalArguments(
            cluster=cluster,
            ci=self.ci,
            confidence_level=self.confidence_level,
            n_resamples=self.n_resamples,
            rng=self.rng,
        )

    def __post_init__(self) -> None:
        # super() does not work here, because `slots=True` replaces the class with a new one.
        Resampling.__post_init__(self)
        check_choice("ci", self.ci, CiMethod, or_none=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedOptions(IntervalOptions):
    """Validated arguments of metrics of categorical labels; see `CodedArguments` for the attributes."""

    labels: int | None = None

    def __post_init__(self) -> None:
        IntervalOptions.__post_init__(self)
        if self.labels is not None and self.labels < 1:
            raise ArgumentError(f"labels must be the number of categories, at least 1; got {self.labels!r}")


MOST_UNDEFINED = 0.5
"""Proportion of undefined resamples above which there is no interval."""

MOST_UNDEFINED_CORRECTED = 0.1
"""The same for metrics corrected for a judge's errors. Their resamples are undefined where the judge looks
uninformative, which is where corrected values are extreme, so ignoring many would bias the interval."""


class Ends(NamedTuple):
    """The limits of an interval and its standard error; each is None if it is not available."""

    low: float | None
    high: float | None
    se: float | None

    def extend_to(self, value: float) -> Ends:
        """Return the interval, extended if needed to include the value."""
        if self.low is None or self.high is None:
            return self
        return Ends(min(self.low, value), max(self.high, value), self.se)


NO_ENDS = Ends(None, None, None)


def interval_of(
    drawn: Array,
    options: Resampling,
    *,
    quantiles: tuple[float, float] | None = None,
    most_undefined: float = MOST_UNDEFINED,
) -> tuple[Ends, int]:
    """Compute the percentile interval of resampled values, NaN where undefined, and how many are undefined.

    `quantiles` replaces the levels that follow from the confidence level.
    """
    defined = drawn[~np.isnan(drawn)]
    n_undefined = len(drawn) - len(defined)
    if not len(defined) or n_undefined > most_undefined * len(drawn):
        return NO_ENDS, n_undefined
    tail = (1 - options.confidence_level) / 2
    low, high = (float(end) for end in np.quantile(defined, quantiles or (tail, 1 - tail)))
    return Ends(low, high, float(defined.std(ddof=1)) if len(defined) > 1 else None), n_undefined


def intervals_of(drawn: Sequence[Array], options: Resampling) -> list[tuple[Ends, int]]:
    """Compute `interval_of` of each metric's resampled values; those without undefined ones together."""
    found: dict[int, tuple[Ends, int]] = {}
    complete = [at for at, one in enumerate(drawn) if options.n_resamples > 1 and not np.isnan(one).any()]
    tail = (1 - options.confidence_level) / 2
    for start in range(0, len(complete), _ROWS_AT_ONCE):
        places = complete[start : start + _ROWS_AT_ONCE]
        rows = np.array([drawn[at] for at in places])
        lows, highs = np.quantile(rows, (tail, 1 - tail), axis=-1).tolist()
        columns = zip(lows, highs, rows.std(axis=-1, ddof=1).tolist(), strict=True)
        found |= {at: (Ends(*one), 0) for at, one in zip(places, columns, strict=True)}
    return [found.get(at) or interval_of(one, options) for at, one in enumerate(drawn)]


def is_point(low: float, high: float, value: float) -> bool:
    """Return whether an interval's width is rounding error, as from identical units, which show no spread."""
    return is_rounding(high - low, max(abs(value), 1.0))
