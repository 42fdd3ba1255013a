"""An MCP server for the tools that uses the official SDK, over stdio or streamable HTTP.

This is the only module that imports `mcp`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import logging
import math
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Any, Final

import anyio
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autorubric._version import VERSION
from autorubric.apps.tool.evaluate import Progress
from autorubric.errors import ArgumentError, FileError
from autorubric.integrations.mcp_tools import TOOLS, ServedTool, ToolServer
from autorubric.support.read import parse_structured

PATH: Final = "/mcp"
"""URL path of the streamable HTTP endpoint."""

_SHORTEST_TOKEN: Final = 16
_LARGEST_BODY: Final = 8 << 20
"""Maximum size of a request in bytes."""
_NAMES_OF_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_TOOLS: Final[Mapping[str, ServedTool]] = {tool.name: tool for tool in TOOLS}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """The address for streamable HTTP and the token that clients must send."""

    host: str = "127.0.0.1"  # host name or IP address to listen on
    port: int = 0  # TCP port; 0 for any free port
    # Token that clients send as `Authorization: Bearer …`; None if no token is required.
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.token is None and not self.is_loopback:
            raise ArgumentError(
                f"{self.host!r} can be reached from other machines and requires a token; set a token or "
                "listen on 127.0.0.1"
            )
        if self.token is not None and (len(self.token) < _SHORTEST_TOKEN or not self.token.isascii()):
            raise ArgumentError(f"the token must consist of at least {_SHORTEST_TOKEN} ASCII characters")

    @property
    def name(self) -> str:
        """Return the host as it appears in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def is_loopback(self) -> bool:
        """Whether the host is reachable only from this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def build_server(tools: ToolServer) -> Server[Any, Any]:
    """Create a server for the tools, to run over any transport of the SDK."""
    server: Server[Any, Any] = Server("autorubric", version=VERSION)

    async def list_tools(_: types.ListToolsRequest) -> types.ServerResult:
        entries = [
            types.Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                inputSchema=dict(tool.input_schema),
                outputSchema=dict(tool.output_schema),
                annotations=types.ToolAnnotations(
                    title=tool.title, readOnlyHint=True, destructiveHint=False, openWorldHint=True
                ),
            )
            for tool in TOOLS
        ]
        return types.ServerResult(types.ListToolsResult(tools=entries))

    async def call_tool(request: types.CallToolRequest) -> types.ServerResult:
        async with _progress(server, tools.heartbeat) as on_progress:
            return types.ServerResult(await _call_result(tools, request.params, on_progress))

    # The SDK's decorators are not used, because their error results have no structured content.
    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    return server


async def _call_result(
    tools: ToolServer, params: types.CallToolRequestParams, on_progress: Progress | None
) -> types.CallToolResult:
    tool = _TOOLS.get(params.name)
    if tool is None:
        told = types.TextContent(type="text", text=f"unknown tool {params.name!r}; use {', '.join(_TOOLS)}")
        return types.CallToolResult(content=[told], isError=True)
    outcome = await tool.call(tools, params.arguments or {}, on_progress)
    # The protocol also asks for the JSON as text, because some clients pass only text to the model.
    texts = (outcome.line, json.dumps(outcome.content, ensure_ascii=False))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text) for text in texts],
        structuredContent=dict(outcome.content),
        isError=not outcome.ok,
    )


@contextlib.asynccontextmanager
async def _progress(server: Server[Any, Any], heartbeat: float) -> AsyncIterator[Progress | None]:
    """Send progress notifications, and heartbeats between steps, if the client requested progress."""
    context = server.request_context
    token = context.meta.progressToken if context.meta is not None else None
    if token is None:
        yield None
        return
    step: tuple[float, int | None, str] = (0.0, None, "called")

    async def send(done: float, steps: int | None, what: str) -> None:
        await context.session.send_progress_notification(
            token, done, total=steps, message=what, related_request_id=str(context.request_id)
        )

    async def tell(done: int, steps: int, what: str) -> None:
        nonlocal step
        step = (done, steps, what)
        await send(done, steps, what)

    async def beat() -> None:
        nonlocal step
        while True:
            await anyio.sleep(heartbeat)
            done, steps, what = step
            # Progress must increase although the next step is not yet reached.
            step = ((done + math.floor(done) + 1) / 2, steps, what)
            try:
                await send(*step)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return  # the client has disconnected

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        yield tell
        tasks.cancel_scope.cancel()


def serve(tools: ToolServer, http: HttpAddress | None = None) -> None:
    """Serve the tools until the client disconnects (stdio) or the process is stopped (HTTP)."""
    asyncio.run(_serve_stdio(tools) if http is None else serve_http(tools, http))


async def _serve_stdio(tools: ToolServer) -> None:
    server = build_server(tools)
    wire = anyio.wrap_file(TextIOWrapper(sys.stdout.buffer, encoding="utf-8"))
    lines: Any = _lines_of_stdin()
    # Anything that a library prints to stdout would break the protocol.
    with contextlib.redirect_stdout(sys.stderr):
        async with stdio_server(lines, wire) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


async def _lines_of_stdin() -> AsyncIterator[str]:
    """Yield the lines of standard input; unlike the SDK's reader, let Ctrl-C stop the process at once."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def read() -> None:
        # A separate descriptor is used, because the interpreter locks `sys.stdin` on exit.
        stdin = os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8", errors="replace")
        with stdin, contextlib.suppress(RuntimeError):  # the loop is closed
            for line in stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


