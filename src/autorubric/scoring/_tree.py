"""The scores of a rubric's tree, from the leaves up."""

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
    """A gate that could not be judged, so that its group has no score.

    Attributes:
        criterion: The gate's name.
        group: The group's name.
    """

    criterion: str
    group: str


class TreeScore(NamedTuple):
    """The scores of a tree before the length penalty.

    Attributes:
        score: That of the root, normalised to [0, 1] where asked for; None where there is none.
        raw: Σ value × weight over what stands in the root, a group's value being its score; no gate is in
            it. None where nothing is left to score.
        node_scores: Normalised scores of all groups by name, each before those below it; the root is `""`.
        open_gates: Gates that could not be judged and would have made a difference to their group.
    """

    score: float | None
    raw: float | None
    node_scores: dict[str, float | None]
    open_gates: tuple[OpenGate, ...] = ()


def score_tree(root: RubricGroup, entries: Mapping[str, Entry], *, normalize: bool = True) -> TreeScore:
    """The scores of a tree whose criteria enter it so.

    A group's score is that of its members by `score_terms`; a group in which nothing is left to score leaves
    the one around it. A gate below its threshold caps the group that it stands in, at 0 even where nothing
    else is left. A gate that was not judged leaves its group without a score, unless that is under
    the gate's cap anyhow, and so every group around it, but for one that another gate caps at 0. Linear in
    the size of the tree.

    Args:
        root: The tree.
        entries: By criterion name; what has none leaves the score, and its gate asks nothing.
        normalize: Whether the root is normalised; groups below it always are.
    """
    scores: dict[str, float | None] = {}
    open_gates: list[OpenGate] = []
    members = _score_group(root, entries, scores, open_gates)
    score = scores[root.name]
    if score is not None and not normalize:
        score = score_terms(members.terms, normalize=False, cap=members.cap).score
    return TreeScore(
        score=score,
        raw=members.raw,
        node_scores=scores,
        open_gates=tuple(open_gates),
    )


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
    scores[group.name] = None  # before those below it
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
