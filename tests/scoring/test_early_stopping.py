"""Early stopping: votes that could still change a verdict, and votes that cannot."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from autorubric.criteria import BaseCriterion
from autorubric.scoring import Decision, JudgeVote
from autorubric.scoring.aggregation import AGGREGATORS
from autorubric.scoring.decisions import decide_by_judge, decide_panel
from autorubric.scoring.early_stopping import can_stop, votes_needed
from autorubric.scoring.policies import AggregationPolicy
from tests.criteria.kinds import KINDS, NOMINAL
from tests.doubles import binary, choice, lost_vote, open_vote, vote

COLOURS = choice("colour", NOMINAL, scale_type="nominal", na="none")
CRITERIA: list[BaseCriterion] = [
    *(binary(weight=sign, aggregation=name) for name in AGGREGATORS["binary"] for sign in (10.0, -10.0)),
    *(COLOURS.model_copy(update={"aggregation": name}) for name in AGGREGATORS["nominal"]),
    *(choice("scale", aggregation=name) for name in AGGREGATORS["ordinal"]),
]
WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 1.5, 3.0])


def decide(criterion: BaseCriterion, votes: Sequence[JudgeVote], policy: AggregationPolicy) -> Decision:
    return decide_panel(criterion, votes, decide_by_judge(criterion, votes, policy), policy)


def verdict(decision: Decision) -> Any:
    """What early stopping must not change; how many agree is another matter."""
    code = decision.answer.code if decision.answer else None
    return decision.status, code, decision.assumed, decision.swayed


def outcomes(criterion: BaseCriterion, like: JudgeVote) -> list[JudgeVote]:
    """Everything that a vote may turn out to be."""
    who: dict[str, Any] = {"sample": like.sample, "weight": like.weight}
    answered = [
        vote(like.judge_id, answer.code, **who) for answer in criterion.answers() if not answer.abstains
    ]
    abstained = replace(open_vote(like.judge_id, sample=like.sample), weight=like.weight)
    lost = [lost_vote(like.judge_id, unreadable=unreadable, **who) for unreadable in (True, False)]
    return [*answered, abstained, *lost]


@st.composite
def panels(draw: st.DrawFn) -> tuple[BaseCriterion, list[JudgeVote], AggregationPolicy]:
    """A criterion and a whole panel's votes on it, in the order in which they are asked for."""
    criterion = draw(st.sampled_from(CRITERIA))
    votes = []
    for number in range(draw(st.integers(1, 5))):
        weight = draw(WEIGHTS)
        for sample in range(draw(st.integers(1, 3))):
            like = vote(f"j{number}", None, sample=sample, weight=weight)
            votes.append(draw(st.sampled_from(outcomes(criterion, like))))
    on_failure: Any = draw(st.sampled_from(["conservative", "exclude"]))
    return criterion, draw(st.permutations(votes)), AggregationPolicy(on_failure=on_failure)


def left_out(votes: Sequence[JudgeVote]) -> list[JudgeVote]:
    return [
        JudgeVote(judge_id=v.judge_id, sample=v.sample, weight=v.weight, status="not_asked", skipped=True)
        for v in votes
    ]


@settings(max_examples=500)
@given(panels())
def test_a_panel_that_stops_early_decides_like_the_whole_one(
    drawn: tuple[BaseCriterion, list[JudgeVote], AggregationPolicy],
) -> None:
    """Once settled, the votes that are there give the verdict of all, whichever aggregation it is."""
    criterion, votes, policy = drawn
    whole = verdict(decide(criterion, votes, policy))
    for asked in range(len(votes) + 1):
        rest = left_out(votes[asked:])
        if can_stop(criterion, votes[:asked], rest, policy):
            stopped = decide(criterion, [*votes[:asked], *rest], policy)
            assert verdict(stopped) == whole


