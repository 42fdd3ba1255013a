"""Dividing a dataset into parts."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.criteria import BaseCriterion, BoundFloat
from autorubric.dataset import DataItem, RubricDataset
from autorubric.dataset._split import split_positions
from autorubric.errors import ArgumentError
from autorubric.rubric import Rubric

RUBRIC = Rubric([{"name": name, "requirement": "x"} for name in ("a", "b", "c")])


def labelled(n: int) -> RubricDataset:
    """Items with labels of which one is rare."""
    truth = [
        ["MET" if i % 2 else "UNMET", "MET" if i % 5 else "UNMET", "MET" if i % 10 else None]
        for i in range(n)
    ]
    return RubricDataset(
        rubric=RUBRIC, items=[DataItem(submission=str(i), ground_truth=t) for i, t in enumerate(truth)]
    )


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), unique=True, max_size=3), min_size=2, max_size=40),
    st.data(),
)
def test_parts_divide_the_items(labels: list[list[int]], data: Any) -> None:
    """Both parts have the size asked for, and each item is in one of them."""
    n_train = data.draw(st.integers(1, len(labels) - 1))
    train, test = split_positions(labels, n_train, data.draw(st.integers(0, 5)))
    assert len(train) == n_train
    assert sorted(train + test) == list(range(len(labels)))
    assert train == sorted(train)


def test_labels_are_shared_out() -> None:
    """Each label is as frequent in one part as in the other, but for an item or two."""
    dataset = labelled(100)
    train, test = dataset.split_train_test(30, seed=3)
    for name in RUBRIC.names:
        whole = Counter((dataset.item_truth(i) or {}).get(name) for i in range(100))
        part = Counter((train.item_truth(i) or {}).get(name) for i in range(30))
        for label, count in whole.items():
            assert label is None or abs(part[label] - 0.3 * count) <= 2, (name, label)
    assert len(test) == 70


def test_splits_are_reproducible() -> None:
    """The same seed gives the same parts, None is 0, and another seed gives others."""
    dataset = labelled(40)
    ids = [[part.item_id(i) for i in range(len(part))] for part in dataset.split_train_test(10)]
    assert ids == [[p.item_id(i) for i in range(len(p))] for p in dataset.split_train_test(10, seed=0)]
    assert ids != [[p.item_id(i) for i in range(len(p))] for p in dataset.split_train_test(10, seed=1)]
    drawn = dataset.split_train_test(10, stratify=False)[0]
    assert len(drawn) == 10


def test_items_keep_their_ids() -> None:
    """An item without an id keeps the one that its position gave it, and everything else stays."""
    dataset = labelled(10)
    train, test = dataset.split_train_test(4)
    assert {train.item_id(i) for i in range(4)} | {test.item_id(i) for i in range(6)} == set(
        map(str, range(10))
    )
    assert all(train[i].submission == train.item_id(i) for i in range(4))
    assert train.rubric is dataset.rubric


@pytest.mark.parametrize("n_train", [0, 10, -1, 2.5, True, "3"])
def test_impossible_sizes(n_train: Any) -> None:
    """A part that would be empty, or a size that is no whole number, is an error."""
    with pytest.raises(ArgumentError, match=r"n_train is .*; give a whole number from 1 to 9"):
        labelled(10).split_train_test(n_train)


class Share(BaseCriterion):
    """A share."""

    share: BoundFloat = BoundFloat(min_val=0.0, max_val=1.0)


def test_numbers_are_shared_out_by_quarters() -> None:
    """Labels without categories are shared out by where they stand on [0, 1]."""
    items = [DataItem(submission="x", ground_truth=[i / 40]) for i in range(40)]
    train, _ = RubricDataset(rubric=Rubric([Share(name="s")]), items=items).split_train_test(20)
    quarters = Counter(int(4 * (train.item_truth(i) or {})["s"]) for i in range(20))
    assert set(quarters.values()) == {5}


def test_labels_without_a_rubric_are_shared_out() -> None:
    """Labels by name need no rubric to be shared out."""
    items = [DataItem(submission="x", ground_truth={"a": i % 2}) for i in range(20)]
    train, _ = RubricDataset(items=items).split_train_test(10)
    assert Counter((train.item_truth(i) or {})["a"] for i in range(10)) == {0: 5, 1: 5}


def test_subsets() -> None:
    """A subset has the items at the positions given, in that order and once each."""
    part = labelled(5).subset([3, 0, 3, -1])
    assert [part.item_id(i) for i in range(len(part))] == ["3", "0", "4"]
