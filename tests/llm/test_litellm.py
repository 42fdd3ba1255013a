"""The litellm transport's own duties: parameters, marks, prices, names, and a quiet import."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from autorubric.errors import (
    AuthenticationError,
    ModelNotFoundError,
    RateLimitError,
    ReplyError,
    RequestRefusedError,
    SchemaRefusedError,
    ServerError,
)
from autorubric.llm import LLMClient, LLMConfig, ModelReply, ModelRequest, litellm_clients as _litellm_clients
from autorubric.llm.litellm_transport import LiteLLMTransport
from autorubric.llm.transport import Message, ReplySchema
from tests.doubles import until
from tests.servers.fixtures import OpenAIServer

PROMPT = (
    Message(role="system", content="Shared. Own.", cache_prefix=7),
    Message(role="user", content="All shared.", cache_prefix=11),
    Message(role="user", content="Nothing shared."),
)


def send(config: LLMConfig, messages: tuple[Message, ...] = PROMPT) -> ModelReply:
    """One request over litellm alone."""
    request = ModelRequest(model=config.model, messages=messages, params=config.request_params())
    return asyncio.run(LiteLLMTransport(config).send(request))


def config_for(server: OpenAIServer, model: str, **more: Any) -> LLMConfig:
    """A config that sends a litellm model to the test server."""
    base = server.api_base if not model.startswith("anthropic") else server.url
    return LLMConfig(model=model, api_base=base, api_key="sk-x", transport="litellm", **more)


def test_shared_prefixes_are_marked_for_the_providers_that_want_it(openai_server: OpenAIServer) -> None:
    """Claude's prompts carry `cache_control` after the shared characters; nothing else changes."""
    send(config_for(openai_server, "anthropic/claude-sonnet-5-5"))
    body = openai_server.log()[0]["body"]
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body["system"] == [
        {"type": "text", "text": "Shared. ".strip(), **mark},
        {"type": "text", "text": " Own."},
    ]
    blocks = [block for message in body["messages"] for block in message["content"]]
    assert blocks[0] == {"type": "text", "text": "All shared.", **mark}
    assert "cache_control" not in blocks[1]


@pytest.mark.parametrize(
    ("model", "more"), [("anthropic/claude-sonnet-5-5", {"prompt_caching": False}), ("openai/m", {})]
)
def test_other_prompts_are_not_marked(openai_server: OpenAIServer, model: str, more: dict[str, Any]) -> None:
    """No marks where they are switched off or not wanted."""
    send(config_for(openai_server, model, **more))
    assert "cache_control" not in str(openai_server.log()[0]["body"])


def test_usage_and_cost_are_counted(openai_server: OpenAIServer) -> None:
    """Tokens of the provider's prefix cache are told apart, and a model of known price has a cost."""
    reply = send(config_for(openai_server, "anthropic/claude-sonnet-5-5"))
    assert reply.text == "A plain reply."
    assert reply.usage is not None
    assert (reply.usage.cache_creation_input_tokens, reply.usage.cache_read_input_tokens) == (7, 3)
    assert reply.usage.completion_tokens == 5
    assert reply.cost is not None and 0 < reply.cost < 0.01


def test_a_model_of_unknown_price_has_no_cost(openai_server: OpenAIServer) -> None:
    """An unknown price is None and not zero."""
    assert send(config_for(openai_server, "openai/nobody-knows-it")).cost is None


def test_parameters_that_the_provider_does_not_take_are_dropped_and_told(openai_server: OpenAIServer) -> None:
    """What Anthropic has no word for is left out, and the reply says so; the rest arrives."""
    config = config_for(openai_server, "anthropic/claude-haiku-4-5", seed=3, temperature=0.5, max_tokens=99)
    reply = send(config)
    assert reply.dropped_params == ("seed",)
    body = openai_server.log()[0]["body"]
    assert "seed" not in body
    assert (body["temperature"], body["max_tokens"]) == (0.5, 99)


def test_values_that_a_model_does_not_take_are_dropped_and_told(openai_server: OpenAIServer) -> None:
    """A reasoning model that takes no temperature is asked without it, from then on too."""
    config = config_for(openai_server, "openai/gpt-6-luna", temperature=0.5)
    transport = LiteLLMTransport(config)
    request = ModelRequest(model=config.model, messages=PROMPT, params=config.request_params())

    async def main() -> list[ModelReply]:
        return [await transport.send(request), await transport.send(request)]

    for reply in asyncio.run(main()):
        assert reply.dropped_params == ("temperature",)
    assert ["temperature" in seen["body"] for seen in openai_server.log()] == [False, False]


