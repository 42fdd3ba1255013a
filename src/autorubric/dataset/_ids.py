"""An index of item ids that takes about thirty bytes per id."""

from __future__ import annotations

from array import array
from collections.abc import Callable

_SMALLEST = 1024


class IdIndex:
    """An index from ids to positions that uses less memory than a dict of strings.

    The index is an open-addressing hash table of 8-byte hashes and 4-byte positions. If two ids have the
    same hash, the ids themselves are compared, so that collisions do not cause errors.

    Args:
        id_at: Function that returns the id at a position; called only if hashes are equal.
    """

    def __init__(self, id_at: Callable[[int], str]) -> None:
        self._id_at = id_at
        self._count = 0
        self._allot(_SMALLEST)

    def _allot(self, slots: int) -> None:
        self._mask = slots - 1
        self._hashes = array("q", bytes(8 * slots))
        # Position + 1; 0 is a free slot.
        self._places = array("i", bytes(4 * slots))

    def add(self, item_id: str, position: int) -> int | None:
        """Add an id with its position, or return the existing position if the id is already present."""
        slot, found = self._slot(item_id)
        if found is not None:
            return found
        self._hashes[slot], self._places[slot] = hash(item_id), position + 1
        self._count += 1
        if 3 * self._count > 2 * self._mask:
            self._grow()
        return None

    def _slot(self, item_id: str) -> tuple[int, int | None]:
        wanted = hash(item_id)
        slot = wanted & self._mask
        while place := self._places[slot]:
            if self._hashes[slot] == wanted and self._id_at(place - 1) == item_id:
                return slot, place - 1
            slot = (slot + 1) & self._mask
        return slot, None

    def _grow(self) -> None:
        hashes, places = self._hashes, self._places
        self._allot(2 * len(hashes))
        for wanted, place in zip(hashes, places, strict=True):
            if place:
                slot = wanted & self._mask
                while self._places[slot]:
                    slot = (slot + 1) & self._mask
                self._hashes[slot], self._places[slot] = wanted, place
