"""Seeds that depend on what is asked and on nothing else, so that a rerun or another order gives the same."""

from __future__ import annotations

import hashlib


def derive_seed(*parts: int | str) -> int:
    """A 64-bit seed from the parts."""
    texts = [str(part).encode("utf-8", "surrogatepass") for part in parts]
    whole = b"".join([b"%d:%b" % (len(text), text) for text in texts])
    return int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "big")
