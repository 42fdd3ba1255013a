"""Providers that allow so many requests a second, or at a time, and do not say so, over real HTTP.

What exactly is wasted, and how much of what is allowed is used, is measured in virtual time
(`tests/llm/test_unannounced_limits.py`): here it would tell of the machine.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.runs import config, dataset, run, votes_of
from tests.servers.fixtures import OpenAIServer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "items", "most"),
    [
        pytest.param({"parallel": 16, "seconds": 0.02}, 30, 1.25, id="16 at a time"),
        pytest.param({"parallel": 16, "seconds": 0.02, "retry_after": "1"}, 30, 1.25, id="16, Retry-After"),
        # What was sent in a second comes at once after a pause of the machine, and is too much then.
        pytest.param({"per_second": 30, "burst": 30, "seconds": 0.05}, 12, 4.0, id="30 a second"),
        pytest.param({"per_second": 30, "seconds": 0.05, "retry_after": "1"}, 12, 4.0, id="30, Retry-After"),
    ],
)
def test_limits_are_learnt_and_shared_by_all_judges(
    limits: dict[str, Any], items: int, most: float, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Two judges on one endpoint lose no verdict, and waste few calls on the second half of them."""
    openai_server.trouble(**limits)
    # The waits are those of a user who set none.
    judges = [config(openai_server, model, retry_min_wait=1.0) for model in ("one", "two")]
    result = run(tmp_path, judges, dataset(items, criteria=4))
    assert len(votes_of(result)) == 8 * items
    assert "failed" not in Counter(vote.status for vote in votes_of(result))
    names = [name for _, name, _ in openai_server.outcomes()]
    answered = [at for at, name in enumerate(names) if name == "answered"]
    assert len(answered) == 8 * items
    late = len(names) - answered[4 * items]
    assert late <= most * 4 * items


def test_a_provider_that_turns_requests_away_at_random_is_not_given_up(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Where rejections do not depend on the pace, every verdict comes all the same."""
    openai_server.trouble(faults={"429": {"share": 0.3, "do": "status", "status": 429}}, seconds=0.01)
    result = run(tmp_path, [config(openai_server)], dataset(60))
    assert "failed" not in Counter(vote.status for vote in votes_of(result))
    assert Counter(name for _, name, _ in openai_server.outcomes())["answered"] == 300
