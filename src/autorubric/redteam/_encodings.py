"""Encodings that make a payload invisible or hard to read for people."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable, Mapping
from typing import Final, Literal

Encoding = Literal["plain", "tags", "zero_width", "bits", "bidi", "base64", "rot13", "hex"]

_TAGS_FROM: Final = 0xE0000
_SPACE, _ZERO, _ONE = "\u200b", "\u200b", "\u200c"
_RIGHT_TO_LEFT, _POP = "\u202e", "\u202c"


def _bits(text: str) -> str:
    """Encode the bits of the UTF-8 bytes with two zero-width characters."""
    digits = "".join(f"{byte:08b}" for byte in text.encode("utf-8", "surrogatepass"))
    return "".join(_ONE if digit == "1" else _ZERO for digit in digits)


ENCODINGS: Final[Mapping[Encoding, Callable[[str], str]]] = {
    "plain": lambda text: text,
    # Tag characters mirror ASCII and are invisible.
    "tags": lambda text: "".join(chr(_TAGS_FROM + ord(letter)) for letter in text if ord(letter) < 0x80),
    "zero_width": lambda text: _SPACE.join(text),
    "bits": _bits,
    # Displayed in the right order, but stored in reverse.
    "bidi": lambda text: f"{_RIGHT_TO_LEFT}{text[::-1]}{_POP}",
    "base64": lambda text: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii"),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "hex": lambda text: text.encode("utf-8", "surrogatepass").hex(),
}
"""Encoding functions by name."""
