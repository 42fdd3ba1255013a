"""The reply cache: keys, bounds, damage, and several processes at once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autorubric.errors import TokenUsage
from autorubric.llm import ModelReply, ModelRequest
from autorubric.llm.cache import ReplyCache, cache_key
from autorubric.llm.transport import Message, ReplySchema

REQUEST = ModelRequest(
    model="m",
    messages=(Message(role="system", content="s"), Message(role="user", content="u \ud800 ü")),
    schema=ReplySchema(name="V", schema={"type": "object"}),
    params={"temperature": 0.5},
)
ENDPOINT = {"api_base": "http://h/v1", "headers": {}}
REPLY = ModelReply(
    text='{"a": "ü \ud800"}',
    model="m-1",
    usage=TokenUsage(prompt_tokens=3, completion_tokens=2, total_tokens=5),
    cost=0.25,
    reasoning="so",
    finish_reason="stop",
    dropped_params=("seed",),
)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_kept_reply_comes_back_free_of_charge(tmp_path: Path) -> None:
    """Everything of the reply is kept; its cost is zero now, and it says that it was cached."""
    cache = ReplyCache(tmp_path / "new" / "folder")
    assert cache.get("k") is None
    cache.put("k", REPLY)
    assert cache.get("k") == REPLY._replace(cost=0.0, cached=True)
    cache.put("k", REPLY._replace(usage=None, text="other"))
    kept = cache.get("k")
    assert kept is not None and (kept.text, kept.usage) == ("other", None)
    stats = cache.stats()
    assert (stats.entries, stats.hits, stats.misses) == (1, 2, 1)
    assert 0 < stats.size_bytes < 1000
    assert stats.path == str(cache.path) and cache.path.name == "replies.v1.sqlite3"
    assert stats.to_dict()["entries"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"messages": REQUEST.messages[:1]},
        {"messages": (Message(role="user", content="s"), REQUEST.messages[1])},
        {"messages": (REQUEST.messages[0], Message(role="user", content="u"))},
        {"schema": None},
        {"schema": ReplySchema(name="W", schema={"type": "object"})},
        {"schema": ReplySchema(name="V", schema={"type": "object", "title": "t"})},
        {"schema": ReplySchema(name="V", schema={"type": "object"}, strict=False)},
        {"sample": 1},
        {"params": {"temperature": 0.6}},
        {"params": {"temperature": 0.5, "seed": 1}},
    ],
)
def test_every_part_of_a_request_is_in_its_key(change: dict[str, Any]) -> None:
    """Requests that differ in anything that a reply depends on have different keys."""
    assert cache_key(REQUEST._replace(**change), ENDPOINT) != cache_key(REQUEST, ENDPOINT)


def test_the_endpoint_is_in_the_key_and_marks_for_prefixes_are_not() -> None:
    """Another address is another key; what only helps the provider's own cache is not."""
    key = cache_key(REQUEST, ENDPOINT)
    assert cache_key(REQUEST, {**ENDPOINT, "api_base": "http://other/v1"}) != key
    marked = tuple(message._replace(cache_prefix=1) for message in REQUEST.messages)
    assert cache_key(REQUEST._replace(messages=marked), ENDPOINT) == key
    one, other = (REQUEST._replace(params=params) for params in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert cache_key(one, ENDPOINT) == cache_key(other, ENDPOINT)
    assert len(key) == 64


def test_old_replies_no_longer_serve(tmp_path: Path) -> None:
    """A reply serves for as long as the time to live says; a clock that goes back makes none older."""
    clock = Clock()
    cache = ReplyCache(tmp_path, ttl=100.0, clock=clock)
    cache.put("k", REPLY)
    clock.now += 100.0
    assert cache.get("k") is not None
    clock.now += 1.0
    assert cache.get("k") is None
    clock.now -= 5000.0
    assert cache.get("k") is not None


def test_the_longest_unused_are_dropped_at_the_bound(tmp_path: Path) -> None:
    """The file's replies stay within the bound, and those used last stay."""
    clock = Clock()
    cache = ReplyCache(tmp_path, max_bytes=100_000, clock=clock)
    for number in range(400):
        clock.now += 100.0
        cache.put(f"k{number}", REPLY._replace(text="x" * 1000))
        assert cache.get("k0") is not None
    stats = cache.stats()
    assert 50 < stats.entries < 100
    assert stats.size_bytes <= 100_000
    assert cache.get("k399") is not None
    assert cache.get("k1") is None
    cache.put("huge", REPLY._replace(text="x" * 200_000))
    assert cache.get("huge") is None


def test_clearing_removes_all(tmp_path: Path) -> None:
    """Clearing says how many replies there were, and none is found afterwards."""
    cache = ReplyCache(tmp_path)
    for number in range(3):
        cache.put(str(number), REPLY)
    assert cache.clear() == 3
    assert cache.get("0") is None
    assert (cache.stats().entries, cache.stats().size_bytes) == (0, 0)
    cache.close()
    cache.close()
    assert cache.clear() == 0


def test_two_objects_share_one_file(tmp_path: Path) -> None:
    """What one keeps the other finds, while both are open."""
    first, second = ReplyCache(tmp_path), ReplyCache(tmp_path)
    assert second.get("k") is None
    first.put("k", REPLY)
    assert second.get("k") is not None
    assert second.stats().entries == 1


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: bytes) -> None:
    """A file that is no database is kept under another name, with a warning, and the cache goes on."""
    path = ReplyCache(tmp_path).path
    path.write_bytes(content)
    cache = ReplyCache(tmp_path)
    with pytest.warns(RuntimeWarning, match="is damaged .* it was renamed to replies.v1.sqlite3.damaged-"):
        assert cache.get("k") is None
    cache.put("k", REPLY)
    assert cache.get("k") is not None
    (aside,) = tmp_path.glob("*.damaged-*[0-9]")
    assert aside.read_bytes() == content


