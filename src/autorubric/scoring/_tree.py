"""Scores of a rubric's tree, computed from the entries of decisions at its leaves up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import NamedTuple, assert_never

from autorubric.criteria import BaseCriterion, Gate
from autorubric.scoring._formula import Score, Term, score_terms
from autorubric.types import CannotAssessConfig, CannotAssessStrategy, Decision, RubricGroup


class Entry(NamedTuple):
    """A criterion's contribution to a score.

    Attributes:
        value: Value used in the sums, in [0, 1]; None if the criterion is excluded from the score.
        seen: Value that the criterion's gate checks; None if the criterion was not judged.
        applies: Whether the criterion applies; if not, its gate is ignored.
    """

    value: float | None
    seen: float | None
    applies: bool = True

    @classmethod
    def of(cls, value: float | None, decision: Decision | None) -> Entry:
        """Create the entry for a decision that contributes this value to the score.

        The criterion does not apply if its decision is NA and excluded from the score, or if its condition is
        not met.
        """
        if value is not None or decision is None:
            return cls(value, value)
        left_out = decision.status == "not_applicable" or bool(decision.answer and decision.answer.na)
        return cls(value, value, not left_out)


def entering_value(
    criterion: BaseCriterion, decision: Decision | None, policy: CannotAssessConfig
) -> float | None:
    """Return the value in [0, 1] that a decision contributes to the score; None if it is excluded.

    A missing judgment is scored by `policy`. A criterion that failed, was not asked, does not apply
    or has no values is excluded from numerator and denominator.
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
    """Return the decisions, with `not_applicable` for criteria whose condition is not met.

    A condition is met if the criterion it names reaches the required value. It is not met if that criterion
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


_ABSENT = Entry(None, None, applies=False)


class OpenGate(NamedTuple):
    """A gate that could not be judged, so that its group has no score.

    Attributes:
        criterion: Name of the gate criterion.
        group: Name of the group that contains the gate.
    """

    criterion: str
    group: str


class TreeScore(NamedTuple):
    """The scores of a tree before the length penalty.

    Attributes:
        score: Score of the root, normalized to [0, 1] if requested; None if it cannot be computed.
        raw: Σ value × weight over the root's members, where a group's value is its score, before gates are
            applied. None if nothing can be scored.
        node_scores: Normalized score of each group by name, parents before children; the root is `""`.
        open_gates: Gates that could not be judged and whose outcome could have changed their group's score.
    """

    score: float | None
    raw: float | None
    node_scores: dict[str, float | None]
    open_gates: tuple[OpenGate, ...] = ()


def score_tree(root: RubricGroup, entries: Mapping[str, Entry], *, normalize: bool = True) -> TreeScore:
    """Score a tree from its criteria's entries, in time linear in the size of the tree.

    `score_terms` combines a group's members into its score; a group in which nothing can be scored is
    excluded from its parent. A failed gate caps its group's score; a cap of 0 applies even if nothing else
    can be scored. If a gate was not judged, its group and all groups above it have no score, except a group
    whose score does not exceed the gate's cap anyway and a parent group that another gate caps at 0.

    Args:
        root: Root of the tree.
        entries: Entries by criterion name. Criteria without an entry are excluded and their gates ignored.
        normalize: Whether to normalize the root's score; nested groups are always normalized.
    """
    scores: dict[str, float | None] = {}
    open_gates: list[OpenGate] = []
    members = _score_group(root, entries, scores, open_gates)
    score = scores[root.name]
    if score is not None and not normalize:
        score = score_terms(members.terms, normalize=False, cap=members.cap).score
    return TreeScore(score=score, raw=members.raw, node_scores=scores, open_gates=tuple(open_gates))


@dataclass(slots=True)
class _Members:
    terms: list[Term] = field(default_factory=list)
    cap: float | None = None
    raw: float | None = None
    undecided: list[tuple[str, Gate]] = field(default_factory=list)
    open: bool = False

    def look_at_gate(self, name: str, gate: Gate, entry: Entry) -> None:
        if not entry.applies:
            return
        if entry.seen is None:
            self.undecided.append((name, gate))
        elif not gate.passed(entry.seen):
            self.cap = gate.cap if self.cap is None else min(self.cap, gate.cap)


def _score_group(
    group: RubricGroup,
    entries: Mapping[str, Entry],
    scores: dict[str, float | None],
    open_gates: list[OpenGate],
) -> _Members:
    scores[group.name] = None  # so that it comes before its nested groups
    members = _Members()
    for one in group.criteria:
        if isinstance(one, RubricGroup):
            inner = _score_group(one, entries, scores, open_gates)
            value = scores[one.name]
            members.open = members.open or inner.open
            if value is not None:
                members.terms.append(Term(value, one.weight))
            continue
        entry = entries.get(one.name or "", _ABSENT)
        if entry.value is not None:
            members.terms.append(Term(entry.value, one.weight, one.bonus))
        if one.gate is not None:
            members.look_at_gate(one.name or "", one.gate, entry)
    scored: Score = score_terms(members.terms, cap=members.cap)
    members.raw = scored.raw
    members.open = members.open and members.cap != 0.0
    if scored.score is not None and not members.open:
        biting = [OpenGate(name, group.name) for name, gate in members.undecided if scored.score > gate.cap]
        open_gates.extend(biting)
        members.open = bool(biting)
    scores[group.name] = None if members.open else scored.score
    return members
