"""Dawid and Skene's model: a naive EM, and its laws."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from autorubric.errors import ArgumentError
from autorubric.metrics import Nominal, dawid_skene, majority_vote
from tests.metrics.published import OBSERVERS, READINGS


def _close(found: Any, expected: Any, atol: float = 1e-9) -> None:
    """Arrays that must be there, and equal but for rounding."""
    np.testing.assert_allclose(found, expected, atol=atol)


def _naive(codes, rater, size, iterations, smoothing=0.0):
    """EM as the paper writes it, item by item, on probabilities: (posterior, prior, confusion)."""
    n_items, n_raters = len(codes), max(rater) + 1
    votes = np.zeros((n_items, n_raters, size))
    for item, row in enumerate(codes):
        for column, code in enumerate(row):
            if code >= 0:
                votes[item, rater[column], code] += 1
    posterior = votes.sum(1) / votes.sum((1, 2))[:, None]
    for _ in range(iterations):
        prior = (posterior.sum(0) + smoothing) / (n_items + smoothing * size)
        confusion = np.zeros((n_raters, size, size))
        for r in range(n_raters):
            for k in range(size):
                cells = np.array([(posterior[:, k] * votes[:, r, c]).sum() for c in range(size)]) + smoothing
                confusion[r, k] = cells / cells.sum() if cells.sum() else 1 / size
        for item in range(n_items):
            joint = prior * np.prod(confusion ** votes[item][:, None, :], axis=(0, 2))
            posterior[item] = joint / joint.sum()
    return posterior, prior, confusion


def _votes(seed, n=200, raters=5, size=3, right=0.7, missing=0.2):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, size, n)
    codes = np.where(rng.random((n, raters)) < right, truth[:, None], rng.integers(0, size, (n, raters)))
    codes[rng.random(codes.shape) < missing] = -1
    codes[(codes < 0).all(1), 0] = 0
    return truth, codes


def test_raters_and_categories_are_named():
    """Seven readings by five observers, four grades: a confusion matrix for each observer."""
    found = dawid_skene(READINGS, raters=OBSERVERS)
    assert found.prior is not None
    assert found.prior.sum() == pytest.approx(1.0)
    assert found.categories == (1, 2, 3, 4)
    assert found.raters == (1, 2, 3, 4, 5)
    assert (found.n, found.converged) == (45, True)
    assert found.confusion is not None and found.confusion.shape == (5, 4, 4)


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("iterations", [1, 2, 30])
def test_it_is_the_naive_algorithm_on_the_patients(iterations, smoothing):
    """After any number of iterations everything equals the algorithm written out."""
    codes = [[grade - 1 for grade in row] for row in READINGS]
    rater = [observer - 1 for observer in OBSERVERS]
    posterior, prior, confusion = _naive(codes, rater, 4, iterations, smoothing)
    found = dawid_skene(
        READINGS, raters=OBSERVERS, smoothing=smoothing, max_iterations=iterations, tolerance=0.0
    )
    assert found.iterations == iterations
    _close(found.posterior, posterior)
    _close(found.prior, prior)
    _close(found.confusion, confusion)


@pytest.mark.parametrize(("size", "raters"), [(2, 3), (3, 5), (4, 12), (12, 9)])
def test_it_is_the_naive_algorithm_with_missing_votes(size, raters):
    """Also with missing votes, and with so many patterns that they are told apart by sorting."""
    _, codes = _votes(size, raters=raters, size=size)
    posterior, prior, confusion = _naive(codes, list(range(raters)), size, 15)
    found = dawid_skene(codes, labels=size, max_iterations=15, tolerance=0.0)
    _close(found.posterior, posterior)
    _close(found.prior, prior)
    _close(found.confusion, confusion)


def test_one_iteration_by_hand():
    """Three raters, items a a b and b b b.

    Start: item 1 is a with 2/3, item 2 with 0. p_a = (2/3 + 0)/2 = 1/3. Rater 1 on class a: only item 1, so a
    always: π = (1, 0); on class b: weights 1/3 (said a) and 1 (said b): (1/4, 3/4). Rater 2 the same. Rater 3
    says b always: (0, 1) on both. Item 1: a: 1/3 · 1 · 1 · 1 = 1/3; b: 2/3 · 1/4 · 1/4 · 1 = 1/24; so a has
    (1/3) / (1/3 + 1/24) = 8/9. Item 2: a: 0; b: 2/3 · 9/16 = 3/8. Likelihood 3/8 · 3/8.
    """
    found = dawid_skene([["a", "a", "b"], ["b", "b", "b"]], max_iterations=1)
    _close(found.posterior, [[8 / 9, 1 / 9], [0, 1]])
    _close(found.prior, [1 / 3, 2 / 3])
    _close(found.confusion, [[[1, 0], [1 / 4, 3 / 4]]] * 2 + [[[0, 1], [0, 1]]])
    _close(found.support, [[2 / 3, 4 / 3]] * 3)
    assert found.log_likelihood == pytest.approx(2 * math.log(3 / 8))
    assert found.labels == ["a", "b"]


def test_posterior_and_estimates_belong_together():
    """The posterior follows from prior and confusion by Bayes; rows add to 1."""
    _, codes = _votes(5)
    found = dawid_skene(codes, labels=3)
    assert found.posterior is not None and found.confusion is not None and found.prior is not None
    _close(found.posterior.sum(1), 1)
    _close(found.confusion.sum(2), 1)
    likelihood = found.prior * np.prod(
        [found.confusion[r][:, codes[0, r]] for r in range(5) if codes[0, r] >= 0], axis=0
    )
    _close(found.posterior[0], likelihood / likelihood.sum())


def test_likelihood_rises_with_every_iteration():
    """EM never lowers the likelihood."""
    _, codes = _votes(8, right=0.5)
    rising = [
        dawid_skene(codes, labels=3, max_iterations=steps, tolerance=0.0).log_likelihood or math.nan
        for steps in range(1, 25)
    ]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(rising))


def test_good_raters_outvote_a_poor_majority():
    """Two raters of .95 against three of .6: the model is right more often than the majority."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 4000)
    right = rng.random((4000, 5)) < [0.95, 0.95, 0.6, 0.6, 0.6]
    codes = np.where(right, truth[:, None], 1 - truth[:, None])
    found = dawid_skene(codes)
    assert found.confusion is not None
    modelled = np.mean(np.array(found.labels) == truth)
    assert modelled > np.mean(np.array(majority_vote(codes)) == truth) + 0.03
    _close(found.confusion[:, 0, 0], [0.95, 0.95, 0.6, 0.6, 0.6], atol=0.04)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_order_and_names_do_not_matter(seed):
    """Items, raters and categories may come in any order; the outcome comes in that order."""
    rng = np.random.default_rng(seed)
    _, codes = _votes(seed, n=60)
    items, raters, names = rng.permutation(60), rng.permutation(5), rng.permutation(3)
    renamed = np.where(codes >= 0, names[codes], -1)[items][:, raters]
    kept: dict[str, Any] = {"labels": 3, "smoothing": 0.1, "max_iterations": 20}
    plain, moved = dawid_skene(codes, **kept), dawid_skene(renamed, **kept)
    assert plain.posterior is not None and moved.posterior is not None
    assert plain.confusion is not None and moved.confusion is not None
    _close(moved.posterior[:, names], plain.posterior[items], atol=1e-8)
    _close(moved.confusion[:, names][:, :, names], plain.confusion[raters], atol=1e-8)


