"""Laws of nested scores: groups, gates, bonuses and conditions."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.criteria import Answer, BaseCriterion, Criterion
from autorubric.scoring import CannotAssessConfig, CannotAssessStrategy, Decision, RubricGroup
from autorubric.scoring.score import (
    Entry,
    OpenGate,
    Term,
    TreeScore,
    apply_conditions,
    entry_of,
    score_terms,
    score_tree,
)

SKIPPED = CannotAssessConfig()
OPEN = Decision(status="abstained", answer=Answer(code=None, cannot_assess=True))
NA = Decision(status="abstained", answer=Answer(code="n/a", na=True))
FAILED = Decision(status="failed")


def answered(value: float) -> Decision:
    return Decision(status="answered", answer=Answer(code=value, value=value))


@dataclass(frozen=True)
class Leaf:
    """A criterion with its value; None where it was left open."""

    value: float | None
    weight: float = 10.0
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """A group of leaves and groups."""

    members: tuple[Leaf | Node, ...]
    weight: float = 10.0


@dataclass
class Made:
    """A tree with the decisions on its leaves."""

    root: RubricGroup
    decisions: dict[str, Decision]

    def score(self, policy: CannotAssessConfig = SKIPPED, *, normalize: bool = True) -> TreeScore:
        applied = apply_conditions(self.root.leaves, self.decisions, policy)
        entries = {c.name or "": entry_of(c, applied[c.name or ""], policy) for c in self.root.leaves}
        return score_tree(self.root, entries, normalize=normalize)


def made(node: Node) -> Made:
    """The tree of a node as root: leaves `c0`, `c1`, …, groups `g0`, `g1`, …, both depth first."""
    decisions: dict[str, Decision] = {}
    groups = iter(range(10_000))

    def member(one: Leaf | Node) -> BaseCriterion | RubricGroup:
        if isinstance(one, Node):
            name = f"g{next(groups)}"
            return RubricGroup(name, tuple(map(member, one.members)), one.weight)
        name = f"c{len(decisions)}"
        decisions[name] = OPEN if one.value is None else answered(one.value)
        return Criterion(name=name, requirement="r", weight=one.weight, **one.more)

    return Made(RubricGroup("", tuple(map(member, node.members))), decisions)


def near(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, abs_tol=1e-9))


def leaves_of(node: Node) -> list[Leaf]:
    return [leaf for one in node.members for leaf in (leaves_of(one) if isinstance(one, Node) else [one])]


def changed(node: Node, position: int, leaf: Leaf | None) -> Node:
    """The node with another leaf in a place, or without it; groups that are left empty go too."""
    left = iter(range(10_000))

    def member(one: Leaf | Node) -> Leaf | Node | None:
        if isinstance(one, Leaf):
            return leaf if next(left) == position else one
        members = tuple(kept for inner in one.members if (kept := member(inner)) is not None)
        return replace(one, members=members) if members else None

    return replace(node, members=tuple(kept for one in node.members if (kept := member(one)) is not None))


values = st.floats(0, 1)
positive = st.floats(0.1, 100).map(lambda weight: round(weight, 3))
weights = st.floats(-100, 100).map(lambda weight: round(weight, 3))
gates = st.one_of(
    st.just("required"), st.builds(lambda a, c: {"at_least": a, "cap": c}, st.floats(0.01, 1), values)
)
plain = st.builds(Leaf, st.none() | values, weights)
judged = st.builds(Leaf, values, weights)
adorned = st.builds(
    lambda value, weight, gate, bonus: Leaf(value, weight, {"gate": gate, "bonus": bonus}),
    st.none() | values,
    positive,
    st.none() | gates,
    st.booleans(),
)

# Gates that were judged: what an open one does hangs on what the rest comes to.
decided = adorned.map(lambda leaf: replace(leaf, value=leaf.value or 0.0))
ungated = adorned.map(
    lambda leaf: replace(leaf, more={**leaf.more, "gate": None}) if leaf.value is None else leaf
)


def nodes(leaves: st.SearchStrategy[Leaf]) -> st.SearchStrategy[Node]:
    members = st.recursive(
        leaves,
        lambda inner: st.builds(
            Node,
            st.lists(inner, min_size=1, max_size=4).map(tuple),
            st.floats(0, 100).map(lambda w: round(w, 3)),
        ),
        max_leaves=10,
    )
    return st.builds(Node, st.lists(members, min_size=1, max_size=4).map(tuple))


# Groups


def test_groups_by_hand() -> None:
    """A group counts with its normalised score, a penalty in it takes off from it alone."""
    found = made(
        Node(
            (
                Leaf(1.0, 6.0),
                Node((Leaf(1.0, 3.0), Leaf(0.0, 1.0), Leaf(1.0, -1.0)), weight=4.0),
                Node((Leaf(0.5, -1.0),), weight=2.0),
            )
        )
    ).score()
    assert found.node_scores == {"": pytest.approx((6 + 4 * 0.5 + 2 * 0.5) / 12), "g0": 0.5, "g1": 0.5}
    assert found.score == found.node_scores[""]
    assert found.raw == 9.0


@settings(deadline=None)
@given(nodes(st.one_of(plain, adorned)))
def test_all_node_scores_are_bounded(node: Node) -> None:
    """Each lies in [0, 1] or there is none; every group has an entry, in depth-first order."""
    tree = made(node)
    found = tree.score()
    assert list(found.node_scores) == [group.name for group in tree.root.groups]
    assert all(score is None or 0.0 <= score <= 1.0 for score in found.node_scores.values())
    assert found.score == found.node_scores[""]


@settings(deadline=None)
@given(nodes(st.one_of(judged, adorned)), st.integers(0, 40), values)
def test_a_score_rises_with_each_positive_leaf(node: Node, position: int, value: float) -> None:
    """A higher value of a positive criterion lowers no score above it, gates and bonuses or not."""
    leaves = leaves_of(node)
    position %= len(leaves)
    leaf = leaves[position]
    if leaf.weight < 0 or leaf.value is None:
        return
    before = made(node).score()
    after = made(changed(node, position, replace(leaf, value=max(value, leaf.value)))).score()
    for name, score in before.node_scores.items():
        higher = after.node_scores[name]
        if score is not None and higher is not None:
            assert higher >= score - 1e-9


@settings(deadline=None)
@given(nodes(st.one_of(plain, adorned)), st.integers(0, 2**32), st.floats(0.01, 100))
def test_order_and_scale_within_each_group_do_not_matter(node: Node, seed: int, factor: float) -> None:
    """Shuffled members, and all weights of one group times a factor, give the same root score."""
    rng = random.Random(seed)

    def shuffled(one: Node) -> Node:
        members = [shuffled(inner) if isinstance(inner, Node) else inner for inner in one.members]
        rng.shuffle(members)
        return replace(one, members=tuple(members))

    def scaled(one: Node) -> Node:
        factor_here = factor if rng.random() < 0.5 else 1.0
        members = [scaled(inner) if isinstance(inner, Node) else inner for inner in one.members]
        return replace(one, members=tuple(replace(m, weight=m.weight * factor_here) for m in members))

    score = made(node).score().score
    assert near(made(shuffled(node)).score().score, score)
    assert near(made(scaled(node)).score().score, score)


@settings(deadline=None)
@given(st.lists(st.one_of(plain, adorned.map(lambda leaf: replace(leaf, more={}))), min_size=1, max_size=8))
def test_a_flat_tree_equals_the_flat_rubric(leaves: list[Leaf]) -> None:
    """Without groups the score is exactly that of the formula."""
    flat = score_terms(Term(leaf.value, leaf.weight) for leaf in leaves if leaf.value is not None)
    found = made(Node(tuple(leaves))).score()
    assert (found.score, found.raw) == (flat.score, flat.raw)
    assert found.node_scores == {"": flat.score}


@settings(deadline=None)
@given(nodes(st.one_of(plain, adorned)), positive)
def test_a_group_around_everything_changes_nothing(node: Node, weight: float) -> None:
    """One group that holds all scores what it holds."""
    inner = made(node).score()
    outer = made(Node((replace(node, weight=weight),))).score()
    assert near(outer.score, inner.score)


@settings(deadline=None)
@given(nodes(st.one_of(plain, ungated)))
def test_skip_equals_leaving_the_leaf_out(node: Node) -> None:
    """An open criterion leaves its group; a group with nothing left leaves the one around it."""
    pruned: Node = node
    for position in reversed(range(len(leaves_of(node)))):
        if leaves_of(node)[position].value is None:
            pruned = changed(pruned, position, None)
    expected = made(pruned).score().score if pruned.members else None
    assert near(made(node).score().score, expected)


@settings(deadline=None)
@given(nodes(st.one_of(plain, adorned)), values)
def test_other_strategies_equal_their_value(node: Node, credit: float) -> None:
    """ZERO is value 0, PARTIAL the credit, FAIL the worst for the weight's sign, at any depth."""
    expected = {
        CannotAssessStrategy.ZERO: lambda weight: 0.0,
        CannotAssessStrategy.PARTIAL: lambda weight: credit,
        CannotAssessStrategy.FAIL: lambda weight: 0.0 if weight >= 0 else 1.0,
    }
    for strategy, value_for in expected.items():
        filled = node
        for position, leaf in enumerate(leaves_of(node)):
            if leaf.value is None:
                filled = changed(filled, position, replace(leaf, value=value_for(leaf.weight)))
        policy = CannotAssessConfig(strategy=strategy, partial_credit=credit)
        assert made(node).score(policy) == made(filled).score()


