"""Calls to the batch endpoints of OpenAI, Anthropic and OpenAI-compatible servers, and their formats."""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from urllib.parse import quote

from autorubric.errors import (
    ArgumentError,
    FileError,
    ModelNotFoundError,
    ProviderConnectionError,
    ProviderError,
    ServerError,
    TransientError,
)
from autorubric.llm.config import LLMConfig
from autorubric.llm.decision_wire import WIRES
from autorubric.llm.interception import HttpRequest
from autorubric.llm.names import owner_of, speaks_openai
from autorubric.llm.provider_errors import (
    ProviderFailure,
    error_of,
    masked_error,
    retry_after_of,
    version_advice,
)
from autorubric.llm.route import Route, is_direct
from autorubric.llm.specs import Mask, is_no_word, is_secret_name
from autorubric.llm.transport import LARGEST_ANSWER
from autorubric.support.objects import Json

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_TRIES: Final = 4
_SECONDS: Final = 300.0
"""Seconds without any data after which a call fails; uploads and downloads may take longer as a whole."""
_SENT_HEADERS: Final = ("authorization", "x-api-key", "anthropic-", "openai-", "user-agent")
_COMPLETE: Final = ("completed", "ended")
_ENDED: Final = (*_COMPLETE, "failed", "expired", "cancelled")
_ANSWERED: Final = ("completed", "succeeded", "failed", "errored")
"""Keys of the counts of requests that were processed, at OpenAI and Anthropic."""
_PASSING: Final = {"rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529}
"""HTTP statuses of Anthropic's errors after which a request is sent again."""


class NoResultsError(ProviderError):
    """The results of a batch that has ended are missing or too large."""


class BatchState(NamedTuple):
    """What a provider reports about a batch."""

    id: str
    is_ended: bool
    is_complete: bool  # whether it ended by itself, so that every request has a result
    total: int  # number of requests; 0 if unknown
    done: int  # number of requests that were processed, including errors
    created: float  # Unix time in seconds; 0 if unknown
    file: str  # id of the uploaded requests; empty at Anthropic
    results: tuple[str, ...]  # addresses of the files with results
    problem: str = ""  # reason why the provider rejected the batch as a whole


class BatchClient:
    """A client for OpenAI's batches; its key is that of an intercepted request, and is not stored."""

    most_requests: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 200_000_000
    head, separator, tail = b"", b"\n", b"\n"  # of a file with requests
    cursor: ClassVar[str] = "after"

    def __init__(self, request: HttpRequest, config: LLMConfig, base: str, suffix: str) -> None:
        self.base, self.batches, self._endpoint = base, f"{base}/batches", f"/v1{suffix}"
        names = (*_SENT_HEADERS, *map(str.lower, config.headers()))
        headers = {name.lower(): value for name, value in request.headers.items()}
        self._headers = {name: value for name, value in headers.items() if name.startswith(names)}
        held = [value for name, value in self._headers.items() if is_secret_name(name)]
        secrets = tuple(part for value in held for part in (value, value.removeprefix("Bearer ")))
        self.keys = tuple(one for one in secrets if is_no_word(one))  # to be removed from replies
        self._mask, self._model = Mask(secrets), config.model

    def line(self, custom_id: str, body: bytes) -> bytes:
        names = custom_id.encode("ascii"), self._endpoint.encode("ascii")
        return b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}' % (*names, body)

    def read(self, line: Mapping[str, Any]) -> tuple[int, str] | None:
        """Return the reply in a line of results; None if the request was not processed."""
        if response := line.get("response"):
            return (int(response["status_code"]), json.dumps(response["body"]))
        error = line.get("error") or {}
        if not error or str(error.get("code")).startswith(("batch_expired", "batch_cancel")):
            return None
        return (500, json.dumps({"error": error}))

    async def upload(self, file: Path) -> str:
        """Upload the requests of a batch and return the file's id; empty at Anthropic."""
        return str((await self._json("POST", f"{self.base}/files", upload=file))["id"])

    async def create(self, file: Path, file_id: str, token: str) -> str:
        """Submit a batch and return its id; never repeated, because each call may create a batch."""
        named = {"input_file_id": file_id, "metadata": {"autorubric_batch": token}}
        fields = {**named, "endpoint": self._endpoint, "completion_window": "24h"}
        return str((await self._json("POST", self.batches, tries=1, json=fields))["id"])

    async def state(self, batch_id: str, *, cancel: bool = False) -> BatchState:
        """Return the state of a batch, or cancel it; requests that are processed keep their results."""
        call = ("POST", f"{self.url_of(batch_id)}/cancel") if cancel else ("GET", self.url_of(batch_id))
        return self.read_state(await self._json(*call))

    async def since(self, created: float) -> list[BatchState]:
        """Return the batches that were created after a Unix time, newest first."""
        found: list[BatchState] = []
        after = ""
        while True:
            page = await self._json("GET", f"{self.batches}?limit=100{after}")
            told = self._read_states(page)
            found += [one for one in told if not one.created or one.created >= created]
            before, after = after, f"&{self.cursor}={quote(told[-1].id, safe='')}" if told else ""
            if not page.get("has_more") or after in ("", before) or 0 < told[-1].created < created:
                return found

    async def newest(self) -> float:
        """Return when the provider's newest batch was created, by the provider's clock; 0 if unknown."""
        with suppress(ProviderError):
            page = await self._json("GET", f"{self.batches}?limit=1")
            return max((one.created for one in self._read_states(page)), default=0.0)
        return 0.0

    def _read_states(self, page: Mapping[str, Any]) -> list[BatchState]:
        data = page.get("data") or []
        if not isinstance(data, list):
            raise self._error(ServerError, f"the response from {self.batches} is not a list of batches")
        return [self.read_state(one if isinstance(one, dict) else {}) for one in data]

    async def results(
        self, state: BatchState, most: int, folder: Path
    ) -> Iterator[tuple[str, tuple[int, str] | None]]:
        """Return the custom id and the reply of each result; the id of an unreadable line is empty.

        Results may exceed the memory, so they are downloaded into temporary files in `folder`.

        Raises:
            NoResultsError: If the results exceed the maximum size of `most` replies.
        """
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in state.results]
            for url, file in zip(state.results, files, strict=True):
                await self._fetch("GET", url, sink=file, most=(most + 1) * LARGEST_ANSWER)
            stack.pop_all()
        return (self._result(raw) for file in files for raw in _lines(file) if raw.strip())

    def _result(self, raw: bytes) -> tuple[str, tuple[int, str] | None]:
        try:
            line = json.loads(raw)
            return str(line["custom_id"]), self.read(line)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            return "", None

    def read_state(self, told: Mapping[str, Any]) -> BatchState:
        name, status = told.get("id"), told.get("processing_status") or told.get("status")
        if not (name and isinstance(name, str) and isinstance(status, str)):
            what = f"id {name!r} and status {status!r}; expected two texts"
            raise self._error(ServerError, f"a response from {self.batches} is no state of a batch: {what}")
        held, errors = told.get("request_counts"), told.get("errors")
        counts = {k: n for k, n in held.items() if isinstance(n, int)} if isinstance(held, dict) else {}
        listed = errors.get("data") if isinstance(errors, dict) else None
        found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        problem = "; ".join(str(one.get("message") or one.get("code")) for one in found[:3])
        return BatchState(
            id=name,
            is_ended=status in _ENDED,
            is_complete=status in _COMPLETE,
            # Anthropic counts each request once, OpenAI the finished ones and all.
            total=counts.get("total") or sum(counts.values()),
            done=sum(counts.get(one, 0) for one in _ANSWERED),
            created=_time(told.get("created_at")),
            file=str(told.get("input_file_id") or ""),
            results=self.results_of(name, told),
            problem=self._mask.error(problem or "no reason was reported") if status == "failed" else "",
        )

    def results_of(self, name: str, told: Mapping[str, Any]) -> tuple[str, ...]:
        files = [str(told[one]) for one in ("output_file_id", "error_file_id") if told.get(one)]
        return tuple(f"{self.base}/files/{quote(one, safe='')}/content" for one in files)

    def url_of(self, batch_id: str) -> str:
        return f"{self.batches}/{quote(batch_id, safe='')}"

    async def _json(self, method: str, url: str, **arguments: Any) -> dict[str, Any]:
        sink = BytesIO()
        await self._fetch(method, url, sink=sink, **arguments)
        try:
            told = json.loads(sink.getvalue())
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict) or (method == "POST" and not told.get("id")):
            raise self._error(ServerError, f"the response from {url} is not the object of a batch endpoint")
        return told

    async def _fetch(self, method: str, url: str, *, tries: int = _TRIES, **arguments: Any) -> None:
        for attempt in range(1, tries):
            try:
                return await self._send(method, url, **arguments)
            except TransientError as error:
                if (error.retry_after or 0.0) > _SECONDS:
                    raise
                await asyncio.sleep(max(error.retry_after or 0.0, 2.0 ** (attempt - 1)))
        return await self._send(method, url, **arguments)

    async def _send(
        self,
        method: str,
        url: str,
        *,
        sink: IO[bytes],
        most: int = LARGEST_ANSWER,
        upload: Path | None = None,
        **arguments: Any,
    ) -> None:
        """Write the response to `sink`, which is emptied first."""
        # Heavy, and needed only once something is sent.
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=60.0, sock_read=_SECONDS)
        if upload is not None:
            arguments["data"] = form = aiohttp.FormData({"purpose": "batch"})
            form.add_field("file", upload.open("rb"), filename=upload.name, content_type="application/jsonl")
        try:
            async with (
                aiohttp.ClientSession(headers=self._headers, timeout=timeout) as session,
                session.request(method, url, allow_redirects=False, **arguments) as response,
            ):
                await self._store(response, sink, most)
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            said = f"the connection to {url} failed: {type(error).__name__}: {error}"
            failure = self._error(ProviderConnectionError, said)
        else:
            if 200 <= response.status < 300:
                return
            sink.seek(0)
            raw = sink.read(1 << 16)
            failure = self._refusal(url, response.status, raw, retry_after_of(response.headers))
        # Raised here, because the original errors contain the request's headers and must not be chained.
        raise failure

    async def _store(self, response: ClientResponse, sink: IO[bytes], most: int) -> None:
        sink.seek(0)
        sink.truncate()
        size = response.content_length or 0
        async for chunk in response.content.iter_any():
            if max(size, sink.tell() + len(chunk)) > most:
                told = f"the response from {response.url} exceeds {most:,} bytes"
                raise self._error(NoResultsError, told)
            try:
                sink.write(chunk)
            except OSError as error:
                raise FileError.whole("temporary file", f"cannot be written: {error}") from None

    def _refusal(self, url: str, status: int, raw: bytes, wait: float | None) -> ProviderError:
        if status in (404, 405) and url.partition("?")[0] in (f"{self.base}/files", self.batches):
            what = f"there is no batch endpoint at {url} (HTTP {status}){version_advice(self.base)}"
            return self._error(ModelNotFoundError, what)
        text = raw.decode("utf-8", "replace")
        failure = ProviderFailure(model=self._model, status=status, text=text, retry_after=wait, address=url)
        return error_of(failure, self._mask)

    def _error(self, kind: type[ProviderError], message: str) -> ProviderError:
        return masked_error(kind, self._model, message, self._mask)


