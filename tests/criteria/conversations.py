"""A conversation of an agent with its tools."""

from __future__ import annotations

from typing import Any

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"query": "parcel 7"}'},
}
AGENT: list[Any] = [
    {"role": "user", "content": "Where is parcel 7?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "name": "search", "content": "In Oslo.\nSince Monday."},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "It is"}, {"type": "text", "text": "in Oslo."}],
    },
]
