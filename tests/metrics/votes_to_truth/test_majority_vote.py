"""The label of most votes: ties, weights, missing votes, and the form that labels come back in."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import Binary, Nominal, Ordinal, majority_vote

ROWS = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from(["a", "b", "c", None]), min_size=width, max_size=width),
        min_size=1,
        max_size=8,
    )
)


def test_the_most_frequent_label_wins_and_a_tie_has_none():
    """2 of 3, a plurality of 2 in 4, a tie of 1 to 1, and no vote at all."""
    ratings = [["a", "b", "a", None], ["a", "b", "c", "c"], ["a", "b", None, None], [None] * 4]
    assert majority_vote(ratings) == ["a", "c", None, None]


def test_each_policy_breaks_ties_its_own_way():
    """`first` takes the first tied label in the row, `lowest` and `highest` go by the scale."""
    scale = Ordinal(["poor", "fair", "good"])
    ratings = [["good", "poor", None], ["fair", "good", "poor"], ["poor", "good", "good"]]
    assert majority_vote(ratings, ties="first", scale=scale) == ["good", "fair", "good"]
    assert majority_vote(ratings, ties="lowest", scale=scale) == ["poor", "poor", "good"]
    assert majority_vote(ratings, ties="highest", scale=scale) == ["good", "good", "good"]


def test_first_passes_over_labels_that_are_not_tied():
    """With b and c at two votes each, the a that comes first does not win."""
    assert majority_vote([["a", "c", "b", "b", "c"]], ties="first") == ["c"]


def test_lots_are_fair_and_follow_the_seed():
    """Of 4,000 ties each label wins about half, and the same seed draws the same."""
    ties = [["a", "b"]] * 4000
    drawn = majority_vote(ties, ties="random", rng=3)
    assert abs(Counter(drawn)["a"] - 2000) < 5 * np.sqrt(1000)
    assert drawn == majority_vote(ties, ties="random", rng=3)
    assert drawn != majority_vote(ties, ties="random", rng=4)


def test_weights_are_added_up():
    """.1 + .2 against .3 is a tie whatever the rounding, .4 outweighs it, and weight 0 is no vote."""
    row = [["a", "a", "b"]]
    assert majority_vote(row, weights=[0.1, 0.2, 0.3]) == [None]
    assert majority_vote(row, weights=[0.1, 0.2, 0.4]) == ["b"]
    assert majority_vote(row, weights=[1, 0, 0]) == ["a"]
    assert majority_vote(row, weights=[0, 0, 0]) == [None]
    assert majority_vote([["b", "a", "c"]], weights=[0, 1, 1], ties="first") == ["a"]


def test_labels_come_back_as_they_were_voted():
    """Booleans stay booleans and numbers numbers; what means the same counts together."""
    assert majority_vote([[True, False, True]]) == [True]
    assert majority_vote([["yes", "MET", "no"]], scale=Binary()) == ["yes"]
    found = majority_vote(np.array([[3, 3, 1], [1, 1, 3]]))
    assert found == [3, 1]
    assert all(type(label) is int for label in found)
    assert majority_vote(np.array([[0, -1, 2], [-1, -1, -1]]), labels=3, ties="highest") == [2, None]
    assert majority_vote([["CANNOT_ASSESS", "MET"]]) == ["MET"]


def test_no_units_and_no_raters():
    """Nothing in, nothing out; units without raters have no label."""
    assert majority_vote([]) == []
    assert majority_vote([[], []]) == [None, None]
    assert majority_vote(np.zeros((0, 3), dtype=int), ties="first", weights=[1, 1, 1]) == []


def test_wrong_arguments_say_what_is_allowed():
    """Unknown policies, an order that is not there, wrong weights, labels and rows are refused."""
    with pytest.raises(ArgumentError, match="lowest"):
        majority_vote([["a"]], ties="middle")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="Ordinal"):
        majority_vote([["a", "b"]], ties="lowest")
    with pytest.raises(ArgumentError, match="2 values for 1 raters"):
        majority_vote([["a"]], weights=[1, 2])
    for wrong in ([-1.0], [float("nan")], [float("inf")]):
        with pytest.raises(ArgumentError, match="weights"):
            majority_vote([["a"]], weights=wrong)
    with pytest.raises(ArgumentError, match="not on the scale"):
        majority_vote([["z"]], scale=Nominal("ab"))
    with pytest.raises(ArgumentError, match="lengths"):
        majority_vote([["a"], ["a", "b"]])


@settings(deadline=None)
@given(ROWS)
def test_it_is_what_counting_gives(rows):
    """The same as counting each row with the standard library."""
    for row, label in zip(rows, majority_vote(rows), strict=True):
        counted = Counter(vote for vote in row if vote is not None).most_common()
        alone = len(counted) == 1 or (len(counted) > 1 and counted[0][1] > counted[1][1])
        assert label == (counted[0][0] if alone else None)


@settings(deadline=None)
@given(ROWS, st.randoms())
def test_the_order_of_raters_and_the_names_do_not_matter(rows, random):
    """Without a policy columns may be permuted; renaming labels renames the outcome."""
    order = list(range(len(rows[0])))
    random.shuffle(order)
    assert majority_vote([[row[place] for place in order] for row in rows]) == majority_vote(rows)
    names = {"a": "x", "b": "q", "c": "m", None: None}
    renamed = [[names[label] for label in row] for row in rows]
    assert majority_vote(renamed) == [names[label] for label in majority_vote(rows)]


@settings(deadline=None)
@given(ROWS)
def test_a_weight_of_two_is_a_vote_cast_twice(rows):
    """Doubling a rater's weight is writing the column twice."""
    weights = [2.0] + [1.0] * (len(rows[0]) - 1)
    assert majority_vote(rows, weights=weights) == majority_vote([[row[0], *row] for row in rows])


@pytest.mark.parametrize("ties", ["first", "random", "lowest", "highest", None])
def test_units_without_votes_have_no_winner(ties):
    """This holds for units without raters and for no units at all."""
    assert list(majority_vote([[None, None]], ties=ties)) == [None]
    assert list(majority_vote([[], []], ties=ties)) == [None, None]
    assert list(majority_vote([], ties=ties)) == []
