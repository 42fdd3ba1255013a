"""Where judges lean."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from autorubric import ComparativeCriterion, CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.criteria import Criterion, CriterionOption
from autorubric.errors import ArgumentError
from autorubric.judges import FunctionJudge, JudgeRequest
from autorubric.metrics import adjust_pvalues, bias_report, clustered_se
from tests.metrics.asserting import number
from tests.metrics.audit.tables import Rows, binary_rows, noisy

LEVELS = [CriterionOption(label=str(at), value=at / 10) for at in range(11)]


def _dataset(truth: Any, *, words: Any = None, generators: Any = None) -> RubricDataset:
    """Items with one criterion on eleven levels, of some length, by some generator."""
    rubric = Rubric([Criterion(name="c", requirement="How good?", weight=1.0, options=LEVELS)])
    items = [
        DataItem(
            id=f"i{at}",
            submission=" ".join(["word"] * (5 if words is None else int(words[at]))),
            ground_truth=None if truth is None else {"c": str(int(truth[at]))},
            metadata={} if generators is None else {"generator": generators[at]},
        )
        for at in range(len(truth) if truth is not None else len(generators))
    ]
    return RubricDataset(rubric=rubric, items=items)


def _rows(**judges: Any) -> Rows:
    return [
        {"item_id": f"i{at}", "criterion": "c", "rater": judge, "rater_type": "llm",
         "label": str(int(np.clip(answer, 0, 10)))}
        for judge, answers in judges.items()
        for at, answer in enumerate(answers)
    ]  # fmt: skip


def test_mean_difference_by_hand() -> None:
    """Judge minus truth is the mean difference, here of 1, 0, 0 and 1, with its t test."""
    found = bias_report(binary_rows([0, 1, 0, 0], {"a": [1, 1, 0, 1]})).per_judge["a"]
    assert found.mean_difference.effect == pytest.approx(0.5)
    assert found.pass_rate_difference.effect == pytest.approx(3 / 4 - 1 / 4)
    test = stats.ttest_1samp([1, 0, 0, 1], 0)
    assert found.mean_difference.p_value == pytest.approx(test.pvalue)
    assert found.mean_difference.test is not None
    assert found.mean_difference.test.value == pytest.approx(test.statistic)
    ends = test.confidence_interval(0.95)
    effect = found.mean_difference.effect
    assert (effect.low, effect.high) == pytest.approx((ends.low, ends.high))


def test_leniency_is_half_of_the_difference_of_error_rates() -> None:
    """FPR 6/10 and FNR 2/20: (0.6 - 0.1) / 2, whatever the base rate."""
    truth = [0] * 10 + [1] * 20
    judge = [1] * 6 + [0] * 4 + [0] * 2 + [1] * 18
    found = bias_report(binary_rows(truth, {"a": judge})).per_judge["a"].leniency
    assert found.effect == pytest.approx(0.25)
    assert number(found.effect.low) > 0 and number(found.p_value) < 0.05


def test_leniency_is_the_intercept_of_a_regression() -> None:
    """On graded values, with a slope for each criterion: the coefficient of statsmodels' least squares."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 11, (60, 2))
    said = np.clip(truth + rng.integers(-2, 4, (60, 2)), 0, 10)
    rubric = Rubric([Criterion(name=name, requirement="How good?", options=LEVELS) for name in "ab"])
    items = [
        DataItem(id=f"i{at}", submission="x", ground_truth={"a": str(one), "b": str(two)})
        for at, (one, two) in enumerate(truth)
    ]
    rows: Rows = [
        {"item_id": f"i{at}", "criterion": name, "rater": "j", "rater_type": "llm", "label": str(said[at, k])}
        for at in range(60)
        for k, name in enumerate("ab")
    ]
    x, error = (truth / 10 - 0.5).reshape(-1), ((said - truth) / 10).reshape(-1)
    first = np.arange(120) % 2 == 0
    fit = sm.OLS(error, np.column_stack([np.ones(120), x * first, x * ~first])).fit()
    found = bias_report(rows, RubricDataset(rubric=rubric, items=items), n_resamples=2).per_judge["j"]
    assert float(found.leniency.effect) == pytest.approx(fit.params[0])


def _symmetric(rng: np.random.Generator, base: float, n: int = 200) -> Rows:
    truth = (rng.random(n) < base).astype(int)
    return binary_rows(truth.tolist(), {"a": noisy(truth, 0.1, rng)})


