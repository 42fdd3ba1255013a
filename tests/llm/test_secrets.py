"""Secrets: which names have them, how texts are cleared, and that no error or reply shows one."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from autorubric.errors import AuthenticationError, JudgeError, ProviderError, ServerError
from autorubric.llm import LLMClient, LLMConfig, ModelReply, ModelRequest
from autorubric.llm.route import provider_transport
from autorubric.llm.specs import Mask, digest_of, holds_secret, is_secret_name, redact
from autorubric.llm.transport import Message
from tests.servers.fixtures import OpenAIServer

KEY = "gsk-SENTINEL0123456789abcdefghij"
OTHER = "xyz-OTHER-9876543210"
GATE = "gate-SENTINEL/42+x"
TRANSPORTS = ["openai_compatible", "litellm"]


@pytest.fixture(params=TRANSPORTS)
def config(request: pytest.FixtureRequest, openai_server: OpenAIServer) -> LLMConfig:
    """A config with a key and a header, for each transport."""
    return LLMConfig(
        model="openai/judge-1",
        api_base=openai_server.api_base,
        transport=request.param,
        api_key=KEY,
        extra_headers={"X-Gate": GATE},
        max_retries=0,
    )


def send(config: LLMConfig) -> ModelReply:
    """One request over the config's transport alone."""
    request = ModelRequest(model=config.model, messages=(Message(role="user", content="Is it met?"),))

    async def main() -> ModelReply:
        transport = provider_transport(config)
        try:
            return await transport.send(request)
        finally:
            await transport.aclose()

    return asyncio.run(main())


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and all that it was raised from or while handling."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def shown(error: BaseException) -> str:
    """Everything that a log could show of an error."""
    parts = ["".join(traceback.format_exception(error))]
    for one in chain(error):
        parts += [str(one), repr(one), repr(vars(one)), *getattr(one, "__notes__", [])]
    return "\n".join(parts)


def pieces(secret: str) -> Iterator[str]:
    """Every piece of eight characters of a secret."""
    return (secret[start : start + 8] for start in range(len(secret) - 7))


