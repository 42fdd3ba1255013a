"""Labels and decisions of a run by criterion, and sums per item for the correction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autorubric.criteria.base import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Reason
from autorubric.metrics.core.item_scores import PANEL, TRUTH, LabelledDataset, SupportsGradedRun
from autorubric.metrics.core.read_votes import Modes, cells_of, read_votes
from autorubric.metrics.core.resampling import draw_weights
from autorubric.metrics.core.scales import Array
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED, MeasuredCriterion
from autorubric.metrics.correction import ppi
from autorubric.metrics.correction.arguments import PPI_LABELS, CorrectionMethod, CorrectionOptions
from autorubric.metrics.correction.same_judging import criterion_facts
from autorubric.scoring.policies import RubricGroup
from autorubric.scoring.score import Term, score_terms


@dataclass(frozen=True, slots=True)
class CriterionColumns:
    """The labels and decisions on one criterion; each column has shape `(n_items,)`."""

    name: str  # Name of the criterion
    labels: tuple[str, ...]  # Names of the categories; empty for numbers
    values: Array | None  # Values of the categories in [0, 1], shape `(K,)`; None if a category has no value
    share: float  # The criterion's share of the score: its weight divided by the denominator
    truth: Array  # Labels as category codes, -1 if missing
    judged: Array  # The panel's decisions as category codes, -1 if missing
    true_value: Array  # Labels in [0, 1], NaN if missing
    judged_value: Array  # Decisions in [0, 1], NaN if missing


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The criteria and item scores of a run."""

    criteria: tuple[
        CriterionColumns, ...
    ]  # The criteria that enter the score; empty if only item scores were read
    start: float  # The score with every value at 0
    true_score: Array  # Item scores of complete labels, shape `(n_items,)`; NaN if a label is missing
    judged_score: Array  # Item scores of the panel without length penalty; NaN if missing
    bends: tuple[str, ...]  # Features that make item scores differ from a weighted sum over criteria
    clamped: int  # Number of items whose weighted sum, of labels or of the panel, is outside [0, 1]
    tested: Array  # Whether each item counts towards the mean, shape `(n_items,)`
    unread_labels: int = 0

    @property
    def judged(self) -> Array:
        """Whether an item has a decision, shape `(n_items,)`."""
        return np.asarray(np.any([~np.isnan(one.judged_value) for one in self.criteria], axis=0))

    @property
    def n_judged(self) -> int:
        """Number of items under test that have a decision."""
        return int(np.count_nonzero(self.judged & self.tested))

    @property
    def labelled(self) -> Array:
        """Whether an item has both a decision and a label on some criterion, shape `(n_items,)`."""
        both = [~np.isnan(one.judged_value + one.true_value) for one in self.criteria]
        return np.asarray(np.any(both, axis=0))

    @property
    def n_incomplete(self) -> int:
        """Number of judged items that lack a decision on some criterion, so their denominators differ."""
        missing = np.any([np.isnan(one.judged_value) for one in self.criteria], axis=0)
        return int(np.count_nonzero(missing & self.judged & self.tested))

    @property
    def n_unjudged(self) -> int:
        """Number of items under test without a decision."""
        return int(np.count_nonzero(~self._decided & self.tested))

    @property
    def n_labelled_unjudged(self) -> int:
        """Number of items with a label but without a decision, including those of the calibration."""
        columns = [one.true_value for one in self.criteria] or [self.true_score]
        has_label = np.any([~np.isnan(column) for column in columns], axis=0)
        return int(np.count_nonzero(has_label & ~self._decided)) + self.unread_labels

    @property
    def _decided(self) -> Array:
        return self.judged if self.criteria else ~np.isnan(self.judged_score)

    @property
    def n_items(self) -> int:
        """Number of items in the dataset."""
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
        values = _category_values(measured)
        columns = []
        status = np.zeros(n, dtype=np.int64)
        status[cells.item[span]] = cells.truth.status[span]
        complete &= np.isin(status, (ANSWERED, ABSTAINED))
        for rater in (cells.truth, cells.raters[PANEL]):
            codes, numbers = np.full(n, -1, dtype=np.int64), np.full(n, np.nan)
            column = rater.take(span)
            there = column.status == ANSWERED
            codes[cells.item[span][there]] = column.code[there]
            numbers[cells.item[span][there]] = column.value[there]
            if values is not None:
                numbers = np.where(codes >= 0, values[codes], np.nan)
            columns.append((codes, numbers))
        labels = tuple(str(answer.label) for answer in measured.categories)
        (truth, true_value), (judged, judged_value) = columns
        found.append(
            CriterionColumns(
                measured.name, labels, values, shares[measured.name], truth, judged, true_value, judged_value
            )
        )
    true_score = np.where(complete, cells.scores[TRUTH], np.nan)
    judged_score = _panel_scores(result, dataset, n)
    clamped = _count_clamped(found, start)
    return ScoredRun(
        tuple(found), start, true_score, judged_score, _nonlinear_features(root), clamped, np.ones(n, bool)
    )


