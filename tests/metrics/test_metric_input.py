"""What stands for a missing label, number or cluster id, and which arguments are refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from autorubric.errors import ArgumentError
from autorubric.metrics import accuracy, cohen_kappa, icc, mae, pearson, recall, scott_pi

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