@pytest.mark.parametrize("depth", [1, 90])
def test_large_trees_are_scored(depth: int) -> None:
    """Some thousands of criteria, flat or deep, have the score that their weights give."""
    node = Node(tuple(Leaf(1.0) for _ in range(3000)))
    for _ in range(depth):
        node = Node((node, Leaf(0.0)))
    tree = made(node)
    entries = {name: Entry(decision.value, decision.value) for name, decision in tree.decisions.items()}
    assert score_tree(tree.root, entries).score == pytest.approx(0.5**depth)


def test_a_raw_sum_takes_groups_by_their_score() -> None:
    """Not normalised, the root is Σ value × weight, a group's value being its score."""
    tree = made(Node((Leaf(1.0, 6.0), Node((Leaf(0.5, 100.0),), weight=4.0), Leaf(1.0, -3.0))))
    assert tree.score(normalize=False).score == 6.0 + 0.5 * 4.0 - 3.0
    assert tree.score(normalize=False).node_scores == tree.score().node_scores


# Bonuses


@settings(deadline=None)
@given(nodes(st.one_of(judged, decided)), positive, values, st.integers(0, 10))
def test_a_bonus_never_lowers_a_score(node: Node, weight: float, value: float, place: int) -> None:
    """One more bonus in the root, whatever it is worth, lowers no score."""
    extra = Leaf(value, weight, {"bonus": True})
    place %= len(node.members) + 1
    before = made(node).score().score
    after = made(replace(node, members=(*node.members[:place], extra, *node.members[place:]))).score().score
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert after >= before - 1e-12


