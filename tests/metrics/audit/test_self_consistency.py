"""Whether a judge agrees with itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from autorubric import ComparativeCriterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import Interval, Nominal, Ordinal, krippendorff_alpha, panel_audit, self_consistency
from autorubric.metrics.core.scales import Scale
from tests.metrics.asserting import brackets, number
from tests.metrics.audit.tables import binary_rows, value_rows


def test_figures_by_hand() -> None:
    """Four units asked twice, one of which flips: 3 a, 5 b, so that alpha is 1 - 7·2 / (2·3·5)."""
    found = self_consistency([["a", "a"], ["a", "b"], ["b", "b"], ["b", "b"]])
    assert found.flip_rate == pytest.approx(1 / 4)
    assert found.pairwise_agreement == pytest.approx(3 / 4)
    assert found.alpha == pytest.approx(1 - 14 / 30)
    assert found.majority_share == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert found.majority_shares == ((0.5, 1), (1.0, 3))
    assert (found.n_units, found.n_repeats) == (4, 2)


def test_numbers_spread_within_units() -> None:
    """The SD within units is the root of their mean variance: here of 0, 2 and 1/3, over n - 1."""
    found = self_consistency([[3, 3, None], [1, 3, None], [2, 2, 3]])
    assert found.within_sd == pytest.approx(((0 + 2 + 1 / 3) / 3) ** 0.5)
    assert found.flip_rate == pytest.approx(2 / 3)
    # Of the last unit's three pairs one agrees.
    assert found.pairwise_agreement == pytest.approx((1 + 0 + 1 / 3) / 3)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_is_krippendorffs(seed: int, level: str) -> None:
    """Alpha over repeats is the public one, on each level and with repeats missing."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 4, (12, 1))
    ratings = np.where(rng.random((12, 4)) < 0.6, base, rng.integers(0, 4, (12, 4))).astype(object)
    ratings[rng.random((12, 4)) < 0.2] = None
    labels = [0, 1, 2, 3]
    scales: dict[str, Scale] = {
        "nominal": Nominal(labels),
        "ordinal": Ordinal(labels),
        "interval": Interval(0, 3),
    }
    scale = scales[level]
    found = self_consistency(ratings.tolist(), scale=scale, n_resamples=10)
    expected = krippendorff_alpha(ratings.tolist(), scale=scale, level=level, ci=None)  # type: ignore[arg-type]
    assert found.alpha.value == pytest.approx(expected.value)


def test_repeats_may_come_in_any_order() -> None:
    """Permuting units and repeats changes nothing."""
    rng = np.random.default_rng(1)
    ratings = rng.integers(0, 3, (20, 3))
    moved = rng.permutation(ratings)[:, [2, 0, 1]]
    first, second = (
        self_consistency(one, scale=Nominal([0, 1, 2]), n_resamples=10) for one in (ratings, moved)
    )
    for name in ("flip_rate", "pairwise_agreement", "alpha", "majority_share"):
        assert getattr(first, name).value == pytest.approx(getattr(second, name).value)
    assert first.majority_shares == second.majority_shares


def test_order_alone_may_decide() -> None:
    """A judge that follows the order agrees in one order always and across orders never."""
    found = self_consistency([list("aabb")] * 5, order=[[1, 1, 2, 2]] * 5)
    assert found.position_consistency == 0.0
    assert found.order_effect == pytest.approx(1.0)
    # At the edge the interval has a width.
    assert number(found.position_consistency.high) > 0.3
    blind = self_consistency([list("aaaa"), list("bbbb")] * 4, order=[[1, 1, 2, 2]] * 8)
    assert blind.position_consistency == 1.0
    assert blind.order_effect == pytest.approx(0.0)


def test_noise_is_no_effect_of_order() -> None:
    """Answers that change at random, whatever the order, leave an order effect of about 0."""
    rng = np.random.default_rng(6)
    found = self_consistency(rng.integers(0, 2, (600, 4)), order=[[0, 0, 1, 1]] * 600)
    assert abs(float(found.order_effect)) < 0.07
    assert number(found.order_effect.low) < 0 < number(found.order_effect.high)


def test_single_votes_of_a_table_are_repeats() -> None:
    """Samples of judges are read by judge and criterion; the figures above are means over them."""
    rng = np.random.default_rng(2)
    steady = np.repeat(rng.integers(1, 6, (30, 1, 1)), 3, axis=2)
    shaky = np.clip(steady + rng.integers(-1, 2, (30, 1, 3)), 1, 5)
    rows = value_rows(np.concatenate([steady, shaky], axis=1), judges=["steady", "shaky"])
    found = self_consistency(rows, n_resamples=100)
    assert found.per_judge["steady"].flip_rate == 0.0
    assert found.per_judge["shaky"].flip_rate > 0.5
    assert found.flip_rate == pytest.approx(float(found.per_judge["shaky"].flip_rate) / 2)
    assert brackets(found.alpha)
    assert found.per_judge["shaky"].per_criterion["c"].n_units == 30
    expected = krippendorff_alpha(
        shaky[:, 0, :].tolist(), level="ordinal", ci=None, scale=Ordinal([1, 2, 3, 4, 5])
    )
    assert found.per_judge["shaky"].alpha == pytest.approx(float(expected))


