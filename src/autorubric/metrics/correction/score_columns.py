"""Labels and decisions of a run by criterion, and sums per item for the correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics.core.contingency import divide
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.item_scores import PANEL, TRUTH, LabelledDataset, SupportsGradedRun
from autorubric.metrics.core.read_votes import Column, Modes, cells_of, read_votes
from autorubric.metrics.core.scales import Array, Codes
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED
from autorubric.metrics.correction import ppi
from autorubric.metrics.correction.samples import (
    ABSTAINED_AS,
    PPI_LABELS,
    CorrectionMethod,
    CorrectionOptions,
    Strata,
    Stratum,
)
from autorubric.scoring.policies import RubricGroup
from autorubric.scoring.score import Term, score_terms


@dataclass(frozen=True, slots=True)
class CriterionColumns:
    """The labels and decisions on one criterion, in columns of shape `(n_items,)`."""

    name: str
    labels: tuple[str, ...]  # names of the categories; empty for numbers
    values: Array | None  # of the categories in [0, 1], shape `(K,)`; None if one has no value
    share: float  # of the score: the criterion's weight divided by the denominator
    truth: Array  # labels as category codes, K if an abstention or NA, -1 if missing or a number
    judged: Array  # the panel's decisions, in the same way
    true_value: Array  # labels in [0, 1], NaN if missing
    judged_value: Array  # decisions in [0, 1], NaN if missing

    @property
    def unanswered(self) -> Array:
        """Whether the label of an item is an abstention or NA, shape `(n_items,)`."""
        return np.asarray(self.truth == len(self.labels))

    @property
    def abstained(self) -> Array:
        """Whether the decision on an item is an abstention or NA, shape `(n_items,)`."""
        return np.asarray(self.judged == len(self.labels))

    @property
    def labelled(self) -> Array:
        """Whether an item has a label, including one without an answer, shape `(n_items,)`."""
        return ~np.isnan(self.true_value) | self.unanswered

    @property
    def decided(self) -> Array:
        """Whether an item has a decision, including an abstention, shape `(n_items,)`."""
        return ~np.isnan(self.judged_value) | self.abstained


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The criteria and item scores of a run."""

    criteria: tuple[CriterionColumns, ...]  # that enter the score; empty if only item scores were read
    start: float  # score with every value at 0
    true_score: Array  # of complete labels, shape `(n_items,)`; NaN if a label is missing
    judged_score: Array  # of the panel without length penalty; NaN if missing
    abstained: Array  # whether the panel abstained on some criterion
    bends: tuple[str, ...]  # features that make item scores differ from a weighted sum over criteria
    clamped: int  # items whose weighted sum, of labels or of the panel, is outside [0, 1]
    tested: Array  # whether each item counts towards the mean; False for labelled items of another run

    @property
    def judged(self) -> Array:
        """Whether an item has a decision or an abstention, shape `(n_items,)`."""
        if not self.criteria:
            return ~np.isnan(self.judged_score) | self.abstained
        return np.asarray(np.any([one.decided for one in self.criteria], axis=0))

    @property
    def n_judged(self) -> int:
        """Number of items under test that have a decision or an abstention."""
        return int(np.count_nonzero(self.judged & self.tested))

    @property
    def labelled(self) -> Array:
        """Whether an item has both a decision and a label on some criterion, shape `(n_items,)`."""
        if not self.criteria:
            return self.judged & ~np.isnan(self.true_score)
        return np.asarray(np.any([one.decided & one.labelled for one in self.criteria], axis=0))

    @property
    def n_abstained(self) -> int:
        """Number of items under test on which the panel abstained on some criterion."""
        return int(np.count_nonzero(self.abstained & self.tested))

    @property
    def n_incomplete(self) -> int:
        """Number of judged items that lack an answer on some criterion, so their denominators differ."""
        missing = np.any([np.isnan(one.judged_value) for one in self.criteria], axis=0)
        return int(np.count_nonzero(missing & self.judged & self.tested))

    @property
    def n_unjudged(self) -> int:
        """Number of items under test without a decision."""
        return int(np.count_nonzero(~self.judged & self.tested))

    @property
    def has_label(self) -> Array:
        """Whether an item has a label, shape `(n_items,)`."""
        columns = [one.labelled for one in self.criteria] or [~np.isnan(self.true_score)]
        return np.asarray(np.any(columns, axis=0))

    @property
    def n_labelled_unjudged(self) -> int:
        """Number of items with a label but without a decision, including those of the calibration."""
        return int(np.count_nonzero(self.has_label & ~self.judged))

    @property
    def n_items(self) -> int:
        return len(self.true_score)


