"""Whether the judges of a panel are worth their number."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t

from autorubric.errors import ArgumentError
from autorubric.metrics import panel_audit
from autorubric.metrics.audit.panel_estimates import error_correlations, read_labelled_votes
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling
from tests.metrics.asserting import number
from tests.metrics.audit.tables import Rows, binary_rows, noisy

# Errors: a 0001, b 0110, c 1100.
HAND = binary_rows([1, 1, 0, 0], {"a": [1, 1, 0, 1], "b": [1, 0, 1, 0], "c": [0, 0, 0, 0]})


def test_error_correlations_by_hand() -> None:
    """Phi of the errors: S_ab = Σab - ΣaΣb/n over √(S_aa S_bb), with n = 4."""
    found = panel_audit(HAND, n_resamples=20)
    pooled = {(one.first, one.second): one.pooled.value for one in found.correlations}
    # a and b: 0 - 1·2/4 = -1/2; S_aa = 1 - 1/4, S_bb = 2 - 4/4.
    assert pooled["a", "b"] == pytest.approx(-0.5 / 0.75**0.5)
    assert pooled["a", "c"] == pytest.approx(-0.5 / 0.75**0.5)
    # b and c: 1 - 2·2/4 = 0.
    assert pooled["b", "c"] == pytest.approx(0.0)
    mean = 2 * (-0.5 / 0.75**0.5) / 3
    assert found.mean_correlation == pytest.approx(mean)
    assert found.effective_judges == pytest.approx(3 / (1 + 2 * mean))
    assert "that the judges' errors are negatively correlated is not shown" in found.summary()
    assert [one.per_criterion["c"].value for one in found.correlations] == list(pooled.values())


def test_what_the_audit_says_comes_from_intervals() -> None:
    """Rare errors that never coincide show no negative correlation; errors that exclude each other do."""
    rng = np.random.default_rng(0)
    truth = [1] * 60
    rare = {name: [int(at not in (place, place + 1, place + 2)) for at in range(60)] for name, place in
            (("a", 0), ("b", 10))}  # fmt: skip
    found = panel_audit(binary_rows(truth, rare), n_resamples=200)
    assert number(found.mean_correlation.value) < 0 < number(found.mean_correlation.high)
    assert "negatively correlated is not shown" in found.summary()
    first = rng.integers(0, 2, 60)
    second = np.where(rng.random(60) < 0.1, first, 1 - first)
    exclusive = binary_rows(truth, {"a": first.tolist(), "b": second.tolist()})
    found = panel_audit(exclusive, n_resamples=200)
    assert "it is above 2 because the judges' errors are negatively correlated (mean error" in found.summary()
    # Two judges of equal quality: a point estimate would always call the panel better or worse.
    same = {name: noisy(truth, 0.2, rng) for name in "ab"}
    found = panel_audit(binary_rows(truth, same))
    best = f"{found.best_single.judges[0]}, the best on the other half of the items"
    assert f"is better or worse than {best}, is not shown" in found.summary()
    better = {name: noisy(truth * 5, 0.3, rng) for name in "abcde"}
    assert "The panel is better than " in (
        panel_audit(binary_rows(truth * 5, better), n_resamples=200).summary()
    )


def test_leaving_judges_out_by_hand() -> None:
    """The majority is right on 3 of 4; without a, b and c tie twice, which counts one half each."""
    found = panel_audit(HAND, n_resamples=20)
    assert found.panel == pytest.approx(0.75)
    assert [one.alone.value for one in found.per_judge.values()] == pytest.approx([0.75, 0.5, 0.5])
    # Without a: ½ + 0 + ½ + 1; without b: ½ + ½ + 1 + ½; without c: 1 + ½ + ½ + ½.
    assert [one.without.value for one in found.per_judge.values()] == pytest.approx([0.5, 0.625, 0.625])
    assert [one.gain.value for one in found.per_judge.values()] == pytest.approx([0.25, 0.125, 0.125])


def test_criteria_of_different_difficulty_do_not_look_like_common_errors() -> None:
    """Errors independent within each of two criteria correlate by 0, though naive pooling gives 1/9."""
    hard = {"a": [1] * 6 + [0] * 3, "b": [1, 1, 1, 1, 0, 0, 1, 1, 0]}
    easy = {"a": [1] * 3 + [0] * 6, "b": [1, 0, 0, 1, 1, 0, 0, 0, 0]}
    rows = binary_rows([0] * 9, hard, criterion="hard") + binary_rows([0] * 9, easy, criterion="easy")
    naive = np.corrcoef([hard["a"] + easy["a"], hard["b"] + easy["b"]])[0, 1]
    assert naive == pytest.approx(1 / 9)
    assert panel_audit(rows, n_resamples=20).correlations[0].pooled == pytest.approx(0.0, abs=1e-12)


def _simulated(seed: int, common: float, errors: list[float], n: int = 150) -> Rows:
    """Two criteria and judges that err alone at some rates, and all at once at a common one."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for name, share in (("x", 0.5), ("y", 0.8)):
        truth = (rng.random(n) < share).astype(int)
        together = rng.random(n) < common
        judges = {
            f"j{at}": [
                int(label) ^ int(c) if c else v for label, c, v in zip(truth, together, vs, strict=True)
            ]
            for at, vs in enumerate(noisy(truth, error, rng) for error in errors)
        }
        rows += binary_rows(truth.tolist(), judges, criterion=name)
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_pooled_correlation_is_that_of_residuals(seed: int) -> None:
    """Taking each criterion's mean error away first and correlating what is left gives the pooled figure."""
    rows = _simulated(seed, 0.1, [0.2, 0.3], n=60)
    labels = {(r["criterion"], r["item_id"]): r["label"] for r in rows if r["rater"] == "truth"}
    residuals = []
    for judge in ("j0", "j1"):
        parts = []
        for name in ("x", "y"):
            mine = [r for r in rows if r["rater"] == judge and r["criterion"] == name]
            wrong = np.array([r["label"] != labels[name, r["item_id"]] for r in mine], dtype=float)
            parts.append(wrong - wrong.mean())
        residuals.append(np.concatenate(parts))
    expected = residuals[0] @ residuals[1] / np.sqrt((residuals[0] ** 2).sum() * (residuals[1] ** 2).sum())
    found = panel_audit(rows, n_resamples=50).correlations[0].pooled
    assert found == pytest.approx(expected)
    assert number(found.low) < expected < number(found.high)


