"""Reliability: agreement of any number of raters, with all metrics that their scale supports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Unpack, get_args

import numpy as np
from threadpoolctl import ThreadpoolController

from autorubric.criteria.values import Level
from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.item_scores import Rater
from autorubric.metrics.core.label_rows import ABSTENTION
from autorubric.metrics.core.metric import CATEGORICAL
from autorubric.metrics.core.read_votes import Cells, Column, Modes
from autorubric.metrics.core.resampling import CodedOptions, IntervalArguments, IntervalOptions
from autorubric.metrics.core.result import ResultBase, figure_table
from autorubric.metrics.core.scales import Array, Interval, Nominal, Ordinal, Scale, as_sequence
from autorubric.metrics.core.votes_table import (
    ABSTAINED,
    ANSWERED,
    MeasuredCriterion,
    VotesTable,
    distinct_names,
)
from autorubric.metrics.figures.icc import cronbach_alpha, icc, kendall_w
from autorubric.metrics.figures.kappa import gwet_ac, kappa_of
from autorubric.metrics.figures.krippendorff import krippendorff_alpha
from autorubric.metrics.figures.many_raters import (
    AC1,
    FLEISS,
    conger_kappa,
    counts_estimates,
    fleiss_kappa,
    percent_agreement,
    units_by_category,
)
from autorubric.metrics.summaries.agreement import level_of
from autorubric.metrics.summaries.sides import read_column, scale_at
from autorubric.metrics.summaries.table_metrics import category_values
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock

ReliabilityStat: TypeAlias = Literal[
    "alpha", "fleiss", "conger", "ac1", "ac2", "percent_agreement", "icc", "cronbach", "kendall_w"
]
_CATEGORIES: tuple[ReliabilityStat, ...] = ("alpha", "fleiss", "conger", "ac1", "percent_agreement")
_NUMBERS: tuple[ReliabilityStat, ...] = ("icc", "cronbach", "kendall_w")
USUAL: Mapping[Level, tuple[ReliabilityStat, ...]] = {
    "binary": _CATEGORIES,
    "nominal": _CATEGORIES,
    "ordinal": (*_CATEGORIES, "ac2", *_NUMBERS),
    "interval": ("alpha", *_NUMBERS),
}
"""Default metrics for each measurement level."""

TITLES: Mapping[ReliabilityStat, str] = {
    "alpha": "Krippendorff's alpha",
    "fleiss": "Fleiss' kappa",
    "conger": "Conger's kappa",
    "ac1": "Gwet's AC1",
    "ac2": "Gwet's AC2",
    "percent_agreement": "percent agreement",
    "icc": "intraclass correlation",
    "cronbach": "Cronbach's alpha",
    "kendall_w": "kendall w",
}
"""Names of the metrics on pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterShares:
    """Summary of one rater's ratings.

    Attributes:
        rater: Name of the rater, or its column position if the columns have no names.
        n: Number of ratings.
        n_missing: Number of units (such as items) that the rater did not rate, including abstentions.
        n_abstained: Number of abstentions.
        shares: Proportion of ratings in each category; empty for an interval scale.
        mean: Mean of the numbers or of the categories' values; None if there are no ratings or values.
    """

    rater: str
    n: int
    n_missing: int
    n_abstained: int
    shares: Mapping[str, float]
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability(ResultBase):
    """Agreement among several raters.

    A metric is undefined if the scale does not support it (`not_on_scale`) or if it was not requested
    (`not_requested`).

    Attributes:
        level: Measurement level of the scale.
        n_units: Number of units (such as items).
        n_pairable: Number of units with two or more ratings.
        n_raters: Number of raters.
        n_missing: Number of missing ratings, including abstentions.
        alpha: Krippendorff's alpha at the scale's level; nominal for a binary scale.
        fleiss: Fleiss' kappa.
        conger: Conger's kappa.
        ac1: Gwet's AC1.
        ac2: Gwet's AC2 with quadratic weights on the scale's values.
        percent_agreement: Mean proportion of agreeing rater pairs over units with two or more ratings.
        icc: Intraclass correlation in the requested form.
        cronbach: Cronbach's alpha for the mean of all raters.
        kendall_w: Kendall's W, the coefficient of concordance.
        raters: Summary of each rater's ratings.
    """

    level: Level
    n_units: int
    n_pairable: int
    n_raters: int
    n_missing: int
    alpha: Estimate
    fleiss: Estimate
    conger: Estimate
    ac1: Estimate
    ac2: Estimate
    percent_agreement: Estimate
    icc: Estimate
    cronbach: Estimate
    kendall_w: Estimate
    raters: tuple[RaterShares, ...]

    def figures(self) -> dict[str, Estimate]:
        """Return the requested metrics that the scale supports, keyed by name."""
        every = {name: getattr(self, name) for name in get_args(ReliabilityStat)}
        left_out = ("not_on_scale", "not_requested")
        return {name: found for name, found in every.items() if found.reason not in left_out}

    def blocks(self) -> list[Block]:
        """Return the metrics as content blocks for the text, HTML and LaTeX renderers."""
        counts: tuple[tuple[str, Cell], ...] = (
            ("units", self.n_units),
            ("units with two or more ratings", self.n_pairable),
            ("raters", self.n_raters),
            ("missing ratings", self.n_missing),
        )
        figures = {name.replace("_", " "): one for name, one in self.figures().items()}
        labels = tuple(self.raters[0].shares) if self.raters else ()
        gave: tuple[tuple[Cell, ...], ...] = tuple(
            (one.rater, one.n, one.mean, *one.shares.values()) for one in self.raters
        )
        return [
            ScalarBlock(title="Reliability", figures=counts),
            figure_table("", figures),
            TableBlock(title="Ratings of each rater", columns=("rater", "n", "mean", *labels), rows=gave),
        ]