def read_item_scores(result: SupportsGradedRun, dataset: LabelledDataset) -> ScoredRun:
    """Read the item scores of a run with any rubrics; a true score is missing if any of its labels is."""
    cells = cells_of(read_votes(result, dataset), Modes())
    unlabelled = (cells.raters[PANEL].status > 0) & ~np.isin(cells.truth.status, (ANSWERED, ABSTAINED))
    complete = np.bincount(cells.item[unlabelled], minlength=cells.n_items) == 0
    true_score = np.where(complete, cells.scores[TRUTH], np.nan)
    n = cells.n_items
    return ScoredRun((), 0.0, true_score, _panel_scores(result, dataset, n), (), 0, np.ones(n, dtype=bool))


def join_calibration(run: ScoredRun, calibration: ScoredRun) -> ScoredRun:
    """Combine the items of a run, without their labels, with the labelled items of its calibration run."""
    labelled = calibration.labelled if calibration.criteria else ~np.isnan(calibration.true_score)
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
        tested=np.arange(n + int(labelled.sum())) < n,
        # For item scores, these items are already among the rows.
        unread_labels=calibration.n_labelled_unjudged if calibration.criteria else 0,
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
    first = rubrics[0]
    facts = {name: criterion_facts(criterion) for name, criterion in first.items()}
    for other in rubrics[1:]:
        if (
            other is not first
            and {name: criterion_facts(criterion) for name, criterion in other.items()} != facts
        ):
            raise ArgumentError(
                "the items of the run have different rubrics, so their criteria cannot be pooled; pass a "
                "run with one rubric, or use method='ppi++' with on='items'"
            )
    return dataset.get_item_rubric(0).root, first


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


def _category_values(measured: MeasuredCriterion) -> Array | None:
    values = [answer.value for answer in measured.categories]
    if not values or any(value is None for value in values):
        return None
    return np.array(values, dtype=float)


def _panel_scores(result: SupportsGradedRun, dataset: LabelledDataset, n: int) -> Array:
    places = {dataset.item_id(i): i for i in range(n)}
    scores = np.full(n, np.nan)
    for one in result.item_results:
        score = one.report.node_scores.get("") if one.report is not None else None
        if score is not None:
            scores[places[one.item.id or str(one.item_idx)]] = score
    return scores


