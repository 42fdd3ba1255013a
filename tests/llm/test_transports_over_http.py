"""Both transports against a real HTTP server: every fault ends in a right answer or a typed error."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field

from autorubric.errors import (
    AuthenticationError,
    ContextLengthError,
    ModelNotFoundError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ReplyError,
    RequestRefusedError,
    ServerError,
    TransientError,
)
from autorubric.llm import LLMClient, LLMConfig, generate
from autorubric.llm.client import generate_sync
from autorubric.llm.transport import Exchange, Message, ReplySchema
from autorubric.support.objects import Json
from tests.doubles import until
from tests.servers.fixtures import OpenAIServer

VERDICT = ReplySchema(
    name="Verdict",
    schema={
        "type": "object",
        "properties": {"verdict": {"enum": ["MET", "UNMET"]}, "reason": {"type": "string"}},
        "required": ["verdict", "reason"],
        "additionalProperties": False,
    },
)
MET = {"do": "answer", "payload": {"verdict": "MET", "reason": "It is."}}
KEY = "sk-SENTINEL-0123456789"
QUOTA = "You exceeded your current quota, please check your plan and billing details."

Ask = Callable[..., Exchange[str]]


class Grade(BaseModel):
    """What a caller may ask for."""

    grade: int = Field(ge=1, le=5)


def read_verdict(payload: Json) -> str:
    """The verdict in a reply."""
    if payload.get("verdict") not in ("MET", "UNMET"):
        raise ReplyError(f"verdict is {payload.get('verdict')!r}; give 'MET' or 'UNMET'")
    verdict: str = payload["verdict"]
    return verdict


def ask_once(config: LLMConfig, **options: Any) -> Exchange[str]:
    """One question in an event loop of its own."""

    async def main() -> Exchange[str]:
        async with LLMClient(config) as client:
            messages = [Message(role="system", content="Judge."), Message(role="user", content="Is it met?")]
            return await client.ask(messages, read=read_verdict, schema=VERDICT, **options)

    return asyncio.run(main())


@pytest.fixture(params=["openai_compatible", "litellm"])
def ask(request: pytest.FixtureRequest, openai_server: OpenAIServer) -> Ask:
    """Asks the server over one of the transports."""

    def run(**changes: Any) -> Exchange[str]:
        settings: dict[str, Any] = {
            "model": "openai/judge-1",
            "api_base": openai_server.api_base,
            "transport": request.param,
            "api_key": KEY,
            "timeout": 60.0,
            "max_retries": 2,
            "retry_min_wait": 0.0,
            "retry_max_wait": 0.01,
        }
        return ask_once(LLMConfig(**(settings | changes)))

    return run


def status(number: int, message: str = "It failed.", **more: Any) -> dict[str, Any]:
    """A step that answers with an HTTP error."""
    return {"do": "status", "status": number, "message": message, **more}


def test_a_right_answer_is_read_with_its_usage(ask: Ask, openai_server: OpenAIServer) -> None:
    """A plain exchange gives the answer, the model, the tokens and the reasoning."""
    openai_server.script({**MET, "message": {"reasoning_content": "Let me see."}})
    exchange = ask()
    assert exchange.answer == "MET"
    assert exchange.model == "judge-1"
    assert exchange.usage is not None
    assert exchange.usage.to_dict() == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 64,
    }
    assert exchange.cost is None
    assert exchange.reasoning == "Let me see."
    assert exchange.asked == 1
    assert json.loads(exchange.replies[0])["reason"] == "It is."


def test_the_request_carries_everything_that_was_set(ask: Ask, openai_server: OpenAIServer) -> None:
    """Sampling, thinking, further parameters, headers, key and schema arrive at the server, once."""
    ask(
        temperature=0.5,
        max_tokens=50,
        top_p=0.9,
        seed=7,
        thinking="low",
        extra_params={"presence_penalty": 0.5},
        extra_headers={"X-Team": "blue"},
    )
    (seen,) = openai_server.log()
    body = seen["body"]
    assert body["model"] == "judge-1"
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.5, 0.9, 7)
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 50
    assert body["reasoning_effort"] == "low"
    assert body["presence_penalty"] == 0.5
    assert body["response_format"]["json_schema"]["schema"] == VERDICT.schema
    headers = {name.lower(): value for name, value in seen["headers"].items()}
    assert headers["x-team"] == "blue"
    assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([status(429, headers={"Retry-After": "0"}), status(429)], id="429"),
        pytest.param([status(500), status(503)], id="5xx"),
        pytest.param(["reset", "reset"], id="reset"),
        pytest.param(["truncated"], id="truncated-body"),
        pytest.param([{"do": "raw", "body": "<html>hello</html>"}, {"do": "raw", "body": ""}], id="not-json"),
        pytest.param([{"do": "raw", "body": "[" * 100_000}], id="deep-json"),
        pytest.param([{"do": "raw", "body": '{"choices": []}'}], id="no-choice"),
        pytest.param(
            [{"do": "raw", "body": '{"error": {"message": "x", "code": 429}}'}], id="error-with-200"
        ),
        pytest.param([status(408), status(409)], id="408-409"),
    ],
)
def test_a_passing_fault_is_retried(ask: Ask, openai_server: OpenAIServer, faults: list[Any]) -> None:
    """After transient faults the answer comes, each fault costing one request."""
    openai_server.script(*faults, MET)
    assert ask().answer == "MET"
    assert len(openai_server.log()) == len(faults) + 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("It is MET, surely.", id="prose"),
        pytest.param('{"verdict": "MET", "rea', id="cut"),
        pytest.param("", id="empty"),
        pytest.param('{"verdict": "PERHAPS", "reason": ""}', id="wrong-value"),
        pytest.param("[" * 50_000, id="deep"),
    ],
)
def test_an_unreadable_reply_is_asked_for_again(ask: Ask, openai_server: OpenAIServer, text: str) -> None:
    """The model is told what was wrong with its reply, and the tokens of both tries are counted."""
    openai_server.script({"do": "answer", "content": text}, MET)
    exchange = ask()
    assert exchange.answer == "MET"
    assert exchange.asked == 2
    assert exchange.usage is not None and exchange.usage.total_tokens == 240
    first, second = (seen["body"]["messages"] for seen in openai_server.log())
    assert second[:2] == first
    assert [message["role"] for message in second[2:]] == ["assistant", "user"]
    assert "could not be used" in second[3]["content"]


def test_a_fenced_reply_with_a_trailing_comma_is_read(ask: Ask, openai_server: OpenAIServer) -> None:
    """Fences, prose and trailing commas cost no further request."""
    text = 'Here it is:\n```json\n{"verdict": "MET", "reason": "x",}\n```\nDone.'
    openai_server.script({"do": "answer", "content": text})
    exchange = ask()
    assert (exchange.answer, exchange.asked) == ("MET", 1)


def test_null_content_is_an_unreadable_reply(ask: Ask, openai_server: OpenAIServer) -> None:
    """A message without content is asked for again, and fails as unreadable after three tries."""
    openai_server.script({"do": "answer", "message": {"content": None}}, repeat="last")
    with pytest.raises(ReplyError, match="empty") as caught:
        ask()
    assert caught.value.replies == ("", "", "")
    assert caught.value.usage is not None and caught.value.usage.total_tokens == 360
    assert len(openai_server.log()) == 3


@pytest.mark.parametrize(
    ("fault", "error", "asked"),
    [
        pytest.param(status(401), AuthenticationError, 1, id="401"),
        pytest.param(status(403), AuthenticationError, 1, id="403"),
        pytest.param(status(402), RequestRefusedError, 1, id="402"),
        pytest.param(status(404), ModelNotFoundError, 1, id="404"),
        pytest.param(status(422), RequestRefusedError, 1, id="422"),
        pytest.param(
            status(400, "This model's maximum context length is 9"), ContextLengthError, 1, id="long"
        ),
        pytest.param(status(429, QUOTA, code="insufficient_quota"), RequestRefusedError, 1, id="quota"),
        pytest.param(status(429), RateLimitError, 3, id="429"),
        pytest.param(status(500), ServerError, 3, id="500"),
        pytest.param(status(504), TransientError, 3, id="504"),
        pytest.param("reset", ProviderConnectionError, 3, id="reset"),
        pytest.param("truncated", ProviderConnectionError, 3, id="truncated"),
        pytest.param({"do": "raw", "body": "{}"}, ServerError, 3, id="no-completion"),
        pytest.param({"do": "raw", "body": "plain"}, ServerError, 3, id="not-json"),
    ],
)
def test_a_lasting_fault_is_a_typed_error(
    ask: Ask, openai_server: OpenAIServer, fault: Any, error: type[ProviderError], asked: int
) -> None:
    """What a retry may mend is retried to the end, the rest fails at once; the error names the model."""
    openai_server.script(fault, repeat="last")
    with pytest.raises(error) as caught:
        ask()
    assert len(openai_server.log()) == asked
    assert "openai/judge-1" in str(caught.value)
    assert caught.value.model == "openai/judge-1"
    assert caught.value.replies == ()


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_no_answer_in_time_is_a_timeout(ask: Ask, openai_server: OpenAIServer, fault: str) -> None:
    """The time runs from connecting to the last byte, whether the server is silent or drips."""
    openai_server.script(fault, repeat="last")
    with pytest.raises(ProviderTimeoutError, match=r"0\.6 s"):
        ask(timeout=0.6, max_retries=0)


@pytest.mark.parametrize("fault", [404, 405, "<html>Sign in</html>", "[1]"])
def test_an_address_without_a_version_gets_a_suggestion(
    fault: int | str, openai_server: OpenAIServer
) -> None:
    """The message has the address with /v1, unless the address has a version."""
    told = status(fault) if isinstance(fault, int) else {"do": "raw", "body": fault}
    for base, advice in ((openai_server.url, True), (openai_server.api_base, False)):
        openai_server.script(told, repeat="last")
        with pytest.raises(ProviderError) as caught:
            ask_once(LLMConfig(model="m", api_base=base, max_retries=0))
        assert (f"set --api-base (api_base) to {openai_server.url}/v1" in str(caught.value)) == advice


def test_nobody_listening_is_a_connection_error(ask: Ask) -> None:
    """A refused connection is a typed error."""
    with pytest.raises(ProviderConnectionError):
        ask(api_base="http://127.0.0.1:9/v1", max_retries=0)


def test_retry_after_is_obeyed(ask: Ask, openai_server: OpenAIServer) -> None:
    """The wait that the server asks for is kept, up to `max_retries * retry_max_wait`."""
    openai_server.script(status(429, headers={"Retry-After": "1"}), MET)
    started = asyncio.new_event_loop()
    before = started.time()
    assert ask(retry_max_wait=0.6).answer == "MET"
    assert started.time() - before >= 1.0
    started.close()


@pytest.mark.parametrize("value", ["3600", "1e5", "9999999999", "Thu, 31 Dec 2199 23:59:59 GMT"])
def test_a_retry_after_beyond_the_patience_fails_the_call(
    ask: Ask, openai_server: OpenAIServer, value: str
) -> None:
    """With one retry of at most 0.05 s the call fails at its first rejection and says what was asked."""
    openai_server.script(status(429, headers={"Retry-After": value}), repeat="last")
    with pytest.raises(RateLimitError, match=r"Retry-After asks to wait \d+(\.\d+)? s") as caught:
        ask(max_retries=1, retry_max_wait=0.05)
    assert value in str(caught.value) or value == "1e5" or "GMT" in value
    assert len(openai_server.log()) == 1


@pytest.mark.parametrize("value", ["-5", "0", "NaN", "soon", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_retry_after_that_asks_for_nothing_is_no_wait(
    ask: Ask, openai_server: OpenAIServer, value: str
) -> None:
    """The call is sent again at once."""
    openai_server.script(status(429, headers={"Retry-After": value}), MET)
    assert ask().answer == "MET"


def test_the_retry_after_of_others_is_waited_for_no_longer_than_ones_own_patience(
    openai_server: OpenAIServer,
) -> None:
    """While one caller waits for an hour, one with little patience asks and fails with the value."""
    openai_server.script(status(429, headers={"Retry-After": "3600"}), repeat="last")
    patient, hasty = (
        LLMClient(
            LLMConfig(model="openai/m", api_base=openai_server.api_base, max_parallel_requests=16, **waits)
        )
        for waits in ({"retry_max_wait": 7200.0}, {"retry_min_wait": 0.05, "retry_max_wait": 0.05})
    )

    async def main() -> None:
        waiting = [asyncio.create_task(patient.generate("", "hi")) for _ in range(8)]
        await until(lambda: len(openai_server.log()) >= 8)
        with pytest.raises(RateLimitError, match="asks to wait 3600 s"):
            await asyncio.wait_for(hasty.generate("", "hi"), 60)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await patient.aclose()
        await hasty.aclose()

    asyncio.run(main())


def test_a_refused_schema_goes_into_the_prompt(ask: Ask, openai_server: OpenAIServer) -> None:
    """A server without structured output is asked again with the schema at the end of the prompt."""
    openai_server.script("refuse_schema", repeat="last")
    exchange = ask()
    assert exchange.answer in ("MET", "UNMET")
    assert exchange.dropped_params == ("response_format",)
    first, second = (seen["body"] for seen in openai_server.log())
    assert "response_format" in first and "response_format" not in second
    assert second["messages"][0] == first["messages"][0]
    assert second["messages"][1]["content"].startswith(first["messages"][1]["content"])
    assert '"additionalProperties": false' in second["messages"][1]["content"]


@pytest.mark.parametrize(
    "fault",
    [
        {"message": "System role not supported"},
        {"message": "System role not supported", "status": 500},
        {"message": "Conversation roles must alternate user/assistant/user/assistant/..."},
        {"message": "Developer instruction is not enabled for models/gemma-3-27b-it"},
        {"message": "system messages are not supported"},
        {"message": "This model doesn't support system messages. Try again without a system message."},
        {"message": "Unsupported value: 'messages[0].role' does not support 'system' with this model."},
        {"message": "Unexpected role 'system' after role 'user'"},
        {"message": "Only user and assistant roles are supported!"},
        {"message": "Input should be 'user' or 'assistant'"},
        {"message": "'system' is not one of ['user', 'assistant'] - 'messages.0.role'"},
        {
            "message": "Input tag 'system' found using 'role' does not match any of the expected tags: "
            "'user', 'assistant'"
        },
        {"message": "value is not a valid enumeration member; permitted: 'user', 'assistant'"},
        {"message": "messages: first message must use the user role"},
        {"message": "System prompts unavailable for this model"},
        {"message": "Unknown role: system"},
        {"message": "role 'system' is invalid"},
        {"message": "messages with role 'system' are disallowed"},
        {"message": "Expected first role to be user"},
        {"message": "messages[0].role: unsupported value 'system'"},
        {"message": "Prompting with images is incompatible with system messages"},
        {"message": "A system prompt is incompatible with this model"},
        {"message": "Currently only support user/assistant roles"},
        {"message": "system_instruction is not supported for this model"},
        {"message": f"{{{{ {'x' * 500} }}}}: raise_exception('System role not supported')", "status": 500},
    ],
)
def test_a_refused_system_message_goes_into_the_users(
    ask: Ask, openai_server: OpenAIServer, fault: dict[str, Any]
) -> None:
    """One more request has the instructions at the start of the user's message, and the reply says so."""
    openai_server.script({"do": "refuse", "part": "system", **fault}, repeat="last")
    exchange = ask()
    assert exchange.answer in ("MET", "UNMET")
    assert exchange.dropped_params == ("system",)
    assert [(one.role, one.content) for one in exchange.messages] == [("user", "Judge.\n\nIs it met?")]
    first, second = (seen["body"] for seen in openai_server.log())
    assert [one["role"] for one in first["messages"]] == ["system", "user"]
    assert second["messages"] == [{"role": "user", "content": "Judge.\n\nIs it met?"}]
    assert "response_format" in second


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value "
            "is supported.",
        ),
        ("temperature", "temperature is not supported"),
        ("temperature", "invalid temperature: only 1 is allowed for this model"),
        ("temperature", "`temperature` is deprecated for this model."),
        ("temperature", "Temperature is not supported by this model"),
        ("temperature", "Invalid parameter: temperature"),
        ("temperature", "temperature is not a valid parameter"),
        ("temperature", "temperature must be 1 for this model"),
        ("temperature", "This model only supports temperature=1"),
        ("temperature", "The model only accepts `temperature` 1.0."),
        ("temperature", "temperature: Input should be equal to 1"),
        ("temperature", "This model only supports the default temperature"),
        ("temperature", "temperature is fixed at 1 for reasoning models"),
        ("temperature", "`temperature` may only be 1 when thinking is enabled"),
        ("temperature", "sampling parameters (temperature, ...) are not available for this model"),
        ("top_p", "`temperature` and `top_p` cannot both be specified for this model."),
        ("seed", "body.seed: Extra inputs are not permitted"),
    ],
)
def test_a_refused_parameter_is_left_out_and_listed(
    ask: Ask, openai_server: OpenAIServer, name: str, message: str
) -> None:
    """The request is sent again without it and with the others."""
    openai_server.script({"do": "refuse", "part": name, "message": message}, repeat="last")
    exchange = ask(temperature=0.0, top_p=0.5, seed=1)
    assert exchange.answer in ("MET", "UNMET")
    assert exchange.dropped_params == (name,)
    first, second = (seen["body"] for seen in openai_server.log())
    assert first.keys() - second.keys() == {name}
    assert "response_format" in second


