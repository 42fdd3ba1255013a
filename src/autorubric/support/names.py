"""The comparison of names and labels that people or models wrote."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Final

_INVISIBLE: Final = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")


def fold_name(text: str) -> str:
    """Return a name as it is compared: NFC, trimmed, in folded case, without invisible characters."""
    return clean_name(text).casefold()


def clean_name(text: str) -> str:
    """Return a name as it is shown: NFC, trimmed, without invisible characters."""
    if text.isascii():
        return text.strip()
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text).strip())


def match_name(wanted: str, names: Collection[str]) -> str | None:
    """Return the name that equals `wanted`, otherwise the only one that does after folding, else None."""
    if wanted in names:
        return wanted
    folded = fold_name(wanted)
    same = [name for name in names if fold_name(name) == folded]
    return same[0] if len(same) == 1 else None


def merge_names(names: Iterable[str], what: str = "") -> dict[str, str]:
    """Return each name with its first spelling, without blanks around it if any spelling has none.

    With `what`, warn if spellings differ.
    """
    same: dict[str, dict[str, None]] = {}
    for name in names:
        same.setdefault(fold_name(name), {})[name] = None
    first = [next((one for one in held if one == one.strip()), next(iter(held))) for held in same.values()]
    merged = {name: chosen for chosen, held in zip(first, same.values(), strict=True) for name in held}
    if what and (message := describe_merged(merged, what)):
        warnings.warn(message, stacklevel=3)
    return merged


def describe_merged(first: Mapping[str, str], what: str) -> str | None:
    """Return a sentence on the names that are replaced by their first spelling; None if there are none."""
    changed = [f"{name!a} as {chosen!a}" for name, chosen in first.items() if name != chosen]
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    same = "they differ only in case, surrounding blanks, invisible characters or composed letters"
    return f"{what} are read as equal: {', '.join(changed[:3])}{more}; {same}" if changed else None
