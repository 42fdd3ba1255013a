"""`compare_run`: every two judges on the cells that both answered, and the panel with the best of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import Binary, Interval, adjust_pvalues, compare_judges, compare_run, judge_report
from tests.metrics.asserting import number
from tests.metrics.judge_report.tables import SCALES, drawn_table, labels


def test_each_pair_is_a_comparison_of_judges_over_items() -> None:
    """On one criterion it is what `compare_judges` says of the columns, items being clusters."""
    rows = [row for row in drawn_table(n_people=1) if row["criterion"] == "clear"]
    truth, a, b = ([row["label"] for row in rows if row["rater"] == who] for who in ("h0", "a", "b"))
    found = compare_run(rows, scales=Binary(), n_resamples=200)
    (pair,) = found.judges
    items = list(range(len(truth)))
    alone = compare_judges(
        truth, a, b, stat="accuracy", method="permutation", scale=Binary(), cluster=items, n_resamples=200
    )
    assert (pair.a, pair.b) == ("a", "b")
    assert number(pair.comparison.difference.value) == pytest.approx(number(alone.difference.value))
    ends = (pair.comparison.difference.low, pair.comparison.difference.high)
    assert ends == pytest.approx((alone.difference.low, alone.difference.high))
    assert pair.comparison.p_value == pytest.approx(alone.p_value)


def test_shares_of_right_answers_by_hand() -> None:
    """a is right on 4 of 6 common cells and b on 3: a gap of a sixth; a cell that b failed on is left out."""
    truth = ["MET"] * 4
    rows = labels("truth", "truth", "x", truth) + labels("truth", "truth", "y", truth[:3])
    rows += labels("judge", "a", "x", ["MET", "MET", "UNMET", "MET"])
    rows += labels("judge", "a", "y", ["MET", "UNMET", "MET"])
    rows += labels("judge", "b", "x", ["MET", "MET", "MET", "INVALID"])
    rows += labels("judge", "b", "y", ["UNMET", "UNMET", "UNMET"])
    (pair,) = compare_run(rows, scales=Binary(), n_resamples=50).judges
    assert pair.comparison.n == 6
    assert number(pair.comparison.a.value) == pytest.approx(4 / 6)
    assert number(pair.comparison.b.value) == pytest.approx(3 / 6)
    assert number(pair.comparison.difference.value) == pytest.approx(1 / 6)


def test_many_judges_can_be_told_apart() -> None:
    """97 % against 55 % right on 400 items is found among 29 tests, which 1,000 resamples never allow."""
    rng = np.random.default_rng(0)
    rows = labels("truth", "truth", "x", ["MET"] * 400)
    for at in range(8):
        right = rng.random(400) < (0.55 if at == 0 else 0.97)
        rows += labels("judge", f"j{at}", "x", ["MET" if one else "UNMET" for one in right])
    found = compare_run(rows, scales=Binary(), n_resamples=100)
    worst = [one.adjusted_p for one in found.judges if one.a == "j0"]
    assert len(found.judges) == 28 and all(number(p) < 1e-6 for p in worst)
    assert {one.comparison.test for one in found.judges} == {"permutation test, exact"}


def test_continuous_differences_get_as_many_swaps_as_the_adjustment_needs() -> None:
    """Errors without a common unit are swapped at random, 20 × tests / α times: the smallest p is α / 20."""
    rng = np.random.default_rng(0)
    truth = rng.random(60)
    rows = labels("truth", "truth", "len", truth.tolist())
    for at in range(8):
        noise = rng.normal(0, 0.3 if at == 0 else 0.02, 60)
        rows += labels("judge", f"j{at}", "len", np.clip(truth + noise, 0, 1).tolist())
    found = compare_run(rows, scales=Interval(0, 1), n_resamples=20)
    assert found.judges[0].comparison.test == "permutation test, 11600 random swaps"
    assert number(found.judges[0].adjusted_p) == pytest.approx(29 / 11601, rel=0.01)


def test_a_panel_that_equals_its_best_judge_is_not_tested() -> None:
    """Two judges differ only where they tie; without ties the panel's empty test would double the real p."""
    rng = np.random.default_rng(1)
    rows = labels("truth", "truth", "x", ["MET"] * 60)
    for name, share in (("a", 0.95), ("b", 0.7)):
        rows += labels("judge", name, "x", ["MET" if one else "UNMET" for one in rng.random(60) < share])
    found = compare_run(rows, scales=Binary(), n_resamples=50)
    assert (found.panel, found.panel_reason) == (None, "no_variance")
    assert found.judges[0].adjusted_p == found.judges[0].comparison.p_value
    assert "has the judges' own answer wherever they agree, so the panel and" in found.summary()
    report = judge_report(rows, scales=Binary(), n_resamples=50)
    assert "the panel has the answers of a, so they are not compared" in report.summary()
    beside = report.panel_and_best
    assert beside is not None
    assert (beside.difference.value, beside.difference.low, beside.difference.reason) == (
        0, None, "no_variance",
    )  # fmt: skip


