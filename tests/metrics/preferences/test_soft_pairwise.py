"""Soft pairwise accuracy: by hand, against loops over all exchanges, its laws and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import permutation_test

from autorubric.errors import ArgumentError
from autorubric.metrics import soft_pairwise_accuracy
from tests.metrics.preferences.naive import soft_accuracy


def test_two_systems_on_three_segments_by_hand() -> None:
    """People: differences 1, 1, 1, whose sum 3 no exchange but none reaches: p = 1/8.

    Judge: 2, 1, -1, sum 2, which keeping all, exchanging the third (4) and exchanging the last two (2) reach:
    p = 3/8. So 1 - |1/8 - 3/8| = 0.75.
    """
    found = soft_pairwise_accuracy([[1, 1, 1], [0, 0, 0]], [[2, 1, 1], [0, 0, 2]])
    assert (found.value, found.n) == (0.75, 2)
    assert "3 segments, all 8 permutations" in found.method


tables = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.tuples(*[st.lists(st.integers(-3, 3), min_size=n, max_size=n)] * 2), min_size=2, max_size=4
    )
)


@settings(deadline=None, max_examples=80)
@given(tables)
def test_it_is_what_a_loop_over_all_exchanges_finds(drawn: Any) -> None:
    """Whole scores with many ties; adding a number to all scores of a segment changes nothing."""
    gold, pred = ([row[side] for row in drawn] for side in (0, 1))
    found = soft_pairwise_accuracy(gold, pred)
    assert found == pytest.approx(soft_accuracy(gold, pred))
    assert soft_pairwise_accuracy(pred, gold) == pytest.approx(float(found))
    assert soft_pairwise_accuracy(gold, gold) == 1.0
    moved = np.asarray(pred) + 0.1 * np.arange(len(pred[0]))
    assert soft_pairwise_accuracy(gold, moved) == pytest.approx(float(found))


def test_p_values_are_scipys() -> None:
    """Two systems on eight segments: the exact paired permutation test of scipy on either side."""
    rng = np.random.default_rng(6)
    gold, pred = rng.normal(size=(2, 2, 8))

    def p(table: Any) -> float:
        tested = permutation_test(
            (table[0], table[1]), lambda x, y: np.mean(x - y), permutation_type="samples",
            alternative="greater", n_resamples=10_000, vectorized=False,
        )  # fmt: skip
        return float(tested.pvalue)

    assert soft_pairwise_accuracy(gold, pred) == pytest.approx(1 - abs(p(gold) - p(pred)))


def test_drawn_exchanges_come_close_to_all_of_them() -> None:
    """On 14 segments 10,000 drawn ones stand for 16,384; the seed decides, and both sides share them."""
    rng = np.random.default_rng(9)
    gold = rng.normal(size=(3, 14)) + np.array([[0.0], [0.3], [0.5]])
    pred = gold + rng.normal(size=(3, 14))
    found = soft_pairwise_accuracy(gold, pred)
    assert "14 segments, 10000 random permutations" in found.method
    assert found == pytest.approx(soft_accuracy(gold, pred), abs=0.01)
    assert soft_pairwise_accuracy(gold, pred) == found
    assert soft_pairwise_accuracy(gold, pred, rng=1) != found
    assert soft_pairwise_accuracy(gold, gold * 2 + 1) == 1.0
    more = soft_pairwise_accuracy(gold, pred, n_permutations=40_000)
    assert more == pytest.approx(soft_accuracy(gold, pred), abs=0.005)


def test_neither_order_of_segments_nor_of_systems_matters() -> None:
    """Systems in any order where no two exchanges give the same sum; segments always."""
    rng = np.random.default_rng(10)
    gold, pred = rng.normal(size=(2, 5, 9))
    found = float(soft_pairwise_accuracy(gold, pred))
    assert soft_pairwise_accuracy(gold[:, ::-1], pred[:, ::-1]) == pytest.approx(found)
    order = rng.permutation(5)
    assert soft_pairwise_accuracy(gold[order], pred[order]) == pytest.approx(found)


def test_being_unsure_of_the_same_pair_is_rewarded() -> None:
    """Two systems that people cannot tell apart: an undecided judge beats one that is sure."""
    rng = np.random.default_rng(11)
    noise = rng.normal(size=(2, 10))
    gold = noise - noise.mean(axis=1, keepdims=True)
    sure = np.array([np.ones(10), np.zeros(10)]) + 0.01 * noise
    undecided = rng.permuted(gold, axis=1)
    assert soft_pairwise_accuracy(gold, undecided) > soft_pairwise_accuracy(gold, sure)
    assert soft_pairwise_accuracy(gold, sure) < 0.6


def test_a_reversed_judge_that_is_sure_has_next_to_nothing() -> None:
    """p is 1/2^10 on one side and 1 on the other."""
    gold = [[2.0] * 10, [1.0] * 10]
    assert soft_pairwise_accuracy(gold, gold[::-1]) == pytest.approx(2**-10)


def test_segments_without_a_score_are_left_out() -> None:
    """On either side, and counted."""
    found = soft_pairwise_accuracy(
        [[1, 1, 1, None, 4], [0, 0, 0, 1, 4]], [[2, 1, 1, 4, 5], [0, 0, 2, 4, None]]
    )
    assert (found.value, found.n_missing) == (0.75, 2)


@pytest.mark.parametrize(
    ("table", "reason"),
    [([], "no_pairs"), ([[1, 2, 3]], "too_few_units"), ([[], []], "no_pairs"), ([[None], [1]], "no_pairs")],
)
def test_what_has_no_pair_is_undefined(table: Any, reason: str) -> None:
    """One system, or no segment."""
    found = soft_pairwise_accuracy(table, table)
    assert (found.value, found.reason) == (None, reason)


def test_equal_systems_are_equal_to_both() -> None:
    """All scores the same: p is 1 on both sides, without a warning."""
    assert soft_pairwise_accuracy([[1, 1], [1, 1]], [[0, 0], [0, 0]]) == 1.0


@pytest.mark.parametrize(
    ("gold", "pred", "options", "told"),
    [
        ([[1, 2], [3]], [[1, 2], [3]], {}, r"must have the same length.*\[1, 2\]"),
        ([[1, 2]], [[1, 2], [3, 4]], {}, r"shape \(1, 2\) but pred has \(2, 2\)"),
        ([1, 2], [1, 2], {}, "must be a table"),
        ([["a"]], [["a"]], {}, "must contain numbers.*got 'a'"),
        ([[1], [2]], [[1], [2]], {"n_permutations": 999}, "at least 10000"),
    ],
)
def test_what_is_no_table_is_refused(gold: Any, pred: Any, options: dict[str, Any], told: str) -> None:
    """Errors say what was given and what is allowed."""
    with pytest.raises(ArgumentError, match=told):
        soft_pairwise_accuracy(gold, pred, **options)


def test_a_cluster_of_segments_is_exchanged_as_a_whole() -> None:
    """Three clusters are three segments of their sums: the table by hand above, each segment cut in two."""
    gold = [[0.5, 0.5, 2, -1, 0.25, 0.75], [0] * 6]
    pred = [[1, 1, 0, 1, 3, -2], [0, 0, -1, 1, 1, 1]]
    found = soft_pairwise_accuracy(gold, pred, cluster=["a", "a", "b", "b", "c", "c"])
    assert (found.value, found.n) == (0.75, 2)
    assert "3 clusters of segments, all 8 permutations" in found.method
    with pytest.raises(ArgumentError, match="2 ids for 6 units"):
        soft_pairwise_accuracy(gold, pred, cluster=["a", "b"])


def test_it_takes_the_interval_arguments_and_says_that_there_is_no_interval() -> None:
    """The value stands with the reason; asked for none there is no reason, asked by name it is refused."""
    gold, pred = [[1, 2, 3], [3, 2, 2]], [[1, 2, 2], [3, 1, 1]]
    found = soft_pairwise_accuracy(gold, pred, confidence_level=0.9, n_resamples=5, rng=1)
    assert found.value is not None
    assert (found.low, found.se, found.reason) == (None, None, "no_interval")
    assert soft_pairwise_accuracy(gold, pred, ci=None).reason is None
    with pytest.raises(ArgumentError, match="no interval; pass ci=None"):
        soft_pairwise_accuracy(gold, pred, ci="percentile")
