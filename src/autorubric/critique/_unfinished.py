"""Errors that stop a pass, and answers on its unfinished drafts, stored for the pass that resumes."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from autorubric.critique._ledger import write_json
from autorubric.critique._manifest import VERSION
from autorubric.critique._schema import digest_of
from autorubric.errors import BudgetError
from autorubric.values import Json

MOST: Final = 5
"""Number of consecutive drafts with the same failure that stops a pass without any answer."""

_UNANSWERED: Final = ("PROVIDER_ERROR", "TIMEOUT")
_CHANGING: Final = re.compile(r"[\w-]*\d[\w-]*")


@dataclass(slots=True, kw_only=True)
class RepeatedErrors:
    """A counter of consecutive identical errors in the records of a pass.

    If the teacher has answered before, a short outage can fail all drafts that are in progress, so the limit
    is raised by their number.

    Attributes:
        in_flight: Maximum number of drafts in progress at a time.
        message: The reason why the pass stops; None while the pass continues.
    """

    in_flight: int
    message: str | None = None
    _error: str = ""
    _count: int = 0
    _answered: bool = False

    def add(self, error: Any) -> None:
        """Count the error of a record; None for a record without an error."""
        code = error.get("code") if isinstance(error, dict) else None
        if code not in _UNANSWERED:
            self._answered, self._count = True, 0
            return
        text = f"{code}: {error.get('message')}"
        same = _CHANGING.sub("#", text)
        self._count = self._count + 1 if same == self._error else 1
        self._error = same
        if self._count >= (MOST + self.in_flight if self._answered else MOST) and self.message is None:
            which = "the last" if self._answered else "all"
            so_far = "" if self._answered else " so far"
            self.message = f"{which} {self._count} drafts{so_far} failed with the same error: {text}"


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
