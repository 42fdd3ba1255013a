"""What transports and judges need of batches: requests that are kept instead of sent, and whose they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from autorubric.errors import BudgetError
from autorubric.support.objects import set_within


class HttpRequest(NamedTuple):
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Interception:
    """A call whose request is not sent: it is kept, or gets a reply that is already known."""

    reply: tuple[int, bytes] | None = None  # HTTP status and body
    request: HttpRequest | None = None

    def take(self, request: HttpRequest) -> tuple[int, bytes]:
        """Return the reply; without one, keep the request and raise a `BudgetError`, which fails no vote."""
        self.request = request
        if self.reply is None:
            raise BudgetError("the request waits for a batch of the provider", limit="batch")
        return self.reply


_INTERCEPTION: ContextVar[Interception | None] = ContextVar("autorubric_interception", default=None)
interception_in_force = _INTERCEPTION.get

BATCHES: ContextVar[tuple[Any, tuple[str, ...]] | None] = ContextVar("BATCHES", default=None)
"""The `BatchQueue` that answers requests for votes, and the current vote: its item, judge and criteria.

Outside of votes of models, requests are sent as usual, because the code of users cannot be repeated.
"""


def intercept(interception: Interception) -> AbstractContextManager[None]:
    return set_within(_INTERCEPTION, interception)


@asynccontextmanager
async def vote_within(*vote: str) -> AsyncIterator[None]:
    """Distinguish requests for a vote (its item, judge and criteria) from equal ones for other votes."""
    held = BATCHES.get()
    with set_within(BATCHES, held and (held[0], vote)):
        yield
