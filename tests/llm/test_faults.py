"""Pure pieces: errors from statuses, waits from headers, names, secrets, envelopes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric.errors import (
    ArgumentError,
    AuthenticationError,
    ContextLengthError,
    ModelNotFoundError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    RequestRefusedError,
    SchemaRefusedError,
    ServerError,
    TransientError,
)
from autorubric.llm import LLMConfig, ModelRequest
from autorubric.llm.names import completions_url, is_openai_itself, provider_of, wire_name
from autorubric.llm.openai import OpenAITransport, _headers, key_of
from autorubric.llm.provider_errors import ProviderFailure, brief, error_of, is_filtered, retry_after_of
from autorubric.llm.route import is_direct
from autorubric.llm.specs import Mask
from autorubric.llm.transport import Message, ReplySchema
from autorubric.llm.wire import error_in, reply_in, request_body

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_MASK = Mask(())


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (400, "whatever", RequestRefusedError),
        (400, "prompt is too long: 9 tokens > 5 maximum", ContextLengthError),
        (400, "litellm.ContextWindowExceededError: x", ContextLengthError),
        (413, "Input is too long for requested model", ContextLengthError),
        (400, "Invalid schema for response_format 'V'", SchemaRefusedError),
        (422, "guided_json is not supported", SchemaRefusedError),
        (404, "No endpoints found that support structured outputs", SchemaRefusedError),
        (404, "model with json_schema not found", ModelNotFoundError),
        (400, "API key not valid. Please pass a valid API key.", AuthenticationError),
        (400, "Incorrect API key provided", AuthenticationError),
        (400, "The model `x` does not exist", ModelNotFoundError),
        (401, "", AuthenticationError),
        (402, "", RequestRefusedError),
        (403, "", AuthenticationError),
        (404, "", ModelNotFoundError),
        (405, "", ModelNotFoundError),
        (408, "", ProviderTimeoutError),
        (409, "", TransientError),
        (418, "", RequestRefusedError),
        (425, "", TransientError),
        (429, "Slow down", RateLimitError),
        (429, "You exceeded your current quota", RequestRefusedError),
        (500, "", ServerError),
        (503, "", ServerError),
        (504, "", ProviderTimeoutError),
        (529, "Overloaded", ServerError),
        (307, "", RequestRefusedError),
        (200, "It failed", ServerError),
        (200, "maximum context length is 5", ContextLengthError),
    ],
)
def test_every_status_has_its_error(status: int, text: str, error: type[ProviderError]) -> None:
    """The most exact class of the tree, with model, status and wait."""
    made = error_of(
        ProviderFailure(model="m", status=status, text=text, retry_after=3.0, had_schema=True), NO_MASK
    )
    assert type(made) is error
    assert (made.model, made.status, made.retry_after) == ("m", status, 3.0)
    assert str(made).startswith("m: ")
    assert f"HTTP {status}" in str(made)


@given(st.integers(100, 999), st.text(), st.booleans())
def test_any_status_and_text_make_an_error(status: int, text: str, had_schema: bool) -> None:
    """The mapping is total, and its messages are one short line."""
    message = str(
        error_of(ProviderFailure(model="m", status=status, text=text, had_schema=had_schema), NO_MASK)
    )
    assert "\n" not in message and len(message) < 700


def test_a_schema_is_refused_only_where_one_was_sent() -> None:
    """Without a schema in the request the same words are a plain refusal."""
    made = error_of(ProviderFailure(model="m", status=400, text="response_format is wrong"), NO_MASK)
    assert type(made) is RequestRefusedError


def test_the_content_filter_is_told_by_its_words() -> None:
    """Only refused requests count, not failures that mention a filter."""
    assert is_filtered(ProviderFailure(model="m", status=400, text="code: content_filter"))
    assert not is_filtered(ProviderFailure(model="m", status=500, text="content_filter service is down"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=30), usegmt=True)}, 30.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=30), usegmt=True)}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:05 -0000"}, 5.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "\u0663"}, None),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e5"}, 1e5),
        ({"retry-after": "9999999999"}, 9_999_999_999.0),
        ({"retry-after": "9" * 400}, math.inf),
        ({"retry-after": "Thu, 99 Foo 99999999999 99:99:99"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_waits_are_read_from_headers(headers: Mapping[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates; anything else is no wait."""
    assert retry_after_of(headers, NOW) == seconds


def test_a_date_is_measured_from_now() -> None:
    """Without a given time the present counts."""
    later = datetime.now(UTC) + timedelta(seconds=60)
    wait = retry_after_of({"retry-after": format_datetime(later, usegmt=True)})
    assert wait is not None and 50 < wait <= 60


def test_a_providers_text_is_shown_on_one_line() -> None:
    """Line breaks, terminal escapes and direction marks are taken out, and length is bounded."""
    assert brief(" a\r\n\x1b[31mb\u202e c ") == "a [31mb c"
    assert len(brief("x" * 10**6)) < 410


