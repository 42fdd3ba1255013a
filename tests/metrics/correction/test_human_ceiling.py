"""Each person against the rest."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, mean_absolute_error

from autorubric.errors import ArgumentError
from autorubric.metrics import Estimate, Interval, Nominal, cohen_kappa, human_ceiling
from tests.metrics.asserting import brackets


def people(n: int = 80, n_people: int = 4, seed: int = 1) -> Any:
    """People who are right in 80 % on three categories."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    return np.column_stack(
        [np.where(rng.random(n) < 0.8, truth, rng.integers(0, 3, n)) for _ in range(n_people)]
    )


def test_accuracy_by_hand() -> None:
    """Four people, four items; a majority of the other three that ties drops the item.

    Item 1: all say a: right for everyone. Item 2: a a a b: right for the first three, wrong for the fourth
    (rest a). Item 3: a a b b: for each person the rest is 1 against 2, so the other wins: wrong for all.
    Item 4: a b None None: for the first the rest is b: wrong; for the second likewise.
    First and second: 2 of 4; third: 2 of 3; fourth: 1 of 3. Mean: (1/2 + 1/2 + 2/3 + 1/3) / 4 = 1/2.
    """
    rows = [["a"] * 4, ["a", "a", "a", "b"], ["a", "a", "b", "b"], ["a", "b", None, None]]
    found = human_ceiling(rows, stat="accuracy")
    assert [float(one) for one in found.per_human.values()] == pytest.approx([0.5, 0.5, 2 / 3, 1 / 3])
    assert found == pytest.approx(0.5)
    assert (found.n_tied, found.n) == (0, 4)


def test_tied_majorities_are_left_out_and_counted() -> None:
    """Of three people the two others disagree on a b c: three ties, and the item counts for nobody."""
    found = human_ceiling([["a", "b", "c"], ["a", "a", "a"], ["b", "b", "b"]], stat="accuracy")
    assert found.n_tied == 3
    assert [one.n for one in found.per_human.values()] == [2, 2, 2]


def test_kappa_against_scikit_learn() -> None:
    """Each person's kappa against the majority of the rest, ties left out, is scikit-learn's."""
    table = people()
    found = human_ceiling(table, stat="kappa")
    wanted = []
    for j in range(4):
        rest, own = [], []
        for row in np.delete(table, j, axis=1):
            counts = np.bincount(row, minlength=3)
            rest.append(counts.argmax() if np.count_nonzero(counts == counts.max()) == 1 else -1)
        keep = np.array(rest) >= 0
        own = table[keep, j]
        wanted.append(cohen_kappa_score(np.array(rest)[keep], own))
    assert [float(one) for one in found.per_human.values()] == pytest.approx(wanted)
    assert found == pytest.approx(np.mean(wanted))
    assert brackets(found)


def test_mean_absolute_error_of_numbers() -> None:
    """Numbers are compared with the mean of the rest."""
    table = people().astype(float)
    found = human_ceiling(table, stat="mae", n_resamples=50)
    wanted = [mean_absolute_error(np.delete(table, j, axis=1).mean(axis=1), table[:, j]) for j in range(4)]
    assert [float(one) for one in found.per_human.values()] == pytest.approx(wanted)


def test_two_people_are_each_others_rest() -> None:
    """Kappa of two people is theirs, from either side."""
    table = people(n_people=2)
    found = human_ceiling(table)
    both = cohen_kappa(table[:, 0], table[:, 1])
    assert [float(one) for one in found.per_human.values()] == pytest.approx([float(both)] * 2)


def test_functions_of_one_s_own() -> None:
    """A function sees (rest, person): labels, or numbers on an interval."""
    table = people()
    shares = human_ceiling(table, stat=lambda rest, own: float(np.mean(rest == own)), n_resamples=20)
    named = human_ceiling(table, stat="accuracy", n_resamples=20)
    assert shares == pytest.approx(float(named))
    means = human_ceiling(
        table, stat=lambda rest, own: float(np.mean(abs(rest - own))), scale=Interval(), n_resamples=20
    )
    assert means == pytest.approx(float(human_ceiling(table, stat="mae", n_resamples=20)))


def test_the_result_is_the_estimate_of_the_mean() -> None:
    """It compares and formats as the mean over people, and to_dict holds each person's figure."""
    found = human_ceiling(people(), stat="accuracy", n_resamples=20)
    each = [float(one) for one in found.per_human.values()]
    assert isinstance(found, Estimate)
    assert f"{found:.3f}" == f"{sum(each) / 4:.3f}"
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["value"], plain["low"], plain["stat"]) == (found.value, found.low, "accuracy")
    assert [one["value"] for one in plain["per_human"].values()] == each


def test_same_seed_same_interval() -> None:
    """The seed fixes the resamples; clusters are drawn whole."""
    table = people()
    one = human_ceiling(table, stat="accuracy", rng=4, cluster=np.arange(80) // 2)
    again = human_ceiling(table, stat="accuracy", rng=4, cluster=np.arange(80) // 2)
    assert one.to_dict() == again.to_dict()
    assert "40 clusters" in one.method
    json.dumps(one.to_dict(), allow_nan=False)


def test_undefined_where_nobody_shares_an_item() -> None:
    """No item with two annotations: no pair."""
    found = human_ceiling([["a", None], [None, "a"]])
    assert (found.value, found.reason) == (None, "no_pairs")
    json.dumps(found.to_dict(), allow_nan=False)
    assert human_ceiling([], stat="accuracy").reason == "no_pairs"


def test_agreement_on_one_answer_has_no_kappa() -> None:
    """All say the same: kappa is undefined for everyone, and so is the mean."""
    found = human_ceiling([["a", "a", "a"]] * 5, scale=Nominal(["a", "b"]))
    assert (found.value, found.reason) == (None, "single_class")


def test_figures_of_many_raters_are_refused() -> None:
    """Alpha is must be a two-rater metric."""
    with pytest.raises(ArgumentError, match="must be a two-rater metric"):
        human_ceiling([["a", "a"]], stat="krippendorff_alpha")
    with pytest.raises(ArgumentError, match="not on the scale"):
        human_ceiling([["a", "c"]], scale=Nominal(["a", "b"]))


def test_summary_says_the_mean_first() -> None:
    """A sentence with the mean, then a row a person."""
    found = human_ceiling([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0]] * 5, stat="accuracy")
    lines = found.summary().splitlines()
    assert lines[1].startswith(f"Each annotator against the others: mean accuracy {found:.3f} [")
    assert [line.split()[0] for line in lines[2:] if line.strip().startswith(tuple("012"))] == ["0", "1", "2"]
