"""Runs in which a judge fails over and over with the same error: stopped, and resumed once that is fixed."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from autorubric import CriterionGrader, EvalResult, JudgeSpec, LLMConfig
from autorubric.errors import ModelNotFoundError
from autorubric.judges import JudgeRequest
from autorubric.runs.executor import RepeatedErrors
from autorubric.scoring import JudgeVote
from autorubric.scoring.votes import VoteCast
from tests.runs.runs import CountingJudge, run, small_dataset
from tests.servers.fixtures import OpenAIServer

MANY = [f"apple {number}" for number in range(200)]


def config(server: OpenAIServer, model: str = "m", **options: Any) -> LLMConfig:
    return LLMConfig(model=f"openai/{model}", api_base=server.api_base, **options)


def graded(folder: Path, *judges: Any, texts: list[str] = MANY, **options: Any) -> EvalResult:
    grader = CriterionGrader(judges=list(judges))
    return run(folder, None, small_dataset(*texts), grader=grader, **options)


def votes_in(folder: Path) -> int:
    return len((folder / "run" / "votes.jsonl").read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(("status", "error"), [(401, "AuthenticationError"), (404, "ModelNotFoundError")])
def test_a_run_that_only_fails_is_stopped_with_one_message(
    openai_server: OpenAIServer, tmp_path: Path, status: int, error: str
) -> None:
    """The notice says how many failed with which error, once; most requests are never sent."""
    openai_server.script({"do": "status", "status": status}, repeat="last")
    result = graded(tmp_path, config(openai_server, max_parallel_requests=4))
    assert result.stopped == "same_error"
    (notice,) = [notice for notice in result.notices if "same error" in notice]
    told = "stopped: all 5 judgments of judge 'openai/m' so far failed with the same error"
    assert notice.startswith(f"{told}: {error}: ")
    assert notice.count(f"HTTP {status}") == 1
    assert len(openai_server.log()) <= 12


def test_a_run_with_default_options_fails_after_a_few_requests(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Until a judge has answered, only two items are graded at a time, though 64 may be."""
    openai_server.script({"do": "status", "status": 401}, repeat="last")
    result = graded(tmp_path, config(openai_server))
    assert result.stopped == "same_error"
    assert len(openai_server.log()) <= 12