def test_a_bonus_adds_and_does_not_divide() -> None:
    """It makes up for what is missing, up to 1, and on penalties alone too."""
    bonus = {"bonus": True}
    assert made(Node((Leaf(0.5, 10), Leaf(1.0, 2, bonus)))).score().score == pytest.approx(0.7)
    assert made(Node((Leaf(0.5, 10), Leaf(0.0, 2, bonus)))).score().score == 0.5
    assert made(Node((Leaf(1.0, 10), Leaf(1.0, 2, bonus)))).score().score == 1.0
    assert made(Node((Leaf(1.0, -4), Leaf(1.0, 2, bonus)))).score().score == 0.5
    assert made(Node((Leaf(None, 10), Leaf(1.0, 2, bonus)))).score().score is None


# Gates


@settings(deadline=None)
@given(nodes(st.one_of(judged, decided)), values, values)
def test_a_missed_gate_caps_its_group(node: Node, cap: float, value: float) -> None:
    """A group scores at most the cap where its gate is missed, and what it scores anyhow where not."""
    gated = {"gate": {"at_least": 0.5, "cap": cap}}
    without = made(Node((*node.members, Leaf(value, 5.0)))).score()
    found = made(Node((*node.members, Leaf(value, 5.0, gated)))).score()
    if without.score is None or value >= 0.5:
        assert found.score == without.score
    else:
        assert found.score == min(without.score, cap)


