"""Admission of items under a budget: only as many begin as it can finish, so that few stay half judged."""

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
    """Lets items begin in their order, as long as the budget has room to finish all that are under way.

    An item is taken to need the calls that are planned for it, and each call the US dollars that a call has
    cost on average; where cost counts, the first item therefore begins alone. An item that does not fit in
    begins when no other is under way, with the room that is left.

    Attributes:
        budget: The budget of the run.
        grader: The grader.
    """

    budget: SpendingLimit
    grader: Grader
    _needs: dict[int, int] = field(default_factory=dict)
    _has_finished: bool = False

    def may_begin(self, work: ItemWork) -> bool:
        """Return whether an item may begin now; it counts as under way then."""
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
        """Give back the room of an item that ended."""
        del self._needs[work.position]
        self._has_finished = True

    def _planned_calls(self, work: ItemWork) -> int:
        if not isinstance(self.grader, CriterionGrader):
            return len(work.task.rubric)
        try:
            batches = self.grader.requests(work.task, stored=work.stored)
        except AutorubricError:
            # Grading the item fails for the same reason, and asks for nothing.
            return 0
        return sum(not batch[0].seat.is_offline for batch in batches)
