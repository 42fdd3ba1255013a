"""Closes the HTTP clients that litellm keeps for an event loop: when idle, or when the loop closes.

litellm keeps a client per loop for an hour, even after the loop is closed. Sockets stay open, and in versions
that identify a loop by its id, a later loop with the same id gets clients that do not work in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

_KEEPERS: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None]] = WeakKeyDictionary()


async def close_with_loop(litellm: Any) -> None:
    """Make sure that litellm's clients of the running loop are closed when the loop ends."""
    loop = asyncio.get_running_loop()
    if loop in _KEEPERS:
        return
    # A generator references its loop, and would keep the entry of a closed loop alive.
    for reference in _KEEPERS.keyrefs():
        other = reference()
        if other is not None and other.is_closed():
            _KEEPERS.pop(other, None)
    _KEEPERS[loop] = keeper = _close_at_end(litellm, loop)
    await anext(keeper)


async def close_idle(litellm: Any) -> None:
    """Close the idle connections of the running loop's clients.

    The clients themselves are kept and reconnect when used again, because other code may use them too.
    """
    for _, client in _clients(litellm):
        for transport in (client._transport, *client._mounts.values()):
            if transport is not None and _is_idle(transport):
                with suppress(Exception):
                    await transport.aclose()


async def _close_at_end(litellm: Any, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
    """Yield once; a loop that ends closes its generators, and this one then closes litellm's clients."""
    try:
        yield
    finally:
        _KEEPERS.pop(loop, None)
        cache = litellm.in_memory_llm_clients_cache
        for key, client in _clients(litellm):
            cache.cache_dict.pop(key, None)
            cache.ttl_dict.pop(key, None)
            # The loop ends: an error while closing one client must not keep the others open.
            with suppress(Exception):
                await client.aclose()


def _clients(litellm: Any) -> Iterator[tuple[str, Any]]:
    """Yield litellm's own HTTP clients of the running loop with their cache keys."""
    from autorubric.llm.litellm_guard import http_client_in

    cache = litellm.in_memory_llm_clients_cache
    # The loop's id or a running number, by litellm's version.
    suffix = cache.update_cache_key_with_event_loop("")
    for key, kept in list(cache.cache_dict.items()):
        if not str(key).endswith(suffix):
            continue
        client = http_client_in(kept)
        if client is not None and client is not litellm.aclient_session:
            yield key, client


def _is_idle(transport: Any) -> bool:
    """Return whether no request is in progress; False if this cannot be determined."""
    pooled = getattr(getattr(transport, "_pool", None), "connections", None)
    if pooled is not None:
        return all(connection.is_idle() for connection in pooled)
    acquired = getattr(getattr(getattr(transport, "client", None), "connector", None), "_acquired", None)
    return acquired is not None and not acquired
