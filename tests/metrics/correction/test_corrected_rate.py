"""Pass rates corrected for a judge's errors."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtri
from statsmodels.stats.proportion import proportion_confint

from autorubric.errors import ArgumentError
from autorubric.metrics import Estimate, corrected_rate
from tests.metrics.asserting import brackets, number, width

Z = float(ndtri(0.975))


def counted(se: tuple[int, int], sp: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Labels and verdicts with so many hits of so many passes, and rejections of so many failures."""
    truth = [1] * se[1] + [0] * sp[1]
    judged = [1] * se[0] + [0] * (se[1] - se[0]) + [0] * sp[0] + [1] * (sp[1] - sp[0])
    return truth, judged


def simulated(prevalence: float, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Truth, and a judge with sensitivity .9 and specificity .85."""
    truth = (rng.random(n) < prevalence).astype(int)
    return truth, np.where(truth == 1, rng.random(n) < 0.9, rng.random(n) < 0.15).astype(int)


def test_rogan_gladen_by_hand() -> None:
    """p = 0.6, se = 18/20, sp = 16/20: (0.6 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.4 / 0.7."""
    found = corrected_rate([1] * 60 + [0] * 40, *counted((18, 20), (16, 20)))
    assert found == pytest.approx(4 / 7)
    assert [float(one) for one in (found.raw, found.sensitivity, found.specificity)] == [0.6, 0.9, 0.8]
    assert found.labelled_only == 0.5
    assert (found.n, found.n_calibration, found.n_missing, found.lam, found.reason) == (
        100,
        40,
        0,
        None,
        None,
    )


def test_the_result_is_the_estimate_of_the_rate() -> None:
    """It calculates, compares and formats as the corrected rate, and carries what that rests on to JSON."""
    found = corrected_rate([1] * 60 + [0] * 40, *counted((18, 20), (16, 20)))
    assert isinstance(found, Estimate)
    assert 1 - found == pytest.approx(3 / 7)
    assert f"{found:.2f}" == "0.57"
    assert found.method.startswith("corrected rate (rogan-gladen); Lang and Reiczigel")
    assert (found.correction, found.sampled) == ("rogan-gladen", "random")
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["value"], plain["low"], plain["raw"]["value"]) == (found.value, found.low, 0.6)


def test_interval_of_lang_and_reiczigel_by_hand() -> None:
    """The closed form, written out: one success and failure more for se and sp, z²/2 for the test items."""
    found = corrected_rate([1] * 60 + [0] * 40, *counted((18, 20), (16, 20)))
    n = 100 + Z * Z
    p, se, sp = (60 + Z * Z / 2) / n, 19 / 22, 17 / 22
    rate = (p + sp - 1) / (se + sp - 1)
    errors = p * (1 - p) / n + rate**2 * se * (1 - se) / 22 + (1 - rate) ** 2 * sp * (1 - sp) / 22
    half = Z * math.sqrt(errors) / (se + sp - 1)
    shift = 2 * Z * Z * (rate * se * (1 - se) / 22 - (1 - rate) * sp * (1 - sp) / 22)
    assert found.low == pytest.approx(max(0.0, rate + shift - half))
    assert found.high == pytest.approx(min(1.0, rate + shift + half))


def test_the_interval_is_clipped_after_its_shift() -> None:
    """Below 0, the rate is shifted as it is: 2 of 100 passes with sp 16 of 20 by the judge."""
    found = corrected_rate([1] * 2 + [0] * 98, *counted((18, 20), (16, 20)))
    n = 100 + Z * Z
    p, se, sp = (2 + Z * Z / 2) / n, 19 / 22, 17 / 22
    rate = (p + sp - 1) / (se + sp - 1)
    errors = p * (1 - p) / n + rate**2 * se * (1 - se) / 22 + (1 - rate) ** 2 * sp * (1 - sp) / 22
    shift = 2 * Z * Z * (rate * se * (1 - se) / 22 - (1 - rate) * sp * (1 - sp) / 22)
    assert rate < 0
    assert found.high == pytest.approx(max(0.0, rate + shift + Z * math.sqrt(errors) / (se + sp - 1)))
    assert "clipped after the shift" in found.method


def test_bootstrap_is_near_the_closed_form() -> None:
    """With many labels both intervals of rogan-gladen agree, and the bootstrap keeps its seed."""
    rng = np.random.default_rng(5)
    _, judged = simulated(0.6, 2000, rng)
    calibration = simulated(0.6, 1500, rng)
    closed = corrected_rate(judged, *calibration)
    drawn = corrected_rate(judged, *calibration, ci="percentile", rng=3)
    assert drawn.low == pytest.approx(closed.low, abs=0.01)
    assert drawn.high == pytest.approx(closed.high, abs=0.01)
    assert drawn.to_dict() == corrected_rate(judged, *calibration, ci="percentile", rng=3).to_dict()


def test_fixing_the_judges_rate_would_be_narrower() -> None:
    """The interval takes in the items under test: few of them widen it."""
    rng = np.random.default_rng(6)
    calibration = simulated(0.6, 400, rng)
    _, judged = simulated(0.6, 2000, rng)
    assert width(corrected_rate(judged[:50], *calibration)) > 1.5 * width(
        corrected_rate(judged, *calibration)
    )


@settings(max_examples=30)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 20), st.integers(1, 20))
def test_perfect_judge_leaves_the_rate(verdicts: list[bool], passes: int, failures: int) -> None:
    """With sensitivity and specificity 1 the corrected rate is the judge's own."""
    found = corrected_rate(verdicts, *counted((passes, passes), (failures, failures)))
    assert found == pytest.approx(sum(verdicts) / len(verdicts))
    assert found == pytest.approx(number(found.raw.value))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from(["rogan-gladen", "ppi++"]))
def test_passing_and_failing_may_be_exchanged(seed: int, method: Any) -> None:
    """Calling passes failures and failures passes gives 1 minus the rate and its ends."""
    rng = np.random.default_rng(seed)
    _, judged = simulated(0.6, 200, rng)
    truth, verdicts = simulated(0.6, 80, rng)
    one = corrected_rate(judged, truth, verdicts, method=method)
    other = corrected_rate(1 - judged, 1 - truth, 1 - verdicts, method=method)
    assert other == pytest.approx(1 - float(one))
    assert other.low == pytest.approx(1 - number(one.high))
    assert other.high == pytest.approx(1 - number(one.low))
    assert other.sensitivity == one.specificity


def test_ppi_against_its_formulas() -> None:
    """Value and λ as the paper writes them, in numpy: cov with 1/n, variance with 1/(n+N-1)."""
    rng = np.random.default_rng(8)
    _, judged = simulated(0.7, 900, rng)
    truth, verdicts = simulated(0.7, 120, rng)
    found = corrected_rate(judged, truth, verdicts, method="ppi++")
    covariance = np.cov(truth, verdicts, ddof=0)[0, 1]
    lam = covariance / ((1 + 120 / 900) * np.concatenate([verdicts, judged]).var(ddof=1))
    assert found.lam == pytest.approx(lam)
    assert found == pytest.approx(lam * judged.mean() + (truth - lam * verdicts).mean())
    assert brackets(found)
    assert width(found) < width(found.labelled_only)


def test_ppi_by_hand() -> None:
    """60 labels, 30 passes, 27 passed by the judge, which also passes 3 failures; it passes 80 of 140 others.

    cov = 27/60 - (30/60)(30/60) = 0.2; all verdicts: 110 of 200, variance 0.55·0.45·200/199 = 0.248744;
    λ = 0.2 / ((1 + 60/140)·0.248744) = 0.562828; rate = λ·80/140 + 30/60 - λ·30/60 = 0.5 + λ/14 = 0.540202.
    """
    found = corrected_rate([1] * 80 + [0] * 60, *counted((27, 30), (27, 30)), method="ppi++")
    assert found.lam == pytest.approx(0.562828, abs=1e-6)
    assert found == pytest.approx(0.540202, abs=1e-6)


def test_useless_judge_leaves_the_labels_alone() -> None:
    """A judge that is wrong more often than right gets λ = 0: the rate is that of the labels."""
    truth, verdicts = counted((10, 40), (10, 40))
    found = corrected_rate([1] * 90 + [0] * 110, truth, verdicts, method="ppi++")
    assert found.lam == 0.0
    assert found == found.labelled_only == 0.5


def test_labels_alone_have_wilsons_interval() -> None:
    """Raw rate, labelled rate, sensitivity and specificity carry score intervals, as in statsmodels."""
    found = corrected_rate([1] * 60 + [0] * 40, *counted((18, 20), (16, 20)))
    for estimate, hits, n in ((found.raw, 60, 100), (found.sensitivity, 18, 20), (found.specificity, 16, 20)):
        assert (estimate.low, estimate.high) == pytest.approx(proportion_confint(hits, n, method="wilson"))


def test_uninformative_judge_is_refused() -> None:
    """se + sp = 0.5 + 0.5 says nothing of the truth."""
    found = corrected_rate([1, 0, 1], *counted((10, 20), (10, 20)))
    assert found.value is None
    assert found.reason == "uninformative_judge"
    assert found.raw == pytest.approx(2 / 3)


@pytest.mark.parametrize("array", [list, np.array])
@pytest.mark.parametrize("method", ["rogan-gladen", "ppi++"])
def test_what_is_no_answer_is_an_abstention(array: Any, method: Any) -> None:
    """NA, N/A and CANNOT_ASSESS, in any case, are one answer; only INVALID leaves out the item."""
    truth, verdicts = ["MET"] * 40 + ["UNMET"] * 40, ["MET"] * 34 + ["UNMET"] * 46
    plain = corrected_rate(
        [*["MET", "UNMET", "MET"] * 20, *["NA"] * 3], [*truth, "MET"], [*verdicts, "NA"], method=method
    )
    found = corrected_rate(
        array([*["MET", "UNMET", "MET"] * 20, "na", "N/A", "CANNOT_ASSESS", "invalid"]),
        array([*truth, "MET", "MET"]),
        array([*verdicts, "INVALID", "cannot_assess"]),
        method=method,
    )
    assert (found.value, found.low, found.high) == (plain.value, plain.low, plain.high)
    assert (found.n, found.n_calibration, found.n_missing) == (63, 81, 2)
    assert (found.n_abstained, found.n_calibration_abstained) == (3, 1)


def abstaining(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Labels, and a judge that is right on .85 and abstains on 4% of the passes and 40% of the failures."""
    truth = (rng.random(n) < 0.6).astype(int)
    judged = np.where(rng.random(n) < 0.85, truth, 1 - truth).astype(object)
    judged[rng.random(n) < np.where(truth == 1, 0.04, 0.4)] = "CANNOT_ASSESS"
    return truth, judged


def test_abstentions_are_a_third_row_by_hand() -> None:
    """The rate is weighted least squares on three answers, with the weights 1 / (count + 1/2)."""
    truth, judged = abstaining(200, np.random.default_rng(3))
    _, tested = abstaining(900, np.random.default_rng(4))
    found = corrected_rate(tested, truth, judged)
    answers: list[Any] = [1, 0, "CANNOT_ASSESS"]
    of_pass, of_fail, q = (
        np.array([np.mean([one == answer for one in column]) for answer in answers])
        for column in (judged[truth == 1], judged[truth == 0], tested)
    )
    weights = 1 / (np.array([sum(one == a for one in [*judged, *tested]) for a in answers]) + 0.5)
    apart = (of_pass - of_fail) * weights
    wanted = apart @ (q - of_fail) / (apart @ (of_pass - of_fail))
    assert found == pytest.approx(wanted)
    assert found.labelled_only == truth.mean()
    assert found.sensitivity == pytest.approx(of_pass[0])
    share = found.raw.n / 900
    assert (found.n, found.n_calibration, found.n_missing) == (900, len(truth), 0)
    assert found.n_abstained == 900 - found.raw.n
    assert "sensitivity, abstentions as errors" in found.summary()
    assert f"the judge's own rate is {found.raw:.3f}" in found.summary()
    assert f"on the {100 * share:.0f}% of items it answered" in found.summary()


def test_ppi_takes_abstentions_as_one_half() -> None:
    """The same value and λ as numbers 0, 1/2 and 1 in the formulas, with every label."""
    truth, judged = abstaining(200, np.random.default_rng(3))
    _, tested = abstaining(900, np.random.default_rng(4))
    found = corrected_rate(tested, truth, judged, method="ppi++")
    f, g = (
        np.array([0.5 if one == "CANNOT_ASSESS" else one for one in column], float)
        for column in (judged, tested)
    )
    lam = np.cov(truth, f, ddof=0)[0, 1] / ((1 + 200 / 900) * np.concatenate([f, g]).var(ddof=1))
    assert found.lam == pytest.approx(lam)
    assert found == pytest.approx(lam * g.mean() + (truth - lam * f).mean())
    assert width(found) < width(found.labelled_only)


@pytest.mark.parametrize("method", ["rogan-gladen", "ppi++"])
def test_the_true_rate_is_covered_whatever_the_judge_leaves_out(method: Any) -> None:
    """Sixty worlds with a true rate of .60, of which the share among answered items is .70."""
    held, raw = 0, []
    for seed in range(60):
        truth, judged = abstaining(1000, np.random.default_rng(seed))
        found = corrected_rate(judged[200:], truth[:200], judged[:200], method=method)
        held += number(found.low) <= 0.6 <= number(found.high)
        raw.append(number(found.raw.value))
    assert held >= 53
    assert np.mean(raw) > 0.62


@pytest.mark.parametrize("method", ["rogan-gladen", "ppi++"])
def test_items_without_a_true_answer_are_not_in_the_rate(method: Any) -> None:
    """A judge that says NA exactly where labels do leaves the rate of the others, .75 of them passes."""
    truth = ["MET"] * 60 + ["UNMET"] * 20 + ["NA"] * 40
    found = corrected_rate([*["MET"] * 150, *["UNMET"] * 50, *["NA"] * 100], truth, truth, method=method)
    assert found == pytest.approx(0.75, abs=0.01)
    assert found.labelled_only == 0.75
    assert found.n_unanswered_labels == 40
    assert brackets(found)


def test_summary_says_the_rate_first() -> None:
    """A sentence with both rates, then the figures; a refusal says why."""
    truth, verdicts = ["MET"] * 20 + ["UNMET"] * 20, ["MET"] * 18 + ["UNMET"] * 22
    found = corrected_rate(["MET", "UNMET"] * 20, truth, verdicts)
    first, *rest = found.summary().splitlines()[1:]
    assert first.startswith(f"Corrected with rogan-gladen, the pass rate is {found:.3f} [")
    assert [line.split()[0] for line in rest if line.strip().startswith("s")] == [
        "sensitivity",
        "specificity",
    ]
    refused = corrected_rate([1, 0], truth, verdicts, method="ppi++").summary()
    assert "could not be corrected (too_few_labels); the judge's own rate is 0.500" in refused


def test_no_sequence_is_refused() -> None:
    """Nothing, and a number, are no verdicts."""
    with pytest.raises(ArgumentError, match="judge must be a sequence of labels, one per item; got NoneType"):
        corrected_rate(None, [1, 0], [1, 0])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"calib_judge must be a sequence.* got int"):
        corrected_rate([1], [1, 0], 1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"confidence_level must be.* got '0\.9'"):
        corrected_rate([1], [1, 0], [1, 0], confidence_level="0.9")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"rng must be.* got 'x'"):
        corrected_rate([1], [1, 0], [1, 0], rng="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("calibration", [([1, 1], [1, 1]), ([0, 0], [0, 1]), ([], [])])
def test_one_class_of_labels_is_refused(calibration: tuple[list[int], list[int]]) -> None:
    """Without a labelled pass, or a labelled failure, one of the judge's errors is unknown."""
    found = corrected_rate([1, 0, 1], *calibration)
    assert found.reason == "too_few_labels"
    assert found.value is None


def test_no_verdict_is_refused() -> None:
    """Nothing under test has no rate, whatever the method."""
    for method in ("rogan-gladen", "ppi++"):
        found = corrected_rate([None], *counted((30, 40), (30, 40)), method=method)
        assert (found.reason, found.n, found.n_missing) == ("no_values", 1, 0)


def test_ppi_refuses_few_labels_but_for_the_bootstrap_t() -> None:
    """49 labels are refused; by name the bootstrap-t takes them; 50 are enough."""
    judged = [1] * 60 + [0] * 40
    few = counted((22, 24), (20, 25))
    assert corrected_rate(judged, *few, method="ppi++").reason == "too_few_labels"
    by_name = corrected_rate(judged, *few, method="ppi++", ci="bootstrap-t")
    assert by_name.reason is None
    assert brackets(by_name)
    assert corrected_rate(judged, *counted((23, 25), (20, 25)), method="ppi++").reason is None


def test_ppi_refuses_clusters_by_their_number() -> None:
    """100 labels in 20 documents are 20 labelled units."""
    truth, verdicts = counted((45, 50), (42, 50))
    found = corrected_rate(
        [1, 0] * 50, truth, verdicts, method="ppi++", calib_cluster=[i % 20 for i in range(100)]
    )
    assert found.reason == "too_few_labels"


def test_chosen_labels_refuse_ppi() -> None:
    """Hand-picked items are no sample: ppi++ says what to take; rogan-gladen drops the labelled rate."""
    calibration = counted((45, 50), (42, 50))
    with pytest.raises(ArgumentError, match=r"random sample.*method='rogan-gladen'"):
        corrected_rate([1, 0], *calibration, method="ppi++", sampled="chosen")
    found = corrected_rate([1, 0], *calibration, sampled="chosen")
    assert found.value is not None
    assert found.labelled_only.reason == "not_comparable"


def test_choosing_by_truth_does_not_bend_rogan_gladen() -> None:
    """Ten times as many labelled failures leave the rate where it was."""
    few = corrected_rate([1] * 60 + [0] * 40, *counted((18, 20), (16, 20)), sampled="chosen")
    many = corrected_rate([1] * 60 + [0] * 40, *counted((18, 20), (160, 200)), sampled="chosen")
    assert many == pytest.approx(float(few))


def test_a_perfect_calibration_still_has_an_interval() -> None:
    """No error among 20 and 20 labels does not prove that there is none: the interval is not that of p."""
    found = corrected_rate([1] * 60 + [0] * 40, *counted((20, 20), (20, 20)))
    assert width(found) > width(found.raw)


def test_clusters_of_copies_are_one_item() -> None:
    """Each item four times over, in clusters, is as uncertain as once, but for t in place of z."""
    rng = np.random.default_rng(4)
    _, judged = simulated(0.6, 300, rng)
    truth, verdicts = simulated(0.6, 150, rng)
    for method in ("rogan-gladen", "ppi++"):
        once = corrected_rate(judged, truth, verdicts, method=method)
        copied = corrected_rate(
            np.repeat(judged, 4),
            np.repeat(truth, 4),
            np.repeat(verdicts, 4),
            method=method,
            cluster=np.repeat(np.arange(300), 4),
            calib_cluster=np.repeat(np.arange(1000, 1150), 4),
        )
        assert copied == pytest.approx(float(once), abs=0.002)
        assert width(copied) == pytest.approx(width(once), rel=0.06)


def test_shared_clusters_count_once() -> None:
    """Labelled and tested items of the same documents vary together, which the interval takes in."""
    rng = np.random.default_rng(9)
    truth, verdicts = simulated(0.6, 400, rng)
    ids = np.arange(400) // 2
    shared = corrected_rate(verdicts, truth, verdicts, cluster=ids, calib_cluster=ids)
    apart = corrected_rate(verdicts, truth, verdicts, cluster=ids, calib_cluster=ids + 1000)
    assert shared == apart
    assert width(shared) != pytest.approx(width(apart), rel=0.01)
    assert brackets(
        corrected_rate(verdicts, truth, verdicts, cluster=ids, calib_cluster=ids, ci="percentile")
    )


def test_one_cluster_has_no_interval() -> None:
    """A single document does not vary."""
    truth, verdicts = counted((18, 20), (16, 20))
    found = corrected_rate([1, 0, 1], truth, verdicts, calib_cluster=["a"] * 40)
    assert found.value is not None
    assert (found.low, found.reason) == (None, "too_few_units")


def test_missing_labels_are_left_out_and_counted() -> None:
    """None drops a labelled pair; without a verdict, it is an abstention."""
    truth, verdicts = counted((18, 20), (16, 20))
    plain = corrected_rate([1, "CANNOT_ASSESS", 1, 0], [*truth, 1], [*verdicts, "NA"])
    holes = corrected_rate([1, None, 1, 0], [*truth, None, 1], [*verdicts, 1, math.nan])
    assert (holes.value, holes.low, holes.high) == (plain.value, plain.low, plain.high)
    assert (holes.n_missing, holes.n, holes.n_calibration) == (1, 4, 41)
    assert (holes.n_abstained, holes.n_calibration_abstained) == (1, 1)


def test_result_serialises() -> None:
    """All fields go into JSON, defined or not."""
    for verdicts in ([1, 0, 1], []):
        found = corrected_rate(verdicts, *counted((18, 20), (16, 20)))
        assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["correction"] == "rogan-gladen"


def test_no_interval_on_request() -> None:
    """`ci=None` gives the rate alone."""
    for method in ("rogan-gladen", "ppi++"):
        found = corrected_rate([1, 0, 1], *counted((28, 30), (26, 30)), method=method, ci=None)
        assert found.value is not None
        assert (found.low, found.reason) == (None, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "judgy"}, "method must be.* got 'judgy'"),
        ({"sampled": "all"}, "sampled must be.* got 'all'"),
        ({"ci": "bca"}, "ci must be.* got 'bca'"),
        ({"ci": "bootstrap-t"}, "requires method='ppi\\+\\+'"),
        ({"confidence_level": 95}, "confidence_level must be.* got 95"),
        ({"n_resamples": 0}, "n_resamples must be.* got 0"),
        ({"cluster": [1]}, "cluster has 1 ids"),
        ({"cluster": [1, 2, 3], "calib_cluster": [1]}, "calib_cluster has 1 ids"),
    ],
)
def test_faulty_options_are_refused(options: dict[str, Any], message: str) -> None:
    """What is given and what is allowed stand in the message."""
    with pytest.raises(ArgumentError, match=message):
        corrected_rate([1, 0, 1], *counted((18, 20), (16, 20)), **options)


