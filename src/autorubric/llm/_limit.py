"""The transport that keeps a provider's limits, those that it tells and those that it does not."""

from __future__ import annotations

from autorubric.errors import TransientError
from autorubric.llm._faults import asks_to_wait
from autorubric.llm._spending import refuse_if_stopped
from autorubric.llm._transport import ModelReply, ModelRequest, Transport
from autorubric.rate_limit import Limits, limiter_for

_CHARACTERS_PER_TOKEN = 4
_REPLY_TOKENS = 200


class Limit:
    """Sends when its limits allow it, counting everything on this provider and event loop.

    Args:
        inner: What sends.
        provider: The provider's name, or its address.
        limits: What is allowed.
    """

    def __init__(self, inner: Transport, provider: str, limits: Limits) -> None:
        self._inner = inner
        self._provider = provider
        self._limits = limits

    async def send(self, request: ModelRequest) -> ModelReply:
        """The inner transport's reply, once the request's turn has come.

        Raises:
            ProviderError: The inner transport got none.
            BudgetError: The run was stopped while the request waited.
        """
        async with limiter_for(self._provider, self._limits).slot(_estimate(request)) as slot:
            refuse_if_stopped()
            try:
                reply = await self._inner.send(request)
            except TransientError as error:
                if asks_to_wait(error):
                    slot.throttled(error.retry_after)
                raise
            if reply.usage is not None:
                slot.spent(reply.usage.total_tokens)
            return reply

    async def aclose(self) -> None:
        """Releases the connections of the inner transport."""
        await self._inner.aclose()


def _estimate(request: ModelRequest) -> int:
    """Tokens that the request will use; others on the provider may have a limit where it has none."""
    characters = 0
    for message in request.messages:
        characters += len(message.content)
    return characters // _CHARACTERS_PER_TOKEN + _REPLY_TOKENS
