"""Rewards in the shapes of TRL and verifiers: groups at once, one loop, None where nothing is known."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import math
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from autorubric import CriterionGrader, JudgeRequest, LexicalJudge, LLMConfig, Rubric
from autorubric.errors import ArgumentError, RubricError
from autorubric.rewards import as_async_reward, as_reward, as_verifiers_reward
from tests.doubles import BarrierJudge, TableJudge, in_loop
from tests.servers.fixtures import OpenAIServer

RUBRIC = Rubric(
    [
        {"name": "apology", "requirement": "The reply apologises.", "weight": 6},
        {"name": "refund", "requirement": "The reply offers a refund.", "weight": 10},
    ]
)
ONE = Rubric([{"name": "short", "requirement": "The reply is short."}])


def _by(function: Any, **options: Any) -> CriterionGrader:
    return CriterionGrader(judges=[function], **options)


def _has(request: JudgeRequest) -> str:
    """MET where the text names the criterion."""
    return "MET" if str(request.criterion.name) in (request.submission.text or "") else "UNMET"


def _fails_on_bad(request: JudgeRequest) -> str:
    if "bad" in (request.submission.text or ""):
        raise RuntimeError("the judge is gone")
    return "MET"


def test_texts_as_a_trainer_hands_them_over() -> None:
    """Texts with further columns give a list of floats, and the function has a name to be logged under."""
    reward = as_reward(RUBRIC, CriterionGrader(judges=[LexicalJudge()]), name="apologises")
    scores = reward(
        prompts=["Where is it?"] * 2,
        completions=["We apologise and offer a refund.", "Hello."],
        completion_ids=[[1, 2], [3]],
        trainer_state=object(),
    )
    assert scores == [1.0, 0.0]
    assert reward.__name__ == "apologises" and as_async_reward(RUBRIC, _by(_has)).__name__ == "rubric_reward"
    assert as_reward(RUBRIC, _by(_has))([], []) == []


def test_conversations_are_read_as_texts() -> None:
    """One turn is its content; several are a conversation; parts and calls of tools are written out."""
    seen: list[tuple[str | None, str | None]] = []

    def judge(request: JudgeRequest) -> str:
        seen.append((request.query, request.submission.text))
        return "MET"

    prompts: list[Any] = [
        [{"role": "user", "content": "Where?"}],
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where?"}],
        "Where?",
    ]
    completions: list[Any] = [
        [{"role": "assistant", "content": "Here."}],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"name": "find", "arguments": "{}"}]},
            {"role": "tool", "content": "Found."},
        ],
        {"role": "assistant", "content": [{"type": "text", "text": "See"}, {"type": "image"}]},
    ]
    assert as_reward(ONE, _by(judge))(prompts, completions) == [1.0, 1.0, 1.0]
    assert sorted(seen, key=str) == sorted(
        [
            ("Where?", "Here."),
            (
                "system:\n  Be kind.\nuser:\n  Where?",
                'assistant:\n  {"name": "find", "arguments": "{}"}\ntool:\n  Found.',
            ),
            ("Where?", "See\n[image]"),
        ],
        key=str,
    )


def test_columns_of_references_and_rubrics() -> None:
    """A row's reference reaches the judge, and a row's own rubric takes the place of the common one."""
    seen: dict[str | None, str | None] = {}

    def judge(request: JudgeRequest) -> str:
        seen[request.submission.text] = request.reference_submission
        return _has(request)

    own = [{"name": "short", "requirement": "The reply is short."}]
    rubrics = [None, own, json.dumps({"criteria": own})]
    reward = as_reward(RUBRIC, _by(judge), reference_column="solution")
    scores = reward(
        prompts=["q"] * 3,
        completions=["apology", "short", "none"],
        solution=["one", None, "three"],
        rubric=rubrics,
    )
    assert scores == [0.375, 1.0, 0.0]
    assert seen == {"apology": "one", "short": None, "none": "three"}
    assert as_reward(None, _by(judge), rubric_column="r")(["q"], ["short"], r=[own]) == [1.0]


def test_what_cannot_be_a_call_is_told() -> None:
    """Columns of other lengths, and no rubric anywhere, are faults of the program and raise."""
    reward = as_reward(RUBRIC, _by(_has))
    with pytest.raises(ArgumentError, match="prompts and completions differ in length: 1 and 2"):
        reward(["q"], ["a", "b"])
    with pytest.raises(ArgumentError, match="column 'reference' must be a list of length 2"):
        reward(["q"] * 2, ["a", "b"], reference=["r"])
    with pytest.raises(ArgumentError, match="pass a rubric to as_reward, or add a column 'rubric'"):
        as_reward(None, _by(_has))(["q"], ["a"])
    with pytest.raises(RubricError):
        as_reward([{"nme": "x"}], _by(_has))


def test_the_unscored_are_none_and_never_zero(caplog: pytest.LogCaptureFixture) -> None:
    """Failing, babbling and abstaining judges, and a faulty row, give None and a log line."""
    reward = as_reward(RUBRIC, _by(_fails_on_bad))
    with caplog.at_level(logging.WARNING, "autorubric"):
        assert reward(["q"] * 3, ["good", "bad", "good"]) == [1.0, None, 1.0]
    assert [record.name for record in caplog.records] == ["autorubric.integrations.rewards"]
    assert "a completion received no reward" in caplog.text and "the judge is gone" in caplog.text
    for answers in ({"apology": "MET", "refund": "?"}, {"apology": None, "refund": None}):
        assert as_reward(RUBRIC, CriterionGrader(judges=[TableJudge(answers)]))(["q"], ["a"]) == [None]
    rows: list[Any] = [[{"nme": "x"}], "no JSON", "rubric.yaml", None]
    assert reward(["q"] * 4, ["good"] * 4, rubric=rows) == [None, None, None, 1.0]
    assert reward(["q"] * 2, ["good", 7]) == [1.0, None]


def test_a_group_is_graded_at_once() -> None:
    """Judges that wait for all calls of the group to be in flight get there."""
    barrier = asyncio.Barrier(8)
    reward = as_reward(RUBRIC, CriterionGrader(judges=[BarrierJudge(barrier, "one")]))
    assert reward(["q"] * 4, list("abcd")) == [1.0] * 4


def test_one_loop_serves_all_calls_and_threads() -> None:
    """Calls of several threads, of a running loop too, are graded in one loop that is kept."""
    loops = []

    async def judge(request: JudgeRequest) -> str:
        loops.append(asyncio.get_running_loop())
        return "MET"

    reward = as_reward(ONE, _by(judge))
    threads = [threading.Thread(target=reward, args=(["q"], ["a"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    async def inside() -> list[float | None]:
        return reward(["q"], ["a"])

    assert asyncio.run(inside()) == [1.0]
    assert len(loops) == 5 and len(set(map(id, loops))) == 1 and loops[0].is_running()


@in_loop
async def test_the_asynchronous_twin() -> None:
    """It is a coroutine function, as trainers look for, and grades in the loop of whoever awaits it."""
    loops = []

    async def judge(request: JudgeRequest) -> str:
        loops.append(asyncio.get_running_loop())
        return _fails_on_bad(request)

    reward = as_async_reward(ONE, _by(judge))
    assert inspect.iscoroutinefunction(reward)
    assert await reward(prompts=["q"] * 2, completions=["good", "bad"], reference=["r", "r"]) == [1.0, None]
    assert set(loops) == {asyncio.get_running_loop()}


@in_loop
async def test_the_shape_of_verifiers() -> None:
    """One rollout gives a float; what is unscored is NaN, and the state says why."""
    references = []

    def judge(request: JudgeRequest) -> str:
        references.append(request.reference_submission)
        return _fails_on_bad(request)

    reward = as_verifiers_reward(RUBRIC, _by(judge), name="kind")
    assert inspect.iscoroutinefunction(reward) and reward.__name__ == "kind"
    parameters = inspect.signature(reward).parameters
    assert list(parameters)[:4] == ["prompt", "completion", "answer", "state"]
    state: dict[str, Any] = {}
    prompt = [{"role": "user", "content": "Where?"}]
    completion = [{"role": "assistant", "content": "Here."}]
    common: dict[str, Any] = {"prompt": prompt, "task": "replies", "parser": object()}
    assert await reward(completion=completion, answer="There.", state=state, info={}, **common) == 1.0
    assert set(references) == {"There."}
    assert state["rubric_error"] is None and state["rubric_report"]["score"] == 1.0
    own = {"rubric": [{"name": "short", "requirement": "The reply is short."}]}
    for info in (own, json.dumps(own)):
        assert await reward(completion=completion, answer="", state=state, info=info, **common) == 1.0
        assert len(state["rubric_report"]["report"]) == 1
    bad = [{"role": "assistant", "content": "bad"}]
    assert math.isnan(await reward(completion=bad, answer="", state=state, **common))
    assert "the judge is gone" in str(state["rubric_error"])


def _asked(server: OpenAIServer, **options: Any) -> CriterionGrader:
    model = LLMConfig(
        model="openai/judge", api_base=server.api_base, retry_min_wait=0.0, retry_max_wait=0.0, **options
    )
    return CriterionGrader(llm_config=model)


def test_over_http_retries_are_the_graders(
    openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Failing once costs no reward, failing for good gives None; no key gets into a log."""
    reward = as_reward(ONE, _asked(openai_server, max_retries=1, api_key="sk-very-secret-key"))
    met = {"do": "answer", "payload": {"verdict": "MET", "reason": "so"}}
    openai_server.script(met, repeat="last")
    openai_server.script({"do": "status", "status": 500}, contains="shaky")
    openai_server.script({"do": "echo_key"}, contains="refused", repeat="last")
    for asked in ("babbled", "Your reply could not be used"):
        openai_server.script({"do": "answer", "content": "no JSON"}, contains=asked, repeat="last")
    with caplog.at_level(logging.DEBUG, "autorubric"):
        scores = reward(["q"] * 4, ["steady", "shaky", "refused", "babbled"])
    assert scores == [1.0, 1.0, None, None]
    assert (
        "ReplyError" in caplog.text
        and "AuthenticationError" in caplog.text
        and "sk-very-secret-key" not in caplog.text
    )


_FORKING = """
import os, sys
from autorubric import CriterionGrader, LLMConfig, Rubric
from autorubric.rewards import as_reward
model = LLMConfig(model="openai/judge", api_base=sys.argv[1], cache_enabled=True, cache_dir=sys.argv[2])
reward = as_reward(Rubric([{"requirement": "The reply is short."}]), CriterionGrader(llm_config=model))
def score(text):
    (found,) = reward(["q"], [text])
    assert found is not None, text
    return found
score("before")
child = os.fork()
if not child:
    score("child, first")
    score("child, second")
    os._exit(0)
_, status = os.waitpid(child, 0)
score("after")
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_has_a_loop_of_its_own(openai_server: OpenAIServer, tmp_path: Any) -> None:
    """Parent and child go on after a fork, each over connections of its own, and end in order."""
    met = {"do": "answer", "payload": {"verdict": "MET", "reason": "so"}}
    openai_server.script(met, repeat="last")
    ended = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            _FORKING,
            openai_server.api_base,
            tmp_path,
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    texts = [one["body"]["messages"][-1]["content"] for one in openai_server.log()]
    for told in ("before", "child, first", "child, second", "after"):
        assert sum(told in text for text in texts) == 1
