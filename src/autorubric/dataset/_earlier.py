"""Detection of items that are unchanged from an earlier copy of a dataset while a new copy is written."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import chain

_ID = b'{"id":"'


class EarlierCopy:
    """The lines of an earlier copy, in which lines of a new copy can be looked up.

    As long as both copies have the same lines, nothing is kept in memory. From the first different line on,
    about a hundred bytes are kept per line.

    Args:
        lines: Lines of the items in the earlier copy, in order.
        count: Number of lines.
        is_akin: Whether the shared data of both copies is equal. A line that is in both copies then contains
            an item without errors.

    Attributes:
        kept: By position in the earlier copy, 1 if the item was found in the new copy. Items without an id
            are the same only if they have the same position.
    """

    def __init__(self, lines: Iterator[bytes], count: int, *, is_akin: bool) -> None:
        self.kept = bytearray(count)
        self.is_akin = is_akin
        self._lines = lines
        self._elsewhere: dict[bytes, int] | None = None

    def has(self, position: int, line: bytes) -> bool:
        """Return whether the new copy's line is in the earlier copy; each earlier line is found only once.

        Call this with increasing positions.
        """
        if self._elsewhere is None:
            before = next(self._lines, None)
            if line == before:
                self.kept[position] = 1
                return True
            rest = chain([before], self._lines) if before is not None else ()
            self._elsewhere = {_key(at, one): at for at, one in enumerate(rest, position)}
        found = self._elsewhere.pop(_key(position, line), None)
        if found is None:
            return False
        self.kept[found] = 1
        return True


def _key(position: int, line: bytes) -> bytes:
    return sha256(line if line.startswith(_ID) else b"%d %b" % (position, line)).digest()
