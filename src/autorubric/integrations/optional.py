"""Integrations whose packages are optional: OpenTelemetry spans and the MCP server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autorubric.errors import MissingDependencyError

if TYPE_CHECKING:
    from autorubric.grading.base import Grader
    from autorubric.integrations.mcp_server import HttpAddress
    from autorubric.integrations.mcp_tools import ToolServer


def trace_grader(grader: Grader, *, content: bool = False, tracer_provider: Any = None) -> Grader:
    """Wrap a grader so that it records OpenTelemetry spans for graded texts and judge calls.

    Spans are children of the span that is current when grading starts. Each text's span (`grade`) has a
    `gen_ai.evaluation.result` event per criterion and a child span per judge call, with the attributes
    defined by the GenAI semantic conventions. The wrapped grader can be used wherever a `Grader` is accepted,
    and run folders do not change.

    Args:
        grader: The grader to wrap.
        content: Whether to record prompts, replies and reasons, which contain the graded texts.
        tracer_provider: An `opentelemetry.trace.TracerProvider`; None for the global provider at the time of
            grading.

    Raises:
        MissingDependencyError: If the package `opentelemetry` is not installed.
    """
    module = _load("otel", "tracing", "opentelemetry", "opentelemetry-sdk")
    grader_with_spans: Grader = module.TracedGrader(grader, content, tracer_provider)
    return grader_with_spans


def build_mcp_server(tools: ToolServer) -> Any:
    """Create an `mcp.server.lowlevel.Server` for the tools, for use with any MCP SDK transport.

    Raises:
        MissingDependencyError: If the package `mcp` is not installed.
    """
    return _load_mcp().build_server(tools)


def serve_mcp(tools: ToolServer, http: HttpAddress | None = None) -> None:
    """Serve the tools over MCP until the client disconnects (stdio) or the process is stopped (HTTP).

    Args:
        tools: Configuration of the tools to serve.
        http: Address for streamable HTTP; None for stdio.

    Raises:
        MissingDependencyError: If the package `mcp` is not installed.
        ArgumentError: If the server cannot listen on the address.
    """
    _load_mcp().serve(tools, http)


def http_address(host: str, port: int, token: str | None) -> HttpAddress:
    """Create an address on which `serve_mcp` can serve streamable HTTP.

    Raises:
        MissingDependencyError: If the package `mcp` is not installed.
        ArgumentError: If there is no token and the address is not a loopback address, or if the token is too
            short.
    """
    address: HttpAddress = _load_mcp().HttpAddress(host=host, port=port, token=token)
    return address


def _load_mcp() -> Any:
    return _load("mcp_server", "the MCP server", "mcp", "mcp")


def _load(module: str, what: str, package: str, distribution: str) -> Any:
    try:
        return import_module(f"autorubric.integrations.{module}")
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} requires the package {package!r} ({error}); run: pip install {distribution}"
        ) from error