def test_a_gate_reaches_no_further_than_its_group() -> None:
    """The group scores 0; what stands beside it counts as ever."""
    node = Node((Leaf(1.0, 10.0), Node((Leaf(0.0, 1.0, {"gate": "required"}), Leaf(1.0, 9.0)))))
    found = made(node).score()
    assert found.node_scores == {"": 0.5, "g0": 0.0}


def test_a_gate_without_weight_only_gates() -> None:
    """It caps where it is missed, and is in no sum."""
    gate = {"gate": {"at_least": 1.0, "cap": 0.25}}
    assert made(Node((Leaf(0.0, 0.0, gate), Leaf(1.0)))).score().score == 0.25
    assert made(Node((Leaf(1.0, 0.0, gate), Leaf(0.5)))).score().score == 0.5


def test_gates_bear_rounding_errors() -> None:
    """The mean of three times 0.7 passes a gate at 0.7."""
    mean = sum([0.7] * 3) / 3
    assert mean < 0.7
    gate = {"gate": {"at_least": 0.7, "cap": 0.0}}
    assert made(Node((Leaf(mean, 10.0, gate),))).score().score == mean


@pytest.mark.parametrize("members", [(Leaf(1.0, 8.0),), (Leaf(0.0, -8.0),)])
def test_a_raw_sum_is_capped_where_it_would_normalise_to_the_cap(members: tuple[Leaf, ...]) -> None:
    """Without normalising, a missed gate caps the sum; the raw score stays the sum."""
    node = Node((*members, Leaf(0.5, 0.0, {"gate": {"at_least": 1.0, "cap": 0.25}})))
    found = made(node).score(normalize=False)
    normalised = {8.0: 2.0, -8.0: -6.0}[members[0].weight]
    assert found.score == normalised
    assert found.raw == members[0].weight * (members[0].value or 0.0)
    assert made(node).score().score == 0.25


GATED = Node((Leaf(1.0, 10.0), Node((Leaf(None, 1.0, {"gate": "required"}), Leaf(1.0, 9.0)))))


@pytest.mark.parametrize("decision", [OPEN, FAILED, Decision(status="not_asked")])
def test_a_gate_that_was_not_judged_leaves_its_group_unscored(decision: Decision) -> None:
    """It does not pass and does not fail: its group and all around it have no score, and it is named."""
    tree = made(GATED)
    tree.decisions["c1"] = decision
    found = tree.score()
    assert (found.score, found.node_scores) == (None, {"": None, "g0": None})
    assert found.open_gates == (OpenGate("c1", "g0"),)


def test_an_open_gate_at_its_cap_makes_no_difference() -> None:
    """Where the rest comes to the cap exactly, the group's score is known whatever the gate."""
    group = Node((Leaf(None, 1.0, {"gate": {"at_least": 1.0, "cap": 0.5}}), Leaf(0.5, 9.0)))
    found = made(Node((Leaf(1.0, 10.0), group))).score()
    assert found.node_scores == {"": 0.75, "g0": 0.5}
    assert found.open_gates == ()


def test_an_open_gate_below_a_group_that_is_capped_at_0_makes_no_difference() -> None:
    """A group that scores 0 whatever stands in it needs no score of what stands in it."""
    found = made(Node((Leaf(0.0, 1.0, {"gate": "required"}), *GATED.members))).score()
    assert found.node_scores == {"": 0.0, "g0": None}