def read_scores(result: SupportsGradedRun, dataset: LabelledDataset) -> ScoredRun:
    """Read the criteria and item scores of a run with one rubric."""
    root, graded = _one_rubric(result, dataset)
    cells = cells_of(read_votes(result, dataset), Modes())
    start, shares = _shares(list(graded.values()))
    n = cells.n_items
    found = []
    complete = np.ones(n, dtype=bool)
    for measured, span in zip(cells.criteria, cells.spans, strict=True):
        if measured.name not in shares:
            continue
        status = np.zeros(n, dtype=np.int64)
        status[cells.item[span]] = cells.truth.status[span]
        complete &= np.isin(status, (ANSWERED, ABSTAINED))
        numbers = [answer.value for answer in measured.categories]
        values = np.array(numbers, dtype=float) if numbers and None not in numbers else None
        labels, share = tuple(str(answer.label) for answer in measured.categories), shares[measured.name]
        (truth, true_value), (judged, judged_value) = (
            _expand_column(rater.take(span), cells.item[span], n, len(labels), values)
            for rater in (cells.truth, cells.raters[PANEL])
        )
        found.append(
            CriterionColumns(measured.name, labels, values, share, truth, judged, true_value, judged_value)
        )
    true_score = np.where(complete, cells.scores[TRUTH], np.nan)
    judged_score = _panel_scores(result, dataset, n)
    abstained = np.any([one.abstained for one in found], axis=0)
    clamped, bends = _count_clamped(found, start), _nonlinear_features(root)
    return ScoredRun(
        tuple(found), start, true_score, judged_score, abstained, bends, clamped, np.ones(n, bool)
    )


def _expand_column(
    column: Column, item: Codes, n: int, n_categories: int, values: Array | None
) -> tuple[Codes, Array]:
    """Return the codes and values of a column's answers for all items, `(n,)`."""
    codes, numbers = np.full(n, -1, dtype=np.int64), np.full(n, np.nan)
    there = column.status == ANSWERED
    codes[item[there]] = column.code[there]
    numbers[item[there]] = column.value[there]
    if values is not None:
        numbers = np.where(codes >= 0, values[codes], np.nan)
    codes[item[column.status == ABSTAINED]] = n_categories
    return codes, numbers


def read_item_scores(result: SupportsGradedRun, dataset: LabelledDataset) -> ScoredRun:
    """Read the item scores of a run with any rubrics; a true score is missing if any of its labels is."""
    cells = cells_of(read_votes(result, dataset), Modes())
    unlabelled = (cells.raters[PANEL].status > 0) & ~np.isin(cells.truth.status, (ANSWERED, ABSTAINED))
    complete = np.bincount(cells.item[unlabelled], minlength=cells.n_items) == 0
    true_score = np.where(complete, cells.scores[TRUTH], np.nan)
    n, panel = cells.n_items, cells.raters[PANEL].status
    lost = (panel > 0) & ~np.isin(panel, (ANSWERED, ABSTAINED))
    some, none = (np.bincount(cells.item[one], minlength=n) for one in (panel == ABSTAINED, lost))
    abstained = (some > 0) & (none == 0)
    scores = _panel_scores(result, dataset, n)
    return ScoredRun((), 0.0, true_score, scores, abstained, (), 0, np.ones(n, dtype=bool))


def join_calibration(run: ScoredRun, calibration: ScoredRun) -> ScoredRun:
    """Combine the items of a run, without their labels, with the labelled items of its calibration run."""
    labelled = calibration.has_label
    others = {one.name: one for one in calibration.criteria}
    n = run.n_items
    criteria = tuple(
        replace(
            one,
            truth=np.concatenate([np.full(n, -1), other.truth[labelled]]),
            judged=np.concatenate([one.judged, other.judged[labelled]]),
            true_value=np.concatenate([np.full(n, np.nan), other.true_value[labelled]]),
            judged_value=np.concatenate([one.judged_value, other.judged_value[labelled]]),
        )
        for one in run.criteria
        if (other := others.get(one.name)) is not None
    )
    return replace(
        run,
        criteria=criteria,
        true_score=np.concatenate([np.full(n, np.nan), calibration.true_score[labelled]]),
        judged_score=np.concatenate([run.judged_score, calibration.judged_score[labelled]]),
        abstained=np.concatenate([run.abstained, calibration.abstained[labelled]]),
        tested=np.arange(n + int(labelled.sum())) < n,
    )


