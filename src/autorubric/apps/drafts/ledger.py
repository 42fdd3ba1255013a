"""A file of records with one line per id, to which records are appended and which survives a kill.

The ids are indexed in a temporary SQLite file that is deleted with the process, so that memory use does not
grow with the number of drafts.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from autorubric.apps.drafts.drafts import DraftLine, key_of, lines_of
from autorubric.errors import Fault, FileError, RunLockedError
from autorubric.support.objects import Json
from autorubric.support.write import FileLock, write_bytes_atomic, write_parts_atomic

_CUT = 1 << 16
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")


class Known(NamedTuple):
    """What is indexed about the record of an id.

    Attributes:
        failed: Whether the record is of a failure.
        digest: Digest of the draft; None if the record does not contain a digest.
    """

    failed: bool
    digest: str | None


class RecordLog:
    """The records of one file by id. The last record of an id is valid; earlier records are swept out.

    An incomplete last line, as left by a killed process, is removed when the file is opened for writing, and
    its record is created again. Other invalid lines are kept in the file and reported.

    Attributes:
        path: Path of the file.
        notices: Problems found in the file.
    """

    def __init__(self, path: Path, *, digest_key: str = "draft_hash") -> None:
        self.path = path
        self._digest_key = digest_key
        self.notices: list[str] = []
        self._superseded = 0
        self._file: IO[bytes] | None = None
        # The empty name creates a private file on disk that the system deletes.
        self._index = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA journal_mode=OFF")
        self._index.execute(
            "CREATE TABLE records (id TEXT PRIMARY KEY, offset INTEGER, failed INTEGER, digest TEXT) "
            "WITHOUT ROWID"
        )

    def open(self) -> None:
        """Read the existing records and open the file for appending."""
        self.path.touch()
        self._cut_torn_end()
        self.read()
        self._file = self.path.open("ab")

    def read(self) -> None:
        """Read the existing records without changing the file."""
        for line in lines_of(self.path):
            record = _parse_record(line.raw)
            if record is None:
                self.notices.append(f"line {line.number} of {self.path.name} is corrupted and was skipped")
                continue
            self._note(record, line.offset)

    def known(self, key: str) -> Known | None:
        """Return what is indexed about the record of an id; None if the id has no record."""
        row = self._index.execute("SELECT failed, digest FROM records WHERE id = ?", (key,)).fetchone()
        return None if row is None else Known(bool(row[0]), row[1])

    def forget(self, key: str) -> None:
        """Ignore the record of an id from now on; the next `sweep` removes it from the file."""
        self._superseded += self._index.execute("DELETE FROM records WHERE id = ?", (key,)).rowcount

    def append(self, record: Mapping[str, Json]) -> None:
        """Append a record and flush it to the operating system."""
        assert self._file is not None
        offset = self._file.tell()
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # Some readers treat these characters as line ends, so they are escaped.
        line = _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
        # A single write, so that a killed process leaves at most one incomplete line.
        self._file.write(line.encode("utf-8", "replace") + b"\n")
        self._file.flush()
        self._note(record, offset)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the valid record of every id, in the order of the file."""
        for line in lines_of(self.path):
            record = _parse_record(line.raw)
            if record is not None and self._is_last(_key(record), line):
                yield record

    def sweep(self, others: Sequence[RecordLog] = ()) -> None:
        """Remove records that were replaced by a later record in this file or in others, atomically."""
        keys = (row[0] for row in self._index.execute("SELECT id FROM records"))
        elsewhere = {key for key in keys if any(other.known(key) for other in others)}
        if not self._superseded and not elsewhere:
            return
        self.close()
        kept = (line.raw for line in lines_of(self.path) if self._stays(line, elsewhere))
        write_parts_atomic(self.path, kept)
        self._superseded = 0
        self._index.execute("DELETE FROM records")
        self.open()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _note(self, record: Mapping[str, Any], offset: int) -> None:
        key = _key(record)
        if self.known(key) is not None:
            self._superseded += 1
        row = (key, offset, record_failed(record), record.get(self._digest_key))
        self._index.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", row)

    def _is_last(self, key: str, line: DraftLine) -> bool:
        row = self._index.execute("SELECT offset FROM records WHERE id = ?", (key,)).fetchone()
        return row is not None and row[0] == line.offset

    def _stays(self, line: DraftLine, elsewhere: Collection[str]) -> bool:
        record = _parse_record(line.raw)
        return record is None or (_key(record) not in elsewhere and self._is_last(_key(record), line))

    def _cut_torn_end(self) -> None:
        """Remove an incomplete last line, or add the missing line end to a complete record."""
        with self.path.open("r+b") as file:
            end = file.seek(0, 2)
            start = _start_of_last_line(file, end)
            file.seek(start)
            last = file.read()
            if not last or last.endswith(b"\n"):
                return
            if _parse_record(last) is not None:
                file.write(b"\n")
                return
            file.truncate(start)
            self.notices.append(f"the incomplete last line of {self.path.name} was removed")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if missing, against other writing processes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".critique.lock")
        if not lock.acquire():
            raise RunLockedError(f"another process is writing to {folder}; wait for it or use another folder")
        try:
            yield
        finally:
            lock.release()
    except OSError as error:
        told = f"cannot be written: {error.strerror or error}"
        raise FileError(str(error.filename or folder), [Fault(path="", message=told)]) from error


def set_aside(path: Path) -> Path | None:
    """Rename a file to the first free name `….previous.…`, `….previous-2.…`; None if absent or empty."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    names = (path.with_name(f"{path.stem}.previous{number}{path.suffix}") for number in numbers)
    aside = next((name for name in names if not name.exists()), None)
    if aside is None:
        raise FileExistsError(f"{path.parent} has too many earlier copies of {path.name}; move them away")
    path.replace(aside)
    return aside


def set_all_aside(paths: Iterable[Path]) -> list[str]:
    """Rename files with `set_aside` and return a notice for each renamed file."""
    found = [aside for path in paths if (aside := set_aside(path)) is not None]
    return [f"existing records were moved to {aside.name}" for aside in found]


def write_json(path: Path, content: Mapping[str, Json]) -> None:
    """Write indented JSON to a file atomically."""
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    write_bytes_atomic(path, text.encode("utf-8", "replace"))


def record_failed(record: Mapping[str, Any]) -> bool:
    """Return whether a record is of a failure."""
    return contract_error(record) is not None


def contract_error(record: Mapping[str, Any]) -> Any:
    """Return the error in the record of a critique, with `code` and `message`; None if there is no error."""
    contract = record.get("critique_contract")
    return contract.get("error") if isinstance(contract, Mapping) else None


def _start_of_last_line(file: IO[bytes], end: int) -> int:
    """Return the offset of the text after the last line break, which is `end` if there is no such text."""
    at = end
    while at > 0:
        size = min(_CUT, at)
        file.seek(at - size)
        found = file.read(size).rfind(b"\n")
        if found >= 0:
            return at - size + found + 1
        at -= size
    return 0


def _parse_record(raw: bytes) -> dict[str, Any] | None:
    """Return the record on a line; None if the line is not a valid record."""
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and key_of(record.get("id")) is not None else None


def _key(record: Mapping[str, Any]) -> str:
    return key_of(record["id"]) or ""
