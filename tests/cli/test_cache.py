"""`autorubric cache`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.servers.fixtures import OpenAIServer


def test_looking_at_no_cache_makes_none(cli: Cli) -> None:
    """Where there is no cache, both commands say so and leave the folder alone."""
    assert cli("cache", "stats", "--json").json == {
        "path": ".autorubric_cache",
        "entries": 0,
        "size_bytes": 0,
        "max_bytes": 0,
    }
    assert cli("cache", "clear", "--json").json == {"path": ".autorubric_cache", "removed": 0}
    assert not Path(".autorubric_cache").exists()


def test_replies_are_kept_counted_and_removed(cli: Cli, rubric: str, openai_server: OpenAIServer) -> None:
    """Graded twice with a cache, a model is asked once; the cache can be counted and emptied."""
    call = ("grade", "Paris.", "--rubric", rubric, "--judge", "hosted_vllm/m1", "--cache-dir", "kept")
    first = cli(*call, "--api-base", openai_server.api_base, "--json")
    asked = len(openai_server.log())
    again = cli(*call, "--api-base", openai_server.api_base, "--json")
    assert (first.code, again.code) == (0, 0)
    assert len(openai_server.log()) == asked == 3
    assert again.json["score"] == first.json["score"]
    stats = cli("cache", "stats", "--cache-dir", "kept", "--json").json
    assert stats["entries"] == 3
    assert stats["size_bytes"] > 0
    shown = cli("cache", "stats", "--cache-dir", "kept")
    assert "entries" in shown.out
    cleared = cli("cache", "clear", "--cache-dir", "kept")
    assert "Removed 3 replies" in cleared.err
    assert cli("cache", "clear", "--cache-dir", "kept", "--json").json["removed"] == 0


def test_a_damaged_cache_is_told_without_its_place_in_the_code(
    cli: Cli, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """A warning of the library is a plain line on stderr."""
    from autorubric.llm.cache import ReplyCache

    path = ReplyCache("kept").path
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1000)
    done = cli("cache", "stats", "--cache-dir", "kept")
    assert done.code == 0
    assert "Warning: the reply cache" in done.err
    assert ".py" not in done.err