def test_a_judge_with_symmetric_errors_is_not_lenient_at_any_base_rate() -> None:
    """At base rates of 0.1 and 0.9 the mean difference is significant in nearly all runs, leniency in few."""
    for base in (0.1, 0.9):
        rng = np.random.default_rng(int(base * 10))
        found = [bias_report(_symmetric(rng, base)).per_judge["a"] for _ in range(60)]
        assert sum(number(one.leniency.p_value) < 0.05 for one in found) <= 7
        assert sum(number(one.mean_difference.p_value) < 0.05 for one in found) >= 55


def test_leniency_needs_both_sides_of_the_truth() -> None:
    """Where every label is the same there is one error rate, and the report says so."""
    found = bias_report(binary_rows([1, 1, 1, 1], {"a": [1, 0, 1, 0]})).per_judge["a"]
    assert (found.leniency.effect.value, found.leniency.effect.reason) == (None, "single_class")
    assert found.mean_difference.effect == -0.5


def test_the_opening_sentence_is_adjusted_over_all_that_it_chooses_from() -> None:
    """Over 60 runs of three judges without a bias few open with one; the p-value is marked as adjusted."""
    rng = np.random.default_rng(2)
    named = 0
    for _ in range(60):
        truth = rng.integers(0, 2, 100)
        dataset = RubricDataset(
            rubric=Rubric([Criterion(name="c", requirement="Good?")]),
            items=[
                DataItem(id=f"i{at}", submission="word " * int(rng.integers(5, 90)),
                         metadata={"generator": "xyz"[at % 3]},
                         ground_truth={"c": ("UNMET", "MET")[truth[at]]})
                for at in range(100)
            ],
        )  # fmt: skip
        judges = {name: noisy(truth, 0.2, rng) for name in "xyz"}
        opening = bias_report(binary_rows(None, judges), dataset, n_resamples=2).summary().splitlines()[0]
        assert "adjusted p" in opening and "(Holm, 12 tests" in opening
        named += opening.startswith("The clearest bias")
    assert named <= 7


def test_small_p_values_are_not_printed_as_zero() -> None:
    """A p-value below 0.001 is `< 0.001` in sentences and tables."""
    truth = [0, 1] * 40
    summary = bias_report(binary_rows(truth, {"mild": [1] * 80})).summary()
    assert "adjusted p < 0.001 (Holm" in summary
    assert not re.search(r"p = 0\.000|  0\.000  0\.000", summary)


def test_penalties_count_against_the_text() -> None:
    """A judge that sees more faults than there are is strict: above 0 is always in favour of the text."""
    rubric = Rubric([Criterion(name="fault", requirement="It has a fault.", weight=-2.0)])
    items = [DataItem(id=f"i{at}", submission="x", ground_truth={"fault": "UNMET"}) for at in range(4)]
    rows = binary_rows(None, {"strict": [1, 1, 1, 0]}, criterion="fault")
    found = bias_report(rows, RubricDataset(rubric=rubric, items=items))
    assert found.per_judge["strict"].mean_difference.effect == pytest.approx(-3 / 4)
    assert any("penalties" in note for note in found.notes)


def test_mean_difference_is_clustered_by_item() -> None:
    """Criteria of one item are one unit: the error is Miller's, with C / (C - 1)."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (40, 3))
    judge = np.where(rng.random((40, 1)) < 0.3, 1, truth)
    rows: Rows = []
    for at in range(3):
        rows += binary_rows(truth[:, at].tolist(), {"a": judge[:, at].tolist()}, criterion=f"c{at}")
    found = bias_report(rows).per_judge["a"].mean_difference.effect
    expected = clustered_se((judge - truth).reshape(-1), np.repeat(np.arange(40), 3))
    assert found == pytest.approx(float(expected))
    assert found.se == pytest.approx(number(expected.se))
    assert found.low == pytest.approx(number(expected.low))


def _slope_within(y: Any, x: Any, strata: Any) -> float:
    """Coefficient of x in statsmodels' least squares with an intercept for each stratum."""
    dummies = np.asarray(strata)[:, None] == np.unique(strata)
    return float(sm.OLS(np.asarray(y, dtype=float), np.column_stack([x, dummies])).fit().params[0])


