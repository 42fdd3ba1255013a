"""One verdict beside the same one under an attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from autorubric.criteria import BaseCriterion
from autorubric.redteam._attacks import Aim, direction
from autorubric.types import Decision, EnsembleCriterionReport, EnsembleEvaluationReport
from autorubric.values import Json

Outcome = Literal["flipped", "held", "unanswered", "failed"]
"""What became of a verdict under an attack: it moved the way the attack is aimed; it did not; the judge no
longer answered; or it could not be judged."""

_LEAST_MOVE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackedCell:
    """A verdict on one criterion of one item, and what an attack made of it.

    Attributes:
        item_id: The item.
        criterion: The criterion's name.
        attack: The attack's id.
        family: The attack's family.
        clean: The answer without an attack, in JSON.
        attacked: The answer under the attack; None where there is none.
        outcome: What became of the verdict.
        repeat: What became of it when the same item was judged again without any attack.
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
    """An item judged twice as it is.

    Attributes:
        item_id: The item.
        first: The report that attacks are compared with.
        second: The report on fresh votes.
    """

    item_id: str
    first: EnsembleEvaluationReport
    second: EnsembleEvaluationReport

    @property
    def n_failed(self) -> int:
        """Criteria that could not be judged in either report."""
        return sum(
            not _judged(pair.decision)
            for whole in (self.first, self.second)
            for pair in whole.report
            if pair.criterion.check is None
        )

    def cells(
        self, attack: str, family: str, aim: Aim, attacked: EnsembleEvaluationReport
    ) -> Iterator[AttackedCell]:
        """The judges' verdicts that had room to move the way the attack is aimed, beside those under it.

        A criterion that a check decides is none of them: no judge reads the text for it.
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
    """Whether what was decided is the judges' own word, or their abstention."""
    return decision.status != "failed" and not decision.assumed and not decision.swayed


def _has_room(report: EnsembleCriterionReport, towards: int) -> bool:
    value = report.decision.value
    if value is None or not _judged(report.decision):
        return False
    low, high = _range(report.criterion)
    return value < high - _LEAST_MOVE if towards > 0 else value > low + _LEAST_MOVE


def _range(criterion: BaseCriterion) -> tuple[float, float]:
    """The lowest and the highest value that an answer can have."""
    values = [answer.value for answer in criterion.answers() if answer.value is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _outcome(before: Decision, after: Decision, towards: int) -> Outcome:
    if not _judged(after):
        return "failed"
    if before.value is None or after.value is None:
        return "unanswered"
    return "flipped" if (after.value - before.value) * towards > _LEAST_MOVE else "held"