async def serve_http(tools: ToolServer, address: HttpAddress) -> None:
    """Serve the tools over streamable HTTP and print the URL, with the actual port, to stderr."""
    # Web pages must not reach a loopback address; others are protected by the token. Clients omit the
    # default port.
    names = [f"{name}{port}" for name in _NAMES_OF_LOOPBACK | {address.name} for port in (":*", "")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=address.is_loopback,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    manager = StreamableHTTPSessionManager(build_server(tools), security_settings=security)
    config = uvicorn.Config(
        guard_app(manager.handle_request, address.token),
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    with _open_socket(address) as bound:
        sys.stderr.write(f"Serving on http://{address.name}:{bound.getsockname()[1]}{PATH}\n")
        sys.stderr.flush()
        server = uvicorn.Server(config)
        # Requests that are cancelled by the end of the server are no errors.
        logging.getLogger("uvicorn.error").addFilter(lambda record: not server.should_exit)
        async with manager.run():
            await server.serve(sockets=[bound])


def _open_socket(address: HttpAddress) -> socket.socket:
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address.host, address.port), family=family)
    except (OSError, OverflowError) as error:
        raise ArgumentError(f"cannot listen on {address.host} port {address.port}: {error}") from None


def guard_app(app: ASGIApp, token: str | None) -> ASGIApp:
    """Wrap an application so that it is served at `PATH`, to clients that send the token."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].rstrip("/") != PATH:
            await PlainTextResponse("Not found", status_code=404)(scope, receive, send)
        elif token is not None and not _has_token(scope, token):
            headers = {"WWW-Authenticate": "Bearer"}
            await PlainTextResponse("Unauthorized", status_code=401, headers=headers)(scope, receive, send)
        elif scope["method"] == "POST":
            await _post(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return check


async def _post(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a body that cannot be JSON-RPC, on which the SDK may fail; otherwise call the application."""
    try:
        body = await _read_body(Request(scope, receive))
    except ClientDisconnect:
        return
    fault = _body_fault(body)
    if fault is not None:
        status, code, message = fault
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
        await JSONResponse(error, status_code=status)(scope, receive, send)
        return
    is_read = False

    async def replay() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    await app(scope, replay, send)


async def _read_body(request: Request) -> bytes | None:
    """Return the body of a request; None if it is too large, before the rest of it is read."""
    length, body = request.headers.get("Content-Length", ""), bytearray()
    if length.isdecimal() and int(length) > _LARGEST_BODY:
        return None
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            return None
    return bytes(body)


def _body_fault(body: bytes | None) -> tuple[int, int, str] | None:
    """Return the HTTP status, JSON-RPC code and message for an invalid body; None if it may be valid."""
    if body is None:
        return 413, types.INVALID_REQUEST, f"Invalid request: more than {_LARGEST_BODY:,} bytes"
    try:
        message = parse_structured(body.decode("utf-8"), "json").data
    except UnicodeDecodeError as error:
        return 400, types.PARSE_ERROR, f"Parse error: invalid UTF-8: {error.reason} at byte {error.start}"
    except FileError as error:
        return 400, types.PARSE_ERROR, f"Parse error: {error.faults[0].message}"
    if not isinstance(message, dict):
        return 400, types.INVALID_REQUEST, "Invalid request: the body must be a JSON object"
    key = message.get("id", 0)
    if isinstance(key, bool) or not isinstance(key, str | int):
        return 400, types.INVALID_REQUEST, "Invalid request: the id must be a string or an integer"
    return None


def _has_token(scope: Scope, token: str) -> bool:
    sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    if len(sent) != 1:
        return False
    scheme, _, credentials = sent[0].partition(b" ")
    given = hmac.compare_digest(credentials.strip(), token.encode("ascii"))
    return given and scheme.lower() == b"bearer"
