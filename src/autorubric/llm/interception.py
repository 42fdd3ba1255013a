"""What transports and judges need of batches: requests that are kept instead of sent, and whose they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from autorubric.errors import BudgetError


class HttpRequest(NamedTuple):
    """A request as it would be sent to a provider."""

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


@contextmanager
def intercept(interception: Interception) -> Iterator[None]:
    token = _INTERCEPTION.set(interception)
    try:
        yield
    finally:
        _INTERCEPTION.reset(token)


@asynccontextmanager
async def _within(queue: Any, vote: tuple[str, ...]) -> AsyncIterator[None]:
    token = BATCHES.set((queue, vote))
    try:
        yield
    finally:
        BATCHES.reset(token)


def vote_within(item_id: str, judge_id: str, *criteria: str) -> AbstractAsyncContextManager[None]:
    """Distinguish requests inside the block from equal ones for votes on other items or criteria."""
    held = BATCHES.get()
    return nullcontext() if held is None else _within(held[0], (item_id, judge_id, *criteria))
