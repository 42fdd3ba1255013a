"""Answers on drafts that a stopped pass left unfinished, stored for the pass that resumes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from autorubric.critique._ledger import write_json
from autorubric.critique._manifest import VERSION
from autorubric.critique._repeated import RepeatedErrors
from autorubric.critique._schema import digest_of
from autorubric.errors import BudgetError
from autorubric.values import Json

T = TypeVar("T")


class Unfinished:
    """A tracker that works on drafts until the budget or errors stop it, and keeps the answers received.

    The file is written once, when the pass ends, and contains only drafts that were in progress.

    Args:
        path: Path of the file, which only exists if drafts are unfinished.
        basis: Digest of the settings that answers depend on, in addition to the draft. Answers with another
            digest are kept but not used.

    Attributes:
        ended_by: The error that was raised by the budget; None if the budget sufficed.
        errors: The counter that detects a teacher that repeatedly fails.
        left: Number of drafts that were started but not finished.
    """

    def __init__(self, path: Path, basis: str) -> None:
        self._path, self._basis = path, basis
        self.errors = RepeatedErrors(in_flight=0)
        self._drafts: dict[str, dict[str, Any]] = {}
        self.ended_by: BudgetError | None = None
        self.left = 0

    def read(self) -> None:
        """Read the answers kept by an earlier pass."""
        try:
            self._drafts = dict(json.loads(self._path.read_text(encoding="utf-8"))["drafts"])
        # If the file is invalid, its answers are requested again.
        except (OSError, ValueError, KeyError, TypeError):
            return

    def taken(self, waiting: Iterator[T]) -> Iterator[T]:
        """Yield the items in order until the budget is used up or the teacher repeatedly fails."""
        while self.ended_by is None and self.errors.message is None:
            item = next(waiting, None)
            if item is None:
                return
            yield item

    async def work(self, key: str, digest: str, ask: Callable[[dict[str, Json]], Awaitable[T]]) -> T | None:
        """Ask about a draft and return the result; None if the budget did not allow all questions.

        Args:
            key: Id of the draft.
            digest: Digest of the draft.
            ask: A function that takes the earlier answers, asks the remaining questions and adds the answers.
        """
        place = self._place(key, digest)
        begun: dict[str, Json] = self._drafts.pop(place, {}).get("answered", {})
        try:
            return await ask(begun)
        except BudgetError as error:
            self.ended_by = self.ended_by or error
            self.left += 1
            if any(begun.values()):
                self._drafts[place] = {"id": key, "answered": begun}
            return None

    @property
    def limit(self) -> str | None:
        """Return the reason for stopping: `max_calls`, `max_cost` or `errors`; None if not stopped."""
        if self.ended_by is None:
            return None if self.errors.message is None else "errors"
        return self.ended_by.limit

    def forget(self, key: str, digest: str) -> None:
        """Drop the stored answers of a draft that has a record."""
        self._drafts.pop(self._place(key, digest), None)

    def write(self) -> None:
        """Write the kept answers to the file atomically, or delete the file if there are none."""
        if self._drafts:
            write_json(self._path, {"version": VERSION, "drafts": self._drafts})
        else:
            self._path.unlink(missing_ok=True)

    def _place(self, key: str, digest: str) -> str:
        """Return the key under which answers are stored: a digest of the draft and the settings."""
        return digest_of([self._basis, key, digest])

    def told(self, left: int, total: int) -> str:
        """Return the notice about a stopped pass with the number of drafts that are left."""
        why = self.ended_by or self.errors.message
        more = "" if self.ended_by else " with retry_errors"
        return f"the pass was stopped: {why}; resume{more} to process the remaining {left} of {total} drafts"
