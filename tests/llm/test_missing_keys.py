"""Providers that litellm reaches, without a key and without a network: what is said, and how soon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_AT_ONCE = 3.0
"""Seconds, on a busy machine too; retries would wait longer."""
PROGRAM = """
import asyncio, json, os, sys, time
tried = []
def refuse(event, arguments):
    if event == "socket.getaddrinfo" or (event == "socket.connect" and isinstance(arguments[1], tuple)):
        tried.append(str(arguments))
        raise OSError(101, "Network is unreachable")
sys.addaudithook(refuse)
from autorubric.llm import LLMClient, LLMConfig
from autorubric.llm.litellm_transport import _litellm
litellm = _litellm()

def outcome(model, **config):
    tried.clear()
    began = time.monotonic()
    try:
        asyncio.run(LLMClient(LLMConfig(model=model, transport="litellm", **config)).generate("", "hi"))
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - began, len(tried)

outcome("openai/warm", api_key="x")
"""
OTHER = {
    *("bedrock", "datarobot", "github_copilot", "chatgpt", "ollama", "ollama_chat", "sagemaker", "vertex_ai")
}
"""Providers with another way in than a key: a role, a sign-in, a server of one's own."""
WITHOUT_TABLE = {
    "aiml": "AIML_API_KEY",
    "amazon_nova": "AMAZON_NOVA_API_KEY",
    "anthropic_text": "ANTHROPIC_API_KEY",
    "bytez": "BYTEZ_API_KEY",
    "clarifai": "CLARIFAI_API_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "cometapi": "COMETAPI_KEY",
    "compactifai": "COMPACTIFAI_API_KEY",
    "databricks": "DATABRICKS_API_KEY",
    "friendliai": "FRIENDLIAI_API_KEY",
    "github": "GITHUB_API_KEY",
    "hyperbolic": "HYPERBOLIC_API_KEY",
    "lambda_ai": "LAMBDA_AI_API_KEY",
    "meta_llama": "META_LLAMA_API_KEY",
    "minimax": "MINIMAX_API_KEY",
    "text-completion-openai": "OPENAI_API_KEY",
    "zai": "ZAI_API_KEY",
}
"""Providers whose variable litellm's own table does not have."""


def found_by(program: str, home: Path) -> Any:
    """What a program prints as JSON, in a process without keys and without a network."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}\n{program}"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_missing_key_is_told_at_once_by_its_variable(tmp_path: Path) -> None:
    """For every provider that litellm knows a key of, and others; nothing is sent."""
    found = found_by(
        f"""
table = {{}}
for provider in sorted({{getattr(one, "value", one) for one in litellm.provider_list}} - {OTHER!r}):
    missing = litellm.validate_environment(model=provider + "/some-model")["missing_keys"]
    keys = [name for name in missing if name.endswith(("KEY", "TOKEN"))]
    if keys:
        table[provider] = keys[0]
table |= {WITHOUT_TABLE!r}
print(json.dumps([[one, table[one], *outcome(one + "/some-model")] for one in sorted(table)]))
""",
        tmp_path,
    )
    assert len(found) > 50
    assert {"openai", "azure", "mistral", "groq", "deepseek", "anthropic", "gemini"} <= {
        one[0] for one in found
    }
    for provider, variable, kind, message, seconds, tried in found:
        assert (provider, kind) == (provider, "AuthenticationError")
        assert f"set {variable}" in message or f"or {variable}" in message, message
        assert "in the environment, or use --api-key-env NAME" in message
        assert seconds < _AT_ONCE, provider
        assert tried == 0, provider


@pytest.mark.slow
def test_no_network_is_a_connection_error_at_once(tmp_path: Path) -> None:
    """With a key and without a network nothing is retried, whatever litellm calls the failure."""
    providers = ("openai", "anthropic", "mistral", "groq", "deepseek", "cohere", "openrouter", "together_ai")
    found = found_by(
        f"""
print(json.dumps([[one, *outcome(one + "/some-model", api_key="sk-x")] for one in {providers!r}]))
""",
        tmp_path,
    )
    for provider, kind, message, seconds, tried in found:
        assert (provider, kind) == (provider, "ProviderConnectionError")
        assert "cannot connect" in message
        assert seconds < _AT_ONCE, provider
        assert tried > 0, provider


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("replicate/m", "REPLICATE_API_TOKEN"),
        ("perplexity/m", "PERPLEXITY_API_KEY"),
        ("groq/m", "GROQ_API_KEY"),
    ],
)
def test_a_key_in_any_variable_of_the_provider_is_used(model: str, variable: str, tmp_path: Path) -> None:
    """The request is sent, and here fails for want of a network."""
    program = f"os.environ[{variable!r}] = 'x'; print(json.dumps(outcome({model!r})))"
    assert found_by(program, tmp_path)[0] == "ProviderConnectionError"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ("claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ("gpt-6-luna", "OPENAI_API_KEY"),
        ("gemini/m", "GEMINI_API_KEY"),
        ("groq/m", "GROQ_API_KEY"),
    ],
)
@pytest.mark.parametrize("has_file", [False, True])
def test_a_key_is_missed_before_the_import(model: str, variable: str, has_file: bool, tmp_path: Path) -> None:
    """litellm takes seconds to import; it is asked where it may read the key from a `.env` file."""
    if has_file:
        (tmp_path / ".env").write_text("", encoding="utf-8")
    program = f"""
import sys
from autorubric.llm import generate_sync
try:
    generate_sync("", "hi", {model!r})
except Exception as error:
    print("litellm" in sys.modules, type(error).__name__, error)
"""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout.startswith(f"{has_file} AuthenticationError {model}: no key for ")
    assert variable in done.stdout
