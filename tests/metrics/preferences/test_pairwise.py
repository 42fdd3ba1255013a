"""Pairwise accuracy: by hand, against loops over pairs, its laws, groups, intervals and edges."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import kendall_tau_b, pairwise_accuracy
from tests.metrics.asserting import brackets, number, width
from tests.metrics.preferences.naive import accuracy_of_pairs

# Four answers and six pairs. 12: tied by people, not by the judge. 13 and 14: in order on both sides.
# 23: tied by the judge alone. 24 and 34: in order for people, reversed by the judge.
GOLD, PRED = [1, 1, 2, 3], [0.1, 0.5, 0.5, 0.3]


def test_credited_and_skipped_ties_by_hand() -> None:
    """Right are 13 and 14: 2/6; without 12, which gold ties, 2/5."""
    assert pairwise_accuracy(GOLD, PRED, ci=None) == pytest.approx(2 / 6)
    assert pairwise_accuracy(GOLD, PRED, ties="skip", ci=None) == pytest.approx(2 / 5)


def test_a_threshold_by_hand() -> None:
    """At 0.25 the judge ties 14, 23, 24 and 34, and parts 12 and 13: only 13 is right; at 0.45 only 12 is.

    Differences: 12 0.4, 13 0.4, 14 0.2, 23 0, 24 0.2, 34 0.2.
    """
    assert pairwise_accuracy(GOLD, PRED, epsilon=0.25, ci=None) == pytest.approx(1 / 6)
    assert pairwise_accuracy(GOLD, PRED, epsilon=0.45, ci=None) == pytest.approx(1 / 6)
    assert pairwise_accuracy(GOLD, PRED, epsilon=0.45, ties="skip", ci=None) == 0.0


def test_groups_are_averaged_by_hand() -> None:
    """Three answers with 1 of 3 pairs right, and two in order: (1/3 + 1) / 2; pooled it would be 2/4.

    A prompt with one answer has no pair, and the method says that it is left out.
    """
    gold, pred, groups = [1, 2, 3, 1, 2, 9], [3, 2, 2.5, 0, 1, 9], ["p", "p", "p", "q", "q", "r"]
    found = pairwise_accuracy(gold, pred, groups=groups)
    assert found == pytest.approx((1 / 3 + 1) / 2)
    assert "mean of 2 groups, excluding 1 without pairs" in found.method
    assert found.n == 5


def test_the_method_says_what_became_of_ties() -> None:
    """Skipped ones are not credited ones, and a threshold is named."""
    assert "ties credited" in pairwise_accuracy(GOLD, PRED).method
    assert "pairs tied in gold skipped" in pairwise_accuracy(GOLD, PRED, ties="skip").method
    assert "epsilon 0.2" in pairwise_accuracy(GOLD, PRED, epsilon=0.2).method
    assert json.loads(json.dumps(pairwise_accuracy(GOLD, PRED).to_dict(), allow_nan=False))["n"] == 4


def test_a_difference_is_the_difference_of_floats() -> None:
    """0.8 - 0.7 is above 0.1 in floats and 0.3 - 0.1 below 0.2; no tolerance hides it."""
    assert pairwise_accuracy([1, 1], [0.8, 0.7], epsilon=0.1, ci=None) == float(0.8 - 0.7 <= 0.1) == 0.0
    assert pairwise_accuracy([1, 1], [0.3, 0.1], epsilon=0.2, ci=None) == float(0.3 - 0.1 <= 0.2) == 1.0
    assert pairwise_accuracy([1, 2], [-1e308, 1e308], epsilon=1.0, ci=None) == 1.0


scores = st.integers(0, 4).map(float) | st.floats(-3, 3)
items = st.lists(st.tuples(st.integers(0, 3), scores, st.sampled_from("pqr")), max_size=18)
thresholds = st.sampled_from([0.0, 0.3, 1.0, 2.5])
kinds = st.sampled_from(["credit", "skip"])


def columns(drawn: list[tuple[int, float, str]]) -> tuple[list[int], list[float], list[str]]:
    gold, pred, groups = ([one[place] for one in drawn] for place in range(3))
    return gold, pred, groups  # type: ignore[return-value]


@settings(deadline=None, max_examples=300)
@given(items, kinds, thresholds, st.booleans())
def test_it_is_what_a_loop_over_pairs_counts(drawn: Any, ties: Any, epsilon: float, grouped: bool) -> None:
    """Any scores, ties, thresholds and groups; undefined exactly where there is no pair."""
    gold, pred, groups = columns(drawn)
    options: dict[str, Any] = {"ties": ties, "epsilon": epsilon, "groups": groups if grouped else None}
    expected = accuracy_of_pairs(gold, pred, **options)
    found = pairwise_accuracy(gold, pred, **options)
    assert (found.value is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected, abs=1e-12)
        assert found.low is None or 0 <= found.low <= found.value <= number(found.high) <= 1  # type: ignore[operator]


@settings(deadline=None)
@given(items, kinds, thresholds, st.randoms(use_true_random=False))
def test_neither_order_nor_a_constant_nor_both_reversed_matter(
    drawn: Any, ties: Any, epsilon: float, random: Any
) -> None:
    """Items in any order, a whole number added to whole scores, and both sides upside down."""
    drawn = [(gold, round(pred), group) for gold, pred, group in drawn]
    gold, pred, groups = columns(drawn)

    def figure(gold: Any, pred: Any, groups: Any = groups) -> float | None:
        return pairwise_accuracy(gold, pred, ties=ties, epsilon=epsilon, groups=groups, ci=None).value

    expected = pytest.approx(figure(gold, pred))
    assert figure(gold, [one + 7 for one in pred]) == expected
    assert figure([-one for one in gold], [-one for one in pred]) == expected
    random.shuffle(drawn)
    assert figure(*columns(drawn)) == expected


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
        min_size=2,
        unique_by=(lambda p: p[0], lambda p: p[1]),
    )
)
def test_a_reversed_judge_has_what_is_left_and_tau_follows(drawn: list[tuple[int, int]]) -> None:
    """Without ties a judge and its negative share all pairs, and tau is twice the accuracy less one."""
    gold, pred = ([one[place] for one in drawn] for place in (0, 1))
    accuracy = float(pairwise_accuracy(gold, pred, ci=None))
    assert accuracy + float(pairwise_accuracy(gold, [-one for one in pred], ci=None)) == pytest.approx(1)
    assert 2 * accuracy - 1 == pytest.approx(float(kendall_tau_b(gold, pred, ci=None)))
    assert pairwise_accuracy(gold, pred, ties="skip", ci=None) == pytest.approx(accuracy)


@settings(deadline=None)
@given(items)
def test_a_threshold_below_every_difference_changes_nothing(drawn: Any) -> None:
    """Epsilon 0 is the plain figure, and so is half the least difference."""
    gold, pred, _ = columns(drawn)
    apart = [abs(one - other) for one in pred for other in pred if one != other]
    plain = pairwise_accuracy(gold, pred, ci=None).value
    assert pairwise_accuracy(gold, pred, epsilon=0.0, ci=None).value == plain
    assert pairwise_accuracy(gold, pred, epsilon=min(apart, default=1.0) / 2, ci=None).value == plain


@pytest.mark.parametrize(
    ("gold", "pred", "options", "reason"),
    [
        ([], [], {}, "no_pairs"),
        ([None], [1.0], {}, "no_pairs"),
        ([1.0], [1.0], {}, "too_few_units"),
        ([1.0, 2.0], [1.0, None], {}, "too_few_units"),
        ([1.0, 1.0], [1.0, 2.0], {"ties": "skip"}, "no_variance"),
        ([1.0, 2.0], [1.0, 2.0], {"groups": ["p", "q"]}, "no_pairs"),
        ([1.0, 1.0], [1.0, 2.0], {"groups": ["p", "p"], "ties": "skip"}, "no_pairs"),
    ],
)
def test_what_has_no_pair_is_undefined(gold: Any, pred: Any, options: dict[str, Any], reason: str) -> None:
    """None and a reason, with every way to make an interval."""
    for ci in ("auto", "percentile", None):
        found = pairwise_accuracy(gold, pred, **options, ci=ci)
        assert (found.value, found.reason) == (None, reason)


def test_everything_tied_on_both_sides_is_right() -> None:
    """1.0, with an interval that five items leave wide."""
    found = pairwise_accuracy([3] * 5, [0.2] * 5)
    assert (found.value, found.high) == (1.0, 1.0)
    assert number(found.low) < 0.6


def test_missing_scores_drop_the_item() -> None:
    """They are counted, and the figure is that of the others."""
    found = pairwise_accuracy([*GOLD, None, 5], [*PRED, 0.4, math.nan])
    assert found == pytest.approx(2 / 6)
    assert (found.n, found.n_missing) == (4, 2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ties": "drop"}, "ties must be one of"),
        ({"epsilon": -0.1}, "of at least 0"),
        ({"epsilon": math.nan}, "of at least 0"),
        ({"epsilon": math.inf}, "of at least 0"),
        ({"groups": ["p"]}, "groups has 1 ids for 4 units; pass one id per unit"),
        ({"groups": ["p", "p", None, "q"]}, "groups has no id at position 2"),
        ({"groups": ["p", "p", "q", "q"], "cluster": [0, 1, 1, 1]}, "cluster must not split a group"),
        ({"cluster": [0]}, "1 ids for 4 units"),
        ({"ci": "smoothed"}, "use ci='percentile'"),
    ],
)
def test_what_is_not_allowed_is_said(options: dict[str, Any], told: str) -> None:
    """Options out of range, and groups that clusters split."""
    with pytest.raises(ArgumentError, match=told):
        pairwise_accuracy(GOLD, PRED, **options)


def test_columns_that_do_not_fit_are_refused() -> None:
    """Lengths and words."""
    with pytest.raises(ArgumentError, match="gold has 2 scores but pred has 1"):
        pairwise_accuracy([1, 2], [1])
    with pytest.raises(ArgumentError, match=r"pred must contain numbers, .* got 'good'"):
        pairwise_accuracy([1, 2], [1, "good"])


def sample(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    quality = rng.normal(size=n)
    return np.round(quality + rng.normal(scale=0.5, size=n)), quality + rng.normal(scale=0.7, size=n)


def test_the_error_is_that_of_repeated_samples() -> None:
    """Over 300 samples of 80 the mean standard error is the spread of the figure, within a tenth."""
    rng = np.random.default_rng(4)
    found = [pairwise_accuracy(*sample(rng, 80), ties="skip") for _ in range(300)]
    spread = float(np.std([number(one.value) for one in found], ddof=1))
    assert float(np.mean([one.se for one in found])) == pytest.approx(spread, rel=0.1)
    centre = float(np.mean([one.value for one in found]))
    covered = np.mean([number(one.low) <= centre <= number(one.high) for one in found])
    assert covered > 0.92


def test_bootstrap_and_closed_form_agree() -> None:
    """On 200 items the ends lie close together; the seed decides the bootstrap."""
    gold, pred = sample(np.random.default_rng(1), 200)
    closed, drawn = pairwise_accuracy(gold, pred), pairwise_accuracy(gold, pred, ci="percentile", rng=3)
    assert brackets(closed) and brackets(drawn)
    assert [drawn.low, drawn.high] == pytest.approx([closed.low, closed.high], abs=0.01)
    assert pairwise_accuracy(gold, pred, ci="percentile", rng=3) == drawn
    assert pairwise_accuracy(gold, pred, ci="percentile", rng=3).low == drawn.low
    assert pairwise_accuracy(gold, pred, ci="percentile", rng=4).low != drawn.low
    assert brackets(pairwise_accuracy(gold, pred, ci="bca", n_resamples=200))


def test_a_resample_pairs_no_item_with_its_copy() -> None:
    """A copy of an item ties on both sides; were it paired, resamples of a judge that is never right were."""
    gold, pred = list(range(12)), list(range(12))[::-1]
    found = pairwise_accuracy(gold, pred, ci="percentile")
    # Every resample gives 0, which is no interval.
    assert (found.value, found.low, found.reason) == (0.0, None, "no_variance")


def test_clusters_of_alike_items_widen_the_interval() -> None:
    """Each item four times over is no more than once."""
    gold, pred = sample(np.random.default_rng(2), 50)
    four = [np.repeat(side, 4) for side in (gold, pred)]
    once = pairwise_accuracy(gold, pred, ties="skip")
    as_new = pairwise_accuracy(*four, ties="skip")
    clustered = pairwise_accuracy(*four, ties="skip", cluster=np.repeat(np.arange(50), 4))
    assert as_new.value == clustered.value
    assert width(as_new) < 0.6 * width(once)
    assert width(clustered) == pytest.approx(width(once), rel=0.05)


def test_groups_are_the_units_of_their_mean() -> None:
    """The error is that of a mean over groups; clusters of groups go together."""
    rng = np.random.default_rng(3)
    gold, pred = sample(rng, 120)
    groups = np.repeat(np.arange(30), 4)
    found = pairwise_accuracy(gold, pred, groups=groups)
    each = [accuracy_of_pairs(gold[groups == one], pred[groups == one]) for one in range(30)]
    assert found.se == pytest.approx(float(np.std(np.array(each, dtype=float), ddof=1)) / math.sqrt(30))
    assert "30 clusters" in found.method
    together = pairwise_accuracy(gold, pred, groups=groups, cluster=groups // 2)
    assert together == pytest.approx(float(found))
    pairs = np.array(each, dtype=float).reshape(15, 2).mean(1)
    assert together.se == pytest.approx(float(np.std(pairs, ddof=1)) / math.sqrt(15))
    assert brackets(pairwise_accuracy(gold, pred, groups=groups, ci="percentile"))


def test_twenty_thousand_items_take_no_matrix() -> None:
    """Peak memory stays far below the 400 MB that a byte a pair would take."""
    gold, pred = sample(np.random.default_rng(5), 20_000)
    tracemalloc.start()
    found = pairwise_accuracy(gold, pred, epsilon=0.1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert brackets(found)
    assert peak < 60e6
