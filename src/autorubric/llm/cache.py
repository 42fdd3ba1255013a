"""Reply cache on disk: SQLite, values as JSON, keyed on the whole request.

The cache never makes a run fail: if the folder cannot be written, the file is damaged or the disk is full,
it issues a warning and the run continues without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from autorubric.errors import TokenUsage
from autorubric.llm.transport import ModelReply, ModelRequest, Token
from autorubric.support.objects import Json

CACHE_FORMAT: Final = 1
"""Version of the cache format; part of the file name and of every key."""

_DEFAULT_BOUND: Final = 1 << 30
_TOUCH_SECONDS: Final = 60.0
"""Minimum seconds between updates of an entry's last use, so that reads rarely write."""
_EVICTED_AT_ONCE: Final = 256
_OPENINGS: Final = 3
"""Attempts to open the file: other processes that repair it at the same time may make the first ones fail."""
_ROW_BYTES: Final = 150
"""Approximate bytes of a row in addition to its body."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, body TEXT NOT NULL, size INTEGER NOT NULL, created REAL NOT NULL, used REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replies_by_use ON replies (used, size);
CREATE TABLE IF NOT EXISTS total (one INTEGER PRIMARY KEY CHECK (one = 1), entries INTEGER, size INTEGER);
INSERT OR IGNORE INTO total VALUES (1, 0, 0);
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON replies
    BEGIN UPDATE total SET entries = entries + 1, size = size + NEW.size; END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON replies
    BEGIN UPDATE total SET entries = entries - 1, size = size - OLD.size; END;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """Contents and hit counts of a cache."""

    path: str = ""  # path of the cache file; empty if there is no cache
    entries: int = 0  # number of cached replies
    size_bytes: int = 0  # approximate size of the cached replies in bytes
    max_bytes: int = 0  # size in bytes above which the least recently used replies are removed
    hits: int = 0  # number of lookups by this client that found a reply
    misses: int = 0  # number of lookups by this client that found no reply

    def to_dict(self) -> dict[str, Json]:
        """Return the statistics as a dict."""
        return asdict(self)


def cache_key(request: ModelRequest, endpoint: Mapping[str, Json]) -> str:
    """Return the SHA-256 of everything that a reply depends on, as canonical JSON."""
    schema = request.schema
    whole = {
        "format": CACHE_FORMAT,
        "endpoint": dict(endpoint),
        "model": request.model,
        "messages": [
            [message.role, message.content, *(one.sha256 or one.url for one in message.images)]
            for message in request.messages
        ],
        "schema": [schema.name, dict(schema.schema), schema.strict] if schema else None,
        "sample": request.sample,
        "params": dict(request.params),
    }
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class ReplyCache:
    """An on-disk reply cache, shared by threads and processes; the file is opened on first use."""

    def __init__(
        self,
        folder: str | Path,
        *,
        ttl: float | None = None,  # seconds for which a reply is valid
        max_bytes: int = _DEFAULT_BOUND,  # above it, the least recently used replies are removed
        busy_seconds: float = 1.0,  # to wait while another process writes, before a reply is not cached
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(folder).expanduser() / f"replies.v{CACHE_FORMAT}.sqlite3"
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._busy_milliseconds = round(1000 * busy_seconds)
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._opened: tuple[int, int] | None = None
        self._gave_up = self._stopped_writing = False
        self._hits = self._misses = 0

    def get(self, key: str) -> ModelReply | None:
        """Return the reply cached under the key, with a cost of 0, or None if it is missing or expired."""
        row: tuple[str, float, float] | None = None
        with self._database() as database:
            if database is not None:
                found = database.execute("SELECT body, created, used FROM replies WHERE key = ?", (key,))
                kept = found.fetchone()
                if kept is not None:
                    _demand_numbers(*kept[1:])
                    row = kept
                now = self._clock()
                if row and now - row[2] > _TOUCH_SECONDS and not self._stopped_writing:
                    database.execute("UPDATE replies SET used = ? WHERE key = ?", (now, key))
        is_old = row and self._ttl is not None and self._clock() - row[1] > self._ttl
        reply = _from_json(row[0]) if row and not is_old else None
        self._hits += reply is not None
        self._misses += reply is None
        return reply

    def put(self, key: str, reply: ModelReply) -> None:
        """Store a reply under the key, unless the reply exceeds the maximum cache size."""
        body = _to_json(reply)
        size = len(body.encode("utf-8")) + _ROW_BYTES
        if size > self._max_bytes or self._stopped_writing:
            return
        now = self._clock()
        with self._database() as database:
            if database is not None:
                database.execute("BEGIN IMMEDIATE")
                database.execute("DELETE FROM replies WHERE key = ?", (key,))
                database.execute("INSERT INTO replies VALUES (?, ?, ?, ?, ?)", (key, body, size, now, now))
                self._evict(database)
                database.execute("COMMIT")

    def clear(self) -> int:
        removed = 0
        with self._database() as database:
            if database is not None:
                removed = database.execute("DELETE FROM replies").rowcount
                database.execute("VACUUM")
        return removed

    def stats(self) -> CacheStats:
        entries = size = 0
        with self._database() as database:
            if database is not None:
                entries, size = _total_of(database)
        return CacheStats(
            path=str(self.path),
            entries=entries,
            size_bytes=size,
            max_bytes=self._max_bytes,
            hits=self._hits,
            misses=self._misses,
        )

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _evict(self, database: sqlite3.Connection) -> None:
        _, size = _total_of(database)
        if size <= self._max_bytes:
            return
        # Slightly below the limit, so that not every new reply evicts another one.
        wanted = self._max_bytes * 99 // 100
        while size > wanted:
            found = database.execute("SELECT key FROM replies ORDER BY used LIMIT ?", (_EVICTED_AT_ONCE,))
            oldest = found.fetchall()
            if not oldest:
                break
            for row in oldest:
                if size > wanted:
                    database.execute("DELETE FROM replies WHERE key = ?", row)
                    _, size = _total_of(database)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the open database, or None if it is unavailable; database errors are handled here."""
        with self._lock:
            database = self._open()
            try:
                yield database
            except sqlite3.DatabaseError as error:
                self._recover(error)

    def _open(self) -> sqlite3.Connection | None:
        """Open the database and repair damage; if an error remains, disable the cache."""
        why = ""
        for _ in range(_OPENINGS):
            try:
                return self._connect()
            except sqlite3.DatabaseError as error:
                why = "" if _is_busy(error) else str(error)
                if _is_damage(error):
                    self._set_aside(error)
            except OSError as error:
                why = f"{error.strerror}: {self.path.parent}"
        if why:
            self._give_up(why)
        return None

    def _connect(self) -> sqlite3.Connection | None:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        if self._gave_up:
            return None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._opened = _identity_of(self.path)
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout = {self._busy_milliseconds}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        # A connection inherited through a fork belongs to the parent: it is dropped, not closed.
        self._connection, self._process = connection, os.getpid()
        self._opened = _identity_of(self.path)
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None

    def _recover(self, error: sqlite3.DatabaseError) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        if _is_damage(error):
            self._set_aside(error)
        elif not _is_busy(error) and not self._stopped_writing:
            self._stopped_writing = True
            _warn(f"the reply cache {self.path} cannot be written ({error}); it is read-only from now on")

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        self._disconnect()
        if self._opened != _identity_of(self.path):
            # Another process was faster, and there is already a new file.
            return
        kept = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        try:
            for suffix in ("", "-wal", "-shm"):
                part = self.path.with_name(self.path.name + suffix)
                if part.exists():
                    part.replace(kept.with_name(kept.name + suffix))
        except FileNotFoundError:
            # Another process was faster in this very moment.
            return
        except OSError as fault:
            self._give_up(f"{error}, and the file cannot be renamed: {fault.strerror}")
        else:
            _warn(f"the reply cache {self.path} is damaged ({error}); it was renamed to {kept.name}")

    def _give_up(self, why: str) -> None:
        if not self._gave_up:
            self._gave_up = True
            self._disconnect()
            _warn(f"the reply cache {self.path} cannot be used ({why}); the run continues without it")