@pytest.mark.parametrize("adjustment", ["holm", "bh"])
def test_p_values_are_adjusted_together(adjustment: Any) -> None:
    """All pairs and the panel's comparison are one family of tests."""
    rows = drawn_table(n_people=1)
    rows += [row | {"rater": "c"} for row in drawn_table(n_people=0, seed=9) if row["rater"] == "b"]
    found = compare_run(rows, scales=SCALES, n_resamples=100, adjustment=adjustment)
    assert [(one.a, one.b) for one in found.judges] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.panel is not None and (found.panel.a, found.panel.b) == ("panel", "a")
    every = [*found.judges, found.panel]
    wanted = adjust_pvalues([one.comparison.p_value for one in every], adjustment)
    assert [one.adjusted_p for one in every] == wanted


def test_numbers_are_compared_by_their_errors() -> None:
    """Without categories it is the mean absolute error of values, of which the best judge has least."""
    rows = labels("truth", "truth", "len", [2, 4, 6, 8]) + labels("judge", "near", "len", [2, 5, 6, 8])
    rows += labels("judge", "far", "len", [9, 9, 1, 1])
    found = compare_run(rows, scales=Interval(0, 10), n_resamples=50)
    assert found.stat == "mae"
    # Errors in [0, 1]: .1 of four against .7, .5, .5 and .7.
    assert number(found.judges[0].comparison.difference.value) == pytest.approx(0.025 - 0.6)
    assert found.panel is not None and found.panel.b == "near"
    assert "lower is better" in found.summary()


def test_one_judge_and_none() -> None:
    """One judge has nobody to be compared with; without labels nothing is defined."""
    rows = labels("judge", "a", "x", ["MET", "UNMET"])
    found = compare_run(rows + labels("truth", "truth", "x", ["MET", "MET"]), scales=Binary())
    assert (found.judges, found.panel, found.panel_reason) == ((), None, "one_judge")
    assert "fewer than two judges" in found.summary()
    unlabelled = compare_run(rows + labels("judge", "b", "x", ["MET", "MET"]), scales=Binary())
    assert unlabelled.n_items == 0 and (unlabelled.panel, unlabelled.panel_reason) == (None, "no_pairs")
    assert unlabelled.judges[0].comparison.difference.value is None
    json.dumps(unlabelled.to_dict(), allow_nan=False)


@pytest.mark.parametrize("arguments", [{"stat": "kappa"}, {"adjustment": "none"}, {"n_resamples": 0}])
def test_what_cannot_be_is_refused(arguments: dict[str, Any]) -> None:
    """Figures and adjustments that there are not are refused."""
    with pytest.raises(ArgumentError):
        compare_run(drawn_table(n_items=4), scales=SCALES, **arguments)
