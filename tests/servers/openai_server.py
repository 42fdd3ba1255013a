"""An OpenAI-compatible server for tests: `python -m tests.servers.openai_server` prints its port and serves.

It answers any schema with a valid, deterministic value. `POST /__script` adds rules that make it do other
things:

    {"rules": [{"model": "m1", "contains": "needle", "then": [{"do": "status", "status": 429}]}]}

A rule takes the requests whose model is `model` (after the prefix; any if left out) and whose last message
holds `contains` (any if left out), or with `"anywhere": true` any message does. Its `then` are done one after
the other, one a request; afterwards the rule is used up (`"repeat": "once"`, the default), stays at its last
(`last`), or begins anew (`cycle`). The newest rule that takes a request wins. What can be done is listed in
`ACTIONS`. `GET /__log` gives the requests seen, `POST /__reset` forgets all.

`POST /__trouble` makes the requests that no rule takes fail by a seed, or be turned away over a limit (the
fields of `Trouble`); `GET /__trouble` tells what became of each: seconds, outcome, digest of the body. While
there is trouble, requests are not logged.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import sys
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.servers import batches
from tests.servers.answers import answer
from tests.servers.decisions import decided
from tests.servers.tokens import logprobs_of
from tests.servers.trouble import Trouble

Action = Callable[[web.Request, dict[str, Any], dict[str, Any]], Awaitable[web.StreamResponse]]

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64},
}


@dataclass
class Rule:
    """Which requests do what."""

    model: str | None
    contains: str | None
    then: list[dict[str, Any]]
    repeat: str = "once"
    anywhere: bool = False
    used: int = 0

    def next_step(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """What the request does; None where the rule does not take it."""
        if self.model is not None and self.model != body["model"]:
            return None
        every = body.get("messages", [{"content": body.get("state", body.get("input"))}])
        messages = every if self.anywhere else every[-1:]
        texts = "\n".join(str(message["content"]) for message in messages)
        if self.contains is not None and self.contains not in texts:
            return None
        position = self.used
        if position >= len(self.then):
            if self.repeat == "once":
                return None
            position = position % len(self.then) if self.repeat == "cycle" else len(self.then) - 1
        self.used += 1
        return self.then[position]


@dataclass
class State:
    """What the server was told and what it saw."""

    rules: list[Rule] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    running: int = 0
    company: dict[int, asyncio.Barrier] = field(default_factory=dict)
    slots: dict[int, asyncio.Semaphore] = field(default_factory=dict)
    trouble: Trouble | None = None


STATE = web.AppKey("state", State)


async def complete(request: web.Request) -> web.StreamResponse:
    """Answers one chat completion by the rules."""
    state = request.app[STATE]
    raw = await request.read()
    body = json.loads(raw)
    if state.trouble is not None:
        return await _troubled(request, raw, body, state.trouble)
    state.running += 1
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    seen = {
        "path": request.path,
        "headers": dict(request.headers),
        "body": body,
        "running": state.running,
        "connection": str(peer),
    }
    state.log.append(seen)
    steps = (rule.next_step(body) for rule in reversed(state.rules))
    step = next((one for one in steps if one is not None), {"do": "answer"})
    try:
        return await ACTIONS[step["do"]](request, body, step)
    finally:
        state.running -= 1


async def _troubled(
    request: web.Request, raw: bytes, body: dict[str, Any], trouble: Trouble
) -> web.StreamResponse:
    name, step = trouble.step(raw)
    if name != "answered":
        return await ACTIONS[step["do"]](request, body, step)
    trouble.begin()
    try:
        return await do_answer(request, body, step)
    finally:
        trouble.end()


def completion(body: dict[str, Any], message: dict[str, Any], step: dict[str, Any]) -> web.Response:
    """A chat completion with this message, or answers to the questions of a decision model."""
    if "questions" in body:
        status, decision = decided(body, step)
        return web.json_response(decision, status=status)
    choice = {"index": 0, "finish_reason": step.get("finish_reason", "stop"), "message": message}
    if "logprobs" in step:
        choice["logprobs"] = step["logprobs"]
    elif body.get("logprobs") and isinstance(said := message.get("content"), str):
        tokens = {"most": body.get("top_logprobs", 0), **step.get("tokens", {})}
        choice["logprobs"] = logprobs_of(said, step.get("replies", {said: 1.0}), **tokens)
    envelope = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": step.get("usage", USAGE),
    }
    return web.json_response(envelope)


async def do_answer(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """A right answer; with `payload` (JSON) or `content` (text) as its content.

    It comes after `seconds`, with `slots` for only so many at a time, and where it says `together`, with so
    many that are answered at a time. A request for log-probabilities gets those of
    `tests.servers.tokens.logprobs_of`, of `replies` (texts with their probabilities) and with `tokens` (how
    they are cut, and what else is probable).
    """
    slots = request.app[STATE].slots.setdefault(step.get("slots", 0), asyncio.Semaphore(step.get("slots", 1)))
    async with slots if "slots" in step else contextlib.nullcontext():
        await asyncio.sleep(step.get("seconds", 0))
    if "together" in step:
        await _in_company(request.app[STATE], step["together"])
    if "questions" in body and "content" not in step:
        return completion(body, {}, step)
    content = json.dumps(step["payload"]) if "payload" in step else step.get("content", "")
    if not {"payload", "content"} & step.keys():
        content = answer(body)
    message = {"role": "assistant", "content": content, **step.get("message", {})}
    return completion(body, message, step)


async def _in_company(state: State, count: int) -> None:
    barrier = state.company.setdefault(count, asyncio.Barrier(count))
    # Where the others never come, the test is to see that, and not to hang.
    with contextlib.suppress(TimeoutError, asyncio.BrokenBarrierError):
        async with asyncio.timeout(60):
            await barrier.wait()


async def do_status(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """An HTTP error with `status`, `message` or a whole `body`, `code` and `headers`."""
    error = {"message": step.get("message", "It failed."), "type": "error", "code": step.get("code")}
    text = step.get("body", json.dumps({"error": error}))
    headers = {"Content-Type": "application/json", **step.get("headers", {})}
    return web.Response(status=step["status"], text=text, headers=headers)


async def do_refuse_schema(
    request: web.Request, body: dict[str, Any], step: dict[str, Any]
) -> web.StreamResponse:
    """HTTP 400 to a request with a `response_format`; a right answer to one without."""
    if "response_format" not in body:
        return await do_answer(request, body, step)
    message = "Unsupported parameter: 'response_format' of type 'json_schema' is not supported."
    return await do_status(request, body, {"status": 400, "message": message})


async def do_refuse(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """`status` (400) and `message` to a request with the parameter or role `part`; else a right answer."""
    if step["part"] not in {*body, *(message["role"] for message in body["messages"])}:
        return await do_answer(request, body, {})
    return await do_status(request, body, {"status": 400, **step})


async def do_one_evaluation(
    request: web.Request, body: dict[str, Any], step: dict[str, Any]
) -> web.StreamResponse:
    """One evaluation to a request about several criteria, of the first one, with the fields of another kind.

    So do small models, between much white space. Other requests get a right answer.
    """
    ids = re.findall(r"\[(c[0-9a-f]{4})\]", str(body["messages"][-1]["content"]))
    if not ids:
        return await do_answer(request, body, step)
    fields = {"reason": "item_id", "cannot_assess": step.get("abstains", True), "label": "curt"}
    payload = {"evaluations": [{"id": ids[0], **fields}]}
    content = json.dumps(payload, indent="\t  \t").replace(": ", ":\n \t")
    return await do_answer(request, body, {**step, "content": content})


async def do_endless_list(
    request: web.Request, body: dict[str, Any], step: dict[str, Any]
) -> web.StreamResponse:
    """A list of evaluations that is cut off, unless the schema limits the list; otherwise a right answer.

    So does a small model with a grammar, which repeats evaluations until it has no more tokens.
    """
    if "maxItems" in json.dumps(body["response_format"]) or not re.search(
        r"\[c[0-9a-f]{4}\]", str(body["messages"])
    ):
        return await do_answer(request, body, step)
    content = '{"evaluations": [' + '{"id": "c0000", "reason": "r", "verdict": "MET"}, ' * 50
    return await do_answer(request, body, {**step, "content": content, "finish_reason": "length"})


async def do_refuse_logprobs(
    request: web.Request, body: dict[str, Any], step: dict[str, Any]
) -> web.StreamResponse:
    """HTTP 400 with `message` to a request with `logprobs`; a right answer to one without."""
    if "logprobs" not in body:
        return await do_answer(request, body, step)
    message = "This model does not support the 'logprobs' parameter."
    return await do_status(request, body, {"status": 400, "message": step.get("message", message)})


async def do_ignore_logprobs(
    request: web.Request, body: dict[str, Any], step: dict[str, Any]
) -> web.StreamResponse:
    """A right answer without the log-probabilities that were requested."""
    return await do_answer(request, {k: v for k, v in body.items() if k != "logprobs"}, step)


async def do_refusal(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """A refusal of the model."""
    message = {
        "role": "assistant",
        "content": None,
        "refusal": step.get("refusal", "I cannot help with that."),
    }
    return completion(body, message, step)


async def do_raw(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """HTTP 200 with `body` as it stands."""
    headers = {"Content-Type": "application/json", **step.get("headers", {})}
    return web.Response(status=step.get("status", 200), text=step["body"], headers=headers)


async def do_reset(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """The connection breaks before any answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def do_hang(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """Nothing for `seconds` (30), then an answer that nobody waits for."""
    await asyncio.sleep(step.get("seconds", 30))
    return await do_answer(request, body, {})


async def do_truncated(
    request: web.Request, body: dict[str, Any], step: dict[str, Any]
) -> web.StreamResponse:
    """The first half of an answer, and then the connection breaks."""
    content = "" if "questions" in body else answer(body)
    whole = completion(body, {"role": "assistant", "content": content}, step).body
    assert isinstance(whole, bytes)
    response = web.StreamResponse(
        headers={"Content-Type": "application/json", "Content-Length": str(len(whole))}
    )
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    assert request.transport is not None
    request.transport.close()
    return response


async def do_drip(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """A byte every tenth of a second for `seconds` (30): always alive, never whole."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for _ in range(int(10 * step.get("seconds", 30))):
        await response.write(b" ")
        await asyncio.sleep(0.1)
    return response


async def do_flood(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """An answer of `megabytes` blanks."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for _ in range(step["megabytes"]):
        await response.write(b" " * (1 << 20))
    return response


async def do_bomb(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """A right answer with `megabytes` blanks in it, compressed to about a thousandth of its size."""
    whole = completion(body, {"role": "assistant", "content": "small"}, {"usage": None}).body
    assert isinstance(whole, bytes)
    encoding = step.get("encoding", "gzip")
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | (16 if encoding == "gzip" else 0))
    parts = [packer.compress(whole[:-1])]
    parts += [packer.compress(b" " * (1 << 20)) for _ in range(step["megabytes"])]
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    packed = b"".join([*parts, packer.compress(whole[-1:]), packer.flush()])
    return web.Response(body=packed, status=step.get("status", 200), headers=headers)


async def do_echo_key(request: web.Request, body: dict[str, Any], step: dict[str, Any]) -> web.StreamResponse:
    """HTTP 401 whose message repeats every header that the request had, after `padding` other characters.

    With `as` it comes in other forms: `text` (no JSON), `ok` (HTTP 200, no JSON), `reply` (a right
    answer), `refusal`.
    """
    headers = dict(request.headers)
    told = "x" * step.get("padding", 0) + f"Incorrect API key provided: {headers!r}"
    match step.get("as"):
        case "text":
            return web.Response(status=401, text=told)
        case "ok":
            return web.Response(text=told, headers={"Content-Type": "application/json"})
        case "reply":
            said = {"verdict": "MET", "reason": json.dumps(headers)}
            message = {"role": "assistant", "content": json.dumps(said), "reasoning_content": told}
            return completion(body, message, step)
        case "refusal":
            return await do_refusal(request, body, {"refusal": told})
        case _:
            return await do_status(request, body, {"status": 401, "message": told})


ACTIONS: dict[str, Action] = {
    "answer": do_answer,
    "status": do_status,
    "refuse_schema": do_refuse_schema,
    "refuse": do_refuse,
    "one_evaluation": do_one_evaluation,
    "endless_list": do_endless_list,
    "refuse_logprobs": do_refuse_logprobs,
    "ignore_logprobs": do_ignore_logprobs,
    "refusal": do_refusal,
    "raw": do_raw,
    "reset": do_reset,
    "hang": do_hang,
    "truncated": do_truncated,
    "drip": do_drip,
    "flood": do_flood,
    "bomb": do_bomb,
    "echo_key": do_echo_key,
}
"""What a step can do, by its `do`."""


async def script(request: web.Request) -> web.Response:
    """Adds rules; those that were there stay behind them."""
    rules = (await request.json())["rules"]
    unknown = sorted({step["do"] for rule in rules for step in rule["then"]} - set(ACTIONS))
    if unknown:
        return web.json_response({"error": f"unknown {unknown}; known: {sorted(ACTIONS)}"}, status=400)
    request.app[STATE].rules += [
        Rule(
            rule.get("model"),
            rule.get("contains"),
            rule["then"],
            rule.get("repeat", "once"),
            rule.get("anywhere", False),
        )
        for rule in rules
    ]
    return web.json_response({})


async def log(request: web.Request) -> web.Response:
    """The requests seen, oldest first."""
    return web.json_response(request.app[STATE].log)


async def reset(request: web.Request) -> web.Response:
    """Forgets rules and requests."""
    state = request.app[STATE]
    state.rules.clear()
    state.log.clear()
    state.company.clear()
    state.slots.clear()
    state.trouble = None
    batches.reset(request.app)
    return web.json_response({})


async def trouble(request: web.Request) -> web.Response:
    """Begins trouble, or tells what became of the requests in it."""
    state = request.app[STATE]
    if request.method == "POST":
        state.trouble = Trouble(**await request.json())
    return web.json_response(state.trouble.outcomes if state.trouble is not None else [])


async def message(request: web.Request) -> web.StreamResponse:
    """Answers one request of Anthropic's protocol, rightly where no rule takes it."""
    body = json.loads(await request.read())
    state = request.app[STATE]
    state.log.append({"path": request.path, "headers": dict(request.headers), "body": body})
    for rule in reversed(state.rules):
        if (step := rule.next_step(body)) is not None:
            return await ACTIONS[step["do"]](request, body, step)
    usage = {"input_tokens": 10, "output_tokens": 5}
    return web.json_response(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": "A plain reply."}],
            "stop_reason": "end_turn",
            "usage": {**usage, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 3},
        }
    )


async def other(request: web.Request) -> web.Response:
    """HTTP 401 to a request of any other protocol."""
    body = (await request.read()).decode("utf-8", "replace")
    request.app[STATE].log.append({"path": request.path_qs, "headers": dict(request.headers), "body": body})
    return web.json_response({"error": {"message": "Invalid API key"}}, status=401)


def build() -> web.Application:
    """The server as an aiohttp application."""
    app = web.Application(client_max_size=64 << 20)
    app[STATE] = State()
    app[batches.BATCHES] = batches.BatchState()
    app.add_routes(
        [
            *batches.ROUTES,
            web.post("/v1/chat/completions", complete),
            web.post("/chat/completions", complete),
            web.post("/v1/systemone", complete),
            web.post("/v2/systemone", complete),
            web.post("/v1/decisions", complete),
            web.post("/decisions", complete),
            web.post("/v1/messages", message),
            web.post("/__script", script),
            web.get("/__log", log),
            web.post("/__reset", reset),
            web.post("/__trouble", trouble),
            web.get("/__trouble", trouble),
            web.route("*", "/{path:.*}", other),
        ]
    )
    return app


async def serve(max_seconds: float) -> None:
    """Serves on a free port of the loopback until the time is over or standard input closes."""
    runner = web.AppRunner(build(), access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    try:
        async with asyncio.timeout(max_seconds):
            await _parent_gone()
    except TimeoutError:
        pass
    finally:
        await runner.cleanup()


async def _parent_gone() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    await reader.read()


def main() -> None:
    """Reads the options and serves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-seconds", type=float, default=6 * 3600.0)
    asyncio.run(serve(parser.parse_args().max_seconds))


if __name__ == "__main__":
    main()
