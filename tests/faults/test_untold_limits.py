"""Providers that allow so many requests a second, or at a time, and do not say so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.runs import config, dataset, run, votes_of
from tests.servers.fixtures import OpenAIServer

LEARNING = 2.0
"""Seconds after which the limits are known."""


@pytest.mark.parametrize(
    ("limits", "items", "allowed"),
    [
        pytest.param({"parallel": 16, "seconds": 0.1}, 90, 160.0, id="16 at a time"),
        pytest.param({"parallel": 16, "seconds": 0.1, "retry_after": "1"}, 90, 160.0, id="16, Retry-After"),
        pytest.param({"per_second": 30, "burst": 30, "seconds": 0.05}, 30, 30.0, id="30 a second"),
        pytest.param({"per_second": 30, "seconds": 0.05, "retry_after": "1"}, 28, 30.0, id="30, Retry-After"),
    ],
)
def test_limits_are_learnt_and_shared_by_all_judges(
    limits: dict[str, Any], items: int, allowed: float, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """After two seconds two judges on one endpoint waste one call in twenty, and use what is allowed."""
    openai_server.trouble(**limits)
    # The waits are those of a user who set none.
    waits: dict[str, Any] = {"retry_min_wait": 1.0, "retry_max_wait": 60.0, "max_retries": 3, "timeout": 10.0}
    judges = [config(openai_server, model, **waits) for model in ("one", "two")]
    result = run(tmp_path, judges, dataset(items, criteria=4))
    assert len(votes_of(result)) == 8 * items
    assert "failed" not in Counter(vote.status for vote in votes_of(result))
    outcomes = openai_server.outcomes()
    late = [name for at, name, _ in outcomes if at > LEARNING]
    answered = Counter(late)["answered"]
    assert len(late) <= 1.05 * answered
    # How much exactly is for virtual time to say; a busy machine does less, and the last may wait alone.
    times = [at for at, name, _ in outcomes if name == "answered" and at > LEARNING]
    most = int(0.9 * len(times))
    assert most / (times[most] - LEARNING) >= 0.4 * allowed


def test_a_provider_that_turns_requests_away_at_random_is_not_given_up(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Where rejections do not depend on the pace, going slower is of no use, and is not gone on with."""
    share = {"429": {"share": 0.3, "do": "status", "status": 429}}
    openai_server.trouble(faults=share, seconds=0.01)
    result = run(tmp_path, [config(openai_server)], dataset(120))
    assert "failed" not in Counter(vote.status for vote in votes_of(result))
    assert openai_server.outcomes()[-1][0] < 30
