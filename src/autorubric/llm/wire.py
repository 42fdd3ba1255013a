"""The OpenAI chat protocol as pure functions: builds request bodies and reads response envelopes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from autorubric.errors import TokenUsage
from autorubric.llm.names import completions_url, wire_name
from autorubric.llm.transport import Message, ModelReply, ModelRequest, ReplySchema, Token
from autorubric.support.json_text import read_compact
from autorubric.support.objects import REASON_LENGTH, Json, Memo

_OWN_KEYS: Final = frozenset({"model", "messages", "response_format"})
_SPARE_TOKENS: Final = 256
_FILTERED: Final = "the provider's content filter stopped the reply"

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Written(NamedTuple):
    schema: Mapping[str, Json]  # the schema itself, kept alive so that no other object gets its id
    format: bytes  # the serialized `response_format` in a request body
    length: int  # number of characters in JSON


# A request about several criteria has schemas of its own.
_WRITTEN: Final = Memo[_Written](most=256)
# The schemas themselves too, so that no other objects get their ids.
_BOUNDED: Final = Memo[tuple[Mapping[str, Json], Mapping[str, Json]]](most=256)


def response_format(schema: ReplySchema) -> dict[str, Json]:
    """Return the `response_format` that requests replies in this schema."""
    wanted = {"name": schema.name, "schema": dict(schema.schema), "strict": schema.strict}
    return {"type": "json_schema", "json_schema": wanted}


def request_body(request: ModelRequest, secret_params: Mapping[str, Json]) -> bytes:
    """Return the request body as bytes; parts shared between requests are serialized once."""
    rest = {**request.params, **secret_params}
    if request.schema is not None and request.schema.max_chars is not None:
        rest.setdefault("max_tokens", token_limit(request.schema.max_chars))
    if "extra_body" in rest and isinstance(extra := rest.pop("extra_body"), Mapping):
        rest |= extra
    if not rest:
        return _own_json(request) + b"}"
    if _OWN_KEYS.isdisjoint(rest):
        return b"%b,%b" % (_own_json(request), _encode_content(rest)[1:])
    return _encode_content({**json.loads(_own_json(request) + b"}"), **rest})


def _encode_content(content: Json) -> bytes:
    try:
        return to_json(content)
    except ValueError:
        # Lone surrogates have no UTF-8 encoding, and servers reject escaped ones.
        return _encode(content).encode("utf-8", "replace")


def _own_json(request: ModelRequest) -> bytes:
    """Return the JSON of the body before its parameters, without the closing brace."""
    messages = b",".join([_message_json(message) for message in request.messages])
    own = b'{"model":%b,"messages":[%b]' % (_model_json(request.model), messages)
    return own if request.schema is None else own + _encode_once(request.schema).format


def _message_json(message: Message) -> bytes:
    if message.role == "system":
        return _system_json(message.content)
    content = _encode_content(message.wire_content())
    return b'{"role":"%b","content":%b}' % (message.role.encode("ascii"), content)


@lru_cache(maxsize=256)
def _system_json(content: str) -> bytes:
    return b'{"role":"system","content":%b}' % _encode_content(content)


@lru_cache(maxsize=256)
def _model_json(model: str) -> bytes:
    return _encode_content(wire_name(model))


def schema_length(schema: ReplySchema) -> int:
    """Return the number of characters of the schema in JSON, computed once."""
    return _encode_once(schema).length


def _encode_once(schema: ReplySchema) -> _Written:
    return _WRITTEN.once((id(schema.schema), schema.name, schema.strict), _encode_schema, schema)


def _encode_schema(schema: ReplySchema) -> _Written:
    return _Written(
        schema=schema.schema,
        format=b',"response_format":%b' % _encode_content(response_format(schema)),
        length=len(_encode_content(dict(schema.schema)).decode("utf-8")),
    )


def token_limit(max_chars: int) -> int:
    """Return the token limit for a reply of this length: one per character, plus a reserve for escapes."""
    return max_chars + _SPARE_TOKENS


def has_lengths(schema: ReplySchema) -> bool:
    """Return whether the schema bounds the length of any text."""
    return b'"maxLength"' in _encode_once(schema).format


def bounded_schema(schema: ReplySchema, longest: int | None, *, enforced: bool) -> ReplySchema:
    """Return the schema with another bound on the length of its texts; the exact one if it is enforced."""
    if enforced and schema.exact is not None:
        schema = replace(schema, schema=schema.exact, exact=None)
    if (longest == REASON_LENGTH and enforced) or not has_lengths(schema):
        return schema
    given, bound = schema.schema, longest if enforced else None
    _, bounded = _BOUNDED.once((id(given), bound), lambda: (given, _with_lengths(given, bound)))
    most = schema.max_chars
    if most is not None:
        most = None if longest is None else max(most, most * longest // REASON_LENGTH)
    return replace(schema, schema=bounded, max_chars=most)


def _with_lengths(schema: Json, longest: int | None) -> Json:
    if isinstance(schema, Mapping):
        kept = {name: _with_lengths(inner, longest) for name, inner in schema.items()}
        if kept.get("maxLength") == REASON_LENGTH:
            del kept["maxLength"]
            kept |= {} if longest is None else {"maxLength": longest}
        return kept
    return [_with_lengths(inner, longest) for inner in schema] if isinstance(schema, list) else schema


def error_in(envelope: Json) -> tuple[int | None, str] | None:
    """Return the status and text of an error in an envelope; None if there is no error."""
    # Parsed JSON has no mappings other than dicts.
    error = envelope.get("error") if isinstance(envelope, dict) else None
    if not error:
        return None
    if not isinstance(error, dict):
        return None, str(error)
    code = error.get("code")
    said = [str(error[name]) for name in ("message", "type", "code") if error.get(name) is not None]
    is_status = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600
    return (code if is_status else None), " · ".join(said)


def reply_in(envelope: Json, model: str) -> ModelReply | None:
    """Return the reply in a response envelope; None if it is not a completion."""
    choices = envelope.get("choices") if isinstance(envelope, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return None
    content, finish = message.get("content"), _text(choice, "finish_reason")
    logprobs, thoughts = choice.get("logprobs"), _text(message, "reasoning_content")
    return ModelReply(
        text=content if isinstance(content, str) else _join_parts(content),
        model=_text(envelope, "model") or model,
        usage=usage_of(envelope.get("usage")),
        reasoning=thoughts or _text(message, "reasoning"),
        reasoning_field="reasoning_content" if thoughts else "reasoning",
        finish_reason=finish,
        refusal=_text(message, "refusal") or (_FILTERED if finish == "content_filter" else None),
        request_id=_text(envelope, "id"),
        tokens=_tokens(logprobs) if logprobs else (),
    )


def _tokens(logprobs: Json) -> tuple[Token, ...]:
    """Return the tokens of a reply with their log-probabilities; empty if one of them has none."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    found = tuple(token for one in content if (token := _token(one)))
    return found if len(found) == len(content) else ()