def test_damage_that_comes_later_is_set_aside_too(tmp_path: Path) -> None:
    """A table that is not as it should be counts as damage."""
    cache = ReplyCache(tmp_path)
    cache.put("k", REPLY)
    other = sqlite3.connect(cache.path)
    other.execute("DROP TABLE replies")
    other.commit()
    other.close()
    with pytest.warns(RuntimeWarning, match="renamed"):
        cache.put("k", REPLY)
    cache.put("k", REPLY)
    assert cache.get("k") is not None


@pytest.mark.parametrize(
    "damage", ["UPDATE total SET size = NULL", "DELETE FROM total", "UPDATE replies SET used = 'x'"]
)
def test_a_number_that_is_none_is_damage(tmp_path: Path, damage: str) -> None:
    """Where the file's pages are damaged, a column may hold anything; the cache goes on without it."""
    cache = ReplyCache(tmp_path)
    cache.put("k", REPLY)
    cache.close()
    other = sqlite3.connect(cache.path)
    other.execute(damage)
    if "DELETE" in damage:
        # So that it is not put back at the next opening.
        other.execute("CREATE TRIGGER gone AFTER INSERT ON total BEGIN DELETE FROM total; END")
    other.commit()
    other.close()
    with pytest.warns(RuntimeWarning, match="a numeric value is missing.*renamed"):
        found = cache.get("k"), cache.stats().entries
    assert None in found or 0 in found
    cache.put("k", REPLY)
    assert (cache.get("k") is not None, cache.stats().entries) == (True, 1)


def test_a_row_that_makes_no_sense_is_a_miss(tmp_path: Path) -> None:
    """A body that is not a kept reply is not trusted."""
    cache = ReplyCache(tmp_path)
    for body in (
        "[]",
        "{",
        "{}",
        '{"usage": null, "dropped_params": []}',
        '{"usage": 3, "dropped_params": []}',
        "[" * 100_000,
    ):
        cache.put("k", REPLY)
        other = sqlite3.connect(cache.path)
        other.execute("UPDATE replies SET body = ?", (body,))
        other.commit()
        other.close()
        assert cache.get("k") is None


