"""The comparison of names and labels that people or models wrote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_INVISIBLE: Final = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")


def fold_name(text: str) -> str:
    """Return a name as it is compared: NFC, trimmed, in folded case, without invisible characters."""
    if text.isascii():
        return text.strip().casefold()
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text).strip().casefold())


def match_name(wanted: str, names: Iterable[str]) -> str | None:
    """Return the name that equals `wanted`, otherwise the only one that does after folding, else None."""
    known = list(names)
    if wanted in known:
        return wanted
    folded = fold_name(wanted)
    same = [name for name in known if fold_name(name) == folded]
    return same[0] if len(same) == 1 else None