def test_thinking_becomes_the_providers_own(openai_server: OpenAIServer) -> None:
    """A budget goes to Anthropic as its own parameter."""
    config = config_for(
        openai_server, "anthropic/claude-haiku-4-5", thinking={"budget_tokens": 2000}, max_tokens=4000
    )
    send(config)
    assert openai_server.log()[0]["body"]["thinking"] == {"type": "enabled", "budget_tokens": 2000}


@pytest.mark.parametrize(
    ("model", "more", "limit"),
    [
        ("anthropic/claude-sonnet-5-5", {}, 656),
        ("anthropic/claude-haiku-4-5", {"thinking": "none"}, 656),
        ("anthropic/claude-sonnet-5-5", {"extra_params": {"thinking": {"type": "disabled"}}}, 656),
        ("my-own-model", {"extra_params": {"reasoning": {"enabled": False}}}, 656),
        ("my-own-model", {"extra_params": {"reasoning": {"effort": "none", "exclude": True}}}, 656),
        ("my-own-model", {"extra_params": {"chat_template_kwargs": {"enable_thinking": False}}}, 656),
        (
            "my-own-model",
            {"extra_params": {"extra_body": {"chat_template_kwargs": {"thinking": False}}}},
            656,
        ),
        ("my-own-model", {"extra_params": {"reasoning": {"effort": "low", "exclude": False}}}, None),
        ("my-own-model", {"extra_params": {"chat_template_kwargs": {"enable_thinking": True}}}, None),
        ("my-own-model", {"extra_params": {"max_completion_tokens": 999}}, None),
        ("anthropic/claude-sonnet-5-5", {"extra_params": {"thinking": {"type": "adaptive"}}}, None),
        ("anthropic/claude-haiku-4-5", {"thinking": {"budget_tokens": 2000}}, None),
        ("openai/gpt-6-luna", {}, None),
    ],
)
def test_the_reply_is_limited_unless_the_model_reasons(
    openai_server: OpenAIServer, model: str, more: dict[str, Any], limit: int | None
) -> None:
    """Anthropic's models reason only if they are asked to; a limit would cut off reasoning."""
    schema = ReplySchema(name="Reply", schema={"type": "object", "properties": {}}, max_chars=400)

    async def main() -> None:
        async with LLMClient(config_for(openai_server, model, **more)) as client:
            with suppress(ReplyError):
                await client.ask(PROMPT, read=lambda payload: payload, schema=schema)

    asyncio.run(main())
    sent = openai_server.log()[0]["body"].get("max_tokens")
    assert sent == limit if limit else sent is None or sent > 656


@pytest.mark.parametrize(
    "model", ["vllm/org/m", "openai_compatible/org/m", "hosted_vllm/org/m", "sglang/org/m"]
)
def test_names_that_litellm_does_not_know_reach_the_server(openai_server: OpenAIServer, model: str) -> None:
    """Every OpenAI-compatible prefix works over litellm too."""
    send(config_for(openai_server, model))
    assert openai_server.log()[0]["body"]["model"] == "org/m"


def test_a_bare_name_reaches_a_server_of_ones_own(openai_server: OpenAIServer) -> None:
    """A name that no provider has is the server's own."""
    send(config_for(openai_server, "my-own-model"))
    assert openai_server.log()[0]["body"]["model"] == "my-own-model"


def test_a_name_without_a_provider_is_an_error_that_helps() -> None:
    """The error says to give a prefix or an address."""
    with pytest.raises(ModelNotFoundError, match="add a prefix, such as 'anthropic/…', or set api_base"):
        send(LLMConfig(model="nobody-knows-it"))


def test_secret_parameters_and_headers_are_sent(openai_server: OpenAIServer) -> None:
    """What is hidden everywhere else reaches the provider."""
    send(config_for(openai_server, "openai/m", extra_params={"x_token": "t"}, extra_headers={"X-Gate": "g"}))
    (seen,) = openai_server.log()
    assert seen["body"]["x_token"] == "t"
    assert {name.lower(): value for name, value in seen["headers"].items()}["x-gate"] == "g"


