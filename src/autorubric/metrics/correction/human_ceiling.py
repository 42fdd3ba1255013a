"""The human ceiling: how well people agree with each other, which limits what to expect of a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import CodedLabels, cluster_codes, encode, numeric_column
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.metric import MetricSpec
from autorubric.metrics.core.resampling import IntervalArguments, IntervalOptions, interval_of
from autorubric.metrics.core.result import ResultBase, describe_estimate, interval_table
from autorubric.metrics.core.scales import Array, Codes, Interval, Scale
from autorubric.metrics.correction.samples import Annotators, read_annotators
from autorubric.metrics.figures.specs import SPECS, spec
from autorubric.support.blocks import Block

CeilingStatistic: TypeAlias = str | Callable[..., Any]
"""Name of a two-rater metric, or a function of (rest, person) that returns a number or an `Estimate`."""

_SHORT = {"kappa": "cohen_kappa"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HumanCeiling(ResultBase, Estimate):
    """The agreement between each annotator and the others.

    As an `Estimate`, it is the mean metric over annotators, with an interval from resampled items.

    Attributes:
        per_human: Metric of each annotator against the others, by name.
        stat: Name of the metric.
        n_tied: Number of (annotator, item) pairs excluded because the other annotators were tied.
    """

    per_human: Mapping[str, Estimate]
    stat: str
    n_tied: int

    _heading: ClassVar[str] = "Human ceiling"
    _omits_empty_tests: ClassVar[bool] = True

    def _sentence(self) -> str:
        text = f"Each annotator against the others: mean {self.stat} {describe_estimate(self)}."
        if self.n_tied:
            text += f" Labels excluded because the other annotators were tied: {self.n_tied}."
        return text

    def _tables(self) -> list[Block]:
        return [interval_table("Annotators", self.per_human)]


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """One person's annotations and those of the rest, as labels or numbers."""

    rest: Array
    person: Array
    there: Array
    tied: int


def human_ceiling(
    humans: Any,
    *,
    stat: CeilingStatistic = "kappa",
    scale: Scale | None = None,
    **interval: Unpack[IntervalArguments],
) -> HumanCeiling:
    """Compute a metric of each annotator against the others, and its mean over annotators.

    Categorical metrics compare an annotator with the majority of the item's other annotations, and numeric
    metrics with their mean. If the majority is tied, the item is excluded for that annotator and counted in
    `n_tied`. With two annotators, each is compared with the other. With three, an item is used for an
    annotator only if the other two agree, which makes that annotator look better.

    An item is used if at least two annotators labelled it. If there are no such items, the metric is
    undefined (`no_pairs`).

    Args:
        humans: Annotations, shape `(n_items, n_annotators)`; None is missing. DataFrame columns name the
            annotators.
        stat: Name of a two-rater metric (`"kappa"`, `"accuracy"`, `"pearson"`, `"mae"`, …), or a function of
            two arrays without missing values, (others, annotator), that returns a number or an `Estimate`.
            The arrays contain numbers if `scale` is an `Interval`, and labels otherwise.
        scale: Scale of the annotations; None uses the observed labels.
        **interval: See `IntervalArguments`. Each annotator has the metric's own interval; the interval of the
            mean is a percentile bootstrap over items or clusters.

    Raises:
        ArgumentError: If the metric is unknown, there are fewer than two annotators, or a label is outside
            the scale.
    """
    options = IntervalOptions(**interval)
    people = read_annotators(humans)
    cluster = cluster_codes(options.cluster, people.n_items)
    if not isinstance(stat, str) and not callable(stat):
        raise ArgumentError(f"stat must be the name of a two-rater metric or a function; got {stat!r}")
    known = spec(_SHORT.get(stat, stat)) if isinstance(stat, str) else None
    if known is not None and known.needs not in ("labels", "numbers"):
        usable = [one.name for one in SPECS if one.needs in ("labels", "numbers")]
        raise ArgumentError(f"stat must be a two-rater metric, one of {usable}, or a function; got {stat!r}")
    if known is not None and known not in SPECS:
        # Metrics of other packages take labels, not tables of counts.
        stat, known = known.function, None
    of_numbers = known.needs == "numbers" if known is not None else isinstance(scale, Interval)
    name = known.name if known is not None else getattr(stat, "__name__", "statistic")
    if of_numbers:
        pairs, metric = _number_pairs(people), _metric_of(known, stat, None)
    else:
        coded = encode(people.columns, scale, None)
        pairs, metric = _label_pairs(people, coded), _metric_of(known, stat, coded)
    single = {}
    for who, one in zip(people.names, pairs, strict=True):
        single[who] = Estimate.undefined("no_pairs", method=f"{name} against the others")
        if one.there.any():
            interval_of_one = options.arguments(None if cluster is None else cluster[one.there])
            single[who] = metric(one.rest[one.there], one.person[one.there], **interval_of_one)
    mean = _estimate_mean(list(single.values()), pairs, metric, cluster, options, name)
    return HumanCeiling._extending(mean, per_human=single, stat=name, n_tied=sum(one.tied for one in pairs))