def test_unequal_calibration_columns_are_refused() -> None:
    """Labels and verdicts come in pairs, and are binary."""
    with pytest.raises(ArgumentError, match="calib_truth has 2 labels but calib_judge has 1"):
        corrected_rate([1], [1, 0], [1])
    with pytest.raises(ArgumentError, match="not on the scale"):
        corrected_rate(["maybe"], [1, 0], [1, 0])


@pytest.mark.parametrize("method", ["rogan-gladen", "ppi++"])
@pytest.mark.parametrize("prevalence", [0.5, 0.9])
def test_nominal_95_per_cent_holds(method: Any, prevalence: float) -> None:
    """In 400 simulated samples of 60 labels the interval holds the rate in 92 % or more."""
    rng = np.random.default_rng(11)
    held, n = 0, 0
    for _ in range(400):
        _, judged = simulated(prevalence, 500, rng)
        found = corrected_rate(judged, *simulated(prevalence, 60, rng), method=method)
        if found.low is not None:
            n += 1
            held += found.low <= prevalence <= number(found.high)
    assert n > 380
    assert held / n >= 0.92


@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0])
def test_fixed_lambda_by_hand(lam: float) -> None:
    """lam mean(f_U) + mean(Y - lam f_L), its error from lam² var(f_U)/N + var(Y - lam f_L)/n."""
    rng = np.random.default_rng(5)
    truth, judged = simulated(0.6, 400, rng)
    _, tested = simulated(0.6, 3000, rng)
    found = corrected_rate(tested, truth, judged, method="ppi++", lam=lam)
    assert found.lam == lam
    assert found == pytest.approx(lam * tested.mean() + (truth - lam * judged).mean())
    variance = lam**2 * tested.var(ddof=1) / 3000 + (truth - lam * judged).var(ddof=1) / 400
    # The interval is that of the table with a quarter of an item more in each cell.
    assert number(found.se) == pytest.approx(math.sqrt(variance), rel=0.02)
    drawn = corrected_rate(tested, truth, judged, method="ppi++", lam=lam, ci="percentile")
    assert number(drawn.se) == pytest.approx(math.sqrt(variance), rel=0.1)


def test_fixed_lambda_of_zero_is_the_labels_alone() -> None:
    """lam=0 ignores the judge; the tuned one is never worse."""
    rng = np.random.default_rng(6)
    truth, judged = simulated(0.6, 100, rng)
    _, tested = simulated(0.6, 3000, rng)
    alone = corrected_rate(tested, truth, judged, method="ppi++", lam=0.0)
    tuned = corrected_rate(tested, truth, judged, method="ppi++")
    assert alone == pytest.approx(truth.mean())
    assert number(tuned.se) < number(alone.se)
    assert tuned.lam is not None and 0 < tuned.lam < 1


@pytest.mark.parametrize("lam", [-0.1, 1.1, float("nan"), True, "1"])
def test_lambda_outside_its_range_is_refused(lam: Any) -> None:
    """It is a number from 0 to 1, and belongs to ppi++."""
    with pytest.raises(ArgumentError, match="lam must be"):
        corrected_rate([1, 0], [1, 0], [1, 0], method="ppi++", lam=lam)
    with pytest.raises(ArgumentError, match=r"lam applies only to method='ppi\+\+'"):
        corrected_rate([1, 0], [1, 0], [1, 0], lam=0.5)
