"""The tools over MCP, by the SDK's own client, on both transports."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from autorubric import CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.apps.tool.providers import provider_table
from autorubric.errors import ArgumentError, ReplyError, TokenUsage
from autorubric.integrations import build_mcp_server, http_address
from autorubric.integrations.mcp_tools import TOOLS, ToolServer
from autorubric.judges import FunctionJudge, JudgeReply
from tests.doubles import in_loop, until
from tests.servers.fixtures import OpenAIServer
from tests.tool.replies import REPLY, REQUEST, hang

pytest.importorskip("mcp", reason="the package mcp is not installed (extra autorubric[mcp])")

import httpx
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import (
    CallToolResult,
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    TextContent,
)

MAIN = "from autorubric.cli import main; main()"
TOKEN = "a-token-of-enough-characters"
RUBRIC = "- {name: capital, requirement: The text names Paris.}\n"
PATIENT: dict[str, Any] = {"trust_env": False, "timeout": 120.0}


@pytest.fixture
def folder(tmp_path: Path, openai_server: OpenAIServer) -> Path:
    """A folder with a provider table, a rubric and a run; a file that nobody may read beside it."""
    root = tmp_path / "root"
    root.mkdir()
    settings = {"api_base": openai_server.api_base, "max_retries": 0}
    providers = {
        "gpt4": {"model": "hosted_vllm/m1", **settings},
        "claude": {"model": "hosted_vllm/slow", **settings},
    }
    (root / "providers.json").write_text(json.dumps({"providers": providers}), encoding="utf-8")
    (root / "rubric.yaml").write_text(RUBRIC, encoding="utf-8")
    (tmp_path / "secret.yaml").write_text(RUBRIC, encoding="utf-8")
    (root / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    rubric = Rubric.from_file(root / "rubric.yaml")
    items = [
        DataItem(submission="Paris", description="a", ground_truth=["MET"]),
        DataItem(submission="Lyon", description="b", ground_truth=["UNMET"]),
    ]
    dataset = RubricDataset(name="capitals", rubric=rubric, items=items)
    judge = CriterionGrader(
        judges=[lambda asked: "MET" if "Paris" in str(asked.submission.text) else "UNMET"]
    )
    evaluate_sync(dataset, judge, experiment_name="run", experiments_dir=root, show_progress=False)
    return root


def environment(**more: str) -> dict[str, str]:
    """The environment of a server, with this source tree in it."""
    kept = ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT")
    own = {k: v for k, v in os.environ.items() if k in kept or k.startswith("COVERAGE")}
    return {**own, **more}


@asynccontextmanager
async def over_stdio(folder: Path, *arguments: str) -> AsyncIterator[ClientSession]:
    """A session with the command line's own server on stdio."""
    command = ["-c", MAIN, "mcp", "--config", "providers.json", *arguments]
    started = StdioServerParameters(command=sys.executable, args=command, cwd=folder, env=environment())
    async with stdio_client(started) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        yield session


