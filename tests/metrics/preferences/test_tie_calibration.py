"""Tie calibration: the best threshold against all of them, and what holding items out takes away."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import Estimate, pairwise_accuracy, tie_calibrated_pairwise_accuracy
from tests.metrics.asserting import brackets
from tests.metrics.preferences.naive import accuracy_of_pairs, best_threshold


def test_a_threshold_by_hand() -> None:
    """Three answers tied in gold at 0, 1/8, 1/4 and two at 5, 5 1/8: six pairs across are right at once.

    Of the four pairs that gold ties, those 1/8 apart come right at 1/8 (9 of 10), the one 1/4 apart at 1/4.
    """
    gold, pred = [1, 1, 1, 2, 2], [0.0, 0.125, 0.25, 5.0, 5.125]
    found = tie_calibrated_pairwise_accuracy(gold, pred)
    assert pairwise_accuracy(gold, pred, ci=None) == pytest.approx(6 / 10)
    assert pairwise_accuracy(gold, pred, epsilon=0.125, ci=None) == pytest.approx(9 / 10)
    assert (found.value, found.epsilon) == (1.0, 0.25)


def test_the_value_is_marked_as_flattering() -> None:
    """In sample, without an interval of its own, and pointing to the figure that was held out."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 4, 100)
    found = tie_calibrated_pairwise_accuracy(gold, gold + rng.normal(size=100))
    assert isinstance(found, Estimate)
    assert found.in_sample and (found.low, found.reason) == (None, "in_sample")
    assert "report cross_validated" in found.method
    assert brackets(found.cross_validated)
    assert "cross-validated, 5 folds" in found.cross_validated.method
    assert len(found.fold_epsilons) == 5
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["cross_validated"]["value"] == found.cross_validated.value
    assert (plain["epsilon"], plain["in_sample"]) == (found.epsilon, True)


def test_choosing_on_the_same_items_flatters() -> None:
    """For noise against five equally likely grades the optimum lies above the truth, the held-out one on it.

    People tie 1/5. At epsilon two standard normal scores are tied with probability t = erf(epsilon / 2), so
    that the accuracy is t / 5 + (1 - t) · 4/5 · 1/2 = 0.4 - 0.2 t.
    """
    rng = np.random.default_rng(7)
    flattery, error = [], []
    for seed in range(400):
        found = tie_calibrated_pairwise_accuracy(
            rng.integers(0, 5, 20), rng.normal(size=20), rng=seed, ci=None
        )
        assert found.epsilon is not None
        flattery.append(float(found) - (0.4 - 0.2 * math.erf(found.epsilon / 2)))
        expected = np.mean([0.4 - 0.2 * math.erf(one / 2) for one in found.fold_epsilons])
        error.append(float(found.cross_validated) - float(expected))
    chance = [3 * float(np.std(one)) / math.sqrt(len(one)) for one in (flattery, error)]
    assert float(np.mean(flattery)) > chance[0]
    assert abs(float(np.mean(error))) < chance[1]


items = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 12).map(lambda one: one / 4), st.sampled_from("pq")),
    min_size=2,
    max_size=12,
)


@settings(deadline=None, max_examples=150)
@given(items, st.booleans())
def test_no_threshold_is_better(drawn: Any, grouped: bool) -> None:
    """Each difference tried in turn: the same optimum, at the same smallest threshold."""
    gold, pred, groups = ([one[place] for one in drawn] for place in range(3))
    chosen = groups if grouped else None
    found = tie_calibrated_pairwise_accuracy(gold, pred, groups=chosen, ci=None)
    if accuracy_of_pairs(gold, pred, groups=chosen) is None:
        assert (found.value, found.epsilon, found.reason) == (None, None, "no_pairs")
        return
    epsilon, top = best_threshold(gold, pred, chosen)
    assert [found.epsilon, found.value] == pytest.approx([epsilon, top])
    assert found.reason is None
    moved = tie_calibrated_pairwise_accuracy(gold, [one + 8 for one in pred], groups=chosen, ci=None)
    assert (moved.value, moved.epsilon) == (found.value, found.epsilon)
    reverse = [side[::-1] for side in (gold, pred, groups)]
    turned = tie_calibrated_pairwise_accuracy(*reverse[:2], groups=reverse[2] if grouped else None)
    assert [turned.value, turned.epsilon] == pytest.approx([found.value, found.epsilon])


