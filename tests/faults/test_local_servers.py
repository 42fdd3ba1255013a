"""Servers on the user's own machine, which take all requests and answer a few at a time."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from autorubric.llm.local_window import LocalServer
from autorubric.llm.names import is_local
from autorubric.llm.rate_limits import Limiter, RequestGate, RequestLimits, Traffic
from tests.faults.runs import config, dataset, run, votes_of
from tests.servers.fixtures import OpenAIServer
from tests.simulated import VirtualLoop

MAIN = "from autorubric.cli import main; main()"
MET = {"do": "answer", "payload": {"reason": "It does.", "verdict": "MET"}}


@pytest.mark.parametrize(
    ("model", "api_base", "local"),
    [
        ("openai/m", "http://localhost:8080/v1", True),
        ("openai/m", "http://127.0.0.2:8080/v1", True),
        ("openai/m", "http://[::1]:8080/v1", True),
        ("ollama/qwen3:8b", None, True),
        ("llama_cpp/m", "http://gpu.example.com/v1", True),
        ("lm_studio/m", None, True),
        ("hosted_vllm/m", "http://10.0.0.7:8000/v1", True),
        ("openai/m", "https://gateway.example.com/v1", False),
        ("litellm_proxy/m", "https://gateway.example.com/v1", False),
        ("gpt-6-luna", None, False),
    ],
)
def test_local_servers_are_known_by_address_or_prefix(model: str, api_base: str | None, local: bool) -> None:
    """Loopback addresses, and prefixes of servers that users run themselves."""
    assert is_local(model, api_base) is local


class Slots:
    """A server with slots in virtual time: requests beyond them wait in line."""

    def __init__(self, slots: int, seconds: Callable[[], float]) -> None:
        self.slots = asyncio.Semaphore(slots)
        self.seconds = seconds
        self.running = 0
        self.seen: list[int] = []  # requests at the server when one arrives, itself included
        self.times: list[float] = []

    async def answer(self, gate: RequestGate, limit: float) -> bool:
        """Sends one request; returns whether it was answered in time."""
        async with gate.slot() as slot:
            self.running += 1
            self.seen.append(self.running)
            try:
                async with asyncio.timeout(limit), self.slots:
                    await asyncio.sleep(self.seconds())
            except TimeoutError:
                slot.timed_out()
                return False
            finally:
                self.running -= 1
                self.times.append(asyncio.get_running_loop().time())
        return True


def simulate(
    slots: int, seconds: float | Iterator[float], count: int, *, first: bool = True, **local: Any
) -> Slots:
    """What a server sees of requests that all come at once, after one that comes alone."""
    loop = VirtualLoop()
    limits = RequestLimits(parallel=local.get("parallel", 512), local=LocalServer(**local))

    async def main() -> Slots:
        times = repeat(seconds) if isinstance(seconds, float) else seconds
        server, gate = Slots(slots, times.__next__), Limiter(limits, Traffic(), clock=loop.time)
        if first:
            await server.answer(gate, local["timeout"])
        answered = await asyncio.gather(*(server.answer(gate, local["timeout"]) for _ in range(count)))
        assert all(answered)
        return server

    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_server_that_answers_as_fast_gets_all_at_once_soon() -> None:
    """Two at first; with 0.2 s an answer, the whole window is reached within two seconds."""
    server = simulate(10_000, 0.2, 4000, timeout=60.0, is_timeout_set=False)
    assert server.seen[:3] == [1, 1, 2]
    assert max(server.seen) == 512
    assert server.times[server.seen.index(512)] < 2.4


@pytest.mark.parametrize("first", [True, False])
def test_one_slot_is_given_few_requests(first: bool) -> None:
    """With one slot, requests hardly wait at the server, and none waits as long as the limit."""
    server = simulate(1, 0.2, 79, first=first, timeout=2.0, is_timeout_set=True)
    assert len(server.seen) == 79 + first
    assert max(server.seen) <= 4


def test_several_slots_are_used() -> None:
    """All slots are busy, and at most as many requests wait."""
    server = simulate(16, 0.2, 1600, timeout=60.0, is_timeout_set=False)
    assert 16 <= max(server.seen) <= 32
    assert server.times[-1] < 1.2 * 0.2 * 1600 / 16


def test_a_slow_first_answer_gives_one_request_at_a_time() -> None:
    """Where two at a time might take half of the limit, there is one."""
    server = simulate(1, 0.7, 20, timeout=2.0, is_timeout_set=True)
    assert max(server.seen) == 1


def test_a_fast_first_answer_does_not_hold_back_the_others() -> None:
    """The first request is a short one, so its time says little about that of the others."""
    server = simulate(10_000, chain([0.2], repeat(0.8)), 400, timeout=60.0, is_timeout_set=False)
    assert server.times[-1] < 10.0


@pytest.mark.parametrize("seed", range(5))
def test_times_that_vary_do_not_hold_back_the_others(seed: int) -> None:
    """A round that is fast by chance is not compared with for ever."""
    rng = random.Random(seed)
    seconds = iter(lambda: rng.uniform(0.3, 2.1), None)
    server = simulate(10_000, seconds, 400, timeout=60.0, is_timeout_set=False)
    assert server.times[-1] < 80.0


def test_max_parallel_is_where_the_window_starts() -> None:
    """A user who knows the server need not wait for the doubling."""
    server = simulate(10_000, 0.2, 100, first=False, timeout=60.0, is_timeout_set=False, parallel=64)
    assert server.seen[:64] == list(range(1, 65))
    assert max(server.seen) == 64


def test_time_outs_halve_the_window() -> None:
    """Eight at a time that time out become four, two and one; then the server keeps up."""
    loop = VirtualLoop()

    async def main() -> tuple[Counter[bool], list[int]]:
        limits = RequestLimits(parallel=8, local=LocalServer(1.0, True, 8))
        server, gate = Slots(1, lambda: 0.4), Limiter(limits, Traffic(), clock=loop.time)
        told = await asyncio.gather(*(server.answer(gate, 1.0) for _ in range(60)))
        return Counter(told), server.seen

    try:
        told, seen = loop.run_until_complete(main())
    finally:
        loop.close()
    assert max(seen) == 8
    assert max(seen[20:]) <= 2
    assert told[False] <= 14


def test_a_server_that_does_not_answer_stops_the_run(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """After five time-outs in a row with one request in flight, with one message that says what to do."""
    openai_server.script({"do": "hang", "seconds": 30}, repeat="last")
    result = run(tmp_path, [config(openai_server, timeout=0.1, retry_max_wait=0.05)], dataset(40))
    assert result.stopped == "same_error"
    [told] = [one for one in result.notices if "stopped" in one]
    assert "5 time-outs in a row with one request in flight. Increase --timeout (timeout)" in told
    # Two in flight time out together, and five alone; the stop is seen by those that wait.
    assert 6 <= len(openai_server.log()) <= 9


def test_the_default_time_limit_follows_the_first_answer() -> None:
    """Ten times its seconds, if the user set none; never less than the default."""
    assert LocalServer(60.0, False).time_limit(20.0) == 200.0
    assert LocalServer(60.0, False).time_limit(0.2) == 60.0
    assert LocalServer(2.0, True).time_limit(20.0) == 2.0


@pytest.mark.parametrize(
    ("items", "seconds", "limit"), [(4, 0.05, 2.0), pytest.param(16, 0.2, 2.0, marks=pytest.mark.slow)]
)
def test_a_server_with_one_slot_loses_nothing(
    items: int, seconds: float, limit: float, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """By the command line: every verdict is answered, with at most 1.1 requests a verdict."""
    openai_server.script({**MET, "seconds": seconds, "slots": 1}, repeat="last")
    dataset(items).to_file(tmp_path / "data.json")
    command = [sys.executable, "-c", MAIN, "eval", "data.json", "--judge", "llama_cpp/m"]
    command += ["--api-base", openai_server.api_base, "--timeout", str(limit), "--name", "r", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=True)
    verdicts = json.loads(done.stdout)["verdicts"]
    assert (verdicts["asked"], verdicts["answered"]) == (5 * items, 5 * items)
    assert len(openai_server.log()) <= 1.1 * 5 * items


def test_latency_begins_when_a_request_is_sent(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """With one request in flight latencies do not overlap; the time in line is the wait."""
    openai_server.script({**MET, "seconds": 0.02}, repeat="last")
    result = run(tmp_path, [config(openai_server, max_parallel_requests=1)], dataset(4))
    votes = votes_of(result)
    assert len(votes) == 20
    took = sum(vote.latency_seconds or 0.0 for vote in votes)
    assert 20 * 0.02 <= took <= result.timing_stats.total_duration_seconds
    assert max(vote.wait_seconds for vote in votes) > 10 * 0.02
    assert sum(vote.wait_seconds for vote in votes) > took


def test_latency_excludes_earlier_requests(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A vote that is answered after retries has the time of the last request, and the rest is the wait."""
    failed = {"do": "status", "status": 500}
    openai_server.script(failed, failed, MET)
    judge = config(openai_server, retry_min_wait=0.3, retry_max_wait=0.3)
    [vote] = votes_of(run(tmp_path, [judge], dataset(1, criteria=1)))
    assert vote.latency_seconds is not None
    assert vote.wait_seconds >= 0.6
