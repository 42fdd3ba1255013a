"""The cost and accuracy of a cascade, replayed on a run in which all judges voted on everything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Level, Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError, ReplyError
from autorubric.grading.plan import EscalationConfig, check_names
from autorubric.judges.panel import panel_members
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.figures.classification import accuracy
from autorubric.runs.items import sum_if_known
from autorubric.runs.reopen import stored_policy
from autorubric.runs.result import EvalResult
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.probabilities import Band, is_in_band, probability_of
from autorubric.scoring.report_builder import GradingPolicy, confidence_of, criterion_report, spend
from autorubric.scoring.votes import Decision, JudgeVote
from autorubric.support.blocks import Block, CurveBlock, ScalarBlock, TableBlock, render_text
from autorubric.support.objects import Json

_COMPARED: Final = frozenset({"binary", "nominal", "ordinal", "ranking"})
"""Levels whose answers are either right or wrong, unlike numbers and texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeCell:
    """One criterion of one item, judged by both panels."""

    item_id: str
    criterion: str
    # Confidence of the first panel in [0, 1]; None if unknown or the panel did not decide.
    confidence: float | None
    level: Level  # level of the criterion
    probability: float | None  # probability that a band applies to, in [0, 1]; None if unknown
    # Decision of the first panel; None if it did not decide, and for number and text answers.
    first: str | None
    strong: str | None  # decision of the strong panel; None in the same cases
    truth: str | None  # the ground-truth answer; None if unknown
    first_votes: int  # number of votes of the first panel
    strong_votes: int  # number of votes of the strong panel
    # Cost of the first panel's votes in US dollars; None if a vote has tokens but no price. Votes with
    # neither, such as those of trained and recorded judges and all but the first vote of a shared
    # request, count as free.
    first_cost: float | None
    strong_cost: float | None  # cost of the strong panel's votes in US dollars, by the same rules
    states_cost: bool  # whether any of the votes has a cost

    def is_escalated(self, threshold: float, band: Band | None) -> bool:
        """Return whether the cell is escalated to the strong panel at a threshold, or in a band."""
        if band is not None:
            return is_in_band(self.level, self.probability, band)
        return self.confidence is None or self.confidence < threshold


def escalated_cells(
    result: EvalResult, strong: Collection[str], dataset: RubricDataset | None
) -> list[CascadeCell]:
    """Return the cells of a run: each criterion of each item that judges decide."""
    policy = stored_policy(result.experiment_dir).aggregation
    labelled = dataset if dataset is not None else result.dataset
    truths = {labelled.item_id(i): labelled.item_truth(i) or {} for i in range(len(labelled))}
    cells: list[CascadeCell] = []
    voted: set[str] = set()
    for one in result.item_results:
        item_id = result.dataset.item_id(one.item_idx)
        if one.report is None or item_id not in truths:
            continue
        submission = Submission.parse(one.item.submission)
        for report in one.report.report:
            if any(vote.skipped for vote in report.votes):
                raise ArgumentError(
                    f"item {item_id!r} has skipped votes, but a replay requires a run in which every judge "
                    "voted on everything; grade with all judges in judges=[…], without stop_when_decided and "
                    "escalation"
                )
            voted.update(vote.judge_id for vote in report.votes)
            if report.criterion.check is None:
                bound = report.criterion.bind(submission)
                truth = _truth(bound, truths.get(item_id, {}))
                cells.append(_cell(item_id, bound, report.votes, strong, policy, truth))
    if missing := sorted(set(strong) - voted):
        raise ArgumentError(
            f"unknown judge {', '.join(missing)}; judges of the run: {', '.join(sorted(voted))}"
        )
    if not voted - set(strong):
        raise ArgumentError("all judges of the run are in the strong panel; none is left for the first panel")
    return cells


def _cell(
    item_id: str,
    criterion: BaseCriterion,
    votes: Sequence[JudgeVote],
    strong: Collection[str],
    policy: AggregationPolicy,
    truth: str | None,
) -> CascadeCell:
    cheap = [vote for vote in votes if vote.judge_id not in strong]
    dear = [vote for vote in votes if vote.judge_id in strong]
    first = criterion_report(criterion, cheap, GradingPolicy(aggregation=policy)).decision
    later = criterion_report(criterion, dear, GradingPolicy(aggregation=policy)).decision
    is_compared = criterion.level in _COMPARED
    return CascadeCell(
        item_id=item_id,
        criterion=criterion.name or "",
        confidence=None if _code(first) is None else confidence_of(cheap, first),
        level=criterion.level,
        probability=None if _code(first) is None else probability_of(criterion, cheap),
        first=_code(first) if is_compared else None,
        strong=_code(later) if is_compared else None,
        truth=truth if is_compared else None,
        first_votes=len(cheap),
        strong_votes=len(dear),
        first_cost=_cost(cheap),
        strong_cost=_cost(dear),
        states_cost=any(vote.completion_cost is not None for vote in votes),
    )


