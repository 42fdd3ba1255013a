"""Repeated errors: a run stops if a judge keeps failing with the same permanent error."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from autorubric._events import VoteCast

MOST: Final = 5
"""Number of consecutive judgements of one judge with the same error that stops the run."""

_PASSING: Final = ("ProviderConnectionError", "RateLimitError")
"""Errors that may be temporary if the judge has answered before."""
_EVERY_VOTE: Final = ("AuthenticationError", "ModelNotFoundError", *_PASSING)
"""Errors that are independent of the item, so that each vote counts."""
_EVERY_ITEM: Final = ("RequestRefusedError", "JudgeCodeError")
"""Errors that an item may cause, so that all votes on one item count once."""
_TOO_LONG: Final = "Retry-After asks to wait"
"""Part of the error if a provider asks for a longer delay than the judge accepts."""
_CHANGING: Final = re.compile(r"[\w-]*\d[\w-]*")


@dataclass(slots=True)
class _Row:
    """The latest judgements of a judge.

    Attributes:
        error: The error that these judgements have in common, without parts that vary between requests.
        count: Number of consecutive judgements with this error.
        item_id: Id of the item of the latest judgement.
        failed_at: Clock time of the latest failure, in seconds.
        has_answered: Whether the judge has answered in this run.
    """

    error: str = ""
    count: int = 0
    item_id: str = ""
    failed_at: float = 0.0
    has_answered: bool = False


@dataclass(slots=True)
class RepeatedErrors:
    """Counts the consecutive errors of each judge as the votes of a run arrive.

    Once a judge has answered, a connection error may be temporary. It then counts only if its request began
    after the previous failure, so that requests that failed at the same time count once.

    Attributes:
        stop: Called with the message when a judge has failed `MOST` times in a row with the same error.
        clock: Function that returns a monotonic time in seconds.
    """

    stop: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _rows: dict[str, _Row] = field(default_factory=dict)

    def add(self, event: VoteCast) -> None:
        """Process one vote."""
        vote = event.vote
        if vote.status == "not_asked" or (event.exchanged is not None and event.exchanged.cached):
            return
        row = self._rows.setdefault(vote.judge_id, _Row())
        text = vote.error or ""
        kind = text.partition(":")[0] if vote.status == "failed" else ""
        row.has_answered = row.has_answered or vote.status != "failed" or vote.unreadable
        if kind == "RateLimitError" and _TOO_LONG not in text:
            kind = ""
        if kind not in _EVERY_VOTE and kind not in _EVERY_ITEM:
            row.error, row.count = "", 0
            return
        same = _CHANGING.sub("#", text)
        if same != row.error:
            row.error, row.count = same, 0
        elif self._is_counted(row, event, kind):
            return
        row.count += 1
        row.item_id, row.failed_at = event.item_id, self.clock()
        if row.count == MOST:
            so_far = "the last" if row.has_answered else "all"
            been = "" if row.has_answered else " so far"
            judge = f"judge {vote.judge_id!r}"
            self.stop(f"{so_far} {MOST} judgements of {judge}{been} failed with the same error: {text}")

    def _is_counted(self, row: _Row, event: VoteCast, kind: str) -> bool:
        """Return whether the failure has the same cause as the previous one, and is already counted."""
        if kind in _EVERY_ITEM:
            return row.item_id == event.item_id
        if kind not in _PASSING or not row.has_answered:
            return False
        return self.clock() - (event.vote.latency_seconds or 0.0) < row.failed_at
