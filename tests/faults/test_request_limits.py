"""At most three times as many requests a vote as retries allow, and no two without a wait, on every path."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from autorubric import CriterionGrader, JudgeSpec
from autorubric.errors import JudgeError
from autorubric.judges import DecisionModelJudge
from autorubric.llm import LLMClient
from autorubric.runs import EvalConfig, EvalRunner
from tests.faults.runs import config, dataset, run, votes_of
from tests.servers.fixtures import OpenAIServer


class _Verdict(BaseModel):
    verdict: str


MOST = 12
UNREADABLE = {"do": "answer", "content": "MET, I would say."}


def status(code: int, **fields: Any) -> dict[str, Any]:
    return {"do": "status", "status": code, **fields}


@pytest.mark.parametrize(
    "header", ["0", "-5", "0.000", "Wed, 21 Oct 2015 07:28:00 GMT", None], ids=lambda value: f"after {value}"
)
@pytest.mark.parametrize("code", [429, 503])
def test_no_wait_that_is_requested_makes_a_storm(
    code: int, header: str | None, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A server that always rejects gets twelve requests, and fails the vote with its own error."""
    headers = {} if header is None else {"Retry-After": header}
    openai_server.script(status(code, headers=headers), repeat="last")
    result = run(tmp_path, [config(openai_server, retry_max_wait=0.2)], dataset(1, criteria=1))
    [vote] = votes_of(result)
    assert vote.status == "failed"
    # A 503 that asks for no wait is a failure, which is repeated three times.
    assert 2 <= len(openai_server.log()) <= MOST


def test_the_preflight_is_no_storm(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """The test request is repeated twelve times at most, with growing waits."""
    openai_server.script(status(429, headers={"Retry-After": "0"}), repeat="last")
    grader = CriterionGrader(judges=[config(openai_server, max_retries=1)])
    options = EvalConfig(experiments_dir=tmp_path, show_progress=False)
    began = time.monotonic()
    with pytest.raises(JudgeError, match="failed its test request"):
        EvalRunner(dataset(3), grader, options, preflight=lambda check: None).run_sync()
    assert len(openai_server.log()) == 6
    # 3 ms, and 2.5 times as long each time.
    assert time.monotonic() - began >= sum(0.003 * 2.5**n for n in range(5))


MIXED: dict[str, list[Any]] = {
    "unreadable and rejected": [UNREADABLE, status(429, headers={"Retry-After": "0"})],
    "unreadable and failed": [UNREADABLE, status(500)],
    "refused and rejected": [
        status(429),
        status(400, message="response_format of type json_schema is not supported"),
        status(500),
    ],
    "broken and unreadable": ["reset", UNREADABLE, "truncated", status(503)],
}


@pytest.mark.parametrize("steps", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_reasons_to_repeat_share_the_requests_of_a_vote(
    steps: list[Any], retries: int, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Retries, replies that cannot be read and features that are refused count together."""
    openai_server.script(*steps, repeat="cycle")
    judge = config(openai_server, max_retries=retries, retry_max_wait=0.05)
    votes_of(run(tmp_path, [judge], dataset(1, criteria=1)))
    assert 1 <= len(openai_server.log()) <= 3 * (retries + 1)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_text_that_never_fits_is_given_up(
    retries: int, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Each shortened text is a request; the last one has the shortest text."""
    openai_server.script(status(400, message="maximum context length exceeded"), repeat="last")
    judge = config(openai_server, max_retries=retries, retry_max_wait=0.01, truncate="end")
    data = dataset(1, criteria=1)
    data.add_item(submission="word " * 100_000, id="long")
    votes_of(run(tmp_path, [judge], data))
    log = openai_server.log()
    assert len(log) <= 3 * (retries + 1) + 1
    assert min(len(str(one["body"]["messages"])) for one in log) < 4000


def test_fallbacks_share_the_requests_of_a_vote(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A model that always rejects leaves its fallback some requests."""
    openai_server.script(status(429, headers={"Retry-After": "0"}), model="one", repeat="last")
    judge = config(openai_server, "one", max_retries=1, retry_max_wait=2.0, fallbacks=("openai/two",))
    [vote] = votes_of(run(tmp_path, [judge], dataset(1, criteria=1)))
    assert vote.status == "answered"
    assert [one["body"]["model"] for one in openai_server.log()] == ["one"] * 3 + ["two"]
    openai_server.script(status(429, headers={"Retry-After": "0"}), repeat="last")
    votes_of(run(tmp_path / "again", [judge], dataset(1, criteria=1)))
    assert len(openai_server.log()) == 4 + 6


def test_votes_of_one_prompt_share_its_requests(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Four criteria that cannot be read together, nor alone."""
    openai_server.script(UNREADABLE, status(429), repeat="cycle")
    judge = JudgeSpec(config(openai_server, retry_max_wait=0.05), "judge")
    grader = CriterionGrader(judges=[judge], llm_calls="per_item")
    options = EvalConfig(experiments_dir=tmp_path, show_progress=False)
    EvalRunner(dataset(1, criteria=4), grader, options).run_sync()
    assert 10 <= len(openai_server.log()) <= 4 * MOST


def test_the_second_pass_goes_on_with_the_requests_of_the_first(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A vote that used four of six requests gets two more, and one that used all is not requested again."""
    openai_server.script(status(500), contains="Text number 3.", repeat="last")
    openai_server.script(status(429), contains="Text number 7.", repeat="last")
    judge = config(openai_server, max_retries=1, retry_max_wait=3.0)
    votes = votes_of(run(tmp_path, [judge], dataset(20, criteria=1)))
    assert sum(vote.status == "failed" for vote in votes) == 2
    sent = [str(one["body"]["messages"]) for one in openai_server.log()]
    assert sum("Text number 3." in one for one in sent) == 4
    assert sum("Text number 7." in one for one in sent) == 6


def test_a_limit_that_shrinks_without_end_is_given_up(openai_server: OpenAIServer) -> None:
    """A server that names a smaller limit each time gets as many requests as any other."""
    steps = [status(422, message=f"too many questions: 99 > {most}") for most in range(39, 1, -1)]
    openai_server.script(*steps, repeat="last")
    judge = DecisionModelJudge(
        "m", api_base=openai_server.api_base, max_retries=1, retry_min_wait=0, retry_max_wait=0
    )
    data = dataset(1, criteria=20)
    report = data.get_item_rubric(0).grade_sync("A text.", CriterionGrader(judges=[judge]))
    assert {vote.status for one in report.report for vote in one.votes} == {"failed"}
    assert len(openai_server.log()) <= 20 * 6


def test_a_repeated_request_waits(openai_server: OpenAIServer) -> None:
    """Also after a reply that could not be read."""
    openai_server.script(UNREADABLE, repeat="last")

    async def ask() -> float:
        async with LLMClient(config(openai_server)) as client:
            began = time.monotonic()
            with pytest.raises(JudgeError):
                await client.generate("", "hi", _Verdict)
            return time.monotonic() - began

    seconds = asyncio.run(ask())
    assert len(openai_server.log()) == 3
    # 3 ms before each.
    assert seconds >= 0.006
