"""Batch endpoints of OpenAI and Anthropic, as routes of the test server.

A batch ends after `polls` requests for its state. `rules` say what becomes of requests that contain a text:

    {"polls": 1, "rules": [{"contains": "needle", "fate": "expired", "times": 1}]}

Fates are listed in `_result_lines`. Results come in reverse order. `lose_create` makes that many calls create
a batch and break the connection before their response; `fail` makes batches fail as a whole, and says why.
The server's clock is `clock` seconds ahead; `told` replaces fields of the state of batches that have ended,
`page` those of a list, and `flood` is a size in bytes of unreadable results.
`GET /__batches` tells what was paid for: the number of answers for each request body.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.servers.answers import answer, example

_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass
class _Batch:
    id: str
    kind: str
    lines: list[dict[str, Any]]
    file: str = ""
    created: float = field(default_factory=time.time)
    polls: int = 0
    status: str = "in_progress"
    problem: str = ""
    results: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass
class BatchState:
    """Files, batches and rules of the server."""

    polls: int = 1
    rules: list[dict[str, Any]] = field(default_factory=list)
    lose_create: int = 0
    fail: str = ""
    clock: float = 0.0
    told: dict[str, Any] = field(default_factory=dict)
    page: dict[str, Any] = field(default_factory=dict)
    flood: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, _Batch] = field(default_factory=dict)
    paid: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
    orders: list[list[str]] = field(default_factory=list)


BATCHES = web.AppKey("batches", BatchState)


async def settings(request: web.Request) -> web.Response:
    """Changes the rules, or tells what was paid for."""
    state = request.app[BATCHES]
    if request.method == "POST":
        for name, value in (await request.json()).items():
            setattr(state, name, value)
    return web.json_response(
        {
            "paid": dict(state.paid),
            "headers": state.headers,
            "orders": state.orders,
            "batches": [[one.kind, one.status, len(one.lines)] for one in state.batches.values()],
        }
    )


def reset(app: web.Application) -> None:
    """Forgets everything."""
    state, new = app[BATCHES], BatchState()
    for name in BatchState.__dataclass_fields__:
        setattr(state, name, getattr(new, name))


async def upload(request: web.Request) -> web.Response:
    """Stores a file with requests."""
    state, form = request.app[BATCHES], await request.post()
    if form.get("purpose") != "batch" or not isinstance(held := form.get("file"), web.FileField):
        return _fault(400, "purpose must be batch")
    file = f"file-{len(state.files)}"
    state.files[file] = held.file.read()
    state.headers.append(dict(request.headers))
    return web.json_response({"id": file, "object": "file", "purpose": "batch"})


async def create(request: web.Request) -> web.StreamResponse:
    """Creates a batch of OpenAI's protocol."""
    state, body = request.app[BATCHES], await request.json()
    if body["completion_window"] != "24h" or body["input_file_id"] not in state.files:
        return _fault(400, "no such file")
    lines = [json.loads(line) for line in state.files[body["input_file_id"]].splitlines()]
    if any(line["url"] != body["endpoint"] or line["method"] != "POST" for line in lines):
        return _fault(400, "a line has another address")
    return _created(request, _Batch(f"batch_{len(state.batches)}", "openai", lines, body["input_file_id"]))


async def create_messages(request: web.Request) -> web.StreamResponse:
    """Creates a batch of Anthropic's protocol."""
    state, body = request.app[BATCHES], await request.json()
    state.headers.append(dict(request.headers))
    return _created(request, _Batch(f"msgbatch_{len(state.batches)}", "anthropic", body["requests"]))


