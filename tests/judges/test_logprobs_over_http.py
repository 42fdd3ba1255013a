"""`LLMConfig(logprobs=k)` over HTTP: what is sent and read, and what happens where it is not possible."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from autorubric import CriterionGrader, LLMConfig, Rubric
from autorubric.criteria import Criterion
from autorubric.errors import RequestRefusedError
from autorubric.judges import JudgeReply, ModelJudge
from autorubric.judges.answering import answer_settings
from autorubric.llm import LLMClient
from autorubric.scoring import JudgeVote
from tests.doubles import binary, request_for
from tests.servers.fixtures import OpenAIServer

SHARES = {"MET": 0.7, "UNMET": 0.2, "CANNOT_ASSESS": 0.1}
REPLIES = {json.dumps({"reason": "r", "verdict": v}, indent=1): p for v, p in SHARES.items()}
SAID = next(iter(REPLIES))
TOKENS = {"cuts": [3, 1, 7], "spare": ["\n", ""]}
ANSWER = {"do": "answer", "content": SAID, "replies": REPLIES, "tokens": TOKENS}
MISSING = "the provider does not return log-probabilities of alternative tokens"


def config(server: OpenAIServer, transport: Any = "openai_compatible", **fields: Any) -> LLMConfig:
    """The server's model, asked for log-probabilities."""
    settings = {"model": "openai/gpt-5.4", "api_key": "k", "max_retries": 0, "logprobs": 5, **fields}
    return LLMConfig(api_base=server.api_base, transport=transport, **settings)


def ask(config: LLMConfig, *, times: int = 1) -> list[JudgeReply]:
    """The replies to the same request, one after the other."""

    async def run() -> list[JudgeReply]:
        judge = ModelJudge(judge_id="j", client=LLMClient(config))
        replies = [await judge.ask(request_for(binary(), sample=at)) for at in range(times)]
        await judge.aclose()
        return replies

    return asyncio.run(run())


@pytest.mark.parametrize("transport", ["openai_compatible", "litellm"])
def test_the_distribution_is_read_and_says_where_it_is_from(
    openai_server: OpenAIServer, transport: Any
) -> None:
    """By both transports."""
    openai_server.script(ANSWER)
    (reply,) = ask(config(openai_server, transport))
    assert reply.probabilities == pytest.approx(SHARES, abs=1e-5)
    assert (reply.probability_source, reply.probability_reason) == ("logprobs", None)
    assert reply.probability_backend == "openai/gpt-5.4".partition("/")[2]
    (request,) = openai_server.log()
    assert (request["body"]["logprobs"], request["body"]["top_logprobs"]) == (True, 5)


def test_the_cache_keeps_what_is_needed(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A cached reply has the same distribution."""
    openai_server.script(ANSWER)
    own = config(openai_server, cache_enabled=True, cache_dir=tmp_path)
    first, second = (*ask(own), *ask(own))
    assert second.exchanged is not None and second.exchanged.cached
    assert second.probabilities == first.probabilities
    assert len(openai_server.log()) == 1


def votes_of(server: OpenAIServer, step: dict[str, Any], **options: Any) -> list[JudgeVote]:
    """The votes of the server's model on three criteria."""
    server.script(step, repeat="last")
    rubric = Rubric([Criterion(name=f"c{at}", requirement=f"Requirement {at}.") for at in range(3)])
    grader = CriterionGrader(llm_config=config(server), **options)
    return [vote for one in rubric.grade_sync("A text.", grader).report for vote in one.votes]


def test_votes_have_them(openai_server: OpenAIServer) -> None:
    """And what they are written as in a run."""
    for vote in votes_of(openai_server, ANSWER):
        assert vote.probabilities == pytest.approx(SHARES, abs=1e-5)
        assert JudgeVote.from_dict(json.loads(json.dumps(vote.to_dict()))) == vote


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"do": "refuse_logprobs"}, MISSING),
        ({"do": "ignore_logprobs"}, MISSING),
        ({**ANSWER, "tokens": {"other": {" The": 0.95}}}, "tokens that begin an answer have a probability"),
    ],
    ids=["refused", "ignored", "other"],
)
def test_without_them_votes_count_and_say_why(
    openai_server: OpenAIServer, step: dict[str, Any], reason: str
) -> None:
    """One warning for the run, and a reason in each vote; no vote is lost."""
    with pytest.warns(RuntimeWarning, match="has no probabilities") as caught:
        votes = votes_of(openai_server, step)
    assert len([one for one in caught if "has no probabilities" in str(one.message)]) == 1
    assert [vote.status for vote in votes].count("failed") == 0
    for vote in votes:
        assert (vote.probabilities, vote.probability_source, vote.probability_backend) == (None, None, None)
        assert vote.probability_reason is not None and vote.probability_reason.startswith(reason)


