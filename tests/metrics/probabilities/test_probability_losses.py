"""Brier score, its parts and log loss: scikit-learn, hand-worked cases, laws."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings, strategies as st
from scipy import stats

from autorubric.errors import ArgumentError
from autorubric.metrics import Interval, Nominal, Ordinal, brier, brier_parts, log_loss
from tests.metrics.asserting import brackets, number, width

RNG = np.random.default_rng(11)
PROB = RNG.random(200)
TRUTH = (RNG.random(200) < PROB).astype(int)
MANY = RNG.dirichlet([1.0, 1.0, 1.0], 150)
CLASS = np.array([RNG.choice(3, p=row) for row in MANY])


def test_brier_and_log_loss_as_scikit_learn():
    """One column, two columns and more give scikit-learn's figures."""
    two = np.column_stack([1 - PROB, PROB])
    assert brier(TRUTH, PROB) == pytest.approx(sk.brier_score_loss(TRUTH, PROB))
    assert brier(TRUTH, two) == pytest.approx(sk.brier_score_loss(TRUTH, two))
    assert brier(CLASS, MANY) == pytest.approx(sk.brier_score_loss(CLASS, MANY))
    assert log_loss(TRUTH, PROB) == pytest.approx(sk.log_loss(TRUTH, PROB))
    assert log_loss(TRUTH, two) == pytest.approx(sk.log_loss(TRUTH, PROB))
    assert log_loss(CLASS, MANY) == pytest.approx(sk.log_loss(CLASS, MANY))


def test_losses_by_hand():
    """Three forecasts: (0.2² + 0.3² + 0.6²) / 3 = 0.49 / 3, and -(ln 0.8 + ln 0.7 + ln 0.4) / 3."""
    truth, prob = [1, 0, 1], [0.8, 0.3, 0.4]
    assert brier(truth, prob) == pytest.approx(0.49 / 3)
    assert log_loss(truth, prob) == pytest.approx(-(np.log(0.8) + np.log(0.7) + np.log(0.4)) / 3)
    # (0.5² + 0.3² + 0.2²) + (0.1² + 0.1² + 0.2²) = 0.38 + 0.06, over two.
    assert brier([0, 2], [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]) == pytest.approx(0.22)
    assert brier([0, 1], [0.5, 0.5]) == 0.25


def test_method_says_the_form():
    """The estimate says which of the two definitions of the Brier score it is."""
    assert "positive class" in brier(TRUTH, PROB).method
    assert "sum over 3 classes" in brier(CLASS, MANY).method


def test_an_impossible_event_makes_the_log_loss_infinite():
    """P = 0 of what happened is undefined with a reason; a clip makes it a number and is named."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = log_loss([1, 0], [0.0, 0.0])
        assert (found.value, found.reason, found.n) == (None, "infinite_loss", 2)
        assert log_loss([0, 1], [[0.0, 1.0], [0.5, 0.5]]).reason == "infinite_loss"
        clipped = log_loss([1, 0], [0.0, 0.0], clip=0.01)
    assert clipped == pytest.approx(-(np.log(0.01) + np.log(0.99)) / 2)
    assert "0.01" in clipped.method
    perfect = log_loss([1, 0], [1.0, 0.0])
    assert str(perfect) == "0.0"
    for wrong in (0.0, 0.5, -1.0):
        with pytest.raises(ArgumentError, match="clip"):
            log_loss([1], [0.5], clip=wrong)


def test_clip_as_scikit_learn():
    """Clipped at the epsilon of a double the figure is scikit-learn's."""
    eps = float(np.finfo(float).eps)
    truth, prob = [1, 0, 1, 0], [0.0, 0.2, 0.9, 1.0]
    assert log_loss(truth, prob, clip=eps) == pytest.approx(sk.log_loss(truth, prob))


