from .assertions import assert_rubric as assert_rubric, assert_rubric_async as assert_rubric_async
from .mcp_tools import call_tool as call_tool
from .optional import (
    build_mcp_server as build_mcp_server,
    http_address as http_address,
    serve_mcp as serve_mcp,
    trace_grader as trace_grader,
)
from .rewards import (
    as_async_reward as as_async_reward,
    as_reward as as_reward,
    as_verifiers_reward as as_verifiers_reward,
)

__all__: list[str]
