"""Admission control under a budget: only items that the budget can finish begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autorubric.errors import AutorubricError
from autorubric.graders import CriterionGrader

if TYPE_CHECKING:
    from autorubric.eval._executor import ItemWork
    from autorubric.graders import Grader
    from autorubric.llm import SpendingLimit


@dataclass(slots=True)
class Admission:
    """Admits items in order, as long as the remaining budget suffices to finish all items in progress.

    An item is assumed to need its planned calls, at the mean cost of the calls so far; if cost is limited,
    the first item is therefore graded alone. An item that exceeds the remaining budget begins only when no
    other item is in progress.

    Attributes:
        budget: The budget of the run.
        grader: The grader.
    """

    budget: SpendingLimit
    grader: Grader
    _needs: dict[int, int] = field(default_factory=dict)
    _has_finished: bool = False

    def may_begin(self, work: ItemWork) -> bool:
        """Return whether an item may begin now; if so, it is recorded as in progress."""
        need = self._planned_calls(work)
        if self._needs:
            if self.budget.counts_cost and not self._has_finished:
                return False
            calls = need + sum(self._needs.values())
            if not self.budget.has_room(calls, calls * self.budget.mean_cost):
                return False
        self._needs[work.position] = need
        return True

    def end(self, work: ItemWork) -> None:
        """Release the calls reserved for an item that has ended."""
        del self._needs[work.position]
        self._has_finished = True

    def _planned_calls(self, work: ItemWork) -> int:
        if not isinstance(self.grader, CriterionGrader):
            return len(work.task.rubric)
        try:
            batches = self.grader.requests(work.task, stored=work.stored)
        except AutorubricError:
            # Grading the item fails with the same error and sends no request.
            return 0
        return sum(not batch[0].seat.is_offline for batch in batches)
