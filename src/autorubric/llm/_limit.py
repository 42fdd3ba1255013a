"""The transport that respects a provider's rate limits, both configured and observed."""

from __future__ import annotations

from autorubric.errors import TransientError
from autorubric.llm._faults import asks_to_wait
from autorubric.llm._spending import refuse_if_stopped
from autorubric.llm._transport import ModelReply, ModelRequest, Transport
from autorubric.rate_limit import Limits, limiter_for

_CHARACTERS_PER_TOKEN = 4
_REPLY_TOKENS = 200


class Limit:
    """A transport that delays each request until the provider's rate limits allow it.

    Args:
        inner: The transport that sends requests.
        provider: The provider's name or address.
        limits: The configured limits, which apply to all requests to the provider in an event loop.
    """

    def __init__(self, inner: Transport, provider: str, limits: Limits) -> None:
        self._inner = inner
        self._provider = provider
        self._limits = limits

    async def send(self, request: ModelRequest) -> ModelReply:
        """Return the inner transport's reply after waiting for the request's turn.

        Raises:
            ProviderError: If the inner transport got no reply.
            BudgetError: If the run was stopped while the request waited.
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
        """Release the connections of the inner transport."""
        await self._inner.aclose()


def _estimate(request: ModelRequest) -> int:
    """Estimate the request's tokens; always needed, because other configs may limit the same provider."""
    characters = 0
    for message in request.messages:
        characters += len(message.content)
    return characters // _CHARACTERS_PER_TOKEN + _REPLY_TOKENS
