"""The batches of a run: requests that providers answer later, at a lower price.

Every step is recorded, on the disk, before the next one. Only submitting a batch must not be repeated: after
an interruption, the batch is looked up at the provider first.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, NoReturn

from autorubric.errors import (
    ArgumentError,
    AuthenticationError,
    BudgetError,
    FileError,
    ItemFailedError,
    ModelNotFoundError,
    ProviderError,
    RunFormatError,
    RunWriteError,
    TransientError,
)
from autorubric.llm.batch_client import BatchClient, BatchState, NoResultsError, batch_client
from autorubric.llm.budget import SpendingLimit, estimated_cost, own_price, pricing_of, whole_budget
from autorubric.llm.config import LLMConfig
from autorubric.llm.interception import BATCHES, HttpRequest, Interception, intercept
from autorubric.llm.route import Route, is_direct
from autorubric.llm.specs import redact
from autorubric.llm.transport import ModelReply, ModelRequest
from autorubric.support.objects import Json, set_within
from autorubric.support.record_log import AppendLog, body_of, log_lines
from autorubric.support.write import write_parts_atomic

BATCH_SHARE: Final = 0.5
"""Price in a batch as a share of the usual price, at OpenAI and Anthropic."""
_FORMAT: Final = 2
_SETTLING_SECONDS: Final = 5.0
"""Seconds for which a batch of an interrupted submission is looked for before it counts as lost."""
_CLOCK_SKEW: Final = 600.0
"""Seconds by which the clocks of a provider's machines may differ."""
_CANCEL_WAITS: Final = (0.0, 0.2, 1.0, *[5.0] * 180)
_ID_LENGTH: Final = 41
_OF_ONE_REPLY: Final = frozenset({"id", "created", "created_at", "request_id", "system_fingerprint", "usage"})
"""Keys whose values differ between equal replies."""
_SAID: Final = "the batch has several results for this request, which contradict each other"
_CONTRADICTION: Final = 500, json.dumps({"type": "error", "error": {"type": "api_error", "message": _SAID}})


@dataclass(slots=True, kw_only=True)
class _Batch:
    number: int
    token: str  # begins its custom ids
    url: str  # address that its requests would be sent to
    model: str
    keys: list[str]  # of its requests
    reserved: float  # estimated cost in US dollars; 0 if it is unknown
    step: str = "planned"  # planned, submitting, submitted, collected, or dropped
    time: float = 0.0  # Unix time of the step, in seconds
    file: str = ""  # the provider's id of the uploaded requests
    newest: float = 0.0  # Unix time of the provider's newest batch before this one, by the provider's clock
    id: str = ""  # the provider's id of the batch
    answered: int = 0  # requests with a reply, including errors
    done: int = 0  # requests that the provider has processed, when it was last asked
    is_past: bool = False  # whether the run has stopped since, so that failed requests are sent again
    is_used: bool = False  # whether the run was complete since, so that no reply is needed anymore

    @property
    def is_open(self) -> bool:
        return self.step not in ("collected", "dropped")


class _Queued(NamedTuple):
    """A request in the queue; sorting keeps those of one item and judge together."""

    endpoint: tuple[str, str]  # the address and the model
    group: int
    offset: int
    size: int
    key: str
    cost: float