def reliability(
    ratings: Any,
    *,
    scale: Scale,
    stats: Iterable[ReliabilityStat] | None = None,
    icc_form: str = "ICC(2,1)",
    **interval: Unpack[IntervalArguments],
) -> Reliability:
    """Compute all reliability metrics that the scale supports, and summarize each rater's ratings.

    Each metric equals the result of its own function on the same ratings: `krippendorff_alpha` at the scale's
    level, `fleiss_kappa`, `conger_kappa`, `gwet_ac`, `percent_agreement`, `icc`, `cronbach_alpha` or
    `kendall_w`. Numeric metrics use the scale's values on an ordinal scale; on a binary scale, they use 0 and
    1 and are computed only on request. High reliability does not imply that the ratings are correct.

    Args:
        ratings: Labels of shape `(n_units, n_raters)`. DataFrame columns provide the raters' names. None, NaN
            and, unless they are on the scale, NA, CANNOT_ASSESS and INVALID count as missing.
        scale: Scale that declares all categories.
        stats: Names of the metrics to compute; None uses the defaults for the scale.
        icc_form: Form of the intraclass correlation; see `icc`.
        **interval: Interval options; see `IntervalArguments`. `cluster` has one id per unit. A metric that
            does not support the requested `ci` method uses its default method.

    Raises:
        ArgumentError: If the scale or a metric is unknown, rows differ in length, or a label is not on the
            scale.
    """
    options = IntervalOptions(**interval)
    names, columns = _columns(ratings)
    read = [
        read_column(column, scale, f"the column of rater {name}")
        for name, column in zip(names, columns, strict=True)
    ]
    return reliability_of(read, names, scale, stats, options, icc_form)


def _columns(ratings: Any) -> tuple[tuple[str, ...], list[list[Any]]]:
    named = getattr(ratings, "columns", None)
    rows = ratings.to_numpy(dtype=object) if named is not None else ratings
    if isinstance(rows, np.ndarray) and rows.ndim != 2:
        raise ArgumentError(f"ratings must have shape (n_units, n_raters); got {rows.shape}")
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise ArgumentError(f"ratings must be a table of shape (n_units, n_raters); got {rows!r}")
    listed = [list(as_sequence(row, "a row of ratings")) for row in rows]
    widths = {len(row) for row in listed}
    if len(widths) > 1:
        raise ArgumentError("all rows of ratings must have the same length; use None for missing ratings")
    n_raters = len(named) if named is not None else widths.pop() if widths else 0
    names = map(str, named) if named is not None else map(str, range(n_raters))
    return tuple(names), [[row[at] for row in listed] for at in range(n_raters)]


def reliability_of(
    columns: Sequence[Column],
    names: Sequence[str],
    scale: Scale,
    stats: Iterable[ReliabilityStat] | None,
    options: IntervalOptions,
    icc_form: str = "ICC(2,1)",
) -> Reliability:
    """Compute `reliability` from columns that have already been read."""
    level = level_of(scale)
    wanted = USUAL[level] if stats is None else _check_stats(stats)
    n_units = len(columns[0].code) if columns else 0
    given = np.zeros((n_units, 0), dtype=bool)
    if columns:
        on_numbers = isinstance(scale, Interval)
        given = np.column_stack([~np.isnan(c.number) if on_numbers else c.code >= 0 for c in columns])
    figures = _figures(columns, scale, options, icc_form)
    found = {
        name: Estimate.undefined(
            "not_requested" if name in figures else "not_on_scale", n=n_units, method=name.replace("_", " ")
        )
        for name in get_args(ReliabilityStat)
    } | {name: figures[name]() for name in wanted if name in figures}
    return Reliability(
        level=level,
        n_units=n_units,
        n_pairable=int(np.count_nonzero(given.sum(1) >= 2)),
        n_raters=len(columns),
        n_missing=int(given.size - np.count_nonzero(given)),
        raters=tuple(
            _summarize_rater(column, name, scale) for name, column in zip(names, columns, strict=True)
        ),
        **found,
    )


