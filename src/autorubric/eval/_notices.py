"""Notices about a run, limited in number."""

from __future__ import annotations

from collections.abc import Iterator

FEW = 5
"""Maximum number of notices of one kind that are listed individually."""


class Notices:
    """A list of notices; of each kind, only the first few are listed and the others are counted."""

    def __init__(self) -> None:
        self._first: dict[str, list[str]] = {}
        self._more: dict[str, int] = {}

    def append(self, told: str) -> None:
        """Add a notice that has no further notices of its kind."""
        self._first[told] = [told]

    def add(self, kind: str, told: str) -> None:
        """Add a notice of a kind that may be frequent.

        Args:
            kind: The kind, worded to follow "12 more", the number of notices that are not listed.
            told: The text of the notice.
        """
        first = self._first.setdefault(kind, [])
        if len(first) < FEW:
            first.append(told)
        else:
            self.add_more(kind, 1)

    def add_more(self, kind: str, count: int) -> None:
        """Count further notices of a kind without listing them."""
        self._more[kind] = self._more.get(kind, 0) + count

    def __iter__(self) -> Iterator[str]:
        for kind, first in self._first.items():
            yield from first
            if kind in self._more:
                yield f"{self._more[kind]:,} more {kind}"