def _created(request: web.Request, batch: _Batch) -> web.StreamResponse:
    state = request.app[BATCHES]
    ids = [line["custom_id"] for line in batch.lines]
    if len(set(ids)) < len(ids) or any(len(one) > 64 for one in ids):
        return _fault(400, "custom ids must be unique and short")
    state.batches[batch.id] = batch
    batch.created += state.clock
    bodies = [line.get("body") or line["params"] for line in batch.lines]
    state.orders.append([str(body["messages"][-1]["content"]) for body in bodies])
    if state.fail:
        batch.status, batch.problem = "failed", state.fail
    if state.lose_create:
        state.lose_create -= 1
        assert request.transport is not None
        request.transport.abort()
    return web.json_response(_told(batch, request))


async def look(request: web.Request) -> web.Response:
    """The state of a batch; each look brings its end nearer."""
    state = request.app[BATCHES]
    batch = state.batches.get(request.match_info["id"])
    if batch is None:
        return _fault(404, "No such batch")
    batch.polls += 1
    if batch.polls >= state.polls and batch.status == "in_progress":
        _end(state, batch, "completed")
    return web.json_response(_told(batch, request))


async def cancel(request: web.Request) -> web.Response:
    """Cancels a batch, of which every second request is already answered."""
    state = request.app[BATCHES]
    batch = state.batches[request.match_info["id"]]
    if batch.status == "in_progress":
        _end(state, batch, "cancelled")
    return web.json_response(_told(batch, request))


async def listing(request: web.Request) -> web.Response:
    """All batches, newest first, two on a page; seeing the list brings their ends nearer too."""
    state = request.app[BATCHES]
    found = list(state.batches.values())[::-1]
    for batch in found:
        batch.polls += 1
        if batch.polls > state.polls and batch.status == "in_progress":
            _end(state, batch, "completed")
    after = request.query.get("after") or request.query.get("after_id")
    start = next((n + 1 for n, one in enumerate(found) if one.id == after), 0)
    page = found[start : start + 2]
    data = [_told(one, request) for one in page]
    return web.json_response({"data": data, "has_more": start + 2 < len(found), **state.page})


async def content(request: web.Request) -> web.StreamResponse:
    """The results of a batch of OpenAI's protocol."""
    if left := request.app[BATCHES].flood:
        stream = web.StreamResponse()
        await stream.prepare(request)
        for _ in range(left >> 20):
            await stream.write(b"x" * (1 << 20))
        return stream
    name, _, kind = request.match_info["id"].rpartition("-")
    batch = request.app[BATCHES].batches[name]
    return web.Response(text="".join(batch.results if kind == "output" else batch.errors))


async def results(request: web.Request) -> web.Response:
    """The results of a batch of Anthropic's protocol."""
    return web.Response(text="".join(request.app[BATCHES].batches[request.match_info["id"]].results))


def _told(batch: _Batch, request: web.Request) -> dict[str, Any]:
    total, ended = len(batch.lines), batch.status != "in_progress"
    replaced = request.app[BATCHES].told if ended else {}
    if batch.kind == "anthropic":
        counts = {"processing": 0 if ended else total, "succeeded": total if ended else 0}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {**counts, "errored": 0, "canceled": 0, "expired": 0},
            "created_at": datetime.fromtimestamp(batch.created, UTC).isoformat(),
            # As behind a gateway: the provider's own address, which nobody may ask with the gateway's key.
            "results_url": f"https://api.example.invalid/v1/messages/batches/{batch.id}/results",
            **replaced,
        }
    errors = {"data": [{"code": "invalid", "message": batch.problem}]} if batch.problem else None
    return {
        "id": batch.id,
        "object": "batch",
        "status": batch.status,
        "input_file_id": batch.file,
        "created_at": int(batch.created),
        "errors": errors,
        "output_file_id": f"{batch.id}-output" if batch.results else None,
        "error_file_id": f"{batch.id}-errors" if batch.errors else None,
        "request_counts": {"total": total, "completed": total if ended else 0, "failed": 0},
        **replaced,
    }


def _end(state: BatchState, batch: _Batch, status: str) -> None:
    batch.status = status
    for number, line in enumerate(reversed(batch.lines)):
        fate = "expired" if status == "cancelled" and number % 2 else _fate(state, line)
        for kind, text in _result_lines(state, batch.kind, line, fate):
            (batch.errors if kind == "error" and batch.kind == "openai" else batch.results).append(text)