def _code(decision: Decision) -> str | None:
    if decision.status != "answered" or decision.assumed or decision.answer is None:
        return None
    return repr(decision.answer.code)


def _cost(votes: Sequence[JudgeVote]) -> float | None:
    if any(vote.completion_cost is None and vote.token_usage is not None for vote in votes):
        return None
    return spend(votes)[1] or 0.0


def _truth(criterion: BaseCriterion, labels: Mapping[str, Json]) -> str | None:
    try:
        answer = criterion.parse_truth(labels.get(criterion.name or ""))
    except ReplyError:
        return None
    return None if answer is None or answer.abstains else repr(answer.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationPoint:
    """The results of a cascade of two panels at one threshold, or at one threshold per criterion.

    Attributes:
        threshold: Threshold of all criteria that have no separate threshold.
        cells: Number of cells (one criterion of one item) that were judged.
        escalated: Number of cells escalated to the strong panel.
        votes: Number of votes cast by both panels.
        cost: Cost of both panels in US dollars; None if a vote has tokens but no price, or no vote has costs.
        full_cost: Cost in US dollars if the strong panel judged everything; None in the same cases.
        accuracy: Proportion of correct decisions, with an interval clustered by item; undefined without
            ground truth. Number and text answers, which are not simply right or wrong, are excluded.
        fidelity: Proportion of decisions that equal the strong panel's decision, where both exist, with the
            same exclusions.
        strong_accuracy: Accuracy of the strong panel if it decides everything.
        band: The band of probabilities that is used instead of thresholds, if any.
    """

    threshold: float
    cells: int
    escalated: int
    votes: int
    cost: float | None
    full_cost: float | None
    accuracy: Estimate
    fidelity: Estimate
    strong_accuracy: Estimate
    band: Band | None = None

    @property
    def saving(self) -> float | None:
        """Fraction of `full_cost` that the cascade saves; negative if it costs more, None if unknown."""
        return None if self.cost is None or not self.full_cost else 1.0 - self.cost / self.full_cost

    @property
    def loss(self) -> float | None:
        """Accuracy of the strong panel minus that of the cascade; None if one of them is undefined."""
        strong, own = self.strong_accuracy.value, self.accuracy.value
        return None if strong is None or own is None else strong - own

    @property
    def escalated_share(self) -> float | None:
        """Fraction of cells escalated to the strong panel, in [0, 1]; None if nothing was judged."""
        return self.escalated / self.cells if self.cells else None

    def blocks(self) -> list[Block]:
        """Return the results as renderable blocks."""
        figures = (
            ("threshold", self.threshold),
            ("band", self.band and "{:g} to {:g}".format(*self.band)),
            ("criteria judged", self.cells),
            ("escalated", self.escalated),
            ("votes", self.votes),
            ("US dollars", self.cost),
            ("US dollars if the strong panel judged all", self.full_cost),
            ("accuracy", self.accuracy.value),
            ("… from", self.accuracy.low),
            ("… to", self.accuracy.high),
            ("same as the strong panel", self.fidelity.value),
            ("saving of cost", self.saving),
            ("loss of accuracy", self.loss),
        )
        return [ScalarBlock(title="Cascade", figures=figures)]

    def summary(self) -> str:
        """Return the results as plain text."""
        return render_text(self.blocks())


def replay_escalation(
    result: EvalResult, config: EscalationConfig, *, dataset: RubricDataset | None = None
) -> EscalationPoint:
    """Compute the results of a cascade of two panels from a stored run, without calling models.

    Args:
        result: A run in which all judges of both panels voted on every criterion.
        config: The cascade. Its judges must be judges of the run; all other judges form the first panel.
        dataset: The items to report on, with ground truth; None to use the graded dataset.

    Raises:
        ArgumentError: If a judge or criterion of the cascade is not in the run, or if the run has no first
            panel or has skipped votes.
    """
    check_names("per_criterion", config.per_criterion, result.dataset.rubrics())
    strong = {member.judge_id for member in panel_members(config.judges)}
    cells = escalated_cells(result, strong, dataset)
    return operating_point(cells, config.threshold or 0.0, config.per_criterion, config.band)


def operating_point(
    cells: Sequence[CascadeCell],
    threshold: float,
    per_criterion: Mapping[str, float] = MappingProxyType({}),
    band: Band | None = None,
) -> EscalationPoint:
    """Compute the results of the cascade, at one threshold or one for each criterion, or in a band."""
    up = [cell.is_escalated(per_criterion.get(cell.criterion, threshold), band) for cell in cells]
    made = [cell.strong if escalated else cell.first for cell, escalated in zip(cells, up, strict=True)]
    costs = [cell.first_cost for cell in cells]
    costs += [cell.strong_cost for cell, escalated in zip(cells, up, strict=True) if escalated]
    stated = any(cell.states_cost for cell in cells)
    votes = sum(cell.first_votes + cell.strong_votes * gone for cell, gone in zip(cells, up, strict=True))
    return EscalationPoint(
        threshold=threshold,
        cells=len(cells),
        escalated=sum(up),
        votes=votes,
        cost=sum_if_known(costs) if stated else None,
        full_cost=sum_if_known([cell.strong_cost for cell in cells]) if stated else None,
        accuracy=share_equal(cells, [cell.truth for cell in cells], made),
        fidelity=share_equal(cells, [cell.strong for cell in cells], made),
        strong_accuracy=share_equal(cells, [cell.truth for cell in cells], [cell.strong for cell in cells]),
        band=band,
    )


def share_equal(
    cells: Sequence[CascadeCell], one: Sequence[str | None], other: Sequence[str | None]
) -> Estimate:
    """Estimate the proportion of equal pairs among complete pairs of values, clustered by item."""
    both = [
        (cell.item_id, a, b)
        for cell, a, b in zip(cells, one, other, strict=True)
        if a is not None and b is not None
    ]
    return accuracy([a for _, a, _ in both], [b for _, _, b in both], cluster=[item for item, _, _ in both])


_MOST_POINTS: Final = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationCurve:
    """The results of a cascade of two panels at all thresholds that lead to different decisions.

    All thresholds are evaluated on the same data, so the accuracy of a threshold chosen from them is slightly
    optimistic. Replay the threshold on other data; `threshold_for` tests the lower bounds in a fixed order.

    Attributes:
        points: At most 101 results, from threshold 0, which escalates least, to threshold 1, which escalates
            everything except decisions with confidence 1.
        first_accuracy: Accuracy of the first panel without escalation.
        strong_accuracy: Accuracy of the strong panel if it decides everything.
        per_criterion: A separate curve for each criterion, by name.
    """

    points: tuple[EscalationPoint, ...]
    first_accuracy: Estimate
    strong_accuracy: Estimate
    per_criterion: Mapping[str, EscalationCurve] = field(default_factory=dict)

    def threshold_for(self, accuracy: float, *, sure: bool = True) -> float | None:
        """Return the threshold that reaches an accuracy with the least escalation; None if none reaches it.

        Args:
            accuracy: The required accuracy, in [0, 1].
            sure: Whether the lower bound of the confidence interval must reach this accuracy, at threshold 0
                or at this and all higher thresholds. These are fixed-sequence tests (Maurer et al. 1995)
                from both ends, so that at most one choice in 20 is wrong, whatever the number of
                thresholds. Without, the accuracy on other data is lower in half of all cases.
        """
        lowest, least = None, self.points[0]
        if sure and least.accuracy.low is not None and least.accuracy.low >= accuracy:
            return least.threshold
        for point in reversed(self.points):
            value = point.accuracy.low if sure else point.accuracy.value
            if value is not None and value >= accuracy:
                lowest = point.threshold
            elif sure:
                break
        return lowest

    def thresholds_for(self, accuracy: float, *, sure: bool = True) -> dict[str, float]:
        """Return thresholds per criterion that reach an accuracy, for `EscalationConfig(per_criterion=…)`.

        A criterion for which no threshold reaches the accuracy gets 1, or 0 if that is more accurate.
        Criteria with number or text answers, whose accuracy is unknown, get 1.
        """
        found = {}
        for name, curve in self.per_criterion.items():
            least, most = (curve.points[at].accuracy.value or 0.0 for at in (0, -1))
            threshold = curve.threshold_for(accuracy, sure=sure)
            found[name] = float(least <= most) if threshold is None else threshold
        return found

    def blocks(self) -> list[Block]:
        """Return a table and a plot of the curve as renderable blocks."""
        ends = TableBlock(
            title="Cascade",
            columns=("threshold", "escalated", "accuracy", "from", "to", "US dollars"),
            rows=tuple(
                (one.threshold, one.escalated_share, right.value, right.low, right.high, one.cost)
                for one, right in ((point, point.accuracy) for point in self.points)
            ),
        )
        curve = CurveBlock(
            title="Accuracy by share escalated",
            x_label="share escalated",
            y_label="accuracy",
            points=tuple(
                (one.escalated_share, one.accuracy.value)
                for one in self.points
                if one.escalated_share is not None and one.accuracy.value is not None
            ),
        )
        return [ends, curve]

    def summary(self) -> str:
        """Return the table and the curve as plain text."""
        return render_text(self.blocks())


def calibrate_escalation(
    result: EvalResult, dataset: RubricDataset | None = None, *, judges: Sequence[str] | None = None
) -> EscalationCurve:
    """Compute the accuracy–cost curve of a cascade of two panels from a stored run, without calling models.

    Args:
        result: A run in which all judges of both panels voted on every criterion.
        dataset: The dataset with ground truth; None to use the graded dataset.
        judges: Ids of the strong panel's judges. None selects the judges to which the run escalated or, if
            the run had no cascade, all judges except the first.

    Raises:
        ArgumentError: If there is no ground truth, the run lacks a judge or a first panel, or votes were
            skipped.
    """
    cells = escalated_cells(result, _strong(result) if judges is None else tuple(judges), dataset)
    if not any(cell.truth is not None for cell in cells):
        raise ArgumentError(
            "no judged criterion has a label; pass a dataset with ground_truth or ratings, and use criteria "
            "whose answers are either right or wrong"
        )
    by_criterion: dict[str, list[CascadeCell]] = {}
    for cell in cells:
        by_criterion.setdefault(cell.criterion, []).append(cell)
    return _curve(cells, {name: _curve(own, {}) for name, own in by_criterion.items()})


def choose_band(
    result: EvalResult, dataset: RubricDataset, *, judges: Sequence[str] | None = None, max_loss: float = 0.0
) -> Band:
    """Return the band, in steps of 0.05, that escalates least, without calling models.

    Its accuracy is optimistic on the data on which it is chosen: report saving and loss with
    `replay_escalation` and the labels of other items.

    Args:
        result: A run in which all judges of both panels voted on every criterion.
        dataset: The labelled items to choose on.
        judges: Ids of the strong panel's judges; see `calibrate_escalation`.
        max_loss: Fraction of the decisions, in [0, 1], that may be wrong in addition to the strong panel's.

    Raises:
        ArgumentError: As in `calibrate_escalation`, or if no labelled criterion has probabilities.
    """
    cells = escalated_cells(result, _strong(result) if judges is None else tuple(judges), dataset)
    cells = [cell for cell in cells if cell.truth is not None and cell.strong is not None]
    if all(cell.probability is None for cell in cells):
        raise ArgumentError("no labelled criterion has votes with probabilities, which a band requires")

    def errors(band: Band) -> int:
        return sum(
            cell.truth != (cell.strong if cell.is_escalated(0.0, band) else cell.first) for cell in cells
        )

    most = sum(cell.strong != cell.truth for cell in cells) + max_loss * len(cells)
    bands = [(low / 20, high / 20) for high in range(21) for low in range(high + 1)]
    fine = [band for band in bands if errors(band) <= most + 1e-9] or [(0.0, 1.0)]
    return min(fine, key=lambda band: sum(cell.is_escalated(0.0, band) for cell in cells))


def _strong(result: EvalResult) -> tuple[str, ...]:
    rule = stored_policy(result.experiment_dir).escalation
    if rule is not None:
        return rule.judges
    reports = (one.report.report for one in result.item_results if one.report is not None)
    judges = dict.fromkeys(
        vote.judge_id
        for criterion in next(reports, ())
        if criterion.criterion.check is None
        for vote in criterion.votes
    )
    return tuple(judges)[1:]


def _curve(cells: Sequence[CascadeCell], per_criterion: Mapping[str, EscalationCurve]) -> EscalationCurve:
    truth = [cell.truth for cell in cells]
    return EscalationCurve(
        points=tuple(operating_point(cells, threshold) for threshold in _thresholds(cells)),
        first_accuracy=share_equal(cells, truth, [cell.first for cell in cells]),
        strong_accuracy=share_equal(cells, truth, [cell.strong for cell in cells]),
        per_criterion=per_criterion,
    )


def _thresholds(cells: Sequence[CascadeCell]) -> list[float]:
    """Return 0, 1 and the confidences in between, evenly thinned to the maximum number of points."""
    given = sorted({cell.confidence for cell in cells if cell.confidence is not None} | {0.0, 1.0})
    if len(given) <= _MOST_POINTS:
        return given
    places = {round(step * (len(given) - 1) / (_MOST_POINTS - 1)) for step in range(_MOST_POINTS)}
    return [given[place] for place in sorted(places)]
