"""Answers on drafts that a stopped pass left unfinished, kept for the pass that resumes."""

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
    """Works on drafts until a budget or an error stops it, and keeps the answers received.

    The file is written once, when the pass ends: there are never more drafts in it than were under way.

    Args:
        path: The file; there is none if nothing is unfinished.
        basis: What answers depend on beside the draft, as a digest. Those of another basis are not used, and
            stay where they are.

    Attributes:
        ended_by: The error of the budget; None if there was room for everything.
        errors: Watches for a teacher that only fails.
        left: Drafts that are begun and not finished.
    """

    def __init__(self, path: Path, basis: str) -> None:
        self._path, self._basis = path, basis
        self.errors = RepeatedErrors(in_flight=0)
        self._drafts: dict[str, dict[str, Any]] = {}
        self.ended_by: BudgetError | None = None
        self.left = 0

    def read(self) -> None:
        """Read what an earlier pass kept."""
        try:
            self._drafts = dict(json.loads(self._path.read_text(encoding="utf-8"))["drafts"])
        # What cannot be read is asked for again.
        except (OSError, ValueError, KeyError, TypeError):
            return

    def taken(self, waiting: Iterator[T]) -> Iterator[T]:
        """Yield the items in order, until the budget is spent or the teacher only fails."""
        while self.ended_by is None and self.errors.message is None:
            item = next(waiting, None)
            if item is None:
                return
            yield item

    async def work(self, key: str, digest: str, ask: Callable[[dict[str, Json]], Awaitable[T]]) -> T | None:
        """Return the result of asking about a draft; None if the budget was too small for all questions.

        Args:
            key: The draft's id.
            digest: Digest of the draft.
            ask: Called with the earlier answers; adds to them and asks the rest.
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
        """What stopped the pass: `max_calls`, `max_cost` or `errors`; None if nothing did."""
        if self.ended_by is None:
            return None if self.errors.message is None else "errors"
        return self.ended_by.limit

    def forget(self, key: str, digest: str) -> None:
        """Drop the stored answers of a draft that has a record."""
        self._drafts.pop(self._place(key, digest), None)

    def write(self) -> None:
        """Write what is kept, in one piece."""
        if self._drafts:
            write_json(self._path, {"version": VERSION, "drafts": self._drafts})
        else:
            self._path.unlink(missing_ok=True)

    def _place(self, key: str, digest: str) -> str:
        """Under which digest answers stand: of the draft, and of all else that they depend on."""
        return digest_of([self._basis, key, digest])

    def told(self, left: int, total: int) -> str:
        """Return the notice about a stopped pass."""
        why = self.ended_by or self.errors.message
        more = "" if self.ended_by else " and retries errors"
        return f"stopped: {why}; {left} of {total} drafts are left for a pass that resumes{more}"