def _token(given: Json) -> Token | None:
    one = given if isinstance(given, dict) else {}
    text, logprob, raw, top = map(one.get, ("token", "logprob", "bytes", "top_logprobs"))
    # The text of a token that ends within a character is a replacement character.
    with suppress(TypeError, ValueError):
        text = bytes(raw).decode("utf-8", "surrogateescape") if raw and isinstance(raw, list) else text
    if not (isinstance(text, str) and isinstance(logprob, int | float)):
        return None
    others = [other for one in (top if isinstance(top, list) else ()) if (other := _token(one))]
    return Token(text, float(logprob), tuple((other.text, round(other.logprob, 6)) for other in others))


def usage_of(usage: Json) -> TokenUsage | None:
    """Return the token counts in an envelope; None if there are none."""
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
    return count if count and isinstance(count, int) and count >= 0 else 0


def _text(given: Mapping[str, Any], name: str) -> str | None:
    text = given.get(name)
    return text if text and isinstance(text, str) else None


def _join_parts(content: Json) -> str:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


class Wire(NamedTuple):
    """A protocol for one request and its response."""

    url: Callable[[str, str], str]  # the address for an `api_base` and a model
    body: Callable[[ModelRequest, Mapping[str, Json]], bytes]  # the body of a request with secret parameters
    read: Callable[[Json, str], ModelReply | None]  # the reply in an envelope; None if it is something else
    expected: str  # what the response is, for errors
    parse: Callable[[bytes], Json] = read_compact  # the JSON of a response


CHAT: Final = Wire(completions_url, request_body, reply_in, "a chat completion")