def test_a_folder_that_cannot_be_made_is_warned_of_once(tmp_path: Path) -> None:
    """The run goes on without a cache where there is no place for it."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    cache = ReplyCache(tmp_path / "file" / "folder")
    with pytest.warns(RuntimeWarning, match="cannot be used .* the run continues without it") as warned:
        assert cache.get("k") is None
        cache.put("k", REPLY)
        assert cache.clear() == 0
        assert cache.stats().entries == 0
    assert len(warned) == 1


def test_a_path_that_is_a_folder_is_warned_of_once(tmp_path: Path) -> None:
    """Where the file cannot be opened the run continues without it."""
    cache = ReplyCache(tmp_path)
    cache.path.mkdir()
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert cache.get("k") is None
    assert cache.path.is_dir()


def test_a_full_disk_stops_writing_and_not_reading(tmp_path: Path) -> None:
    """What was kept is still found when nothing more can be kept."""
    cache = ReplyCache(tmp_path)
    cache.put("k", REPLY)
    with cache._lock:
        database = cache._connect()
        assert database is not None
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.warns(RuntimeWarning, match="full"):
        cache.put("large", REPLY._replace(text="x" * 100_000))
    assert cache.get("large") is None
    assert cache.get("k") is not None
    cache.put("large", REPLY._replace(text="x" * 100_000))
    assert cache.get("k") is not None


def test_a_locked_file_is_a_miss_and_no_error(tmp_path: Path) -> None:
    """While another process writes for long, replies are not kept and the run goes on."""
    cache = ReplyCache(tmp_path, busy_seconds=0.05)
    cache.put("k", REPLY)
    other = sqlite3.connect(cache.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache.put("l", REPLY)
    assert cache.get("k") is not None
    other.execute("ROLLBACK")
    other.close()
    assert cache.get("l") is None
    cache.put("l", REPLY)
    assert cache.get("l") is not None


def test_threads_share_one_object(tmp_path: Path) -> None:
    """Several threads may use one cache at once."""
    cache = ReplyCache(tmp_path)

    def work(name: str) -> None:
        for number in range(50):
            cache.put(f"{name}{number}", REPLY)
            assert cache.get(f"{name}{number}") is not None

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.stats().entries == 200


def test_processes_share_one_file(tmp_path: Path) -> None:
    """Several processes write and read one file at once, and nothing is lost."""
    program = (
        "import sys\n"
        "from autorubric.llm import ModelReply\n"
        "from autorubric.llm.cache import ReplyCache\n"
        "cache = ReplyCache(sys.argv[1], busy_seconds=120)\n"
        "for number in range(100):\n"
        "    cache.put(sys.argv[2] + str(number), ModelReply(text='x', model='m'))\n"
        "    assert cache.get(sys.argv[2] + str(number)) is not None\n"
    )
    # A reply that comes while somebody else makes the file is not kept.
    ReplyCache(tmp_path).put("first", REPLY)
    workers = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", program, str(tmp_path), name])
        for name in "abc"
    ]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0, 0]
    assert ReplyCache(tmp_path).stats().entries == 301


def test_a_file_of_another_format_is_ignored(tmp_path: Path) -> None:
    """The cache of another version stays where and as it is."""
    other = tmp_path / "replies.v0.sqlite3"
    other.write_bytes(b"from another time")
    cache = ReplyCache(tmp_path)
    cache.put("k", REPLY)
    assert cache.stats().entries == 1
    assert other.read_bytes() == b"from another time"


def test_a_hit_blocks_the_event_loop_for_microseconds(tmp_path: Path) -> None:
    """A lookup needs no thread: it takes no more than reading the row and its JSON, some times over."""
    cache = ReplyCache(tmp_path)
    for number in range(1000):
        cache.put(str(number), REPLY)
    plain = sqlite3.connect(cache.path)
    key = plain.execute("SELECT key FROM replies").fetchone()

    def bare(number: int) -> object:
        return json.loads(plain.execute("SELECT body FROM replies WHERE key = ?", key).fetchone()[0])

    def seconds(read: Callable[[int], object]) -> float:
        started = time.process_time()
        for number in range(1000):
            assert read(number) is not None
        return time.process_time() - started

    ours, theirs = (
        min(seconds(read) for _ in range(5)) for read in (lambda number: cache.get(str(number)), bare)
    )
    assert ours < 10 * theirs
    plain.close()


def test_values_are_json(tmp_path: Path) -> None:
    """What is kept can be read with nothing but SQLite and JSON."""
    cache = ReplyCache(tmp_path)
    cache.put("k", REPLY)
    (body,) = sqlite3.connect(cache.path).execute("SELECT body FROM replies").fetchone()
    assert json.loads(body)["text"] == REPLY.text