def test_length_lean_is_a_slope_within_strata() -> None:
    """The slope on the rank of length at equal truth; a judge that likes long texts is found."""
    rng = np.random.default_rng(3)
    truth, words = rng.integers(2, 8, 150), rng.integers(5, 200, 150)
    fond = truth + np.round((words - 100) / 60) + rng.integers(-1, 2, 150)
    fair = truth + rng.integers(-2, 3, 150)
    dataset = _dataset(truth, words=words)
    report = bias_report(_rows(fond=fond, fair=fair), dataset)
    found = report.per_judge
    for name, answers in (("fond", fond), ("fair", fair)):
        error = (np.clip(answers, 0, 10) - truth) / 10
        expected = _slope_within(error, 2 * (stats.rankdata(words) - 0.5) / 150, truth)
        assert found[name].length_lean.effect == pytest.approx(expected)
    assert number(found["fond"].length_lean.effect.low) > 0.03
    assert number(found["fond"].length_lean.p_value) < 1e-6
    assert report.summary().startswith("The clearest bias is fond's length: ")
    fair_effect = found["fair"].length_lean.effect
    assert number(fair_effect.low) < 0 < number(fair_effect.high)


def test_intervals_are_clustered_by_item() -> None:
    """Three criteria that a judge errs on together are one unit: the error is about that of one criterion."""
    rng = np.random.default_rng(6)
    truth, words = rng.integers(0, 2, 200), rng.integers(5, 200, 200)
    answers = noisy(truth, 0.2, rng)
    rubric = Rubric([Criterion(name=name, requirement="Good?") for name in "cde"])
    items = [
        DataItem(id=f"i{at}", submission="word " * int(count), ground_truth=dict.fromkeys("cde", label))
        for at, (count, label) in enumerate(zip(words, np.array(["UNMET", "MET"])[truth], strict=True))
    ]
    rows = [row for name in "cde" for row in binary_rows(None, {"a": answers}, criterion=name)]
    dataset = RubricDataset(rubric=rubric, items=items)
    single, thrice = bias_report(rows[:200], dataset), bias_report(rows, dataset)
    for kind in ("leniency", "length_lean"):
        one, three = (getattr(report.per_judge["a"], kind).effect for report in (single, thrice))
        assert three == pytest.approx(float(one))
        assert three.se == pytest.approx(number(one.se), rel=0.05)


