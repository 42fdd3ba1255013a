"""Budgets: limits on calls and cost, reserved before anything is sent at the prices of its model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, cast

from autorubric.errors import ArgumentError, BudgetError, ProviderError, ProviderTimeoutError, TokenUsage
from autorubric.llm.names import is_openai_itself
from autorubric.llm.transport import Message, ModelReply, ModelRequest, ReplySchema, Transport, TransportLayer
from autorubric.llm.wire import schema_length
from autorubric.support.objects import set_within

if TYPE_CHECKING:
    from autorubric.llm.config import LLMConfig


CHARACTERS_PER_TOKEN: Final = 4
"""Approximation for English text; the models' own tokenizers differ from it by about a quarter."""
REPLY_TOKENS: Final = 200
"""Assumed number of tokens in a reply if nothing is known about it."""
PRICE_IT: Final = "set input_cost_per_token and output_cost_per_token in the run file or its LLMConfig"
"""Advice for an unknown price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model, in US dollars per token."""

    sent: float  # price per prompt token; discounts for prefix caching are ignored
    received: float  # price per reply token, including reasoning tokens

    def of(self, sent: float, received: float) -> float:
        """Return the cost in US dollars for the given numbers of sent and received tokens."""
        return self.sent * sent + self.received * received

    def of_usage(self, usage: TokenUsage) -> float:
        return self.of(usage.prompt_tokens, usage.completion_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """A model's price, or the reason why it is unknown."""

    model: str
    price: Price | None = None
    reason: str = ""


def own_price(config: LLMConfig) -> Price | None:
    """Return the price set in the config; None if no price is set."""
    sent, received = config.input_cost_per_token, config.output_cost_per_token
    return None if sent is None or received is None else Price(sent=sent, received=received)


def pricing_of(config: LLMConfig, *, direct: bool) -> Pricing:
    """Return a model's price from its config, or otherwise from litellm's list, without sending a request."""
    own = own_price(config)
    if own is not None:
        return Pricing(model=config.model, price=own)
    if direct and config.api_base is not None and not is_openai_itself(config.api_base):
        return Pricing(model=config.model, reason=f"the price of the server at {config.api_base} is unknown")
    # Imported late, because most configs that count costs set their own prices.
    from autorubric.llm.litellm_transport import listed_price

    listed = listed_price(config.model)
    if listed is None:
        return Pricing(model=config.model, reason="litellm's price list does not include the model")
    return Pricing(model=config.model, price=Price(sent=listed[0], received=listed[1]))


class Priced(TransportLayer):
    """A transport that computes the cost of replies from a fixed price, if the provider counts tokens."""

    def __init__(self, inner: Transport, price: Price) -> None:
        super().__init__(inner)
        self._price = price

    async def send(self, request: ModelRequest) -> ModelReply:
        reply = await self._inner.send(request)
        return reply if reply.usage is None else reply._replace(cost=self._price.of_usage(reply.usage))


def prompt_tokens(messages: tuple[Message, ...], schema: ReplySchema | None) -> int:
    """Estimate a request's number of tokens, at four characters of prompt and reply schema per token."""
    characters = sum(len(message.content) for message in messages)
    if schema is not None:
        characters += schema_length(schema)
    return -(-characters // CHARACTERS_PER_TOKEN)


def estimated_cost(price: Price, request: ModelRequest) -> float:
    """Return the estimated cost of a request in US dollars."""
    allowed = request.params.get("max_tokens")
    received = min(REPLY_TOKENS, allowed) if isinstance(allowed, int) else REPLY_TOKENS
    return price.of(prompt_tokens(request.messages, request.schema), received)


class Budget(Protocol):
    """Interface of a run's budget; every request reserves its cost in US dollars before it is sent."""

    counts_cost: bool  # whether requests must reserve their estimated cost, instead of 0

    @property
    def stop_reason(self) -> str | None:
        """Reason why no more requests are sent; None if the budget was not stopped."""

    async def reserve(self, cost: float) -> None:
        """Reserve budget for one request, waiting until enough is available."""

    async def settle(self, reserved: float, cost: float | None) -> None:
        """Replace a reservation with the actual cost, or release it if `cost` is None."""


SpendingLimitName = Literal["max_calls", "max_cost"]


class Spending(NamedTuple):
    calls: int  # number of requests to models, and of calls to judges that are functions or objects
    cost: float  # total cost of the calls, in US dollars
    reached: SpendingLimitName | None  # the limit that was reached; None if no limit was reached


class SpendingLimit:
    """A run's budget, kept in this process; `max_cost` is in US dollars.

    A request that does not fit the budget waits, in case requests in flight cost less than estimated. The
    budget is used up if no request is in flight and the next one does not fit. Estimates are scaled by the
    ratio of actual to estimated cost so far. The budget can therefore be exceeded only if requests in flight
    cost more than these estimates. Requests can be sent from several threads, each with its own event loop.
    """

    def __init__(self, *, max_calls: int | None = None, max_cost: float | None = None) -> None:
        for name, limit, kinds in (("max_calls", max_calls, int), ("max_cost", max_cost, int | float)):
            if limit is not None and (
                isinstance(limit, bool) or not isinstance(limit, kinds) or not 0 < limit < inf
            ):
                kind = "integer" if kinds is int else "number"
                raise ArgumentError(f"{name} must be a positive {kind}, or None for no limit; got {limit!r}")
        self._max_calls = max_calls
        self._max_cost = max_cost
        self.counts_cost = max_cost is not None
        self.calls = 0
        self.cost = 0.0
        self.reached: SpendingLimitName | None = None
        self.stop_reason: str | None = None
        self._reserved = 0.0
        self._estimated, self._paid = 0.0, 0.0
        self._running = 0
        # Functions in threads use their own event loops, all under the same limit.
        self._lock = threading.Lock()
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, cost: float) -> None:
        while True:
            with self._lock:
                if self._fits(cost):
                    self.calls += 1
                    self._running += 1
                    self._reserved += cost
                    return
                # Done when there may be room.
                turn = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
            await turn

    async def settle(self, reserved: float, cost: float | None) -> None:
        with self._lock:
            self._running -= 1
            self._reserved = self._reserved - reserved if self._running else 0.0
            self.calls -= cost is None
            self.cost += cost or 0.0
            if reserved and cost:
                self._estimated += reserved
                self._paid += cost
            self._wake()

    def stop(self, reason: str) -> None:
        """Reject all further calls for this reason; requests in flight are not cancelled."""
        with self._lock:
            self.stop_reason = self.stop_reason or reason
            self._wake()

    @property
    def is_over(self) -> bool:
        """Whether further requests are rejected because a limit was reached or the run was stopped."""
        return self.reached is not None or self.stop_reason is not None

    def has_room(self, calls: int) -> bool:
        """Return whether further calls, at the mean cost of those so far, are within the limits."""
        if self._max_calls is not None and self.calls + calls > self._max_calls:
            return False
        spent = self.cost + self._expected(self._reserved)
        mean = spent / self.calls if self.calls else 0.0
        return self._max_cost is None or spent + calls * mean <= self._max_cost

    @property
    def is_set(self) -> bool:
        return self._max_calls is not None or self._max_cost is not None

    @property
    def spending(self) -> Spending:
        return Spending(self.calls, self.cost, self.reached)

    @spending.setter
    def spending(self, told: Spending) -> None:
        # If another process keeps the budget, this object shows the figures of that process.
        self.calls, self.cost, self.reached = told

    def _expected(self, estimate: float) -> float:
        """Return the expected cost in US dollars of requests with this estimate, based on those answered."""
        return estimate * self._paid / self._estimated if self._estimated else estimate

    def _fits(self, cost: float) -> bool:
        if self.stop_reason is not None:
            raise BudgetError(self.stop_reason, limit="stopped")
        if self.reached is None and self._max_calls is not None and self.calls >= self._max_calls:
            self._reach("max_calls")
        if self.reached is not None:
            raise BudgetError(str(self), limit=self.reached)
        if self._max_cost is None or self.cost + self._expected(self._reserved + cost) <= self._max_cost:
            return True
        if self._running == 0:
            self._reach("max_cost")
            raise BudgetError(str(self), limit="max_cost")
        return False

    def _reach(self, limit: SpendingLimitName) -> None:
        self.reached = limit
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            # Nothing waits in a loop that has been closed.
            with suppress(RuntimeError):
                turn.get_loop().call_soon_threadsafe(_end, turn)

    def __str__(self) -> str:
        if self.stop_reason is not None:
            return self.stop_reason
        if self.reached == "max_calls":
            return f"the limit max_calls={self._max_calls} was reached"
        return (
            f"the limit max_cost={self._max_cost:g} US dollars does not allow another request: "
            f"{self.calls} requests count as {self.cost:g}"
        )


def _end(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class _Both:
    def __init__(self, inner: Budget, outer: Budget) -> None:
        self.inner = inner
        self._outer = outer
        self.counts_cost = inner.counts_cost or outer.counts_cost

    async def reserve(self, cost: float) -> None:
        await self.inner.reserve(cost)
        try:
            await self._outer.reserve(cost)
        except BaseException:
            await self.inner.settle(cost, None)
            raise

    async def settle(self, reserved: float, cost: float | None) -> None:
        await self.inner.settle(reserved, cost)
        await self._outer.settle(reserved, cost)

    @property
    def stop_reason(self) -> str | None:
        return self.inner.stop_reason or self._outer.stop_reason


_BUDGET: ContextVar[Budget | None] = ContextVar("autorubric_budget", default=None)


def spending_within(budget: Budget | None) -> AbstractContextManager[None]:
    """Apply a budget inside the block, in addition to that of an outer block; None is no budget at all."""
    outer = _BUDGET.get()
    if budget is not None and outer is not None and budget is not outer:
        budget = _Both(budget, outer)
    return set_within(_BUDGET, budget)


class OneCall:
    """One call of a judge that is a function or object, which is the budget inside the call, if there is one.

    The call itself is reserved. The first request that the judge's own code sends replaces the call, so that
    both together count once.
    """

    __slots__ = ("_budget", "_token", "counts_cost", "has_sent")

    def __init__(self) -> None:
        self._budget = budget = _BUDGET.get()
        self.counts_cost = budget is not None and budget.counts_cost
        self.has_sent = False  # whether a request took the call's place

    async def begin(self) -> None:
        if self._budget is not None:
            await self._budget.reserve(0.0)

    async def end(self) -> None:
        if self._budget is not None and not self.has_sent:
            await self._budget.settle(0.0, 0.0)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Make the call, in a separate context."""
        _BUDGET.set(self._budget and self)
        return function(*arguments)

    async def __aenter__(self) -> None:
        await self.begin()
        self._token = _BUDGET.set(self._budget and self)

    async def __aexit__(self, *_: object) -> None:
        _BUDGET.reset(self._token)
        await self.end()

    async def reserve(self, cost: float) -> None:
        outer = cast(Budget, self._budget)
        if not self.has_sent:
            self.has_sent = True
            await outer.settle(0.0, None)
        await outer.reserve(cost)

    async def settle(self, reserved: float, cost: float | None) -> None:
        await cast(Budget, self._budget).settle(reserved, cost)

    @property
    def stop_reason(self) -> str | None:
        return cast(Budget, self._budget).stop_reason


whole_budget = _BUDGET.get
"""Returns the combined budget of all current blocks of `spending_within`; None outside of them."""


def refuse_if_stopped() -> None:
    """Raise if the current budget was stopped after a call was reserved and before it was sent."""
    budget = _BUDGET.get()
    if budget is not None and budget.stop_reason is not None:
        raise BudgetError(budget.stop_reason, limit="stopped")


def budget_in_force() -> Budget | None:
    """Return the budget of the innermost active `spending_within` block, or None outside such blocks."""
    budget = _BUDGET.get()
    return budget.inner if isinstance(budget, _Both) else budget


class BudgetTransport(TransportLayer):
    """A transport that enforces the caller's budget; without a budget it only forwards requests."""

    def __init__(self, inner: Transport, pricing: Callable[[], Pricing]) -> None:
        super().__init__(inner)
        self._pricing = pricing
        self._known: Pricing | None = None

    def send(self, request: ModelRequest) -> Coroutine[Any, Any, ModelReply]:
        budget = whole_budget()
        return self._inner.send(request) if budget is None else self._within(budget, request)

    async def _within(self, budget: Budget, request: ModelRequest) -> ModelReply:
        reserved = self._estimate(request) if budget.counts_cost else 0.0
        await budget.reserve(reserved)
        # A request that timed out may still have been answered and charged.
        cost: float | None = reserved
        try:
            reply = await self._inner.send(request)
            cost = self._cost_of(reply, reserved)
        except ProviderTimeoutError:
            raise
        except BudgetError:
            cost = None
            raise
        except ProviderError:
            cost = 0.0
            raise
        finally:
            await budget.settle(reserved, cost)
        return reply

    def _estimate(self, request: ModelRequest) -> float:
        if self._known is None:
            self._known = self._pricing()
        price = self._known.price
        if price is None:
            raise BudgetError(
                f"max_cost cannot be enforced: {self._known.model} has no known price "
                f"({self._known.reason}); {PRICE_IT}, or use max_calls",
                limit="max_cost",
            )
        return estimated_cost(price, request)

    def _cost_of(self, reply: ModelReply, reserved: float) -> float:
        if reply.cost is not None:
            return reply.cost
        price = self._known.price if self._known is not None else None
        return price.of_usage(reply.usage) if price is not None and reply.usage is not None else reserved
