"""Who evaluates: the table, its files, and the order in which providers are tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autorubric._files import dump_structured
from autorubric.errors import FileError, ProviderConnectionError
from autorubric.llm import LLMConfig
from autorubric.tool import Provider, ProviderTable, provider_table
from tests.tool.replies import REQUEST, Critical, ask, failing

CODE = "import os\n\ndef f(x):\n    return os.stat(x)\n"


def table(**kinds: Any) -> dict[str, Provider]:
    """Providers that answer, each with its flags."""
    return {name: Provider(evaluator=Critical(), **flags) for name, flags in kinds.items()}


ALL = {
    "gpt4": Provider(Critical()),
    "claude": Provider(Critical(), fast=True),
    "custom:scan": Provider(Critical(), specialised=True),
    "local_fm": Critical(),
}


@pytest.mark.parametrize(
    ("content", "criteria", "taken"),
    [
        (CODE, ["quality"], "local_fm"),
        (CODE, ["security"], "local_fm"),
        ("Some text.", ["security", "quality"], "custom:scan"),
        ("Some text.", ["Safety"], "custom:scan"),
        ("Some text.", ["quality"], "claude"),
        ("# A guide\n\nText.", ["style"], "claude"),
    ],
)
def test_auto_takes_the_fitting_one(content: str, criteria: list[str], taken: str) -> None:
    """Code stays on the machine, security goes to the specialised one, the rest to the first fast one."""
    assert ask({"content": content, "criteria": criteria}, providers=ALL).provider == taken


def test_auto_without_flags_takes_the_first() -> None:
    """Where nothing tells them apart, the order of the table holds."""
    assert ask(REQUEST, providers=table(claude={}, gpt4={})).provider == "claude"


def test_among_local_ones_the_specialised_is_first() -> None:
    """Of two that keep code on the machine, the one made for security looks for it."""
    two = table(local_fm={"local": True}, scan={"local": True, "specialised": True})
    assert ask({"content": CODE, "criteria": ["security"]}, providers=two).provider == "scan"
    assert ask({"content": CODE, "criteria": ["style"]}, providers=two).provider == "local_fm"


def test_auto_falls_back_in_order_and_says_so() -> None:
    """The next in order answers where one fails, and the answer says who failed and why."""
    down = failing(ProviderConnectionError("no connection"))
    answer = ask(REQUEST, providers={"gpt4": down, "claude": lambda _: "no JSON", "custom:x": Critical()})
    assert answer.provider == "custom:x"
    assert list(answer.fallback_from) == ["gpt4", "claude"]
    assert "no connection" in answer.to_dict()["fallback_from"]["gpt4"]
    nobody = ask(REQUEST, providers={"gpt4": down, "claude": down})
    assert set(nobody.to_dict()) == {"ok", "error", "provider"}
    assert nobody.provider is None and "gpt4" in str(nobody.error) and "claude" in str(nobody.error)


def test_a_named_provider_or_none() -> None:
    """A provider asked for by name is used or named as unavailable; no other is asked."""
    other = Critical()
    down = failing(ProviderConnectionError("no connection"))
    named = {"local_fm": down, "gpt4": other}
    for provider in ("local_fm", "claude", "custom:x"):
        answer = ask({**REQUEST, "provider": provider}, providers=named)
        assert answer.to_dict()["provider"] is None
        assert f"Provider {provider!r} is not available" in str(answer.error)
    assert other.prompts == []
    assert ask({**REQUEST, "provider": "gpt4"}, providers=named).provider == "gpt4"


def test_no_provider_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a table the answer says how to give one."""
    monkeypatch.delenv("AUTORUBRIC_PROVIDERS", raising=False)
    assert "AUTORUBRIC_PROVIDERS" in str(ask(REQUEST, providers={}).error)
    assert provider_table(None).providers == ()


SPEC: dict[str, Any] = {
    "format": 1,
    "audit_path": "audit.jsonl",
    "providers": {
        "local_fm": {"model": "ollama/llama3.2", "api_base": "http://localhost:11434/v1"},
        "gpt4": {"model": "gpt-4.1", "fast": True, "cache_enabled": True},
        "claude": "anthropic/claude-sonnet-4-5",
        "custom:scan": {"model": "hosted_vllm/scan", "specialised": True, "local": True},
    },
}


def _written(path: Path) -> Path:
    text = dump_structured(SPEC, path.suffix[1:])
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["yaml", "toml", "json"])
def test_a_table_comes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """The three formats give one table; the environment may name it; nothing is kept unless it says so."""
    path = _written(tmp_path / f"providers.{suffix}")
    read = ProviderTable.from_file(path)
    assert {one.name for one in read.providers} == set(SPEC["providers"])
    assert [one.name for one in read.providers if one.local] == [
        name for name in (one.name for one in read.providers) if name in ("local_fm", "custom:scan")
    ]
    configs = {one.name: one.evaluator for one in read.providers}
    assert all(isinstance(one, LLMConfig) for one in configs.values())
    assert [name for name, one in configs.items() if one.cache_enabled] == ["gpt4"]
    assert read.named("custom:scan").specialised and read.named("gpt4").fast
    assert read.audit_path == tmp_path / "audit.jsonl"
    monkeypatch.setenv("AUTORUBRIC_PROVIDERS", str(path))
    assert provider_table(None) == provider_table(path) == provider_table(read)


def test_all_faults_of_a_table_are_told(tmp_path: Path) -> None:
    """A table's faults come all at once, with their lines, and show no key."""
    path = tmp_path / "providers.yaml"
    path.write_text(
        "provider: {}\naudit_content: 3\naudit_path: 4\nproviders:\n"
        "  gpt5: gpt-5\n  gpt4: {model: a b, api_key: sk-secret, fast: 1}\n  claude: 7\n",
        encoding="utf-8",
    )
    with pytest.raises(FileError) as caught:
        ProviderTable.from_file(path)
    told = str(caught.value)
    for part in (
        "did you mean 'providers'?",
        "audit_content",
        "audit_path",
        "'gpt5'",
        "model name",
        "fast",
        "got 7",
    ):
        assert part in told
    assert "sk-secret" not in told and "line" in told
    assert ask(REQUEST, providers=path).ok is False  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["[]", '{"format": 9, "providers": {"gpt4": "m"}}', "{}", '{"providers": {}}']
)
def test_no_table_is_told(tmp_path: Path, text: str) -> None:
    """What is no table, a newer one, or one without providers is refused."""
    path = tmp_path / "providers.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError):
        ProviderTable.from_file(path)


@pytest.mark.parametrize("given", [5, {"auto": Critical()}])
def test_no_mapping_is_no_table(given: Any) -> None:
    """What stands for no table is an answer."""
    assert ask(REQUEST, providers=given).ok is False
