"""What a grader sends, over real HTTP: how many requests, in which order, and how large they are."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from autorubric.demo import demo_dataset
from autorubric.graders import CriterionGrader, GradingTask, JudgeCall, JudgeSpec
from autorubric.judges import ModelAsker
from autorubric.llm import LLMConfig
from autorubric.prompts import Prompt
from autorubric.rubric import Rubric
from autorubric.values import Submission
from tests.doubles import binary
from tests.servers.fixtures import OpenAIServer

RUBRIC = Rubric([binary(f"c{i}") for i in range(5)])
DEMO = demo_dataset()


def model(server: OpenAIServer, name: str = "openai/m", **fields: Any) -> LLMConfig:
    return LLMConfig(model=name, api_base=server.api_base, max_retries=0, **fields)


def grade(grader: CriterionGrader, rubric: Rubric = RUBRIC) -> Any:
    return rubric.grade_sync("A text.", grader, query="A question?", item_id="i")


def prompt_of(calls: list[JudgeCall]) -> Prompt:
    judge = calls[0].seat.judge
    assert isinstance(judge, ModelAsker)
    prompt = judge.prompt_for([call.request for call in calls])
    assert prompt is not None
    return prompt


# How many criteria a request has


@pytest.mark.parametrize(
    ("llm_calls", "sizes"),
    [("per_criterion", [1] * 5), ("per_item", [5]), (2, [1, 2, 2]), (5, [5]), (9, [5])],
)
def test_criteria_share_requests_on_the_wire(
    openai_server: OpenAIServer, llm_calls: Any, sizes: list[int]
) -> None:
    """One request a criterion, one an item, or chunks; each verdict comes from its own request."""
    grader = CriterionGrader(llm_config=model(openai_server), llm_calls=llm_calls)
    task = GradingTask(
        submission=Submission.parse("A text."), rubric=RUBRIC, query="A question?", item_id="i"
    )
    for calls in grader.requests(task):
        keys = re.findall(r"^\[(c[0-9a-f]{4})\]", prompt_of(calls).messages[-1].content, re.MULTILINE)
        said = {"reason": "r", "verdict": "MET"}
        payload = {"evaluations": [{"id": key, **said} for key in keys]} if keys else said
        contains = f"[{keys[0]}]" if keys else calls[0].request.criterion.requirement
        openai_server.script({"do": "answer", "payload": payload}, contains=contains)
    report = grade(grader)
    sent = [request["body"]["messages"][-1]["content"] for request in openai_server.log()]
    asked = [len(re.findall(r"^\[c[0-9a-f]{4}\]", text, re.MULTILINE)) or 1 for text in sent]
    assert sorted(asked) == sizes
    assert report.score == 1.0
    assert report.token_usage.total_tokens == 120 * len(sizes)


# The shared start


@pytest.mark.parametrize("llm_calls", ["per_criterion", 2])
def test_one_request_warms_the_prefix_for_the_others(openai_server: OpenAIServer, llm_calls: Any) -> None:
    """The first of each model is answered before any other of it is sent; then all others run together."""
    openai_server.script({"do": "answer", "seconds": 0.05}, repeat="last")
    first, second = (model(openai_server, f"openai/{name}") for name in ("m1", "m2"))
    seats = [JudgeSpec(first, samples=2), JudgeSpec(second)]
    grade(CriterionGrader(judges=seats, llm_calls=llm_calls, warm_prefix=True))
    log = openai_server.log()
    assert {request["body"]["model"] for request in log[:2]} == {"m1", "m2"}
    assert [request["running"] for request in log[:2]] == [1, 2]
    # Nobody else was on the way when the first ones were answered.
    assert log[2]["running"] <= 2
    assert max(request["running"] for request in log[2:]) > 2


def test_without_warming_all_go_at_once(openai_server: OpenAIServer) -> None:
    """Time matters more than the prefix cache, unless told otherwise."""
    openai_server.script({"do": "answer", "seconds": 0.05}, repeat="last")
    grade(CriterionGrader(llm_config=model(openai_server)))
    assert max(request["running"] for request in openai_server.log()) == 5


def test_a_first_request_that_fails_holds_up_nobody(openai_server: OpenAIServer) -> None:
    """The others are sent all the same."""
    openai_server.script({"do": "status", "status": 400})
    report = grade(CriterionGrader(llm_config=model(openai_server), warm_prefix=True))
    assert sorted(one.status for one in report.report) == ["answered"] * 4 + ["failed"]


def test_the_marked_start_is_the_same_for_all_criteria(openai_server: OpenAIServer) -> None:
    """Claude is told where the shared start ends, and it is one start, byte for byte."""
    config = LLMConfig(model="anthropic/claude-sonnet-4-5", api_base=openai_server.url, api_key="sk-ant-test")
    grade(CriterionGrader(llm_config=config, warm_prefix=True))
    bodies = [json.loads(json.dumps(request["body"])) for request in openai_server.log()]
    assert len(bodies) >= 5
    starts = []
    for body in bodies[:5]:
        blocks = body["messages"][0]["content"]
        assert blocks[0]["cache_control"] == {"type": "ephemeral"}
        assert "cache_control" not in blocks[-1]
        starts.append((json.dumps(body["system"]), blocks[0]["text"]))
    assert len(set(starts)) == 1
    assert "A text." in starts[0][1]


# Sizes on the demo data


def demo_tasks() -> list[GradingTask]:
    return [
        GradingTask(
            submission=Submission.parse(DEMO.items[at].submission),
            rubric=DEMO.get_item_rubric(at),
            query=DEMO.get_item_prompt(at),
            reference_submission=DEMO.get_item_reference_submission(at),
            item_id=DEMO.item_id(at),
        )
        for at in range(len(DEMO.items))
    ]


def size(text: str | None) -> int:
    return len((text or "").encode("utf-8"))


def own_words(calls: list[JudgeCall]) -> int:
    criterion = calls[0].request.criterion
    options = getattr(criterion, "options", None) or ()
    return size(criterion.requirement) + sum(size(option.label) for option in options)


def test_demo_requests_are_small() -> None:
    """At most 1,800 bytes a call beyond texts and requirement; the criterion's block at most 300 of them."""
    grader = CriterionGrader(llm_config="gpt-4.1-mini")
    for task in demo_tasks():
        texts = sum(
            map(size, [task.submission.text, task.query, task.reference_submission, task.rubric.guidelines])
        )
        for calls in grader.requests(task):
            prompt = prompt_of(calls)
            user = prompt.messages[-1]
            whole = sum(size(message.content) for message in prompt.messages)
            assert whole - texts - own_words(calls) <= 1800
            assert size(user.content[user.cache_prefix :]) - own_words(calls) <= 300


def test_demo_criteria_of_an_item_share_their_start() -> None:
    """Everything before a criterion's own block is the same, byte for byte, for all criteria of an item."""
    grader = CriterionGrader(judges=[JudgeSpec("gpt-4.1-mini", samples=2), "gpt-4.1"])
    for task in demo_tasks():
        starts = set()
        for calls in grader.requests(task):
            *system, user = prompt_of(calls).messages
            assert user.cache_prefix > 0
            starts.add((*(message.content for message in system), user.content[: user.cache_prefix]))
        assert len(starts) == 1
