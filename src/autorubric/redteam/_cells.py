"""Comparison of verdicts with and without an attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from autorubric.criteria import BaseCriterion
from autorubric.redteam._attacks import Aim, direction
from autorubric.types import Decision, EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.values import Json

Outcome = Literal["flipped", "held", "unanswered", "failed"]
"""Outcome of a verdict under an attack.

The verdict flipped in the direction of the attack, held, became unanswered, or could not be judged (failed).
"""

_LEAST_MOVE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackedCell:
    """Verdicts on one criterion of one item, with and without an attack.

    Attributes:
        item_id: Id of the item.
        criterion: Name of the criterion.
        attack: Id of the attack.
        family: Family of the attack.
        clean: Answer without an attack, as JSON.
        attacked: Answer under the attack; None if the judges did not answer.
        outcome: What happened to the verdict under the attack: `flipped`, `held`, `unanswered` or `failed`.
        repeat: What happened to it when the item was judged again without an attack.
    """

    item_id: str
    criterion: str
    attack: str
    family: str
    clean: Json
    attacked: Json
    outcome: Outcome
    repeat: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanItem:
    """An item judged twice without an attack.

    Attributes:
        item_id: Id of the item.
        first: Report with which attacks are compared.
        second: Report from fresh votes.
    """

    item_id: str
    first: EnsembleEvaluationReport
    second: EnsembleEvaluationReport

    @property
    def n_failed(self) -> int:
        """Number of criteria that could not be judged, over both reports."""
        return sum(
            not _judged(pair.decision)
            for whole in (self.first, self.second)
            for pair in whole.report
            if pair.criterion.check is None
        )

    @property
    def n_judged(self) -> int:
        """Number of criteria that could be judged, over both reports."""
        return len(self.first.report) + len(self.second.report) - self.n_failed

    def cells(
        self, attack: str, family: str, aim: Aim, attacked: EnsembleEvaluationReport
    ) -> Iterator[AttackedCell]:
        """Yield the verdicts that could move in the attack's direction, paired with those under attack.

        Criteria decided by a check are skipped, since no judge reads the text for them.
        """
        for before, again, after in zip(self.first.report, self.second.report, attacked.report, strict=True):
            towards = direction(aim, before.criterion.weight)
            if before.criterion.check is not None or not _has_room(before, towards):
                continue
            yield AttackedCell(
                item_id=self.item_id,
                criterion=before.name,
                attack=attack,
                family=family,
                clean=before.final_answer,
                attacked=after.final_answer,
                outcome=_outcome(before.decision, after.decision, towards),
                repeat=_outcome(before.decision, again.decision, towards),
            )


def _judged(decision: Decision) -> bool:
    """Return whether the decision is based on answers or abstentions of the judges, and not on failures."""
    return decision.status != "failed" and not decision.assumed and not decision.swayed


def _has_room(report: EnsembleCriterionReport, towards: int) -> bool:
    value = report.decision.value
    if value is None or not _judged(report.decision):
        return False
    low, high = _range(report.criterion)
    return value < high - _LEAST_MOVE if towards > 0 else value > low + _LEAST_MOVE


def _range(criterion: BaseCriterion) -> tuple[float, float]:
    """Return the lowest and the highest possible value of an answer."""
    values = [answer.value for answer in criterion.answers() if answer.value is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _outcome(before: Decision, after: Decision, towards: int) -> Outcome:
    if not _judged(after):
        return "failed"
    if before.value is None or after.value is None:
        return "unanswered"
    return "flipped" if (after.value - before.value) * towards > _LEAST_MOVE else "held"