def _code_of(error: sqlite3.DatabaseError) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return _code_of(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    return _code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _total_of(database: sqlite3.Connection) -> tuple[int, int]:
    found: Any = database.execute("SELECT entries, size FROM total").fetchone() or (None, None)
    _demand_numbers(*found)
    return found[0], found[1]


def _demand_numbers(*values: object) -> None:
    """Check that values are numbers: SQLite checks no types, so a damaged file may contain anything."""
    if not all(isinstance(value, int | float) for value in values):
        raise sqlite3.DatabaseError("a numeric value is missing")


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=5)


def _to_json(reply: ModelReply) -> str:
    fields = reply._asdict()
    del fields["cached"], fields["reasoning_field"]
    fields["usage"] = None if reply.usage is None else asdict(reply.usage)
    return json.dumps(fields, separators=(",", ":"))


def _from_json(body: str) -> ModelReply | None:
    try:
        fields = json.loads(body)
        usage = fields.pop("usage")
        fields |= {"cost": 0.0, "cached": True, "dropped_params": tuple(fields["dropped_params"])}
        # Tokens of older versions are pairs.
        fields["tokens"] = tuple(
            Token(one[0], one[1], tuple((text, logprob) for top in one[2:] for text, logprob in top))
            for one in fields["tokens"]
        )
        return ModelReply(**fields, usage=TokenUsage(**usage) if usage else None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