def reliability_by_criterion(
    cells: Cells, raters: Sequence[Rater], modes: Modes, options: IntervalOptions
) -> dict[str, Reliability]:
    """Compute reliability on each criterion, by its name (numbered if repeated); empty for one rater."""
    found: dict[str, Reliability] = {}
    # Starting the threads of matrix products would take longer than these products themselves. The limit
    # applies to the process, so two reports at a time would restore each other's.
    with _BLAS_LIMIT, ThreadpoolController().limit(limits=1, user_api="blas"):
        for place, name in enumerate(distinct_names(cells.criteria) if len(raters) > 1 else ()):
            scale = scale_at(cells, place)
            if scale is None:
                continue
            columns = [cells.raters[one].take(cells.spans[place]) for one in raters]
            if isinstance(scale, Interval):
                if all(np.isnan(one.number).all() for one in columns):
                    columns = [replace(one, number=one.value) for one in columns]
            elif modes.has_category and cells.criteria[place].categories:
                scale = Nominal((*map(str, scale.labels), ABSTENTION))
            # Kendall's W is slow to resample and adds little to the other metrics.
            stats = [stat for stat in USUAL[level_of(scale)] if stat != "kendall_w"]
            found[name] = reliability_of(columns, [one[1] for one in raters], scale, stats, options)
    return found


_BLAS_LIMIT: Final = Lock()


def _check_stats(stats: Iterable[ReliabilityStat]) -> tuple[ReliabilityStat, ...]:
    wanted = tuple(stats)
    unknown = [name for name in wanted if name not in get_args(ReliabilityStat)]
    if isinstance(stats, str) or unknown:
        raise ArgumentError(f"stats must be a list of {list(get_args(ReliabilityStat))}; got {stats!r}")
    return wanted


def _figures(
    columns: Sequence[Column], scale: Scale, options: IntervalOptions, icc_form: str
) -> dict[str, Callable[[], Estimate]]:
    """Return a function for each metric that the scale supports, keyed by name."""
    interval = options.arguments(options.cluster)
    interval["ci"] = options.ci if options.ci in (None, "percentile", "bca") else "auto"
    if isinstance(scale, Interval):
        numbers = _stack([column.number for column in columns])
        by_name: dict[str, Callable[[], Estimate]] = {
            "alpha": lambda: krippendorff_alpha(numbers, level="interval", scale=scale, **interval)
        }
    else:
        codes, size = _stack([column.code for column in columns]).astype(np.int64), scale.size
        at_level: Literal["ordinal", "nominal"] = "ordinal" if level_of(scale) == "ordinal" else "nominal"
        by_name = {
            "alpha": lambda: krippendorff_alpha(codes, level=at_level, labels=size, **interval),
            "fleiss": lambda: fleiss_kappa(codes, labels=size, **interval),
            "conger": lambda: conger_kappa(codes, labels=size, **interval),
            "ac1": lambda: gwet_ac(ratings=codes, labels=size, **interval),
            "percent_agreement": lambda: percent_agreement(codes, labels=size, **interval),
        }
        if codes.size and not isinstance(options.rng, np.random.Generator):
            # A seed gives both the same resamples, and they are computed from the same sums.
            both = cache(
                lambda: counts_estimates(
                    (FLEISS, AC1), units_by_category(codes, size), np.eye(size), CodedOptions(**interval)
                )
            )
            by_name |= {"fleiss": lambda: both()[0], "ac1": lambda: both()[1]}
        places = scale.positions
        if places is None:
            return by_name
        numbers = np.append(places, np.nan)[codes]
        on_values = Ordinal(range(size), places)
        known = np.where(codes < 0, np.nan, codes)
        by_name["ac2"] = lambda: gwet_ac(ratings=known, scale=on_values, weights="quadratic", **interval)
    return by_name | {
        "icc": lambda: icc(numbers, form=icc_form, **interval),
        "cronbach": lambda: cronbach_alpha(numbers, **interval),
        "kendall_w": lambda: kendall_w(numbers, **interval),
    }


