"""The index of ids is a dictionary of them, in less memory."""

from __future__ import annotations

from hypothesis import given, strategies as st

from autorubric.datasets.lazy import IdIndex


@given(st.lists(st.text(max_size=2)))
def test_it_is_a_dictionary(ids: list[str]) -> None:
    """The first position of an id is kept, and a later one is told of it."""
    index, known = IdIndex(ids.__getitem__), dict[str, int]()
    for position, item_id in enumerate(ids):
        assert index.add(item_id, position) == known.get(item_id)
        known.setdefault(item_id, position)


def test_it_grows() -> None:
    """Of ten thousand ids each is found."""
    index = IdIndex(str)
    for position in range(10_000):
        assert index.add(str(position), position) is None
    assert all(index.add(str(position), 0) == position for position in range(10_000))