def test_a_refused_parameter_is_not_sent_again(openai_server: OpenAIServer) -> None:
    """The route remembers it, and the exchange says what was left out."""
    openai_server.script({"do": "refuse_logprobs"}, repeat="last")
    with pytest.warns(RuntimeWarning, match="has no probabilities"):
        first, second = ask(config(openai_server), times=2)
    assert ["logprobs" in one["body"] for one in openai_server.log()] == [True, False, False]
    for reply in (first, second):
        assert reply.exchanged is not None
        assert reply.exchanged.dropped_params == ("logprobs", "top_logprobs")


@pytest.mark.parametrize(
    "message",
    [
        "Requested sample logprobs of 20, which is greater than max allowed: 5",
        "Invalid 'top_logprobs': must be at most 5.",
    ],
)
def test_a_number_that_is_too_large_is_an_error(openai_server: OpenAIServer, message: str) -> None:
    """Whoever asked can correct it, before a run without probabilities is paid for."""
    openai_server.script({"do": "refuse_logprobs", "message": message}, repeat="last")
    with pytest.raises(RequestRefusedError, match="5"):
        ask(config(openai_server, logprobs=20))


@pytest.mark.parametrize("llm_calls", ["per_criterion", "per_item"])
def test_hard_and_with_probabilities_the_verdicts_are_the_same(
    openai_server: OpenAIServer, llm_calls: Any
) -> None:
    """The server's own answers, about several criteria at a time too."""
    rubric = Rubric([Criterion(name=f"c{at}", requirement=f"Requirement {at}.") for at in range(4)])
    verdicts = []
    for k in (None, 20):
        grader = CriterionGrader(llm_config=config(openai_server, logprobs=k), llm_calls=llm_calls)
        report = rubric.grade_sync("A text.", grader)
        verdicts.append([one.verdict for one in report.report])
        for vote in (vote for one in report.report for vote in one.votes):
            assert (vote.probabilities is None) == (k is None)
            if vote.probabilities is not None:
                assert vote.probabilities[str(vote.verdict)] == pytest.approx(1.0)
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize(("abstains", "requests"), [(True, 3), (False, 6)])
def test_a_shared_reply_about_one_criterion_loses_no_verdict(
    openai_server: OpenAIServer, abstains: bool, requests: int
) -> None:
    """As a small model answers: the fields are those of another kind of criterion, and the rest is missing.

    An abstention is read; without one, the reply cannot be read. The others are asked about alone.
    """
    step = {"do": "one_evaluation", "abstains": abstains}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        votes = votes_of(openai_server, step, llm_calls="per_item")
    assert [vote.status for vote in votes].count("failed") == 0
    assert len(openai_server.log()) == requests
    for vote in votes:
        assert (vote.probabilities is None) == (vote.probability_reason is not None)


def test_without_the_setting_nothing_changes() -> None:
    """What votes depend on has no trace of it, so that stored votes stay valid."""
    assert "logprobs" not in answer_settings(LLMConfig(model="m", fallbacks=[LLMConfig(model="n")]))
    assert answer_settings(LLMConfig(model="m", logprobs=3))["logprobs"] == 3
    assert LLMConfig(model="m").request_params() == {}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"logprobs": 0}, "greater than or equal to 1; got 0"),
        ({"logprobs": 21}, "less than or equal to 20; got 21"),
        ({"logprobs": True}, "valid integer; got True"),
        ({"logprobs": "5"}, "valid integer; got '5'"),
        ({"logprobs": 5, "extra_params": {"logprobs": True}}, "set only logprobs"),
        ({"logprobs": 5, "extra_params": {"top_logprobs": 5}}, "set only logprobs"),
    ],
)
def test_what_it_does_not_take(fields: dict[str, Any], error: str) -> None:
    """One to twenty."""
    with pytest.raises(ValidationError, match=error):
        LLMConfig(model="m", **fields)


def test_parameters_of_the_provider_that_request_them_are_read_too(
    openai_server: OpenAIServer, recwarn: pytest.WarningsRecorder
) -> None:
    """What `extra_params` requests is read where it arrives, and nothing is said where it does not."""
    openai_server.script(ANSWER, "ignore_logprobs")
    own = config(openai_server, logprobs=None, extra_params={"logprobs": True, "top_logprobs": 4})
    read, ignored = ask(own, times=2)
    assert read.probabilities == pytest.approx(SHARES, abs=1e-5)
    assert (ignored.probabilities, ignored.probability_reason) == (None, None)
    assert not [one for one in recwarn if "probabilities" in str(one.message)]
