"""How often the order of the candidates does not matter."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import Nominal, position_consistency


def test_position_consistency_is_a_share() -> None:
    """Of the pairs with an outcome in both orders, those with the same; with an interval."""
    found = position_consistency(["a", "b", "tie", None, "b"], ["a", "a", "tie", "a", "b"])
    assert (found.value, found.n) == (0.75, 4)
    assert found.low is not None and found.low < 0.75
    assert position_consistency([], []).reason == "no_pairs"
    assert position_consistency(["a"], ["b"], scale=None, ci=None).value == 0.0


def test_wilsons_interval_by_hand() -> None:
    """15 of 20 alike: 1.96² / 20 = 0.192, centre (0.75 + 0.096) / 1.192 = 0.7097, half width 0.1784."""
    found = position_consistency(["a"] * 20, ["a"] * 15 + ["b"] * 5)
    assert [found.low, found.high] == pytest.approx([0.5313, 0.8881], abs=1e-4)


def test_a_judge_of_places_is_never_consistent() -> None:
    """Who always takes the first one shown names a, then b."""
    assert position_consistency(["a"] * 7, ["b"] * 7) == 0.0


def test_items_with_several_criteria_are_clustered() -> None:
    """Twenty answers on two prompts widen the interval."""
    first, swapped = ["a"] * 20, ["a"] * 9 + ["b"] + ["a"] * 6 + ["b"] * 4
    plain = position_consistency(first, swapped)
    clustered = position_consistency(first, swapped, cluster=[0] * 10 + [1] * 10)
    assert plain.value == clustered.value == 0.75
    assert plain.low is not None and clustered.low is not None and clustered.low < plain.low


def test_outcomes_outside_the_scale_are_refused() -> None:
    """Declared outcomes are all there are."""
    with pytest.raises(ArgumentError, match="not on the scale"):
        position_consistency(["a"], ["INVALID"], scale=Nominal(["a", "b", "tie"]))


@given(st.lists(st.tuples(st.sampled_from("abt"), st.sampled_from("abt")), min_size=1, max_size=30))
def test_it_is_the_share_of_equal_outcomes_whichever_order_is_first(pairs: list[tuple[str, str]]) -> None:
    """Counted in Python, and the same with the orders exchanged."""
    first, swapped = ([pair[side] for pair in pairs] for side in (0, 1))
    expected = sum(one == other for one, other in pairs) / len(pairs)
    assert position_consistency(first, swapped, ci=None) == pytest.approx(expected)
    assert position_consistency(swapped, first, ci=None) == pytest.approx(expected)
