"""Dividing a dataset into parts."""

from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.criteria import BaseCriterion, BoundFloat
from autorubric.datasets import DataItem, RubricDataset
from autorubric.datasets.split import split_positions
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
@given(st.lists(st.lists(st.integers(0, 4), unique=True, max_size=3), min_size=2, max_size=40), st.data())
def test_parts_divide_the_items(labels: list[list[int]], data: Any) -> None:
    """Both parts have the size asked for, and each item is in one of them."""
    n_train = data.draw(st.integers(1, len(labels) - 1))
    train, test = split_positions(labels, (n_train, len(labels) - n_train), data.draw(st.integers(0, 5)))
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
    with pytest.raises(ArgumentError, match=r"n_train must be an integer from 1 to 9; got"):
        labelled(10).split_train_test(n_train)


class Share(BaseCriterion):
    """A share."""

    share: BoundFloat = BoundFloat(min_val=0.0, max_val=1.0)


def test_numbers_are_shared_out_by_quarters() -> None:
    """Labels without categories are shared out by where they stand in [0, 1]."""
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


SHARES = st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8)).map(
    lambda parts: tuple(one / sum(parts) for one in parts)
)


def in_strata(strata: list[int], groups: list[int] | None = None) -> RubricDataset:
    """Items whose metadata have a stratum and a group."""
    found = groups if groups is not None else [0] * len(strata)
    return RubricDataset(
        items=[
            DataItem(submission=str(i), metadata={"kind": kind, "author": author})
            for i, (kind, author) in enumerate(zip(strata, found, strict=True))
        ]
    )


def positions(part: RubricDataset) -> list[int]:
    """Where the items of a part were."""
    return [int(part.item_id(i)) for i in range(len(part))]


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=24, max_size=90), SHARES, st.integers(0, 3))
def test_three_parts_have_their_share_of_each_stratum(
    strata: list[int], shares: tuple[float, float, float], seed: int
) -> None:
    """Parts are disjoint, complete and reproducible; sizes and strata are rounded up or down, not more."""
    train, dev, test = shares
    dataset = in_strata(strata)
    parts = dataset.split(train=train, dev=dev, test=test, stratify="kind", seed=seed)
    where = [positions(part) for part in parts]
    assert sorted(chain(*where)) == list(range(len(strata)))
    again = dataset.split(
        train=train, dev=dev, test=test, stratify=lambda item: item.metadata["kind"], seed=seed
    )
    assert where == [positions(part) for part in again]
    for part, share in zip(where, shares, strict=True):
        assert abs(len(part) - share * len(strata)) < 1
        held = Counter(strata[i] for i in part)
        for stratum, n in Counter(strata).items():
            assert abs(held[stratum] - share * n) < 1 - 1e-9


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), min_size=24, max_size=60).filter(
        lambda drawn: len({group for _, group in drawn}) >= 3
    ),
    st.integers(0, 3),
)
def test_groups_stay_together(drawn: list[tuple[int, int]], seed: int) -> None:
    """No group is in two parts, no part is empty, and all items are in one."""
    strata, groups = map(list, zip(*drawn, strict=True))
    dataset = in_strata(strata, groups)
    parts = dataset.split(stratify="kind", group="author", seed=seed)
    where = [positions(part) for part in parts]
    assert sorted(chain(*where)) == list(range(len(drawn)))
    assert all(where)
    homes = [{groups[i] for i in part} for part in where]
    assert not (homes[0] & homes[1] or homes[0] & homes[2] or homes[1] & homes[2])
    by_function = dataset.split(stratify="kind", group=lambda item: item.metadata["author"], seed=seed)
    assert [len(part) for part in by_function] == [len(part) for part in where]


def test_small_groups_meet_shares_and_labels() -> None:
    """With many small groups sizes and strata come within a group of their shares."""
    strata, groups = [i % 2 for i in range(200)], [i // 4 for i in range(200)]
    parts = in_strata(strata, groups).split(train=0.2, dev=0.4, test=0.4, stratify="kind", group="author")
    for part, share in zip(parts, (0.2, 0.4, 0.4), strict=True):
        assert abs(len(part) - 200 * share) <= 4
        assert abs(Counter(strata[i] for i in positions(part))[1] - 100 * share) <= 4


def test_several_criteria_are_shared_out_among_three_parts() -> None:
    """By default each label of each criterion is as frequent in all parts, but for an item or two."""
    dataset = labelled(100)
    parts = dataset.split(train=0.2, dev=0.3, test=0.5, seed=3)
    assert (
        [len(part) for part in parts]
        == [20, 30, 50]
        == [len(one) for one in (parts.train, parts.dev, parts.test)]
    )
    for name in RUBRIC.names:
        whole = Counter((dataset.item_truth(i) or {}).get(name) for i in range(100))
        for part in parts:
            held = Counter((part.item_truth(i) or {}).get(name) for i in range(len(part)))
            for label, count in whole.items():
                assert label is None or abs(held[label] - len(part) / 100 * count) <= 2, (name, label)


def test_one_criterion_or_none_may_decide() -> None:
    """A criterion's name stratifies by its labels; False divides at random, otherwise with another seed."""
    dataset = labelled(100)
    for part, share in zip(dataset.split(stratify="b"), (0.2, 0.4, 0.4), strict=True):
        assert Counter((part.item_truth(i) or {})["b"] for i in range(len(part)))["UNMET"] == 20 * share
    drawn = [positions(dataset.split(stratify=False, seed=seed).train) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert positions(dataset.split().dev) == positions(dataset.split(seed=0).dev)


def test_an_item_without_a_group_is_alone() -> None:
    """A function that gives None leaves the item free."""
    parts = in_strata([0] * 10).split(group=lambda item: None)
    assert [len(part) for part in parts] == [2, 4, 4]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"train": 0.5}, r"shares must be positive and sum to 1; got 0.5, 0.4, 0.4, which sum to 1.3"),
        ({"train": 0, "dev": 0.5, "test": 0.5}, "shares must be positive and sum to 1"),
        ({"train": -0.2, "dev": 0.6, "test": 0.6}, "shares must be positive"),
        ({"train": "20%", "dev": 0.4, "test": 0.4}, "shares must be positive"),
        ({"train": float("nan")}, "shares must be positive"),
        ({"train": 0.01, "dev": 0.01, "test": 0.98}, "into 0, 0, 10; use more items or other shares"),
        ({"stratify": "nosuch"}, "item '0' has no metadata key 'nosuch'; keys: author, kind"),
        ({"group": "nosuch"}, "item '0' has no metadata key 'nosuch'; keys: author, kind"),
        ({"group": "author"}, "1 groups cannot fill 3 parts"),
    ],
)
def test_impossible_splits(asked: dict[str, Any], told: str) -> None:
    """Shares that are none, parts that would be empty, and keys that are not there are errors."""
    with pytest.raises(ArgumentError, match=told):
        in_strata([0] * 10).split(**asked)
