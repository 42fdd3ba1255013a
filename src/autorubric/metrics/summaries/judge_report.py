"""Reports on the judges of a labelled run or of a table of labels, and on the people who labelled items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autorubric.criteria.values import NamedDict
from autorubric.datasets.item import TruthRule
from autorubric.errors import ArgumentError
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.item_scores import PANEL, TRUTH, GradedItems, LabelledDataset, Rater
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.metric import CATEGORICAL
from autorubric.metrics.core.read_votes import Cells, Column, Modes, cells_of, count_unanswered, read_votes
from autorubric.metrics.core.resampling import IntervalOptions
from autorubric.metrics.core.result import ResultBase
from autorubric.metrics.core.scales import Array, Binary, Interval, Ordinal, Scale, Weights
from autorubric.metrics.core.votes_table import (
    ABSENT,
    ABSTAINED,
    ANSWERED,
    FAILED,
    NOT_ASKED,
    UNDECIDED,
    VotesTable,
    distinct_names,
)
from autorubric.metrics.summaries.agreement import (
    Agreement,
    abstention_kappas,
    agreement_of,
    agreements_of,
    flag_estimate,
)
from autorubric.metrics.summaries.compared_raters import ComparedRater, People, compared_raters, people_of
from autorubric.metrics.summaries.highlights import fold_warnings, metric_warnings, panel_and_best
from autorubric.metrics.summaries.item_resampling import ResampledMetrics, resample
from autorubric.metrics.summaries.probability_figures import ProbabilityFigures, probability_figures
from autorubric.metrics.summaries.rater_report import (
    ComparisonFigures,
    HumanCeilings,
    RaterFailures,
    RaterReport,
    few_items_each,
    rater_names,
)
from autorubric.metrics.summaries.rater_table import count_items, na_stats, rater_metrics, rater_table
from autorubric.metrics.summaries.reliability import Reliability, reliability_by_criterion
from autorubric.metrics.summaries.report_result import JudgeReport
from autorubric.metrics.summaries.sides import AbstainMode, Sides, modes_of, scale_at
from autorubric.metrics.summaries.table_metrics import FEW_OF_A_CLASS, layout_of, numbers_on
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock

_FEW_CELLS = 64
"""Maximum number of cells for which a criterion's agreement is cached, because small columns often repeat."""


