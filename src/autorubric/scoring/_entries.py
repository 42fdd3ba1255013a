"""Conversion of decisions to score entries, with policies for missing judgments and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple, assert_never

from autorubric.criteria import BaseCriterion
from autorubric.types import CannotAssessConfig, CannotAssessStrategy, Decision


class Entry(NamedTuple):
    """The contribution of one criterion to a score.

    Attributes:
        value: Value in the sums, on [0, 1]; None if the criterion is excluded from the score.
        seen: Value that the criterion's gate checks; None if the criterion was not judged.
        applies: Whether the criterion applies; if not, its gate is ignored.
    """

    value: float | None
    seen: float | None
    applies: bool = True

    @classmethod
    def of(cls, value: float | None, decision: Decision | None) -> Entry:
        """Create the entry of a decision that enters the score with this value.

        The criterion does not apply if its decision is NA and excluded from the score, or if its condition
        does not hold.
        """
        if value is not None or decision is None:
            return cls(value, value)
        left_out = decision.status == "not_applicable" or bool(decision.answer and decision.answer.na)
        return cls(value, value, not left_out)


def entering_value(
    criterion: BaseCriterion, decision: Decision | None, policy: CannotAssessConfig
) -> float | None:
    """Return the value on [0, 1] with which a decision enters the score; None if it is excluded.

    A missing judgment counts according to `policy`. A criterion that failed, was not asked, does not apply or
    measures nothing is excluded from numerator and denominator.
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
    """Return the score entry of a decision under a policy."""
    return Entry.of(entering_value(criterion, decision, policy), decision)


def apply_conditions(
    criteria: Sequence[BaseCriterion],
    decisions: Mapping[str, Decision],
    policy: CannotAssessConfig,
    *,
    elsewhere: Mapping[str, Decision] | None = None,
) -> dict[str, Decision]:
    """Mark decisions `not_applicable` if the criterion's condition does not hold.

    A condition holds if the criterion it names reaches the required value. It does not hold if that criterion
    was not judged or does not apply.

    Args:
        criteria: The criteria; their conditions must not form a cycle.
        decisions: Decisions by criterion name.
        policy: Policy for missing judgments.
        elsewhere: Decisions to use for criteria that are not in `decisions`.
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