def assert_hidden(text: str, *secrets: str) -> None:
    """No eight characters of a secret stand in the text."""
    assert [piece for secret in secrets for piece in pieces(secret) if piece in text] == []


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("groq/llama-x", "GROQ_API_KEY"),
        ("deepseek/x", "DEEPSEEK_API_KEY"),
        ("hosted_vllm/x", "HOSTED_VLLM_API_KEY"),
    ],
)
def test_a_key_of_the_environment_is_in_no_error(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    """Where litellm takes the key from the environment, and the server sends it back, it is masked too."""
    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv(variable.replace("KEY", "BASE"), openai_server.api_base)
    openai_server.script("echo_key")
    config = LLMConfig(model=model, max_retries=0)

    async def main() -> None:
        async with LLMClient(config) as client:
            await client.generate("", "Hello")

    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(main())
    assert KEY in json.dumps(openai_server.log()[0]["headers"])
    assert_hidden(shown(caught.value), KEY)


@pytest.mark.parametrize("form", [None, "text", "ok"])
@pytest.mark.parametrize("padding", [0, 80, 160, 240, 1400, 65_300])
def test_no_cut_leaves_a_part_of_a_key(
    config: LLMConfig, openai_server: OpenAIServer, form: str | None, padding: int
) -> None:
    """Wherever an error is shortened, secrets are taken out before; nothing lower is chained to it."""
    for more in range(0, 80, 20):
        openai_server.script({"do": "echo_key", "as": form, "padding": padding + more})
        with pytest.raises(ProviderError) as caught:
            send(config)
        assert_hidden(shown(caught.value), KEY, GATE)
        assert [type(one).__module__ for one in chain(caught.value)] == ["autorubric.errors"]


@pytest.mark.parametrize("fault", ["reset", "truncated", {"do": "hang", "seconds": 5}])
def test_broken_connections_chain_nothing(config: LLMConfig, openai_server: OpenAIServer, fault: Any) -> None:
    """The lower library's error carries the request and its headers; it stays below."""
    openai_server.script(fault)
    with pytest.raises(ProviderError) as caught:
        send(config.model_copy(update={"timeout": 0.5}))
    assert [type(one).__module__ for one in chain(caught.value)] == ["autorubric.errors"]


@pytest.mark.parametrize("form", ["reply", "refusal"])
def test_a_reply_that_repeats_a_key_is_masked(
    config: LLMConfig, openai_server: OpenAIServer, form: str
) -> None:
    """Text, reasoning and refusal have no key; the text is still JSON."""
    openai_server.script({"do": "echo_key", "as": form})
    reply = send(config)
    assert_hidden(repr(reply), KEY, GATE)
    assert "***" in (reply.text or reply.refusal or "")
    if form == "reply":
        assert reply.reasoning is not None and "Incorrect API key" in reply.reasoning
        headers = {name.lower(): said for name, said in json.loads(json.loads(reply.text)["reason"]).items()}
        assert headers["authorization"] == "Bearer ***"


def test_ordinary_words_in_replies_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header or a variable that is a plain word is no reason to change what a model says."""
    monkeypatch.setenv("DATABASE_PASSWORD", "password")
    said = "The blue password is fine: 20240101."
    mask = Mask(["blue", "20240101", "k3y"])
    assert mask.reply(ModelReply(text=said, model="m")).text == said
    assert mask.error(said) == "The *** *** is fine: ***."


def test_unreadable_replies_show_no_key(
    config: LLMConfig, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is quoted back to the model, and kept with a failed vote, is cleared of all known keys as well."""
    monkeypatch.setenv("OTHER_API_KEY", OTHER)
    openai_server.script({"do": "answer", "content": f"My keys are {KEY} and {OTHER}."}, repeat="last")

    async def main() -> None:
        async with LLMClient(config) as client:
            await client.ask([Message(role="user", content="?")], read=lambda payload: payload)

    with pytest.raises(JudgeError) as caught:
        asyncio.run(main())
    assert caught.value.replies == ("My keys are *** and ***.",) * 3
    assert_hidden(shown(caught.value), KEY, OTHER)
    assert_hidden(json.dumps([seen["body"] for seen in openai_server.log()]), KEY, OTHER)


@pytest.mark.parametrize(
    "text",
    [
        "401 for Bearer {}",
        "headers: {{'Authorization': 'Bearer {}'}}",
        "Authorization: Basic {}",
        "[(b'x-api-key', b'{}')]",
        '{{"api_key": "{}"}}',
        "X-Api-Key={}",
        "https://h/v1/models?alt=sse&key={}",
        "Invalid API key: {}",
        "Incorrect API key provided: {}.",
        "Ocp-Apim-Subscription-Key: {}",
        "access_token={}&x=1",
    ],
)
def test_what_is_labelled_as_a_key_is_masked(text: str) -> None:
    """Also keys that nobody told us of are hidden where a text says that they are keys."""
    assert_hidden(Mask(()).error(text.format(KEY)), KEY)


@pytest.mark.parametrize(
    "text",
    [
        "The api_key client option must be set, or the variable OPENAI_API_KEY",
        "Bearer authentication is needed",
        "maximum context length is 9 tokens: max_tokens=50",
    ],
)
def test_words_about_keys_are_left_alone(text: str) -> None:
    """An error stays readable."""
    assert Mask(()).error(text) == text


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 70_000))
def test_a_known_secret_never_survives(before: str, after: str, padding: int) -> None:
    """Wherever it stands and however long the text is."""
    # What stands there without the key is no matter of the key's.
    assume(not any(piece in text for piece in pieces(KEY) for text in (before, after)))
    assert_hidden(Mask([KEY]).error(before + "x" * padding + KEY + after), KEY)


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "X-Api-Key", "auth_token", "Authorization", "password", "cookie", "accessToken"),
        *("auth_header", "token_value", "subscriptionKey", "apiKey2", "APIKey", "OPENAI_API_KEY", "key"),
        *("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "HF_TOKEN", "clientSecret", "secret_name", "apikey"),
        *("DB_PASSWORD", "credentials", "userCredentialFile", "x-goog-api-key", "authTokens", "OAuth2Token"),
    ],
)
def test_secret_names_are_known(name: str) -> None:
    """What such a parameter, header or variable holds is hidden, however the name is written."""
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("max_tokens", "top_k", "logit_bias", "keyboard", "monkey", "user", "tokenizer", "authority"),
        *("max_completion_tokens", "maxOutputTokens", "TOKENIZERS_PARALLELISM", "skip_special_tokens"),
        *("author", "keyed", "eos_token", "stop_token_ids", "passage", "secretary", "reasoning_effort", ""),
    ],
)
def test_harmless_names_are_known(name: str) -> None:
    """Ordinary parameters are kept in manifests and cache keys."""
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("allowed_token_ids", [1, 2], False),
        ("token_budget", 500, False),
        ("token_id", "ak-1", True),
        ("token", 12345678, True),
        ("password", 12345678, True),
        ("chat_template_kwargs", {"enable_thinking": False}, False),
        ("options", [{"x": {"accessToken": "t"}}], True),
    ],
)
def test_numbers_of_tokens_are_no_secrets(name: str, value: Any, is_secret: bool) -> None:
    """A count or an id of a token is a sampling parameter; a text or a password is hidden."""
    assert holds_secret(name, value) is is_secret