def test_missing_observations_are_dropped_and_counted():
    """A missing truth or probability drops its row on any form."""
    found = brier([1, None, 0, float("nan"), 1], [0.5, 0.5, None, 0.1, 1.0])
    assert (found.value, found.n, found.n_missing) == (0.125, 2, 3)
    rows = [[0.5, 0.25, 0.25], None, [0.2, None, 0.8], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    kept = brier([0, 1, 2, -1, 1], rows)
    assert (kept.n, kept.n_missing) == (2, 3)
    assert kept == pytest.approx((0.25 + 0.0625 + 0.0625) / 2)
    for empty in ([], [None]):
        for function in (brier, log_loss):
            assert function(empty, empty).reason == "no_pairs"


@pytest.mark.parametrize(
    ("truth", "prob", "words"),
    [
        ([1], [1.2], r"1\.2"),
        ([1], [-0.1], "logits"),
        ([0], [[0.5, 0.3]], "sums to 0.8"),
        ([0, 1], [[0.5, 0.5], [0.2, 0.3, 0.5]], "rows of"),
        ([0], [[1.0]], "K >= 2"),
        ([2], [0.5], "not on the scale"),
        ([3], [[0.2, 0.3, 0.5]], "code from 0 to 2"),
        ([0.5], [[0.2, 0.3, 0.5]], "code from 0 to 2"),
        (["a"], [[0.2, 0.3, 0.5]], "must contain numbers"),
        ([1, 0], [0.5], "one of each"),
        ([1], np.zeros((1, 2, 2)), "shape"),
        (["a"], [[0.2, 0.8]], "must contain numbers"),
        ([1], ["x"], "must contain numbers"),
        ([1], [float("inf")], "finite numbers"),
    ],
)
def test_what_is_no_forecast_is_refused(truth, prob, words):
    """Numbers outside [0, 1], rows that do not sum to 1 and unknown classes are refused in words."""
    with pytest.raises(ArgumentError, match=words):
        brier(truth, prob)


def test_truth_by_labels():
    """Declared labels stand in the order of the columns; the last of two is the positive one."""
    scale = Ordinal(["lo", "mid", "hi"])
    labels = [scale.labels[code] for code in CLASS]
    assert brier(labels, MANY.tolist(), scale=scale) == pytest.approx(float(brier(CLASS, MANY)))
    assert brier(["lo", None], MANY[:2].tolist(), scale=scale).n_missing == 1
    words = ["yes" if one else "no" for one in TRUTH]
    assert brier(words, PROB) == brier(TRUTH, PROB)
    assert brier(words, PROB, scale=Nominal(["no", "yes"])) == brier(TRUTH, PROB)
    assert brier(pd.Series(TRUTH), pd.DataFrame({"no": 1 - PROB, "yes": PROB})) == pytest.approx(
        float(brier(TRUTH, PROB))
    )
    for wrong in (Nominal(["a", "b", "c"]), Interval(0, 1)):
        with pytest.raises(ArgumentError):
            brier(words, PROB, scale=wrong)
    with pytest.raises(ArgumentError, match="3 columns"):
        brier(["a"], [[0.2, 0.3, 0.5]], scale=Nominal("ab"))


def test_rounding_of_probabilities_is_forgiven():
    """Three decimals that sum to 0.999, and a float32 a hair above 1, are probabilities."""
    assert brier([0], [[0.333, 0.333, 0.333]]).is_defined
    assert brier([1], np.array([1.0 + 1e-7])) == 0.0


def score_interval(share, n):
    """Wilson's interval with the quantile of t with n - 1."""
    z = stats.t.ppf(0.975, n - 1)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - half, middle + half


def test_intervals_of_losses():
    """Intervals hold the value, stay within bounds, agree with the bootstrap, and know clusters."""
    for function, args in ((brier, (TRUTH, PROB)), (brier, (CLASS, MANY)), (log_loss, (TRUTH, PROB))):
        plain, drawn = function(*args), function(*args, ci="percentile")
        assert brackets(plain)
        assert width(plain) == pytest.approx(width(drawn), rel=0.15)
        assert number(plain.se) == pytest.approx(number(drawn.se), rel=0.1)
    twice = brier([*TRUTH, *TRUTH], [*PROB, *PROB], cluster=[*range(200), *range(200)])
    assert number(twice.se) == pytest.approx(number(brier(TRUTH, PROB).se))
    assert brier([1], [0.3]).reason == "too_few_units"
    assert brier(TRUTH, PROB, cluster=[0] * 200).reason == "too_few_units"
    none_wrong = brier([1, 0, 1], [1.0, 0.0, 1.0])
    assert (none_wrong.low, none_wrong.value) == (0.0, 0.0)
    assert number(none_wrong.high) > 0.3
    # Losses that are all alike: Wilson's interval of 0.25 with one trial an observation, quantile t with 2.
    even = brier([1, 0, 1], [0.5] * 3)
    assert (even.low, even.high) == pytest.approx(score_interval(0.25, 3))
    means = brier([1] * 30, [0.1, 0.2, 0.6] * 10, cluster=np.arange(30) // 3)
    assert (means.low, means.high) == pytest.approx(score_interval(number(means.value), 10))
    with pytest.raises(ArgumentError, match="percentile"):
        brier(TRUTH, PROB, ci="smoothed")


def test_same_seed_same_interval():
    """The seed fixes the resampling."""
    found = [brier(TRUTH, PROB, ci="percentile", rng=seed).low for seed in (3, 3, 4)]
    assert found[0] == found[1] != found[2]


def test_murphy_1973_by_hand():
    """Forecasts 0.2 × 4 (one happens) and 0.7 × 4 (three happen).

    Brier: (0.64 + 3 · 0.04 + 3 · 0.09 + 0.49) / 8 = 1.52 / 8 = 0.19. Rates .25 and .75, base rate .5:
    reliability (4 · .05² + 4 · .05²) / 8 = .0025, resolution .25² = .0625, uncertainty .25.
    """
    found = brier_parts([1, 0, 0, 0, 1, 1, 1, 0], [0.2] * 4 + [0.7] * 4)
    assert found.brier == pytest.approx(0.19)
    assert found.reliability == pytest.approx(0.0025)
    assert found.resolution == pytest.approx(0.0625)
    assert found.uncertainty == 0.25
    assert (found.within_variance.value, found.within_covariance.value) == (0.0, 0.0)


def _sum(parts):
    return float(
        parts.reliability
        - parts.resolution
        + parts.uncertainty
        + parts.within_variance
        - parts.within_covariance
    )


forecasts = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.55, 0.9, 1.0])),
    min_size=1,
    max_size=40,
)