def _stack(columns: Sequence[Array]) -> Array:
    return np.column_stack(columns) if columns else np.zeros((0, 0))


def _summarize_rater(column: Column, name: str, scale: Scale) -> RaterShares:
    if isinstance(scale, Interval):
        values = column.number[~np.isnan(column.number)]
        n, by_label = len(values), {}
    else:
        codes = column.code[column.code >= 0]
        n = len(codes)
        counts = np.bincount(codes, minlength=scale.size)
        by_label = (
            {str(one): count / n for one, count in zip(scale.labels, counts.tolist(), strict=True)}
            if n
            else {}
        )
        places = scale.positions
        values = places[codes] if places is not None else np.zeros(0)
    return RaterShares(
        rater=name,
        n=n,
        n_missing=len(column.code) - n,
        n_abstained=int(np.count_nonzero(column.status == ABSTAINED)),
        shares=by_label,
        mean=float(values.mean()) if len(values) else None,
    )


def mean_kappa(
    criterion: Array, left: Array, right: Array, values: Sequence[tuple[float, ...] | None]
) -> Estimate:
    """Return the mean over criteria of Cohen's kappa between two raters, without an interval."""
    method = "Cohen's kappa, mean over criteria"
    n = len(criterion)
    if not n:
        return Estimate.undefined("no_pairs", method=method)
    size = int(max(left.max(), right.max())) + 1
    places = (criterion * size + left) * size + right
    tables = np.bincount(places, minlength=len(values) * size**2).reshape(-1, size, size)
    found = np.full(len(values), np.nan)
    # Criteria are grouped by scale, because there can be thousands of them if each item has its own rubric.
    scales: dict[tuple[float, ...] | None, list[int]] = {}
    for at, one in enumerate(values):
        scales.setdefault(one, []).append(at)
    for scale, mine in scales.items():
        found[mine] = kappa_of(tables[mine], None if scale is None else _quadratic(scale, size))
    defined = found[~np.isnan(found)]
    method += f", {len(defined)} of {np.count_nonzero(tables.any((-1, -2)))} criteria defined"
    if not len(defined):
        return Estimate.undefined("single_class", n=n, method=method)
    return Estimate(float(defined.mean()), n=n, method=method)


class PairAgreement(NamedTuple):
    """Agreement of two raters on the cells that both answered; `a` and `b` are their positions."""

    a: int
    b: int
    share: Estimate  # proportion of equal answers
    kappa: Estimate  # mean over criteria, without an interval


def pair_agreements(table: VotesTable, raters: Sequence[Rater]) -> list[PairAgreement]:
    width = max(len(table.criteria), 1)
    rows = [table.rows_of(one) for one in raters]
    keys = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *map(table.cell_keys, rows)]))
    codes = np.full((len(raters), len(keys)), -1)
    for at, mine in enumerate(rows):
        answered = mine[(table.code[mine] >= 0) & (table.status[mine] == ANSWERED)]
        codes[at, np.searchsorted(keys, table.cell_keys(answered))] = table.code[answered]
    item, criterion = np.divmod(keys, width)
    values = [_ordered_values(one) for one in table.criteria]
    has_kappa = np.array([one.level in (*CATEGORICAL, "ranking") for one in table.criteria] or [False])[
        criterion
    ]
    size = int(table.code.max()) + 1 if len(table) else 0
    found = []
    for a, b in combinations(range(len(raters)), 2) if size > 1 else ():
        both = (codes[a] >= 0) & (codes[b] >= 0)
        pairs = np.column_stack([codes[a], codes[b]])[both]
        share = percent_agreement(pairs, labels=size, cluster=item[both], ci="analytic")
        used = both & has_kappa
        kappa = mean_kappa(criterion[used], codes[a][used], codes[b][used], values)
        found.append(PairAgreement(a, b, share, kappa))
    return found


def _ordered_values(criterion: MeasuredCriterion) -> tuple[float, ...] | None:
    """Return the values of a criterion's answers for `mean_kappa`; None if they are not ordered."""
    if criterion.level != "ordinal":
        return None
    values = iter(category_values(criterion))
    return tuple(0.0 if answer.na else next(values) for answer in criterion.answers)


def _quadratic(values: Sequence[float], size: int) -> Array:
    """Return quadratic agreement weights of shape `(size, size)`."""
    found = np.zeros(size)
    found[: len(values)] = values[:size]
    squares = (found[:, None] - found) ** 2
    return np.asarray(1.0 - squares / (squares.max() or 1.0))
