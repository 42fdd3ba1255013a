"""The alternative annotator test."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, ttest_1samp
from statsmodels.stats.multitest import multipletests

from autorubric.errors import ArgumentError
from autorubric.metrics import alt_test, wilson
from tests.metrics.asserting import brackets, number
from tests.proof.real_data import cells


def naive(judge: list[Any], humans: list[list[Any]], epsilon: float, score: str) -> dict[str, Any]:
    """The test as its paper tells it, loop by loop."""
    p_values, advantages = {}, {}
    for j in range(len(humans[0])):
        wf, wh = [], []
        for said, row in zip(judge, humans, strict=True):
            others = [x for k, x in enumerate(row) if k != j and x is not None]
            if said is None or row[j] is None or not others:
                continue
            if score == "accuracy":
                sf, sh = (sum(x == o for o in others) / len(others) for x in (said, row[j]))
            else:
                sf, sh = (-np.sqrt(sum((x - o) ** 2 for o in others) / len(others)) for x in (said, row[j]))
            wf.append(float(sf >= sh))
            wh.append(float(sh >= sf))
        if len(wf) >= 30:
            d = np.array(wh) - np.array(wf)
            p_values[j] = float(ttest_1samp(d, epsilon, alternative="less").pvalue)
            advantages[j] = float(np.mean(wf))
    rejected = multipletests(list(p_values.values()), alpha=0.05, method="fdr_by")[0]
    return {
        "winning_rate": float(np.mean(rejected)),
        "advantage": float(np.mean(list(advantages.values()))),
        "p": list(p_values.values()),
    }


def table(n: int, n_annotators: int, seed: int) -> tuple[list[Any], list[list[Any]]]:
    """A judge that is right in 85 % and annotators in 80 %, some annotations missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)

    def said(share: float) -> Any:
        return np.where(rng.random(n) < share, truth, rng.integers(0, 4, n))

    humans = np.column_stack([said(0.8) for _ in range(n_annotators)]).astype(object)
    humans[rng.random(humans.shape) < 0.1] = None
    return said(0.85).tolist(), humans.tolist()


