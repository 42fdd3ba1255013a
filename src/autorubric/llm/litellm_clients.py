"""litellm's HTTP clients: keys stay at their provider, responses have a maximum size, and sockets are closed.

litellm reads keys from the environment, follows redirects with all headers except `Authorization`, and keeps
decompressed responses in memory. Every asynchronous HTTP client that it creates is stored in its client
cache, so the guard is attached there, as event hooks. It applies only inside `guard_requests`: other users of
litellm in the same process are not affected.

litellm keeps a client per loop for an hour, even after the loop is closed. Sockets stay open, and in versions
that identify a loop by its id, a later loop with the same id gets clients that do not work in it. The clients
are therefore closed when idle, or when the loop closes.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from httpx import (
    AsyncBaseTransport,
    AsyncByteStream,
    AsyncClient,
    DecodingError,
    Request,
    RequestError,
    Response,
)

from autorubric.errors import AuthenticationError, ProviderError, RequestRefusedError, ServerError
from autorubric.llm.interception import HttpRequest, Interception, interception_in_force
from autorubric.llm.provider_errors import MOVED
from autorubric.support.objects import set_within

_ACCEPTED: Final = "gzip, deflate"
_PIECE: Final = 1 << 16
_HOOKED: Final = "_autorubric_guard"


@dataclass(slots=True)
class Guard:
    """The limits of one call, and what litellm's own errors do not report."""

    max_bytes: int  # maximum number of bytes of a response, after decompression
    # Values of environment variables that must not be sent, by name.
    forbidden: Mapping[str, str] = field(default_factory=dict, repr=False)
    problem: tuple[type[ProviderError], str] | None = None  # why the call was stopped
    request: Request | None = field(default=None, repr=False)  # the last request
    status: int = 0  # HTTP status of its response; 0 if there is none
    body: bytearray = field(default_factory=bytearray, repr=False)  # the response after decompression
    is_complete: bool = False  # whether the response was read to its end

    def address(self) -> str:
        """Return the address of the last request, without its path; empty if there was no request."""
        return "" if self.request is None else str(self.request.url.join("/")).rstrip("/")

    def sent_variable(self, values: Mapping[str, str]) -> str:
        """Return the name of the first variable whose value the last request has; empty if there is none."""
        if self.request is None:
            return ""
        texts = (unquote(str(self.request.url)), *self.request.headers.values())
        return next((name for name, value in values.items() if any(value in text for text in texts)), "")


_GUARD: ContextVar[Guard | None] = ContextVar("_GUARD", default=None)


def guard_requests(litellm: Any, guard: Guard) -> AbstractContextManager[None]:
    """Guard every request that litellm sends inside the block."""
    _hook_cache(litellm.in_memory_llm_clients_cache)
    return set_within(_GUARD, guard)


def http_client_in(kept: Any) -> AsyncClient | None:
    """Return the HTTP client in an entry of litellm's cache; None for an entry without one."""
    # litellm's handlers store it as `client`, the clients of the providers' libraries as `_client`.
    for held in (kept, getattr(kept, "client", None), getattr(kept, "_client", None)):
        if isinstance(held, AsyncClient):
            return held
    return None


def _hook_cache(cache: Any) -> None:
    if getattr(cache, _HOOKED, False):
        return
    original = cache.set_cache

    def set_cache(key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        _hook_client(value)
        return original(key, value, *args, **kwargs)

    for kept in list(cache.cache_dict.values()):
        _hook_client(kept)
    cache.set_cache = set_cache
    setattr(cache, _HOOKED, True)


def _hook_client(kept: Any) -> None:
    client = http_client_in(kept)
    if client is None or _check_response in client.event_hooks["response"]:
        return
    original = client._transport_for_url

    def transport_for(url: Any) -> AsyncBaseTransport:
        interception = interception_in_force()
        return original(url) if interception is None else _Intercepting(interception)

    client._transport_for_url = transport_for  # type: ignore[method-assign]
    hooks = client.event_hooks
    client.event_hooks = {
        "request": [*hooks["request"], _check_request],
        "response": [_check_response, *hooks["response"]],
    }


class _Intercepting(AsyncBaseTransport):
    """Sends nothing: requests of batches are kept, or get the reply that is already known."""

    def __init__(self, interception: Interception) -> None:
        self._interception = interception

    async def handle_async_request(self, request: Request) -> Response:
        body = await request.aread()
        status, content = self._interception.take(HttpRequest(str(request.url), dict(request.headers), body))
        return Response(status, headers={"content-type": "application/json"}, content=content)


async def _check_request(request: Request) -> None:
    guard = _GUARD.get()
    if guard is None:
        return
    request.headers["accept-encoding"] = _ACCEPTED
    guard.request, guard.status, guard.body, guard.is_complete = request, 0, bytearray(), False
    if withheld := guard.sent_variable(guard.forbidden):
        told = (
            f"no request was sent: it contains the key in {withheld}, which does not belong to "
            f"{guard.address()}; use --api-key-env NAME (api_key_env in an LLMConfig)"
        )
        guard.problem = AuthenticationError, told
        raise RequestError("the request contains a key of another provider", request=request)


async def _check_response(response: Response) -> None:
    guard = _GUARD.get()
    if guard is None or not isinstance(response.stream, AsyncByteStream):
        return
    guard.status = response.status_code
    target = response.url.join(response.headers.get("location", ""))
    if (target.scheme, target.netloc) != (response.url.scheme, response.url.netloc):
        guard.problem = RequestRefusedError, MOVED
        # Without a location, the redirect is not followed.
        del response.headers["location"]
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    response.stream = _LimitedStream(response.stream, encoding, guard)


class _LimitedStream(AsyncByteStream):
    """A stream of another stream's decompressed bytes, up to the limit."""

    def __init__(self, inner: AsyncByteStream, encoding: str, guard: Guard) -> None:
        self._inner = inner
        self._encoding = encoding
        self._guard = guard
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = _decoder(self._encoding)
        async for chunk in self._inner:
            for piece in _pieces(decoder, chunk):
                self._size += len(piece)
                if self._size > self._guard.max_bytes:
                    told = f"the response exceeds {self._guard.max_bytes:,} bytes"
                    self._guard.problem = ServerError, told
                    raise DecodingError(told)
                self._guard.body += piece
                yield piece
        self._guard.is_complete = True

    async def aclose(self) -> None:
        await self._inner.aclose()


def _decoder(encoding: str) -> Any:
    """Return the decompressor for the encoding; None for uncompressed responses."""
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    if encoding == "deflate":
        return zlib.decompressobj()
    raise DecodingError(f"the response has the encoding {encoding[:40]!r}; supported: {_ACCEPTED}")


def _pieces(decoder: Any, chunk: bytes) -> Iterator[bytes]:
    """Yield the decompressed bytes of a chunk in small pieces, so that a zip bomb cannot fill the memory."""
    if decoder is None:
        yield chunk
        return
    while chunk:
        try:
            yield decoder.decompress(chunk, _PIECE)
        except zlib.error as error:
            raise DecodingError(str(error)) from error
        chunk = decoder.unconsumed_tail


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
    """Close idle connections of the running loop's clients, which stay usable, as other code may use them."""
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
    pooled = getattr(getattr(transport, "_pool", None), "connections", None)
    if pooled is not None:
        return all(connection.is_idle() for connection in pooled)
    acquired = getattr(getattr(getattr(transport, "client", None), "connector", None), "_acquired", None)
    return acquired is not None and not acquired
