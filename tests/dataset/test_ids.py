"""The index of ids is a dictionary of them, in less memory."""

from __future__ import annotations

from hypothesis import given, strategies as st

from autorubric.dataset import IdIndex


@given(st.lists(st.text(max_size=2)), st.text(max_size=2))
def test_it_is_a_dictionary(ids: list[str], wanted: str) -> None:
    """The first position of an id is kept, a later one is told of it, and what is not there is not found."""
    index, known = IdIndex(ids.__getitem__), dict[str, int]()
    for position, item_id in enumerate(ids):
        assert index.add(item_id, position) == known.get(item_id)
        known.setdefault(item_id, position)
    assert index.find(wanted) == known.get(wanted)


def test_it_grows() -> None:
    """Of ten thousand ids each is found, and no other."""
    index = IdIndex(str)
    for position in range(10_000):
        assert index.add(str(position), position) is None
    assert all(index.find(str(position)) == position for position in range(10_000))
    assert index.find("10000") is None
