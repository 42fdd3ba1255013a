"""Detection of a teacher that repeatedly fails with the same error, which stops a pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

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
