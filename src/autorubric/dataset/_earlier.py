"""Detection of items that are unchanged from an earlier copy of a dataset while a new copy is written."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import chain

_ID = b'{"id":"'


class EarlierCopy:
    """An earlier copy of a dataset, in which lines of a new copy can be looked up.

    While both copies have the same lines, nothing is kept in memory. After the first line that differs,
    about a hundred bytes are kept per line.

    Args:
        lines: Item lines of the earlier copy, in order.
        count: Number of lines.
        is_akin: Whether the shared data of both copies is equal. If so, a line in both copies is known to
            contain a valid item.

    Attributes:
        kept: By position in the earlier copy, 1 if the new copy contains the item, otherwise 0. Items without
            an id match only at the same position.
    """

    def __init__(self, lines: Iterator[bytes], count: int, *, is_akin: bool) -> None:
        self.kept = bytearray(count)
        self.is_akin = is_akin
        self._lines = lines
        self._elsewhere: dict[bytes, int] | None = None

    def has(self, position: int, line: bytes) -> bool:
        """Return whether the earlier copy has this line of the new copy; each earlier line matches only once.

        Positions must increase from call to call.
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