_Metric: TypeAlias = Callable[..., Estimate]
"""A function of (rest, person, interval arguments) that returns an estimate."""


def _number_pairs(people: Annotators) -> list[_HeldOut]:
    table = np.array([numeric_column(column, "a person's column") for column in people.columns])
    found = []
    for j in range(len(table)):
        others = np.delete(table, j, axis=0)
        n_others = np.count_nonzero(~np.isnan(others), axis=0)
        rest = np.nansum(others, axis=0) / np.maximum(n_others, 1)
        found.append(_HeldOut(rest, table[j], (n_others > 0) & ~np.isnan(table[j]), 0))
    return found


def _label_pairs(people: Annotators, coded: CodedLabels) -> list[_HeldOut]:
    codes = np.array(coded.codes).reshape(len(people.columns), people.n_items)
    counts = (codes[:, :, None] == np.arange(coded.size)).astype(np.int64)
    total = counts.sum(axis=0)
    found = []
    for j in range(len(codes)):
        others = total - counts[j]
        if not coded.size:
            found.append(_HeldOut(codes[j], codes[j], np.zeros(people.n_items, dtype=bool), 0))
            continue
        most = others.max(axis=1, keepdims=True)
        both = (most[:, 0] > 0) & (codes[j] >= 0)
        tied = both & (np.count_nonzero(others == most, axis=1) > 1)
        found.append(_HeldOut(others.argmax(axis=1), codes[j], both & ~tied, int(tied.sum())))
    return found


def _metric_of(known: MetricSpec | None, stat: CeilingStatistic, coded: CodedLabels | None) -> _Metric:
    """Return the metric as a function of numbers or, if `coded` is passed, of codes."""
    scale = None if coded is None else coded.scale
    labels = np.array(scale.labels if scale is not None else [], dtype=object)

    def metric(rest: Array, person: Array, **interval: Any) -> Estimate:
        if known is None:
            pair = (rest, person) if coded is None else (labels[rest], labels[person])
            return _call_statistic(stat, *pair)
        if coded is None:
            return known.function(rest, person, **interval)
        if interval.get("cluster") is not None or known.name == "adjacent_accuracy":
            return known.function(labels[rest], labels[person], scale=scale, **interval)
        interval.pop("cluster", None)
        flat = np.bincount(rest * coded.size + person, minlength=coded.size**2)
        return known.function(table=flat.reshape(coded.size, coded.size), scale=scale, **interval)

    return metric


def _call_statistic(stat: CeilingStatistic, rest: Array, person: Array) -> Estimate:
    assert callable(stat)
    found = stat(rest, person)
    if isinstance(found, Estimate):
        return found
    method = getattr(stat, "__name__", "statistic")
    if found is None or not np.isfinite(float(found)):
        return Estimate.undefined("no_variance", n=len(rest), method=method)
    return Estimate(float(found), n=len(rest), method=method)


def _estimate_mean(
    single: list[Estimate],
    pairs: list[_HeldOut],
    metric: _Metric,
    cluster: Codes | None,
    options: IntervalOptions,
    name: str,
) -> Estimate:
    defined = [one.value for one in single if one.value is not None]
    n = int(np.count_nonzero(np.any([one.there for one in pairs], axis=0))) if pairs else 0
    method = f"{name} against the other annotators, mean over {len(defined)} of {len(single)} annotators"
    if not defined:
        reason: Reason = single[0].reason or "no_pairs" if single else "no_pairs"
        return Estimate.undefined(reason, n=n, method=method)
    value = float(np.mean(defined))
    if options.ci is None:
        return Estimate(value, n=n, method=method)
    # Items without a pair are in no unit.
    used = np.flatnonzero(np.any([one.there for one in pairs], axis=0))
    members = list(used[:, None])
    if cluster is not None:
        members = [used[cluster[used] == c] for c in np.unique(cluster[used])]
    n_units, what = len(members), "items" if cluster is None else "clusters"
    method += f"; {options.describe(f'{n_units} {what}')}"
    if n_units < 2:
        return Estimate(value, n=n, method=method, reason="too_few_units")
    drawn = np.array(list(_resample_means(pairs, metric, members, options)))
    ends = interval_of(drawn, options)[0]
    return Estimate(value, *ends, n, method, "degenerate_resamples" if ends.low is None else None)


def _resample_means(
    pairs: list[_HeldOut], metric: _Metric, members: list[Array], options: IntervalOptions
) -> Iterable[float]:
    rng = options.generator()
    plain = np.concatenate(members) if all(len(m) == 1 for m in members) else None
    for _ in range(options.n_resamples):
        units = rng.integers(0, len(members), size=len(members))
        index = plain[units] if plain is not None else np.concatenate([members[u] for u in units])
        values = []
        for one in pairs:
            kept = index[one.there[index]]
            value = metric(one.rest[kept], one.person[kept], ci=None).value if len(kept) else None
            if value is not None:
                values.append(value)
        yield float(np.mean(values)) if values else float("nan")