@pytest.mark.parametrize(
    ("model", "base", "url", "name", "provider"),
    [
        ("openai/gpt", "https://h/v1/", "https://h/v1/chat/completions", "gpt", "https://h/v1"),
        ("hosted_vllm/a/b", "http://h/v1", "http://h/v1/chat/completions", "a/b", "http://h/v1"),
        ("ollama/x", "http://h:11434", "http://h:11434/v1/chat/completions", "x", "http://h:11434"),
        ("ollama/x", "http://h/api/v1", "http://h/api/v1/chat/completions", "x", "http://h/api/v1"),
        (
            "m",
            "http://h/v1/chat/completions",
            "http://h/v1/chat/completions",
            "m",
            "http://h/v1/chat/completions",
        ),
        ("Qwen/Q", "http://h/v1", "http://h/v1/chat/completions", "Qwen/Q", "http://h/v1"),
    ],
)
def test_names_and_addresses(model: str, base: str, url: str, name: str, provider: str) -> None:
    """Prefixes are for finding the provider and do not go over the wire."""
    assert completions_url(base, model) == url
    assert wire_name(model) == name
    assert provider_of(model, base) == provider


def test_without_an_address_the_prefix_names_the_provider() -> None:
    """A bare name is OpenAI's."""
    assert provider_of("anthropic/c", None) == "anthropic"
    assert provider_of("gpt", None) == "openai"


@pytest.mark.parametrize(
    ("settings", "direct"),
    [
        ({"model": "gpt"}, False),
        ({"model": "openai/gpt"}, False),
        ({"model": "openai/gpt", "api_base": "http://h/v1"}, True),
        ({"model": "my-model", "api_base": "http://h/v1"}, True),
        ({"model": "anthropic/c", "api_base": "http://h/v1"}, False),
        ({"model": "Qwen/Q", "api_base": "http://h/v1"}, True),
        ({"model": "Qwen/Q"}, False),
        ({"model": "openai/gpt", "api_base": "http://h/v1", "transport": "litellm"}, False),
    ],
)
def test_the_transport_follows_address_and_prefix(settings: dict[str, Any], direct: bool) -> None:
    """`auto` takes the direct transport for OpenAI-compatible servers with an address."""
    assert is_direct(LLMConfig(**settings)) is direct


def test_the_direct_transport_needs_an_address() -> None:
    """Without one there is nobody to ask."""
    with pytest.raises(ArgumentError, match="requires api_base"):
        OpenAITransport(LLMConfig(model="m"))


@pytest.mark.parametrize(
    ("base", "gets_it"),
    [
        ("https://api.openai.com/v1", True),
        ("https://api.openai.com:443/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://api.openai.com.evil.example/v1", False),
        ("https://evil.example/api.openai.com/v1", False),
        ("https://api.openai.com:8443/v1", False),
    ],
)
def test_only_openai_gets_its_key_unasked(base: str, gets_it: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """`OPENAI_API_KEY` goes to OpenAI's own address over TLS and nowhere else."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    assert is_openai_itself(base) is gets_it
    assert (key_of(LLMConfig(model="m", api_base=base))[0] == "sk-env") is gets_it


def test_a_given_header_takes_the_place_of_ours() -> None:
    """However it is written, a header is sent once."""
    config = LLMConfig(model="m", extra_headers={"Authorization": "Basic x", "User-Agent": "mine"})
    headers = _headers(config, "sk")
    assert (headers["authorization"], headers["user-agent"]) == ("Basic x", "mine")


def test_a_body_holds_the_whole_request() -> None:
    """Serialised once, further body parameters merged, lone surrogates replaced."""
    request = ModelRequest(
        model="openai/m",
        messages=(Message(role="user", content="ü \ud800"),),
        schema=ReplySchema(name="V", schema={"type": "object"}),
        params={"temperature": 0.5, "extra_body": {"top_k": 3}},
    )
    assert json.loads(request_body(request, {"my_token": "t"})) == {
        "model": "m",
        "messages": [{"role": "user", "content": "ü ?"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "V", "schema": {"type": "object"}, "strict": True},
        },
        "temperature": 0.5,
        "my_token": "t",
        "top_k": 3,
    }


@pytest.mark.parametrize(
    ("envelope", "error"),
    [
        ({}, None),
        ([], None),
        ({"error": None}, None),
        ({"error": "boom"}, (None, "boom")),
        ({"error": {"message": "m", "type": "t", "code": "c"}}, (None, "m · t · c")),
        ({"error": {"message": "m", "code": 429}}, (429, "m · 429")),
        ({"error": {"message": "m", "code": True}}, (None, "m · True")),
    ],
)
def test_errors_in_envelopes_are_found(envelope: Any, error: Any) -> None:
    """Whatever form the error has."""
    assert error_in(envelope) == error


def test_a_reply_in_parts_is_joined() -> None:
    """Content may be a list of parts; those without text are left out."""
    content = [{"type": "text", "text": "a"}, {"type": "image"}, "x", {"type": "text", "text": "b"}]
    reply = reply_in({"choices": [{"message": {"content": content, "reasoning": "r"}}]}, "m")
    assert reply is not None
    assert (reply.text, reply.model, reply.usage, reply.reasoning) == ("ab", "m", None, "r")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "content",
                        "usage",
                        "prompt_tokens",
                        "model",
                        "finish_reason",
                        "refusal",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=10,
    )
)
def test_any_envelope_is_a_reply_or_none(envelope: Any) -> None:
    """Reading an envelope never fails."""
    reply = reply_in(envelope, "m")
    assert reply is None or isinstance(reply.text, str)