@pytest.mark.slow
def test_items_wait_for_slow_first_ones_for_seconds_at_most(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Without an answer, the others begin all the same."""
    openai_server.script({"do": "answer", "seconds": 5.0}, contains="apple 0", repeat="last")
    openai_server.script({"do": "answer", "seconds": 5.0}, contains="apple 1", repeat="last")
    result = graded(tmp_path, config(openai_server), texts=MANY[:10])
    assert result.stopped is None
    order = [str(entry["body"]["messages"]) for entry in openai_server.log()]
    assert "apple 9" in order[-1] or "apple 9" in order[-2]


def test_a_wrong_port_stops_a_run_at_once(tmp_path: Path) -> None:
    """With the waits of a user who set none: nothing is waited for where nobody ever listened."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        began = time.monotonic()
        result = graded(tmp_path, LLMConfig(model="openai/m", api_base=address))
    assert time.monotonic() - began < 3.0
    assert result.stopped == "same_error"
    assert "cannot connect to" in result.notices[-1]
    assert "check api_base and that the server is running" in result.notices[-1]


def test_what_was_answered_stays_and_only_the_rest_is_asked_later(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """One judge of a panel that always fails stops the run; the answers of the other are not paid again."""
    met = {"do": "answer", "payload": {"reason": "r", "verdict": "MET"}}
    openai_server.script(met, repeat="last")
    openai_server.script({"do": "status", "status": 401}, model="bad", repeat="last")
    judges = [
        JudgeSpec(config(openai_server, name, max_parallel_requests=4), name) for name in ("good", "bad")
    ]
    stopped = graded(tmp_path, *judges)
    assert stopped.stopped == "same_error"
    assert any("all 5 judgments of judge 'bad' so far failed" in notice for notice in stopped.notices)
    good = [seen["body"]["model"] for seen in openai_server.log()].count("good")
    assert 0 < good < 400
    openai_server.reset()
    openai_server.script(met, repeat="last")
    whole = graded(tmp_path, *judges)
    assert whole.stopped is None
    assert whole.successful_items == 200
    asked = [seen["body"]["model"] for seen in openai_server.log()]
    assert (asked.count("good"), asked.count("bad")) == (400 - good, 400)


def test_a_bug_in_a_judge_stops_a_run_after_five_items(tmp_path: Path) -> None:
    """Five items, since one alone may be what the judge trips over."""

    def faulty(request: JudgeRequest) -> str:
        raise AttributeError("no such thing")

    result = graded(tmp_path, faulty, max_concurrent_items=1)
    assert result.stopped == "same_error"
    assert "JudgeCodeError: judge 'faulty' raised AttributeError: no such thing" in result.notices[-1]
    assert votes_in(tmp_path) <= 12


def test_few_failures_and_failures_of_several_kinds_stop_nothing(tmp_path: Path) -> None:
    """Four in a row are no reason, nor are errors that pass."""
    judge = CountingJudge(down={f"i{number}" for number in range(20)})
    assert graded(tmp_path, judge, texts=MANY[:40]).stopped is None
    few = CountingJudge(judge_id="few")

    async def fails_at_first(request: JudgeRequest) -> Any:
        if request.item_id in ("i0", "i1"):
            raise ModelNotFoundError("still loading")
        return await few.ask(request)

    options: dict[str, Any] = {"experiment_name": "few", "max_concurrent_items": 1}
    assert graded(tmp_path, fails_at_first, texts=MANY[:10], **options).stopped is None


class Watch:
    """Votes of one judge in a time that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.said: list[str] = []
        self.errors = RepeatedErrors(self.said.append, clock=lambda: self.now)

    def vote(self, error: str = "", *, item: str = "i", seconds: float = 0.0, judge: str = "j") -> None:
        vote = JudgeVote(
            judge_id=judge,
            sample=0,
            status="failed" if error else "answered",
            error=error or None,
            latency_seconds=seconds,
        )
        self.errors.add(VoteCast(item, "c", vote))


def test_requests_that_broke_together_count_once_after_an_answer() -> None:
    """Hundreds in flight at a restart of the server stop nothing; five tries one after the other do."""
    watch = Watch()
    watch.vote()
    for _ in range(300):
        watch.vote("ProviderConnectionError: gone", seconds=9.0)
    assert watch.said == []
    for _ in range(4):
        watch.now += 10.0
        watch.vote("ProviderConnectionError: gone", seconds=9.0)
    assert watch.said == [
        "the last 5 judgments of judge 'j' failed with the same error: ProviderConnectionError: gone"
    ]


def test_an_answer_in_between_begins_the_count_again() -> None:
    """And each judge has its own count."""
    watch = Watch()
    for _ in range(3):
        for _ in range(4):
            watch.vote("AuthenticationError: no key")
            watch.vote("AuthenticationError: no key", judge="other" if watch.said else "j2")
        watch.vote()
        watch.vote(judge="j2")
    assert watch.said == []


def test_refused_requests_count_once_an_item() -> None:
    """A text that a provider refuses under every criterion stops nothing; five texts in a row do."""
    watch = Watch()
    for _ in range(20):
        watch.vote("RequestRefusedError: bad request", item="one")
    assert watch.said == []
    for number in range(4):
        watch.vote("RequestRefusedError: bad request", item=f"other {number}")
    assert len(watch.said) == 1


def test_numbers_in_messages_make_no_difference() -> None:
    """Ids and times of requests are not part of the error."""
    watch = Watch()
    for number in range(5):
        watch.vote(f"AuthenticationError: no key (request req_{number}f3, 0.{number} s)")
    assert len(watch.said) == 1


def test_a_provider_that_is_closed_for_longer_than_the_patience_stops_the_run(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Every call fails with the header's value, so that the run ends with it."""
    step = {"do": "status", "status": 429, "headers": {"Retry-After": "7200"}}
    openai_server.script(step, repeat="last")
    result = graded(tmp_path, config(openai_server, max_parallel_requests=4))
    assert result.stopped == "same_error"
    assert "Retry-After asks to wait 7200 s" in result.notices[-1]
    assert len(openai_server.log()) <= 12
