"""A size limit for responses, because litellm's HTTP clients decompress them and keep them in memory.

litellm has no such limit. Every asynchronous HTTP client that it creates is stored in its client cache, so
the limit is attached there, as event hooks. It applies only inside `limited`: other users of litellm in the
same process are not affected.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from httpx import AsyncByteStream, AsyncClient, DecodingError, Request, Response

_ACCEPTED: Final = "gzip, deflate"
_PIECE: Final = 1 << 16
_HOOKED: Final = "_autorubric_limits_answers"


@dataclass(slots=True)
class SizeLimit:
    """The maximum size of a response.

    Attributes:
        bytes: Maximum number of bytes of a response, after decompression.
        exceeded: Whether a response was larger; litellm's own errors do not report this.
    """

    bytes: int
    exceeded: bool = False


_LIMIT: ContextVar[SizeLimit | None] = ContextVar("_LIMIT", default=None)


@contextmanager
def limited(litellm: Any, limit: SizeLimit) -> Iterator[None]:
    """Limit the size of every response that litellm reads inside the block, and in tasks started there."""
    _hook_cache(litellm.in_memory_llm_clients_cache)
    token = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


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
    if client is None or _limit_response in client.event_hooks["response"]:
        return
    hooks = client.event_hooks
    client.event_hooks = {
        "request": [*hooks["request"], _ask_for_known_encodings],
        "response": [_limit_response, *hooks["response"]],
    }


async def _ask_for_known_encodings(request: Request) -> None:
    if _LIMIT.get() is not None:
        request.headers["accept-encoding"] = _ACCEPTED


async def _limit_response(response: Response) -> None:
    limit = _LIMIT.get()
    if limit is None or not isinstance(response.stream, AsyncByteStream):
        return
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    response.stream = _LimitedStream(response.stream, encoding, limit)


class _LimitedStream(AsyncByteStream):
    """A stream of another stream's decompressed bytes, up to the limit."""

    def __init__(self, inner: AsyncByteStream, encoding: str, limit: SizeLimit) -> None:
        self._inner = inner
        self._encoding = encoding
        self._limit = limit
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = _decoder(self._encoding)
        async for chunk in self._inner:
            for piece in _pieces(decoder, chunk):
                self._size += len(piece)
                if self._size > self._limit.bytes:
                    self._limit.exceeded = True
                    raise DecodingError(f"the response exceeds {self._limit.bytes:,} bytes")
                yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _decoder(encoding: str) -> Any:
    """Return the decompressor for the encoding; None for uncompressed responses."""
    match encoding:
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        case "deflate":
            return zlib.decompressobj()
        case _:
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
