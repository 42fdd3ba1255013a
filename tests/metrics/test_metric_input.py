"""What stands for a missing label, number or cluster id, and which arguments are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import (
    Nominal,
    Ordinal,
    accuracy,
    cohen_kappa,
    icc,
    judge_report,
    krippendorff_alpha,
    macro_f1,
    mae,
    pearson,
    percent_agreement,
    recall,
    scott_pi,
)

PAIR = ([1, 0, 1, 0], [1, 1, 1, 0])


@pytest.mark.parametrize(
    ("ids", "position"),
    [
        ([None] * 4, 0),
        (["a", "b", None, "a"], 2),
        ([1.0, float("nan"), 2.0, 1.0], 1),
        (np.array([1.0, 1.0, 2.0, np.nan]), 3),
        (pd.Series([1, None, 2, 2], dtype="Int64"), 1),
        (np.ma.masked_array([1, 1, 2, 2], mask=[False, False, True, False]), 2),
    ],
    ids=["none", "one none", "nan", "array", "pandas", "masked"],
)
def test_missing_cluster_ids_are_refused(ids, position):
    """A unit without an id belongs to no cluster, which the error says with its place."""
    with pytest.raises(ArgumentError, match=f"position {position} "):
        accuracy(*PAIR, cluster=ids)
    with pytest.raises(ArgumentError, match=f"position {position} "):
        mae(*PAIR, cluster=ids)


def test_codes_may_be_missing_in_any_way():
    """pandas' NA, None, NaN and a mask are -1."""
    expected = cohen_kappa([1, 0, -1, 1], [1, 0, 1, 0], labels=2)
    for truth in (
        pd.Series([1, 0, None, 1], dtype="Int64"),
        [1, 0, None, 1],
        [1.0, 0.0, float("nan"), 1.0],
        np.array([np.int64(1), 0, pd.NA, True], dtype=object),
        np.ma.masked_array([1, 0, 9, 1], mask=[False, False, True, False]),
    ):
        assert cohen_kappa(truth, [1, 0, 1, 0], labels=2).to_dict() == expected.to_dict()


@pytest.mark.parametrize("wrong", ["1", 0.5, float("inf"), {}], ids=str)
def test_codes_are_whole_numbers(wrong):
    """Texts, fractions and infinity are no codes."""
    with pytest.raises(ArgumentError, match="integer codes"):
        cohen_kappa([wrong, 0], [1, 0], labels=2)


def test_masked_values_are_missing():
    """Masks drop pairs and rows, without a warning."""
    numbers = np.ma.masked_array([1.0, 2.0, 4.0, 1e9], mask=[False, False, False, True])
    table = np.ma.masked_array(
        [[1.0, 2], [2, 3], [3, 5], [4, 9]], mask=[[False, False]] * 3 + [[False, True]]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pearson(numbers, [1, 3, 4, 7])
        rows = icc(table)
    assert (found.value, found.n_missing) == (pearson([1, 2, 4], [1, 3, 4]).value, 1)
    assert (rows.value, rows.n_missing) == (icc([[1, 2], [2, 3], [3, 5]]).value, 1)


def test_numbers_take_no_number_of_categories():
    """`labels` says nothing of numbers, so that it is refused as any other word."""
    with pytest.raises(TypeError, match="labels"):
        pearson([1, 2, 3], [1, 2, 4], labels=7)  # type: ignore[call-arg]


def test_the_positive_code_may_be_numpys():
    """A code taken from an array is a code."""
    table = [[3, 1], [1, 5]]
    assert recall(table=table, positive=np.int64(0)) == recall(table=table, positive=0) == 0.75
    with pytest.raises(ArgumentError, match="must be a category code"):
        recall(table=table, positive=np.int64(2))


def test_constant_raters_who_differ():
    """One says MET, the other UNMET throughout: Cohen expects that of their margins, Scott does not."""
    assert cohen_kappa([1, 1, 1], [0, 0, 0], labels=2, ci=None) == 0.0
    assert scott_pi([1, 1, 1], [0, 0, 0], labels=2, ci=None) == -1.0


_PAIRED = {
    "texts and numbers": (["1", "2", "1", "3"], [1, 2, 1, 3]),
    "texts of decimals and numbers": (["1.0", " 2", "1.0", "3"], [1, 2, 1, 3]),
    "series": (pd.Series(["1", "2", "1", "3"]), pd.Series([1, 2, 1, 3])),
    "numbers that one column lacks": (["1", "2", "1", "4"], [1, 2, 1, 4.0]),
    "texts of integers and of decimals": (["1", "2", "1", "3"], ["1.0", "2.0", "1.0", "3.0"]),
    "case and blanks": (["good", "bad", "good", "fair"], ["Good ", "BAD", "Good ", "fair"]),
    "decomposed letters": (["caf\u00e9", "bar", "bar", "pub"], ["cafe\u0301", "bar", "bar", "pub"]),
    "blanks are missing": (["good", "bad", " ", "fair", ""], ["good", "bad", "fair", "fair", "bad"]),
}


@pytest.mark.parametrize(("truth", "pred"), _PAIRED.values(), ids=_PAIRED)
def test_labels_are_matched_across_spellings(truth: Any, pred: Any) -> None:
    """Labels that are equal after folding, or as numbers, are one category; blank labels are missing."""
    rows = list(zip(truth, pred, strict=True))
    found = [cohen_kappa(truth, pred), accuracy(truth, pred), macro_f1(truth, pred)]
    found += [krippendorff_alpha(rows, level="nominal"), percent_agreement(rows)]
    assert [one.value for one in found] == pytest.approx([1.0] * 5)
    table = [
        {"item_id": item, "criterion": "c", "rater": rater, "rater_kind": kind, "label": label}
        for item, pair in enumerate(rows)
        for rater, kind, label in zip(("ann", "j"), ("human", "judge"), pair, strict=True)
    ]
    assert judge_report(table, n_resamples=10).micro.accuracy.value == 1.0


@pytest.mark.parametrize(("truth", "pred"), [(["good", "bad"], [1, 0]), ([1, 2], ["1", "2 stars"])])
def test_texts_that_are_no_numbers_are_refused_against_numbers(truth: Any, pred: Any) -> None:
    """Texts that denote no number never equal one, so there is no kappa of 0."""
    with pytest.raises(ArgumentError, match=r"texts such as '.*' in one column and numbers such as \d"):
        cohen_kappa(truth, pred)
    with pytest.raises(ArgumentError, match="never equal"):
        krippendorff_alpha(list(zip(truth, pred, strict=True)), level="nominal")


def test_an_exact_label_wins() -> None:
    """Labels that both columns have in two spellings stay apart; a declared scale takes the only match."""
    assert cohen_kappa(["a", "A", "a", "A"], ["a", "A", "A", "a"]).value == 0.0
    assert Nominal(["good", "bad"]).encode(["Good ", "bad"]).tolist() == [0, 1]
    assert Ordinal([1, 2, 3]).encode(["3", 1.0]).tolist() == [2, 0]
    with pytest.raises(ArgumentError, match="not on the scale"):
        Nominal(["a", "A", "b"]).code("a ")
