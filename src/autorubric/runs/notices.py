"""Notices about a run, among them those about damaged files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from autorubric.runs.manifest import DATASET, ITEMS, PROMPTS, VOTES

FEW = 5
"""Maximum number of notices of one kind that are listed individually."""

MOST_LISTED = 12
"""Maximum number of differences that are listed in an error or a notice."""


class Notices:
    """A list of notices; of each kind, only the first few are listed and the others are counted."""

    def __init__(self) -> None:
        self._first: dict[str, list[str]] = {}
        self._more: dict[str, int] = {}

    def append(self, notice: str) -> None:
        """Add a notice that has no further notices of its kind."""
        self._first[notice] = [notice]

    def extend(self, notices: Iterable[str]) -> None:
        """Add several notices that have no further notices of their kind."""
        for notice in notices:
            self.append(notice)

    def add(self, kind: str, notice: str) -> None:
        """Add a notice of a kind that may be frequent."""
        first = self._first.setdefault(kind, [])
        if len(first) < FEW:
            first.append(notice)
        else:
            self.count(kind, 1)

    def count(self, kind: str, count: int) -> None:
        """Count further notices of a kind without listing them."""
        self._more[kind] = self._more.get(kind, 0) + count

    def __iter__(self) -> Iterator[str]:
        for kind, first in self._first.items():
            yield from first
            if kind in self._more:
                yield f"{self._more[kind]:,} more {kind}"


def notice_of_alias(judge: str, name: str, served: Iterable[str]) -> str:
    """Return the notice for a decision model whose name is not the version that the server reports."""
    return (
        f"judge {judge!r}: the model name {name} can refer to another version later; the server reported "
        f"{', '.join(sorted(served))}. To be able to repeat the run, use the version as the model"
    )


def bulleted(lines: Sequence[str]) -> str:
    """Return the first lines as a list, with the number of the others."""
    more = [f"and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
    return "\n".join(f"  - {line}" for line in [*lines[:MOST_LISTED], *more])


_REPAIR = {
    VOTES: "requests only the lost votes again",
    ITEMS: "recomputes the scores from the stored votes",
    DATASET: "with the same dataset restores the file without requesting any vote again",
}
_RESTORE = {
    VOTES: "restores the file",
    ITEMS: "restores the file",
    DATASET: "with the same dataset restores the file",
    PROMPTS: "cannot restore the lost requests and replies",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Damage to one file of a run folder."""

    file: str
    what: str
    n_items: int  # items that count as not scored
    is_unlocated: bool = False  # the damaged lines are unknown, as an older version wrote no checksums

    def when_opened(self) -> str:
        """Return the notice for a run that was opened for reading."""
        notice = f"{self.file} is damaged: {self.what}."
        if not self.n_items:
            return f"{notice} No score is affected; resuming the run {_RESTORE[self.file]}"
        repair = "scores the votes in their current state" if self.is_unlocated else _REPAIR[self.file]
        items = "1 item counts as" if self.n_items == 1 else f"{self.n_items:,} items count as"
        return f"{notice} {items} not scored; resuming the run {repair}"

    def when_resumed(self) -> str:
        """Return the notice for a resumed run."""
        notice = f"{self.file} was damaged: {self.what}."
        if not self.n_items:
            return f"{notice} No score is affected"
        items = "1 item" if self.n_items == 1 else f"{self.n_items:,} items"
        return f"{notice} {items} counted as not scored before the run was resumed"

    def lasting_notice(self) -> str:
        """Return the notice that stays with a resumed run whose damaged lines are unknown."""
        return (
            f"{self.file} did not match its checksum when the run was resumed, and it is unknown which lines "
            "differ, so scores may be wrong. To be certain, run again under another name"
        )


def warn_of_damage(notices: Iterable[str]) -> None:
    """Emit each notice as a warning, so that damage is visible even if the result is not printed."""
    for notice in notices:
        warnings.warn(notice, RuntimeWarning, stacklevel=4)


def damage_error(file: str) -> str:
    """Return the error of an item that has no score because a file is damaged."""
    return f"{file} is damaged, so this item counts as not scored; resume the run to repair the file"


def describe_lines(lost: int, repeated: int = 0, moved: int = 0) -> str:
    """Return a description of the damaged lines of a file."""
    parts = [
        f"{count:,} {'line is' if count == 1 else 'lines are'} {what}"
        for count, what in ((lost, "damaged or missing"), (repeated, "repeated"), (moved, "out of order"))
        if count
    ]
    return ", ".join(parts) or "lines are missing"