def test_judges_that_err_alone_count_in_full_and_copies_count_once() -> None:
    """Independent errors leave k judges, identical ones a single judge, with correlation 1."""
    alone = panel_audit(_simulated(5, 0.0, [0.25] * 4, n=800), n_resamples=100)
    assert number(alone.effective_judges.low) < 4 < number(alone.effective_judges.high)
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 60).tolist()
    answers = noisy(truth, 0.3, rng)
    copies = panel_audit(binary_rows(truth, dict.fromkeys("abc", answers)), n_resamples=50)
    assert copies.mean_correlation == pytest.approx(1.0)
    assert copies.effective_judges == pytest.approx(1.0)
    assert all(one.gain == 0.0 for one in copies.per_judge.values())


def test_a_copy_of_a_judge_adds_less_than_another_judge() -> None:
    """A copied judge lifts the effective number by less than half, an independent one by nearly 1."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 2, 600).tolist()
    a, b, c = (noisy(truth, 0.25, rng) for _ in range(3))
    two = float(panel_audit(binary_rows(truth, {"a": a, "b": b}), n_resamples=20).effective_judges)
    copied = float(
        panel_audit(binary_rows(truth, {"a": a, "b": b, "a2": a}), n_resamples=20).effective_judges
    )
    three = float(panel_audit(binary_rows(truth, {"a": a, "b": b, "c": c}), n_resamples=20).effective_judges)
    assert copied < two + 0.5 < three


def test_common_errors_reduce_the_panel() -> None:
    """Judges that share 15 % of their errors are far fewer than they are many."""
    found = panel_audit(_simulated(2, 0.15, [0.05] * 5), n_resamples=100)
    assert found.effective_judges < 2.0
    assert found.mean_correlation > 0.4


def test_the_choice_does_not_flatter() -> None:
    """The best of nine judges that toss coins is right half of the time where it was not chosen."""
    reported, smallest, chosen_on = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 60).tolist()
        judges = {f"j{at}": noisy(truth, 0.5, rng) for at in range(9)}
        found = panel_audit(binary_rows(truth, judges), epsilon=0.0, n_resamples=1, rng=seed)
        assert found.best_single.n_items_chosen_on + found.best_single.n_items_reported == 60
        reported.append(float(found.best_single.chosen))
        smallest.append(float(found.smallest_panel.chosen))
        chosen_on.append(max(float(one.alone) for one in found.per_judge.values()))
    # The mean of 20 shares of 30 coins has a standard error of .02.
    assert abs(np.mean(reported) - 0.5) < 0.06
    assert abs(np.mean(smallest) - 0.5) < 0.06
    assert np.mean(chosen_on) > 0.56


def test_a_judge_that_knows_is_panel_enough() -> None:
    """Beside guessing judges the knowing one is the smallest panel, and beats them all on the other items."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 120).tolist()
    judges = {"knows": noisy(truth, 0.02, rng), **{f"g{at}": noisy(truth, 0.5, rng) for at in range(4)}}
    found = panel_audit(binary_rows(truth, judges), n_resamples=200)
    assert found.smallest_panel.judges == found.best_single.judges == ("knows",)
    assert number(found.best_single.difference.high) < 0
    assert found.smallest_panel.search == "exhaustive"


