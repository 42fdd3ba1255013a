"""Intervals of the headline: they have width, hold the value, and cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autorubric.metrics import Binary, Estimate, JudgeReport, Ordinal, judge_report
from tests.metrics.asserting import brackets, number, width
from tests.metrics.judge_report.tables import labels

POOLED = "UNMET | MET"


def judged(truth: dict[str, list[str]], said: dict[str, list[str]], **options: Any) -> JudgeReport:
    """The report of one judge on some criteria."""
    rows = [row for name, one in truth.items() for row in labels("truth", "truth", name, one)]
    rows += [row for name, one in said.items() for row in labels("judge", "j", name, one)]
    return judge_report(rows, scales=Binary(), **options)


def headline(found: JudgeReport) -> dict[str, Estimate]:
    """The figures of all criteria together that a binary scale has."""
    parts = {"macro": found.macro, "micro": found.micro, "scale": found.panel.by_scale[POOLED]}
    return {
        f"{part} {name}": one
        for part, figures in parts.items()
        for name, one in figures.figures().items()
        if name != "pearson" and not name.startswith("macro_")
    }


@pytest.mark.parametrize("n_criteria", [1, 3])
def test_a_perfect_judge_on_few_items_is_not_certain(n_criteria: int) -> None:
    """Five items on which a judge is always right leave room for it to be wrong on the next."""
    truth = {f"c{at}": ["MET", "UNMET", "MET", "UNMET", "MET"] for at in range(n_criteria)}
    found = judged(truth, truth)
    for name, one in headline(found).items():
        assert one == 1.0 and one.high == 1.0, name
        assert width(one) > 0.2, name
    # Five of five right: the score interval of one observation an item, t with 4 degrees of freedom, 2.776:
    # 1 / (1 + 2.776 ** 2 / 5) = .393, however many criteria the items have.
    assert number(found.macro.accuracy.low) == pytest.approx(0.393, abs=0.001)
    assert found.micro.accuracy.low == pytest.approx(number(found.macro.accuracy.low))


def test_a_judge_that_is_always_wrong_is_not_certain_either() -> None:
    """The same at the other end."""
    truth = ["MET", "UNMET"] * 4
    found = judged({"c": truth}, {"c": [*truth[1:], "MET"]})
    for name, one in headline(found).items():
        assert width(one) > 0.1, name


def test_a_criterion_of_few_items_counts_as_such() -> None:
    """A judge right on all of 200 items of one criterion and 6 of another is not sure of the mean."""
    truth = {"many": ["MET", "UNMET"] * 100, "few": ["MET", "UNMET"] * 3}
    found = judged(truth, truth, n_resamples=200)
    # Parts of an item: half of 1/200, and of six also half of 1/6; 1 / Σw² = 1 / (6 * .0858² + 194 * .0025²).
    weights = np.array([0.5 / 200 + 0.5 / 6] * 6 + [0.5 / 200] * 194)
    effective = 1 / float((weights**2).sum())
    assert effective == pytest.approx(22.0, abs=0.5)
    assert number(found.macro.accuracy.low) == pytest.approx(0.83, abs=0.01)
    assert number(found.macro.accuracy.low) < number(found.micro.accuracy.low)
    assert number(found.macro.kappa.low) < number(found.per_criterion["many"].kappa.low)


def test_every_headline_interval_holds_its_value() -> None:
    """On drawn tables of any size no interval lies beside its figure, or is a point."""
    rng = np.random.default_rng(3)
    for n, n_criteria, share in ((6, 1, 0.9), (20, 4, 0.97), (60, 2, 0.6), (4, 12, 0.8)):
        truth = {f"c{at}": rng.choice(["MET", "UNMET"], n).tolist() for at in range(n_criteria)}
        said = {
            name: [
                one if rng.random() < share else {"MET": "UNMET", "UNMET": "MET"}[one] for one in labels_of
            ]
            for name, labels_of in truth.items()
        }
        for name, one in headline(judged(truth, said, n_resamples=200)).items():
            if one.low is not None and one.high is not None:
                assert one.low <= number(one.value) <= one.high, name
                assert width(one) > 0.01, name


def test_a_perfect_correlation_has_no_interval() -> None:
    """Numbers that are always equal say nothing of how far others would be apart."""
    scale = Ordinal(["low", "some", "high"])
    said = ["low", "some", "high", "some", "low", "high"]
    rows = labels("truth", "truth", "c", said) + labels("judge", "j", "c", said)
    found = judge_report(rows, scales=scale, n_resamples=100).macro
    assert found.pearson == 1.0 and found.pearson.low is None
    assert found.pearson.reason == "no_variance"
    assert found.kappa == 1.0 and width(found.kappa) > 0.2


def test_a_panel_of_one_judge_has_its_intervals() -> None:
    """What is added to resampled tables is the same for all raters: equal columns, equal intervals."""
    truth = {"a": ["MET", "UNMET"] * 10, "b": ["MET", "MET", "UNMET", "UNMET"] * 5}
    said = {"a": ["MET", "UNMET"] * 9 + ["UNMET", "MET"], "b": truth["b"]}
    found = judged(truth, said, n_resamples=150)
    assert found.macro == found.per_judge["j"].macro


@pytest.mark.slow
def test_intervals_of_a_good_judge_cover() -> None:
    """A judge right on 97 % of 40 items, on one criterion and on three: 95 % intervals hold the truth.

    They used to hold it in 69 % of the samples, being a point wherever all answers were right.
    """
    rng = np.random.default_rng(8)
    replicates, kappa_is = 120, 0.94
    for n_criteria in (1, 3):
        held = dict.fromkeys(("macro kappa", "macro accuracy", "micro kappa", "macro balanced_accuracy"), 0)
        for _ in range(replicates):
            truth, said = {}, {}
            for at in range(n_criteria):
                met = rng.random(40) < 0.5
                right = rng.random(40) < 0.97
                truth[f"c{at}"] = np.where(met, "MET", "UNMET").tolist()
                said[f"c{at}"] = np.where(met == right, "MET", "UNMET").tolist()
            found = headline(judged(truth, said, n_resamples=100, rng=int(rng.integers(2**31))))
            for name in held:
                true = kappa_is if "kappa" in name else 0.97
                held[name] += number(found[name].low) <= true <= number(found[name].high)
        # Of 120 samples 95 % ± 3 standard errors (.02).
        assert min(held.values()) >= 0.89 * replicates, (n_criteria, held)


def test_pooled_kappa_of_criteria_with_few_items_is_not_biased() -> None:
    """Criteria of three items: their kappas come out low, the scale's with the chance of others does not."""
    rng = np.random.default_rng(1)
    met, right = rng.random((400, 3)) < 0.5, rng.random((400, 3)) < 0.85
    truth = {f"c{at}": np.where(one, "MET", "UNMET").tolist() for at, one in enumerate(met)}
    said = {f"c{at}": np.where(one, "MET", "UNMET").tolist() for at, one in enumerate(met == right)}
    found = judged(truth, said, n_resamples=50)
    pooled = found.panel.by_scale[POOLED].kappa
    # True kappa: 2 * .85 - 1 = .7; 1,200 pairs have a standard error of about .02.
    assert number(pooled.value) == pytest.approx(0.7, abs=0.06)
    assert brackets(pooled)
    assert number(found.micro.kappa.value) < number(pooled.value) - 0.05


def test_pooled_kappa_of_criteria_on_single_items_says_that_it_mixes() -> None:
    """Within a criterion of one item there is no chance: that of all cells is taken, and said to be."""
    truth = {f"c{at}": {str(at): "MET" if at % 2 else "UNMET"} for at in range(20)}
    rows = [row for name, one in truth.items() for row in labels("truth", "truth", name, one)]
    rows += [row for name, one in truth.items() for row in labels("judge", "j", name, one)]
    pooled = judge_report(rows, scales=Binary(), n_resamples=50).panel.by_scale[POOLED].kappa
    assert pooled == 1.0 and "mixes base rates" in pooled.method