@pytest.mark.parametrize(
    "message",
    [
        "temperature must be between 0 and 1",
        "temperature must be 0 to 1",
        "temperature must be 10 or less",
        "temperature: Input should be less than or equal to 1",
        "This model only supports temperature 0 to 1",
        "This model only supports temperature up to 1",
        "temperature: 1.5 is not valid, it should be in [0, 1]",
        "temperature is out of range: only values from 0 to 1 are allowed",
        "Only temperature values up to 1 are supported",
        "temperature 1.5 is not allowed: at most 1",
    ],
)
def test_a_value_out_of_range_is_an_error(ask: Ask, openai_server: OpenAIServer, message: str) -> None:
    """The user corrects it; nothing is left out."""
    openai_server.script(status(400, message), repeat="last")
    with pytest.raises(RequestRefusedError, match=re.escape(message)):
        ask(temperature=1.5)
    assert len(openai_server.log()) == 1


def test_what_was_refused_is_not_sent_again(openai_server: OpenAIServer) -> None:
    """Parts that are refused one after another are all left out, and later questions begin without them."""
    openai_server.script(
        status(400, "System role not supported"),
        status(400, "temperature is not supported"),
        status(400, "response_format is not supported"),
        MET,
        repeat="last",
    )
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base, temperature=0.0)
    messages = [Message(role="system", content="Judge."), Message(role="user", content="Is it met?")]

    async def main() -> list[Exchange[str]]:
        async with LLMClient(config) as client:
            return [await client.ask(messages, read=read_verdict, schema=VERDICT) for _ in range(2)]

    for exchange in asyncio.run(main()):
        assert exchange.dropped_params == ("temperature", "response_format", "system")
        assert [one.role for one in exchange.messages] == ["user"]
    bodies = [seen["body"] for seen in openai_server.log()]
    assert len(bodies) == 5
    assert bodies[3] == bodies[4]
    assert bodies[3].keys() == {"model", "messages"}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", [None, "</think>", "<think></think>"])