def test_a_strict_epsilon_keeps_more_judges() -> None:
    """Equally good judges that err alone are all needed for the full figure, and few for one near it."""
    rows = _simulated(11, 0.0, [0.25] * 5, n=500)
    few = panel_audit(rows, epsilon=0.2, n_resamples=10).smallest_panel
    many = panel_audit(rows, epsilon=0.0, n_resamples=10).smallest_panel
    assert len(few.judges) < len(many.judges)


def test_many_judges_are_searched_greedily() -> None:
    """With more than ten judges they are added one at a time, and the result says so."""
    found = panel_audit(_simulated(1, 0.0, [0.05, *[0.4] * 10], n=60), n_resamples=10)
    assert found.smallest_panel.search == "greedy"
    assert "j0" in found.smallest_panel.judges
    assert "greedy search" in found.summary()


def test_dawid_skene_learns_whom_to_believe() -> None:
    """Two good judges among three weak ones: error rates inferred without the truth beat counting votes."""
    rows = _simulated(7, 0.0, [0.05, 0.05, 0.42, 0.42, 0.42], n=400)
    found = panel_audit(rows, n_resamples=200).aggregators
    assert number(found.difference.low) > 0
    assert found.difference == pytest.approx(float(found.dawid_skene) - float(found.majority))


def test_values_are_averaged() -> None:
    """On an ordinal scale a panel of a low and a high answer is right on the middle, each alone by half."""
    said = {"truth": [5, 1, 3], "low": [1, 1, 1], "high": [5, 5, 5]}
    rows = [
        {"item_id": str(at), "criterion": "c", "rater": rater, "label": answers[at]}
        for rater, answers in said.items()
        for at in range(3)
    ]
    found = panel_audit(rows, n_resamples=10)
    # The mean is ½ in [0, 1]: off by ½, ½ and 0. Low is off by 1, 0 and ½.
    assert found.panel == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert found.per_judge["low"].alone == pytest.approx((0 + 1 + 0.5) / 3)
    assert found.aggregators.difference.reason == "not_comparable"