def _one_rubric(
    result: SupportsGradedRun, dataset: LabelledDataset
) -> tuple[RubricGroup, dict[str, BaseCriterion]]:
    rubrics = [
        {report.name: report.criterion for report in one.report.report}
        for one in result.item_results
        if one.report is not None and one.report.report
    ]
    if not rubrics:
        raise ArgumentError("no item of the run has a report; grade a dataset first")
    facts = ({name: criterion_facts(criterion) for name, criterion in one.items()} for one in rubrics)
    first = next(facts)
    if any(one != first for one in facts):
        raise ArgumentError(
            "the items of the run have different rubrics, so their criteria cannot be pooled; pass a run "
            "with one rubric, or use method='ppi++' with on='items'"
        )
    return dataset.get_item_rubric(0).root, rubrics[0]


def criterion_facts(criterion: BaseCriterion) -> tuple[object, ...]:
    """Return the properties that affect a criterion's score: weight, bonus, level and valued answers."""
    answers = tuple((one.label, one.value, one.na) for one in criterion.answers())
    return criterion.weight, criterion.bonus, criterion.level, answers


def _shares(criteria: Sequence[BaseCriterion]) -> tuple[float, dict[str, float]]:
    """Return the score with all values at 0, and each criterion's share of the score."""
    measuring = [one for one in criteria if one.measures and one.weight]

    def raw_and_score(values: Mapping[str, float]) -> tuple[float, float]:
        made = score_terms(Term(values.get(one.name or "", 0.0), one.weight, one.bonus) for one in measuring)
        if made.score is None or made.raw is None:
            raise ArgumentError("no criterion of the rubric counts towards the score's denominator")
        return made.raw, made.score

    start = raw_and_score({})[1]
    # The scale is the total that moves the score from 0 to 1 or, with penalties only, from 1 to 0.
    positive = {one.name or "": 1.0 for one in measuring if one.weight > 0 and not one.bonus}
    full = positive or {one.name or "": 1.0 for one in measuring if not one.bonus}
    scale = abs(raw_and_score(full)[0])
    return start, {one.name or "": one.weight / scale for one in measuring}


def _panel_scores(result: SupportsGradedRun, dataset: LabelledDataset, n: int) -> Array:
    places = {dataset.item_id(i): i for i in range(n)}
    scores = np.full(n, np.nan)
    for one in result.item_results:
        score = one.report.node_scores.get("") if one.report is not None else None
        if score is not None:
            scores[places[one.item.id or str(one.item_idx)]] = score
    return scores


def _nonlinear_features(root: RubricGroup) -> tuple[str, ...]:
    found = {
        "groups": len(root.groups) > 1,
        "gates": any(leaf.gate is not None for leaf in root.leaves),
        "conditions": any(leaf.when is not None for leaf in root.leaves),
    }
    return tuple(name for name, there in found.items() if there)


def _count_clamped(criteria: Sequence[CriterionColumns], start: float) -> int:
    outside = np.zeros(len(criteria[0].truth) if criteria else 0, dtype=bool)
    for values in ([one.true_value for one in criteria], [one.judged_value for one in criteria]):
        if values:
            total = start + sum(one.share * value for one, value in zip(criteria, values, strict=True))
            with np.errstate(invalid="ignore"):
                outside |= (total < -1e-9) | (total > 1 + 1e-9)
    return int(outside.sum())


_SINGULAR = 1e-9
PRIOR = 0.5
"""Added to the count of each answer, so that a weight of least squares is finite."""


