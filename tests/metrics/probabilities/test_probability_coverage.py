"""Accuracy at coverage and the area under the risk-coverage curve."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import accuracy, accuracy_at_coverage, wilson
from tests.metrics.asserting import brackets, number

RNG = np.random.default_rng(14)
SURE = RNG.random(250)
TRUTH = RNG.integers(0, 3, 250)
PRED = np.where(RNG.random(250) < 0.3 + 0.6 * SURE, TRUTH, (TRUTH + 1) % 3)


def test_curve_by_hand():
    """Right, wrong, right, wrong by falling confidence: accuracies 1, 1/2, 2/3, 1/2.

    AURC is the mean risk: (0 + 1/2 + 1/3 + 1/2) / 4 = 1/3.
    """
    found = accuracy_at_coverage(list("aaaa"), list("abab"), [0.9, 0.8, 0.5, 0.1])
    assert [point.coverage for point in found.points] == [0.25, 0.5, 0.75, 1.0]
    assert [float(point.accuracy) for point in found.points] == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])
    assert [point.threshold for point in found.points] == [0.9, 0.8, 0.5, 0.1]
    assert found.aurc == pytest.approx(1 / 3)


def test_equal_confidences_are_one_step():
    """Two of equal confidence come together: risks 0 at 1/3 and 1/3 at 1, AURC 1/3 · 0 + 2/3 · 1/3."""
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        rows = np.array([["a", "a", "a"], ["a", "b", "a"]])[:, order]
        found = accuracy_at_coverage(rows[0].tolist(), rows[1].tolist(), np.array([0.9, 0.4, 0.4])[order])
        assert [(point.n, float(point.accuracy)) for point in found.points] == [(1, 1.0), (3, 2 / 3)]
        assert found.aurc == pytest.approx(2 / 9)


def test_points_at_asked_coverages():
    """A coverage inside a step is met by the whole step; all of the answers are the plain accuracy."""
    found = accuracy_at_coverage(TRUTH, PRED, SURE, labels=3, coverages=[0.1, 0.5, 1.0])
    assert [point.n for point in found.points] == [25, 125, 250]
    best = np.argsort(-SURE)[:25]
    hits = int((TRUTH == PRED)[best].sum())
    expected = wilson(hits, 25)
    first = found.points[0].accuracy
    assert (first.value, first.low, first.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert found.points[-1].accuracy == accuracy(TRUTH, PRED, labels=3)
    tied = accuracy_at_coverage([1, 1, 1], [1, 1, 1], [2, 1, 1], coverages=[0.5])
    assert tied.points[0].coverage == 1.0
    for wrong in (0.0, 1.1):
        with pytest.raises(ArgumentError, match="coverages"):
            accuracy_at_coverage([1], [1], [1], coverages=[wrong])


def test_many_steps_are_reported_by_the_hundredth():
    """With more than a hundred different confidences there is a point for each percent."""
    found = accuracy_at_coverage(TRUTH, PRED, SURE)
    assert len(found.points) == 100
    assert found.points[-1].coverage == 1.0


@pytest.mark.parametrize("decimals", [1, 8])
@pytest.mark.parametrize("cluster", [None, np.arange(250) // 2])
def test_error_of_the_area_is_that_of_the_bootstrap(decimals, cluster):
    """The delta method agrees with resampling, with and without ties and clusters."""
    sure = SURE.round(decimals)
    plain = accuracy_at_coverage(TRUTH, PRED, sure, cluster=cluster).aurc
    drawn = accuracy_at_coverage(TRUTH, PRED, sure, cluster=cluster, ci="percentile", coverages=[1.0]).aurc
    assert brackets(plain)
    assert number(plain.se) == pytest.approx(number(drawn.se), rel=0.12)


def test_without_confidence_there_is_no_curve():
    """No confidence, or none that is there, is a reason; so is no pair; both can be written."""
    for confidence in (None, [None, float("nan")]):
        found = accuracy_at_coverage([1, 0], [1, 1], confidence)
        assert (found.points, found.aurc.value, found.reason) == ((), None, "no_confidence")
        json.dumps(found.to_dict(), allow_nan=False)
    assert accuracy_at_coverage([], [], []).reason == "no_pairs"
    assert accuracy_at_coverage([None], [1], [0.5]).reason == "no_pairs"
    partly = accuracy_at_coverage([1, 0, 1], [1, 1, None], [0.3, None, 0.2])
    assert (partly.n, partly.n_missing) == (1, 2)
    json.dumps(partly.to_dict(), allow_nan=False)
    with pytest.raises(ArgumentError, match="lengths must match"):
        accuracy_at_coverage([1, 0], [1, 1], [0.2])


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(-3, 3)), min_size=1, max_size=40),
    st.randoms(),
)
def test_laws_of_coverage(rows, random):
    """AURC lies in [0, 1]; monotone maps of the confidence and the order of rows do not matter."""
    truth, pred, sure = zip(*rows, strict=True)
    found = accuracy_at_coverage(truth, pred, sure, labels=2, ci=None)
    assert 0.0 <= found.aurc <= 1.0
    assert [point.coverage for point in found.points] == sorted({point.coverage for point in found.points})
    moved = accuracy_at_coverage(truth, pred, [np.exp(one) for one in sure], labels=2, ci=None)
    assert moved.aurc == pytest.approx(float(found.aurc))
    random.shuffle(rows)
    truth, pred, sure = zip(*rows, strict=True)
    again = accuracy_at_coverage(truth, pred, sure, labels=2, ci=None)
    assert again.aurc == pytest.approx(float(found.aurc))
    assert [p.accuracy.value for p in again.points] == pytest.approx([p.accuracy.value for p in found.points])