@pytest.mark.parametrize("fence", ["", "```"])
def test_an_answer_in_the_field_of_the_reasoning_is_read(
    ask: Ask, openai_server: OpenAIServer, field: str, content: str | None, fence: str
) -> None:
    """A finished object that fits the schema is the reply, and is recorded as its text."""
    said = f"{fence}\n{json.dumps(MET['payload'])}\n{fence}".strip()
    openai_server.script({"do": "answer", "message": {"content": content, field: said}})
    exchange = ask()
    assert (exchange.answer, exchange.replies, exchange.asked) == ("MET", (said,), 1)


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("reasoning_content", None),
        ("reasoning", None),
        ("reasoning", "</think>"),
        ("reasoning", "<think></think>"),
    ],
)
@pytest.mark.parametrize(
    "reply",
    [
        {"said": "Perhaps it is MET."},
        {"said": 'I would say {"verdict": "MET", "reason": "r"}'},
        {"said": '{"verdict": "PERHAPS", "reason": "r"}'},
        {"said": '{"verdict": "MET", "reason": "r"}', "finish_reason": "length"},
    ],
)
def test_reasoning_is_no_answer(
    request: pytest.FixtureRequest,
    ask: Ask,
    openai_server: OpenAIServer,
    field: str,
    content: str | None,
    reply: dict[str, Any],
) -> None:
    """Prose, another object and a cut-off reply are asked about again; the error names the field."""
    step = {**reply, "do": "answer", "message": {"content": content, field: reply["said"]}}
    openai_server.script(step, repeat="last")
    with pytest.raises(ReplyError, match="switch thinking off") as raised:
        ask()
    # litellm has one name for both fields.
    name = field if request.node.callspec.params["ask"] == "openai_compatible" else "reasoning_content"
    assert f"in its {name} is not" in str(raised.value)
    assert len(openai_server.log()) == 3


