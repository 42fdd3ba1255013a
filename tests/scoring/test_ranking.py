"""Votes that compare, brought together: Borda, Bradley–Terry, and both orders of one sample."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.criteria import BaseCriterion, ComparativeCriterion, Submission
from autorubric.errors import ArgumentError
from autorubric.scoring import Decision, JudgeVote
from autorubric.scoring.bradley_terry import Contest, fit_strengths
from autorubric.scoring.decisions import decide_by_judge, decide_panel
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.votes import prefers_alike
from tests.criteria.kinds import Warmth
from tests.doubles import vote

NAMES = ["x", "y", "z"]


def comparing(names: Sequence[str] = NAMES, **fields: Any) -> BaseCriterion:
    submission = Submission(text="t", candidates=dict.fromkeys(names, "t"))
    return ComparativeCriterion(**{"name": "c", "mode": "ranking", **fields}).bind(submission)


def panel_of(criterion: BaseCriterion, votes: Sequence[JudgeVote], method: Any = "borda") -> Decision:
    policy = AggregationPolicy(ranking_aggregation=method)
    return decide_panel(criterion, votes, decide_by_judge(criterion, votes, policy), policy)


def said(answers: Sequence[Any], weights: Sequence[float] | None = None) -> list[JudgeVote]:
    return [
        vote(f"j{i}", answer, weight=(weights or [1.0] * len(answers))[i]) for i, answer in enumerate(answers)
    ]


def test_borda_orders_by_mean_rank() -> None:
    """Two say x > y > z, one y > z > x: mean ranks 5/3, 5/3 and 8/3 leave x and y level."""
    found = panel_of(comparing(), said([["x", "y", "z"], ["x", "y", "z"], ["y", "z", "x"]]))
    assert found.answer is not None
    assert found.answer.code == [["x", "y"], "z"]
    assert found.mean_value == pytest.approx(2 / 3)
    assert found.tie
    clear = panel_of(comparing(), said([["x", "y", "z"], ["x", "z", "y"]]))
    assert clear.answer is not None
    assert (clear.answer.code, clear.tie, clear.agreement) == (["x", ["y", "z"]], False, 0.0)


@pytest.mark.parametrize("method", ["borda", "bradley_terry"])
def test_all_of_one_mind(method: str) -> None:
    """What all say is what they come to."""
    for mode, answer in (("ranking", ["z", "x", "y"]), ("best_of", "y")):
        found = panel_of(comparing(mode=mode), said([answer] * 3), method)
        assert found.answer is not None
        assert (found.answer.code, found.tie, found.agreement) == (answer, False, 1.0)


def test_bradley_terry_may_differ_from_borda() -> None:
    """It goes by who beat whom, and by how strong those were."""
    votes = said([["x", "y", "z"], ["x", "y", "z"], ["y", "z", "x"], ["x", "y", "z"]])
    for method in ("borda", "bradley_terry"):
        found = panel_of(comparing(), votes, method)
        assert found.answer is not None
        assert found.answer.code == ["x", "y", "z"]


def test_weights_count_where_the_criterion_says_so() -> None:
    """`weighted_borda` is named by a criterion; without any weight all count alike."""
    votes = said([["x", "y", "z"], ["z", "y", "x"], ["z", "y", "x"]], [5.0, 1.0, 1.0])
    weighed = comparing(aggregation="weighted_borda")
    for criterion, wanted in ((weighed, ["x", "y", "z"]), (comparing(), ["z", "y", "x"])):
        found = panel_of(criterion, votes)
        assert found.answer is not None
        assert found.answer.code == wanted
    none = panel_of(weighed, said([["x", "y", "z"]], [0.0]))
    assert none.answer is not None
    assert none.answer.code == ["x", "y", "z"]
    with pytest.raises(ArgumentError, match="borda, weighted_borda, bradley_terry"):
        panel_of(comparing(aggregation="mean"), votes)


@pytest.mark.parametrize("method", ["borda", "bradley_terry"])
@pytest.mark.parametrize(
    ("answers", "code", "tie"),
    [
        (["x", "x", "y"], "x", False),
        (["x", "y"], "tie", True),
        (["x", "y", "tie"], "tie", True),
        (["x", "tie", "tie"], "x", False),
        (["tie", "tie"], "tie", False),
    ],
)
def test_pairs_go_by_the_majority_of_preferences(
    answers: list[str], code: str, tie: bool, method: str
) -> None:
    """Those that see no difference leave it to the others."""
    found = panel_of(comparing(["x", "y"], mode="pairwise"), said(answers), method)
    assert found.answer is not None
    assert (found.answer.code, found.tie) == (code, tie)


def test_margins_of_a_panel_are_averaged() -> None:
    """The decision is the mean preference, and its value that of the first candidate."""
    criterion = comparing(["x", "y"], mode="pairwise", margin=2)
    found = panel_of(criterion, said([-2, -1, 0]), "bradley_terry")
    assert found.answer is not None
    assert (found.answer.code, found.answer.value) == (-1, 0.75)
    assert found.agreement == pytest.approx(2 / 3)


def test_rankings_without_candidates_go_by_the_most() -> None:
    """Where nobody knows what was compared, equal answers are all there is to count."""
    unbound = ComparativeCriterion(name="c", mode="ranking")
    found = panel_of(unbound, said([["b", "a"], ["b", "a"], ["a", "b"]]))
    assert found.answer is not None
    assert found.answer.code == ["b", "a"]
    with pytest.raises(NotImplementedError):
        Warmth(name="w").ranking_answer((1.0, 0.0))


# The first fit loads numpy, which takes longer than Hypothesis allows an example.
@settings(deadline=None)
@given(st.lists(st.permutations(NAMES), min_size=1, max_size=5), st.sampled_from(["borda", "bradley_terry"]))
def test_who_votes_first_and_what_candidates_are_called_does_not_matter(
    rankings: list[list[str]], method: str
) -> None:
    """Votes in another order give the same; renamed candidates give the same, renamed."""
    plain = panel_of(comparing(), said(rankings), method).answer
    turned = panel_of(comparing(), said(rankings[::-1]), method).answer
    other = {"x": "p", "y": "q", "z": "r"}
    renamed = panel_of(comparing(["p", "q", "r"]), said([[other[n] for n in r] for r in rankings]), method)
    assert plain is not None and turned is not None and renamed.answer is not None
    assert plain.code == turned.code
    assert plain.value == turned.value == renamed.answer.value


@settings(deadline=None)
@given(st.lists(st.sampled_from(["x", "y", "tie"]), min_size=1, max_size=6))
def test_swapping_the_candidates_flips_the_decision(answers: list[str]) -> None:
    """Declared the other way round, the same votes decide for the same candidate."""
    one = panel_of(comparing(["x", "y"], mode="pairwise"), said(answers)).answer
    other = panel_of(comparing(["y", "x"], mode="pairwise"), said(answers)).answer
    assert one is not None and other is not None
    assert one.code == other.code
    assert (one.value or 0.0) + (other.value or 0.0) == 1.0


def test_preferences_are_alike_in_direction() -> None:
    """Numbers by their sign, everything else as it stands."""
    assert prefers_alike(-2, -0.5)
    assert not prefers_alike(-2, 0)
    assert not prefers_alike(-1, 1)
    assert prefers_alike(["a", "b"], ["a", "b"])
    assert not prefers_alike("a", "tie")


# The model itself


def test_two_players_have_the_odds_of_their_wins() -> None:
    """Three wins to one: the difference is log 3."""
    fit = fit_strengths(2, [Contest(left=0, right=1, won=3, lost=1)])
    assert fit.strengths is not None
    assert fit.strengths[0] - fit.strengths[1] == pytest.approx(math.log(3))
    assert sum(fit.strengths) == pytest.approx(0.0)


def test_players_apart_are_named() -> None:
    """A player that always wins, or one that met nobody, leaves no maximum."""
    circle = [Contest(left=a, right=b, won=1) for a, b in ((0, 1), (1, 2), (2, 0))]
    assert fit_strengths(3, circle).strengths == pytest.approx((0.0, 0.0, 0.0))
    assert fit_strengths(4, [*circle, Contest(left=3, right=0, won=5)]).apart == (3,)
    assert fit_strengths(5, circle).apart == (3, 4)
    assert fit_strengths(5, circle, prior=1.0).strengths == pytest.approx((0.0,) * 5, abs=1e-9)


def test_strong_players_need_small_steps() -> None:
    """A lopsided contest with a weak prior still settles where the slope is 0."""
    prior, wins = 0.01, 1000.0
    fit = fit_strengths(2, [Contest(left=0, right=1, won=wins)], prior=prior)
    assert fit.strengths is not None
    a, b = fit.strengths
    beats, above = 1 / (1 + math.exp(b - a)), 1 / (1 + math.exp(-a))
    assert wins * (1 - beats) + prior * (0.5 - above) == pytest.approx(0.0, abs=1e-9)


def test_strengths_are_found_again() -> None:
    """From expected counts the strengths come back, ties of Davidson's model with them."""
    rng = random.Random(3)
    true = [rng.gauss(0, 1.5) for _ in range(6)]
    nu, contests = 0.7, []
    for i in range(6):
        for j in range(i):
            parts = [math.exp(true[i]), math.exp(true[j]), nu * math.exp((true[i] + true[j]) / 2)]
            won, lost, tied = (100 * part / sum(parts) for part in parts)
            contests.append(Contest(left=i, right=j, won=won, lost=lost, tied=tied))
    fit = fit_strengths(6, contests, ties="davidson")
    mean = sum(true) / 6
    assert fit.strengths == pytest.approx([one - mean for one in true], abs=1e-8)
    assert fit.tie_strength == pytest.approx(nu, abs=1e-8)
    assert fit_strengths(2, [Contest(left=0, right=1, won=1, lost=1)], ties="davidson").tie_strength == 0.0