class BatchQueue:
    """The batches of one folder, which must be locked; their steps are in the file `record`."""

    def __init__(self, record: Path, mark: int, *, finish_direct: bool = False) -> None:
        # Other files than the record are in a folder with its stem as name.
        self._folder, self._finish_direct = record.with_suffix(""), finish_direct
        self._batches: dict[int, _Batch] = {}
        # By key of a request: batch and offset of its latest reply, HTTP status, and number of replies.
        self._places: dict[str, tuple[int, int, int, int]] = {}
        self._waiting: dict[str, int] = {}
        for event in batch_events(record, mark):
            self._apply(event)
        for batch in self._batches.values():
            self._index(batch)
        self._log = AppendLog(record, mark)
        self._clients: dict[tuple[str, str], BatchClient] = {}
        self._lock = asyncio.Lock()
        self._refreshed: set[int] = set()
        self._bodies: IO[bytes] | None = None
        self._queued: list[_Queued] = []
        self._groups: dict[tuple[object, ...], int] = {}
        self._notes: list[str] = []
        self._submitted = 0
        self.is_pending = False  # whether a reply that this process asked for is still to come
        self.error: Exception | None = None  # ends the run, such as a batch that was rejected as a whole

    @property
    def is_unused(self) -> bool:
        """Whether there are batches, paid for or submitted, whose replies were not used yet."""
        return any(not one.is_used and (one.is_open or one.answered) for one in self._batches.values())

    def count_spending(self, budget: SpendingLimit) -> None:
        """Count the requests of all batches in a budget, at their estimated cost."""
        for one in self._batches.values():
            calls = len(one.keys) if one.is_open else one.answered
            budget.calls += calls
            budget.cost += one.reserved * calls / len(one.keys)

    def summary(self) -> str:
        """Return what is submitted, ready and outstanding, in words."""
        waiting = [one for one in self._batches.values() if one.is_open]
        left, ready = sum(len(b.keys) for b in waiting), sum(b.answered for b in self._batches.values())
        shown = [f"{b.id or 'not confirmed'}: {b.done:,} of {len(b.keys):,} processed" for b in waiting[:5]]
        counts = f"{self._submitted:,} requests submitted now, {ready:,} replies received so far, {left:,} "
        return "; ".join([f"{counts}requests outstanding (batches: {len(waiting)})", *shown, *self._notes])

    def finish(self, *, is_complete: bool) -> None:
        """Record that requests that failed are sent again, and whether all replies were used."""
        if self._batches:
            self._record("finished", 0, used=is_complete)

    def notices(self) -> list[str]:
        """Return what is wrong with results, and which batches are outstanding after the end of the run."""
        told = "batch {0.id} of {0.model} at {0.url} is not needed anymore; cancel it at the provider"
        return [*self._notes, *(told.format(one) for one in self._batches.values() if one.is_open)]

    @contextmanager
    def within(self) -> Iterator[None]:
        """Answer the requests of votes inside the block, and close the files after it."""
        try:
            with set_within(BATCHES, (self, ())):
                yield
        except ItemFailedError:
            self.finish(is_complete=False)
            raise
        finally:
            self.close()

    def close(self) -> None:
        self._log.close()
        if self._bodies is not None:
            with suppress(OSError):
                # A write that failed is tried again, but nobody reads the file anymore.
                self._bodies.close()

    async def answer(self, name: Sequence[str | int], sent: ModelRequest, route: Route) -> ModelReply:
        """Return the reply to a request, or queue the request and raise a `BudgetError`."""
        # The name has the digest of the request before it was adapted to the provider, so that it stays the
        # same; the number of forms that the provider rejected; the item, the judge and the criteria.
        key = hashlib.sha256(json.dumps(name).encode("ascii")).hexdigest()[:24]
        if self._waiting.get(key) in self._refreshed:
            self._wait()
        request, found = None, self._find(key)
        if found is None:
            request = await self._prepare(sent, route)
            found = self._find(key)
        tries, allowance = self._places.get(key, (0, 0, 0, 0))[3], sent.allowance
        if allowance is not None:
            # Requests in earlier batches count towards those that a vote may take.
            allowance.sent += tries
        if found is not None:
            try:
                with intercept(Interception(found)):
                    reply = await route.provider.send(sent)
                return reply._replace(cost=reply.cost and reply.cost * batch_share(route.config))
            except TransientError:
                if tries > route.config.max_retries or (allowance is not None and not allowance.left):
                    raise
        request = request or await self._prepare(sent, route)
        if key in self._waiting:
            self._wait()
        if self._finish_direct:
            return await route.transport.send(sent)
        await self._defer(key, name[2:4], sent, route.config, request)
        return self._wait()

    def _wait(self) -> NoReturn:
        self.is_pending = True
        raise BudgetError("the request waits for a batch of the provider", limit="batch")

    def _find(self, key: str) -> tuple[int, bytes] | None:
        number, offset, status, _ = self._places.get(key, (0, 0, 0, 0))
        # With `finish_direct`, what failed is sent directly.
        if not number or key in self._waiting or (self._finish_direct and status >= 400):
            return None
        with self._file(number, "replies").open("rb") as file:
            file.seek(offset)
            return status, json.loads(file.readline())["body"].encode("utf-8")

    async def _prepare(self, sent: ModelRequest, route: Route) -> HttpRequest:
        """Return the request to the provider, after continuing the batches of its address and model."""
        interception, config = Interception(), route.config
        try:
            with intercept(interception), suppress(BudgetError):
                await route.provider.send(sent)
        except AuthenticationError as error:
            # Without a key, no request can be sent; as an error of the judge, it would fail every vote.
            self.error = error
            self._wait()
        request = interception.request
        assert request is not None, "a transport without batches is refused before"
        async with self._lock:
            if (endpoint := (request.url, config.model)) not in self._clients:
                with self._keep_error():
                    self._clients[endpoint] = client = batch_client(request, config)
                    for batch in self._batches.values():
                        if batch.is_open and (batch.url, batch.model) == endpoint:
                            await self._continue(batch, client)
                            self._refreshed.add(batch.number)
            if self.error is not None:
                self._wait()
        return request

    async def _defer(
        self, key: str, group: Sequence[object], sent: ModelRequest, config: LLMConfig, request: HttpRequest
    ) -> None:
        price = pricing_of(config, direct=is_direct(config)).price
        cost = 0.0 if price is None else estimated_cost(price, sent) * batch_share(config)
        if (budget := whole_budget()) is not None:
            await budget.reserve(cost)
            # Spent from here on: the batch may be answered after this process has ended.
            await budget.settle(cost, cost)
        # Line breaks in JSON are only between values.
        body = request.body.replace(b"\n", b" ")
        with self._keep_error():
            if self._bodies is None:
                self._folder.mkdir(exist_ok=True)
                # Without a name, since it is only valid in this process.
                self._bodies = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
            offset = self._bodies.seek(0, 2)
            self._bodies.write(body)
            place = self._groups.setdefault(tuple(group), len(self._groups))
            self._queued.append(_Queued((request.url, config.model), place, offset, len(body), key, cost))
            self._waiting[key] = 0

    @contextmanager
    def _keep_error(self) -> Iterator[None]:
        """Keep an error, which ends the run: as an error of the judge, it would fail a vote."""
        try:
            yield
        except (OSError, FileError) as error:
            told = "make sure that the folder is complete and writable, and run the command again"
            self.error = RunWriteError(f"the batches in {self._folder} cannot be stored: {error}; {told}")
        except Exception as error:
            self.error = error

    async def submit(self) -> None:
        """Submit the queued requests in as few batches as the provider's limits allow, or raise `error`."""
        if self.error is None:
            with self._keep_error():
                planned = [
                    self._plan(endpoint, part)
                    for endpoint, queued in groupby(sorted(self._queued), lambda one: one.endpoint)
                    for part in split_requests(list(queued), self._clients[endpoint])
                ]
                self._queued.clear()
                for batch in planned:
                    await self._advance(batch, self._clients[batch.url, batch.model])
        if self.error is not None:
            raise self.error

    def _plan(self, endpoint: tuple[str, str], part: Sequence[_Queued]) -> _Batch:
        number, token = max(self._batches, default=0) + 1, secrets.token_hex(8)
        client = self._clients[endpoint]

        def parts() -> Iterator[bytes]:
            assert self._bodies is not None
            for place, one in enumerate(part):
                self._bodies.seek(one.offset)
                yield client.separator if place else client.head
                yield client.line(f"{token}-{one.key}", self._bodies.read(one.size))
            yield client.tail

        write_parts_atomic(self._file(number, "requests"), parts())
        fields: dict[str, Json] = {"format": _FORMAT, "token": token, "keys": [one.key for one in part]}
        fields |= {"url": endpoint[0], "model": endpoint[1], "reserved": sum(one.cost for one in part)}
        self._record("planned", number, **fields)
        self._index(self._batches[number])
        self._refreshed.add(number)
        return self._batches[number]

    async def _advance(self, batch: _Batch, client: BatchClient) -> None:
        file = self._file(batch.number, "requests")
        uploaded, newest = await client.upload(file), await client.newest()
        self._record("submitting", batch.number, file=uploaded, newest=newest)
        self._record("submitted", batch.number, id=await client.create(file, uploaded, batch.token))
        self._submitted += len(batch.keys)

    async def _continue(self, batch: _Batch, client: BatchClient) -> None:
        """Take a batch of an earlier process as far as possible."""
        try:
            if batch.step == "submitting":
                await self._confirm(batch, client)
            if batch.step == "submitted":
                state = await client.state(batch.id)
                if self._finish_direct and not state.is_ended:
                    state = await _cancel(batch, client)
                batch.done = state.done
                if state.is_ended:
                    await self._collect(batch, client, state)
        except (ModelNotFoundError, NoResultsError) as error:
            if not self._finish_direct:
                error.args = (f"{error}; if batch {batch.id} is lost, pass --finish-direct",)
                raise
            self._record("dropped", batch.number)
        if batch.step == "planned" and self._finish_direct:
            self._record("dropped", batch.number)
        elif batch.step == "planned":
            await self._advance(batch, client)
        self._index(batch)

    async def _confirm(self, batch: _Batch, client: BatchClient) -> None:
        """Find out whether an interrupted submission reached the provider."""
        # The clock of this machine may differ from the provider's, and may have been set since.
        known, until = {one.id for one in self._batches.values()}, time.monotonic() + _SETTLING_SECONDS
        while True:
            is_last, is_possible = time.monotonic() >= until, False
            for state in await client.since(batch.newest - _CLOCK_SKEW):
                match = False if state.id in known else await self._is_own(batch, client, state)
                if match:
                    self._record("submitted", batch.number, id=state.id)
                    return
                is_possible = is_possible or match is None
            # Only results show whose batch a possible one is; until then, nothing is submitted again.
            if is_last and not is_possible:
                self._record("planned", batch.number)
            if is_last or is_possible:
                return
            await asyncio.sleep(1.0)

    async def _collect(self, batch: _Batch, client: BatchClient, state: BatchState) -> None:
        """Store the replies of a batch that has ended."""
        wanted, unprocessed, bad = set(batch.keys), set[str](), 0
        answers = dict[str, bytes | None]()  # None after several that contradict each other
        results = await client.results(state, len(batch.keys), self._folder)

        def lines() -> Iterator[bytes]:
            nonlocal bad
            for custom_id, reply in results:
                token, _, key = custom_id.partition("-")
                if token != batch.token or key not in wanted:
                    bad += 1
                elif reply is None:
                    unprocessed.add(key)
                else:
                    bad += key in answers
                    answer, before = _answer_of(reply), answers.get(key, b"")
                    if key in answers and (not answer or before in (None, answer)):
                        continue
                    # The last line of a request counts.
                    answers[key], status, body = (None, *_CONTRADICTION) if before else (answer, *reply)
                    line = {"custom_id": custom_id, "status": status, "body": redact(body, client.keys)}
                    yield json.dumps(line).encode("ascii") + b"\n"
            missing = len(batch.keys) - len(answers.keys() | unprocessed)
            if state.is_complete and missing and not any(answers.values()):
                what = f"batch {batch.id} is complete, but has no results of {missing:,} requests"
                raise NoResultsError(f"{what}; they are not submitted again. Run the command again later")

        write_parts_atomic(self._file(batch.number, "replies"), lines())
        wanted -= answers.keys()
        unprocessed &= wanted
        self._record("collected", batch.number, answered=len(answers))
        if state.problem:
            self.error = ProviderError(f"the provider rejected batch {batch.id}: {state.problem}")
        elif wanted or bad:
            lost = f"{len(wanted):,} requests of batch {batch.id} expired or have no result"
            self._notes.append(f"{lost}, and {bad:,} lines are unreadable, repeated or unknown")
        if several := sum(one is None for one in answers.values()):
            told = f"{several:,} requests of batch {batch.id} have results that contradict each other"
            self._notes.append(f"{told}, and are sent again")
        is_equal = state.done in (len(answers), len(answers) + len(unprocessed))
        if state.total and not (is_equal and state.total == len(batch.keys)):
            counted = f"{state.done:,} of {state.total:,} requests of batch {batch.id} were processed"
            own = f"{len(answers):,} of {len(batch.keys):,} requests have a reply"
            self._notes.append(f"the provider says that {counted}, but {own}")

    async def _is_own(self, batch: _Batch, client: BatchClient, state: BatchState) -> bool | None:
        """Return whether a listed batch is this one; None if only its results will show it."""
        if batch.file or state.file:
            return state.file == batch.file
        if state.total != len(batch.keys):
            return False
        if not state.is_ended:
            return None
        results = await client.results(state, state.total, self._folder)
        return any(custom_id.startswith(batch.token) for custom_id, _ in results)

    def _file(self, number: int, what: str) -> Path:
        return self._folder / f"{number:04}-{what}.jsonl"

    def _record(self, step: str, number: int, **fields: Json) -> None:
        event: dict[str, Any] = {"step": step, "batch": number, "time": round(time.time(), 3), **fields}
        self._log.append(json.dumps(event, separators=(",", ":")).encode("ascii"))
        self._log.sync()
        self._apply(event)

    def _apply(self, event: dict[str, Any]) -> None:
        step, number = event.pop("step"), event.pop("batch")
        if step == "finished":
            for one in self._batches.values():
                one.is_past, one.is_used = True, one.is_used or event.get("used", False)
        elif event.pop("format", None):
            self._batches[number] = _Batch(number=number, **event)
        else:
            for name, value in {"step": step, **event}.items():
                setattr(self._batches[number], name, value)

    def _index(self, batch: _Batch) -> None:
        """Note what a batch's requests are waiting for, or where their replies are."""
        for key in batch.keys:
            if batch.is_open:
                self._waiting[key] = batch.number
            elif self._waiting.get(key) == batch.number:
                del self._waiting[key]
        if batch.step not in ("planned", "submitting"):
            self._file(batch.number, "requests").unlink(missing_ok=True)
        if batch.step != "collected":
            return
        file, replies = self._file(batch.number, "replies"), dict[str, tuple[int, int]]()
        with suppress(ValueError, KeyError, TypeError):
            for _, offset, raw in log_lines(file):
                line = json.loads(raw)
                replies[line["custom_id"].partition("-")[2]] = (offset, line["status"])
        if len(replies) != batch.answered:
            raise RunFormatError(
                f"{file} is damaged or missing; restore it, because its replies are paid for"
            )
        for key, (offset, status) in replies.items():
            if status < 400 or not batch.is_past:
                tries = self._places[key][3] if key in self._places else 0
                self._places[key] = (batch.number, offset, status, tries + 1)


