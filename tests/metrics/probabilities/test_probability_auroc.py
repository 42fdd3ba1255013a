"""Area under the ROC curve: scikit-learn, DeLong by definition, laws of ranks."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings, strategies as st

from autorubric.metrics import auroc
from autorubric.metrics.figures.auroc import rank_by, score_ends
from tests.metrics.asserting import brackets, number, width

RNG = np.random.default_rng(13)
TRUTH = RNG.integers(0, 2, 160)
PROB = np.clip(RNG.normal(0.4 + 0.2 * TRUTH, 0.2), 0, 1).round(2)
MANY = RNG.dirichlet([1.0, 1.0, 1.0], 150)
CLASS = np.array([RNG.choice(3, p=row) for row in MANY])


def test_area_as_scikit_learn():
    """Ties half, two columns, and the mean of classes against the rest."""
    expected = sk.roc_auc_score(TRUTH, PROB)
    assert auroc(TRUTH, PROB) == pytest.approx(expected)
    assert auroc(TRUTH, np.column_stack([1 - PROB, PROB])) == pytest.approx(expected)
    assert auroc(CLASS, MANY) == pytest.approx(sk.roc_auc_score(CLASS, MANY, multi_class="ovr"))
    assert "3 of 3 classes" in auroc(CLASS, MANY).method


def test_area_by_hand():
    """Positives .8 .4, negatives .4 .1 .5: pairs won 3 + 1 of 6, one level: (4 + ½) / 6."""
    assert auroc([1, 1, 0, 0, 0], [0.8, 0.4, 0.4, 0.1, 0.5]) == pytest.approx(4.5 / 6)


def test_one_class_is_undefined():
    """Without a positive or a negative there is no pair to order; neither in any class."""
    for truth in ([1, 1], [0, 0]):
        assert auroc(truth, [0.2, 0.4]).reason == "single_class"
    assert auroc([2, 2], [[0.2, 0.3, 0.5]] * 2).reason == "single_class"
    assert auroc([], []).reason == "no_pairs"
    assert auroc([-1], [[0.2, 0.3, 0.5]]).reason == "no_pairs"


def test_classes_that_do_not_occur_are_left_out_visibly():
    """Of four classes two occur: the mean is over those two, and the method counts them."""
    prob = np.column_stack([MANY[:, 0], MANY[:, 1] + MANY[:, 2], np.zeros(150), np.zeros(150)])
    found = auroc((CLASS > 0).astype(int), prob)
    assert "2 of 4 classes" in found.method
    assert found == pytest.approx(sk.roc_auc_score(CLASS > 0, MANY[:, 1] + MANY[:, 2]))


def _delong(truth, prob):
    """Equation 4 of DeLong et al. by its definition, over all pairs."""
    ours, others = prob[truth == 1], prob[truth == 0]
    kernel = (ours[:, None] > others) + 0.5 * (ours[:, None] == others)
    return np.sqrt(kernel.mean(1).var(ddof=1) / len(ours) + kernel.mean(0).var(ddof=1) / len(others))


def test_error_is_delongs():
    """The standard error is DeLong's, and that of the bootstrap nearly; the interval is its logit's."""
    found = auroc(TRUTH, PROB)
    expected = _delong(TRUTH, PROB)
    assert found.se == pytest.approx(expected)
    assert number(auroc(TRUTH, PROB, ci="percentile").se) == pytest.approx(expected, rel=0.1)
    area = float(found)
    logit, half = np.log(area / (1 - area)), 1.959964 * expected / (area * (1 - area))
    assert found.low == pytest.approx(1 / (1 + np.exp(half - logit)), rel=1e-6)
    assert found.high == pytest.approx(1 / (1 + np.exp(-half - logit)), rel=1e-6)


def test_error_over_clusters_and_classes_is_that_of_the_bootstrap():
    """Clusters of repeated rows count once; the mean over classes has the error of its resamples."""
    twice = auroc([*TRUTH, *TRUTH], [*PROB, *PROB], cluster=[*range(160)] * 2)
    assert number(twice.se) == pytest.approx(_delong(TRUTH, PROB), rel=0.01)
    assert brackets(twice)
    drawn = auroc(CLASS, MANY, ci="percentile", cluster=np.arange(150) // 2)
    assert number(auroc(CLASS, MANY, cluster=np.arange(150) // 2).se) == pytest.approx(
        number(drawn.se), rel=0.15
    )
    assert auroc(TRUTH, PROB, cluster=[1] * 160).reason == "too_few_units"


def test_a_perfect_area_has_an_interval():
    """At 1 and 0, with one observation of a class, and with one probability throughout a score interval."""
    perfect = auroc([1] * 10 + [0] * 10, [0.9] * 10 + [0.1] * 10)
    assert (perfect.value, perfect.high) == (1.0, 1.0)
    assert 0.75 < number(perfect.low) < 0.95
    reverse = auroc([0] * 10 + [1] * 10, [0.9] * 10 + [0.1] * 10)
    assert (reverse.low, reverse.high) == pytest.approx((0.0, 1 - number(perfect.low)))
    assert width(auroc([1, 0, 0, 0], [0.5, 0.2, 0.7, 0.1])) > 0.5
    assert brackets(auroc(TRUTH, [0.3] * 160))
    more = auroc(([1] * 10 + [0] * 10) * 2, ([0.9] * 10 + [0.1] * 10) * 2, cluster=[*range(20)] * 2)
    assert more.low == pytest.approx(perfect.low)


def test_score_ends_solve_their_equation():
    """At each end the distance is z standard errors of Hanley and McNeil's variance there."""
    value, m, n, z = 0.8, 12, 20, 1.96
    size = (m + n) / 2 - 1
    for theta in score_ends(value, m, n, z):
        variance = theta * (1 - theta) / (m * n)
        variance *= 1 + size * (1 - theta) / (2 - theta) + size * theta / (1 + theta)
        assert abs(theta - value) == pytest.approx(z * np.sqrt(variance))


pairs_of = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20)), min_size=2, max_size=40)


@settings(deadline=None)
@given(pairs_of, st.randoms())
def test_laws_of_ranks(pairs, random):
    """Negation complements the area, monotone maps and the order of rows leave it alone."""
    truth, tenths = (np.array(side) for side in zip(*pairs, strict=True))
    prob = tenths / 20
    found = auroc(truth, prob, ci=None)
    if found.value is None:
        assert len(set(truth.tolist())) == 1
        return
    area = float(found)
    assert area == pytest.approx(sk.roc_auc_score(truth, prob))
    assert auroc(truth, 1 - prob, ci=None) == pytest.approx(1 - area)
    assert auroc(1 - truth, prob, ci=None) == pytest.approx(1 - area)
    assert auroc(truth, prob**3, ci=None) == pytest.approx(area)
    random.shuffle(pairs)
    truth, tenths = (np.array(side) for side in zip(*pairs, strict=True))
    assert auroc(truth, tenths / 20, ci=None) == pytest.approx(area)


def test_resamples_are_the_area_of_the_resampled_rows():
    """Weights that count rows give the area of the rows written out so often."""
    drawn = RNG.integers(0, 160, 160)
    weights = np.bincount(drawn, minlength=160).astype(float)[None, :]
    found = rank_by(PROB, TRUTH == 1).area(weights)[0]
    assert found == pytest.approx(sk.roc_auc_score(TRUTH[drawn], PROB[drawn]))
