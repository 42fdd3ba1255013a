"""The items of a dataset's earlier copy that a new copy holds unchanged, found while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import chain

_ID = b'{"id":"'


class EarlierCopy:
    """The lines of an earlier copy.

    As long as the new one is the same line by line, nothing is kept in memory; from the first line on that
    differs, some hundred bytes a line.

    Args:
        lines: The lines of its items, in order.
        count: How many there are.
        is_akin: Whether what its items share is what those of the new one share. A line that is in both is
            then known to hold an item without errors.

    Attributes:
        kept: By position in the earlier copy, 1 where the item was found in the new one. An item without an
            id is the same only where it has the same position.
    """

    def __init__(self, lines: Iterator[bytes], count: int, *, is_akin: bool) -> None:
        self.kept = bytearray(count)
        self.is_akin = is_akin
        self._lines = lines
        self._elsewhere: dict[bytes, int] | None = None

    def has(self, position: int, line: bytes) -> bool:
        """Return whether the new copy's line at a position is in the earlier one, which it is once.

        Positions come in order, each until its line was found.
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