def test_items_written_twice_change_nothing_but_their_number():
    """Every item twice: the same estimates, twice the logarithm of the likelihood."""
    _, codes = _votes(3)
    once = dawid_skene(codes, labels=3, max_iterations=40)
    twice = dawid_skene(np.repeat(codes, 2, axis=0), labels=3, max_iterations=40)
    _close(twice.confusion, once.confusion, atol=1e-10)
    assert twice.log_likelihood == pytest.approx(2 * (once.log_likelihood or math.nan))


def test_smoothing_moves_towards_equal_shares():
    """Much smoothing leaves nothing of the votes; little keeps zeros away."""
    found = dawid_skene(READINGS, raters=OBSERVERS, smoothing=1e6)
    _close(found.confusion, 0.25, atol=1e-3)
    little = dawid_skene(READINGS, raters=OBSERVERS, smoothing=0.01)
    assert little.confusion is not None
    assert little.confusion.min() > 0


def test_items_without_votes_and_ties_have_no_label():
    """Nobody's item has the prior and no label, and weighs nothing; so has one that could be either."""
    ratings = [["a", "a", "a"], ["b", "b", "b"], [None, None, None]]
    found = dawid_skene(ratings)
    assert found.labels == ["a", "b", None]
    assert (found.n, found.n_missing) == (2, 1)
    assert found.posterior is not None
    _close(found.posterior[2], found.prior)
    _close(found.confusion, dawid_skene(ratings[:2]).confusion)
    assert dawid_skene([["a", "b"], ["b", "a"]]).labels == [None, None]


def test_without_votes_nothing_is_defined():
    """No vote: labels are None, figures are None, the reason says so."""
    for ratings in ([], [[None, None]]):
        found = dawid_skene(ratings, scale=Nominal("ab"))
        assert (found.posterior, found.prior, found.confusion) == (None, None, None)
        assert found.reason == "no_ratings"
        assert found.labels == [None] * len(ratings)
        json.dumps(found.to_dict(), allow_nan=False)