class _AnthropicClient(BatchClient):
    """A client for Anthropic's batches, which have no uploads: the requests are the body of a call."""

    most_requests = 100_000
    most_bytes = 256_000_000
    head, separator, tail = b'{"requests":[\n', b",\n", b"\n]}\n"
    cursor = "after_id"

    def line(self, custom_id: str, body: bytes) -> bytes:
        return b'{"custom_id":"%b","params":%b}' % (custom_id.encode("ascii"), body)

    def read(self, line: Mapping[str, Any]) -> tuple[int, str] | None:
        result = line["result"]
        if result["type"] != "errored":
            return (200, json.dumps(result["message"])) if result["type"] == "succeeded" else None
        # The error is inside the envelope of an error response, or is the error itself.
        error = result["error"].get("error") or result["error"]
        return (_PASSING.get(error.get("type"), 400), json.dumps({"type": "error", "error": error}))

    async def upload(self, file: Path) -> str:
        return ""

    async def create(self, file: Path, file_id: str, token: str) -> str:
        kind = {"content-type": "application/json"}
        with file.open("rb") as content:
            told = await self._json("POST", self.batches, tries=1, data=content, headers=kind)
        return str(told["id"])

    def results_of(self, name: str, told: Mapping[str, Any]) -> tuple[str, ...]:
        # Behind a gateway, `results_url` is the provider's own address, to which the key must not be sent.
        return (f"{self.url_of(name)}/results",)