def test_folds_are_of_whole_groups_and_clusters() -> None:
    """Two prompts: each is judged at the threshold chosen on the other."""
    gold = [1, 1, 2, 1, 1, 2]
    pred = [0.0, 0.5, 9.0, 0.0, 2.0, 9.0]
    groups = ["p", "p", "p", "q", "q", "q"]
    found = tie_calibrated_pairwise_accuracy(gold, pred, groups=groups)
    # Chosen on q, 2.0 makes p right on all; chosen on p, 0.5 leaves the tie of q: (1 + 2/3) / 2.
    assert sorted(found.fold_epsilons) == [0.5, 2.0]
    assert found.cross_validated == pytest.approx((1 + 2 / 3) / 2)
    assert (found.value, found.epsilon) == (1.0, 2.0)
    clusters = tie_calibrated_pairwise_accuracy(
        gold * 2, pred * 2, cluster=[0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    )
    assert len(clusters.fold_epsilons) == 2


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_too_few_items_hold_none_out(n: int) -> None:
    """The optimum may stand where there is nothing to hold out."""
    found = tie_calibrated_pairwise_accuracy(list(range(n)), list(range(n)))
    assert found.cross_validated.reason == "too_few_units"
    assert (found.value, found.epsilon) == ((1.0, 0.0) if n > 1 else (None, None))
    assert found.fold_epsilons == ()
    one_group = tie_calibrated_pairwise_accuracy([1, 2, 3, 4], [1, 2, 3, 4], groups=["p"] * 4)
    assert one_group.cross_validated.value is None


@pytest.mark.slow
def test_many_items_choose_on_drawn_pairs_and_count_all() -> None:
    """3000 items have more pairs than are tried; the accuracy is exact, and the seed decides."""
    rng = np.random.default_rng(8)
    gold = rng.integers(0, 5, 3000)
    pred = gold + rng.normal(scale=0.6, size=3000)
    found = tie_calibrated_pairwise_accuracy(gold, pred, folds=2, ci=None)
    again = tie_calibrated_pairwise_accuracy(gold, pred, folds=2, ci=None)
    assert found.to_dict() == again.to_dict()
    assert found == pytest.approx(float(pairwise_accuracy(gold, pred, epsilon=found.epsilon or 0.0, ci=None)))
    for nearby in (0.9, 1.1):
        other = pairwise_accuracy(gold, pred, epsilon=nearby * (found.epsilon or 0.0), ci=None)
        assert other < float(found) + 1e-3
    assert found > pairwise_accuracy(gold, pred, ci=None)


def test_a_fold_is_not_enough() -> None:
    """Errors say what is allowed."""
    with pytest.raises(ArgumentError, match="at least 2"):
        tie_calibrated_pairwise_accuracy([1, 2], [1, 2], folds=1)


def test_it_can_be_called_as_pairwise_accuracy_is() -> None:
    """`ties` may be said; what tie calibration chooses itself is refused with what to call instead."""
    gold, pred = [1, 1, 2, 3], [0.1, 0.2, 0.9, 0.4]
    said = tie_calibrated_pairwise_accuracy(gold, pred, ties="credit")
    assert said.to_dict() == tie_calibrated_pairwise_accuracy(gold, pred).to_dict()
    with pytest.raises(ArgumentError, match=r"pairwise_accuracy\(ties='skip'\)"):
        tie_calibrated_pairwise_accuracy(gold, pred, ties="skip")
    with pytest.raises(ArgumentError, match="calibration chooses the threshold"):
        tie_calibrated_pairwise_accuracy(gold, pred, epsilon=0.0)