@pytest.mark.parametrize("order", [1, -1])
def test_the_lowest_cap_of_missed_gates_counts(order: int) -> None:
    """Of two missed gates in one group the stricter says how much it is worth, whatever their order."""
    caps = [Leaf(0.0, 1.0, {"gate": {"at_least": 1.0, "cap": cap}}) for cap in (0.2, 0.6)]
    assert made(Node((*caps[::order], Leaf(1.0, 98.0)))).score().score == 0.2


@pytest.mark.parametrize("more", [{}, {"bonus": True}])
@pytest.mark.parametrize(
    ("gate", "alone", "around"), [("required", 0.0, 0.5), ({"at_least": 1.0, "cap": 0.4}, None, 1.0)]
)
def test_a_missed_gate_holds_where_nothing_else_is_left(
    gate: Any, alone: float | None, around: float, more: dict[str, Any]
) -> None:
    """A required gate of weight 0, or as a bonus, leaves its group at 0 even if all else was open."""
    group = Node((Leaf(0.0, 1.0 if more else 0.0, {"gate": gate, **more}), Leaf(None, 10.0)))
    assert made(group).score().score == alone
    found = made(Node((group, Leaf(1.0, 10.0)))).score()
    assert found.node_scores == {"": around, "g0": alone}


def test_meeting_a_gate_lowers_no_score() -> None:
    """Also where the gate has no weight and the rest of its group was left open."""
    for gate in ("required", {"at_least": 1.0, "cap": 0.6}):
        group = Node((Leaf(0.0, 0.0, {"gate": gate}), Leaf(None, 10.0)))
        met = changed(group, 0, Leaf(1.0, 0.0, {"gate": gate}))
        scores = [made(Node((Leaf(0.0, 10.0), one))).score().score for one in (group, met)]
        assert scores == [0.0, 0.0]


@settings(deadline=None)
@given(nodes(adorned), st.integers(0, 40))
def test_leaving_a_leaf_open_lifts_no_group_above_a_missed_gate(node: Node, position: int) -> None:
    """Whatever is not judged, a group with a missed gate stays at its cap or below, or has no score."""
    leaves = leaves_of(node)
    position %= len(leaves)
    tree = made(changed(node, position, replace(leaves[position], value=None)))
    scores = tree.score().node_scores
    for group in tree.root.groups:
        for one in group.criteria:
            if isinstance(one, RubricGroup) or one.gate is None:
                continue
            value, score = tree.decisions[one.name or ""].value, scores[group.name]
            if value is not None and score is not None and not one.gate.passes(value):
                assert score <= one.gate.cap + 1e-9


@pytest.mark.parametrize(
    ("strategy", "score"),
    [
        (CannotAssessStrategy.ZERO, 0.0),
        (CannotAssessStrategy.PARTIAL, 0.0),
        (CannotAssessStrategy.FAIL, 0.0),
        (CannotAssessStrategy.SKIP, None),
    ],
)
def test_an_open_gate_is_worth_what_the_policy_says(
    strategy: CannotAssessStrategy, score: float | None
) -> None:
    """With a value from the policy, an abstention misses the gate or passes it."""
    assert made(GATED).score(CannotAssessConfig(strategy=strategy)).node_scores["g0"] == score
    full = CannotAssessConfig(strategy=CannotAssessStrategy.PARTIAL, partial_credit=1.0)
    assert made(GATED).score(full).node_scores["g0"] == 1.0


def test_an_open_gate_that_makes_no_difference_leaves_the_score() -> None:
    """A group that scores no more than the cap anyhow keeps its score."""
    gate = {"gate": {"at_least": 1.0, "cap": 0.4}}
    found = made(Node((Leaf(None, 1.0, gate), Leaf(0.3)))).score()
    assert (found.score, found.open_gates) == (0.3, ())
    two = made(Node((Leaf(None, 1.0, gate), Leaf(0.0, 0.0, {"gate": "required"}), Leaf(1.0)))).score()
    assert (two.score, two.open_gates) == (0.0, ())


