"""Hits per second of the reply cache, and of votes read from it: `python -m benchmarks.cache`."""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from autorubric.errors import TokenUsage
from autorubric.llm import LLMClient, LLMConfig, ModelReply, ModelRequest
from autorubric.llm.cache import ReplyCache, cache_key
from autorubric.llm.transport import Message, ReplySchema
from benchmarks._output import markdown, print_results

_ENDPOINT = {"api_base": "http://127.0.0.1/v1", "transport": "openai_compatible", "headers": {}}
_TEXT = "The river rose by a third in the week, and the stations gave a measured account. " * 15
_SCHEMA = ReplySchema(
    name="evaluation",
    schema={
        "type": "object",
        "properties": {"reason": {"type": "string"}, "verdict": {"enum": ["MET", "UNMET"]}},
        "required": ["reason", "verdict"],
        "additionalProperties": False,
    },
)
_REPLY = ModelReply(
    text='{"reason": "The text says so in its second sentence.", "verdict": "MET"}',
    model="judge",
    usage=TokenUsage(prompt_tokens=600, completion_tokens=30, total_tokens=630),
)


def _request(number: int) -> ModelRequest:
    messages = (
        Message(role="system", content="You judge texts. " * 40),
        Message(role="user", content=f"{number}\n{_TEXT}"),
    )
    return ModelRequest(model="openai/judge", messages=messages, schema=_SCHEMA, params={"temperature": 0.0})


def measure(hits: int, repetitions: int) -> list[dict[str, Any]]:
    """Return hits per second: medians of repetitions that alternate between the cases."""
    requests = [_request(number) for number in range(hits)]
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "bare SQLite, one lookup": _bare(Path(folder) / "bare.sqlite3", requests),
            "cache, key known": _by_key(Path(folder), requests),
            "cache, key of the whole request": _by_request(Path(folder), requests),
            "client, request and parsing": _by_client(Path(folder), requests),
        }
        times: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(repetitions + 1):
            for name, case in cases.items():
                started = time.process_time()
                case()
                times[name].append(time.process_time() - started)
    rates = {name: hits / statistics.median(taken[1:]) for name, taken in times.items()}
    bare = next(iter(rates.values()))
    return [
        {"case": name, "hits": hits, "repetitions": repetitions, "rate": rate, "times_bare": bare / rate}
        for name, rate in rates.items()
    ]


def _bare(path: Path, requests: Sequence[ModelRequest]) -> Callable[[], None]:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID")
    keys = [cache_key(request, _ENDPOINT) for request in requests]
    database.execute("BEGIN")
    database.executemany("INSERT INTO replies VALUES (?, ?)", [(key, _REPLY.text * 4) for key in keys])
    database.execute("COMMIT")

    def look_up() -> None:
        for key in keys:
            assert database.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchone()

    return look_up


def _fill_cache(folder: Path, requests: Sequence[ModelRequest]) -> ReplyCache:
    cache = ReplyCache(folder / "cache")
    for request in requests:
        cache.put(cache_key(request, _ENDPOINT), _REPLY)
    return cache


def _by_key(folder: Path, requests: Sequence[ModelRequest]) -> Callable[[], None]:
    cache = _fill_cache(folder, requests)
    keys = [cache_key(request, _ENDPOINT) for request in requests]

    def look_up() -> None:
        for key in keys:
            assert cache.get(key)

    return look_up


def _by_request(folder: Path, requests: Sequence[ModelRequest]) -> Callable[[], None]:
    cache = ReplyCache(folder / "cache")

    def look_up() -> None:
        for request in requests:
            assert cache.get(cache_key(request, _ENDPOINT))

    return look_up


class _Answers:
    """A transport that answers immediately, to fill the client's cache."""

    async def send(self, request: ModelRequest) -> ModelReply:
        return _REPLY

    async def aclose(self) -> None:
        """Do nothing; nothing is open."""


def _by_client(folder: Path, requests: Sequence[ModelRequest]) -> Callable[[], None]:
    config = LLMConfig(model="judge", cache_enabled=True, cache_dir=str(folder / "client"), temperature=0.0)
    client = LLMClient(config, transport=_Answers())

    async def ask() -> None:
        for request in requests:
            await client.ask(request.messages, read=lambda payload: payload, schema=request.schema)

    return lambda: asyncio.run(ask())


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    lines = [("case", "hits a CPU second", "CPU µs a hit", "times bare"), ("---", "--:", "--:", "--:")]
    for one in found:
        figures = (f"{one['rate']:,.0f}", f"{1e6 / one['rate']:.0f}", f"{one['times_bare']:.1f}")
        lines.append((one["case"], *figures))
    return markdown(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cache", description=__doc__)
    parser.add_argument(
        "--hits", type=int, default=10_000, help="number of different replies (default 10,000)"
    )
    parser.add_argument("--repetitions", type=int, default=5, help="number of repetitions (default 5)")
    parser.add_argument("--json", type=Path, help="file to which the figures are also written")
    given = parser.parse_args(argv)
    found = measure(given.hits, given.repetitions)
    print_results(table(found), found, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
