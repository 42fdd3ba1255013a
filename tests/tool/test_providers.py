"""Who evaluates: the table, its files, and the order in which providers are tried."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autorubric.apps.tool import Provider, ProviderTable, critique_evaluate_sync
from autorubric.apps.tool.providers import provider_table
from autorubric.errors import FileError, ProviderConnectionError
from autorubric.judges import FunctionJudge, Prompt
from autorubric.llm import LLMConfig
from autorubric.support.read import dump_structured
from tests.tool.replies import REQUEST, Critical, ask, failing, hang

CODE = "import os\n\ndef f(x):\n    return os.stat(x)\n"


class Forward:
    """An object with `forward`."""

    def __init__(self, function: Callable[[Prompt], Any]) -> None:
        self.forward = function


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


def test_code_without_a_local_one_goes_to_a_fast_one() -> None:
    """The first fast one is taken where none is local; then the table's order holds."""
    down = failing(ProviderConnectionError("no connection"))
    two = {"gpt4": Critical(), "claude": Provider(Critical(), fast=True)}
    assert ask({"content": CODE, "criteria": ["style"]}, providers=two).provider == "claude"
    three = {
        "gpt4": Provider(down),
        "claude": Provider(down, fast=True),
        "custom:x": Provider(Critical(), fast=True),
    }
    answer = ask({"content": CODE, "criteria": ["style"]}, providers=three)
    assert (answer.provider, list(answer.fallback_from)) == ("custom:x", ["claude", "gpt4"])


@pytest.mark.slow
def test_a_hanging_one_leaves_time_for_the_next() -> None:
    """Half of the time goes to the first; the next answers, and the answer says who did not."""
    answer = ask(REQUEST, providers={"gpt4": hang, "claude": Critical()}, timeout=6.0)
    assert answer.provider == "claude"
    told = re.fullmatch(r".*no answer within ([\d.]+) s", answer.fallback_from["gpt4"])
    assert told is not None and 0 < float(told[1]) <= 3
    down = failing(ProviderConnectionError("no connection"))
    nobody = ask(REQUEST, providers={"gpt4": down, "claude": hang}, timeout=3.0)
    assert str(nobody.error).startswith("Evaluation timed out after 3 s; gpt4: ")
    named = ask({**REQUEST, "provider": "gpt4"}, providers={"gpt4": hang, "claude": Critical()}, timeout=0.2)
    assert named.error == "Provider 'gpt4' is not available: no answer within 0.2 s"
    assert named.provider is None


def test_a_sync_one_that_hangs_is_left_to_itself() -> None:
    """A function that blocks is no longer waited for when its time is up, nor by the end of the loop."""
    go_on, ended = threading.Event(), threading.Event()

    def block(prompt: Any) -> None:
        go_on.wait(120)
        ended.set()

    for critic in (block, Forward(block), FunctionJudge(function=block, judge_id="own")):
        answer = critique_evaluate_sync(REQUEST, providers={"gpt4": critic}, timeout=0.3)
        assert answer.error == "Evaluation timed out after 0.3 s"
    assert not ended.is_set()
    go_on.set()


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), SystemExit(3), StopIteration(), BaseException("odd")]
)
def test_what_a_provider_raises_is_its_own_failure(error: BaseException) -> None:
    """A cancellation or an exit that nobody asked for ends no call: the next provider is asked."""

    def sync(prompt: Any) -> None:
        raise error

    async def later(prompt: Prompt) -> None:
        raise error

    judged = FunctionJudge(function=sync, judge_id="own")
    for critic in (sync, later, Forward(sync), judged):
        if critic is later and isinstance(error, StopIteration):
            continue
        answer = ask(REQUEST, providers={"gpt4": critic, "claude": Critical()})
        assert (answer.provider, list(answer.fallback_from)) == ("claude", ["gpt4"])
        assert not ask(REQUEST, critic).ok


