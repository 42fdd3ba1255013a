"""Which key goes to which address, and what a wrong key, port or model says."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, LLMConfig
from autorubric.errors import ArgumentError
from autorubric.judges.panel import named_judges
from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer

_KEY = "sk-for-this-server-0123456789"
_OTHER = "sk-for-openai-itself-0123456789"
_REFUSED = {"do": "status", "status": 401, "message": "Invalid API key"}


def _call(dataset: str, server: OpenAIServer, *more: str) -> tuple[str, ...]:
    return ("eval", dataset, "--judge", "openai/m", "--api-base", server.api_base, "--name", "one", *more)


def _keys(server: OpenAIServer) -> set[str | None]:
    return {one["headers"].get("Authorization") for one in server.log()}


@pytest.mark.parametrize(
    ("variable", "more"), [("MY_KEY", ("--api-key-env", "MY_KEY")), ("AUTORUBRIC_API_KEY", ())]
)
def test_the_key_in_a_variable_is_sent(
    cli: Cli,
    dataset: str,
    openai_server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    more: tuple[str, ...],
) -> None:
    """Both the named variable and the one for the direct transport."""
    monkeypatch.setenv(variable, _KEY)
    monkeypatch.setenv("OPENAI_API_KEY", _OTHER)
    done = cli(*_call(dataset, openai_server, *more))
    assert done.code == 0
    assert _keys(openai_server) == {f"Bearer {_KEY}"}
    assert _KEY not in done.out + done.err


def test_a_missing_key_says_what_was_sent_where(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request, one message: no key was sent, why, and which option to use."""
    monkeypatch.delenv("AUTORUBRIC_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", _OTHER)
    openai_server.script(_REFUSED, repeat="last")
    refused = cli(*_call(dataset, openai_server))
    assert refused.code == 3
    assert refused.err.count("Error: ") == 1 and len(refused.err.splitlines()) == 2
    for part in (
        f"no key was sent to {openai_server.api_base}",
        "AUTORUBRIC_API_KEY is not set",
        "--api-key-env",
    ):
        assert part in refused.err
    assert "OPENAI_API_KEY is only sent to api.openai.com" in refused.err
    assert [one["headers"].get("Authorization") for one in openai_server.log()] == [None]