def test_reliability_is_not_validity() -> None:
    """A judge that is always wrong in the same way is perfectly consistent, and the summary warns."""
    truth = [0, 1] * 10
    wrong = binary_rows(truth, {"j": [1 - label for label in truth]})
    rows = [{**row, "sample": s} if row["rater"] == "j" else row for row in wrong for s in (0, 1)]
    rows = [row for at, row in enumerate(rows) if row["rater"] == "j" or at % 2 == 0]
    found = self_consistency(rows)
    assert found.alpha == 1.0
    assert found.flip_rate == 0.0
    assert number(found.flip_rate.high) > 0.05
    assert panel_audit(rows, n_resamples=10).panel == 0.0
    assert "reliability is not validity" in found.summary()


def test_comparisons_asked_in_both_orders(tmp_path: Path) -> None:
    """A judge that always takes what stands first is never consistent across orders."""

    def first(request: JudgeRequest) -> str:
        return request.order[0]

    def longer(request: JudgeRequest) -> str:
        return max(request.submission.candidates, key=lambda name: len(request.submission.candidates[name]))

    rubric = Rubric([ComparativeCriterion(name="better", requirement="Which?")])
    items = [DataItem(id=str(at), submission={"x": "a" * at, "y": "b" * (9 - at)}) for at in range(8)]
    judges = [
        FunctionJudge(function=first, judge_id="first"),
        FunctionJudge(function=longer, judge_id="longer"),
    ]
    result = evaluate_sync(
        RubricDataset(rubric=rubric, items=items),
        CriterionGrader(judges=judges),
        experiments_dir=tmp_path,
        show_progress=False,
    )
    found = self_consistency(result)
    assert found.per_judge["first"].position_consistency == 0.0
    assert found.per_judge["longer"].position_consistency == 1.0
    assert found.position_consistency == pytest.approx(0.5)
    assert found.per_judge["first"].order_effect.reason == "no_order"


def test_nothing_repeated_is_undefined_with_a_reason() -> None:
    """One answer a unit, or none, leaves every figure None, without a warning."""
    for given_ in ([], [["a"], ["b"]], [[None, None]], [["a", None], [None, "b"]]):
        found = self_consistency(given_)
        assert found.flip_rate.value is None
        assert found.flip_rate.reason == found.alpha.reason == "no_repeats"
        json.dumps(found.to_dict(), allow_nan=False)
    same = self_consistency([["a", "a"], ["a", "a"]])
    assert same.alpha.reason == "single_class"
    assert same.within_sd.reason == "not_comparable"
    assert same.position_consistency.reason == "no_order"


def test_clusters_are_resampled_together() -> None:
    """Copies of units in one cluster do not narrow the interval."""
    rng = np.random.default_rng(0)
    ratings = rng.integers(0, 2, (30, 2))
    copied = np.concatenate([ratings] * 4)
    plain = self_consistency(ratings, scale=Nominal([0, 1]))
    clustered = self_consistency(copied, scale=Nominal([0, 1]), cluster=list(range(30)) * 4)
    assert clustered.flip_rate == pytest.approx(float(plain.flip_rate))
    assert clustered.flip_rate.low == pytest.approx(number(plain.flip_rate.low))
    assert clustered.flip_rate.high == pytest.approx(number(plain.flip_rate.high))


def test_options_that_do_not_belong_are_refused() -> None:
    """A dataset for a table of ratings, and a scale for a result, say where they belong."""
    with pytest.raises(ArgumentError, match="dataset can only be passed with a run"):
        self_consistency([["a", "a"]], object())
    with pytest.raises(ArgumentError, match="can only be passed with a table of ratings"):
        self_consistency(value_rows([[1, 2]]), scale=Nominal("ab"))
    with pytest.raises(ArgumentError, match="order must have the same shape as ratings"):
        self_consistency([["a", "a"]], order=[[1]])


def test_rows_may_come_from_a_generator_or_a_frame() -> None:
    """A long table is told from ratings by its first row or its columns, however it is handed over."""
    rows = [
        {
            "item_id": f"i{at}",
            "criterion": "c",
            "rater": "a",
            "rater_type": "llm",
            "label": label,
            "sample": s,
        }
        for at, labels in enumerate([("MET", "MET"), ("UNMET", "MET"), ("UNMET", "UNMET")])
        for s, label in enumerate(labels)
    ]
    for long in (rows, (row for row in rows), iter(rows), pd.DataFrame(rows)):
        assert self_consistency(long).flip_rate == pytest.approx(1 / 3)
    table = [["MET", "MET"], ["UNMET", "MET"], ["UNMET", "UNMET"]]
    for ratings in (table, (row for row in table), pd.DataFrame(table, columns=["r1", "r2"])):
        assert self_consistency(ratings).flip_rate == pytest.approx(1 / 3)


@pytest.mark.parametrize("given_", [None, [1, 2, 3], "abc", {"a": [1, 2]}])
def test_what_is_no_table_is_refused(given_: Any) -> None:
    """A list of numbers has no repeats; None and names are no table."""
    with pytest.raises(ArgumentError, match="ratings"):
        self_consistency(given_)


def test_an_effect_that_no_resample_moves_has_no_interval() -> None:
    """A judge that never changes its answer shows an order effect of 0, without ends."""
    same = self_consistency([["a", "a", "a"], ["b", "b", "b"]] * 5, order=[["x", "x", "y"]] * 10)
    assert (same.order_effect.value, same.order_effect.low) == (0.0, None)
    assert same.order_effect.reason == "no_variance"
    assert number(same.flip_rate.high) > 0.0
