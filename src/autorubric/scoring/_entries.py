"""From decisions to what enters a score: policies for missing judgments, and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple, assert_never

from autorubric.criteria import BaseCriterion
from autorubric.types import CannotAssessConfig, CannotAssessStrategy, Decision


class Entry(NamedTuple):
    """A criterion's part in a score.

    Attributes:
        value: With which it enters the sums, on [0, 1]; None where it leaves them.
        seen: What its gate sees; None where it was not judged.
        applies: False where it does not apply; then its gate asks nothing.
    """

    value: float | None
    seen: float | None
    applies: bool = True

    @classmethod
    def of(cls, value: float | None, decision: Decision | None) -> Entry:
        """What a decision that enters with this value brings into the score.

        A decision on NA that leaves the score says that the criterion does not apply, and so does one that
        a condition left out.
        """
        if value is not None or decision is None:
            return cls(value, value)
        left_out = decision.status == "not_applicable" or bool(decision.answer and decision.answer.na)
        return cls(value, value, not left_out)


def entering_value(
    criterion: BaseCriterion, decision: Decision | None, policy: CannotAssessConfig
) -> float | None:
    """The value on [0, 1] with which a decision enters the score; None where it leaves it.

    A missing judgment counts as the policy says; a failed criterion, one that was not asked and one that
    does not apply leave numerator and denominator, and so does a criterion that measures nothing.
    """
    if decision is None or decision.status in ("failed", "not_asked", "not_applicable"):
        return None
    if decision.status == "answered":
        return decision.value
    if not criterion.measures:
        return None
    match policy.strategy:
        case CannotAssessStrategy.SKIP:
            return None
        case CannotAssessStrategy.ZERO:
            return 0.0
        case CannotAssessStrategy.PARTIAL:
            return policy.partial_credit
        case CannotAssessStrategy.FAIL:
            return criterion.conservative().value
        case _:
            assert_never(policy.strategy)


def entry_of(criterion: BaseCriterion, decision: Decision | None, policy: CannotAssessConfig) -> Entry:
    """What a decision brings into the score under a policy."""
    return Entry.of(entering_value(criterion, decision, policy), decision)


def apply_conditions(
    criteria: Sequence[BaseCriterion],
    decisions: Mapping[str, Decision],
    policy: CannotAssessConfig,
    *,
    elsewhere: Mapping[str, Decision] | None = None,
) -> dict[str, Decision]:
    """The decisions, `not_applicable` where a criterion's condition does not hold.

    A condition holds where the criterion that it names reaches the value; where that one was not judged, or
    does not apply itself, it does not hold.

    Args:
        criteria: With their conditions, which form no circle.
        decisions: By criterion name.
        policy: What a missing judgment is worth.
        elsewhere: Decisions to look at for criteria that have none among these.
    """
    applied = dict(decisions)
    by_name = {criterion.name or "": criterion for criterion in criteria}
    conditions = {name: one.when for name, one in by_name.items() if one.when is not None}
    graph = {name: [condition.criterion] for name, condition in conditions.items()}
    for name in TopologicalSorter(graph).static_order():
        condition = conditions.get(name)
        if condition is None or name not in applied:
            continue
        other = condition.criterion
        known = applied.get(other) or (elsewhere or {}).get(other)
        value = entering_value(by_name[other], known, policy) if other in by_name else None
        if not condition.holds(value):
            applied[name] = Decision(status="not_applicable")
    return applied