def test_length_is_adjusted_for_truth() -> None:
    """Long texts that are better, judged by one who shrinks towards the middle, are no lean."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 11, 400)
    words = 20 + 10 * truth + rng.integers(0, 30, 400)
    shrinking = 5 + np.round(0.5 * (truth - 5) + rng.normal(0, 1, 400))
    error = np.clip(shrinking, 0, 10) - truth
    assert stats.spearmanr(error, words).statistic < -0.7
    found = bias_report(_rows(a=shrinking), _dataset(truth, words=words), n_resamples=50).per_judge["a"]
    assert abs(float(found.length_lean.effect)) < 0.12


GENERATORS = ["gpt", "claude", "llama", "claude"] * 60
FAMILIES = {"gpt-judge": "openai", "gpt": "openai", "claude-judge": "anthropic", "claude": "anthropic",
            "llama-judge": "meta", "llama": "meta"}  # fmt: skip


def _favours(seed: int, favour: float) -> tuple[Rows, RubricDataset, dict[str, Any], Any]:
    """Judges of which one adds to its own family's texts; gpt's texts are better, one judge is lenient."""
    rng = np.random.default_rng(seed)
    by = np.array(GENERATORS)
    truth = rng.integers(3, 6, len(by)) + (by == "gpt")
    said = {
        "gpt-judge": truth + np.round(rng.normal(0, 1, len(by)) + favour * (by == "gpt")),
        "claude-judge": truth + np.round(rng.normal(0, 1, len(by))) + 1,
        "llama-judge": truth + np.round(rng.normal(0, 1, len(by))),
    }
    answers = {name: np.clip(one, 0, 10) for name, one in said.items()}
    return _rows(**answers), _dataset(truth, generators=GENERATORS), answers, truth


def test_self_preference_is_a_contrast_within_strata() -> None:
    """The figures are own minus other texts at equal truth, relative to other judges and to the truth."""
    rows, dataset, answers, truth = _favours(1, 2.0)
    found = bias_report(rows, dataset, families=FAMILIES).per_judge["gpt-judge"]
    own = (np.array(GENERATORS) == "gpt").astype(float)
    apart = (answers["gpt-judge"] - (answers["claude-judge"] + answers["llama-judge"]) / 2) / 10
    assert found.self_preference.effect == pytest.approx(_slope_within(apart, own, truth))
    error = (answers["gpt-judge"] - truth) / 10
    assert found.own_error_difference.effect == pytest.approx(_slope_within(error, own, truth))
    assert number(found.self_preference.p_value) < 0.001
    assert (found.family, found.n_own_items) == ("openai", 60)


def test_an_accurate_judge_and_a_good_generator_are_no_self_preference() -> None:
    """A judge with fewer errors whose own texts are better is named in few of 60 reports."""
    rng = np.random.default_rng(12)
    named = 0
    for _ in range(60):
        by = rng.choice(["x", "y", "z"], 150)
        truth = (rng.random(150) < np.where(by == "x", 0.85, 0.5)).astype(int)
        rubric = Rubric([Criterion(name="c", requirement="Good?")])
        items = [
            DataItem(id=f"i{at}", submission="x", ground_truth={"c": ("UNMET", "MET")[truth[at]]},
                     metadata={"generator": by[at]})
            for at in range(150)
        ]  # fmt: skip
        judges = {"x": noisy(truth, 0.05, rng), "y": noisy(truth, 0.25, rng), "z": noisy(truth, 0.25, rng)}
        report = bias_report(
            binary_rows(None, judges), RubricDataset(rubric=rubric, items=items), label_error=0
        )
        named += report.summary().startswith("The clearest bias")
    assert named <= 7


@pytest.mark.parametrize("seed", range(1, 5))
def test_planted_self_preference_is_found_and_leniency_is_not(seed: int) -> None:
    """A favour of .15 is found; better texts and a lenient judge do not look like one."""
    rows, dataset, _, _ = _favours(seed, 1.5)
    found = bias_report(rows, dataset, families=FAMILIES, n_resamples=5).per_judge
    effect = found["gpt-judge"].self_preference.effect
    assert number(effect.low) < 0.15 < number(effect.high)
    assert number(found["gpt-judge"].self_preference.adjusted_p_value) < 0.01
    # A judge's favour for one family moves the others' contrast by its share: -(.15 / 2) on a third.
    assert abs(float(found["claude-judge"].self_preference.effect)) < 0.12
    none, other, _, _ = _favours(seed + 50, 0.0)
    fair = bias_report(none, other, families=FAMILIES, n_resamples=5).per_judge
    assert all(number(one.self_preference.adjusted_p_value) > 0.01 for one in fair.values())


@pytest.mark.parametrize("guilty", ["x", "y"])
def test_the_judge_of_the_other_family_is_not_named(guilty: str) -> None:
    """With two families both judges have the same contrast, so the judge's own errors decide."""
    rng = np.random.default_rng(5)
    by = rng.choice(["x", "y"], 400)
    truth = rng.integers(0, 2, 400)
    judges = {who: noisy(truth, 0.1, rng) for who in "xy"}
    prefers = (by == guilty) & (rng.random(400) < 0.7)
    judges[guilty] = [1 if own else said for own, said in zip(prefers, judges[guilty], strict=True)]
    items = [
        DataItem(id=f"i{at}", submission="x", ground_truth={"c": ("UNMET", "MET")[truth[at]]},
                 metadata={"generator": by[at]})
        for at in range(400)
    ]  # fmt: skip
    dataset = RubricDataset(rubric=Rubric([Criterion(name="c", requirement="Good?")]), items=items)
    found = bias_report(binary_rows(None, judges), dataset, label_error=0)
    innocent = found.per_judge["y" if guilty == "x" else "x"].self_preference
    assert number(innocent.adjusted_p_value) < 0.001
    assert innocent.cautious_p_value == 1
    assert found.summary().startswith(f"The clearest bias is {guilty}'s ")
    assert "with one other family, self-preference" in found.summary()


def test_without_labels_self_preference_cannot_be_told_from_accuracy() -> None:
    """Judges that differ in accuracy have the same contrast, so there is none, and the report says why."""
    rows, _, _, _ = _favours(2, 1.0)
    report = bias_report(rows, _dataset(None, generators=GENERATORS), families=FAMILIES)
    found = report.per_judge["gpt-judge"]
    assert found.self_preference.effect.reason == found.own_error_difference.effect.reason == "no_truth"
    assert found.leniency.effect.reason == found.mean_difference.effect.reason == "no_truth"
    assert "without labels, self-preference cannot be told from accuracy" in report.summary()