def distribution_of(tables: Array, answers: Array, n_options: int) -> Array:
    """Estimate true proportions `π` with `M π = q`, projected onto valid proportions; shape `(r, K)`.

    `tables`, `(r, T, J)`, counts labelled items with true answers as rows; `answers`, `(r, J)`, the judge's
    answers. The first K = `n_options` rows and columns are the options. If J is K + 1, the last column is
    the judge's abstentions; if T is also K + 1, the last row is labels without an answer, and the result has
    the proportions of the options among the other labels. For T = K and
    J = K + 1, π is the solution of least squares with the weights of Neyman's χ², the inverse proportions of
    the judge's answers. NaN if an option is chosen but never true, or if det M <= 0, where abstentions are
    divided equally among the options if T < J.
    """
    support, n = tables.sum(-1), answers.sum(-1)
    size, n_answers = tables.shape[-2:]
    known = support > 0
    absent = ~known & ((answers[..., :size] == 0) | (np.arange(size) >= n_options))
    with np.errstate(invalid="ignore", divide="ignore"):
        given = np.where(known[..., None], tables / support[..., None], 0.0)
        q = answers / n[..., None]
    # An absent answer keeps its row and column, with 1 on the diagonal.
    given = given + absent[..., None] * np.eye(size, n_answers)
    undefined = (n == 0) | np.any(~known & ~absent, axis=-1)
    given = np.where(undefined[..., None, None], np.eye(size, n_answers), given)
    undefined |= np.linalg.det(given[..., :size] + given[..., size:].sum(-1)[..., None] / size) <= _SINGULAR
    given = np.where(undefined[..., None, None], np.eye(size, n_answers), given)
    columns, q = np.swapaxes(given, -1, -2), np.nan_to_num(q)[..., None]
    if n_answers > size:
        given = given / (tables.sum(-2) + answers + PRIOR)[..., None, :]
        columns, q = given @ columns, given @ q
    shares, unit = np.moveaxis(np.linalg.solve(columns, np.concatenate([q, np.ones_like(q)], -1)), -1, 0)
    # Least squares under the condition that proportions sum to 1.
    shares = shares + unit * ((1 - shares.sum(-1)) / unit.sum(-1))[..., None]
    shares = np.where(undefined[..., None], np.nan, project_to_simplex(shares))[..., :n_options]
    return divide(shares, shares.sum(axis=-1, keepdims=True)) if size > n_options else shares


def project_to_simplex(points: Array) -> Array:
    """Project points `(..., K)` onto the nearest proportions, as in Wang and Carreira-Perpiñán (2013)."""
    descending = -np.sort(-points, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - 1) / np.arange(1, points.shape[-1] + 1)
    last = np.count_nonzero(descending > excess, axis=-1) - 1
    moved = np.take_along_axis(excess, np.maximum(last, 0)[..., None], axis=-1)
    return np.maximum(points - moved, 0.0)


@dataclass(frozen=True, slots=True)
class CorrectionSums:
    """The per-item sums of a criterion and their correction."""

    sums: Array  # shape `(n_items, d)`
    size: int  # true answers T of the tables; 0 for ppi++
    n_answers: int  # answers J of the judge; 0 for ppi++
    n_labelled: int
    n_tested: int  # unlabelled items, for ppi++
    values: Array  # of the answers; for numbers, the smallest and the largest
    lam: float | None = None  # λ of ppi++; None if it is tuned

    def correct(self, sums: Array) -> Array:
        """Compute corrected mean values from sums `(r, d)`, shape `(r,)`; NaN if undefined."""
        if self.size:
            return np.asarray(self.distribution(sums) @ self.values)
        return np.clip(self.ppi_means(sums).value, self.values.min(), self.values.max())

    def distribution(self, sums: Array) -> Array:
        """Compute corrected proportions of the options from sums `(r, d)`, shape `(r, K)`."""
        return distribution_of(*self.tables(sums), len(self.values))

    def ppi_means(self, sums: Array) -> ppi.PPIMeans:
        squares = sums[:, ppi.WIDTH :].reshape(-1, ppi.WIDTH, ppi.WIDTH)
        return ppi.ppi_means(sums[:, : ppi.WIDTH], squares, self.n_labelled, self.n_tested, self.lam)

    @property
    def df(self) -> int | None:
        """Number of labelled items of the rarest answer minus one; None for ppi++."""
        if not self.size:
            return None
        rarest = self.support[self.support > 0].min(initial=np.inf)
        return max(1, int(rarest) - 1) if np.isfinite(rarest) else 1

    @property
    def support(self) -> Array:
        """Number of labelled items of each answer, shape `(K,)`."""
        return np.asarray(self.tables(self.sums.sum(axis=0)[None, :])[0][0].sum(axis=1))

    def tables(self, sums: Array) -> tuple[Array, Array]:
        cells = self.size * self.n_answers
        return sums[:, :cells].reshape(-1, self.size, self.n_answers), sums[:, cells:]


