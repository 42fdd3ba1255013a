"""`autorubric eval --batch` on the command line."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer


def _arguments(dataset: str, server: OpenAIServer, *more: str) -> list[str]:
    named = ["--judge", "m", "--api-base", server.api_base, "--name", "one"]
    return ["eval", dataset, *named, *more]


def test_the_same_command_collects(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """The first command submits and exits with 4, the second finishes with 0; no test request is sent."""
    arguments = _arguments(dataset, openai_server, "--batch")
    first = cli(*arguments)
    assert first.code == 4, first.err
    assert "requests outstanding (batches: 1)" in " ".join(first.out.split())
    assert "To collect the replies, run the same command" in first.err
    done = cli(*arguments, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["stopped"] is None
    assert openai_server.log() == []


def test_a_limit_is_that_of_all_batches(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """The same command sends no more; a higher limit does."""
    arguments = _arguments(dataset, openai_server, "--batch", "--max-calls")
    stopped = cli(*arguments, "2")
    assert stopped.code == 130
    assert "; to send more requests, increase --max-calls" in stopped.err
    assert [size for _, _, size in openai_server.batches()["batches"]] == [2]
    assert cli(*arguments, "2").code == 130
    assert cli(*arguments, "12").code == 4
    assert cli(*arguments, "12").code == 0


def test_a_dry_run_shows_the_price_in_batches(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """The wait is stated, and a price that is unknown is unknown in batches too."""
    told = cli(*_arguments(dataset, openai_server, "--batch", "--dry-run"))
    assert told.code == 0
    assert "In batches: unknown" in told.out
    assert "24 hours" in told.out
    assert not openai_server.batches()["batches"]


def test_batches_are_not_asked_for_twice(cli: Cli, dataset: str, openai_server: OpenAIServer) -> None:
    """Without the flag, the run is refused with the flags that continue it; `--finish-direct` ends it."""
    cli(*_arguments(dataset, openai_server, "--batch"))
    refused = cli(*_arguments(dataset, openai_server, "--no-preflight"))
    assert refused.code == 2
    assert "--batch" in refused.err
    assert cli(*_arguments(dataset, openai_server, "--finish-direct")).code == 0


def test_shards_that_wait_for_batches_are_not_merged(
    cli: Cli, dataset: str, openai_server: OpenAIServer
) -> None:
    """The merged run would have no batches, and pay for the same replies again."""
    shard = ["--batch", "--shard", "0/2"]
    assert cli(*_arguments(dataset, openai_server, *shard)).code == 4
    merge = ["merge", "experiments/one-0-of-2", "--out", "experiments/whole"]
    refused = cli(*merge)
    assert refused.code == 2
    assert "collect them first" in refused.err
    assert cli(*_arguments(dataset, openai_server, *shard)).code == 0
    assert cli(*merge).code == 0


def test_without_a_key_no_vote_fails(cli: Cli, dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request could be sent, so the run stops with what to do, and can be resumed with a key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    stopped = cli("eval", dataset, "--judge", "gpt-6-luna", "--name", "one", "--batch")
    assert stopped.code == 3
    assert "set OPENAI_API_KEY" in stopped.err
    assert "lost" not in stopped.out
