"""Names that readers, and judges, can hardly tell apart."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

_LATIN_TWINS: Final = str.maketrans(
    # Cyrillic, Greek, Armenian and Latin letters that most fonts draw as the ASCII letter.
    "аеорсухіјѕԁԛԝһкмтпвԍАВЕКМНОРСТУХІЈЅԌԚԜҮαορνυιγχκτωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳօսհոցքѵıɑɡɩʏ",
    "aeopcyxijsdqwhkmtnbgABEKMHOPCTYXIJSGQWYaopvuiyxktwABEZHIKMNOPTYXcjouhngqviagiy",
)
_SHAPE_TWINS: Final = str.maketrans("I1|0", "lllO")
_INVISIBLE: Final = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Characters without a glyph that are in none of the categories of format, control and blank."""


def similar_names(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of different names that look alike: each name with the first earlier one.

    Two names look alike if they differ only by case, by blanks, by invisible characters, or by letters that
    most fonts draw alike: letters of other alphabets, `I`, `l`, `1` and `|`, or `O` and `0`. This is a small
    part of the confusable characters of Unicode Technical Standard #39, section 4.
    """
    earlier: dict[str, str] = {}
    pairs = []
    for name in names:
        latin = _visible(name).translate(_LATIN_TWINS)
        keys = (f"folded {latin.casefold()}", f"shape {latin.translate(_SHAPE_TWINS)}")
        first = next((earlier[key] for key in keys if key in earlier), name)
        if first != name:
            pairs.append((first, name))
        for key in keys:
            earlier.setdefault(key, name)
    return pairs


def _visible(name: str) -> str:
    """The name in its compatibility form, without blanks and invisible characters."""
    normal = unicodedata.normalize("NFKC", name)
    return "".join(
        letter
        for letter in normal
        if unicodedata.category(letter) not in ("Cf", "Cc", "Zs", "Zl", "Zp")
        and letter not in _INVISIBLE
        and not "\ufe00" <= letter <= "\ufe0f"
    )
