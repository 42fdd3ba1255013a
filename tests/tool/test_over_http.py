"""The tool over real HTTP, with a server that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autorubric.llm import LLMConfig
from tests.servers.fixtures import OpenAIServer
from tests.tool.replies import REPLY, REQUEST, ask

RIGHT: dict[str, Any] = {"do": "answer", "payload": REPLY}


def model(server: OpenAIServer, name: str = "m1", **more: Any) -> LLMConfig:
    """A model on the server that is quick to try again."""
    settings = {"retry_min_wait": 0.01, "retry_max_wait": 0.02, **more}
    return LLMConfig(model=f"hosted_vllm/{name}", api_base=server.api_base, **settings)


def test_one_request_answers_all_criteria(openai_server: OpenAIServer) -> None:
    """All criteria are asked in one structured request, and it is not kept."""
    openai_server.script(RIGHT, repeat="last")
    for _ in range(2):
        assert ask(REQUEST, model(openai_server)).overall_score == 8
    log = openai_server.log()
    assert len(log) == 2
    schema = log[0]["body"]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["criteria_scores", "issues", "summary", "suggestions"]


def test_it_is_kept_where_the_configuration_says_so(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A provider with a cache answers an equal request from it."""
    openai_server.script(RIGHT, repeat="last")
    kept = model(openai_server, cache_enabled=True, cache_dir=tmp_path)
    assert [ask(REQUEST, kept).overall_score for _ in range(2)] == [8, 8]
    assert len(openai_server.log()) == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"do": "status", "status": 429, "headers": {"Retry-After": "0"}},
        {"do": "status", "status": 503},
        "reset",
        "truncated",
        {"do": "raw", "body": "<html>"},
        {"do": "answer", "content": "I would rather not say."},
        {"do": "answer", "payload": {"criteria_scores": []}},
    ],
)
def test_a_passing_fault_is_got_over(openai_server: OpenAIServer, fault: Any) -> None:
    """What another try mends does not reach the answer."""
    openai_server.script(fault, RIGHT)
    answer = ask(REQUEST, model(openai_server))
    assert answer.overall_score == 8 and not answer.fallback_from


@pytest.mark.parametrize(
    "fault",
    [
        {"do": "status", "status": 401, "message": "bad key"},
        {"do": "status", "status": 404},
        {"do": "status", "status": 500},
        "reset",
        "refusal",
        {"do": "answer", "content": "no JSON"},
    ],
)
def test_a_lasting_fault_goes_to_the_next(openai_server: OpenAIServer, fault: Any) -> None:
    """Where one provider fails for good, `auto` takes the next and says so; a named one is an error."""
    openai_server.script(fault, repeat="last", model="down")
    openai_server.script(RIGHT, repeat="last", model="up")
    providers = {"gpt4": model(openai_server, "down", max_retries=1), "claude": model(openai_server, "up")}
    answer = ask(REQUEST, providers=providers)
    assert (answer.provider, list(answer.fallback_from)) == ("claude", ["gpt4"])
    named = ask({**REQUEST, "provider": "gpt4"}, providers=providers)
    assert not named.ok and "'gpt4' is not available" in str(named.error)
    assert {one["body"]["model"] for one in openai_server.log()[-1:]} == {"down"}


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_hanging_server_is_given_up(openai_server: OpenAIServer, fault: str) -> None:
    """The time allowed holds over the provider's own."""
    openai_server.script(fault, repeat="last")
    answer = ask(REQUEST, model(openai_server, timeout=60.0), timeout=0.5)
    assert answer.error == "Evaluation timed out after 0.5 s"


def test_no_key_is_told(openai_server: OpenAIServer) -> None:
    """A server that repeats the key does not get it into the answer or the log."""
    openai_server.script("echo_key", repeat="last")
    answer = ask(REQUEST, model(openai_server, api_key="sk-very-secret-key-1234"))
    assert not answer.ok and "very-secret" not in str(answer.error)
