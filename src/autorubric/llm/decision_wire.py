"""The two wire contracts of decision models: addresses, request bodies, and envelopes of answers.

A request to a decision model is a `ModelRequest` whose only message is the JSON of the shared text and the
questions. The text of the reply is the JSON of its answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from autorubric.errors import TokenUsage
from autorubric.llm.names import wire_name
from autorubric.llm.transport import ModelReply, ModelRequest
from autorubric.llm.wire import Wire, usage_of
from autorubric.support.objects import Json

Contract = Literal["systemone", "openai"]
"""The contract of a decision model: System One, or OpenAI Decisions."""

TRANSPORTS: Final[Mapping[Contract, str]] = {"systemone": "systemone", "openai": "openai_decisions"}
"""The transport of `LLMConfig` for each contract."""
CONTRACTS: Final[Mapping[str, Contract]] = {transport: name for name, transport in TRANSPORTS.items()}

_NUMBER: Final = re.compile(
    r"(?:at most|no more than|up to|max(?:imum)?(?:_(?:length|items))?|limit(?:ed)?)\b\D{0,40}?(\d+)", re.I
)
NAMES_LABELS: Final = re.compile(r"label|choice|option|criteria|level", re.I)
"""Matches errors about the answers of a question rather than the number of questions."""


def limit_in(message: str) -> int | None:
    """Return the limit that an error names, such as "at most 16 labels"; None if it names none."""
    found = _NUMBER.search(message)
    is_known = "question" in message or NAMES_LABELS.search(message)
    return int(found[1]) if found and is_known else None


def _systemone_url(api_base: str, model: str) -> str:
    base = api_base.rstrip("/")
    if base.endswith("/systemone"):
        return base
    return f"{base if urlsplit(base).path else base + '/v1'}/systemone"


def _decisions_url(api_base: str, model: str) -> str:
    base = api_base.rstrip("/")
    return base if base.endswith("/decisions") else f"{base}/decisions"


def _body(request: ModelRequest, secret_params: Mapping[str, Json]) -> bytes:
    own = {"model": wire_name(request.model), **request.params, **secret_params}
    text = json.dumps(own, ensure_ascii=False)[:-1] + "," + request.messages[0].content[1:]
    # Lone surrogates have no UTF-8 encoding, and servers reject escaped ones.
    return text.encode("utf-8", "replace")


def decisions_in(envelope: Json, model: str) -> ModelReply | None:
    """Return the reply in an envelope with answers by question, or in the questions' order; None if none."""
    answers = envelope.get("answers") if isinstance(envelope, dict) else None
    if not isinstance(answers, dict | list):
        return None
    served = envelope.get("model")
    return ModelReply(
        text=json.dumps(answers, ensure_ascii=False),
        model=served if served and isinstance(served, str) else model,
        usage=_usage(envelope.get("usage")),
        request_id=envelope["id"] if isinstance(envelope.get("id"), str) else None,
    )


def _usage(usage: Json) -> TokenUsage | None:
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    names["input_tokens_details"] = "prompt_tokens_details"
    return usage_of({names.get(k, k): v for k, v in usage.items()} if isinstance(usage, dict) else None)


WIRES: Final[Mapping[str, Wire]] = {
    TRANSPORTS["systemone"]: Wire(_systemone_url, _body, decisions_in, "an answer to System One questions"),
    TRANSPORTS["openai"]: Wire(_decisions_url, _body, decisions_in, "an answer of OpenAI Decisions"),
}
"""The wire of each transport."""
