"""The OpenAI chat protocol as pure functions: a request's body, and what an answer's envelope says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from autorubric.llm._names import wire_name
from autorubric.llm._transport import ModelReply, ModelRequest, ReplySchema
from autorubric.values import Json, TokenUsage


def response_format(schema: ReplySchema) -> dict[str, Json]:
    """The `response_format` that asks for replies that follow the schema."""
    wanted = {"name": schema.name, "schema": dict(schema.schema), "strict": schema.strict}
    return {"type": "json_schema", "json_schema": wanted}


def plain_messages(request: ModelRequest) -> list[dict[str, Json]]:
    """The conversation in the protocol's terms."""
    return [{"role": message.role, "content": message.content} for message in request.messages]


def body_of(request: ModelRequest, secret_params: Mapping[str, Json]) -> bytes:
    """The request's body as it goes over the wire, serialised once."""
    body: dict[str, Json] = {"model": wire_name(request.model), "messages": plain_messages(request)}
    if request.schema is not None:
        body["response_format"] = response_format(request.schema)
    params = {**request.params, **secret_params}
    extra = params.pop("extra_body", None)
    body |= params
    if isinstance(extra, Mapping):
        body |= extra
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Lone surrogates have no UTF-8, and servers refuse them escaped.
        return text.encode("utf-8", "replace")


def error_in(envelope: Json) -> tuple[int | None, str] | None:
    """The status and text of an error that stands in an envelope; None where there is none."""
    if not isinstance(envelope, Mapping) or not envelope.get("error"):
        return None
    error = envelope["error"]
    if not isinstance(error, Mapping):
        return None, str(error)
    code = error.get("code")
    said = [str(error[name]) for name in ("message", "type", "code") if error.get(name) is not None]
    is_status = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600
    return (code if is_status else None), " · ".join(said)


def reply_of(envelope: Json, model: str) -> ModelReply | None:
    """The reply in an answer's envelope; None where it is not a completion."""
    choice = _first(envelope.get("choices")) if isinstance(envelope, Mapping) else None
    message = choice.get("message") if choice is not None else None
    if choice is None or not isinstance(message, Mapping):
        return None
    finish = _text(choice.get("finish_reason"))
    text = _content(message.get("content"))
    return ModelReply(
        text=text,
        model=_text(envelope.get("model")) or model,
        usage=usage_of(envelope.get("usage")),
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
        finish_reason=finish,
        refusal=refusal_of(_text(message.get("refusal")), finish),
        request_id=_text(envelope.get("id")),
    )


def refusal_of(refusal: str | None, finish_reason: str | None) -> str | None:
    """The refusal that a message carries, in words; None where it is none."""
    if refusal:
        return refusal
    return "the provider's content filter stopped the reply" if finish_reason == "content_filter" else None


def usage_of(usage: Json) -> TokenUsage | None:
    """The tokens that an envelope counts; None where it counts none."""
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    details = usage.get("prompt_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, Mapping) else 0
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


def _first(choices: Json) -> Mapping[str, Any] | None:
    if isinstance(choices, Sequence) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _content(content: Json) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""