def test_a_stolen_version_is_not_imported(tmp_path: Path) -> None:
    """The two versions that an attacker published are refused before they are imported."""
    folder = tmp_path / "litellm-1.82.7.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: litellm\nVersion: 1.82.7\n", encoding="utf-8"
    )
    program = (
        "import asyncio, sys\n"
        "from autorubric.errors import MissingDependencyError\n"
        "from autorubric.llm import generate\n"
        "try:\n"
        "    asyncio.run(generate('', 'hi', 'gpt-6-luna'))\n"
        "except MissingDependencyError as error:\n"
        "    assert 'steals credentials' in str(error), error\n"
        "    assert 'litellm' not in sys.modules\n"
        "    print('refused')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OPENAI_API_KEY": "sk-any"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == "refused\n"


@pytest.mark.slow
def test_litellm_is_quiet(openai_server: OpenAIServer) -> None:
    """A failing call prints nothing, and its key is in no log at the most talkative level."""
    openai_server.script("echo_key")
    program = (
        "import asyncio, logging, sys\n"
        "logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)\n"
        "from autorubric.errors import AuthenticationError\n"
        "from autorubric.llm import LLMConfig, generate\n"
        "base = sys.argv[1]\n"
        "config = LLMConfig(model='openai/m', api_base=base, api_key='sk-SENTINEL-1', transport='litellm')\n"
        "try:\n"
        "    asyncio.run(generate('', 'hi', config))\n"
        "except AuthenticationError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, openai_server.api_base], capture_output=True, text=True, check=True
    )
    assert "SENTINEL" not in result.stdout + result.stderr
    assert result.stderr == ""
    assert "AuthenticationError" in result.stdout


def test_nothing_heavy_is_imported_and_no_socket_opened() -> None:
    """Importing the package loads neither litellm nor aiohttp; making a client opens nothing."""
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('a socket was opened')\n"
        "socket.socket.connect = refuse\n"
        "from autorubric.llm import LLMClient, LLMConfig\n"
        "LLMClient('gpt-6-luna')\n"
        "LLMClient(LLMConfig(model='ollama/x', api_base='http://localhost:1'))\n"
        "heavy = ('litellm', 'aiohttp', 'openai', 'httpx', 'numpy')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_provider_without_structured_output_gets_no_schema() -> None:
    """Where litellm knows that a provider takes no response format, none is sent."""
    config = LLMConfig(model="petals/some-model", transport="litellm")
    request = ModelRequest(model=config.model, messages=PROMPT, schema=ReplySchema(name="V", schema={}))
    with pytest.raises(SchemaRefusedError, match="does not support response formats"):
        asyncio.run(LiteLLMTransport(config).send(request))


def test_a_missing_key_is_no_broken_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is nowhere is told as such, at once, and without a traceback in the message."""
    monkeypatch.delenv("CLOUDFLARE_API_KEY", raising=False)
    with pytest.raises(AuthenticationError, match="set CLOUDFLARE_API_KEY") as caught:
        send(LLMConfig(model="cloudflare/some-model"))
    assert "Traceback" not in str(caught.value)


def test_closing_leaves_other_users_of_litellm_alone(openai_server: OpenAIServer) -> None:
    """A closed client can be used again, and what else asks over litellm goes on."""
    config = config_for(openai_server, "openai/m")

    async def main() -> list[str]:
        first, second = LLMClient(config), LLMClient(config)
        texts = [await first.generate("", "Hello")]
        await first.aclose()
        return [*texts, await second.generate("", "Hello"), await first.generate("", "Hello")]

    assert asyncio.run(main()) == ["A plain reply."] * 3


def open_files() -> int:
    """Files and sockets that this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted on Linux")


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("model", ["openai/m", "anthropic/claude-sonnet-5-5", "hosted_vllm/m"])
@pytest.mark.parametrize("close", [True, False])
def test_an_event_loop_leaves_no_socket_open(openai_server: OpenAIServer, model: str, close: bool) -> None:
    """Forty loops, one after another, need no more sockets than one, closed clients or not."""
    config = config_for(openai_server, model)

    async def main() -> None:
        client = LLMClient(config)
        assert await asyncio.gather(*(client.generate("", "Hello") for _ in range(2)))
        if close:
            await client.aclose()

    asyncio.run(main())
    before = open_files()
    for _ in range(40):
        asyncio.run(main())
    assert open_files() <= before + 3


@needs_proc
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("model", ["openai/m", "anthropic/claude-sonnet-5-5"])
def test_closing_closes_what_nobody_waits_for(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, model: str, is_plain: bool
) -> None:
    """Within a loop a closed client leaves no socket; who is still asking, or asks later, gets an answer.

    litellm sends by aiohttp or, where its users tell it to, by plain httpx.
    """
    config = config_for(openai_server, model)
    monkeypatch.setattr(pytest.importorskip("litellm"), "disable_aiohttp_transport", is_plain)
    openai_server.script({"do": "answer", "seconds": 1, "content": "Late."}, model="m", contains="slow")

    async def main() -> list[str]:
        first, second = LLMClient(config), LLMClient(config)
        await first.generate("", "Hello")
        late = asyncio.create_task(second.generate("", "slow"))
        await until(lambda: len(openai_server.log()) == 2)
        await first.aclose()
        texts = [await late, await first.generate("", "Hello")]
        before = open_files()
        await first.aclose()
        # What is closed is gone some turns of the loop later.
        await until(lambda: open_files() < before)
        return texts

    assert asyncio.run(main()) == ["Late." if model == "openai/m" else "A plain reply.", "A plain reply."]


def test_a_loop_that_was_only_closed_is_forgotten(openai_server: OpenAIServer) -> None:
    """A loop whose generators nobody closed does not disturb the ones after it, nor is it kept alive."""
    config = config_for(openai_server, "openai/m")
    client = LLMClient(config)
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(client.generate("", "Hello")) == "A plain reply."
    loop.close()
    assert asyncio.run(client.generate("", "Hello")) == "A plain reply."
    assert loop not in _litellm_clients._KEEPERS


@pytest.mark.slow
def test_a_session_that_the_user_gave_to_litellm_stays_open(openai_server: OpenAIServer) -> None:
    """What others share over litellm is not ours to close, at the end of a loop either."""
    program = (
        "import asyncio, os, sys\n"
        "os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'\n"
        "import httpx, litellm\n"
        "from autorubric.llm import LLMConfig, generate\n"
        "litellm.aclient_session = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport())\n"
        "config = LLMConfig(model='openai/m', api_base=sys.argv[1], api_key='sk-x', transport='litellm')\n"
        "asyncio.run(generate('', 'hi', config))\n"
        "print(litellm.aclient_session.is_closed)\n"
    )
    command = [sys.executable, "-c", program, openai_server.api_base]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


@pytest.mark.slow
def test_no_resource_is_left_unclosed(openai_server: OpenAIServer) -> None:
    """Python in its development mode has nothing to complain about after several loops."""
    program = (
        "import asyncio, gc, sys\n"
        "from autorubric.llm import LLMConfig, generate_sync\n"
        "config = LLMConfig(model='openai/m', api_base=sys.argv[1], api_key='sk-x', transport='litellm')\n"
        "for _ in range(3):\n"
        "    generate_sync('', 'hi', config)\n"
        "gc.collect()\n"
    )
    command = [sys.executable, "-X", "dev", "-c", program, openai_server.api_base]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ResourceWarning" not in result.stderr


_BOMB = """
import asyncio, resource, sys
from autorubric.errors import AutorubricError
from autorubric.llm import LLMConfig, generate_sync
model, base = sys.argv[1:]
config = LLMConfig(model=model, api_base=base, api_key="sk-x", transport="litellm", max_retries=0)
print(generate_sync("", "small", config))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    generate_sync("", "bomb", config)
except AutorubricError as error:
    print(type(error).__name__, error)
unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // unit)
"""


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai/m", "deepseek/deepseek-v4-flash"])
@pytest.mark.parametrize(
    "bomb", [{"megabytes": 300}, {"megabytes": 300, "encoding": "deflate"}, {"megabytes": 300, "status": 500}]
)
def test_a_compressed_answer_is_read_up_to_a_limit(
    openai_server: OpenAIServer, model: str, bomb: dict[str, Any]
) -> None:
    """An answer that decompresses to more than 32 MiB is an error, and the memory stays bounded.

    litellm asks the two providers over different clients: the library of OpenAI, and a client of its own.
    """
    openai_server.script({"do": "bomb", **bomb}, contains="bomb")
    command = [sys.executable, "-c", _BOMB, model, openai_server.api_base]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    _, error, grown = result.stdout.splitlines()
    assert error == f"ServerError {model}: the response exceeds 33,554,432 bytes"
    assert int(grown) < 120


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_small_compressed_answer_is_read(openai_server: OpenAIServer, encoding: str) -> None:
    """Below the limit, compression changes nothing."""
    openai_server.script({"do": "bomb", "megabytes": 1, "encoding": encoding})
    assert send(config_for(openai_server, "openai/m")).text == "small"
    assert openai_server.log()[0]["headers"]["Accept-Encoding"] == "gzip, deflate"


@pytest.mark.slow
def test_other_users_of_litellm_are_not_limited(openai_server: OpenAIServer) -> None:
    """The limit holds for our own requests, and not for a request that somebody else sends over litellm."""
    program = (
        "import asyncio, os, sys\n"
        "os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'\n"
        "import litellm\n"
        "from autorubric.llm import LLMConfig, generate\n"
        "config = LLMConfig(model='openai/m', api_base=sys.argv[1], api_key='sk-x', transport='litellm')\n"
        "async def main():\n"
        "    await generate('', 'hi', config)\n"
        "    said = [{'role': 'user', 'content': 'bomb'}]\n"
        "    reply = await litellm.acompletion(\n"
        "        model='openai/m', api_base=sys.argv[1], api_key='sk-x', messages=said)\n"
        "    print(reply.choices[0].message.content)\n"
        "asyncio.run(main())\n"
    )
    openai_server.script({"do": "bomb", "megabytes": 40}, contains="bomb")
    command = [sys.executable, "-c", program, openai_server.api_base]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "small\n"


_MARK = "sk-marked-0123456789"
_VARIABLES = {
    "ai21_chat": ("AI21_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "gigachat": ("GIGACHAT_ACCESS_TOKEN", "GIGACHAT_API_KEY"),
    "huggingface": ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
}
"""Variables whose names do not follow from the provider's."""


def _mark(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Sets the keys of the provider and of OpenAI to values that no request may have."""
    monkeypatch.delenv("AUTORUBRIC_API_KEY", raising=False)
    for name in ("OPENAI_API_KEY", *_VARIABLES.get(provider, (f"{provider.upper()}_API_KEY",))):
        monkeypatch.setenv(name, f"{_MARK}-{name}")


@pytest.mark.parametrize(
    "provider",
    [
        *("ai21", "ai21_chat", "anthropic", "cerebras", "codestral", "cohere", "custom_openai", "deepinfra"),
        *("deepseek", "fireworks_ai", "gemini", "gigachat", "groq", "hosted_vllm", "huggingface", "mistral"),
        *("litellm_proxy", "moonshot", "nvidia_nim", "ollama", "openai", "openrouter", "perplexity", "reka"),
        *("sambanova", "together_ai", "xai"),
    ],
)
def test_a_key_in_the_environment_is_not_sent_to_another_address(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """Neither in a header nor in the address or the body; the key for any address is sent."""
    _mark(monkeypatch, provider)
    config = LLMConfig(model=f"{provider}/m", api_base=openai_server.api_base, transport="litellm")
    for key in (None, "sk-for-any-address-0123456789"):
        openai_server.reset()
        openai_server.script({"do": "status", "status": 401}, repeat="last")
        if key is not None:
            monkeypatch.setenv("AUTORUBRIC_API_KEY", key)
        with pytest.raises(AuthenticationError, match=openai_server.url) as caught:
            send(config)
        assert _MARK not in str(caught.value)
        seen = json.dumps(openai_server.log())
        assert _MARK not in seen
        # gigachat takes its token from the environment alone, so nothing is sent.
        assert (provider == "gigachat") or (key or "none") in seen


@pytest.mark.parametrize(
    ("model", "variable"), [("azure/m", "AZURE_API_KEY"), ("databricks/m", "DATABRICKS_API_KEY")]
)
def test_the_key_of_a_provider_without_an_address_is_sent_to_the_given_one(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    """Its customers have addresses of their own; an error names the variable and the address."""
    monkeypatch.setenv(variable, _MARK)
    monkeypatch.setenv("AZURE_API_VERSION", "2025-04-01-preview")
    openai_server.script({"do": "status", "status": 401}, repeat="last")
    sent = rf"the key from the environment variable {variable} was sent to {openai_server.url}"
    with pytest.raises(AuthenticationError, match=sent) as caught:
        send(LLMConfig(model=model, api_base=openai_server.api_base, transport="litellm"))
    assert _MARK in json.dumps(openai_server.log()) and _MARK not in str(caught.value)


@pytest.mark.parametrize("given", [{"api_key": _MARK}, {"api_key_env": "GIVEN_KEY"}, {}])
def test_a_rejected_key_is_named_with_its_address(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    """Also without `api_base`, where litellm reads the key and the address."""
    monkeypatch.setenv("GIVEN_KEY", _MARK)
    monkeypatch.setenv("GROQ_API_KEY", "sk-of-groq-0123456789")
    monkeypatch.setenv("GROQ_API_BASE", openai_server.api_base)
    openai_server.script({"do": "status", "status": 403}, repeat="last")
    origin = {"api_key": "in api_key", "api_key_env": "from the environment variable GIVEN_KEY"}
    expected = origin.get(next(iter(given), ""), "from the environment variable GROQ_API_KEY")
    with pytest.raises(AuthenticationError, match=f"the key {expected} was sent to {openai_server.url}"):
        send(LLMConfig(model="groq/m", **given))


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("model", ["openai/m", "groq/m", "anthropic/claude-sonnet-5-5"])
def test_a_redirect_to_another_address_is_not_followed(
    openai_server: OpenAIServer, model: str, status: int
) -> None:
    """Neither the key nor the text goes there."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        target = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/v1/messages"
        moved = {"do": "status", "status": status, "headers": {"Location": target}}
        openai_server.script(moved, repeat="last")
        with pytest.raises(RequestRefusedError, match="redirects; set api_base"):
            send(config_for(openai_server, model))
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@pytest.mark.parametrize("provider", ["assemblyai", "reka"])
def test_the_key_of_openai_is_not_sent_to_a_provider_without_a_key(
    monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """litellm would send it; the request ends before a connection is opened."""
    monkeypatch.setenv("OPENAI_API_KEY", _MARK)
    with pytest.raises(AuthenticationError, match="it contains the key in OPENAI_API_KEY"):
        send(LLMConfig(model=f"{provider}/m"))


@pytest.mark.parametrize("model", ["openai/m", "mistral/m", "anthropic/claude-sonnet-5-5"])
@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("<html>Sign in</html>", ServerError, "the response from {} is not JSON: '<html>Sign in</html>'"),
        ("", ServerError, "the response from {} is not JSON: ''"),
        ("[1]", ServerError, "the response from {} is not a chat completion; check api_base"),
        ('{"error": {"message": "slow down", "code": 429}}', RateLimitError, "(HTTP 429: slow down · 429)"),
        (
            json.dumps({"error": {"message": "slow down", "code": 429}, "more": "x" * 100_000}),
            RateLimitError,
            "(HTTP 429: slow down · 429)",
        ),
    ],
)
def test_a_successful_response_that_is_no_reply(
    openai_server: OpenAIServer, model: str, body: str, kind: type[Exception], message: str
) -> None:
    """The error has the address and no status that the server did not send."""
    openai_server.script({"do": "raw", "body": body}, repeat="last")
    path = "/v1/messages" if model.startswith("anthropic") else "/v1/chat/completions"
    with pytest.raises(kind) as caught:
        send(config_for(openai_server, model))
    assert str(caught.value).endswith(message.format(openai_server.url + path))


@pytest.mark.parametrize("model", ["openai/m", "mistral/m"])
def test_a_content_filter_in_a_successful_response_is_a_refusal(
    openai_server: OpenAIServer, model: str
) -> None:
    """As in the direct transport; it is no error that is tried again."""
    body = {"error": {"message": "Blocked by the content management policy.", "code": "content_filter"}}
    openai_server.script({"do": "raw", "body": json.dumps(body)}, repeat="last")
    assert "content management policy" in (send(config_for(openai_server, model)).refusal or "")
