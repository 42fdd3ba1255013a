"""What is written down of a call, and critiques in a loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autorubric.apps.tool import CritiqueResponse, Provider, ProviderTable, refine_until, refine_until_sync
from autorubric.errors import ArgumentError
from autorubric.judges import Prompt
from autorubric.llm import LLMConfig, generate
from tests.doubles import in_loop
from tests.servers.fixtures import OpenAIServer
from tests.tool.replies import ISSUE, REPLY, REQUEST, Critical, ask, failing, scored

SECRET = "The launch code is 0000."


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of an audit log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_one_line_a_call_without_the_content(tmp_path: Path) -> None:
    """Every call, also one that fails, appends a line; nothing of content, context or reply is in it."""
    log = tmp_path / "audit.jsonl"
    request = {**REQUEST, "content": SECRET, "context": SECRET}
    reply = {**REPLY, "summary": SECRET, "issues": [{**ISSUE, "description": SECRET}]}
    ask(request, reply, audit_path=log)
    ask(request, {"criteria_scores": SECRET}, audit_path=log)
    ask({**request, "provider": "claude"}, reply, audit_path=log)
    ask({**request, "max_issues": 0}, reply, audit_path=log)
    ask({**request, "dry_run": True}, reply, audit_path=log)
    ask(request, providers={"gpt4": failing(ValueError(SECRET)), "claude": Critical()}, audit_path=str(log))
    found = lines(log)
    assert [one["ok"] for one in found] == [True, False, False, False, True, True]
    assert [one["error_code"] for one in found] == [None, "provider", "request", "request", None, None]
    assert SECRET not in log.read_text(encoding="utf-8")
    first = found[0]
    assert (first["provider"], first["overall_score"], first["issues"]) == ("gpt4", 8, 1)
    assert first["content_bytes"] == len(SECRET) and len(first["content_sha256"]) == 64
    assert first["criteria"] == ["correctness", "completeness"] and first["time"].endswith("+00:00")
    assert found[4]["dry_run"] is True
    assert found[5]["failed_providers"] == {"gpt4": "JudgeError"}


def test_the_content_is_written_down_where_asked(tmp_path: Path) -> None:
    """By argument or by the table, content and context stand in the line."""
    log = tmp_path / "audit.jsonl"
    table = ProviderTable(providers=(Provider(Critical(), name="gpt4"),), audit_path=log, audit_content=True)
    ask({**REQUEST, "context": "Why."}, providers=table)  # type: ignore[arg-type]
    ask(REQUEST, REPLY, audit_path=log, audit_content=True)
    assert [(one["content"], one["context"]) for one in lines(log)] == [
        ("Some text.", "Why."),
        ("Some text.", None),
    ]


def test_a_torn_line_is_ended(tmp_path: Path) -> None:
    """A line that a killed process left behind does not spoil the next."""
    log = tmp_path / "audit.jsonl"
    log.write_text('{"torn', encoding="utf-8")
    ask(REQUEST, REPLY, audit_path=log)
    torn, whole = log.read_text(encoding="utf-8").splitlines()
    assert torn == '{"torn' and json.loads(whole)["ok"]


def test_what_cannot_be_logged_is_not_asked(tmp_path: Path) -> None:
    """Where the log cannot be written, nobody is asked and the answer says why."""
    critic = Critical()
    answer = ask(REQUEST, critic, audit_path=tmp_path / "none" / "audit.jsonl")
    assert not answer.ok and "audit log" in str(answer.error)
    assert critic.prompts == []


def by_length(prompt: Prompt) -> dict[str, Any]:
    """Gives a point for each exclamation mark in the submission."""
    return scored(wit=prompt.content.split("Criteria:")[0].count("!"))


def longer(content: str, response: CritiqueResponse) -> str:
    """Adds two exclamation marks."""
    return content + "!!"


def test_refining_ends_where_it_is_good_enough() -> None:
    """Critique and revision take turns until the score is reached."""
    done = refine_until_sync("Hello!!!!", longer, ["wit"], providers={"gpt4": by_length})
    assert (done.stopped, done.passed, done.content) == ("passed", True, "Hello!!!!!!!!")
    assert [one.score for one in done.rounds] == [4, 6, 8]
    assert done.response.overall_score == 8


def test_refining_ends_after_its_rounds() -> None:
    """There are at most so many critiques; the last content has one too, and the best is given back."""
    calls: list[str] = []

    async def worse(content: str, response: CritiqueResponse) -> str:
        calls.append(content)
        return content[:-1]

    done = refine_until_sync("Hi!!!!!!!", worse, "wit", providers={"gpt4": by_length})
    assert (done.stopped, len(done.rounds), len(calls)) == ("max_rounds", 3, 2)
    assert done.content == "Hi!!!!!!!" and not done.passed


@pytest.mark.parametrize(
    ("revisions", "stopped"), [(["a!"], "unchanged"), (["b!", "a!"], "oscillating"), ([], "failed")]
)
def test_refining_ends_where_nothing_is_to_be_gained(revisions: list[str], stopped: str) -> None:
    """A revision that changes nothing or goes back, and a critique without a score, end it."""
    script = iter(revisions)
    critic = by_length if revisions else failing(ValueError("down"))
    done = refine_until_sync("a!", lambda *_: next(script), ["wit"], max_rounds=9, providers={"gpt4": critic})
    assert done.stopped == stopped
    assert done.content == "a!"


@in_loop
async def test_refining_passes_arguments_on(tmp_path: Path) -> None:
    """Arguments of the request and of the call reach it; the scale is 0-10 whatever is said."""
    critic = Critical(9)
    heard: list[str] = []
    done = await refine_until(
        "a",
        longer,
        ["wit"],
        providers={"gpt4": critic},
        context="For fun.",
        scoring_scale="letter",
        audit_path=tmp_path / "a.jsonl",
        on_progress=lambda done, steps, what: heard.append(what),
    )
    assert done.passed and "For fun." in critic.prompts[0] and heard[-1] == "done"
    assert len(lines(tmp_path / "a.jsonl")) == 1


def test_a_score_that_leaves_a_criterion_out_is_not_good_enough() -> None:
    """Where a criterion could not be assessed a round goes on, and what has a score for all passes."""

    def critic(prompt: Prompt) -> dict[str, Any]:
        return scored(wit=9, depth=8 if "!!" in prompt.content else None)

    request: dict[str, Any] = {"criteria": ["wit", "depth"], "providers": {"gpt4": critic}}
    done = refine_until_sync("a", longer, **request)
    assert (done.stopped, [one.score for one in done.rounds]) == ("passed", [9, 8.5])
    assert [one.assessed for one in done.rounds] == [False, True] and done.content == "a!!"
    assert refine_until_sync("a", longer, **request, max_rounds=1).stopped == "max_rounds"


@pytest.mark.parametrize("faulty", [{"max_rounds": 0}, {"min_score": 11}, {"min_score": float("nan")}])
def test_refining_refuses_what_cannot_work(faulty: dict[str, Any]) -> None:
    """Rounds and score are checked before anybody is asked."""
    with pytest.raises(ArgumentError):
        refine_until_sync("a", longer, ["wit"], **faulty)


def test_a_revision_is_a_text() -> None:
    """A revision that is no text ends it; the rounds that are paid for are given back."""
    script = iter(["a!!", 5])
    done = refine_until_sync("a!", lambda *_: next(script), ["wit"], providers={"gpt4": by_length})  # type: ignore[arg-type]
    assert (done.stopped, [one.score for one in done.rounds], done.content) == ("failed", [1, 2], "a!!")
    assert done.error == "revise must return the revised content as a string; it returned int"


def test_a_revision_that_raises_keeps_the_rounds() -> None:
    """What `revise` raises after paid critiques is reported with them, and not instead of them."""

    async def revise(content: str, response: CritiqueResponse) -> str:
        if content.count("!") == 3:
            raise ConnectionError("the model is gone")
        return content + "!"

    done = refine_until_sync("a!", revise, ["wit"], max_rounds=9, providers={"gpt4": by_length})
    assert (done.stopped, [one.score for one in done.rounds]) == ("failed", [1, 2, 3])
    assert done.error == "revise raised ConnectionError: the model is gone"
    assert (done.content, done.response.overall_score) == ("a!!!", 3)


def test_a_later_critique_that_fails_keeps_the_rounds() -> None:
    """The best of the rounds before is given back, with the error of the critique that failed."""

    def critic(prompt: Prompt) -> Any:
        if "a!!" in prompt.content:
            raise ValueError("down")
        return scored(wit=5)

    done = refine_until_sync("a", longer, ["wit"], providers={"gpt4": critic})
    assert (done.stopped, [one.score for one in done.rounds]) == ("failed", [5, None])
    assert done.content == "a" and "down" in str(done.error)


@pytest.mark.parametrize(("asks", "max_calls", "rounds"), [(False, 2, 3), (True, 2, 2), (True, 1, 1)])
@in_loop
async def test_refining_ends_where_a_limit_leaves_no_room(
    openai_server: OpenAIServer, asks: bool, max_calls: int, rounds: int
) -> None:
    """A critique or a revision that may not be asked for ends it; what there is is given back."""
    openai_server.script({"do": "answer", "payload": scored(wit=5)}, repeat="last")
    critic = LLMConfig(model="hosted_vllm/m1", api_base=openai_server.api_base, max_retries=0)
    said: list[str] = []

    async def revise(content: str, response: CritiqueResponse) -> str:
        if asks:
            said.append(await generate("Be brief.", content, model=critic))
        return content + "!"

    done = await refine_until("Hi", revise, ["wit"], 9, providers={"gpt4": critic}, max_calls=max_calls)
    assert (done.stopped, done.content, len(openai_server.log())) == ("max_calls", "Hi", max_calls)
    assert (len(done.rounds), len(said)) == (rounds, int(asks and max_calls > 1))
    unpriced = await refine_until("Hi", revise, ["wit"], providers={"gpt4": critic}, max_cost=1.0)
    assert unpriced.stopped == "failed" and "no known price" in str(unpriced.response.error)