def test_judges_of_the_own_family_are_no_yardstick() -> None:
    """A second judge of the family is left out of the comparison; with kin alone there is none."""
    rows, dataset, _, _ = _favours(3, 1.5)
    kin = [{**row, "rater": "gpt-mini"} for row in rows if row["rater"] == "gpt-judge"]
    families = {**FAMILIES, "gpt-mini": "openai"}
    alone = bias_report(rows, dataset, families=FAMILIES, n_resamples=5).per_judge["gpt-judge"]
    beside = bias_report(rows + kin, dataset, families=families, n_resamples=5).per_judge["gpt-judge"]
    assert beside.self_preference.effect == pytest.approx(float(alone.self_preference.effect))
    only = [row for row in rows + kin if row["rater"] in ("gpt-judge", "gpt-mini")]
    found = bias_report(only, dataset, families=families, n_resamples=5).per_judge["gpt-judge"]
    assert found.self_preference.effect.reason == "one_judge"


def test_p_values_are_adjusted_over_judges_and_kinds() -> None:
    """All kinds of bias of all judges are one family for Holm; the two differences are another."""
    rows, dataset, _, _ = _favours(4, 0.3)
    found = list(bias_report(rows, dataset, families=FAMILIES, n_resamples=5).per_judge.values())
    biases = ("leniency", "length_lean", "position_lean", "self_preference", "own_error_difference")
    for family in (biases, ("mean_difference", "pass_rate_difference")):
        tests = [getattr(one, kind) for one in found for kind in family]
        assert [one.adjusted_p_value for one in tests] == adjust_pvalues([one.p_value for one in tests])


def test_who_takes_the_first_leans(tmp_path: Path) -> None:
    """A judge that takes what stands first leans by one half, one that goes by the text does not."""

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
    dataset = RubricDataset(rubric=rubric, items=items)
    result = evaluate_sync(
        dataset, CriterionGrader(judges=judges), experiments_dir=tmp_path, show_progress=False
    )
    found = bias_report(result).per_judge
    assert found["first"].position_lean.effect == 0.5
    assert found["longer"].position_lean.effect == 0.0
    assert found["longer"].position_lean.p_value is None
    assert found["longer"].position_lean.effect.reason == "no_variance"
    assert found["first"].length_lean.effect.reason in ("no_truth", "no_text")


def test_what_is_not_known_is_undefined_with_a_reason() -> None:
    """Without texts, orders, generators or other judges each figure says what it lacks."""
    report = bias_report(binary_rows([0, 1, 1], {"a": [1, 1, 0]}))
    found = report.per_judge["a"]
    assert found.length_lean.effect.reason == "no_text"
    assert found.position_lean.effect.reason == "no_order"
    assert found.self_preference.effect.reason == "no_generator"
    assert found.own_error_difference.effect.reason == "no_generator"
    assert found.self_preference.p_value is None
    json.dumps(report.to_dict(), allow_nan=False)
    rows, dataset, _, _ = _favours(0, 0.0)
    strangers = bias_report(rows, dataset, n_resamples=5)
    assert strangers.per_judge["gpt-judge"].self_preference.effect.reason == "no_pairs"
    assert any("families=" in note for note in strangers.notes)