def test_a_gate_that_does_not_apply_asks_nothing() -> None:
    """An NA answer and an unmet condition lift the gate."""
    tree = made(GATED)
    tree.decisions["c1"] = NA
    assert tree.score().node_scores["g0"] == 1.0
    node = Node((Leaf(0.0, 5.0), Leaf(0.0, 5.0, {"gate": "required", "when": "c0"}), Leaf(1.0, 5.0)))
    assert made(node).score().score == 0.5


def test_what_has_no_entry_leaves_the_score() -> None:
    """A criterion without an entry is in no sum, and its gate asks nothing."""
    root = made(GATED).root
    assert score_tree(root, {"c0": Entry(0.5, 0.5)}).node_scores == {"": 0.5, "g0": None}


# Conditions


@settings(deadline=None)
@given(nodes(judged), values, values, st.floats(0.01, 1))
def test_an_unmet_condition_equals_leaving_out(
    node: Node, first: float, value: float, at_least: float
) -> None:
    """A criterion whose condition does not hold is in neither sum; where it holds, it counts as ever."""
    start = (Leaf(first, 3.0), *node.members)
    conditional = Leaf(value, 7.0, {"when": {"criterion": "c0", "at_least": at_least}})
    found = made(Node((*start, conditional))).score()
    holds = first >= at_least - 1e-9
    assert found == made(Node((*start, *([Leaf(value, 7.0)] if holds else [])))).score()


def test_conditions_form_chains() -> None:
    """What depends on a criterion that does not apply does not apply, in whatever order they stand."""
    leaves = [
        Criterion(name="third", requirement="r", when="second"),
        Criterion(name="second", requirement="r", when="first"),
        Criterion(name="first", requirement="r"),
    ]
    met = {name: answered(1.0) for name in ("first", "second", "third")}
    assert apply_conditions(leaves, met, SKIPPED) == met
    applied = apply_conditions(leaves, {**met, "first": answered(0.0)}, SKIPPED)
    assert [applied[name].status for name in met] == ["answered", "not_applicable", "not_applicable"]


def test_long_chains_take_no_recursion() -> None:
    """A chain of thousands is walked."""
    leaves = [Criterion(name="n0", requirement="r")]
    leaves += [Criterion(name=f"n{i}", requirement="r", when=f"n{i - 1}") for i in range(1, 3000)]
    decisions = {f"n{i}": answered(float(i > 0)) for i in range(3000)}
    applied = apply_conditions(leaves, decisions, SKIPPED)
    assert applied["n2999"].status == "not_applicable"


@pytest.mark.parametrize("decision", [OPEN, NA, FAILED, None])
def test_an_unjudged_condition_does_not_hold(decision: Decision | None) -> None:
    """What depends on a criterion without a judgment does not apply."""
    leaves = [Criterion(name="a", requirement="r"), Criterion(name="b", requirement="r", when="a")]
    known = {"b": answered(1.0)} if decision is None else {"a": decision, "b": answered(1.0)}
    assert apply_conditions(leaves, known, SKIPPED)["b"].status == "not_applicable"
    stray = [Criterion(name="b", requirement="r", when="elsewhere")]
    assert apply_conditions(stray, {"b": answered(1.0)}, SKIPPED)["b"].status == "not_applicable"


def test_conditions_look_elsewhere_for_what_is_not_there() -> None:
    """A judge that was not asked goes by the panel's decision."""
    leaves = [Criterion(name="a", requirement="r"), Criterion(name="b", requirement="r", when="a")]
    own = {"b": answered(1.0)}
    for value, status in ((1.0, "answered"), (0.0, "not_applicable")):
        applied = apply_conditions(leaves, own, SKIPPED, elsewhere={"a": answered(value)})
        assert applied["b"].status == status
        assert "a" not in applied
