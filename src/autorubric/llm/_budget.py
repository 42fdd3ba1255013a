"""The transport that enforces the current budget: every request is reserved before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from autorubric.errors import BudgetError, ProviderError, ProviderTimeoutError
from autorubric.llm._prices import PRICE_IT, REPLY_TOKENS, Pricing, prompt_tokens
from autorubric.llm._spending import Budget, whole_budget
from autorubric.llm._transport import ModelReply, ModelRequest, Transport


class Spend:
    """A transport that enforces the caller's budget; without a budget it only forwards requests.

    Args:
        inner: The transport that sends requests.
        pricing: Returns the model's price; called only if a budget counts cost.
    """

    def __init__(self, inner: Transport, pricing: Callable[[], Pricing]) -> None:
        self._inner = inner
        self._pricing = pricing
        self._known: Pricing | None = None

    def send(self, request: ModelRequest) -> Coroutine[Any, Any, ModelReply]:
        """Return the inner transport's reply if the budget allows the request.

        Raises:
            BudgetError: If the budget has no room, or counts cost and the model's price is unknown.
            ProviderError: If the inner transport got no reply.
        """
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

    async def aclose(self) -> None:
        """Release the connections of the inner transport."""
        await self._inner.aclose()

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
        allowed = request.params.get("max_tokens")
        received = min(REPLY_TOKENS, allowed) if isinstance(allowed, int) else REPLY_TOKENS
        return price.of(prompt_tokens(request.messages, request.schema), received)

    def _cost_of(self, reply: ModelReply, reserved: float) -> float:
        if reply.cost is not None:
            return reply.cost
        price = self._known.price if self._known is not None else None
        return price.of_usage(reply.usage) if price is not None and reply.usage is not None else reserved
