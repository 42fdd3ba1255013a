"""The process that enforces limits and budget for all workers of a Ray run, and the messages to it.

A worker sends its messages in blocks: messages that arise during a call are sent with the next call. A busy
worker therefore calls rarely, and a worker with few requests sends small blocks. Requests in a block are
still granted one by one, in order of arrival and for a single use, so limits, including learned limits, are
enforced as exactly as in one process.

This module does not import Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from autorubric.llm.budget import Spending, SpendingLimit
from autorubric.llm.rate_limits import RequestLimits, Slot, local_limiter


class SlotAsked(NamedTuple):
    """A message in which a worker asks for a slot for a request to a model.

    Attributes:
        number: Number of the question, unique for the worker.
        provider: Provider of the model.
        limits: Rate limits for the provider.
        tokens: Estimated number of tokens.
    """

    number: int
    provider: str
    limits: RequestLimits
    tokens: int


class SlotEnded(NamedTuple):
    """A message that a request has ended or that its slot is no longer needed.

    Attributes:
        number: Number of the `SlotAsked` message.
        is_answered: Whether the request was answered.
        tokens: Tokens counted by the provider; None if unknown.
        is_throttled: Whether the provider rejected the request because of its rate limit.
        retry_after: Seconds to wait as requested by the provider; None if not specified.
    """

    number: int
    is_answered: bool = False
    tokens: int | None = None
    is_throttled: bool = False
    retry_after: float | None = None


class CostAsked(NamedTuple):
    """A message in which a worker asks to reserve a request in the budget.

    Attributes:
        number: Number of the question, unique for the worker.
        cost: Estimated cost in US dollars; 0 if the budget does not limit cost.
    """

    number: int
    cost: float


class CostSettled(NamedTuple):
    """A message that a reserved request was sent and paid for, or is no longer needed.

    Attributes:
        number: Number of the `CostAsked` message.
        cost: Cost of the request in US dollars; None if it was not sent.
    """

    number: int
    cost: float | None


Asked = SlotAsked | CostAsked
Told = Asked | SlotEnded | CostSettled


class LimitReply(NamedTuple):
    """The keeper's answer to a question.

    Attributes:
        number: Number of the question.
        error: The reason for refusing, for example that the budget is used up; None if granted.
    """

    number: int
    error: Exception | None = None


class _NotAnsweredError(Exception):
    """Passed to a slot if its request ended without an answer."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Account:
    """The open questions and the resources of a worker.

    Attributes:
        asking: Open questions, by number.
        held: Slots, by number.
        reserved: Reservations in the budget, by number.
        answers: Answers that have not been delivered to the worker.
        has_news: An event that is set if there are answers, or if there will be no more answers.
    """

    asking: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    held: dict[int, tuple[AbstractAsyncContextManager[Slot], Slot]] = field(default_factory=dict)
    reserved: dict[int, float] = field(default_factory=dict)
    answers: list[LimitReply] = field(default_factory=list)
    has_news: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, answer: LimitReply) -> None:
        self.answers.append(answer)
        self.has_news.set()

    def taken(self) -> list[LimitReply]:
        """Return the answers and mark them as delivered."""
        answers, self.answers = self.answers, []
        self.has_news.clear()
        return answers


class Keeper:
    """The keeper of the limits and the budget of all workers of a run.

    Args:
        max_cost: Maximum cost in US dollars; None for no limit.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self._budget = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
        self._accounts: dict[str, _Account] = {}
        self._dead: set[str] = set()

    async def tell(self, worker: str, block: Iterable[Told]) -> list[LimitReply]:
        """Process a worker's messages and return the answers that are available immediately."""
        if worker in self._dead:
            return []
        account = self._accounts.setdefault(worker, _Account())
        for told in block:
            match told:
                case SlotAsked() | CostAsked():
                    self._ask(account, told)
                case SlotEnded():
                    await self._release(account, told)
                case CostSettled():
                    await self._settle(account, told.number, told.cost)
                case _:
                    assert_never(told)
        # Questions that need not wait are answered after one turn of the event loop.
        await asyncio.sleep(0)
        return account.taken()

    async def answers(self, worker: str) -> list[LimitReply]:
        """Wait for answers to a worker's questions and return them; empty if the worker was removed."""
        account = self._accounts.get(worker)
        if account is None:
            return []
        await account.has_news.wait()
        return account.taken()

    async def spending(self) -> Spending:
        """Return the number of requests and the amount spent so far."""
        return self._budget.spending

    async def bury(self, worker: str) -> None:
        """Release the resources of a dead worker; later messages from it are ignored."""
        self._dead.add(worker)
        account = self._accounts.pop(worker, None)
        if account is None:
            return
        for number in [*account.asking, *account.held]:
            await self._release(account, SlotEnded(number))
        for number, cost in list(account.reserved.items()):
            # The request may nevertheless have been answered and paid for.
            await self._settle(account, number, cost)
        account.has_news.set()

    def _ask(self, account: _Account, asked: Asked) -> None:
        number = asked.number
        account.asking[number] = asking = asyncio.ensure_future(self._grant(account, asked))
        asking.add_done_callback(lambda _: account.asking.pop(number, None))

    async def _grant(self, account: _Account, asked: Asked) -> None:
        try:
            if isinstance(asked, SlotAsked):
                entered = local_limiter(asked.provider, asked.limits).slot(asked.tokens)
                account.held[asked.number] = (entered, await entered.__aenter__())
            else:
                await self._budget.reserve(asked.cost)
                account.reserved[asked.number] = asked.cost
        # Any error is passed on to the worker that waits for the answer.
        except Exception as error:
            account.answer(LimitReply(asked.number, error))
        else:
            account.answer(LimitReply(asked.number))

    async def _release(self, account: _Account, ended: SlotEnded) -> None:
        _stop_asking(account, ended.number)
        entered, slot = account.held.pop(ended.number, (None, None))
        if entered is None or slot is None:
            return
        if ended.tokens is not None:
            slot.spent(ended.tokens)
        if ended.is_throttled:
            slot.throttled(ended.retry_after)
        await entered.__aexit__(None if ended.is_answered else _NotAnsweredError, None, None)

    async def _settle(self, account: _Account, number: int, cost: float | None) -> None:
        _stop_asking(account, number)
        reserved = account.reserved.pop(number, None)
        if reserved is not None:
            await self._budget.settle(reserved, cost)


def _stop_asking(account: _Account, number: int) -> None:
    asked = account.asking.pop(number, None)
    if asked is not None:
        asked.cancel()
