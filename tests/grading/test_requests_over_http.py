"""What a grader sends, over real HTTP: how many requests, in which order, and how large they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from autorubric.criteria import BaseCriterion, Submission
from autorubric.demo import demo_dataset
from autorubric.grading import CriterionGrader, GradingTask, JudgeCall
from autorubric.judges import JudgeSpec, ModelAsker
from autorubric.judges.prompts import ComposedPrompt
from autorubric.llm import LLMConfig
from autorubric.rubric import Rubric
from autorubric.support.objects import Json
from tests.criteria.kinds import ESSAY, KINDS
from tests.doubles import binary
from tests.servers.fixtures import OpenAIServer

RUBRIC = Rubric([binary(f"c{i}") for i in range(5)])
DEMO = demo_dataset()


def model(server: OpenAIServer, name: str = "openai/m", **fields: Any) -> LLMConfig:
    return LLMConfig(model=name, api_base=server.api_base, max_retries=0, **fields)


def grade(grader: CriterionGrader, rubric: Rubric = RUBRIC) -> Any:
    return rubric.grade_sync("A text.", grader, query="A question?", item_id="i")


def prompt_of(calls: list[JudgeCall]) -> ComposedPrompt:
    judge = calls[0].member.judge
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
    members = [JudgeSpec(first, samples=2), JudgeSpec(second)]
    grade(CriterionGrader(judges=members, llm_calls=llm_calls, warm_prefix=True))
    log = openai_server.log()
    assert {request["body"]["model"] for request in log[:2]} == {"m1", "m2"}
    assert [request["running"] for request in log[:2]] == [1, 2]
    # Nobody else was on the way when the first ones were answered.
    assert log[2]["running"] <= 2
    assert max(request["running"] for request in log[2:]) > 2


def test_without_warming_all_go_at_once(openai_server: OpenAIServer) -> None:
    """Time matters more than the prefix cache, unless told otherwise."""
    openai_server.script({"do": "answer", "seconds": 0.05}, repeat="last")
    grade(CriterionGrader(llm_config=model(openai_server, max_parallel_requests=5)))
    assert max(request["running"] for request in openai_server.log()) == 5


def test_a_first_request_that_fails_holds_up_nobody(openai_server: OpenAIServer) -> None:
    """The others are sent all the same."""
    openai_server.script({"do": "status", "status": 400})
    report = grade(CriterionGrader(llm_config=model(openai_server), warm_prefix=True))
    assert sorted(one.status for one in report.report) == ["answered"] * 4 + ["failed"]


def test_the_marked_start_is_the_same_for_all_criteria(openai_server: OpenAIServer) -> None:
    """Claude is told where the shared start ends, and it is one start, byte for byte."""
    config = LLMConfig(model="anthropic/claude-sonnet-5-5", api_base=openai_server.url, api_key="sk-ant-test")
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


WRITTEN = {"requirement", "options", "items", "sections", "dimensions", "levels", "scale", "passing_criteria"}
"""Where criteria of all kinds hold the words of whoever wrote them: the requirement, and their options."""
PARTS = {"label", "value", "na", "val", "description", "min_score", "max_score", "levels", "name", "index"}
"""Names of fields in these, which nobody sees."""


def words_in(value: Json) -> int:
    if isinstance(value, dict):
        return sum((0 if key in PARTS else size(key)) + words_in(one) for key, one in value.items())
    if isinstance(value, list):
        return sum(map(words_in, value))
    return size(value) if isinstance(value, str) else 0


def own_words(criterion: BaseCriterion) -> int:
    return words_in(list(criterion.model_dump(mode="json", include=WRITTEN).values()))


def demand_small(grader: CriterionGrader, task: GradingTask) -> None:
    """At most 1,800 bytes a call beyond texts and criterion; at most 300 of them in the criterion's block."""
    submission, guidelines = task.submission, task.rubric.guidelines
    judged = [*submission.candidates.values()] or [submission.text or ""]
    texts = sum(map(size, [*judged, task.query, task.reference_submission, guidelines]))
    for calls in grader.requests(task):
        prompt = prompt_of(calls)
        user, own = prompt.messages[-1], own_words(calls[0].request.criterion)
        whole = sum(size(message.content) for message in prompt.messages)
        assert whole - texts - own <= 1800
        assert size(user.content[user.cache_prefix :]) - own <= 300


def test_demo_requests_are_small() -> None:
    """Those of the demonstration itself, beyond its texts, requirements and options."""
    grader = CriterionGrader(llm_config="gpt-6-luna")
    for task in demo_tasks():
        demand_small(grader, task)


def test_demo_requests_are_small_on_the_wire(openai_server: OpenAIServer) -> None:
    """The whole body of a request, the reply's schema included, has at most 1,800 bytes beyond them."""
    task = demo_tasks()[0]
    texts = size(task.submission.text or "") + size(task.query or "") + size(task.rubric.guidelines or "")
    grader = CriterionGrader(llm_config=model(openai_server))
    task.rubric.grade_sync(task.submission.text, grader, query=task.query)
    written = {
        f"\n{criterion.name}: {criterion.requirement}": own_words(criterion) for criterion in task.rubric
    }
    first = [request for request in openai_server.log() if len(request["body"]["messages"]) == 2]
    for request in first:
        asked = request["body"]["messages"][1]["content"]
        own = next(own for requirement, own in written.items() if requirement in asked)
        assert int(request["headers"]["Content-Length"]) - texts - own <= 1800
    assert len(first) == len(task.rubric)


SIZED: dict[str, Callable[..., BaseCriterion]] = {
    **KINDS,
    "pass_fail, target": partial(KINDS["pass_fail"], mode="target"),
    "pass_fail, exemplar": partial(KINDS["pass_fail"], mode="exemplar"),
    "numerical_rating, target": partial(KINDS["numerical_rating"], mode="relative_to_target"),
    "numerical_rating, exemplar": partial(KINDS["numerical_rating"], mode="relative_to_exemplar"),
    "long checklist": partial(
        KINDS["checklist"], items={f"has_{n}": f"There is a part {n}" for n in range(12)}
    ),
    "many sections": partial(KINDS["narrative"], sections={f"part_{n}": f"Part {n}" for n in range(12)}),
    "many dimensions": partial(
        KINDS["analytic_rubric"], dimensions={f"d{n}": ESSAY["style"] for n in range(5)}
    ),
}


@pytest.mark.parametrize("kind", SIZED)
def test_requests_of_every_kind_are_small_on_the_demo_texts(kind: str) -> None:
    """However many parts a criterion has, what is said of them is said once."""
    grader = CriterionGrader(llm_config="gpt-6-luna")
    rubric = Rubric([SIZED[kind](requirement="How well is the customer served?")], guidelines="Be strict.")
    for task in demo_tasks()[::9]:
        text = task.submission.text or ""
        shown = {"first": text, "second": text[::-1]} if "comparative" in kind else text
        submission = Submission.parse(shown)
        demand_small(
            grader, replace(task, submission=submission, rubric=rubric, reference_submission="We are sorry.")
        )


def test_demo_criteria_of_an_item_share_their_start() -> None:
    """Everything before a criterion's own block is the same, byte for byte, for all criteria of an item."""
    grader = CriterionGrader(judges=[JudgeSpec("gpt-6-luna", samples=2), "anthropic/claude-sonnet-5-5"])
    for task in demo_tasks():
        starts = set()
        for calls in grader.requests(task):
            *system, user = prompt_of(calls).messages
            assert user.cache_prefix > 0
            starts.add((*(message.content for message in system), user.content[: user.cache_prefix]))
        assert len(starts) == 1
