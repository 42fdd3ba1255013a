"""Notices about a run, in a bounded number of lines."""

from __future__ import annotations

from collections.abc import Iterator

FEW = 5
"""Of notices of one kind so many are told one by one."""


class Notices:
    """Notices; of many of one kind the first few, and how many more there are."""

    def __init__(self) -> None:
        self._first: dict[str, list[str]] = {}
        self._more: dict[str, int] = {}

    def append(self, told: str) -> None:
        """Add a notice that is one of a kind."""
        self._first[told] = [told]

    def add(self, kind: str, told: str) -> None:
        """Add a notice of which there may be many.

        Args:
            kind: The words after the number of notices that are not listed.
            told: The notice's text.
        """
        first = self._first.setdefault(kind, [])
        if len(first) < FEW:
            first.append(told)
        else:
            self.add_more(kind, 1)

    def add_more(self, kind: str, count: int) -> None:
        """Add a number of notices of a kind, without listing them."""
        self._more[kind] = self._more.get(kind, 0) + count

    def __iter__(self) -> Iterator[str]:
        for kind, first in self._first.items():
            yield from first
            if kind in self._more:
                yield f"{self._more[kind]:,} more {kind}"