def test_what_a_listener_raises_is_an_answer() -> None:
    """Whoever hears of progress cannot end the call as cancelled."""

    def hear(done: int, steps: int, what: str) -> None:
        raise asyncio.CancelledError

    assert not ask(REQUEST, Critical(), on_progress=hear).ok


def test_a_faulty_entry_is_that_provider_alone(tmp_path: Path) -> None:
    """The others of the table answer; the faulty one is told with what is wrong, also where it is named."""
    path = tmp_path / "providers.json"
    entries: dict[str, Any] = {
        "gpt4": {"model": "a b", "fast": True, "api_key": "sk-secret"},
        "claude": "m",
        "gpt5": 7,
    }
    path.write_text(json.dumps({"providers": entries}), encoding="utf-8")
    read = ProviderTable.from_file(path)
    assert [one.name for one in read.providers if not one.fault] == ["claude"]
    mixed = ProviderTable(
        providers=(read.providers[0], Provider(Critical(), name="custom:x", specialised=True))
    )
    answer = ask({**REQUEST, "criteria": ["style"]}, providers=mixed)  # type: ignore[arg-type]
    assert answer.provider == "custom:x" and "model name" in answer.fallback_from["gpt4"]
    named = ask({**REQUEST, "provider": "gpt4"}, providers=path)  # type: ignore[arg-type]
    assert "Provider 'gpt4' is not available: model" in str(named.error) and "sk-secret" not in str(
        named.error
    )
    assert ask({**REQUEST, "dry_run": True}, providers=path).provider == "claude"  # type: ignore[arg-type]


def test_what_is_no_evaluator_is_that_provider_alone() -> None:
    """In a mapping too."""
    answer = ask(REQUEST, providers={"gpt4": 5, "auto": Critical(), "claude": Critical()})
    assert answer.provider == "claude" and list(answer.fallback_from) == ["gpt4", "auto"]


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
        "gpt4": {"model": "anthropic/claude-sonnet-5-5", "fast": True, "cache_enabled": True},
        "claude": "anthropic/claude-sonnet-5-5",
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
    assert read.by_name("custom:scan").specialised and read.by_name("gpt4").fast
    assert read.audit_path == tmp_path / "audit.jsonl"
    monkeypatch.setenv("AUTORUBRIC_PROVIDERS", str(path))
    assert provider_table(None) == provider_table(path) == provider_table(read)


def test_all_faults_of_a_table_are_told(tmp_path: Path) -> None:
    """A table's faults come all at once, with their lines, and show no key."""
    path = tmp_path / "providers.yaml"
    path.write_text(
        "provider: {}\naudit_content: 3\naudit_path: 4\nproviders:\n"
        "  gpt5: gpt-6-luna\n  gpt4: {model: a b, api_key: sk-secret, fast: 1}\n  claude: 7\n",
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


@pytest.mark.parametrize("is_async", [False, True])
def test_the_error_of_a_function_names_its_provider(is_async: bool) -> None:
    """What a function raises is reported under the provider's name."""

    async def later(prompt: Prompt) -> Any:
        raise ConnectionError("gone")

    function = later if is_async else failing(ConnectionError("gone"))
    done = critique_evaluate_sync(REQUEST, providers={"mine": function})
    assert done.error is not None and "judge" not in done.error.replace("JudgeError", "")
    assert done.error.endswith("provider 'mine' raised ConnectionError: gone")


@pytest.mark.parametrize(("passed", "score"), [(True, "pass"), (False, "fail")])
def test_passed_answers_a_pass_fail_request(passed: bool, score: str) -> None:
    """`{"passed": …}` is a score on the pass-fail scale, and none on another."""
    request = {"content": "Some text.", "criteria": ["style"]}
    done = critique_evaluate_sync(
        {**request, "scoring_scale": "pass-fail"}, providers={"mine": lambda prompt: {"passed": passed}}
    )
    assert done.ok and done.overall_score == score
    other = critique_evaluate_sync(request, providers={"mine": lambda prompt: {"passed": passed}})
    assert not other.ok