def test_panels_stand_on_cells_that_all_judges_answered() -> None:
    """A judge that leaves hard cells out gains nothing by it; correlations use what each pair answered."""
    truth = [1, 0, 1, 0, 1, 0]
    rows = binary_rows(
        truth, {"a": [1, 0, 1, 0, 0, 1], "b": [1, 0, 1, 0, None, None], "c": [1, 0, 0, 1, 0, 1]}
    )
    found = panel_audit(rows, n_resamples=10)
    assert (found.n_cells, found.n_complete) == (6, 4)
    assert found.panel.n == 4
    assert [one.pooled.n for one in found.correlations] == [4, 6, 4]


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000))
def test_order_of_rows_does_not_matter(seed: int) -> None:
    """Shuffling items and judges changes no figure and no choice."""
    rows = _simulated(seed, 0.1, [0.2, 0.3, 0.4], n=24)
    shuffled = [rows[at] for at in np.random.default_rng(seed).permutation(len(rows))]
    first, second = (panel_audit(given, n_resamples=1) for given in (rows, shuffled))
    assert first.panel == pytest.approx(second.panel.value)
    assert first.mean_correlation.value == pytest.approx(second.mean_correlation.value)
    assert first.per_judge.keys() == second.per_judge.keys()
    for judge, one in first.per_judge.items():
        assert one.gain.value == pytest.approx(second.per_judge[judge].gain.value)
    assert number(first.smallest_panel.panel.value) == pytest.approx(second.smallest_panel.panel.value)
    assert len(first.smallest_panel.judges) == len(second.smallest_panel.judges)


