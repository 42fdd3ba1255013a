"""The OpenAI chat protocol as pure functions: a request's body, and what an answer's envelope says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Final

from pydantic_core import to_json

from autorubric.llm._names import wire_name
from autorubric.llm._transport import Message, ModelReply, ModelRequest, ReplySchema
from autorubric.values import Json, TokenUsage

_OWN_KEYS: Final = frozenset({"model", "messages", "response_format"})
_MOST_WRITTEN: Final = 256

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Schemas by identity with their text; each stands beside its text, so that no other gets its number.
_WRITTEN: Final[dict[tuple[int, str, bool], tuple[Mapping[str, Json], str]]] = {}


def response_format(schema: ReplySchema) -> dict[str, Json]:
    """The `response_format` that asks for replies that follow the schema."""
    wanted = {"name": schema.name, "schema": dict(schema.schema), "strict": schema.strict}
    return {"type": "json_schema", "json_schema": wanted}


def plain_messages(request: ModelRequest) -> list[dict[str, Json]]:
    """The conversation in the protocol's terms."""
    return [{"role": message.role, "content": message.content} for message in request.messages]


def body_of(request: ModelRequest, secret_params: Mapping[str, Json]) -> bytes:
    """The request's body as it goes over the wire; what requests share is serialised once."""
    rest = {**request.params, **secret_params}
    if "extra_body" in rest and isinstance(extra := rest.pop("extra_body"), Mapping):
        rest |= extra
    if not rest:
        text = _own_text(request) + "}"
    elif _OWN_KEYS.isdisjoint(rest):
        text = f"{_own_text(request)},{_written(rest)[1:]}"
    else:
        text = _written({**json.loads(_own_text(request) + "}"), **rest})
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Lone surrogates have no UTF-8, and servers refuse them escaped.
        return text.encode("utf-8", "replace")


def _written(content: Json) -> str:
    try:
        return to_json(content).decode("utf-8")
    except ValueError:
        # Lone surrogates have no UTF-8; what becomes of them is said where the whole is encoded.
        return _encode(content)


def _own_text(request: ModelRequest) -> str:
    """The body's JSON up to what the parameters add, the closing brace left out."""
    messages = ",".join([f'{{"role":"{one.role}","content":{_quoted(one)}}}' for one in request.messages])
    text = f'{{"model":{encode_basestring(wire_name(request.model))},"messages":[{messages}]'
    return text if request.schema is None else f'{text},"response_format":{_format_text(request.schema)}'


def _quoted(message: Message) -> str:
    return _quoted_once(message.content) if message.role == "system" else encode_basestring(message.content)


@lru_cache(maxsize=_MOST_WRITTEN)
def _quoted_once(text: str) -> str:
    return encode_basestring(text)


def _format_text(schema: ReplySchema) -> str:
    key = (id(schema.schema), schema.name, schema.strict)
    kept = _WRITTEN.get(key)
    if kept is None:
        if len(_WRITTEN) >= _MOST_WRITTEN:
            _WRITTEN.clear()
        kept = _WRITTEN[key] = (schema.schema, _written(response_format(schema)))
    return kept[1]


def error_in(envelope: Json) -> tuple[int | None, str] | None:
    """The status and text of an error that stands in an envelope; None where there is none."""
    # JSON has no other mappings than dicts.
    error = envelope.get("error") if isinstance(envelope, dict) else None
    if not error:
        return None
    if not isinstance(error, dict):
        return None, str(error)
    code = error.get("code")
    said = [str(error[name]) for name in ("message", "type", "code") if error.get(name) is not None]
    is_status = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600
    return (code if is_status else None), " · ".join(said)


def reply_of(envelope: Json, model: str) -> ModelReply | None:
    """The reply in an answer's envelope; None where it is not a completion."""
    choice = _first(envelope.get("choices")) if isinstance(envelope, dict) else None
    message = choice.get("message") if choice is not None else None
    if choice is None or not isinstance(message, dict):
        return None
    finish = _text(choice.get("finish_reason"))
    logprobs = choice.get("logprobs")
    return ModelReply(
        text=_content(message.get("content")),
        model=_text(envelope.get("model")) or model,
        usage=usage_of(envelope.get("usage")),
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
        finish_reason=finish,
        refusal=refusal_of(_text(message.get("refusal")), finish),
        request_id=_text(envelope.get("id")),
        tokens=_tokens(logprobs) if logprobs else (),
    )


def _tokens(logprobs: Json) -> tuple[tuple[str, float], ...]:
    """The tokens of a reply with their log-probabilities; none where one of them has none."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    pairs = [(one.get("token"), one.get("logprob")) for one in content if isinstance(one, dict)]
    found = tuple((t, float(p)) for t, p in pairs if isinstance(t, str) and isinstance(p, int | float))
    return found if len(found) == len(content) else ()


def refusal_of(refusal: str | None, finish_reason: str | None) -> str | None:
    """The refusal that a message carries, in words; None where it is none."""
    if refusal:
        return refusal
    return "the provider's content filter stopped the reply" if finish_reason == "content_filter" else None


def usage_of(usage: Json) -> TokenUsage | None:
    """The tokens that an envelope counts; None where it counts none."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    details = usage.get("prompt_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else 0
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=_count(usage, "total_tokens") or prompt + completion,
        cache_creation_input_tokens=_count(usage, "cache_creation_input_tokens"),
        cache_read_input_tokens=cached or _count(usage, "cache_read_input_tokens"),
    )


def _count(counts: Mapping[str, Any], name: str) -> int:
    count = counts.get(name)
    return count if isinstance(count, int) and count >= 0 else 0


def _first(choices: Json) -> dict[str, Any] | None:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _content(content: Json) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""