def batch_client(request: HttpRequest, config: LLMConfig) -> BatchClient:
    """Return the client for batches of requests like an intercepted one."""
    base, _, query = request.url.partition("?")
    if base.endswith("/messages"):
        return _AnthropicClient(request, config, base, "")
    for suffix in ("/chat/completions", "/responses"):
        if base.endswith(suffix) and not query:
            return BatchClient(request, config, base.removesuffix(suffix), suffix)
    raise ArgumentError(f"no batch endpoint is known for {request.url}; run without batch (--batch)")


def refuse_without_batches(route: Route) -> None:
    config, owner, why = route.config, owner_of(route.config.model), ""
    if config.transport in WIRES:
        why = "decision models have no batch endpoint"
    elif route.is_own:
        why = "its transport has no batch endpoint"
    elif secret := config.secret_params():
        why = f"the secret {', '.join(secret)} in extra_params would be in the files of batches"
    elif not is_direct(config) and owner not in ("openai", "anthropic"):
        is_known = config.api_base is not None and speaks_openai(config.model)
        why = "" if is_known else f"{owner!r} has no known batch endpoint"
    if why:
        raise ArgumentError(
            f"{config.model} cannot be asked in batches: {why}. OpenAI, Anthropic, and OpenAI-compatible "
            "servers with /v1/files and /v1/batches (api_base) have batches; run without batch (--batch)"
        )


def _time(told: Json) -> float:
    """Return the Unix time of a number or an RFC 3339 text; 0 if it is neither."""
    try:
        time = float(told) if isinstance(told, int | float) else datetime.fromisoformat(str(told)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return time if math.isfinite(time) else 0.0


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file and close it; a line that is longer than any reply comes in parts."""
    with file:
        file.seek(0)
        while raw := file.readline(LARGEST_ANSWER):
            yield raw