def test_the_same_seed_gives_the_same_figures() -> None:
    """Intervals and the split follow the seed; another seed gives others."""
    rows = _simulated(3, 0.1, [0.2, 0.3, 0.4], n=40)
    first, again, other = (panel_audit(rows, rng=seed, n_resamples=50).to_dict() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    drawn = panel_audit(rows, rng=np.random.default_rng(1), n_resamples=50)
    assert drawn.panel == pytest.approx(first["panel"]["value"])


def test_no_judge_that_is_always_right_has_a_width_of_zero() -> None:
    """A panel without an error still has an interval below 1."""
    truth = [0, 1] * 10
    found = panel_audit(binary_rows(truth, {"a": truth, "b": truth}), n_resamples=20)
    assert found.panel == 1.0
    assert number(found.panel.low) < 0.9
    assert found.mean_correlation.reason == "no_variance"


def test_a_negative_epsilon_is_refused() -> None:
    """An epsilon below 0 says what is allowed."""
    with pytest.raises(ArgumentError, match=r"epsilon must be.* got -0\.1"):
        panel_audit(HAND, epsilon=-0.1)


def test_differences_that_no_resample_moves_have_no_interval() -> None:
    """Judges that are always right differ by 0, which 20 items do not prove: no ends, and why."""
    truth = [0, 1] * 10
    found = panel_audit(binary_rows(truth, {"a": truth, "b": truth, "c": truth}), n_resamples=20)
    differences = [one.gain for one in found.per_judge.values()]
    differences += [found.best_single.difference, found.smallest_panel.difference]
    differences.append(found.aggregators.difference)
    for difference in differences:
        assert (difference.value, difference.low, difference.high) == (0.0, None, None)
        assert difference.reason == "no_variance"


def test_undefined_pairs_are_counted() -> None:
    """A judge without an error correlates with nobody: 1 of 3 pairs carries the mean, and it says so."""
    truth = [1, 1, 0, 0, 1, 0]
    judges = {"a": [1, 0, 0, 1, 1, 0], "b": [0, 0, 1, 0, 1, 0], "c": truth}
    found = panel_audit(binary_rows(truth, judges), n_resamples=20)
    assert (found.n_pairs_defined, len(found.correlations)) == (1, 3)
    assert found.mean_correlation == pytest.approx(found.correlations[0].pooled.value)
    assert "1 of 3 pairs defined" in found.mean_correlation.method
    assert "1 of 3 pairs defined" in found.effective_judges.method
    assert "mean error correlation (1 of 3 pairs)" in found.summary()
    assert found.to_dict()["n_pairs_defined"] == 1


def test_errors_that_cancel_are_worth_no_number_of_judges() -> None:
    """Two judges of which always one errs: r = -1, 1 + (k - 1) r = 0."""
    found = panel_audit(binary_rows([1, 1, 1, 1], {"a": [1, 0, 1, 0], "b": [0, 1, 0, 1]}), n_resamples=20)
    assert found.mean_correlation == pytest.approx(-1.0)
    assert (found.effective_judges.value, found.effective_judges.reason) == (None, "errors_cancel")


def test_intervals_of_the_effective_number_are_those_of_the_correlation() -> None:
    """The ends are k / (1 + (k - 1) r) of the correlation's ends, changed over; by hand on Fisher's z."""
    found = panel_audit(_simulated(1, 0.15, [0.2, 0.3, 0.2], n=80), n_resamples=200)
    mean, worth = found.mean_correlation, found.effective_judges
    r, se = number(mean.value), number(mean.se)
    assert number(worth.low) == pytest.approx(3 / (1 + 2 * number(mean.high)))
    assert number(worth.high) == pytest.approx(3 / (1 + 2 * number(mean.low)))
    # dz/dr of ½ log((1 + 2r) / (1 - r)) is 3 / (2 (1 + 2r) (1 - r)).
    z, half = 0.5 * np.log((1 + 2 * r) / (1 - r)), t.ppf(0.975, 79) * se * 1.5 / ((1 + 2 * r) * (1 - r))
    odds = np.exp(2 * (z + np.array([-half, half])))
    assert [mean.low, mean.high] == pytest.approx(((odds - 1) / (odds + 2)).tolist())


def test_the_interval_of_the_correlation_covers_at_30_items() -> None:
    """Nominal 95 % hold the true mean correlation at least 91 % of 300 times; percentiles do in 90 %."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(300):
        common, alone = rng.random((30, 1)) < 0.3, rng.random((30, 3)) < 0.3
        errors = np.where(rng.random((30, 3)) < 0.5, common, alone).astype(int)
        rows = binary_rows([0] * 30, {f"j{at}": errors[:, at].tolist() for at in range(3)})
        decided, resampling = read_labelled_votes(table_of(rows)), Resampling(n_resamples=150)
        found = error_correlations(decided, resampling).mean
        held += number(found.low) <= 0.25 <= number(found.high)
    assert held / 300 >= 0.91


def test_the_same_data_in_another_order_have_the_same_intervals() -> None:
    """Items are drawn by their ids, so neither their order nor that of the judges moves an end."""
    rows = _simulated(3, 0.1, [0.2, 0.3, 0.4], n=40)
    first, second = (panel_audit(given, n_resamples=50) for given in (rows, rows[::-1]))
    assert first.judges == second.judges[::-1]
    for judge, one in first.per_judge.items():
        for name in ("alone", "without", "gain"):
            ends = [(a.low, a.high) for a in (getattr(one, name), getattr(second.per_judge[judge], name))]
            assert ends[0] == pytest.approx(ends[1], abs=1e-12)
    assert first.effective_judges.low == pytest.approx(number(second.effective_judges.low))


def test_what_is_no_dataset_is_refused() -> None:
    """A name in the place of a dataset says what is wanted."""
    with pytest.raises(ArgumentError, match=r"must be a RubricDataset.*got str 'x'"):
        panel_audit(HAND, "x")


@pytest.mark.parametrize("rng", ["7", 1.5, None, -1, True])
def test_what_is_no_seed_is_refused(rng: Any) -> None:
    """A seed is a whole number from 0, or a generator."""
    with pytest.raises(ArgumentError, match="rng must be a non-negative integer"):
        panel_audit(HAND, rng=rng)
