"""Files of records with one line per id, to which a pass appends, and the other files that it writes.

Files of records are logs (`support.record_log`) whose lines have no checksums, because users and other tools
read and edit them. Ids are indexed in a temporary file, so that memory use does not grow with their number.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from autorubric.apps.drafts.drafts import draft_key, lines_of
from autorubric.errors import FileError, RunLockedError
from autorubric.support.objects import Json
from autorubric.support.record_log import AppendLog
from autorubric.support.write import FileLock, write_bytes_atomic, write_parts_atomic

_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class IndexEntry(NamedTuple):
    """What is indexed about the record of an id."""

    failed: bool
    digest: str | None  # of the draft; None if the record does not contain a digest


class RecordFile:
    """The records of one file by id. The last record of an id is valid; earlier records are swept out."""

    def __init__(self, path: Path, *, digest_key: str = "draft_hash") -> None:
        self.path = path
        self._digest_key = digest_key
        self.notices: list[str] = []
        self._superseded = 0
        self._log: AppendLog | None = None
        self._index = temporary_table("id TEXT PRIMARY KEY, offset INTEGER, failed INTEGER, digest TEXT")

    def open(self) -> None:
        """Open the file for appending, and read its records."""
        self._log = AppendLog(self.path, None, is_record=lambda line: _parse_record(line) is not None)
        if self._log.was_torn:
            self.notices.append(f"the incomplete last line of {self.path.name} was removed")
        self.read()

    def read(self) -> None:
        """Read the existing records without changing the file."""
        for number, offset, raw in _lines_of(self.path):
            record = _parse_record(raw)
            if record is None:
                self.notices.append(f"line {number} of {self.path.name} is corrupted and was skipped")
            else:
                self._add_entry(record, offset)

    def find(self, key: str) -> IndexEntry | None:
        """Return what is indexed about the record of an id; None if the id has no record."""
        row = self._index.execute("SELECT failed, digest FROM rows WHERE id = ?", (key,)).fetchone()
        return None if row is None else IndexEntry(bool(row[0]), row[1])

    def forget(self, key: str) -> None:
        """Ignore the record of an id from now on; the next `sweep` removes it from the file."""
        self._superseded += self._index.execute("DELETE FROM rows WHERE id = ?", (key,)).rowcount

    def append(self, record: Mapping[str, Json]) -> None:
        """Append a record and write it to the operating system."""
        assert self._log is not None
        line = _ENCODE(record)
        # Some readers treat these characters as line ends, so they are escaped.
        if not line.isascii():
            line = _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
        offset = self._log.append(line.encode("utf-8", "replace"))
        self._log.flush()
        self._add_entry(record, offset)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the valid record of every id, in the order of the file."""
        valid = (row[0] for row in self._index.execute("SELECT offset FROM rows ORDER BY offset"))
        following = next(valid, None)
        for _, offset, raw in _lines_of(self.path):
            if offset == following:
                following = next(valid, None)
                record = _parse_record(raw)
                if record is not None:
                    yield record

    def sweep(self, others: Sequence[RecordFile] = ()) -> None:
        """Remove records that were replaced by a later record in this file or in others, atomically."""
        keys = (row[0] for row in self._index.execute("SELECT id FROM rows"))
        elsewhere = {key for key in keys if any(other.find(key) for other in others)}
        if not self._superseded and not elsewhere:
            return
        self.close()
        lines = _lines_of(self.path)
        write_parts_atomic(self.path, (raw for _, at, raw in lines if self._is_kept(raw, at, elsewhere)))
        self._superseded = 0
        self._index.execute("DELETE FROM rows")
        self.open()

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _add_entry(self, record: Mapping[str, Any], offset: int) -> None:
        key = _key(record)
        row = (key, offset, contract_error(record) is not None, record.get(self._digest_key))
        if not self._index.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?)", row).rowcount:
            self._superseded += 1
            self._index.execute("REPLACE INTO rows VALUES (?, ?, ?, ?)", row)

    def _is_kept(self, raw: bytes, offset: int, elsewhere: Collection[str]) -> bool:
        record = _parse_record(raw)
        if record is None or _key(record) in elsewhere:
            return record is None
        row = self._index.execute("SELECT offset FROM rows WHERE id = ?", (_key(record),)).fetchone()
        return row is not None and bool(row[0] == offset)


def _lines_of(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Return number, offset and bytes of each non-blank line; nothing for a missing file."""
    return lines_of(path) if path.exists() else iter(())


def temporary_table(columns: str) -> sqlite3.Connection:
    """Return a database with the table `rows` by key, in a file that the system deletes with the process."""
    index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    index.execute("PRAGMA journal_mode=OFF")
    index.execute(f"CREATE TABLE rows ({columns}) WITHOUT ROWID")
    return index


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if missing, against other writing processes."""
    try:
        lock = FileLock(folder / ".critique.lock")
        if not lock.acquire():
            raise RunLockedError(f"another process is writing to {folder}; wait for it or use another folder")
        try:
            yield
        finally:
            lock.release()
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise FileError.whole(error.filename or folder, message) from error


def set_aside(paths: Iterable[Path]) -> list[str]:
    """Rename existing files to the first free name `….previous.…`, and return a notice for each."""
    notices = []
    for path in paths:
        if not path.exists() or path.stat().st_size == 0:
            continue
        numbers = ("", *(f"-{number}" for number in range(2, 1000)))
        names = (path.with_name(f"{path.stem}.previous{number}{path.suffix}") for number in numbers)
        aside = next((name for name in names if not name.exists()), None)
        if aside is None:
            raise FileExistsError(f"{path.parent} has too many earlier copies of {path.name}; move them away")
        path.replace(aside)
        notices.append(f"existing records were moved to {aside.name}")
    return notices


def write_json(path: Path, content: Mapping[str, Json]) -> None:
    """Write indented JSON to a file atomically."""
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    write_bytes_atomic(path, text.encode("utf-8", "replace"))


def contract_error(record: Mapping[str, Any]) -> Any:
    """Return the error in the record of a critique, with `code` and `message`; None if there is no error."""
    contract = record.get("critique_contract")
    return contract.get("error") if isinstance(contract, Mapping) else None


def _parse_record(raw: bytes) -> dict[str, Any] | None:
    """Return the record on a line; None if the line is not a valid record."""
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and draft_key(record.get("id")) is not None else None


def _key(record: Mapping[str, Any]) -> str:
    return draft_key(record["id"]) or ""