def correction_sums(
    one: CriterionColumns, tested: Array, method: CorrectionMethod, lam: float | None
) -> CorrectionSums:
    both = one.decided & one.labelled
    if method == "rogan-gladen" and one.values is not None:
        n, n_options = len(one.truth), len(one.values)
        abstains = bool(np.any(one.abstained & (tested | one.labelled)))
        # Without abstentions, the judge's answers do not tell how many items have no true answer.
        both &= ~one.unanswered | abstains
        size, n_answers = n_options + int(abstains and bool(one.unanswered.any())), n_options + abstains
        table, answers = np.zeros((n, size * n_answers)), np.zeros((n, n_answers))
        table[np.flatnonzero(both), one.truth[both] * n_answers + one.judged[both]] = 1
        counted = one.decided & tested
        answers[np.flatnonzero(counted), one.judged[counted]] = 1
        sums = np.concatenate([table, answers], axis=1)
        return CorrectionSums(sums, size, n_answers, int(both.sum()), 0, one.values)
    alone = one.decided & ~one.labelled & tested
    reached = np.array([0.0, 1.0]) if one.values is None else one.values
    judged = np.where(one.abstained, ABSTAINED_AS, one.judged_value)
    rows = np.zeros((len(both), ppi.WIDTH))
    rows[both, :3] = np.column_stack(
        [np.ones(both.sum()), ppi.fill_labels(one.true_value[both]), judged[both]]
    )
    rows[alone, 3:] = np.column_stack([np.ones(alone.sum()), judged[alone]])
    squares = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    sums = np.concatenate([rows, squares], axis=1)
    return CorrectionSums(sums, 0, 0, int(both.sum()), int(alone.sum()), reached, lam)


def why_undefined(one: CriterionColumns, part: CorrectionSums, method: CorrectionMethod) -> Reason | None:
    if method == "ppi++":
        if not part.n_tested:
            return "no_values"
        return "too_few_labels" if part.n_labelled < PPI_LABELS else None
    if not part.size:
        return "not_comparable"
    total = part.sums.sum(axis=0)[None, :]
    (table,), (answers,) = part.tables(total)
    options = slice(len(part.values))
    if not answers[options].sum():
        return "no_values"
    if np.any((table.sum(axis=1)[options] == 0) & (answers[options] > 0)) or not table.sum():
        return "too_few_labels"
    return "uninformative_judge" if np.isnan(part.correct(total)[0]) else None


def resample_corrections(
    run: ScoredRun, parts: list[CorrectionSums], refused: list[Reason | None], options: CorrectionOptions
) -> Array:
    """Return corrected values in resamples, `(n_resamples, n_criteria)`; NaN if undefined or refused."""
    corrected = np.full((options.n_resamples, len(parts)), np.nan)
    defined = [place for place, reason in enumerate(refused) if reason is None]
    if not defined:
        return corrected
    ends = np.cumsum([0, *(parts[place].sums.shape[1] for place in defined)])
    sums = np.concatenate([parts[place].sums for place in defined], axis=1)
    strata = tuple(
        # Identical items are drawn as one kind with a count.
        Stratum(*np.unique(sums[chosen], axis=0, return_counts=True), labelled, not labelled)
        for labelled, chosen in ((True, run.judged & run.labelled), (False, run.judged & ~run.labelled))
        if chosen.any()
    )
    rng, done = options.generator(), 0
    for drawn in Strata(strata, False, False).draws(options.n_resamples, rng, width=run.n_items):
        rows = slice(done, done + len(drawn))
        for place, first, last in zip(defined, ends, ends[1:], strict=False):
            extra = _smoothing(parts[place], len(drawn), rng)
            corrected[rows, place] = parts[place].correct(drawn[:, first:last] + extra)
        done += len(drawn)
    return corrected


def _smoothing(part: CorrectionSums, rows: int, rng: np.random.Generator) -> Array | float:
    """Draw one additional labelled item on average, in any cell, so that rare confusions remain possible."""
    if not part.size:
        return 0.0
    given = np.append(part.support > 0, [True] * (part.n_answers - part.size))
    cells = np.outer(part.support > 0, given).reshape(-1).astype(float)
    n = part.n_labelled
    times = rng.binomial(n + 1, 1 / (n + 1), size=rows)
    extra = rng.multinomial(times, cells / cells.sum())
    return np.concatenate([extra, np.zeros((rows, part.n_answers))], axis=1)
