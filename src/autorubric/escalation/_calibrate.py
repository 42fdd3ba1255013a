"""The accuracy–cost curve of a cascade, and the cheapest threshold that reaches a required accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from autorubric._blocks import Block, CurveBlock, TableBlock, render_text
from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.escalation._replay import Cell, EscalationPoint, cells_of, point, share_equal
from autorubric.eval import EvalResult, stored_policy
from autorubric.metrics import Estimate

_MOST_POINTS: Final = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationCurve:
    """The results of a cascade of two panels at all thresholds that lead to different decisions.

    All thresholds are evaluated on the same data, so the accuracy of a threshold chosen from them is slightly
    optimistic. Replay the threshold on other data, or choose it with `sure=True`.

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

    def threshold_for(self, accuracy: float, *, sure: bool = False) -> float | None:
        """Return the threshold that reaches an accuracy with the least escalation; None if none reaches it.

        Args:
            accuracy: The required accuracy, in [0, 1].
            sure: Whether the lower bound of the confidence interval must also reach this accuracy.
        """
        reaching = [one for one in self.points if _reaches(one.accuracy, accuracy, sure=sure)]
        return min(reaching, key=lambda one: one.escalated).threshold if reaching else None

    def thresholds_for(self, accuracy: float, *, sure: bool = False) -> dict[str, float]:
        """Return thresholds per criterion that reach an accuracy, for `EscalationConfig(per_criterion=…)`.

        A criterion for which no threshold reaches the accuracy gets 1, which escalates everything except
        decisions with confidence 1. So do criteria with number or text answers, whose accuracy is unknown.
        """
        found = {name: curve.threshold_for(accuracy, sure=sure) for name, curve in self.per_criterion.items()}
        return {name: 1.0 if threshold is None else threshold for name, threshold in found.items()}

    def blocks(self) -> list[Block]:
        """Return a table and a plot of the curve as renderable blocks."""
        ends = TableBlock(
            title="Cascade",
            columns=("threshold", "escalated", "accuracy", "from", "to", "US dollars"),
            rows=tuple(
                (
                    one.threshold,
                    one.escalated_share,
                    one.accuracy.value,
                    one.accuracy.low,
                    one.accuracy.high,
                    one.cost,
                )
                for one in self.points
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
    cells = cells_of(result, _strong(result) if judges is None else tuple(judges), dataset)
    if not any(cell.truth is not None for cell in cells):
        raise ArgumentError(
            "no judged criterion has a label; pass a dataset with ground_truth or ratings, and use criteria "
            "whose answers are either right or wrong"
        )
    by_criterion: dict[str, list[Cell]] = {}
    for cell in cells:
        by_criterion.setdefault(cell.criterion, []).append(cell)
    return _curve(cells, {name: _curve(own, {}) for name, own in by_criterion.items()})


def _strong(result: EvalResult) -> tuple[str, ...]:
    rule = stored_policy(result.experiment_dir).escalation
    if rule is not None:
        return rule.judges
    reports = (one.report for one in result.item_results if one.report is not None)
    first = next(reports, None)
    judges = dict.fromkeys(
        vote.judge_id
        for criterion in (first.report if first is not None else ())
        if criterion.criterion.check is None
        for vote in criterion.votes
    )
    return tuple(judges)[1:]


def _curve(cells: Sequence[Cell], per_criterion: Mapping[str, EscalationCurve]) -> EscalationCurve:
    truth = [cell.truth for cell in cells]
    return EscalationCurve(
        points=tuple(point(cells, threshold) for threshold in _thresholds(cells)),
        first_accuracy=share_equal(cells, truth, [cell.first for cell in cells]),
        strong_accuracy=share_equal(cells, truth, [cell.strong for cell in cells]),
        per_criterion=per_criterion,
    )


def _thresholds(cells: Sequence[Cell]) -> list[float]:
    """Return 0, 1 and the confidences in between, evenly thinned to the maximum number of points."""
    given = sorted({cell.confidence for cell in cells if cell.confidence is not None} | {0.0, 1.0})
    if len(given) <= _MOST_POINTS:
        return given
    places = {round(step * (len(given) - 1) / (_MOST_POINTS - 1)) for step in range(_MOST_POINTS)}
    return [given[place] for place in sorted(places)]


def _reaches(found: Estimate, wanted: float, *, sure: bool) -> bool:
    value = found.low if sure else found.value
    return value is not None and value >= wanted
