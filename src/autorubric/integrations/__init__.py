"""What joins the library to other products; each needs a package of its own, loaded when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autorubric.errors import MissingDependencyError

if TYPE_CHECKING:
    from autorubric.integrations._mcp import HttpAddress
    from autorubric.integrations._mcp_tools import ToolServer

__all__ = ["build_mcp_server", "http_address", "serve_mcp"]


def build_mcp_server(tools: ToolServer) -> Any:
    """An `mcp.server.lowlevel.Server` with the tools; it runs over any transport of the MCP SDK.

    Raises:
        MissingDependencyError: The package `mcp` is not installed.
    """
    return _loaded_mcp().build_server(tools)


def serve_mcp(tools: ToolServer, http: HttpAddress | None = None) -> None:
    """Serves the tools until the client leaves (stdio), or the process is stopped (HTTP).

    Args:
        tools: What is served.
        http: Where streamable HTTP is served; None for stdio.

    Raises:
        MissingDependencyError: The package `mcp` is not installed.
        ArgumentError: The address is not the loopback, and there is no token.
    """
    _loaded_mcp().serve(tools, http)


def http_address(host: str, port: int, token: str | None) -> HttpAddress:
    """Where streamable HTTP is served.

    Raises:
        MissingDependencyError: The package `mcp` is not installed.
        ArgumentError: The address is not the loopback and there is no token, or the token is too short.
    """
    address: HttpAddress = _loaded_mcp().HttpAddress(host=host, port=port, token=token)
    return address


def _loaded_mcp() -> Any:
    try:
        from autorubric.integrations import _mcp
    except ImportError as error:
        raise MissingDependencyError(
            f"the MCP server needs the package mcp ({error}); pip install 'autorubric[mcp]'"
        ) from error
    return _mcp