def test_warnings_say_what_is_not_identified():
    """Two readings, few items, constant and wrong raters, unused classes, and iterations that ended early."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    good = np.where(rng.random((400, 4)) < 0.9, truth[:, None], 1 - truth[:, None])
    assert dawid_skene(good).warnings == ()
    assert "2 columns" in " ".join(dawid_skene(good[:, :2]).warnings)
    assert "5 items are too few to estimate 9 parameters" in " ".join(dawid_skene(good[:5]).warnings)
    constant = dawid_skene(np.column_stack([good, np.ones(400, dtype=int)]))
    assert any("raters 4 always give the same label" in warning for warning in constant.warnings)
    wrong = dawid_skene(np.column_stack([good, 1 - truth]), raters=[*"wxyz", "liar"])
    assert any("'liar' are correct less often" in warning for warning in wrong.warnings)
    silent = dawid_skene(np.column_stack([good, np.full(400, -1)]), labels=2)
    assert any("raters 4 have no votes" in warning for warning in silent.warnings)
    unused = dawid_skene(np.array(["u", "v"])[good], scale=Nominal("uvw"))
    assert any("'w'" in warning for warning in unused.warnings)
    short = dawid_skene(good, max_iterations=1)
    assert not short.converged
    assert any("max_iterations" in warning for warning in short.warnings)


def test_what_is_not_estimated_is_none_in_json():
    """Rows of a class without items have no support, and are null where they are written down."""
    found = dawid_skene([["u", "u", "v"], ["v", "v", "v"]] * 20, scale=Nominal("uvw"))
    assert found.support is not None
    assert found.support[:, 2].tolist() == [0.0, 0.0, 0.0]
    plain = found.to_dict()
    assert plain["confusion"][0][2] is None
    json.dumps(plain, allow_nan=False)
    one = dawid_skene([["a", "a", None]], scale=Nominal("a"))
    assert one.labels == ["a"]


def test_categories_take_the_form_of_the_votes():
    """A binary category that nobody voted is named as the other one is written."""
    assert dawid_skene([[1, 1, 1]]).categories == (0, 1)
    assert dawid_skene([[True, None, True]]).categories == (False, True)
    assert dawid_skene([["MET"] * 3]).categories == ("UNMET", "MET")


def test_the_result_cannot_be_written_to():
    """Arrays of a result are read-only."""
    found = dawid_skene(READINGS)
    assert found.posterior is not None
    with pytest.raises(ValueError, match="read-only"):
        found.posterior[0, 0] = 1.0


def test_wrong_arguments_are_refused():
    """Smoothing, iterations, tolerance and rater ids outside what is allowed raise."""
    for wrong in (
        {"smoothing": -1.0},
        {"smoothing": math.nan},
        {"max_iterations": 0},
        {"tolerance": 1.0},
        {"raters": ["x"]},
        {"scale": Nominal([1, 2])},
    ):
        with pytest.raises(ArgumentError):
            dawid_skene(READINGS, **wrong)


def _raters(accuracies: list[float], n: int, seed: int, size: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Truth, and raters who err independently of each other."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, size, n)
    wrong = (truth[:, None] + rng.integers(1, size, (n, len(accuracies)))) % size
    return truth, np.where(rng.random(wrong.shape) < accuracies, truth[:, None], wrong)


def _on_copies(ratings: np.ndarray, names: list[str], size: int = 2) -> list[str]:
    return [one for one in dawid_skene(ratings, raters=names, labels=size).warnings if "same label" in one]


@pytest.mark.parametrize("share", [1.0, 0.85])
@pytest.mark.parametrize("size", [2, 4])
def test_raters_that_copy_each_other_are_named(share: float, size: int) -> None:
    """One of five copies the third on all items, or on most: the warning names the pair and no other."""
    _, votes = _raters([0.9, 0.8, 0.7, 0.85, 0.7], 400, seed=1, size=size)
    copied = np.random.default_rng(2).random(400) < share
    votes[copied, 4] = votes[copied, 2]
    found = _on_copies(votes, list("abcde"), size)
    assert len(found) == 1
    assert "raters 'c' and 'e'" in found[0]


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_a_group_of_copies_is_named_and_not_those_it_outvotes(share: float) -> None:
    """Three poor raters that are one outvote two good ones; the good ones are not accused."""
    truth, votes = _raters([0.85, 0.85, 0.65, 0.65, 0.65], 400, seed=3)
    copied = np.random.default_rng(4).random((400, 2)) < share
    votes[:, 3:] = np.where(copied, votes[:, [2]], votes[:, 3:])
    found = _on_copies(votes, list("abcde"))
    assert len(found) == 2
    assert not any("'a'" in one or "'b'" in one for one in found)
    fitted = dawid_skene(votes, labels=2)
    assert np.mean(np.array(fitted.labels) == truth) < 0.7


def test_two_copies_among_three_are_named() -> None:
    """With one other rater equal labels throughout are all that can be seen."""
    _, votes = _raters([0.85, 0.65], 100, seed=5)
    found = _on_copies(votes[:, [0, 1, 1]], list("abc"))
    assert len(found) == 1
    assert "'b' and 'c'" in found[0] and "100.0% of 100 items" in found[0]


def test_independent_raters_are_not_accused() -> None:
    """100 tables of independent raters, good and poor, few and many: at most one warning of copies."""
    accused = 0
    for seed in range(25):
        for accuracies, n in (([0.8] * 3, 60), ([0.9, 0.8, 0.7, 0.85, 0.75], 300), ([0.8] * 8, 100)):
            _, votes = _raters(accuracies, n, seed=100 + seed)
            accused += bool(_on_copies(votes, [str(at) for at in range(len(accuracies))]))
        _, votes = _raters([0.97] * 4, 100, seed=200 + seed)
        accused += bool(_on_copies(votes, list("abcd")))
    assert accused <= 1
