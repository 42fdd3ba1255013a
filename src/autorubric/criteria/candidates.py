"""Candidates of a comparison: their names in replies and labels, and the values of a ranking."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_AROUND_AN_ID = re.compile(r"^\W*(?:candidate\b)?\W*|\W+$", re.IGNORECASE)


class Candidates(NamedTuple):
    """The identifiers of candidates in replies and labels.

    called: Identifier of each candidate by name: a letter if the judge saw letters, otherwise the name.
    """

    called: Mapping[str, str]
    lettered: bool

    def named(self, text: str) -> str | None:
        """Return the name of the candidate to which a text refers; None if it refers to no candidate."""
        if self.lettered:
            letter = _AROUND_AN_ID.sub("", text).upper()
            return next((name for name, known in self.called.items() if known == letter), None)
        return _named(text, tuple(self.called)) if self.called else text.strip() or None

    def listed(self) -> str:
        """Return the allowed identifiers as the end of an error message."""
        return f"; candidates: {', '.join(sorted(self.called.values()) if self.lettered else self.called)}"


def candidate_id(place: int) -> str:
    """Return a candidate's identifier in a prompt: A to Z, then A1, B1 and so on."""
    turn, letter = divmod(place, len(string.ascii_uppercase))
    return string.ascii_uppercase[letter] + (str(turn) if turn else "")


def _named(text: str, names: Sequence[str]) -> str | None:
    if text in names:
        return text
    folded = text.strip().casefold()
    found = [name for name in names if name.strip().casefold() == folded]
    return found[0] if len(found) == 1 else None


def values_by_name(groups: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return (k - rank) / (k - 1) for each of k candidates; tied candidates have their mean rank."""
    count = sum(len(group) for group in groups)
    values: dict[str, float] = {}
    above = 0
    for group in groups:
        rank = above + (len(group) + 1) / 2
        values.update(dict.fromkeys(group, (count - rank) / (count - 1)))
        above += len(group)
    return values