def test_a_refusal_is_returned_and_not_asked_again(ask: Ask, openai_server: OpenAIServer) -> None:
    """The model's refusal is no error and no lost reply."""
    openai_server.script({"do": "refusal", "refusal": "I would rather not."})
    exchange = ask()
    assert (exchange.answer, exchange.refusal, exchange.asked) == (None, "I would rather not.", 1)


@pytest.mark.parametrize(
    "fault",
    [
        {"do": "answer", "content": "", "finish_reason": "content_filter"},
        status(400, "The content management policy stopped it", code="content_filter"),
    ],
)
def test_a_content_filter_is_a_refusal(ask: Ask, openai_server: OpenAIServer, fault: dict[str, Any]) -> None:
    """Whether it stops the reply or the request, the provider's filter refuses."""
    openai_server.script(fault)
    exchange = ask()
    assert exchange.answer is None
    assert exchange.refusal
    assert len(openai_server.log()) == 1


def test_an_error_that_repeats_the_key_is_masked(
    ask: Ask, openai_server: OpenAIServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """No error, note, log or output shows a key or a header, even where the server sends them back."""
    caplog.set_level("DEBUG")
    openai_server.script("echo_key")
    with pytest.raises(AuthenticationError) as caught:
        ask(extra_headers={"X-Gate": "gate-SENTINEL-42"})
    shown = [str(caught.value), repr(caught.value), *getattr(caught.value, "__notes__", []), caplog.text]
    shown += [*capfd.readouterr(), str(caught.value.__cause__)]
    assert "SENTINEL" not in "\n".join(shown)


def test_a_client_works_across_event_loops(openai_server: OpenAIServer) -> None:
    """One client serves several event loops, one after another, and with `aclose` between."""
    config = LLMConfig(model="openai/judge-1", api_base=openai_server.api_base, max_retries=0)
    client = LLMClient(config)

    async def main(close: bool) -> str:
        text = await client.generate("", "Hello")
        if close:
            await client.aclose()
            text = await client.generate("", "Hello")
        return text

    assert [asyncio.run(main(close)) for close in (False, True, False)] == ["A plain reply."] * 3


def test_text_and_instances_are_generated_without_a_client(openai_server: OpenAIServer) -> None:
    """The functions open and close a client of their own, from synchronous code and inside a loop too."""
    config = LLMConfig(model="openai/judge-1", api_base=openai_server.api_base)
    assert generate_sync("", "Hello", config) == "A plain reply."
    assert isinstance(generate_sync("", "Hello", config, Grade).grade, int)

    async def inside() -> tuple[str, Grade]:
        return generate_sync("", "Hello", config), await generate("", "Hello", config, Grade)

    text, grade = asyncio.run(inside())
    assert text == "A plain reply."
    assert 1 <= grade.grade <= 5


def test_a_foreign_endpoint_never_sees_the_openai_key(
    ask: Ask, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OPENAI_API_KEY` is sent to nobody but OpenAI unless it is given for that endpoint."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ENVIRONMENT")
    ask(api_key=None)
    assert "ENVIRONMENT" not in json.dumps(openai_server.log())


def test_parallel_requests_share_the_session_and_keep_the_limit(openai_server: OpenAIServer) -> None:
    """Fifty questions at once are all answered, each by one request, eight at a time on eight connections."""
    openai_server.script({"do": "answer", "seconds": 0.02}, repeat="last")
    config = LLMConfig(model="openai/judge-1", api_base=openai_server.api_base, max_parallel_requests=8)

    async def main() -> list[str]:
        async with LLMClient(config) as client:
            return await asyncio.gather(*(client.generate("", f"Question {i}") for i in range(50)))

    assert asyncio.run(main()) == ["A plain reply."] * 50
    seen = openai_server.log()
    assert len(seen) == 50
    assert max(one["running"] for one in seen) == 8
    assert len({one["connection"] for one in seen}) == 8


def test_configs_with_different_limits_share_one_server(openai_server: OpenAIServer) -> None:
    """Judges with limits 1 and 2: never more than 2 in flight, and the first kind only when nothing is."""
    openai_server.script({"do": "answer", "seconds": 0.02}, repeat="last")

    async def main() -> None:
        clients = [
            LLMClient(
                LLMConfig(
                    model=f"openai/judge-{most}",
                    api_base=openai_server.api_base,
                    max_parallel_requests=most,
                    transport=transport,
                )
            )
            for most, transport in ((1, "openai_compatible"), (2, "openai_compatible"), (2, "litellm"))
        ]
        await asyncio.gather(*(client.generate("", f"{i}") for i in range(6) for client in clients))
        await asyncio.gather(*(client.aclose() for client in clients))

    asyncio.run(main())
    seen = [(one["body"]["model"], one["running"]) for one in openai_server.log()]
    assert len(seen) == 18
    assert {running for model, running in seen if model == "judge-1"} == {1}
    assert {running for model, running in seen if model == "judge-2"} <= {1, 2}


def test_a_redirect_is_not_followed(openai_server: OpenAIServer) -> None:
    """A redirect would carry the key elsewhere; it is an error that says what to do."""
    openai_server.script(status(302, headers={"Location": "http://127.0.0.1:9/"}))
    config = LLMConfig(model="openai/judge-1", api_base=openai_server.api_base, api_key=KEY)
    with pytest.raises(RequestRefusedError, match="redirects; set api_base"):
        ask_once(config)


def test_an_endless_answer_is_cut(openai_server: OpenAIServer) -> None:
    """An answer larger than any completion is an error and does not fill the memory."""
    openai_server.script({"do": "flood", "megabytes": 40})
    config = LLMConfig(model="openai/judge-1", api_base=openai_server.api_base, max_retries=0)
    with pytest.raises(ServerError, match="exceeds 33,554,432 bytes"):
        ask_once(config)
