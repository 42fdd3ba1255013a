"""Seeds that depend only on the question, so that they do not change in a rerun or in another order."""

from __future__ import annotations

import hashlib
from functools import lru_cache


class Seeds:
    """Derives 64-bit seeds from parts, of which the first ones are shared.

    Args:
        parts: The shared first parts.
    """

    __slots__ = ("_begun",)

    def __init__(self, *parts: int | str) -> None:
        self._begun = hashlib.blake2b(_written(*parts), digest_size=8)

    def of(self, *parts: int | str) -> int:
        """Return the 64-bit seed for the shared parts followed by these parts."""
        begun = self._begun.copy()
        begun.update(_written_once(*parts))
        return int.from_bytes(begun.digest(), "big")


def derive_seed(*parts: int | str) -> int:
    """Derive a 64-bit seed from integers and strings."""
    return Seeds(*parts).of()


def _written(*parts: int | str) -> bytes:
    texts = [str(part).encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([b"%d:%b" % (len(text), text) for text in texts])


# The names of criteria and judges are the same for all items.
_written_once = lru_cache(maxsize=4096)(_written)