def _fate(state: BatchState, line: dict[str, Any]) -> str:
    text = json.dumps(line, ensure_ascii=False)
    for rule in state.rules:
        if rule["contains"] in text and rule.get("times", 1) > 0:
            rule["times"] = rule.get("times", 1) - 1
            return str(rule["fate"])
    return "answered"


def _result_lines(state: BatchState, kind: str, line: dict[str, Any], fate: str) -> Iterator[tuple[str, str]]:
    """The lines of a request's result: one, except for `missing` (none), `duplicate` and `contradicting`."""
    custom_id, body = line["custom_id"], line.get("body") or line["params"]
    if fate == "missing":
        return
    if fate == "garbage":
        yield "output", "{not json\n"
        return
    if fate in ("expired", "refused", "overloaded"):
        yield "error", json.dumps(_error_line(kind, custom_id, fate)) + "\n"
        return
    state.paid[hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()] += 1
    text = "I would rather not say." if fate == "unreadable" else _answer(body)
    told = json.dumps(_answer_line(kind, custom_id, body, text)) + "\n"
    yield "output", told
    if fate == "contradicting":
        payload = json.loads(text)
        payload["verdict"] = "MET" if payload["verdict"] == "UNMET" else "UNMET"
        yield "output", json.dumps(_answer_line(kind, custom_id, body, json.dumps(payload))) + "\n"
    if fate == "duplicate":
        yield "output", told.replace('"chatcmpl-1"', '"chatcmpl-2"').replace('"msg_1"', '"msg_2"')
        yield "output", told.replace(custom_id, "somebody-else")


def _answer(body: dict[str, Any]) -> str:
    held = body.get("output_format") or (body.get("output_config") or {}).get("format")
    if held:
        return json.dumps(example(held["schema"], seed=str(body["messages"][-1]["content"])))
    return answer(body)


def _answer_line(kind: str, custom_id: str, body: dict[str, Any], text: str) -> dict[str, Any]:
    if kind == "anthropic":
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }
        return {"custom_id": custom_id, "result": {"type": "succeeded", "message": message}}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    envelope = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": _USAGE,
    }
    response = {"status_code": 200, "request_id": "r", "body": envelope}
    return {"id": "b", "custom_id": custom_id, "response": response, "error": None}


def _error_line(kind: str, custom_id: str, fate: str) -> dict[str, Any]:
    status, name = (400, "invalid_request_error") if fate == "refused" else (529, "overloaded_error")
    fault = {"type": name, "message": f"It was {fate}."}
    if kind == "anthropic":
        error = {"type": "errored", "error": {"type": "error", "error": fault}}
        return {"custom_id": custom_id, "result": {"type": "expired"} if fate == "expired" else error}
    if fate == "expired":
        told = {"code": "batch_expired", "message": "This request could not be executed in time."}
        return {"id": "b", "custom_id": custom_id, "response": None, "error": told}
    response = {"status_code": status, "request_id": "r", "body": {"error": fault}}
    return {"id": "b", "custom_id": custom_id, "response": response, "error": None}


def _fault(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


ROUTES = [
    web.post("/v1/files", upload),
    web.get("/v1/files/{id}/content", content),
    web.post("/v1/batches", create),
    web.get("/v1/batches", listing),
    web.get("/v1/batches/{id}", look),
    web.post("/v1/batches/{id}/cancel", cancel),
    web.post("/v1/messages/batches", create_messages),
    web.get("/v1/messages/batches", listing),
    web.get("/v1/messages/batches/{id}", look),
    web.get("/v1/messages/batches/{id}/results", results),
    web.post("/v1/messages/batches/{id}/cancel", cancel),
    web.post("/__batches", settings),
    web.get("/__batches", settings),
]
