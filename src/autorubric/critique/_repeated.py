"""A teacher that only fails: a pass stops when every draft fails with the same error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 5
"""Drafts in a row whose failure for one reason stops a pass in which nothing was answered."""

_UNANSWERED: Final = ("PROVIDER_ERROR", "TIMEOUT")
_CHANGING: Final = re.compile(r"[\w-]*\d[\w-]*")


@dataclass(slots=True, kw_only=True)
class RepeatedErrors:
    """Watches the records of a pass as they come.

    Once the teacher has answered, a server may only have broken off for a moment: then more drafts in a row
    have to fail than were under way together.

    Attributes:
        in_flight: Most drafts under way at a time.
        message: Why the pass stops; None while it continues.
    """

    in_flight: int
    message: str | None = None
    _error: str = ""
    _count: int = 0
    _answered: bool = False

    def add(self, error: Any) -> None:
        """Take note of the error of one record, None for one without."""
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