@contextmanager
def http_server(folder: Path, *arguments: str, **more: str) -> Iterator[str]:
    """The address of the command line's own server on a free port of the loopback."""
    call = ["mcp", "--http", "--port", "0", "--config", "providers.json", *arguments]
    command = [sys.executable, "-c", MAIN, *call]
    with subprocess.Popen(
        command, cwd=folder, env=environment(**more), stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[-1]
        finally:
            process.terminate()
            process.communicate(timeout=120)


@asynccontextmanager
async def over_http(folder: Path, *arguments: str) -> AsyncIterator[ClientSession]:
    """A session with the command line's own server over streamable HTTP."""
    with http_server(folder, *arguments) as url:
        async with at(url) as session:
            yield session


@asynccontextmanager
async def at(url: str, headers: dict[str, str] | None = None) -> AsyncIterator[ClientSession]:
    """A session with the server at an address."""
    async with (
        streamablehttp_client(url, headers=headers, timeout=120) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        yield session


SESSIONS = pytest.mark.parametrize("session_over", [over_stdio, over_http], ids=["stdio", "http"])


def line(result: CallToolResult) -> str:
    """The summary line of a result, whose other text is its structured content as JSON."""
    summary, data = result.content
    assert isinstance(summary, TextContent) and isinstance(data, TextContent)
    assert json.loads(data.text) == result.structuredContent
    return summary.text


async def cancelled(
    session: ClientSession,
    arguments: dict[str, Any],
    is_under_way: Callable[[], bool],
    tool: str = "critique_evaluate",
) -> None:
    """Calls, as the first request after the session's own, and cancels once it is under way."""
    call = asyncio.create_task(session.call_tool(tool, arguments))
    await until(is_under_way)
    params = CancelledNotificationParams(requestId=1)
    await session.send_notification(ClientNotification(CancelledNotification(params=params)))
    await call


def scripted(server: OpenAIServer) -> None:
    """Has the model answer rightly, and the slow one never."""
    server.script({"do": "answer", "payload": REPLY}, model="m1", repeat="last")
    server.script({"do": "hang", "seconds": 300}, model="slow", repeat="last")


@SESSIONS
@in_loop
async def test_a_session(session_over: Any, folder: Path, openai_server: OpenAIServer) -> None:
    """List, call, error, oversize and progress, in one session; then it still answers."""
    scripted(openai_server)
    async with session_over(folder) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert list(tools) == ["critique_evaluate", "grade", "compute_metrics"]
        critique = tools["critique_evaluate"]
        assert critique.title == "critique.evaluate" and critique.annotations.readOnlyHint
        assert critique.inputSchema["required"] == ["content", "criteria"]

        heard: list[tuple[float, float | None, str | None]] = []

        async def hear(done: float, steps: float | None, what: str | None) -> None:
            heard.append((done, steps, what))

        asked = {**REQUEST, "provider": "gpt4"}
        done = await session.call_tool("critique_evaluate", asked, progress_callback=hear)
        assert not done.isError
        assert line(done) == "✓ 8/10 · 1 issue · 2 suggestions"
        assert done.structuredContent["overall_score"] == 8
        shown = "".join(one.text for one in done.content if isinstance(one, TextContent))
        assert str(REPLY["issues"][0]["description"]) in shown and "It adds up." in shown
        jsonschema.validate(done.structuredContent, critique.outputSchema)
        # Signs of life stand between the steps; on a busy machine there may be some.
        assert [one[:2] for one in heard if one[0] == int(one[0])] == [(1, 3), (2, 3), (3, 3)]
        assert heard[1][2] == "gpt4 evaluates"

        for wrong, told in (
            ({**asked, "content": "x" * 512_001}, "Content exceeds maximum size (500KB)"),
            ({**asked, "provider": "custom:none"}, "is not available"),
            ({"content": "x"}, "criteria: missing required argument"),
        ):
            failed = await session.call_tool("critique_evaluate", wrong)
            assert failed.isError and told in line(failed)
            assert failed.structuredContent == {"ok": False, "error": line(failed)[2:], "provider": None}
        assert (await session.call_tool("nosuch", {})).isError
        assert not (await session.call_tool("critique_evaluate", {**asked, "dry_run": True})).isError


@pytest.mark.slow
@SESSIONS
@in_loop
async def test_cancel_and_timeout(session_over: Any, folder: Path, openai_server: OpenAIServer) -> None:
    """A call takes no longer than allowed, a client may give one up, and the session goes on."""
    scripted(openai_server)
    slow = {**REQUEST, "provider": "claude"}
    async with session_over(folder) as session:
        with pytest.raises(McpError, match="cancelled"):
            await cancelled(session, slow, lambda: len(openai_server.log()) == 1)
        assert not (await session.call_tool("critique_evaluate", {**REQUEST, "provider": "gpt4"})).isError
    async with session_over(folder, "--timeout", "0.5") as session:
        timed_out = await session.call_tool("critique_evaluate", slow)
        assert line(timed_out) == "✗ Provider 'claude' is not available: no answer within 0.5 s"
        assert (await session.list_tools()).tools


@pytest.mark.slow
@SESSIONS
@in_loop
async def test_grade_and_metrics(session_over: Any, folder: Path, openai_server: OpenAIServer) -> None:
    """A text is graded against a rubric, given or in a file; a stored run is measured."""
    openai_server.script({"do": "answer", "payload": {"reason": "It does.", "verdict": "MET"}}, repeat="last")
    async with session_over(folder, "--timeout", "150") as session:
        inline = [{"name": "short", "requirement": "It is short."}]
        for rubric, name in (("rubric.yaml", "capital"), (inline, "short")):
            graded = await session.call_tool("grade", {"text": "Paris.", "rubric": rubric})
            assert line(graded) == "score 1 · 1 criteria"
            (criterion,) = graded.structuredContent["criteria"]
            assert (criterion["name"], criterion["answer"]) == (name, "MET")
        measured = await session.call_tool("compute_metrics", {"run": "run"})
        assert measured.structuredContent["metrics"]["criterion_accuracy"] == 1.0
        assert measured.structuredContent["verdicts"]["lost"] == 0
        assert measured.structuredContent["notices"] == []
        for tool, wrong in (
            ("grade", {"text": "x", "rubric": "none.yaml"}),
            ("grade", {"text": "x", "rubric": 5}),
            ("grade", {"text": "é" * 256_001, "rubric": inline}),
            ("grade", {"text": "x", "rubric": inline, "query": "x" * 512_001}),
            ("grade", {"text": "x", "rubric": inline, "reference": "x" * 512_001}),
            ("compute_metrics", {"run": "none"}),
            ("compute_metrics", {}),
        ):
            failed = await session.call_tool(tool, wrong)
            assert failed.isError and failed.structuredContent["ok"] is False


@in_loop
async def test_files_stay_below_the_root(folder: Path) -> None:
    """No tool reads a file outside the server's folder, by whatever path or link."""
    server = build_mcp_server(ToolServer(providers=provider_table(folder / "providers.json"), root=folder))
    async with create_connected_server_and_client_session(server) as session:
        for path in ("../secret.yaml", str(folder.parent / "secret.yaml"), "link.yaml"):
            calls: list[tuple[str, dict[str, Any]]] = [
                ("critique_evaluate", {"content": "x", "criteria": [path]}),
                ("critique_evaluate", {"content": "x", "criteria": path}),
                ("critique_evaluate", {"content": "x", "criteria": [f" {path}\n"]}),
                (
                    "critique_evaluate",
                    {"tool": "critique.evaluate", "arguments": {"content": "x", "criteria": [path]}},
                ),
                ("grade", {"text": "x", "rubric": path}),
                ("compute_metrics", {"run": path}),
                ("compute_metrics", {"run": "run", "dataset": path}),
            ]
            for tool, arguments in calls:
                failed = await session.call_tool(tool, arguments)
                assert failed.isError and "is outside the workspace" in line(failed), (tool, arguments)
        outer = {"content": "x", "criteria": ["secret.yaml"], "workspace_root": str(folder.parent)}
        assert "is outside" in line(await session.call_tool("critique_evaluate", outer))
        dry = {"content": "x", "criteria": ["rubric.yaml"], "dry_run": True}
        inside = await session.call_tool("critique_evaluate", dry)
        linked = folder / "linked"
        shutil.copytree(folder / "run", linked)
        (linked / "manifest.json").rename(folder.parent / "manifest.json")
        (linked / "manifest.json").symlink_to(folder.parent / "manifest.json")
        failed = await session.call_tool("compute_metrics", {"run": "linked"})
        assert failed.isError and "is outside the workspace" in line(failed)
        assert inside.structuredContent is not None and inside.structuredContent["criteria"] == ["capital"]


@in_loop
async def test_a_cancelled_call_stops_the_work(folder: Path) -> None:
    """A client's cancellation reaches whoever evaluates."""
    reached, ended = asyncio.Event(), asyncio.Event()

    async def critic(prompt: Any) -> None:
        reached.set()
        try:
            await hang(prompt)
        finally:
            ended.set()

    server = build_mcp_server(ToolServer(providers=provider_table({"gpt4": critic}), root=folder))
    async with create_connected_server_and_client_session(server) as session:
        with pytest.raises(McpError, match="cancelled"):
            await cancelled(session, REQUEST, reached.is_set)
        await ended.wait()


@in_loop
async def test_a_long_call_shows_signs_of_life(folder: Path) -> None:
    """Between two steps a client that asked for progress hears ever greater numbers."""

    heard: list[float] = []
    enough = asyncio.Event()

    async def slow(prompt: Any) -> Any:
        await enough.wait()
        return REPLY

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        if len(heard) > 5:
            enough.set()

    table = provider_table({"gpt4": slow})
    server = build_mcp_server(ToolServer(providers=table, root=folder, heartbeat=0.05, timeout=120.0))
    async with create_connected_server_and_client_session(server) as session:
        done = await session.call_tool("critique_evaluate", REQUEST, progress_callback=hear)
        assert not done.isError
    assert heard[-1] == 3
    assert all(first < second for first, second in itertools.pairwise(heard))


@in_loop
async def test_grading_goes_to_the_next_and_never_guesses(folder: Path) -> None:
    """A judge that fails is told and the next one asked; what was not judged counts as no answer."""

    def half(asked: Any) -> str:
        if asked.criterion.name == "a":
            raise ReplyError("unreadable")
        return "MET"

    def down(asked: Any) -> str:
        raise ReplyError("down")

    judges = {
        "gpt4": FunctionJudge(function=down, judge_id="down"),
        "claude": FunctionJudge(function=half, judge_id="half"),
    }
    rubric = [{"name": name, "requirement": "It is short."} for name in "ab"]
    server = build_mcp_server(ToolServer(providers=provider_table(judges), root=folder))
    async with create_connected_server_and_client_session(server) as session:
        graded = await session.call_tool("grade", {"text": "x", "rubric": rubric})
        content = graded.structuredContent
        assert content is not None and (content["provider"], list(content["fallback_from"])) == (
            "claude",
            ["gpt4"],
        )
        assert [one["status"] for one in content["criteria"]] == ["failed", "answered"]
        assert content["score"] == 1 and "1 not judged" in line(graded)
        named = await session.call_tool("grade", {"text": "x", "rubric": rubric, "provider": "gpt4"})
        assert named.isError and named.structuredContent is not None and "down" in line(named)
        assert named.structuredContent["ok"] is False and named.structuredContent["provider"] is None


@pytest.mark.slow
@in_loop
async def test_grading_leaves_a_provider_that_hangs(folder: Path) -> None:
    """Each but the last has a share of the time, and the next is asked; a named one is told."""

    async def silent(asked: Any) -> str:
        await asyncio.Event().wait()
        return "MET"

    judges = {
        "gpt4": FunctionJudge(function=silent, judge_id="silent"),
        "claude": FunctionJudge(function=lambda asked: "MET", judge_id="quick"),
    }
    given = {"text": "x", "rubric": "rubric.yaml"}
    server = build_mcp_server(ToolServer(providers=provider_table(judges), root=folder, timeout=6.0))
    async with create_connected_server_and_client_session(server) as session:
        content = (await session.call_tool("grade", given)).structuredContent
        assert content is not None and (content["ok"], content["provider"]) == (True, "claude")
        assert "no answer within" in content["fallback_from"]["gpt4"]
    table = provider_table({**judges, "claude": judges["gpt4"]})
    server = build_mcp_server(ToolServer(providers=table, root=folder, timeout=0.2))
    async with create_connected_server_and_client_session(server) as session:
        named = await session.call_tool("grade", {**given, "provider": "gpt4"})
        assert line(named) == "✗ Provider 'gpt4' is not available: no answer within 0.2 s"
        nobody = await session.call_tool("grade", given)
        assert line(nobody).startswith("✗ the call took more than 0.2 s; gpt4: ")


@in_loop
async def test_every_call_leaves_an_audit_line(folder: Path) -> None:
    """Of each tool, also of calls that are refused, fail, run out of time or are cancelled; without texts."""
    log = folder / "audit.jsonl"
    reached = asyncio.Event()

    async def judge(asked: Any) -> Any:
        if asked.submission.text == "down":
            raise ReplyError("down")
        if asked.submission.text == "hang":
            reached.set()
            await asyncio.Event().wait()
        return JudgeReply(answer="MET", usage=TokenUsage(total_tokens=7), cost=0.25)

    table = provider_table({"gpt4": FunctionJudge(function=judge, judge_id="judge")})
    table = replace(table, audit_path=log)
    server = build_mcp_server(ToolServer(providers=table, root=folder))
    async with create_connected_server_and_client_session(server) as session:
        for text in ("Paris is a secret.", "down"):
            await session.call_tool("grade", {"text": text, "rubric": "rubric.yaml"})
        await session.call_tool("grade", {"text": "Paris is a secret."})
        await session.call_tool("compute_metrics", {"run": "run"})
        await session.call_tool("compute_metrics", {"run": "none"})
    async with create_connected_server_and_client_session(server) as session:
        with pytest.raises(McpError, match="cancelled"):
            await cancelled(session, {"text": "hang", "rubric": "rubric.yaml"}, reached.is_set, "grade")
    lines = [json.loads(one) for one in log.read_text(encoding="utf-8").splitlines()]
    assert [(one["tool"], one["ok"], one["error_code"]) for one in lines] == [
        ("grade", True, None),
        ("grade", False, "provider"),
        ("grade", False, "request"),
        ("compute_metrics", True, None),
        ("compute_metrics", False, "failed"),
        ("grade", False, "cancelled"),
    ]
    assert "secret" not in log.read_text(encoding="utf-8")
    first = lines[0]
    assert (first["provider"], first["score"], first["tokens"], first["cost"]) == ("gpt4", 1.0, 7, 0.25)
    assert first["content_bytes"] == 18 and len(first["content_sha256"]) == 64
    assert first["criteria"] == ["capital"] and first["time"].endswith("+00:00")
    assert lines[1]["failed_providers"] == {"gpt4": "JudgeError"}
    assert (lines[3]["run"], lines[4]["run"]) == ("run", "none")
    server = build_mcp_server(ToolServer(providers=replace(table, audit_content=True), root=folder))
    async with create_connected_server_and_client_session(server) as session:
        await session.call_tool("grade", {"text": "Paris.", "rubric": "rubric.yaml", "query": "Where?"})
    last = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
    assert (last["content"], last["context"], last["reference"]) == ("Paris.", "Where?", None)


@in_loop
async def test_what_cannot_be_logged_is_not_done(folder: Path) -> None:
    """Where the log cannot be written no judge is asked, and the answer says why."""
    asked: list[Any] = []
    table = provider_table({"gpt4": FunctionJudge(function=asked.append, judge_id="judge")})
    table = replace(table, audit_path=folder / "none" / "audit.jsonl")
    server = build_mcp_server(ToolServer(providers=table, root=folder))
    async with create_connected_server_and_client_session(server) as session:
        for tool, given in (
            ("grade", {"text": "x", "rubric": "rubric.yaml"}),
            ("compute_metrics", {"run": "run"}),
        ):
            assert "audit log" in line(await session.call_tool(tool, given))
    assert asked == []


@in_loop
async def test_a_function_cannot_grade(folder: Path) -> None:
    """A provider that only reads prompts is refused by `grade`, and told."""
    server = build_mcp_server(ToolServer(providers=provider_table({"gpt4": hang}), root=folder))
    async with create_connected_server_and_client_session(server) as session:
        failed = await session.call_tool("grade", {"text": "x", "rubric": "rubric.yaml"})
        assert "it is neither a model nor a judge" in line(failed)


def test_only_the_loopback_goes_without_a_token() -> None:
    """Any other address needs a token, and a token has some length."""
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        assert http_address(host, 0, None).is_loopback
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(ArgumentError, match="requires a token"):
            http_address(host, 0, None)
        assert http_address(host, 0, TOKEN).token == TOKEN
    for token in ("short", "é" * 20):
        with pytest.raises(ArgumentError, match="at least 16 ASCII characters"):
            http_address("127.0.0.1", 0, token)
    assert TOKEN not in repr(http_address("127.0.0.1", 0, TOKEN))


def test_a_token_is_asked_for(folder: Path) -> None:
    """Where there is a token, nobody gets in without it; elsewhere nothing is served."""
    with http_server(folder, AUTORUBRIC_MCP_TOKEN=TOKEN) as url:
        given: tuple[dict[str, str], ...] = (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": TOKEN},
            {"Authorization": f"Bearer {TOKEN} {TOKEN}"},
            {"Authorization": f"Bearer {TOKEN[:-1]}"},
        )
        for headers in given:
            refused = httpx.post(url, headers=headers, json={}, **PATIENT)
            assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert httpx.get(url.replace("/mcp", "/other"), **PATIENT).status_code == 404

        twice = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]
        assert httpx.post(url, headers=twice, json={}, **PATIENT).status_code == 401

        async def listed(scheme: str) -> int:
            async with at(url, {"Authorization": f"{scheme} {TOKEN}"}) as session:
                return len((await session.list_tools()).tools)

        for scheme in ("Bearer", "bearer"):
            assert asyncio.run(asyncio.wait_for(listed(scheme), 180)) == len(TOOLS)


@pytest.mark.slow
def test_off_the_loopback_it_serves_whoever_has_the_token(folder: Path) -> None:
    """On all addresses of the machine a call with the token is answered, and one without it is not."""
    with http_server(folder, "--host", "0.0.0.0", AUTORUBRIC_MCP_TOKEN=TOKEN) as url:
        assert "//0.0.0.0:" in url
        there = url.replace("0.0.0.0", "127.0.0.1")
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for headers in ({}, {"Authorization": "Bearer another-token-of-some-length"}):
            refused = httpx.post(there, headers=headers, json=body, **PATIENT)
            assert (refused.status_code, refused.text) == (401, "Unauthorized")

        async def measured() -> CallToolResult:
            async with at(there, {"Authorization": f"Bearer {TOKEN}"}) as session:
                return await session.call_tool("compute_metrics", {"run": "run"})

        done = asyncio.run(asyncio.wait_for(measured(), 180))
        assert not done.isError and done.structuredContent is not None
        assert done.structuredContent["metrics"]["criterion_accuracy"] == 1.0


def test_a_web_page_gets_nothing(folder: Path) -> None:
    """A request that names another host or comes from another origin is refused."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    with http_server(folder) as url:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            refused = httpx.post(url, headers={**accept, **headers}, json=body, **PATIENT)
            assert refused.status_code in (403, 421)


MALFORMED = [
    (b"", -32700),
    (b"{", -32700),
    (b'{"id": NaN}', -32700),
    (b"\xff{}", -32700),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "\\ud800"}', -32700),
    (b"[" * 100_000, -32700),
    (b"1" * 5_000, -32700),
    (b'{"id": 1, "id": 2}', -32700),
    (b"5", -32600),
    (b"[]", -32600),
    (b'{"jsonrpc": "2.0", "id": null, "method": "tools/list"}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"}', -32600),
    (b'{"jsonrpc": "2.0", "id": true, "method": "tools/list"}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32602),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "x"}', -32602),
]


def test_a_malformed_body_is_refused(folder: Path) -> None:
    """A body that is no message gets a 400 with a JSON-RPC error, and the server logs no traceback."""
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    command = [sys.executable, "-c", MAIN, "mcp", "--http", "--port", "0", "--config", "providers.json"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split()[-1]
            for body, code in MALFORMED:
                refused = httpx.post(url, headers=headers, content=body, **PATIENT)
                assert (refused.status_code, refused.json()["error"]["code"]) == (400, code), body[:60]

            client = {"name": "test", "version": "1"}
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            first = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}
            answer = httpx.post(url, headers=headers, json=first, **PATIENT)
            assert answer.status_code == 200 and '"id":7,' in answer.text
        finally:
            process.terminate()
            _, logged = process.communicate(timeout=120)
    assert "Traceback" not in logged and "Error" not in logged


@pytest.mark.parametrize("length", ["Content-Length: 100000000", "Transfer-Encoding: chunked"])
def test_a_large_body_is_refused_before_it_is_read(folder: Path, length: str) -> None:
    """The size that the client states is refused at once, and an unknown size at the limit."""
    with http_server(folder) as url:
        port = int(url.partition("127.0.0.1:")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
            client.sendall(f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{length}\r\n\r\n".encode())
            if "chunked" in length:
                client.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
                for _ in range(2048):
                    client.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("host", ["127.0.0.2", "::1", "localhost"])
def test_every_address_of_the_loopback_answers(folder: Path, host: str) -> None:
    """A session at the address that the server says it listens on, with and without the port in the name."""
    try:
        socket.create_server((host, 0), family=socket.getaddrinfo(host, 0)[0][0]).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    name = f"[{host}]" if ":" in host else host
    with http_server(folder, "--host", host) as url:
        assert name in url

        async def listed() -> int:
            async with at(url) as session:
                return len((await session.list_tools()).tools)

        assert asyncio.run(asyncio.wait_for(listed(), 180)) == len(TOOLS)
        for headers, code in (({"Host": name}, 400), ({"Host": f"{name}.evil.example"}, 421)):
            found = httpx.post(url, headers={**accept, **headers}, json=body, **PATIENT)
            assert found.status_code == code


def test_a_faulty_entry_is_told_when_the_server_starts(folder: Path) -> None:
    """The others are served; which one is not available, and why, stands on stderr."""
    providers = {"gpt4": {"model": "a b"}, "claude": "hosted_vllm/m1"}
    (folder / "providers.json").write_text(json.dumps({"providers": providers}), encoding="utf-8")
    command = [sys.executable, "-c", MAIN, "mcp", "--config", "providers.json"]
    done = subprocess.run(
        command, cwd=folder, env=environment(), input="", capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0 and "provider 'gpt4' is not available: model" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("http", [False, True], ids=["stdio", "http"])
def test_it_can_be_stopped_while_a_client_is_connected(folder: Path, http: bool, sent: str) -> None:
    """A signal ends the server without a traceback, though standard input and a request are unfinished."""
    more = ["--http", "--port", "0"] if http else []
    command = [sys.executable, "-c", MAIN, "mcp", "--config", "providers.json", *more]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8"
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        try:
            if http:
                line = process.stderr.readline()
                port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
                client = socket.create_connection(("127.0.0.1", port))
                head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 99\r\n"
                client.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
                # The server continues once it reads the body.
                assert client.recv(100).startswith(b"HTTP/1.1 100")
            else:
                process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["id"] == 1
            process.send_signal(getattr(signal, sent))
            assert process.wait(timeout=120) in {"SIGINT": (130,), "SIGTERM": (-15, 143)}[sent]
            assert not [word for word in ("Traceback", "Fatal", "ASGI") if word in process.stderr.read()]
        finally:
            process.kill()


def test_an_open_address_is_a_usage_error(folder: Path) -> None:
    """The command refuses to listen elsewhere without a token, and says what to do."""
    command = [sys.executable, "-c", MAIN, "mcp", "--http", "--host", "0.0.0.0", "--config", "providers.json"]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 2 and "requires a token" in done.stderr and "Traceback" not in done.stderr


def test_without_the_package_it_says_how_to_get_it(folder: Path) -> None:
    """Where mcp is absent the command names the extra; neither import nor help ever loads mcp."""
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        f"sys.argv = ['autorubric', 'mcp', '--config', 'providers.json']\n{MAIN}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment(), capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 2 and "pip install mcp" in done.stderr
    program = (
        "import sys, atexit, autorubric\n"
        "atexit.register(lambda: print('mcp' in sys.modules, file=sys.stderr))\n"
        f"autorubric.apps.tool.critique_evaluate\nsys.argv = ['autorubric', '--help']\n{MAIN}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment(), capture_output=True, encoding="utf-8"
    )
    assert done.stderr.strip() == "False"