def judge_report(  # noqa: PLR0913 - a public entry point with many options
    result: Any,
    dataset: LabelledDataset | None = None,
    *,
    scales: Scale | Mapping[str, Scale] | None = None,
    truth: TruthRule | None = None,
    abstain: AbstainMode = "exclude",
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> JudgeReport:
    """Report how well a run's judges agree with the ground truth, with annotators and with each other.

    The headline metrics are means over criteria. Their intervals, and the intervals of pooled metrics and of
    the human ceiling, use one set of resampled items for all raters, so differences between raters are
    paired. Intervals on single criteria are the ones that `agreement` computes with items as units. Metrics
    that `compute_metrics` also reports have the same values, with two exceptions: only this report includes
    comparisons in its means over criteria, and its pooled kappa uses the chance agreement of each criterion.
    Criteria are matched by name and scale, never by position.

    If annotators share a cell (pair of item and criterion), `human_ceiling` compares each with the others.

    Args:
        result: An `EvalResult`, or a long table of labels: a DataFrame or rows with item_id, criterion, rater
            and label.
        dataset: Dataset with the labels; None uses the run's dataset.
        scales: Scale for a label table that has no dataset, or a mapping from criterion name to scale.
        truth: Rule that combines several annotators' labels: `"mode"`, `"majority"` (more than half of them),
            `"median"` or `"mean"`. None uses the median for ordinal scales, so that every cell gets a label,
            the mean for numbers, and the mode otherwise. Labels in `ground_truth` take precedence.
        abstain: How abstentions are counted; see `agreement`. `"as_category"` treats NA and CANNOT_ASSESS,
            from judges and in labels, as one additional category. `"as_negative"` corresponds to `as_unmet`
            and `as_worst` in `compute_metrics`.
        confidence_level: Confidence level of all intervals.
        n_resamples: Number of times that items and tables are resampled.
        rng: Seed or numpy random generator for the resampling.

    Raises:
        ArgumentError: If the mode or rule is unknown, the rule does not apply to a scale, or the table cannot
            be read.
    """
    modes = modes_of(abstain)
    options = IntervalOptions(
        confidence_level=confidence_level, n_resamples=n_resamples, rng=rng
    ).with_fixed_seed()
    table = table_of(result, dataset, scales=scales, truth=truth)
    cells = cells_of(table, modes)
    raters, people = compared_raters(table, cells), people_of(table, modes)
    given = _ReportContext(
        cells=cells,
        names=distinct_names(cells.criteria),
        modes=modes,
        abstain=abstain,
        options=options,
        resampled=resample(raters, people.each, people.in_place, layout_of(cells, modes), options),
        probabilities=probability_figures(table, cells, options.confidence_level),
    )
    reports = [_rater_report(given, one, at) for at, one in enumerate([*raters, *people.each])]
    reports[: len(raters)] = _with_abstentions(given, raters, reports)
    labelled = cells.truth.status > 0
    per_judge = {one.rater: one for one in reports[1 : len(raters)]}
    return JudgeReport(
        panel=reports[0],
        per_judge=per_judge,
        panel_and_best=panel_and_best(cells, modes, reports[0], per_judge, options),
        human_ceiling=_ceiling(given, reports, raters, people) if people.each else None,
        reliability=reliability_by_criterion(cells, [one.rater for one in raters[1:]], modes, options),
        n_items=len(np.unique(cells.item[labelled])),
        n_cells=int(np.count_nonzero(labelled)),
        n_tied_labels=table.n_tied_labels if table.n_people > 1 else None,
        truth=truth,
        abstain=abstain,
        confidence_level=options.confidence_level,
        n_resamples=options.n_resamples,
        seed=options.seed,
        warnings=(
            *fold_warnings(_warnings(given, table)),
            *table.notes,
            *fold_warnings(_thin_criteria(reports[: len(raters)])),
            *(
                f"{judge}: probabilities of different origins ({'; '.join(sorted(origins))}) are never "
                "combined in a figure, so it has no figures of probabilities"
                for judge, origins in table.origins.items()
                if len(origins) > 1
            ),
            *_thin_people(reports[len(raters) :]),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReportContext:
    """Data shared by the parts of a report. `known` caches the agreements of small columns."""

    cells: Cells
    names: tuple[str, ...]
    modes: Modes
    abstain: AbstainMode
    options: IntervalOptions
    resampled: ResampledMetrics
    probabilities: Mapping[Rater, Mapping[str, ProbabilityFigures]]
    known: dict[object, Agreement] = field(default_factory=dict)


def _rater_report(given: _ReportContext, one: ComparedRater, at: int) -> RaterReport:
    resampled = given.resampled
    per_criterion = _per_criterion(given, one)
    labelled = int(np.count_nonzero(one.cells.truth.status > 0))
    return RaterReport(
        rater=one.rater[1],
        kind=one.kind,
        macro=resampled.macro(at),
        micro=resampled.micro(at),
        by_scale={
            " | ".join(group.labels): resampled.of_scale(at, place)
            for place, group in enumerate(resampled.layout.groups)
        },
        per_criterion=per_criterion,
        comparisons=_comparisons(given, one),
        scores=_scores(given, one),
        failures=_failures(given, one),
        coverage=sum(found.n for found in per_criterion.values()) / labelled if labelled else None,
        probabilities=given.probabilities.get(one.rater, {}),
    )


def _with_abstentions(
    given: _ReportContext, raters: Sequence[ComparedRater], reports: Sequence[RaterReport]
) -> list[RaterReport]:
    """Add figures on common cells, and with unanswered cells as errors and as right answers, if any."""
    unanswered = any(one.unanswered.any() for one in raters)
    answered = [one.column.answered & one.cells.truth.answered for one in raters[1:]]
    if not (unanswered or (np.any(answered, axis=0) & ~np.all(answered, axis=0)).any()):
        return list(reports[: len(raters)])
    assumed = (False, True) if unanswered else ()
    cases = [raters, *([one.answer_unanswered(right=right) for one in raters] for right in assumed)]
    for at, case in enumerate(cases):
        common = np.all([one.column.answered for one in case[1:]], axis=0)
        cases[at] = [replace(one, column=one.column.only(common)) for one in case]
    found = [resample(case, (), (), given.resampled.layout, given.options) for case in cases]
    return [
        replace(
            report,
            on_common_cells=found[0].macro(at),
            abstention_bounds=(found[1].macro(at), found[2].macro(at)) if unanswered else None,
        )
        for at, report in enumerate(reports[: len(raters)])
    ]


def _per_criterion(given: _ReportContext, one: ComparedRater) -> dict[str, Agreement]:
    keys = NamedDict[object]()
    on_scales: dict[object, dict[object, Sides]] = {}
    for place, name in enumerate(given.names):
        scale = scale_at(given.cells, place)
        if scale is None:
            continue
        sides = _sides(given, one, place, scale)
        key = keys[name] = _key(sides) if len(sides.truth.code) <= _FEW_CELLS else (place, one.rater)
        if key not in given.known:
            on_scales.setdefault((type(scale), scale, sides.has_category), {})[key] = sides
    for on_scale in on_scales.values():
        # As in the headline, near misses get partial credit on ordered options.
        batch = list(on_scale.values())
        weights: Weights = "quadratic" if isinstance(batch[0].scale, Ordinal) else None
        found = agreements_of(batch, weights, given.options, given.abstain)
        given.known.update(zip(on_scale, found, strict=True))
    return NamedDict({name: given.known[key] for name, key in keys.items()})


def _comparisons(given: _ReportContext, one: ComparedRater) -> dict[str, ComparisonFigures]:
    cells, options = one.cells, given.options
    asked_twice = cells.positions.get(one.rater, np.zeros((0, 3), dtype=np.int64))
    found = {}
    for place, outcomes in sorted(cells.outcomes.items()):
        span = cells.spans[place]
        _, item, alike = asked_twice[asked_twice[:, 0] == place].T
        consistent = flag_estimate("position consistency", alike, np.ones(len(alike), bool), item, options)
        decided = one.column.code[span]
        tied = np.array([outcome.count(0) > 1 for outcome in outcomes])[decided]
        found[given.names[place]] = ComparisonFigures(
            position_consistency=consistent
            if len(alike)
            else Estimate.undefined("no_pairs", method="position consistency"),
            tie_rate=flag_estimate("tie rate", tied, decided >= 0, None, options),
        )
    return found


def _key(sides: Sides) -> object:
    arrays = [a.tobytes() for one in (sides.truth, sides.pred) for a in one.arrays]
    return type(sides.scale).__name__, sides.scale, sides.has_category, tuple(arrays)


def _sides(given: _ReportContext, one: ComparedRater, place: int, scale: Scale) -> Sides:
    span = one.cells.spans[place]
    truth, pred = one.cells.truth.take(span), one.column.take(span)
    if isinstance(scale, Interval):
        numbers = numbers_on(one, place)
        truth, pred = (replace(side, number=x) for side, x in zip((truth, pred), numbers, strict=True))
    has_category = given.modes.has_category and one.cells.criteria[place].level in CATEGORICAL
    return Sides(scale=scale, has_category=has_category, truth=truth, pred=pred)


def _scores(given: _ReportContext, one: ComparedRater) -> Agreement | None:
    scores = one.cells.scores
    if one.rater not in scores or np.isnan(scores[TRUTH]).all():
        return None
    truth, pred = (_column_of(scores[rater]) for rater in (TRUTH, one.rater))
    return agreement_of(Sides(scale=Interval(), truth=truth, pred=pred), None, given.options, "exclude")


def _column_of(numbers: Array) -> Column:
    none = np.full(len(numbers), -1, dtype=np.int64)
    return Column(np.where(np.isnan(numbers), ABSENT, ANSWERED), none, numbers, numbers)


def _failures(given: _ReportContext, one: ComparedRater) -> RaterFailures:
    truth, column, item = one.cells.truth, one.column, one.cells.item
    counted = truth.status > 0 if (truth.status > 0).any() else column.status > 0
    options = given.options

    def rate(name: str, *statuses: int, of: Column = column) -> Estimate:
        return flag_estimate(name, np.isin(of.status, statuses), counted, item, options)

    both = [replace(side, status=np.where(counted, side.status, ABSENT)) for side in (truth, column)]
    sides = Sides(scale=Binary(), truth=both[0], pred=both[1], cluster=item)
    return RaterFailures(
        n_cells=int(np.count_nonzero(counted)),
        n_answered=int(np.count_nonzero(counted & (column.status == ANSWERED))),
        abstention_rate=rate("abstention rate", ABSTAINED),
        failure_rate=rate("failure rate", FAILED),
        not_asked_rate=rate("not asked", NOT_ASKED, ABSENT),
        undecided_rate=rate("undecided", UNDECIDED),
        not_applicable=na_stats(truth, column).not_applicable,
        truth_abstention_rate=rate("abstentions of the truth", ABSTAINED, of=truth),
        abstention_kappa=abstention_kappas([sides], options)[0],
        **count_unanswered(truth, column),
    )


def _ceiling(
    given: _ReportContext, reports: Sequence[RaterReport], raters: Sequence[ComparedRater], compared: People
) -> HumanCeilings:
    n_raters = len(raters)
    resampled, people = given.resampled, reports[n_raters:]
    panel = compared.in_place[::n_raters]
    n_answered, n_cells = (
        sum(int(np.count_nonzero(one.column.answered & one.cells.truth.answered)) for one in some)
        for some in (panel, compared.each)
    )
    bounds = []
    for right in (False, True) if n_answered < n_cells else ():
        case = [one.answer_unanswered(right=right) for one in panel]
        same_cells = [
            replace(person, column=person.column.only(one.column.answered))
            for person, one in zip(compared.each, case, strict=True)
        ]
        found = resample(raters[:1], same_cells, case, resampled.layout, given.options)
        bounds.append(found.of_people("gap", (0,)))
    figured = [place for place, name in enumerate(given.names) if name in people[0].per_criterion]
    placed = {place for group in resampled.layout.groups for place in group.places}
    placed.update(resampled.layout.numeric)
    criteria = {given.names[place]: place for place in figured if place in placed}
    names = rater_names(reports[:n_raters])
    return HumanCeilings(
        humans=tuple(one.rater for one in people),
        macro=resampled.of_people("ceiling"),
        micro=resampled.of_people("ceiling_micro"),
        pooled=resampled.of_people("ceiling_pooled"),
        per_criterion={name: resampled.of_people_on(place) for name, place in criteria.items()},
        per_human={one.rater: one for one in people},
        in_place={who: resampled.in_place(at) for at, who in enumerate(names)},
        in_place_per_criterion={
            who: {name: resampled.in_place(at, place) for name, place in criteria.items()}
            for at, who in enumerate(names)
        },
        gap={who: resampled.of_people("gap", (at,)) for at, who in enumerate(names)},
        gap_bounds=(bounds[0], bounds[1]) if bounds else None,
        answered=(n_answered, n_cells),
        made_the_truth=compared.made_the_truth,
    )


def _warnings(given: _ReportContext, table: VotesTable) -> list[str]:
    """Return the warnings of `compute_metrics`, except those about item scores if there are no scores."""
    rows = rater_table(given.cells, given.modes, replace(given.options, ci=None))
    # Without judges there is no panel, so nothing can be missing from it.
    found = {rater: rater_metrics(rows, rater) for rater in (given.cells.raters if table.judges else ())}
    n_items = count_items(given.cells, PANEL) if found else 0
    has = {"has_scores": bool(table.scores), "has_probabilities": table.has_probabilities}
    return metric_warnings(table.criteria, given.modes, found, n_items, **has)


def _thin_criteria(raters: Sequence[RaterReport]) -> list[str]:
    """Warn about criteria with so few items that their kappas and the mean kappa are biased."""
    medians = zip(rater_names(raters), map(few_items_each, raters), strict=True)
    return [
        f"{who}: there are few items per criterion (median {median:g}), which biases kappas and therefore "
        "the mean; see by_scale instead"
        for who, median in medians
        if median is not None
    ]


def _thin_people(people: Sequence[RaterReport]) -> list[str]:
    pairs = [found.n for one in people for found in one.per_criterion.values()]
    if not pairs or np.median(pairs) >= FEW_OF_A_CLASS:
        return []
    return [
        f"annotators labelled few items per criterion (median {np.median(pairs):g}); human_ceiling.pooled, "
        "which pools their label pairs, is more stable than the mean over annotators"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAgreement(ResultBase):
    """Agreement among the annotators of a dataset.

    Attributes:
        raters: Names of the annotators, in order of appearance.
        n_items: Number of items with a rating.
        n_shared: Number of items on which two or more annotators rated the same criterion.
        n_tied_labels: Number of cells (pairs of item and criterion) that have no label because ratings tie.
        reliability: Reliability on each criterion, by name (numbered if repeated). Excludes Kendall's W.
        ceiling: Agreement of each annotator with the others, and means over criteria and annotators; None if
            no two annotators rated the same cell.
    """

    raters: tuple[str, ...]
    n_items: int
    n_shared: int
    n_tied_labels: int
    reliability: Mapping[str, Reliability]
    ceiling: HumanCeilings | None

    def blocks(self) -> list[Block]:
        """Return the metrics as content blocks for the text, HTML and LaTeX renderers."""
        macro = self.ceiling.macro if self.ceiling is not None else None
        counts: tuple[tuple[str, Cell], ...] = (
            ("raters", len(self.raters)),
            ("items with a rating", self.n_items),
            ("items rated by two or more", self.n_shared),
            ("cells without a label because of ties", self.n_tied_labels),
            ("mean kappa of an annotator with the others", macro.kappa.value if macro else None),
            ("mean agreement of an annotator with the others", macro.accuracy.value if macro else None),
        )
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                one.n_pairable,
                one.percent_agreement.value,
                one.alpha.value,
                one.alpha.low,
                one.alpha.high,
                one.alpha.reason or "",
            )
            for name, one in self.reliability.items()
        ]
        columns = ("criterion", "items shared", "agreement", "alpha", "low", "high", "reason")
        shown: list[Block] = [
            ScalarBlock(title="Agreement among annotators", figures=counts),
            TableBlock(title="Agreement on each criterion", columns=columns, rows=tuple(rows)),
        ]
        if self.n_shared:
            return shown
        return [*shown, TextBlock(text="No item has two annotators; have annotators label the same items.")]


def human_agreement(
    dataset: LabelledDataset, *, confidence_level: float = 0.95, n_resamples: int = 1000, rng: int = 0
) -> HumanAgreement:
    """Measure how well the annotators of a dataset agree on each criterion.

    Computes the metrics of `reliability` on each criterion's own scale, and `human_ceiling` as in
    `judge_report`. Abstentions (CANNOT_ASSESS, NA) are excluded. High agreement does not imply that the
    ratings are correct.

    Args:
        dataset: Dataset whose items have `ratings`.
        confidence_level: Confidence level of the intervals.
        n_resamples: Number of times the items are resampled.
        rng: Seed for the resampling.

    Raises:
        ArgumentError: If fewer than two annotators rated items.
    """
    table = read_votes(GradedItems(), dataset)
    raters = tuple(name for kind, name in table.raters if kind == "human")
    if len(raters) < 2:
        told = f"only the ratings of {raters[0]!r}" if raters else "no ratings"
        raise ArgumentError(f"the dataset has {told}; agreement requires at least two annotators")
    # `cells_of` reads judges, so the people are presented to it as judges.
    people: tuple[Rater, ...] = tuple(
        ("judge", name) if kind == "human" else (kind, name) for kind, name in table.raters
    )
    cells = cells_of(replace(table, raters=people), Modes())
    options = IntervalOptions(confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    judges: list[Rater] = [("judge", name) for name in raters]
    n_ratings = np.sum([cells.raters[one].status > 0 for one in judges], axis=0)
    shared = [
        cells.item[span][n_ratings[span] >= 2]
        for place, span in enumerate(cells.spans)
        if scale_at(cells, place) is not None
    ]
    report = judge_report(table, confidence_level=confidence_level, n_resamples=n_resamples, rng=rng)
    rated = np.unique(
        table.item[np.isin(table.rater, [table.raters.index(("human", one)) for one in raters])]
    )
    return HumanAgreement(
        raters=raters,
        n_items=len(rated),
        n_shared=len(set().union(*(one.tolist() for one in shared))),
        n_tied_labels=table.n_tied_labels,
        reliability=reliability_by_criterion(cells, judges, Modes(), options),
        ceiling=report.human_ceiling,
    )