def _answer_of(reply: tuple[int, str]) -> bytes:
    """Return a digest that equal answers share, so that answers need not be kept; empty for an error."""
    status, body = reply
    if status >= 400:
        return b""
    held = json.loads(
        body, object_hook=lambda held: {k: v for k, v in held.items() if k not in _OF_ONE_REPLY}
    )
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode("ascii")).digest()


async def _cancel(batch: _Batch, client: BatchClient) -> BatchState:
    with suppress(ProviderError):
        # It may have ended in the meantime, which its state shows.
        await client.state(batch.id, cancel=True)
    for wait in _CANCEL_WAITS:
        await asyncio.sleep(wait)
        if (state := await client.state(batch.id)).is_ended:
            return state
    raise ProviderError(f"batch {batch.id} is still being cancelled; run the command again later")


def batch_events(file: Path, mark: int) -> Iterator[dict[str, Any]]:
    """Yield the recorded steps of batches, and the ends of runs; nothing for a missing file."""
    for number, _, raw in log_lines(file):
        body = body_of(raw, mark, is_sealed=True)
        if body is None and raw.endswith(b"\n"):
            raise RunFormatError(
                f"{file}, line {number} is damaged. Restore the file from a backup, because it shows which "
                "requests were already submitted"
            )
        event: dict[str, Any] = {} if body is None else json.loads(body)
        if event.get("format", _FORMAT) > _FORMAT:
            raise RunFormatError(f"{file} has a newer format; install a newer version of autorubric")
        if event:
            yield event


def split_requests(queued: Sequence[_Queued], client: BatchClient) -> Iterator[Sequence[_Queued]]:
    """Yield the requests of each batch, in order, within the provider's limits."""
    part, size = list[_Queued](), 0
    own = len(client.line("0" * _ID_LENGTH, b"")) + len(client.separator)
    room = client.most_bytes - len(client.head) - len(client.tail)
    for one in queued:
        if one.size + own > room:
            raise ArgumentError(f"a request has {one.size:,} bytes, more than a batch can have ({room:,})")
        if part and (size + one.size + own > room or len(part) == client.most_requests):
            yield part
            part, size = [], 0
        part.append(one)
        size += one.size + own
    if part:
        yield part


def batch_share(config: LLMConfig) -> float:
    """Return the price of a model in batches as a share of its usual price."""
    if own_price(config) is None and not is_direct(config):
        # Imported late, because most configs that count costs set their own prices.
        from autorubric.llm.litellm_transport import listed_price

        usual, listed = listed_price(config.model), listed_price(config.model, "_batches")
        if usual is not None and listed is not None and usual[0]:
            return listed[0] / usual[0]
    return BATCH_SHARE
