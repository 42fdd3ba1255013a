"""Scores of a rubric's tree, computed from the leaves up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from autorubric.criteria import Gate
from autorubric.scoring._entries import Entry
from autorubric.scoring._formula import Score, Term, score_terms
from autorubric.types import RubricGroup

_ABSENT = Entry(None, None, applies=False)


class OpenGate(NamedTuple):
    """A gate that could not be judged and therefore leaves its group without a score.

    Attributes:
        criterion: Name of the criterion that is the gate.
        group: Name of the group that contains the gate.
    """

    criterion: str
    group: str


class TreeScore(NamedTuple):
    """The scores of a tree before the length penalty.

    Attributes:
        score: Score of the root, normalized to [0, 1] if requested; None if it cannot be computed.
        raw: Σ value × weight over the root's members, where the value of a group is its score; gates are not
            applied. None if nothing can be scored.
        node_scores: Normalized score of each group by name, parents before children; the root is `""`.
        open_gates: Gates that could not be judged and whose outcome could have changed their group's score.
    """

    score: float | None
    raw: float | None
    node_scores: dict[str, float | None]
    open_gates: tuple[OpenGate, ...] = ()


def score_tree(root: RubricGroup, entries: Mapping[str, Entry], *, normalize: bool = True) -> TreeScore:
    """Score a tree from the entries of its criteria, in time linear in the size of the tree.

    The score of a group combines its members with `score_terms`; a group in which nothing can be scored is
    excluded from its parent. A failed gate caps its group; a cap of 0 applies even if nothing else can be
    scored. A gate that was not judged leaves its group, and every group above it, without a score. The
    exceptions are a group whose score does not exceed the gate's cap anyway, and a parent group that another
    gate caps at 0.

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