@pytest.mark.parametrize("score", ["accuracy", "rmse"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
def test_against_the_loop(score: Any, epsilon: float) -> None:
    """Winning rate, advantage and p-values are those of a plain loop with scipy's t and statsmodels' BY."""
    judge, humans = table(150, 4, seed=3)
    found = alt_test(judge, humans, epsilon=epsilon, score=score)
    wanted = naive(judge, humans, epsilon, score)
    assert found.winning_rate == wanted["winning_rate"]
    assert found.advantage == pytest.approx(wanted["advantage"])
    assert [one.p_value for one in found.per_annotator.values()] == pytest.approx(wanted["p"])
    assert found.passed == (wanted["winning_rate"] >= 0.5)
    assert brackets(found.advantage)


def test_a_table_by_hand() -> None:
    """Three annotators of 40 items: A and B say 1, C says 1 on 30 and 0 on 10, the judge 1 on all but one.

    Against A, items 1-30 but the judge's slip: tie (d = 0). On the slip the others of A both say 1: the judge
    has 0, A has 1: d = 1. On items 31-40 B says 1 and C 0: judge and A both have 1/2: tie. So mean d = 1/40,
    W_f = 39/40; the same for B. Against C: the slip d = 1; on the last ten the judge agrees with both, C with
    none: d = -1; mean d = (1 - 10)/40 = -9/40, W_f = 39/40. ρ = 39/40.
    One difference is too few for the t test; exactly, p for A is P(Binomial(40, 0.2) ≤ 1) = 0.8^39 (0.8 + 8).
    """
    judge = [0] + [1] * 39
    humans = [[1, 1, 1]] * 30 + [[1, 1, 0]] * 10
    found = alt_test(judge, humans, epsilon=0.2)
    a, _, c = found.per_annotator.values()
    assert (float(a.advantage), float(a.human_advantage)) == (39 / 40, 1.0)
    assert (float(c.advantage), float(c.human_advantage)) == (39 / 40, 30 / 40)
    assert found.advantage == pytest.approx(39 / 40)
    assert a.p_value == pytest.approx(0.8**39 * 8.8) and a.t_test is None
    assert found.winning_rate == 1.0
    assert found.passed


def test_differences_that_do_not_vary() -> None:
    """A judge that always ties has d = 0 throughout: it wins where ε > 0, and never where ε = 0."""
    humans = [[1, 1, 1]] * 35
    assert alt_test([1] * 35, humans, epsilon=0.1).winning_rate == 1.0
    assert alt_test([1] * 35, humans, epsilon=0.0).winning_rate == 0.0
    assert alt_test([0] * 35, humans, epsilon=0.2).winning_rate == 0.0


@pytest.mark.parametrize("cluster", [None, [at // 2 for at in range(60)]])
def test_differences_that_do_not_vary_have_the_exact_bound(cluster: list[int] | None) -> None:
    """That no difference of 30 favours the annotator has a probability of at most 0.99³⁰ = .74 at ε = .01."""
    n = 30 if cluster is None else 60
    found = alt_test([1] * n, [[1, 1, 1]] * n, epsilon=0.01, cluster=cluster)
    assert found.per_annotator["0"].p_value == pytest.approx(0.99**30)
    assert not found.passed and "cannot" not in found.summary()


def test_few_differences_are_tested_exactly() -> None:
    """Against unanimous annotators, 3 slips in 30 have p = P(Binomial(30, .2) ≤ 3); t would give .04."""
    judge, people = [0] * 3 + [1] * 27, [[1, 1, 1]] * 30
    one = alt_test(judge, people).per_annotator["0"]
    assert one.p_value == pytest.approx(binom.cdf(3, 30, 0.2)) and one.wins is False
    # With a difference in the judge's favour, the likeliest rates are (ε + q, q), of which q is not 0.
    mixed = [[1, 1, 1]] * 28 + [[1, 1, 0]] * 2
    one = alt_test([0] * 12 + [1] * 18, mixed, epsilon=0.1).per_annotator["2"]
    q = max(
        np.linspace(1e-6, 0.45, 100_001),
        key=lambda q: 12 * np.log(0.1 + q) + 2 * np.log(q) + 16 * np.log(1 - 0.1 - 2 * q),
    )
    p = sum(
        binom.pmf(y, 30, q) * binom.cdf(min(10 + y, 30 - y), 30 - y, (0.1 + q) / (1 - q)) for y in range(31)
    )
    assert one.p_value == pytest.approx(p, rel=1e-3)


def test_a_judge_that_does_not_pass_is_not_called_worse_without_evidence() -> None:
    """As good as the annotators on 30 items: not shown, with the mean d it takes; always wrong: cannot."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 30)
    people = np.column_stack([np.where(rng.random(30) < 0.8, truth, 1 - truth) for _ in range(3)])
    judge = np.where(rng.random(30) < 0.75, truth, 1 - truth)
    found = alt_test(judge, people, epsilon=0.05)
    assert found.passed is False and found.smallest_gap is not None
    assert "replace an annotator is not shown" in found.summary() and "n = 30" in found.summary()
    most = found.smallest_gap - 0.05
    needs = f"passes only if it is closer to the others than the annotator on at least {100 * most:.1f}% more"
    assert f"{needs} items (mean d at most -{most:.3f})." in found.summary()
    # Items that nobody else labelled do not count.
    more = alt_test([*judge, *judge], [*people, *([None] * 3 for _ in judge)], epsilon=0.05)
    assert (more.gap.n, more.gap.low) == (30, found.gap.low)
    # A mean difference lower by the gap wins against two of the three, at Benjamini and Yekutieli's level.
    assert number(found.gap.low) < 0.05 < 0.05 + found.smallest_gap
    wrong = alt_test([0] * 35, [[1, 1, 1]] * 35)
    assert "The judge cannot replace an annotator" in wrong.summary()


def test_annotators_with_few_items_are_left_out() -> None:
    """29 items are too few for one annotator, and the rate counts the others."""
    humans = [[1, 1, 1 if i < 29 else None] for i in range(40)]
    found = alt_test([1] * 40, humans)
    third = found.per_annotator["2"]
    assert (third.n, third.p_value, third.wins, third.reason) == (29, None, None, "too_few_units")
    assert found.winning_rate.n == 2


def test_nobody_left_is_undefined() -> None:
    """With 20 items nobody can be tested."""
    found = alt_test([1] * 20, [[1, 0, 1]] * 20)
    assert (found.winning_rate.value, found.advantage.value, found.passed) == (None, None, None)
    assert found.winning_rate.reason == "too_few_units"
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_intervals_of_annotators_have_the_confidence_level() -> None:
    """The interval of each annotator's advantage is Wilson's at the level that was asked for."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 50)
    humans = pd.DataFrame({name: np.where(rng.random(50) < 0.8, truth, 1 - truth) for name in "abc"})
    judge = np.where(rng.random(50) < 0.7, truth, 1 - truth)
    found = alt_test(judge, humans, confidence_level=0.8, n_resamples=50).per_annotator["a"]
    for one in (found.advantage, found.human_advantage):
        assert one.value is not None
        expected = wilson(round(one.value * one.n), one.n, confidence_level=0.8)
        assert (one.low, one.high) == pytest.approx((expected.low, expected.high))


def test_a_frame_names_its_annotators() -> None:
    """Columns are the annotators' names, and the labels any words."""
    frame = pd.DataFrame({"ann": ["yes", "no"] * 20, "bo": ["yes", "no"] * 20})
    found = alt_test(["yes", "no"] * 20, frame)
    assert list(found.per_annotator) == ["ann", "bo"]
    json.dumps(found.to_dict(), allow_nan=False)


def test_clusters_take_their_sums() -> None:
    """Copies of an item in one cluster add no evidence: p is that of the items once."""
    judge, humans = table(60, 3, seed=5)
    once = alt_test(judge, humans)
    copied = alt_test(judge * 2, humans * 2, cluster=list(range(60)) * 2)
    for one, other in zip(once.per_annotator.values(), copied.per_annotator.values(), strict=True):
        assert other.p_value == pytest.approx(one.p_value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [[1]]), "at least two"),
        (([1, 0], [[1, 1]]), "judge has 2 labels"),
        (([1], [[1, 1], [1]]), "must have the same length"),
        (([1], np.zeros(3)), "shape"),
        ((None, [[1, 1]]), "judge must be a sequence of labels, one per item; got NoneType"),
        (([1], None), "humans must be a table"),
        (("MET", [[1, 1]] * 3), "must be a sequence of labels"),
    ],
)
def test_faulty_tables_are_refused(arguments: Any, message: str) -> None:
    """A table needs two columns and as many rows as the judge has annotations."""
    with pytest.raises(ArgumentError, match=message):
        alt_test(*arguments)


def test_faulty_options_are_refused() -> None:
    """Scores and ε that there are not."""
    with pytest.raises(ArgumentError, match=r"score must be.* got 'f1'"):
        alt_test([1], [[1, 1]], score="f1")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"epsilon must be.* got 2"):
        alt_test([1], [[1, 1]], epsilon=2)
    with pytest.raises(ArgumentError, match=r"epsilon must be.* got '0\.2'"):
        alt_test([1], [[1, 1]], epsilon="0.2")  # type: ignore[arg-type]


def test_what_is_no_answer_is_missing() -> None:
    """NA, CANNOT_ASSESS and INVALID count as None does, on either side."""
    judge, humans = table(80, 3, seed=4)
    words = ["NA", "cannot_assess", "INVALID", "N/A"]
    said = [words[i % 4] if i < 12 else one for i, one in enumerate(judge)]
    people = [[words[i % 4], *row[1:]] if 10 <= i < 20 else row for i, row in enumerate(humans)]
    blank = [None if i < 12 else one for i, one in enumerate(judge)]
    holes = [[None, *row[1:]] if 10 <= i < 20 else row for i, row in enumerate(humans)]
    bounded = {"passed", "abstention_gaps", "abstention_rates"}
    figures = [alt_test(*one).to_dict() for one in ((said, people), (blank, holes))]
    assert figures[0]["abstention_gaps"] is not None and figures[1]["abstention_gaps"] is None
    same = [{name: one for name, one in each.items() if name not in bounded} for each in figures]
    assert same[0] == same[1]


def test_summary_says_the_outcome_first() -> None:
    """A sentence, then a row an annotator; without a tested annotator it says what that takes."""
    judge, humans = table(60, 3, seed=5)
    found = alt_test(judge, humans)
    first, *rest = found.summary().splitlines()[1:]
    assert first.startswith("The judge may replace an annotator: it wins against 3 of 3")
    assert sum(line.strip().startswith(tuple("012")) for line in rest) == 3
    assert "No annotator could be tested" in alt_test(judge[:20], humans[:20]).summary()


@pytest.mark.shared_data
def test_on_creativity_experts() -> None:
    """Three experts a story and test: each judge of the data gets the plain loop's figures."""
    labels = cells("ttcw")
    experts = [name for name in labels if "expert" in name.lower() or "human" in name.lower()]
    judges = [name for name in labels if name not in experts]
    assert len(experts) >= 3
    keys = sorted({key for name in experts for key in labels[name]})
    # Experts differ from story to story: annotators are their places.
    humans = []
    for key in keys:
        said = [labels[name][key] for name in experts if key in labels[name]]
        humans.append([*said, None, None, None][:3])
    for judge in judges:
        said_of = [labels[judge].get(key) for key in keys]
        votes = [None if one == "INVALID" else one for one in said_of]
        found = alt_test(said_of, humans)
        wanted = naive(votes, humans, 0.2, "accuracy")
        assert found.winning_rate == wanted["winning_rate"]
        assert found.advantage == pytest.approx(wanted["advantage"])


def test_a_judge_that_abstains_is_judged_on_the_items_it_answered() -> None:
    """The sentence names the share of items, whether the judge passes or not."""
    truth = ["yes", "no"] * 30
    humans = [[one, one, one] for one in truth]
    said = [*truth[:42], *["CANNOT_ASSESS"] * 18]
    found = alt_test(said, humans, ci=None)
    assert (found.n_answered, found.n_items) == (42, 60)
    assert "it wins against 3 of 3 on the 70% of items it answered" in found.summary().replace("\n", " ")
    assert "items it answered" not in alt_test(truth, humans, ci=None).summary()
    worst, best = found.abstention_gaps or (None, None)
    assert worst == pytest.approx(18 / 60)
    assert best == 0
    assert found.winning_rate == 1
    assert found.passed is False
    assert "replace an annotator is not shown" in found.summary()
    cases = (
        "abstentions as errors against {} of 3 (mean d {}) and as right answers against 3 of 3 (mean d 0.0"
    )
    assert cases.format(0, "0.300") in found.summary()
    few = alt_test([*truth[:58], "NA", "NA"], humans)
    assert few.passed and cases.format(3, "0.033") in few.summary()
    # Wrong on half of 40 answers; with 60 abstentions as right answers, mean d is below epsilon.
    half = [*["yes", "no", "no", "yes"] * 10, *["CANNOT_ASSESS"] * 60]
    found = alt_test(half, [[one] * 3 for one in ["yes", "no"] * 50], epsilon=0.2)
    _, right = found.abstention_gaps or (found.gap, found.gap)
    assert number(found.gap.low) > 0.2 > number(right.low)
    assert "replace an annotator is not shown" in found.summary() and "cannot" not in found.summary()


@pytest.mark.parametrize("word", ["NA", "CANNOT_ASSESS"])
def test_abstentions_can_be_a_category(word: str) -> None:
    """Judge and people abstain on the same 10 of 50 items; where the judge answers instead, it is wrong."""
    judge = [word] * 10 + ["MET", "UNMET"] * 20
    humans = [(one,) * 3 for one in judge]
    found = alt_test(judge, humans, abstain="as_category")
    assert [one.n for one in found.per_annotator.values()] == [50] * 3
    assert (found.n_answered, found.abstention_gaps) == (50, None)
    wrong = alt_test(["MET"] * 10 + judge[10:], humans, abstain="as_category")
    assert wrong.gap == pytest.approx(0.2)
    assert alt_test(judge, humans).per_annotator["0"].n == 40