def _nonlinear_features(root: RubricGroup) -> tuple[str, ...]:
    leaves = root.leaves
    found = {
        "groups": len(root.groups) > 1,
        "gates": any(leaf.gate is not None for leaf in leaves),
        "conditions": any(leaf.when is not None for leaf in leaves),
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


def distribution_of(tables: Array, answers: Array) -> Array:
    """Estimate the true proportions `π = M⁻¹ q`, shape `(r, K)`, projected onto valid proportions."""
    support, n = tables.sum(-1), answers.sum(-1)
    size = tables.shape[-1]
    known = support > 0
    absent = ~known & (answers == 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        given = np.where(known[..., None], tables / support[..., None], 0.0)
        q = answers / n[..., None]
    # An absent answer keeps its row and column, with 1 on the diagonal.
    given = given + absent[..., None] * np.eye(size)
    undefined = (n == 0) | np.any(~known & ~absent, axis=-1)
    given = np.where(undefined[..., None, None], np.eye(size), given)
    undefined |= np.linalg.det(given) <= _SINGULAR
    given = np.where(undefined[..., None, None], np.eye(size), given)
    shares = np.linalg.solve(np.swapaxes(given, -1, -2), np.nan_to_num(q)[..., None])[..., 0]
    return np.where(undefined[..., None], np.nan, project_to_simplex(shares))


def project_to_simplex(points: Array) -> Array:
    """Project points, shape `(..., K)`, onto the nearest proportions (>= 0, sum 1) [1].

    For two answers, this amounts to clipping to [0, 1].

    References:
        [1] W. Wang, M. A. Carreira-Perpiñán (2013), Projection onto the probability simplex, arXiv:1309.1541.
    """
    descending = -np.sort(-points, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - 1) / np.arange(1, points.shape[-1] + 1)
    last = np.count_nonzero(descending > excess, axis=-1) - 1
    moved = np.take_along_axis(excess, np.maximum(last, 0)[..., None], axis=-1)
    return np.maximum(points - moved, 0.0)


_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class CorrectionSums:
    """The per-item sums of a criterion and their correction."""

    sums: Array  # Sums of each item, shape `(n_items, d)`
    size: int  # Number of answers K of the tables; 0 for ppi++
    n_labelled: int  # Number of labelled items
    n_tested: int  # Number of unlabelled items, for ppi++
    values: Array  # Values of the answers; for numbers, the smallest and the largest
    lam: float | None = None  # λ of ppi++ if it is fixed; None if it is tuned

    def correct(self, sums: Array) -> Array:
        """Compute corrected mean values from sums `(r, d)`, shape `(r,)`; NaN if undefined."""
        if self.size:
            return np.asarray(distribution_of(*self._tables(sums)) @ self.values)
        return np.clip(self.ppi_means(sums).value, self.values.min(), self.values.max())

    def distribution(self, sums: Array) -> Array:
        """Compute corrected proportions of the answers, shape `(r, K)`."""
        return distribution_of(*self._tables(sums))

    def ppi_means(self, sums: Array) -> ppi.PPIMeans:
        """Compute prediction-powered means."""
        squares = sums[:, ppi.WIDTH :].reshape(-1, ppi.WIDTH, ppi.WIDTH)
        return ppi.ppi_means(sums[:, : ppi.WIDTH], squares, self.n_labelled, self.n_tested, self.lam)

    @property
    def df(self) -> int | None:
        """Number of labelled items of the rarest answer minus one; None for ppi++."""
        if not self.size:
            return None
        support = self.sums.sum(axis=0)[: self.size**2].reshape(self.size, self.size).sum(axis=1)
        rarest = support[support > 0].min(initial=np.inf)
        return max(1, int(rarest) - 1) if np.isfinite(rarest) else 1

    def _tables(self, sums: Array) -> tuple[Array, Array]:
        cells = self.size * self.size
        return sums[:, :cells].reshape(-1, self.size, self.size), sums[:, cells:]


def correction_sums(
    one: CriterionColumns, tested: Array, method: CorrectionMethod, lam: float | None
) -> CorrectionSums:
    judged, labelled = ~np.isnan(one.judged_value), ~np.isnan(one.true_value)
    both = judged & labelled
    if method == "rogan-gladen" and one.values is not None:
        size = len(one.values)
        n = len(one.truth)
        table, answers = np.zeros((n, size * size)), np.zeros((n, size))
        table[np.flatnonzero(both), one.truth[both] * size + one.judged[both]] = 1
        counted = judged & tested
        answers[np.flatnonzero(counted), one.judged[counted]] = 1
        return CorrectionSums(np.concatenate([table, answers], axis=1), size, int(both.sum()), 0, one.values)
    alone = judged & ~labelled & tested
    reached = np.array([0.0, 1.0]) if one.values is None else one.values
    rows = np.column_stack(
        [
            both.astype(float),
            np.where(both, one.true_value, 0.0),
            np.where(both, one.judged_value, 0.0),
            alone.astype(float),
            np.where(alone, one.judged_value, 0.0),
        ]
    )
    squares = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    sums = np.concatenate([rows, squares], axis=1)
    return CorrectionSums(sums, 0, int(both.sum()), int(alone.sum()), reached, lam)


def why_undefined(one: CriterionColumns, part: CorrectionSums, method: CorrectionMethod) -> Reason | None:
    total = part.sums.sum(axis=0)[None, :]
    if method == "ppi++":
        if not part.n_tested:
            return "no_values"
        return "too_few_labels" if part.n_labelled < PPI_LABELS else None
    if not part.size:
        return "not_comparable"
    cells = part.size * part.size
    table, answers = total[0, :cells].reshape(part.size, part.size), total[0, cells:]
    if not answers.sum():
        return "no_values"
    if np.any((table.sum(axis=1) == 0) & (answers > 0)) or not table.sum():
        return "too_few_labels"
    return "uninformative_judge" if np.isnan(part.correct(total)[0]) else None


def resample_corrections(
    run: ScoredRun, parts: list[CorrectionSums], refused: list[Reason | None], options: CorrectionOptions
) -> Iterator[Array]:
    """Yield corrected values in resamples of items, shape `(r, n_criteria)`; NaN if undefined or refused."""
    defined = [place for place, reason in enumerate(refused) if reason is None]
    ends = np.cumsum([0, *(parts[place].sums.shape[1] for place in defined)])
    sums = np.concatenate([np.zeros((run.n_items, 0)), *(parts[place].sums for place in defined)], axis=1)
    strata = [
        # Identical items are drawn as one kind with a count.
        np.unique(sums[chosen], axis=0, return_counts=True)
        for chosen in (run.judged & run.labelled, run.judged & ~run.labelled)
        if chosen.any()
    ]
    rng = options.generator()
    step = max(1, _CHUNK_CELLS // max(run.n_items, 1))
    for start in range(0, options.n_resamples, step):
        rows = min(step, options.n_resamples - start)
        found = np.full((rows, len(parts)), np.nan)
        drawn = np.zeros((rows, sums.shape[1]))
        for kinds, counts in strata:
            drawn += draw_weights(counts, int(counts.sum()), rows, rng) @ kinds
        for place, first, last in zip(defined, ends, ends[1:], strict=False):
            part = parts[place]
            found[:, place] = part.correct(drawn[:, first:last] + _smoothing(part, rows, rng))
        yield found


def _smoothing(part: CorrectionSums, rows: int, rng: np.random.Generator) -> Array | float:
    """Draw one additional labelled item on average, in any cell, so that rare confusions remain possible."""
    if not part.size:
        return 0.0
    used = part.sums.sum(axis=0)[: part.size**2].reshape(part.size, part.size).sum(axis=1) > 0
    cells = np.outer(used, used).reshape(-1).astype(float)
    n = part.n_labelled
    times = rng.binomial(n + 1, 1 / (n + 1), size=rows)
    extra = rng.multinomial(times, cells / cells.sum())
    return np.concatenate([extra, np.zeros((rows, part.size))], axis=1)
