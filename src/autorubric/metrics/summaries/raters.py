"""Raters and their references, and the report on one rater."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.item_scores import PANEL, TRUTH, Rater
from autorubric.metrics.core.read_votes import Cells, Column, Modes, cells_of
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import ANSWERED, DECIDED, VotesTable
from autorubric.metrics.summaries.agreement import Agreement

FEW_OF_A_CLASS = 10
"""Size of the rarer class below which kappa and its interval depend heavily on single items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRater:
    """A rater together with the truth with which it is compared.

    Attributes:
        rater: Kind and name of the rater.
        kind: Kind of rater in the report.
        cells: Pairs of item and criterion, with the truth for this rater.
        column: Decisions of the rater.
    """

    rater: Rater
    kind: Literal["panel", "judge", "human"]
    cells: Cells
    column: Column


def compared_raters(table: VotesTable, cells: Cells) -> list[ComparedRater]:
    """Return the panel, followed by each judge."""
    panel = ComparedRater(rater=PANEL, kind="panel", cells=cells, column=cells.raters[PANEL])
    judges: list[Rater] = [("judge", name) for name in table.judges]
    return [
        panel,
        *(ComparedRater(rater=one, kind="judge", cells=cells, column=cells.raters[one]) for one in judges),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """People who are compared with each other.

    Attributes:
        each: Each person against the others; empty if no cell was labelled by two people.
        in_place: For each person, the panel and each judge in that person's place: compared with the same
            other people on the cells that the person answered.
        made_the_truth: Whether the labels are the majority of these people's labels.
    """

    each: Sequence[ComparedRater] = ()
    in_place: Sequence[ComparedRater] = ()
    made_the_truth: bool = True


def people_of(table: VotesTable, modes: Modes) -> People:
    """Return the people to compare with each other, and the panel and judges in their place."""
    people = [rater for rater in table.raters if rater[0] == "human"]
    rated = _ratings(table, people)
    if len(people) < 2 or not (rated.counts.sum(1) + rated.given.sum(1) > 1).any():
        return People()
    each, in_place = [], []
    for place in range(len(people)):
        person, replacements = _against_the_rest(table, rated, place, modes)
        each.append(person)
        in_place += replacements
    return People(each=each, in_place=in_place, made_the_truth=_made_the_truth(table, rated))


def _made_the_truth(table: VotesTable, rated: _Ratings) -> bool:
    """Return whether each label equals the majority, median or mean of these people's labels."""
    n_items = max(table.n_items, 1)
    rows = table.rows_of(TRUTH) if TRUTH in table.raters else np.zeros(0, dtype=np.int64)
    labelled = rows[table.status[rows] == ANSWERED]
    keys = table.criterion[labelled] * n_items + table.item[labelled]
    theirs = rated.place[:, 1] * n_items + rated.place[:, 0]
    where = np.searchsorted(theirs, keys).clip(max=len(theirs) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(rated.given > 0, rated.sums / rated.given, np.nan)[where]
    code, numbers = table.code[labelled], np.column_stack([table.number[labelled], table.value[labelled]])
    labels = [_leading(rated.counts), *_middles(table, rated)]
    chosen = np.any([one[where] == code for one in labels], axis=0)
    alike = np.where(code >= 0, chosen, np.isclose(means, numbers).any(axis=1))
    return bool((alike & (theirs[where] == keys)).all())


def _middles(table: VotesTable, rated: _Ratings) -> list[Codes]:
    """Return each cell's lower median and the option nearest to the mean; -1 if options are unordered."""
    median, nearest = (np.full(len(rated.counts), -1, dtype=np.int64) for _ in range(2))
    for place, criterion in enumerate(table.criteria):
        mine = np.flatnonzero(rated.place[:, 1] == place)
        values = np.array([np.nan if one.value is None else one.value for one in criterion.answers])
        if criterion.level not in ("binary", "ordinal") or not len(mine) or np.isnan(values).all():
            continue
        order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
        counts = np.zeros((len(mine), len(values)))
        known = min(len(values), rated.counts.shape[1])
        counts[:, :known] = rated.counts[mine][:, :known]
        counts, scale = counts[:, order], values[order]
        n = counts.sum(1)
        there = n > 0
        median[mine[there]] = order[np.argmax(2 * np.cumsum(counts, axis=1) >= n[:, None], axis=1)[there]]
        far = np.abs(scale - (counts @ scale / np.maximum(n, 1))[:, None])
        close = far <= far.min(1, keepdims=True) + 1e-12
        nearest[mine[there]] = order[np.argmax(close, axis=1)[there]]
    return [median, nearest]


@dataclass(frozen=True, slots=True)
class _Ratings:
    """Ratings given by people.

    Attributes:
        people: People who gave the ratings.
        rows: Positions of their rows in the votes table.
        cell: Cell to which each row belongs.
        who: Index in `people` for each row.
        place: Item and criterion of each cell, shape `(n_cells, 2)`.
        counts: Number of answers to each cell by code, shape `(n_cells, K)`.
        given: Number of answers to each cell with a number or value but no code, shape `(n_cells, 2)`.
        sums: Sums of these numbers and values, shape `(n_cells, 2)`.
    """

    people: Sequence[Rater]
    rows: Codes
    cell: Codes
    who: Codes
    place: Codes
    counts: Codes
    given: Codes
    sums: Array


def _ratings(table: VotesTable, people: Sequence[Rater]) -> _Ratings:
    positions = np.array([table.raters.index(rater) for rater in people], dtype=np.int64)
    rows = np.flatnonzero(np.isin(table.rater, positions) & (table.sample == DECIDED))
    keys = table.criterion[rows] * max(table.n_items, 1) + table.item[rows]
    seen, cell = np.unique(keys, return_inverse=True)
    cell = cell.reshape(-1)
    place = np.column_stack([seen % max(table.n_items, 1), seen // max(table.n_items, 1)])
    answered = table.status[rows] == ANSWERED
    code = np.where(answered, table.code[rows], -1)
    counts = np.zeros((len(seen), int(code.max(initial=-1)) + 1), dtype=np.int64)
    np.add.at(counts, (cell[code >= 0], code[code >= 0]), 1)
    numbers = np.column_stack([table.number[rows], table.value[rows]])
    there = (answered & (code < 0))[:, None] & ~np.isnan(numbers)
    given, sums = np.zeros((len(seen), 2), dtype=np.int64), np.zeros((len(seen), 2))
    np.add.at(given, cell, there)
    np.add.at(sums, cell, np.where(there, numbers, 0.0))
    order = {int(position): at for at, position in enumerate(positions)}
    who = np.array([order[int(one)] for one in table.rater[rows]], dtype=np.int64)
    return _Ratings(people, rows, cell, who, place, counts, given, sums)


def _against_the_rest(
    table: VotesTable, rated: _Ratings, person: int, modes: Modes
) -> tuple[ComparedRater, list[ComparedRater]]:
    """Return a person compared with the other people, and the panel and judges in that person's place."""
    mine = rated.rows[rated.who == person]
    cell = rated.cell[rated.who == person]
    counts, given, sums = rated.counts.copy(), rated.given.copy(), rated.sums.copy()
    code = np.where(table.status[mine] == ANSWERED, table.code[mine], -1)
    counts[cell[code >= 0], code[code >= 0]] -= 1
    numbers = np.column_stack([table.number[mine], table.value[mine]])
    own = ((table.status[mine] == ANSWERED) & (code < 0))[:, None] & ~np.isnan(numbers)
    given[cell] -= own
    sums[cell] -= np.where(own, numbers, 0.0)
    majority = _leading(counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(given > 0, sums / given, np.nan)
    there = np.flatnonzero((majority >= 0) | (given > 0).any(axis=1))
    place, truths = rated.place[there], (majority[there], means[there])
    # The null character prevents a clash with a judge's name.
    rater: Rater = ("judge", "\0 the person")
    judges: list[Rater] = [PANEL, *(("judge", name) for name in table.judges)]
    small = _joined(table, mine, (rater, *judges), place, truths)
    cells = cells_of(small, modes)
    own_column = cells.raters[rater]
    answered = own_column.answered
    in_place = [
        ComparedRater(rater=one, kind="judge", cells=cells, column=cells.raters[one].only(answered))
        for one in judges
    ]
    return ComparedRater(rater=rated.people[person], kind="human", cells=cells, column=own_column), in_place


def _leading(counts: Codes) -> Codes:
    """Return the most frequent code in each row; -1 if there are no answers or two codes are tied."""
    if not counts.shape[1]:
        return np.full(len(counts), -1, dtype=np.int64)
    most = counts.max(axis=1, keepdims=True)
    alone = (most[:, 0] > 0) & (np.count_nonzero(counts == most, axis=1) == 1)
    return np.where(alone, counts.argmax(axis=1), -1)


def _joined(
    table: VotesTable, mine: Codes, raters: Sequence[Rater], place: Codes, truths: tuple[Codes, Array]
) -> VotesTable:
    """Build a votes table of a person's rows, the judges' rows on the same cells, and the others' labels.

    The person is the first of `raters`. The labels of the other people serve as the truth.
    """
    majority, means = truths
    n = len(place)
    theirs = [_on_cells_of(table, rater, mine) for rater in raters[1:]]
    rows = np.concatenate([mine, *theirs])
    who = np.repeat(np.arange(1, len(raters) + 1), [len(mine), *map(len, theirs)])
    values = _values(table)
    from_code = np.array(
        [
            values[int(criterion)][int(code)] if code >= 0 and criterion in values else np.nan
            for criterion, code in zip(place[:, 1], majority, strict=True)
        ],
        dtype=float,
    )
    is_mean = majority < 0

    def column(name: str, rest: Array) -> Array:
        return np.concatenate([getattr(table, name)[rows], rest])

    return replace(
        table,
        raters=(TRUTH, *raters),
        item=column("item", place[:, 0]),
        criterion=column("criterion", place[:, 1]),
        rater=np.concatenate([who, np.zeros(n, dtype=np.int64)]),
        sample=column("sample", np.full(n, DECIDED)),
        order=column("order", np.full(n, None, dtype=object)),
        code=column("code", majority),
        label=column("label", np.full(n, None, dtype=object)),
        value=column("value", np.where(is_mean, means[:, 1], from_code)),
        number=column("number", np.where(is_mean, means[:, 0], np.nan)),
        na=column("na", np.zeros(n, dtype=bool)),
        status=column("status", np.full(n, ANSWERED)),
        scores={},
    )


def _on_cells_of(table: VotesTable, rater: Rater, mine: Codes) -> Codes:
    """Return the rows of a rater's decisions on the cells of the rows `mine`."""
    if rater not in table.raters:
        return np.zeros(0, dtype=np.int64)
    rows = table.rows_of(rater)
    n_items = max(table.n_items, 1)
    keys, wanted = (table.criterion[one] * n_items + table.item[one] for one in (rows, mine))
    return rows[np.isin(keys, wanted)]


def _values(table: VotesTable) -> dict[int, list[float]]:
    """Return the values of the declared answers, by position of the criterion."""
    return {
        at: [np.nan if answer.value is None else answer.value for answer in criterion.answers]
        for at, criterion in enumerate(table.criteria)
        if criterion.answers and criterion.level != "ranking"
    }


HEADLINES: tuple[str, ...] = (
    "accuracy",
    "balanced_accuracy",
    "kappa",
    "precision",
    "recall",
    "specificity",
    "f1",
    "macro_precision",
    "macro_recall",
    "macro_f1",
    "pearson",
)
"""Names of the metrics that are reported for all criteria together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineFigures:
    """Metrics over several criteria or several annotators, with intervals from resampled items.

    Attributes:
        accuracy: Proportion of exactly matching labels on categorical criteria.
        balanced_accuracy: Mean recall over the categories in the truth, on categorical criteria.
        kappa: Cohen's kappa: unweighted on binary and nominal criteria and comparisons, with quadratic
            weights on ordinal criteria.
        precision: Precision of MET on binary criteria.
        recall: Sensitivity (TPR): proportion of MET cells that were judged MET, on binary criteria.
        specificity: True negative rate: proportion of UNMET cells that were judged UNMET, on binary criteria.
        f1: F1 of MET on binary criteria.
        macro_precision: Mean precision over the categories that the rater used, on nominal criteria and
            comparisons.
        macro_recall: Mean recall over the categories in the truth, on nominal criteria and comparisons.
        macro_f1: Mean F1 over the categories that occur, on nominal criteria and comparisons.
        pearson: Pearson's r on numeric criteria and on the values of ordinal criteria.
    """

    accuracy: Estimate
    balanced_accuracy: Estimate
    kappa: Estimate
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate
    macro_precision: Estimate
    macro_recall: Estimate
    macro_f1: Estimate
    pearson: Estimate

    @property
    def sensitivity(self) -> Estimate:
        """Alias of `recall`."""
        return self.recall

    def figures(self) -> dict[str, Estimate]:
        """Return the metrics keyed by name."""
        return {name: getattr(self, name) for name in HEADLINES}


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroFigures(HeadlineFigures):
    """Means over criteria, each weighted equally.

    Attributes:
        defined: For each metric, the number of criteria on which it is defined and the number it applies to.
    """

    defined: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFigures:
    """Metrics of a rater's decisions on a comparison, which do not require labels. The units are items.

    Attributes:
        position_consistency: Proportion of samples with the same outcome in both orders of the candidates,
            among the `n` samples requested in both orders. The panel's metric uses all judges' samples.
            Undefined (`no_pairs`) for annotators and if no sample was requested in both orders.
        tie_rate: Proportion of decisions in which several candidates share first place.
    """

    position_consistency: Estimate
    tie_rate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterFailures:
    """Cells (pairs of item and criterion) that a rater did not answer, by cause.

    Covers all labelled cells or, if there are no labels, all cells for which the rater has a row.

    Attributes:
        n_cells: Number of cells covered.
        n_answered: Number of cells that the rater answered.
        abstention_rate: Proportion of cells on which the rater abstained.
        failure_rate: Proportion of cells on which the rater failed or gave only unreadable replies.
        not_asked_rate: Proportion of cells on which the rater was not asked or has no vote.
        undecided_rate: Proportion of cells that have no decision because judges or samples are tied.
        not_applicable: Number of cells excluded by a condition.
        truth_abstention_rate: Proportion of cells whose label is an abstention.
        abstention_kappa: Cohen's kappa for whether the label and the rater abstain, over cells with a vote.
    """

    n_cells: int
    n_answered: int
    abstention_rate: Estimate
    failure_rate: Estimate
    not_asked_rate: Estimate
    undecided_rate: Estimate
    not_applicable: int
    truth_abstention_rate: Estimate
    abstention_kappa: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterReport:
    """Report that compares one rater with the ground truth.

    Attributes:
        rater: Name of the rater.
        kind: Kind of rater. A `"human"` rater is compared with the other annotators.
        macro: Means over criteria, the headline metrics.
        micro: Metrics over all cells pooled. Pooling mixes base rates, so a rater that knows only the base
            rates scores well; kappa therefore computes chance agreement within each criterion.
        by_scale: Metrics over the pooled cells of all criteria with the same scale, keyed by its labels;
            useful if each item has its own rubric. Kappa computes chance agreement within each criterion. If
            criteria have few pairs (median below 10), it computes each pair's chance agreement from the
            criterion's other pairs; if they have only one pair each, from all cells of the scale, as in
            `compute_metrics`, which mixes base rates. The estimate's `method` states which of these applies.
        per_criterion: Agreement on each criterion, keyed by name. Criteria that share a name but have
            different scales are numbered.
        comparisons: Position consistency and ties on each comparison (`ComparativeCriterion`), keyed by name.
        scores: Agreement on item scores without the length penalty; None if there are no scores.
        failures: Number of unanswered cells and their rates by cause.
        coverage: Number of pairs used divided by the number of labelled cells; None if there are no labels.
    """

    rater: str
    kind: Literal["panel", "judge", "human"]
    macro: MacroFigures
    micro: HeadlineFigures
    by_scale: Mapping[str, HeadlineFigures]
    per_criterion: Mapping[str, Agreement]
    comparisons: Mapping[str, ComparisonFigures]
    scores: Agreement | None
    failures: RaterFailures
    coverage: float | None


def few_items_each(rater: RaterReport) -> float | None:
    """Return the median number of pairs per criterion if it is low enough to bias kappa; otherwise None."""
    sizes = [agreed.n for agreed in rater.per_criterion.values() if agreed.n]
    median = float(np.median(sizes)) if sizes else 0.0
    return median if len(sizes) > 1 and median < FEW_OF_A_CLASS else None


def names_of(raters: Sequence[RaterReport]) -> list[str]:
    """Return a name for the panel and each judge. A judge named `panel` becomes `judge panel`."""
    return ["judge panel" if one.kind == "judge" and one.rater == "panel" else one.rater for one in raters]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanCeilings:
    """Agreement between each annotator and the majority (for numbers, the mean) of the others.

    Cells on which the other annotators are tied are excluded, which slightly favours each annotator. A
    judge's metrics against the truth are therefore not directly comparable with an annotator's metrics
    against the others; use `gap`, which compares both with the same reference.

    Attributes:
        humans: Names of the annotators.
        macro: For each metric, the mean over annotators of their means over criteria.
        micro: For each metric, the mean over annotators of their pooled values.
        pooled: Means over criteria of metrics that pool all annotators' pairs; more stable if each annotator
            labelled few items.
        per_criterion: Mean over annotators on each criterion.
        per_human: Report on each annotator.
        gap: For `"panel"` and each judge, the rater's metric minus an annotator's. Both are compared with the
            other annotators on the cells that the annotator answered, and the differences between their macro
            metrics are averaged over annotators. 0 means as good as an annotator, negative means worse. If
            the interval contains 0, the data do not distinguish the two.
        made_the_truth: Whether the report's labels are these annotators' majority, median or mean labels. If
            not, the gap does not apply to the report's labels.
    """

    humans: tuple[str, ...]
    macro: HeadlineFigures
    micro: HeadlineFigures
    pooled: HeadlineFigures
    per_criterion: Mapping[str, HeadlineFigures]
    per_human: Mapping[str, RaterReport]
    gap: Mapping[str, HeadlineFigures]
    made_the_truth: bool