def _with_label_errors(seed: int, *, base: float, error: float) -> tuple[Any, dict[str, Any], Any]:
    """Labels of two people who err equally often, a judge with 10% symmetric errors, and its labels."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(500) < base).astype(int)
    people = {who: np.array(noisy(truth, error, rng)) for who in ("ann", "bob")}
    return truth, people, noisy(truth, 0.1, rng)


def test_wrong_labels_that_look_like_leniency_are_not_named() -> None:
    """At base rate .85, 8% wrong labels make a fair judge look lenient; the report says that they suffice."""
    _, people, said = _with_label_errors(1, base=0.85, error=0.08)
    rows = binary_rows(people["ann"], {"a": said})
    trusted = bias_report(rows, label_error=0)
    bias = trusted.per_judge["a"].leniency
    assert number(bias.effect.low) > 0.05 and number(bias.adjusted_p_value) < 0.001
    assert trusted.summary().startswith("The clearest bias is a's leniency")
    report = bias_report(rows)
    bias = report.per_judge["a"].leniency
    assert number(bias.explained_by) in (0.04, 0.05, 0.06, 0.07)
    assert number(bias.adjusted_p_value) < 0.001 and number(bias.cautious_p_value) > 0.05
    opening = report.summary().splitlines()[0]
    assert opening.startswith("No bias is shown") and "] in pass rate, adjusted p" in opening
    assert f"{bias.explained_by:.0%} wrong labels suffice to explain it" in opening
    assert (report.wrong_labels.source, report.wrong_labels.estimate.reason) == ("judges", "no_ratings")


@pytest.mark.parametrize("by_rule", [False, True], ids=["one person's labels", "labels of both"])
def test_label_errors_are_estimated_from_two_people(by_rule: bool) -> None:
    """Of labels by one of two people 8% are wrong; of those on which both agree, (.08 / .92)²."""
    _, people, said = _with_label_errors(4, base=0.7, error=0.08)
    rows = binary_rows(None if by_rule else people["ann"], {"a": said})
    for who, labels in people.items():
        rows += [{**row, "rater": who, "rater_type": "human"} for row in binary_rows(None, {who: labels})]
    wrong = bias_report(rows).wrong_labels
    error = (1 - (1 - 2 * (people["ann"] != people["bob"]).mean()) ** 0.5) / 2
    expected = error**2 / (error**2 + (1 - error) ** 2) if by_rule else error
    assert wrong.estimate == pytest.approx(expected)
    actual = 0.08**2 / (0.08**2 + 0.92**2) if by_rule else 0.08
    assert number(wrong.estimate.low) < actual < number(wrong.estimate.high)
    assert wrong.source == "people" and wrong.estimate.n == 500
    assert wrong.most == pytest.approx(number(wrong.estimate.high))


def test_a_lenient_judge_is_named_beside_wrong_labels() -> None:
    """With two people per cell, a judge that passes 40% of the failing texts is lenient, not the labels."""
    truth, people, _ = _with_label_errors(3, base=0.8, error=0.03)
    rng = np.random.default_rng(0)
    said = np.where(truth == 1, rng.random(500) < 0.95, rng.random(500) < 0.4).astype(int).tolist()
    rows = binary_rows(people["ann"], {"a": said})
    for who, labels in people.items():
        rows += [{**row, "rater": who, "rater_type": "human"} for row in binary_rows(None, {who: labels})]
    report = bias_report(rows)
    assert report.summary().startswith("The clearest bias is a's leniency")
    assert number(report.per_judge["a"].leniency.explained_by) > report.wrong_labels.most


def test_label_errors_out_of_range_are_refused() -> None:
    """Half of the labels wrong is no information; the message has the range."""
    with pytest.raises(ArgumentError, match=r"label_error must be in \[0, 0.49\]; got 0.5"):
        bias_report(binary_rows([0, 1], {"a": [1, 1]}), label_error=0.5)


def test_families_of_strangers_are_refused() -> None:
    """Families that name neither a judge nor a generator are a slip, and say who there is."""
    with pytest.raises(ArgumentError, match="Available: "):
        bias_report(binary_rows([0, 1], {"a": [1, 1]}), families={"b": "x"})


def test_a_leaning_that_no_item_shows_is_not_proved_absent() -> None:
    """A judge that is always right leans by 0 on every item: no ends and no p, and why."""
    found = bias_report(binary_rows([1, 0, 1, 0], {"a": [1, 0, 1, 0]})).per_judge["a"].leniency
    assert (found.effect.value, found.effect.low, found.effect.high) == (0.0, None, None)
    assert (found.effect.reason, found.p_value) == ("no_variance", None)


def test_unknown_penalties_are_noted() -> None:
    """Without a rubric nobody knows which criteria are penalties."""
    notes = bias_report(binary_rows([1, 0], {"a": [1, 1]})).notes
    assert any("no rubric is available" in note and "penalties" in note for note in notes)


def test_the_summary_opens_with_the_clearest_leaning() -> None:
    """A judge that passes everything is named first."""
    truth = [1, 0, 0, 1, 0, 0, 1, 0] * 4
    rows = binary_rows(truth, {"strict": truth, "mild": [1] * 30 + [0] * 2})
    opening = bias_report(rows).summary().splitlines()[0]
    assert opening.startswith("The clearest bias is mild's leniency: 0.433 [")
