"""Agreement of a judge with itself, which does not show whether the judge is right.

References:
    [1] K. Krippendorff (2004), Content analysis, 2nd ed., ch. 11: alpha over repeats is its stability.
    [2] P. Wang et al. (2024), Large language models are not fair evaluators, ACL: positions swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from autorubric.errors import ArgumentError
from autorubric.metrics.audit.item_resampling import estimate_over_units, widen_at_bound
from autorubric.metrics.core.contingency import (
    cluster_codes,
    divide,
    mean_of_defined,
    number_codes,
    number_rows,
    read_rows,
)
from autorubric.metrics.core.estimate import Estimate, Reason
from autorubric.metrics.core.item_scores import SupportsGradedRun
from autorubric.metrics.core.label_rows import NEEDED
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling, ResamplingArguments, weighted_units
from autorubric.metrics.core.result import (
    ResultBase,
    figure_table,
    format_estimate,
    titled_figures,
    titles_of,
)
from autorubric.metrics.core.scales import Array, Codes, Interval, Ordinal, Scale, is_missing
from autorubric.metrics.core.votes_table import VotesTable, distinct_names, rank_by_id, single_vote_rows
from autorubric.metrics.figures.krippendorff import AlphaLevel, alpha_parts
from autorubric.metrics.figures.many_raters import code_ratings
from autorubric.support.blocks import Block, Cell, TableBlock, TextBlock
from autorubric.support.frames import is_frame

NOT_VALIDITY = (
    "A judge that agrees with itself may be wrong every time: reliability is not validity. Compare it with "
    "labels before you trust it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistency(ResultBase):
    """Agreement among repeated answers, which measures reliability, not validity.

    A unit is a question that was asked repeatedly: one criterion of one item, answered by one judge.

    Attributes:
        flip_rate: Fraction of units whose repeated answers are not all equal.
        pairwise_agreement: Fraction of a unit's pairs of answers that are equal, averaged over units.
        alpha: Krippendorff's alpha over the repeated answers.
        majority_share: Fraction of a unit's answers that equal its most common answer, averaged over units.
        within_sd: Standard deviation within units (root of the mean variance); only for numbers.
        position_consistency: Fraction of pairs of answers given in different orders that are equal, averaged
            over units.
        order_effect: The same fraction for pairs given in the same order, minus `position_consistency`: the
            agreement lost because the order changes.
        majority_shares: Majority shares, each paired with the number of units that have it; sorted by share.
        n_units: Number of units with at least two answers.
        n_repeats: Largest number of answers in a unit.
        per_criterion: Results of each criterion; filled only in the entries of `per_judge`.
        per_judge: Results of each judge of a run or long table. The statistics above are then means over
            judges, and a judge's statistics are means over its criteria.
    """

    flip_rate: Estimate = field(metadata={"title": "flip rate"})
    pairwise_agreement: Estimate = field(metadata={"title": "pairwise agreement"})
    alpha: Estimate = field(metadata={"title": "alpha over repeats"})
    majority_share: Estimate = field(metadata={"title": "majority share"})
    within_sd: Estimate = field(metadata={"title": "SD within units"})
    position_consistency: Estimate = field(metadata={"title": "position consistency"})
    order_effect: Estimate = field(metadata={"title": "order effect"})
    majority_shares: tuple[tuple[float, int], ...]
    n_units: int
    n_repeats: int
    per_criterion: Mapping[str, SelfConsistency] = field(default_factory=dict)
    per_judge: Mapping[str, SelfConsistency] = field(default_factory=dict)

    def _sentence(self) -> str:
        """Summarise how often repeated answers differ."""
        if self.flip_rate.value is None:
            return "Self-consistency is undefined: no question was asked twice."
        return (
            f"Flip rate: {format_estimate(self.flip_rate)} over {self.n_units} units with up to "
            f"{self.n_repeats} answers each. The flip rate does not show whether the answers are right."
        )

    def _tables(self) -> list[Block]:
        title = f"Self-consistency over {self.n_units} units, up to {self.n_repeats} repeats"
        shares = TableBlock(
            title="Number of units by share of the most common answer",
            columns=("majority share", "units"),
            rows=self.majority_shares,
        )
        parts = (("Judges", self.per_judge), ("Criteria", self.per_criterion))
        return [
            figure_table(title, titled_figures(self)),
            shares,
            *(_parts_table(name, part) for name, part in parts if part),
            TextBlock(title="Warnings", text=NOT_VALIDITY),
        ]


FIGURES = titles_of(SelfConsistency)
"""Names of the statistics, in the order in which they are computed, with their descriptions."""

SHARES = ("flip rate", "pairwise agreement", "majority share", "position consistency")
"""Descriptions of the statistics that are shares of units."""

_REASONS: tuple[Reason, ...] = (
    "no_repeats", "no_repeats", "single_class", "no_repeats", "not_comparable", "no_order", "no_order",
)  # fmt: skip
"""Reason for each statistic in case it is undefined although there are repeats."""


def _parts_table(title: str, parts: Mapping[str, SelfConsistency]) -> TableBlock:
    rows: list[tuple[Cell, ...]] = [
        (name, one.n_units, *(getattr(one, figure).value for figure in FIGURES))
        for name, one in parts.items()
    ]
    return TableBlock(title=title, columns=(("name", "units", *FIGURES.values())), rows=tuple(rows))


def self_consistency(
    ratings: Any,
    dataset: Any = None,
    *,
    scale: Scale | None = None,
    order: Any = None,
    cluster: Iterable[Any] | None = None,
    **intervals: Unpack[ResamplingArguments],
) -> SelfConsistency:
    """Measure how consistently a judge repeats its answers: flip rate, alpha and order effect.

    Reliability is not validity: a judge may repeat the same wrong answer, and a judge that always prefers the
    candidate shown first is perfectly consistent within one order. Abstentions and failures count as missing,
    and units with fewer than two answers are excluded (`no_repeats` if no unit remains).
    `position_consistency` and `order_effect` (Wang et al. 2024) are undefined if orders are unknown or all
    the same (`no_order`); `order_effect` also requires answers in the same order. `within_sd` requires
    numbers (`not_comparable`), and alpha (Krippendorff 2004) requires answers that vary (`single_class`).

    Args:
        ratings: One judge's labels or numbers, shape `(n_units, n_repeats)`, where None and NaN are missing;
            or an `EvalResult` or a long table of labels (such as a DataFrame with a column `item_id`,
            `criterion` or `rater`) in which judges answered in several samples or orders.
        dataset: Dataset with the run's criteria; the run's own dataset by default.
        scale: Declared categories, for a table of ratings. None treats numbers as numeric (interval-level
            alpha) and other labels as nominal.
        order: Presentation order of the candidates for each rating, same shape as `ratings`; None if unknown.
        cluster: Cluster id of each unit; units in a cluster are resampled together.
        **intervals: `confidence_level`, `n_resamples` (number of item resamples) and `rng`.

    Raises:
        ArgumentError: If `ratings` has none of these forms, or a run is passed with options for a table.
    """
    resampling = Resampling(**intervals).with_fixed_seed()
    ratings = list(ratings) if isinstance(ratings, Iterator) else ratings
    if not _is_result(ratings):
        if dataset is not None:
            raise ArgumentError("dataset can only be passed with a run or a long table of labels")
        table = table_of_ratings(ratings, scale, order, cluster)
        return _measure_tables([table], resampling, [[0]])[0]
    if scale is not None or order is not None or cluster is not None:
        raise ArgumentError("scale, order and cluster can only be passed with a table of ratings")
    tables = tables_of_votes(table_of(ratings, dataset))
    judges = list(dict.fromkeys(table.judge for table in tables))
    groups = [[at for at, table in enumerate(tables) if table.judge == judge] for judge in judges]
    whole, *found = _measure_tables(tables, resampling, groups)
    by_judge, by_table = found[: len(groups)], found[len(groups) :]
    per_judge = {
        judge: replace(one, per_criterion={tables[at].criterion: by_table[at] for at in group})
        for judge, one, group in zip(judges, by_judge, groups, strict=True)
    }
    return replace(whole, per_judge=per_judge)


def _is_result(ratings: Any) -> bool:
    """Return whether the argument is a run or a long table, whose rows have keys, rather than ratings."""
    if isinstance(ratings, VotesTable | SupportsGradedRun):
        return True
    if is_frame(ratings):
        return any(name in ratings.columns for name in NEEDED)
    return isinstance(ratings, list | tuple) and bool(ratings) and isinstance(ratings[0], Mapping)


def _measure_tables(
    tables: Sequence[RepeatTable], resampling: Resampling, groups: Sequence[Sequence[int]]
) -> list[SelfConsistency]:
    """Compute the statistics over all tables, over each group of tables, and of each table."""
    n_items = max((int(table.item.max(initial=-1)) + 1 for table in tables), default=0)
    used = np.zeros(n_items, dtype=bool)
    for table in tables:
        used[table.item[table.n_answers >= 2]] = True
    figures = [consistency_figures(table, n_items) for table in tables]

    def compute(drawn: Array) -> Array:
        weights = drawn
        if not used.all():
            weights = np.zeros((len(drawn), n_items))
            weights[:, used] = drawn
        each = [figure(weights) for figure in figures]
        by_group = [mean_of_defined(np.stack([each[at] for at in group]), axis=0) for group in groups]
        return np.concatenate([mean_of_defined(np.stack(by_group), axis=0), *by_group, *each], axis=1)

    n_used = int(np.count_nonzero(used))
    members = [list(tables), *([tables[at] for at in group] for group in groups), *([one] for one in tables)]
    sizes = [sum(int(np.count_nonzero(one.n_answers >= 2)) for one in member) for member in members]
    flat = estimate_over_units(
        weighted_units(n_used, None) if n_used else None,
        compute,
        resampling,
        list(FIGURES.values()) * len(members),
        n=[size for size in sizes for _ in FIGURES],
        reasons=[reason if size else "no_repeats" for size in sizes for reason in _REASONS],
    )
    level = resampling.confidence_level
    flat = [widen_at_bound(one, n_used, level) if one.method.startswith(SHARES) else one for one in flat]
    width = len(FIGURES)
    return [_result_of(flat[at * width : (at + 1) * width], one) for at, one in enumerate(members)]


def _result_of(figures: Sequence[Estimate], tables: Sequence[RepeatTable]) -> SelfConsistency:
    shares = [np.zeros(0)]
    for codes in (table.codes[table.n_answers >= 2] for table in tables):
        same = [(codes == codes[:, [at]]).sum(1) * (codes[:, at] >= 0) for at in range(codes.shape[1])]
        if len(codes):
            shares.append(np.stack(same).max(0) / (codes >= 0).sum(1))
    seen, units = np.unique(np.round(np.concatenate(shares), 12), return_counts=True)
    named: dict[str, Any] = dict(zip(FIGURES, figures, strict=True))
    return SelfConsistency(
        **named,
        majority_shares=tuple(zip(seen.tolist(), units.tolist(), strict=True)),
        n_units=int(units.sum()),
        n_repeats=max((int(table.n_answers.max(initial=0)) for table in tables), default=0),
    )


def consistency_figures(table: RepeatTable, n_items: int) -> Callable[[Array], Array]:
    """Return a function from item weights `(r, n_items)` to the statistics of a table, shape `(r, 7)`."""
    sums = np.zeros((n_items, 9))
    np.add.at(sums, table.item, _unit_sums(table))
    drawn = np.unique(table.item[table.n_answers >= 2])
    parts = alpha_parts(table.codes, table.values, table.level, table.item) if len(drawn) else None

    def compute(weights: Array) -> Array:
        total = weights @ sums
        stability = np.full(len(weights), np.nan)
        if parts is not None:
            units, alpha = parts
            mine = weights if len(drawn) == n_items else weights[:, drawn]
            stability = alpha(units.aggregate(mine))
        n = total[:, 0]
        across = divide(total[:, 6], total[:, 5])
        spread = np.sqrt(divide(total[:, 4], n)) if table.level == "interval" else np.full(len(n), np.nan)
        flips, agreement, majority = (divide(total[:, at], n) for at in (1, 2, 3))
        order_effect = divide(total[:, 8], total[:, 7]) - across
        return np.column_stack([flips, agreement, stability, majority, spread, across, order_effect])

    return compute


def _unit_sums(table: RepeatTable) -> Array:
    """Return the sums of each unit: 1, flipped, agreement, majority share, variance, and four for pairs."""
    codes, order = table.codes, table.order
    there = codes >= 0
    m = there.sum(1)
    alike_with = np.zeros(codes.shape)
    pairs = np.zeros((len(codes), 4))
    for a, b in combinations(range(codes.shape[1]), 2):
        both = there[:, a] & there[:, b]
        alike = both & (codes[:, a] == codes[:, b])
        alike_with[:, a] += alike
        alike_with[:, b] += alike
        known = both & (order[:, a] >= 0) & (order[:, b] >= 0)
        swapped = order[:, a] != order[:, b]
        for at, kind in ((0, known & swapped), (2, known & ~swapped)):
            pairs[:, at] += kind
            pairs[:, at + 1] += kind & alike
    safe = np.maximum(m, 2)
    agreement = alike_with.sum(1) / (safe * (safe - 1))
    majority = (np.where(there, alike_with + 1, 0).max(1, initial=0)) / np.maximum(m, 1)
    shares = [
        column
        for at in (0, 2)
        for column in (pairs[:, at] > 0, np.nan_to_num(divide(pairs[:, at + 1], pairs[:, at])))
    ]
    parts = np.column_stack(
        [np.ones(len(m)), majority < 1, agreement, majority, _variances(table, m), *shares]
    )
    return np.where((m >= 2)[:, None], parts, 0.0)


def _variances(table: RepeatTable, m: Array) -> Array:
    if table.level != "interval" or table.values is None or not len(table.values):
        return np.zeros(len(m))
    there = table.codes >= 0
    x = np.where(there, table.values[table.codes], 0.0)
    centred = np.where(there, x - (x.sum(1) / np.maximum(m, 1))[:, None], 0.0)
    return np.asarray((centred**2).sum(1) / np.maximum(m - 1, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatTable:
    judge: str  # empty if unknown
    criterion: str  # empty if unknown
    codes: Codes  # of the answers, shape `(n_units, n_repeats)`; -1 if missing
    order: Codes  # in which each question was asked, same shape; -1 if unknown
    values: Array | None  # of the codes, increasing; None for unordered categories
    level: AlphaLevel
    item: Codes  # of each unit, shape `(n_units,)`

    @property
    def n_answers(self) -> Codes:
        """Number of answers in each unit, shape `(n_units,)`; units with fewer than two are excluded."""
        return np.asarray((self.codes >= 0).sum(1))


def table_of_ratings(
    ratings: Any, scale: Scale | None, order: Any, cluster: Iterable[Any] | None
) -> RepeatTable:
    """Build a table from units × repeats of labels or numbers."""
    rows = read_rows(ratings, "ratings", "(n_units, n_repeats)")
    codes, values, level = _code_answers(rows, scale)
    members = cluster_codes(cluster, len(codes))
    return RepeatTable(
        judge="",
        criterion="",
        codes=codes,
        order=_code_orders(order, codes.shape),
        values=values,
        level=level,
        item=np.arange(len(codes)) if members is None else members,
    )


def _code_answers(rows: Any, scale: Scale | None) -> tuple[Codes, Array | None, AlphaLevel]:
    if isinstance(scale, Interval) or (scale is None and _are_numbers(rows)):
        scores = number_rows(rows)
        if isinstance(scale, Interval):
            scale.check(scores[~np.isnan(scores)])
        return *number_codes(scores), "interval"
    coded, codes = code_ratings(rows, scale, None)
    codes = codes if codes.ndim == 2 else codes.reshape(len(codes), 0)
    if isinstance(coded.scale, Ordinal):
        return codes, np.arange(coded.size, dtype=float), "ordinal"
    return codes, None, "nominal"


def _are_numbers(rows: Any) -> bool:
    """Return whether the ratings are numbers and not all 0 or 1."""
    if isinstance(rows, np.ndarray):
        if rows.dtype.kind not in "iufO":
            return False
        flat = rows.reshape(-1).tolist()
    else:
        flat = [label for row in rows for label in row]
    kept = [label for label in flat if not is_missing(label)]
    plain = (int, float, np.integer, np.floating)
    return (
        bool(kept)
        and all(isinstance(label, plain) and not isinstance(label, bool) for label in kept)
        and any(label not in (0, 1) for label in kept)
    )


def _code_orders(order: Any, shape: tuple[int, ...]) -> Codes:
    if order is None:
        return np.full(shape, -1)
    given = [list(row) for row in read_rows(order, "order", "in the shape of ratings")]
    if (len(given), *{len(row) for row in given}) != tuple(shape):
        raise ArgumentError(f"order must have the same shape as ratings, {shape}")
    seen: dict[Any, int] = {}
    places = [[-1 if is_missing(one) else seen.setdefault(one, len(seen)) for one in row] for row in given]
    return np.array(places, dtype=np.int64).reshape(shape)


def tables_of_votes(table: VotesTable) -> list[RepeatTable]:
    """Build one table per judge and criterion from the single votes of a votes table."""
    names = distinct_names(table.criteria)
    rows = single_vote_rows(table)
    found = []
    for rater, criterion in np.unique(np.column_stack([table.rater[rows], table.criterion[rows]]), axis=0):
        mine = rows[(table.rater[rows] == rater) & (table.criterion[rows] == criterion)]
        found.append(_repeat_table(table, mine, table.raters[rater][1], names[criterion]))
    return found


def _repeat_table(table: VotesTable, rows: Codes, judge: str, name: str) -> RepeatTable:
    criterion = table.criteria[table.criterion[rows[0]]]
    items, unit = np.unique(rank_by_id(table.item_ids)[table.item[rows]], return_inverse=True)
    by_unit = np.argsort(unit, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(unit))])
    place = np.empty(len(rows), dtype=np.int64)
    place[by_unit] = np.arange(len(rows)) - starts[unit[by_unit]]
    answers, values, level = _vote_answers(table, rows, criterion.level)
    shape = (len(items), int(place.max()) + 1)
    codes, order = np.full(shape, -1), np.full(shape, -1)
    codes[unit, place] = answers
    known = {shown: at for at, shown in enumerate(dict.fromkeys(table.order[rows].tolist()))}
    order[unit, place] = [-1 if shown is None else known[shown] for shown in table.order[rows].tolist()]
    return RepeatTable(
        judge=judge, criterion=name, codes=codes, order=order, values=values, level=level, item=items
    )


def _vote_answers(table: VotesTable, rows: Codes, level: str) -> tuple[Codes, Array | None, AlphaLevel]:
    if level == "interval":
        numbers = np.where(np.isnan(table.number[rows]), table.value[rows], table.number[rows])
        return *number_codes(numbers), "interval"
    na = table.na[rows]
    codes = np.where(na, -1, table.code[rows])
    if level == "ordinal":
        return codes, np.arange(int(codes.max(initial=0)) + 1, dtype=float), "ordinal"
    return codes, None, "nominal"
