"""Critics with a model over HTTP: outputs that are too long, and connections that are closed."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, Rubric
from autorubric.criteria import ComparativeCriterion
from autorubric.errors import ContextLengthError
from autorubric.judges import ClosableJudge, Critic, ModelJudge
from autorubric.llm import LLMClient, LLMConfig
from tests.doubles import TableJudge, in_loop
from tests.judges.evaluators import GOOD, HELPFUL, Scripted

TOO_LONG = {
    "do": "status",
    "status": 400,
    "code": "context_length_exceeded",
    "message": "This model's maximum context length is 10 tokens.",
}
LONG = "START " + "word " * 200 + "END"
COMPARISON = ComparativeCriterion(name="better", requirement="Which answers?")


def config_for(server: Any, **fields: Any) -> LLMConfig:
    return LLMConfig(model="openai/m", api_base=server.api_base, api_key="k", **fields)


def contents(server: Any) -> list[str]:
    """The last message of each request."""
    return [seen["body"]["messages"][-1]["content"] for seen in server.log()]


@pytest.fixture
def server(openai_server: Any) -> Any:
    """The in-suite server; it answers with a good evaluation unless a test says otherwise."""
    openai_server.script({"do": "answer", "payload": GOOD}, repeat="last")
    return openai_server


# Outputs that are too long


@pytest.mark.parametrize("policy", ["end", "middle"])
def test_a_submission_too_long_is_cut_and_the_vote_says_so(server, policy):
    """Under the config's own policy, as a model judge does."""
    server.script(TOO_LONG, TOO_LONG)
    critic = Critic(config_for(server, truncate=policy), HELPFUL)
    vote = Rubric([HELPFUL]).grade_sync(LONG, CriterionGrader(judges=[critic])).report[0].votes[0]
    assert (vote.status, vote.truncated) == ("answered", True)
    first, _, last = contents(server)
    assert LONG in first
    assert ("START" in last, "[…]" in last, "END" in last) == (True, True, policy == "middle")


def test_without_a_policy_nothing_is_cut(server):
    """The vote fails at once."""
    server.script(TOO_LONG)
    critic = Critic(config_for(server), HELPFUL)
    vote = Rubric([HELPFUL]).grade_sync(LONG, CriterionGrader(judges=[critic])).report[0].votes[0]
    assert "ContextLengthError" in (vote.error or "")
    with pytest.raises(ContextLengthError):
        server.script(TOO_LONG)
        critic(LONG)
    assert len(server.log()) == 2


def test_an_output_cut_by_hand_is_told(server):
    """An evaluation has no place to say so: it is a warning."""
    critic = Critic(config_for(server, truncate="end"), HELPFUL, "{output}")
    server.script(TOO_LONG)
    with pytest.warns(UserWarning, match="'openai/m/helpfulness': the output was too long"):
        critic(LONG)
    assert contents(server)[1] == LONG[: len(LONG) * 2 // 3] + "\n[…]"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        critic("short")


def test_in_a_batch_the_longest_output_is_cut(server):
    """The others stay as they are."""
    payload = {"evaluations": [GOOD, GOOD]}
    server.script(TOO_LONG, {"do": "answer", "payload": payload})
    critic = Critic(config_for(server, truncate="end"), HELPFUL, "{outputs}")
    with pytest.warns(UserWarning, match="too long") as told:
        critic.batch_forward(["short", LONG])
    assert [one.filename for one in told] == [__file__]
    cut = LONG[: len(LONG) * 2 // 3] + "\n[…]"
    assert contents(server)[1] == f"Output 1:\nshort\n\nOutput 2:\n{cut}"


def test_of_candidates_the_longest_is_cut(server):
    """The other candidate stands whole."""
    server.script(TOO_LONG, {"do": "answer", "payload": {"winner": "A", "explanation": ""}})
    critic = Critic(config_for(server, truncate="end"), COMPARISON, "{output}")
    with pytest.warns(UserWarning, match="too long"):
        assert critic({"x": "short", "y": LONG}).winner == "x"
    assert contents(server)[1].startswith("Candidate A:\nshort\n\nCandidate B:\nSTART")
    assert contents(server)[1].endswith("[…]")


# Connections


def open_sockets() -> int:
    """Sockets that this process has open."""
    return sum(_target(link).startswith("socket:") for link in Path("/proc/self/fd").iterdir())


def open_sockets_at_first() -> int:
    """The same, once those have been closed that nobody holds any more."""
    gc.collect()
    return open_sockets()


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    # The folder that is being read is itself among the open files, and gone by now.
    except OSError:
        return ""


async def closed_down_to(count: int) -> bool:
    """Whether so many sockets are open, at once or as soon as the loop has closed the others."""
    for _ in range(6000):
        if open_sockets() == count:
            return True
        await asyncio.sleep(0.01)
    return False


def critics(config: LLMConfig) -> list[Critic]:
    judge = ModelJudge(judge_id="j", client=LLMClient(config))
    return [Critic(config, HELPFUL), Critic(judge, HELPFUL), Critic(Critic(config, HELPFUL), HELPFUL)]


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="sockets are counted on Linux")


@needs_proc
@in_loop
async def test_a_closed_critic_leaves_no_socket_open(server):
    """By `aclose`, by `async with`, and by the grader in whose panel it sits; a closed one can be asked."""
    config = config_for(server)
    before = open_sockets_at_first()
    for critic in critics(config):
        await critic.aforward("x")
        assert open_sockets() == before + 1
        await critic.aclose()
        assert await closed_down_to(before)
        async with critic:
            await critic.aforward("y")
        assert await closed_down_to(before)
    async with CriterionGrader(judges=[critics(config)[0]]) as grader:
        await grader.grade("z", Rubric([HELPFUL]))
    assert await closed_down_to(before)


@needs_proc
@in_loop
async def test_an_open_critic_keeps_its_connection(server):
    """Calls that follow each other need no new one."""
    before = open_sockets_at_first()
    async with Critic(config_for(server), HELPFUL) as critic:
        await critic.aforward("x")
        await critic.aforward("y")
        assert open_sockets() == before + 1


@needs_proc
@in_loop
async def test_sync_calls_close_what_they_opened(server):
    """Also where the evaluator is a model judge."""
    judge = ModelJudge(judge_id="j", client=LLMClient(config_for(server)))
    before = open_sockets_at_first()
    for evaluator in (config_for(server), judge):
        Critic(evaluator, HELPFUL)("x")
    assert await closed_down_to(before)


@in_loop
async def test_a_critic_with_nothing_open_can_be_closed():
    """Functions and judges without connections are left alone."""
    for evaluator in (Scripted(), TableJudge({})):
        critic = Critic(evaluator, HELPFUL)
        assert isinstance(critic, ClosableJudge)
        await critic.aclose()