def test_a_refused_key_says_where_it_came_from(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is named, the key is not shown."""
    monkeypatch.setenv("MY_KEY", _KEY)
    openai_server.script(_REFUSED, repeat="last")
    refused = cli(*_call(dataset, openai_server, "--api-key-env", "MY_KEY"))
    assert refused.code == 3
    assert f"the key from the environment variable MY_KEY was sent to {openai_server.api_base}" in refused.err
    assert _KEY not in refused.err
    assert len(openai_server.log()) == 1


def test_a_wrong_model_costs_one_request(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """The server's words are in the message, and nothing else is asked."""
    openai_server.script(
        {"do": "status", "status": 404, "message": "The model does not exist"}, repeat="last"
    )
    missing = cli(*_call(dataset, openai_server))
    assert missing.code == 3
    assert "no such model or endpoint" in missing.err and "The model does not exist" in missing.err
    assert len(openai_server.log()) == 1


def test_a_wrong_port_is_reported_at_once(cli: Cli, dataset: str) -> None:
    """No retries: the message names the address and comes long before a retry would."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        base = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    begun = time.monotonic()
    refused = cli("eval", dataset, "--judge", "openai/m", "--api-base", base, "--name", "one")
    assert refused.code == 3
    assert f"cannot connect to {base}" in refused.err
    assert len(refused.err.splitlines()) == 2
    assert time.monotonic() - begun < 60


def test_the_first_question_is_reported_and_not_asked_twice(
    cli: Cli, dataset: str, openai_server: OpenAIServer
) -> None:
    """The preflight's answer is one of the votes, so a run has as many requests with it as without."""
    checked = cli(*_call(dataset, openai_server))
    assert checked.code == 0
    assert "judge openai/m: ok" in checked.err
    with_it = len(openai_server.log())
    openai_server.reset()
    plain = cli(
        "eval", dataset, "--judge", "openai/m", "--api-base", openai_server.api_base, "--no-preflight"
    )
    assert plain.code == 0
    assert "test request" not in plain.err
    assert len(openai_server.log()) == with_it


def test_a_run_that_failed_its_preflight_is_resumed(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the right key under the same name, every item is graded."""
    openai_server.script(_REFUSED, repeat="last")
    assert cli(*_call(dataset, openai_server)).code == 3
    openai_server.reset()
    monkeypatch.setenv("MY_KEY", _KEY)
    done = cli(*_call(dataset, openai_server, "--api-key-env", "MY_KEY", "--json"))
    assert done.code == 0
    assert done.json["failed_items"] == 0


def test_an_unset_variable_is_an_error_before_anything_is_sent(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named."""
    monkeypatch.delenv("MY_KEY", raising=False)
    unset = cli(*_call(dataset, openai_server, "--api-key-env", "MY_KEY"))
    assert unset.code == 2
    assert unset.err == "Error: --api-key-env MY_KEY: the environment variable is not set or is empty\n"
    assert openai_server.log() == []


def test_one_key_is_not_for_two_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address, models of several providers would all get the key."""
    monkeypatch.setenv("MY_KEY", _KEY)
    for other in ("anthropic/claude-sonnet-5-5", "claude-sonnet-5-5"):
        with pytest.raises(ArgumentError, match="a key is sent to one provider only"):
            named_judges(["gpt-6-luna", other], api_key_env="MY_KEY")
    judges = named_judges(["gpt-6-luna", "openai/other"], api_key_env="MY_KEY")
    assert [judge.api_key_env for judge in judges if isinstance(judge, LLMConfig)] == ["MY_KEY", "MY_KEY"]


def test_a_fallback_of_another_provider_does_not_get_the_key() -> None:
    """Neither the key nor the name of its variable."""
    others = ("openai/b", "anthropic/c", "gpt-6-luna", "claude-sonnet-5-5")
    config = LLMConfig(model="openai/a", api_key_env="MY_KEY", fallbacks=others)
    assert [one.api_key_env for one in config.fallback_configs()] == ["MY_KEY", None, "MY_KEY", None]
    bare = LLMConfig(model="gpt-6-luna", api_key_env="MY_KEY", fallbacks=("claude-sonnet-5-5",))
    assert bare.fallback_configs()[0].api_key_env is None
    own = LLMConfig(model="a", api_base="http://h/v1", api_key_env="MY_KEY", fallbacks=("b",))
    assert (own.fallback_configs()[0].api_base, own.fallback_configs()[0].api_key_env) == (
        "http://h/v1",
        "MY_KEY",
    )


@pytest.mark.parametrize("model", ["vllm/m", "hosted_vllm/m", "sglang/m", "custom_openai/m"])
def test_a_model_on_an_own_server_needs_an_address(
    model: str, cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No text is sent to OpenAI, whose address litellm would use."""
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, openai_server.api_base)
    monkeypatch.setenv("OPENAI_API_KEY", _KEY)
    monkeypatch.delenv("HOSTED_VLLM_API_BASE", raising=False)
    done = cli("eval", dataset, "--judge", model)
    assert done.code == 3 and "the address of your server is not set; use --api-base" in done.err
    assert openai_server.log() == []


@pytest.mark.parametrize("base", ["http://user:pass-word@h:abc/v1", "user:pass-word@h/v1", "sk-pass-word"])
def test_an_address_with_a_secret_is_not_shown(base: str) -> None:
    """Neither a password in it nor a key in its place."""
    with pytest.raises(ArgumentError, match=r"is not an http|must not have a user") as caught:
        named_judges(["m"], api_base=base)
    assert "pass-word" not in str(caught.value)


def test_a_rate_limit_costs_seconds(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """A provider that asks for a longer wait ends the command with the reason."""
    openai_server.script({"do": "status", "status": 429, "headers": {"Retry-After": "30"}})
    done = cli(*_call(dataset, openai_server))
    assert done.code == 3 and "--no-preflight skips this request" in done.err
    assert len(openai_server.log()) == 1


def test_the_variable_is_neither_secret_nor_in_a_manifest() -> None:
    """Another variable voids no vote; a key given in its place is refused without being shown."""
    config = LLMConfig(model="m", api_key_env="MY_KEY")
    described = [CriterionGrader(judges=[one]).describe() for one in (config, LLMConfig(model="m"))]
    assert described[0] == described[1]
    with pytest.raises(ValueError, match="must be the name of an environment variable") as caught:
        LLMConfig(model="m", api_key_env="sk-1234-secret")
    assert "input_value" not in str(caught.value) or "sk-1234-secret" not in str(caught.value)


def test_one_key_is_not_for_two_addresses_of_a_run_file(
    cli: Cli, dataset: str, openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flag is refused before anything is sent; each judge has its own in the file."""
    monkeypatch.setenv("MY_KEY", _KEY)
    judges = [
        {"name": name, "model": "openai/m", "api_base": base}
        for name, base in (("a", openai_server.api_base), ("b", "http://127.0.0.1:9/v1"))
    ]
    content = {"rubric": "rubric.yaml", "data": dataset, "judges": judges}
    (tmp_path / "autorubric.yaml").write_text(json.dumps(content), encoding="utf-8")
    refused = cli("eval", "--api-key-env", "MY_KEY")
    assert refused.code == 2 and "set api_key_env for each judge in the run file" in refused.err
    assert openai_server.log() == []


def test_a_key_with_a_line_break_is_not_sent(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the variable and not the key."""
    monkeypatch.setenv("AUTORUBRIC_API_KEY", "sk-one\nsk-two")
    refused = cli(*_call(dataset, openai_server))
    assert refused.code == 3 and "variable AUTORUBRIC_API_KEY contains a line break" in refused.err
    assert "sk-two" not in refused.err and openai_server.log() == []


def test_a_panel_that_failed_its_preflight_can_be_corrected(
    cli: Cli, dataset: str, openai_server: OpenAIServer
) -> None:
    """The vote of the judge that answered does not block the name."""
    call = ("eval", dataset, "--api-base", openai_server.api_base, "--name", "two", "--judge", "a=openai/m")
    assert cli(*call, "--judge", "b=openai/m", "--api-key-env", "MY_KEY").code == 2
    openai_server.script({"do": "answer"}, {"do": "status", "status": 404}, repeat="last")
    assert cli(*call, "--judge", "b=openai/wrong").code == 3
    openai_server.reset()
    assert cli(*call, "--judge", "b=openai/right").code == 0


def test_a_gate_says_why_it_fails(cli: Cli, dataset: str) -> None:
    """The score and the threshold are on stderr."""
    done = cli("eval", dataset, "--judge", "lexical", "--fail-under", "1", "--no-progress")
    assert done.code == 1 and "is below --fail-under 1" in done.err


def test_validate_reads_a_run_file(cli: Cli, dataset: str, tmp_path: Path) -> None:
    """With its dataset and rubric."""
    content = {"rubric": "rubric.yaml", "data": dataset, "judges": ["lexical"]}
    (tmp_path / "autorubric.yaml").write_text(json.dumps(content), encoding="utf-8")
    done = cli("validate", "autorubric.yaml")
    assert done.code == 0 and "valid run file" in done.err


def test_validate_warns_of_a_weight_without_effect(cli: Cli, tmp_path: Path) -> None:
    """Options without values measure nothing."""
    content = [{"name": "thesis", "requirement": "Clear.", "options": ["weak", "strong"], "weight": 30}]
    (tmp_path / "r.json").write_text(json.dumps(content), encoding="utf-8")
    assert "criterion 'thesis' has a weight but never enters the score" in cli("validate", "r.json").err


def test_a_cost_that_leaves_out_a_judge_says_so(
    cli: Cli, dataset: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """One judge has a price and the other none, so the total is a part."""
    price = {"input_cost_per_token": 0.000001, "output_cost_per_token": 0.000001}
    server = {"api_base": openai_server.api_base}
    judges = [{"model": "openai/a", **server, **price}, {"model": "openai/b", **server}]
    content = {"rubric": "rubric.yaml", "data": dataset, "judges": judges}
    (tmp_path / "autorubric.yaml").write_text(json.dumps(content), encoding="utf-8")
    done = cli("eval", "--json")
    assert done.json["cost"] > 0
    assert done.json["notices"] == ["the cost excludes openai/b, whose price is unknown"]


def test_a_name_with_a_slash_that_is_not_a_provider_is_the_servers(
    cli: Cli, dataset: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM's names are used as they are, with the key for any address."""
    monkeypatch.setenv("AUTORUBRIC_API_KEY", _KEY)
    monkeypatch.setenv("OPENAI_API_KEY", _OTHER)
    call = ("eval", dataset, "--judge", "Qwen/Qwen3-8B", "--api-base", openai_server.api_base)
    assert cli(*call).code == 0
    assert _keys(openai_server) == {f"Bearer {_KEY}"}
    assert {one["body"]["model"] for one in openai_server.log()} == {"Qwen/Qwen3-8B"}


@pytest.mark.parametrize("command", ["eval", "redteam", "grade", "demo"])
@pytest.mark.parametrize(
    ("step", "said"),
    [
        (_REFUSED, "no key was sent to"),
        ({"do": "status", "status": 500}, "HTTP 500"),
        ({"do": "raw", "body": "<html>busy</html>"}, "is not JSON"),
    ],
)
def test_a_wrong_setting_costs_one_request(
    cli: Cli,
    dataset: str,
    rubric: str,
    openai_server: OpenAIServer,
    command: str,
    step: dict[str, Any],
    said: str,
) -> None:
    """One message, without retries; the other judges of a panel are asked once too."""
    openai_server.script(step, model="m", repeat="last")
    judge = ("--judge", "openai/m", "--judge", "openai/other")
    call = {
        "eval": ("eval", dataset, *judge),
        "redteam": ("redteam", dataset, *judge),
        "grade": ("grade", "Paris.", "--rubric", rubric, *judge),
        "demo": ("demo", "--model", "openai/m"),
    }[command]
    done = cli(*call, "--api-base", openai_server.api_base)
    assert (done.code, done.out) == (3, "")
    assert "failed its test request" in done.err and said in done.err
    assert done.err.count("Error: ") == 1
    models = sorted(one["body"]["model"] for one in openai_server.log())
    assert models == (["m"] if command == "demo" else ["m", "other"])


@pytest.mark.parametrize("command", ["redteam", "grade"])
def test_without_a_preflight_nothing_is_asked_first(
    cli: Cli, dataset: str, rubric: str, openai_server: OpenAIServer, command: str
) -> None:
    """The whole text is sent at once, and a reply to each criterion fails."""
    openai_server.script(_REFUSED, repeat="last")
    call = ("grade", "Paris.", "--rubric", rubric) if command == "grade" else ("redteam", dataset)
    done = cli(*call, "--judge", "openai/m", "--api-base", openai_server.api_base, "--no-preflight")
    assert done.code == 3 and "test request" not in done.err
    assert len(openai_server.log()) >= 3


def test_the_preflight_of_grade_is_one_of_its_votes(
    cli: Cli, rubric: str, openai_server: OpenAIServer
) -> None:
    """A text costs one request per criterion."""
    call = (
        "grade",
        "Paris.",
        "--rubric",
        rubric,
        "--judge",
        "openai/m",
        "--api-base",
        openai_server.api_base,
    )
    assert cli(*call).code == 0
    assert len(openai_server.log()) == 3


def test_a_silent_server_is_asked_once(
    cli: Cli, dataset: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """The message says how long it waited and how to skip the request."""
    openai_server.script({"do": "hang"}, repeat="last")
    judge = {"model": "openai/m", "api_base": openai_server.api_base, "timeout": 0.5}
    content = {"rubric": "rubric.yaml", "data": dataset, "judges": [judge]}
    (tmp_path / "autorubric.yaml").write_text(json.dumps(content), encoding="utf-8")
    done = cli("eval")
    assert done.code == 3
    assert "up to 0.5 s" in done.err and "no answer within 0.5 s" in done.err
    assert "--no-preflight skips this request" in done.err
    assert len(openai_server.log()) == 1


@pytest.mark.parametrize("given", ["sk_live_abc123", "SK_LIVE_ABC123", "gsk_abc123", "A" * 41])
@pytest.mark.parametrize("in_file", [False, True])
def test_a_key_in_place_of_a_name_is_not_shown(
    cli: Cli, dataset: str, openai_server: OpenAIServer, tmp_path: Path, given: str, in_file: bool
) -> None:
    """The message says what the option takes, and no run folder is created."""
    judge = {"model": "openai/m", "api_base": openai_server.api_base, "api_key_env": given}
    content = {"rubric": "rubric.yaml", "data": dataset, "judges": [judge]}
    (tmp_path / "autorubric.yaml").write_text(json.dumps(content), encoding="utf-8")
    done = cli("eval") if in_file else cli(*_call(dataset, openai_server, "--api-key-env", given))
    assert done.code == (3 if in_file else 2)
    assert "must be the NAME of an environment variable" in done.err and given not in done.err
    assert not (tmp_path / "experiments").exists() and openai_server.log() == []