@settings(max_examples=200)
@given(panels(), st.data())
def test_settled_means_whatever_is_still_to_come(
    drawn: tuple[BaseCriterion, list[JudgeVote], AggregationPolicy], data: st.DataObject
) -> None:
    """Every way in which up to three further votes may turn out leads to the verdict."""
    criterion, votes, policy = drawn
    asked = data.draw(st.integers(max(0, len(votes) - 3), len(votes)))
    there, rest = votes[:asked], votes[asked:]
    if not can_stop(criterion, there, left_out(rest), policy):
        return
    now = verdict(decide(criterion, [*there, *left_out(rest)], policy))
    for ways in itertools.product(*(outcomes(criterion, like) for like in rest)):
        assert verdict(decide(criterion, [*there, *ways], policy)) == now


@settings(max_examples=200)
@given(panels())
def test_no_fewer_votes_than_wanted_could_settle_it(
    drawn: tuple[BaseCriterion, list[JudgeVote], AggregationPolicy],
) -> None:
    """What is asked for at once is never more than is needed: with fewer of these answers it stays open."""
    criterion, votes, policy = drawn
    assume(
        criterion.level == "binary"
        or criterion.aggregation != "unanimous"
        or not any(v.sample for v in votes)
    )
    wanted = votes_needed(criterion, [], left_out(votes), policy)
    for fewer in range(wanted):
        assert not can_stop(criterion, votes[:fewer], left_out(votes[fewer:]), policy)


@pytest.mark.parametrize(
    ("aggregation", "answers", "panel", "settled"),
    [
        ("majority", ["MET", "MET"], 3, True),
        ("majority", ["MET", "MET"], 4, False),
        ("majority", ["UNMET", "UNMET"], 4, True),
        ("majority", ["MET", "UNMET"], 3, False),
        ("any", ["UNMET"], 2, False),
        ("any", ["MET"], 9, True),
        ("unanimous", ["MET", "MET"], 3, False),
        ("unanimous", ["UNMET"], 9, True),
    ],
)
def test_by_hand(aggregation: Any, answers: list[str], panel: int, settled: bool) -> None:
    """The cases that everyone would count out."""
    criterion, policy = binary(), AggregationPolicy(aggregation=aggregation)
    there = [vote(f"j{i}", answer) for i, answer in enumerate(answers)]
    rest = left_out([vote(f"j{i}", None) for i in range(len(answers), panel)])
    assert can_stop(criterion, there, rest, policy) is settled


def test_weights_that_outweigh_the_rest() -> None:
    """A heavy judge settles a weighted majority alone, and exactly half of the weight does not."""
    criterion, policy = binary(), AggregationPolicy(aggregation="weighted")
    rest = left_out([vote("b", None, weight=0.1), vote("c", None, weight=0.2)])
    assert can_stop(criterion, [vote("a", "MET", weight=0.4)], rest, policy)
    assert not can_stop(criterion, [vote("a", "MET", weight=0.1 + 0.2)], rest, policy)
    assert can_stop(criterion, [vote("a", "UNMET", weight=0.1 + 0.2)], rest, policy)


def test_unreadable_replies_keep_it_open() -> None:
    """Whether one sways the verdict is known only in the end."""
    rest = left_out([vote("d", None)])
    there = [vote("a", "UNMET"), vote("b", "UNMET"), lost_vote("c", unreadable=True)]
    assert not can_stop(binary(), there, rest, AggregationPolicy())
    there[2] = lost_vote("c", unreadable=False)
    assert can_stop(binary(), there, rest, AggregationPolicy())


def test_methods_that_need_every_vote_ask_for_every_vote() -> None:
    """Means, medians, rankings, parts and texts are never settled before all have voted."""
    for name, kind in KINDS.items():
        criterion = kind(name="c", requirement="How is it?")
        if criterion.level in ("binary", "nominal"):
            continue
        rest = left_out([vote(f"j{i}", None) for i in range(3)])
        assert votes_needed(criterion, [], rest, AggregationPolicy()) == 3, name


def test_disagreement_settles_unanimity() -> None:
    """Two different options settle it for good, so two votes are asked for first."""
    rest = left_out([vote(f"j{i}", None) for i in range(5)])
    policy = AggregationPolicy(nominal_aggregation="unanimous")
    colours = choice("colour", NOMINAL, scale_type="nominal")
    assert votes_needed(colours, [], rest, policy) == 2