def test_longer_secrets_are_masked_before_their_parts() -> None:
    """No part of a secret is left over; secrets too short to tell from words stay."""
    assert redact("sk-abcdef and sk-abc in a", ["sk-abc", "sk-abcdef", "a"]) == "*** and *** in a"


def test_escaped_secrets_are_masked() -> None:
    """A secret is found as it stands in JSON and in an address, too."""
    assert redact('"p\\"w/1" p%22w%2F1', ['p"w/1']) == '"***" ***'


def test_every_text_of_a_secret_parameter_is_masked() -> None:
    """Secrets in lists and mappings are found, keys and numbers left out."""
    params = {
        "credentials": {"id": "first-id", "parts": ["second", 3], "more": {"x": "third"}},
        "plain": ["p"],
    }
    config = LLMConfig(model="m", extra_params=params)
    assert config.secrets() == ("first-id", "second", "third")
    assert config.request_params() == {"plain": ["p"]}


def test_a_changed_secret_changes_the_manifest() -> None:
    """Headers and secret parameters, those of fallbacks too, stand in it as digests; the key never does."""

    def said(gate: str = "g", token: str = "t", key: str = "k", fallback: str = "f") -> dict[str, Any]:
        return LLMConfig(
            model="m",
            api_key=key,
            extra_headers={"X-Deployment": gate},
            extra_params={"accessToken": token, "options": {"password": token}, "user": "u"},
            fallbacks=[LLMConfig(model="n", extra_headers={"X-Deployment": fallback}), "o"],
        ).to_dict()

    first = said()
    assert first["extra_headers"] == {"X-Deployment": digest_of("g")}
    assert digest_of("g") == "sha256:cd0aa985"
    assert set(first["extra_params"]) == {"accessToken", "options", "user"}
    assert first["extra_params"]["user"] == "u"
    assert first["fallbacks"][0]["extra_headers"] == {"X-Deployment": digest_of("f")}
    assert "api_key" not in first
    assert said(key="other") == first
    for change in ({"gate": "x"}, {"token": "x"}, {"fallback": "x"}):
        assert said(**change) != first


def test_an_unreadable_answer_is_quoted_up_to_a_bound(openai_server: OpenAIServer) -> None:
    """The start of what is no JSON helps to see who answered."""
    openai_server.script({"do": "raw", "body": "<html>" + "y" * 1000})
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base, max_retries=0)
    with pytest.raises(ServerError, match="is not JSON: '<html>yyy") as caught:
        send(config)
    assert len(str(caught.value)) < 450
