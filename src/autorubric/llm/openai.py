"""The direct transport: one pooled HTTP session to an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final

from autorubric.errors import (
    ArgumentError,
    AuthenticationError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RequestRefusedError,
    ServerError,
)
from autorubric.llm.config import LLMConfig
from autorubric.llm.interception import HttpRequest, interception_in_force
from autorubric.llm.local_window import TimeLimit
from autorubric.llm.names import is_openai_itself
from autorubric.llm.provider_errors import (
    ProviderFailure,
    error_of,
    is_filtered,
    masked_error,
    refusal_of,
    retry_after_of,
    unreachable,
    version_advice,
)
from autorubric.llm.specs import Mask
from autorubric.llm.transport import LARGEST_ANSWER, ModelReply, ModelRequest
from autorubric.llm.wire import CHAT, Wire, error_in
from autorubric.support.json_text import read_compact
from autorubric.support.objects import IdentityCache, Json

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession


DIRECT_KEY: Final = "AUTORUBRIC_API_KEY"
"""Environment variable with the key for any `api_base` other than OpenAI's own."""
_LARGEST_ERROR: Final = 1 << 16
_SHOWN: Final = 200
_NO_JSON: Final = object()


class OpenAITransport:
    """A transport that posts requests to a server, by default chat completions, in one session per loop."""

    def __init__(self, config: LLMConfig, wire: Wire = CHAT) -> None:
        if config.api_base is None:
            raise ArgumentError(f"{config.model}: the direct transport requires api_base; got None")
        self._config = config
        self._wire = wire
        self._url = wire.url(config.api_base, config.model)
        self._key_note = ""
        self._mask = Mask(config.secrets())
        self._secret_params = config.secret_params()
        self._limit = TimeLimit(config)
        self._pools = IdentityCache[asyncio.AbstractEventLoop, _Pool](lambda loop: _Pool())

    async def send(self, request: ModelRequest) -> ModelReply:
        body = self._wire.body(request, self._secret_params)
        headers: Mapping[str, str] = {}
        if (interception := interception_in_force()) is not None:
            key = self._read_key()
            status, raw = interception.take(HttpRequest(self._url, _headers(self._config, key), body))
        else:
            pool = self._pools.of(asyncio.get_running_loop())
            session = pool.session
            if session is None or session.http.closed:
                # A session references its loop, and would keep the entry of a closed loop alive.
                self._pools.forget(lambda loop: loop.is_closed())
                keeper = _session_of_loop(self._config, self._read_key())
                session = pool.session = _Session(await anext(keeper), keeper, Deadlines(self._limit))
            began = time.perf_counter()
            status, headers, raw = await self._post(session, body)
            if 200 <= status < 300:
                self._limit.note_answer(time.perf_counter() - began)
        if 200 <= status < 300:
            return self._read(request, status, raw)
        return self._refuse(request, status, _error_text(raw), retry_after_of(headers))

    async def aclose(self) -> None:
        pool = self._pools.of(asyncio.get_running_loop())
        session, pool.session = pool.session, None
        if session is not None:
            session.deadlines.close()
            await session.keeper.aclose()

    def _read_key(self) -> str | None:
        """Read the key late, so that a grader can be created and costs estimated without a key."""
        key, self._key_note = key_of(self._config)
        self._mask = Mask((*self._config.secrets(), key or ""))
        return key

    async def _post(self, session: _Session, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        aiohttp = _aiohttp()
        try:
            with Deadline(session.deadlines):
                # An explicit payload saves aiohttp from looking up the type of the data.
                data = aiohttp.BytesPayload(body)
                async with session.http.post(self._url, data=data, allow_redirects=False) as response:
                    return response.status, response.headers, await _read_bounded(response)
        except (aiohttp.ClientError, OSError, UnicodeError, _TooLargeError) as error:
            failure = self._failure_of(error)
        # Raised here, because the original errors contain the request's headers and must not be chained.
        raise failure

    def _failure_of(self, error: Exception) -> ProviderError:
        aiohttp, url = _aiohttp(), self._url
        kind: type[ProviderError] = ProviderConnectionError
        match error:
            case TimeoutError():
                kind, why = ProviderTimeoutError, f"no answer within {self._limit.seconds:g} s from {url}"
            case _TooLargeError():
                kind, why = ServerError, f"the response from {url} exceeds {LARGEST_ANSWER:,} bytes"
            case aiohttp.ClientPayloadError():
                why = f"the response from {url} was cut off: {error}"
            case aiohttp.InvalidURL() | UnicodeError():
                kind, why = RequestRefusedError, f"{url} is not a valid address: {error}"
            case aiohttp.ClientConnectorError():
                reason = getattr(error.os_error, "strerror", None) or error.os_error
                why = f"cannot connect to {url}: {reason}; check api_base and that the server is running"
                return unreachable(self._config.model, why, self._mask)
            case _:
                why = f"the connection to {url} failed: {type(error).__name__}: {error}"
        return self._failure(kind, why)

    def _failure(self, kind: type[ProviderError], message: str) -> ProviderError:
        return masked_error(kind, self._config.model, message, self._mask)

    def _read(self, request: ModelRequest, status: int, raw: bytes) -> ModelReply:
        envelope = _json(raw, self._wire.parse)
        if envelope is _NO_JSON:
            start = self._mask.error(raw.decode("utf-8", "replace"))[:_SHOWN]
            what = f"the response from {self._url} is not JSON: {start!r}{version_advice(self._url)}"
            raise self._failure(ServerError, what)
        fault = error_in(envelope)
        if fault is not None:
            return self._refuse(request, fault[0] or status, fault[1], None)
        reply = self._wire.read(envelope, request.model)
        if reply is None:
            what = f"the response from {self._url} is not {self._wire.expected}; check api_base"
            raise self._failure(ServerError, what + version_advice(self._url))
        return self._mask.reply(reply)

    def _refuse(self, request: ModelRequest, status: int, text: str, retry_after: float | None) -> ModelReply:
        failure = ProviderFailure(
            model=request.model,
            status=status,
            text=text,
            retry_after=retry_after,
            had_schema=request.schema is not None,
            key=self._key_note,
            address=self._url,
        )
        if is_filtered(failure):
            return refusal_of(failure, self._mask)
        raise error_of(failure, self._mask)


@dataclass(slots=True)
class _Session:
    http: ClientSession
    keeper: AsyncGenerator[ClientSession]  # closes the session with the loop
    deadlines: Deadlines


@dataclass(slots=True)
class _Pool:
    session: _Session | None = None


class _TooLargeError(Exception):
    """The response is larger than any completion."""


def _aiohttp() -> ModuleType:
    # Heavy, and needed only once a request is sent.
    import aiohttp

    return aiohttp


async def _session_of_loop(config: LLMConfig, key: str | None) -> AsyncGenerator[ClientSession]:
    """Yield one session; a loop that ends closes its generators, and this one then closes its session."""
    aiohttp = _aiohttp()
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_headers(config, key),
        # The deadlines enforce the timeout; aiohttp's would set a timer for each request.
        timeout=aiohttp.ClientTimeout(total=None),
    )
    try:
        yield session
    finally:
        await session.close()


