"""A provider that fails at every second request, by one seed: every verdict arrives, none is paid twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.runs import config, dataset, run, votes_of
from tests.servers.fixtures import OpenAIServer

SEED = 75
"""Of this seed no request meets four faults of a class, or hangs twice, which would take another time-out."""
UNLUCKY = (4,)
"""Of this one a request meets three errors of a class."""
MET = {"reason": "It says so.", "verdict": "MET"}
ENVELOPE = '{"id": "chatcmpl-1", "choices": [{"index": 0, "mess'
FAULTS: dict[str, dict[str, Any]] = {
    "429": {"share": 0.15, "do": "status", "status": 429},
    "429 with Retry-After": {"share": 0.15, "do": "status", "status": 429, "headers": {"Retry-After": "0.2"}},
    "500": {"share": 0.05, "do": "status", "status": 500},
    "reset": {"share": 0.05, "do": "reset"},
    "hang": {"share": 0.02, "do": "hang", "seconds": 30},
    "truncated body": {"share": 0.01, "do": "truncated"},
    "malformed body": {"share": 0.01, "do": "raw", "body": ENVELOPE},
    "malformed reply": {"share": 0.01, "do": "answer", "content": '{"verdict": MET, "reason": '},
    "empty reply": {"share": 0.01, "do": "answer", "content": ""},
    "truncated reply": {
        "share": 0.01,
        "do": "answer",
        "content": '```json\n{"reason": "It says so, and fur',
        "finish_reason": "length",
    },
}
"""Shares of all requests: 30 % 429, 5 % 500, 5 % resets, 2 % hangs, 5 % malformed or truncated JSON."""


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "items"), [("openai_compatible", 60), ("litellm", 12)])
def test_every_verdict_arrives_and_no_call_is_repeated_once_answered(
    transport: str, items: int, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """With retries as nobody set them; what is spent beyond a call a verdict is one for each fault."""
    openai_server.trouble(seed=SEED, faults=FAULTS, seconds=0.005, payload=MET)
    # With more at once, or in less time, a right answer could come too late on a busy machine.
    judge = config(openai_server, transport=transport, timeout=8.0, max_parallel_requests=64)
    result = run(tmp_path, [judge], dataset(items))

    verdicts = 5 * items
    assert [item.error for item in result.item_results] == [None] * items
    assert Counter(vote.status for vote in votes_of(result)) == {"answered": verdicts}
    stored = [json.loads(one) for one in (tmp_path / "run" / "votes.jsonl").open(encoding="utf-8")]
    assert len({(vote["item"], vote["criterion"]) for vote in stored}) == len(stored) == verdicts

    outcomes = openai_server.outcomes()
    seen = Counter(name for _, name, _ in outcomes)
    assert set(FAULTS) <= set(seen) or transport == "litellm"
    assert seen["answered"] == verdicts
    assert len(outcomes) - verdicts == sum(seen[fault] for fault in FAULTS)
    answered: set[str] = set()
    for _, name, body in outcomes:
        assert body not in answered
        if name == "answered" or "reply" in name:
            answered.add(body)


@pytest.mark.slow
@pytest.mark.parametrize("seed", UNLUCKY)
def test_a_request_that_used_up_its_tries_is_asked_once_more_at_the_end(
    seed: int, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A vote that failed while others came is cast again before the run ends."""
    openai_server.trouble(seed=seed, faults=FAULTS, seconds=0.005, payload=MET)
    judge = config(openai_server, timeout=8.0, max_parallel_requests=64, max_retries=2)
    result = run(tmp_path, [judge], dataset(60))
    assert Counter(vote.status for vote in votes_of(result)) == {"answered": 300}
    stored = [json.loads(one)["vote"] for one in (tmp_path / "run" / "votes.jsonl").open(encoding="utf-8")]
    assert {vote["status"] for vote in stored} == {"answered", "failed"}
    assert Counter(name for _, name, _ in openai_server.outcomes())["answered"] == 300


def test_the_faults_of_a_seed_do_not_depend_on_the_order_of_requests(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """One call at a time meets the same faults as many at a time."""
    seen = []
    for parallel in (1, 64):
        openai_server.trouble(seed=SEED, faults={"500": {"share": 0.3, "do": "status", "status": 500}})
        judge = config(openai_server, max_parallel_requests=parallel, retry_max_wait=0.02, max_retries=6)
        run(tmp_path / str(parallel), [judge], dataset(10))
        seen.append(sorted((name, body) for _, name, body in openai_server.outcomes()))
    assert seen[0] == seen[1]
