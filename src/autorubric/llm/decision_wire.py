"""The two wire contracts of decision models: a message is the JSON of questions, a reply that of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal
from urllib.parse import urlsplit

from autorubric.llm.names import wire_name
from autorubric.llm.transport import ModelReply, ModelRequest
from autorubric.llm.wire import Wire, usage_of
from autorubric.support.objects import Json

Contract = Literal["systemone", "openai"]
_USAGE: Final = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"} | {
    "input_tokens_details": "prompt_tokens_details"
}
_LIMIT: Final = re.compile(
    r"(?:at most|no more than|up to|max(?:imum)?(?:_(?:length|items))?|limit(?:ed)?)\b\D{0,40}?(\d+)", re.I
)
_COMPARED: Final = re.compile(r"\d+ *> *(\d+)")
NAMES_LABELS: Final = re.compile(r"label|choice|option|criteria|level", re.I)
"""Matches errors about the answers of a question rather than the number of questions."""


def limit_in(message: str) -> int | None:
    """Return the limit that an error names, such as "at most 16 labels" or "20 > 16"."""
    found = _COMPARED.search(message) or _LIMIT.search(message)
    return int(found[1]) if found and ("question" in message or NAMES_LABELS.search(message)) else None


def _url(path: str, api_base: str, model: str) -> str:
    base = api_base.rstrip("/")
    return base if base.endswith(path) else base + ("" if urlsplit(base).path else "/v1") + path


def _body(request: ModelRequest, secret_params: Mapping[str, Json]) -> bytes:
    own = {"model": wire_name(request.model), **request.params, **secret_params}
    text = json.dumps(own, ensure_ascii=False)[:-1] + "," + request.messages[0].content[1:]
    # Lone surrogates have no UTF-8 encoding, and servers reject escaped ones.
    return text.encode("utf-8", "replace")


def without_contradictions(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """Return pairs as a dict; the value is None for a key that is repeated with different values."""
    found = dict(pairs)
    return found | {key: None for key, value in pairs if value != found[key]}


def decisions_in(envelope: Json, model: str) -> ModelReply | None:
    """Return the reply in an envelope of answers, by question or in their order; None if it has none."""
    answers = envelope.get("answers") if isinstance(envelope, dict) else None
    if not isinstance(answers, dict | list):
        return None
    served, usage = envelope.get("model"), envelope.get("usage")
    if isinstance(usage, dict):
        usage = {_USAGE.get(name, name): count for name, count in usage.items()}
    text = json.dumps(answers, ensure_ascii=False)
    return ModelReply(text, served if served and isinstance(served, str) else model, usage_of(usage))


_PARSE: Final = partial(json.loads, object_pairs_hook=without_contradictions)
WIRES: Final[Mapping[str, Wire]] = {
    f"{contract}_decisions": Wire(partial(_url, path), _body, decisions_in, "an answer to questions", _PARSE)
    for contract, path in (("systemone", "/systemone"), ("openai", "/decisions"))
}
"""The wire of each transport, which is the contract followed by `_decisions`."""
