"""Elo ratings: by hand, and how they depend on the order of the comparisons."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import bradley_terry, elo

Games = list[tuple[str, str, str | None]]


def test_three_games_by_hand() -> None:
    """A win of equals moves both by 16; then 1016 meets 1000, expecting 0.523010, and ties; and so on.

    1 / (1 + 10^(-16/400)) = 0.523010: a tie costs a 32 · (0.5 - 0.523010) = -0.736307. Then b, at 984,
    beats c at 1000.736307: 1 / (1 + 10^(16.736307/400)) = 0.475933, so b gains 32 · 0.524067 = 16.770140.
    """
    found = elo([("a", "b", "a"), ("a", "c", None), ("c", "b", "b")])
    assert found.strengths == pytest.approx({"a": 1015.263693, "b": 1000.770140, "c": 983.966167}, abs=1e-5)
    assert (found.n, found.k, found.initial) == (3, 32.0, 1000.0)


def test_another_order_gives_other_ratings_and_says_so() -> None:
    """Who wins last stands higher, where Bradley-Terry calls it even; docstring and method warn.

    The second winner was expected to win with 1 / (1 + 10^(32/400)) = 0.454078, and gains 17.4695 after 16.
    """
    games: Games = [("a", "b", "a"), ("b", "a", "b")]
    forward, backward = elo(games), elo(games[::-1])
    assert forward.strengths == pytest.approx({"a": 998.5305, "b": 1001.4695}, abs=1e-4)
    assert backward.strengths == pytest.approx({"a": 1001.4695, "b": 998.5305}, abs=1e-4)
    assert bradley_terry(games).strengths == pytest.approx({"a": 0.0, "b": 0.0})
    assert "depends on the order" in forward.method
    assert "depends on their order" in (elo.__doc__ or "")


def test_ratings_go_into_json() -> None:
    """With what they rest on."""
    plain = json.loads(json.dumps(elo([("a", "b", "a")], k=10, initial=0).to_dict(), allow_nan=False))
    assert plain["strengths"] == {"a": 5.0, "b": -5.0}
    assert (plain["k"], plain["initial"], plain["n"]) == (10.0, 0.0, 1)
    assert "order" in plain["method"]


@pytest.mark.parametrize(
    ("games", "options", "told"),
    [
        ([], {}, "comparisons is empty"),
        ([("a", "b")], {}, r"must be \(left, right, winner or None\)"),
        ([("a", "b", "c")], {}, "one of them or None"),
        ([("a", "b", "a")], {"k": 0}, "finite number above 0"),
        ([("a", "b", "a")], {"initial": math.inf}, "finite"),
    ],
)
def test_what_is_no_game(games: Any, options: dict[str, Any], told: str) -> None:
    """Errors say what was given and what is allowed."""
    with pytest.raises(ArgumentError, match=told):
        elo(games, **options)


games = st.lists(
    st.tuples(st.permutations("abc"), st.integers(0, 2)).map(
        lambda drawn: (drawn[0][0], drawn[0][1], (drawn[0][0], drawn[0][1], None)[drawn[1]])
    ),
    min_size=1,
    max_size=25,
)


@given(games, st.floats(1, 100))
def test_they_are_the_plain_recursion_and_keep_their_mean(drawn: Games, k: float) -> None:
    """Written down once more; sides do not matter, and exchanged winners mirror the ratings at the mean."""
    expected: dict[str, float] = {}
    for left, right, winner in drawn:
        a, b = expected.get(left, 1000.0), expected.get(right, 1000.0)
        chance = 1 / (1 + 10 ** ((b - a) / 400))
        score = {left: 1.0, right: 0.0, None: 0.5}[winner]
        expected[left], expected[right] = a + k * (score - chance), b - k * (score - chance)
    found = elo(drawn, k=k).strengths
    assert found == pytest.approx(expected, abs=1e-6)
    assert sum(found.values()) / len(found) == pytest.approx(1000.0)
    assert elo([(right, left, winner) for left, right, winner in drawn], k=k).strengths == pytest.approx(
        found
    )
    lost = [(left, right, {left: right, right: left, None: None}[winner]) for left, right, winner in drawn]
    mirrored = elo(lost, k=k).strengths
    assert {name: 2000 - rating for name, rating in mirrored.items()} == pytest.approx(found, abs=1e-6)