def _headers(config: LLMConfig, key: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json", "user-agent": "autorubric"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    return headers | {name.lower(): value for name, value in config.headers().items()}


def key_of(config: LLMConfig) -> tuple[str | None, str]:
    """Return the key for the config's address, None for no key, and its description for error messages."""
    address = config.api_base or ""
    key = config.key()
    if key is not None:
        return key, rejected_key(config.api_key_env, address)
    variable = "OPENAI_API_KEY" if is_openai_itself(address) else DIRECT_KEY
    key = os.environ.get(variable, "").strip()
    if not key.isprintable():
        raise AuthenticationError(
            f"the environment variable {variable} contains a line break or control character"
        )
    if key:
        return key, rejected_key(variable, address)
    why = f"because {variable} is not set"
    if variable == DIRECT_KEY and os.environ.get("OPENAI_API_KEY"):
        why += " (OPENAI_API_KEY is only sent to api.openai.com)"
    return None, f"no key was sent to {address}, {why}; use --api-key-env NAME (api_key_env in an LLMConfig)"


def rejected_key(variable: str | None, address: str) -> str:
    """Return the description of a rejected key; None as the variable means that `api_key` was set."""
    origin = f"from the environment variable {variable}" if variable else "in api_key"
    return f"the key {origin} was sent to {address} and rejected"


async def _read_bounded(response: ClientResponse) -> bytes:
    content, chunks, size = response.content, [], 0
    while True:
        chunk = await content.readany()
        size += len(chunk)
        if size > LARGEST_ANSWER:
            raise _TooLargeError
        chunks.append(chunk)
        if content.at_eof():
            return b"".join(chunks)


def _json(raw: bytes, parse: Callable[[bytes], Json] = read_compact) -> Json:
    try:
        return parse(raw)
    except (ValueError, RecursionError):
        return _NO_JSON


def _error_text(raw: bytes) -> str:
    """Return the message in the body of an error: from its JSON if possible, or the text itself."""
    fault = error_in(_json(raw)) if len(raw) <= _LARGEST_ERROR else None
    return fault[1] if fault else raw.decode("utf-8", "replace")


class Deadlines:
    """The deadlines of blocks in one event loop; the oldest one expires first, as timeouts never shrink."""

    __slots__ = ("_limit", "_loop", "_timer", "_waiting")

    def __init__(self, limit: TimeLimit) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._waiting: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, deadline: Deadline) -> float:
        """Schedule the deadline and return the loop time at which it expires."""
        at = self._loop.time() + self._limit.seconds
        self._waiting[deadline] = None
        if self._timer is None:
            self._timer = self._loop.call_at(at, self._look)
        return at

    def stop(self, deadline: Deadline) -> None:
        self._waiting.pop(deadline, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        for deadline in list(self._waiting):
            if deadline.at > now:
                self._timer = self._loop.call_at(deadline.at, self._look)
                return
            del self._waiting[deadline]
            deadline.expire()


class Deadline:
    """A context manager with a timeout: at the loop time `at`, the block is cancelled and raises an error."""

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "at")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline requires a running asyncio task")
        self._task, self._cancelling = task, task.cancelling()
        self.at = self._deadlines.start(self)

    def expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        self._deadlines.stop(self)
        # A task that others cancel at the same time stays cancelled.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
