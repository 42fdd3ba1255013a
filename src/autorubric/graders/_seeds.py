"""Seeds that depend on what is asked and on nothing else, so that a rerun or another order gives the same."""

from __future__ import annotations

import hashlib


def derive_seed(*parts: int | str) -> int:
    """A 64-bit seed from the parts."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        text = str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return int.from_bytes(digest.digest(), "big")