@settings(deadline=None)
@given(forecasts, st.sampled_from([None, 1, 2, 3, 10]), st.sampled_from(["width", "mass"]))
def test_parts_add_up_to_the_score(pairs, bins, strategy):
    """Reliability - resolution + uncertainty, and the within-bin terms, are the Brier score."""
    truth, prob = zip(*pairs, strict=True)
    found = brier_parts(truth, prob, bins=bins, strategy=strategy, ci=None)
    assert _sum(found) == pytest.approx(float(found.brier), abs=1e-12)
    if bins is None:
        assert found.within_variance == pytest.approx(0.0, abs=1e-12)
    assert 0 <= found.resolution <= float(found.uncertainty) + 1e-12


@settings(deadline=None)
@given(forecasts)
def test_complement_and_order_change_no_loss(pairs):
    """Forecasting the opposite of the opposite, and shuffling rows, leave the losses alone."""
    truth, prob = (np.array(side) for side in zip(*pairs, strict=True))
    value = float(brier(truth, prob, ci=None))
    assert brier(1 - truth, 1 - prob, ci=None) == pytest.approx(value)
    assert brier(truth[::-1], prob[::-1], ci=None) == pytest.approx(value)
    assert 0.0 <= value <= 1.0
    inside = np.clip(prob, 0.05, 0.95)
    loss = float(log_loss(truth, inside, ci=None))
    assert log_loss(1 - truth, 1 - inside, ci=None) == pytest.approx(loss)
    assert log_loss(truth, np.column_stack([1 - inside, inside]), ci=None) == pytest.approx(loss)


@pytest.mark.parametrize("bins", [None, 5])
@pytest.mark.parametrize("clustered", [False, True])
def test_delta_errors_of_parts_are_those_of_the_bootstrap(bins, clustered):
    """The standard error in closed form agrees with resampling the observations or clusters."""
    rng = np.random.default_rng(2)
    prob = rng.choice([0.1, 0.3, 0.5, 0.8], 4000) if bins is None else rng.random(4000)
    truth = (rng.random(4000) < 0.2 + 0.5 * prob).astype(int)
    cluster = np.arange(4000) // 4 if clustered else None
    plain = brier_parts(truth, prob, bins=bins, cluster=cluster)
    drawn = brier_parts(truth, prob, bins=bins, ci="percentile", n_resamples=400, cluster=cluster)
    for name in ("reliability", "resolution", "within_variance", "within_covariance", "uncertainty"):
        one, other = getattr(plain, name), getattr(drawn, name)
        if bins is None and name.startswith("within"):
            # Within forecasts that are equal nothing varies.
            assert (one.value, one.low, one.reason, other.reason) == (0.0, None, "no_variance", "no_variance")
            continue
        assert number(one.se) == pytest.approx(number(other.se), rel=0.2, abs=1e-12)
        assert number(one.low) <= number(one.value) <= number(one.high)


def test_uncertainty_follows_from_the_base_rate():
    """At a base rate near 1/2 its interval ends at 1/4; one unit has none."""
    found = brier_parts([1, 0] * 20, [0.5] * 40).uncertainty
    assert found.value == found.high == 0.25
    assert number(found.low) < 0.25
    alone = brier_parts([1, 0], [0.5, 0.5], cluster=["x", "x"]).uncertainty
    assert (alone.value, alone.reason) == (0.25, "too_few_units")


def test_parts_of_more_classes_are_refused_and_of_none_undefined():
    """Three columns are refused with what to do; no observation gives parts with a reason."""
    with pytest.raises(ArgumentError, match="truth == k"):
        brier_parts(CLASS, MANY)
    nothing = brier_parts([None], [0.5])
    assert {part["reason"] for part in nothing.to_dict().values() if isinstance(part, dict)} == {"no_pairs"}
    json.dumps(nothing.to_dict() | brier_parts(TRUTH, PROB, bins=4).to_dict(), allow_nan=False)
    two = brier_parts(TRUTH, np.column_stack([1 - PROB, PROB]), bins=4)
    assert two.reliability == brier_parts(TRUTH, PROB, bins=4).reliability
