"""The process that keeps limits and budget for all workers of a Ray run, and what they tell each other.

A worker asks, and tells what became of its requests, in blocks: what has come up since its last call goes in
the next one. So a busy worker calls seldom, and one with few requests sends few at a time. What is granted in
a block is still granted request by request, in the order in which they came and for one use; so limits, those
that are learnt among them, hold as exactly as in one process.

Nothing here imports Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from autorubric.llm import Spending, SpendingLimit
from autorubric.rate_limit import Limits, Slot, local_limiter


class SlotAsked(NamedTuple):
    """A worker wants to send a request.

    Attributes:
        number: What the worker calls the request; none of its other questions has the number.
        provider: To whom.
        limits: What is allowed.
        tokens: Estimate of the tokens that it will use.
    """

    number: int
    provider: str
    limits: Limits
    tokens: int


class SlotEnded(NamedTuple):
    """A request is over, or is not wanted any more.

    Attributes:
        number: As in `SlotAsked`.
        is_answered: Whether it was answered.
        tokens: What the provider counted; None where it did not.
        is_throttled: Whether the provider turned it away.
        retry_after: For how many seconds, where it says so.
    """

    number: int
    is_answered: bool = False
    tokens: int | None = None
    is_throttled: bool = False
    retry_after: float | None = None


class CostAsked(NamedTuple):
    """A worker wants to set a request aside in the budget.

    Attributes:
        number: What the worker calls the reservation; none of its other questions has the number.
        cost: Estimate in US dollars; 0 where cost is not counted.
    """

    number: int
    cost: float


class CostSettled(NamedTuple):
    """What was set aside has been spent, or is not wanted any more.

    Attributes:
        number: As in `CostAsked`.
        cost: What it came to in US dollars; None where it was not sent.
    """

    number: int
    cost: float | None


Asked = SlotAsked | CostAsked
Told = Asked | SlotEnded | CostSettled


class Answer(NamedTuple):
    """What became of a question.

    Attributes:
        number: Of the question.
        error: Why it was not granted, such as that the budget is used up; None where it was.
    """

    number: int
    error: Exception | None = None


class _NotAnsweredError(Exception):
    """A request ended without an answer."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Account:
    """What one worker asks for and has.

    Attributes:
        asking: Questions that are open, by number.
        held: Slots, by number.
        reserved: What is set aside in the budget, by number.
        answers: What the worker has not been told yet.
        has_news: Set where there are answers, or will be no more.
    """

    asking: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    held: dict[int, tuple[AbstractAsyncContextManager[Slot], Slot]] = field(default_factory=dict)
    reserved: dict[int, float] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    has_news: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, answer: Answer) -> None:
        self.answers.append(answer)
        self.has_news.set()

    def taken(self) -> list[Answer]:
        """The answers, which count as told from now on."""
        answers, self.answers = self.answers, []
        self.has_news.clear()
        return answers


class Keeper:
    """Keeps the limits and the budget of all workers of a run.

    Args:
        max_calls: Most requests that are sent; None for no limit.
        max_cost: US dollars that they may cost; None for no limit.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self._budget = SpendingLimit(max_calls=max_calls, max_cost=max_cost)
        self._accounts: dict[str, _Account] = {}
        self._dead: set[str] = set()

    async def tell(self, worker: str, block: Iterable[Told]) -> list[Answer]:
        """Takes note of what a worker tells and asks; the answers that are there at once, or were before."""
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
        # What need not wait has its answer after one turn of the event loop.
        await asyncio.sleep(0)
        return account.taken()

    async def answers(self, worker: str) -> list[Answer]:
        """The answers to a worker's questions, once there are any; none where it has been buried."""
        account = self._accounts.get(worker)
        if account is None:
            return []
        await account.has_news.wait()
        return account.taken()

    async def spending(self) -> Spending:
        """What was spent so far."""
        return self._budget.spending

    async def bury(self, worker: str) -> None:
        """Gives back what a worker held that is no more; what still comes from it is passed over."""
        self._dead.add(worker)
        account = self._accounts.pop(worker, None)
        if account is None:
            return
        for number in [*account.asking, *account.held]:
            await self._release(account, SlotEnded(number))
        for number, cost in list(account.reserved.items()):
            # It may have been answered, and paid for, all the same.
            await self._settle(account, number, cost)
        account.has_news.set()

    def _ask(self, account: _Account, asked: Asked) -> None:
        number = asked.number
        account.asking[number] = asking = asyncio.ensure_future(self._granted(account, asked))
        asking.add_done_callback(lambda _: account.asking.pop(number, None))

    async def _granted(self, account: _Account, asked: Asked) -> None:
        try:
            if isinstance(asked, SlotAsked):
                entered = local_limiter(asked.provider, asked.limits).slot(asked.tokens)
                account.held[asked.number] = (entered, await entered.__aenter__())
            else:
                await self._budget.reserve(asked.cost)
                account.reserved[asked.number] = asked.cost
        # Whatever it is, it belongs to the one who waits for the answer.
        except Exception as error:
            account.answer(Answer(asked.number, error))
        else:
            account.answer(Answer(asked.number))

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
