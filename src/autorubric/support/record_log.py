"""Append-only files of JSON lines, each of which ends with its offset and a checksum.

A checksum starts from the `mark` of its log, so that lines of another log do not match. Offsets of lines
never change: a damaged log is restored with its intact lines at their original offsets. Files that users
edit, such as those of a critique pass, have no mark, and their lines have no checksums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

_CHUNK = 1 << 20
_TAIL = 19
"""Bytes of `,"crc":"01234567"}` and the line break."""


def seal_line(body: bytes, at: int, mark: int) -> bytes:
    """Return a line with a JSON object, its offset in the file, and the CRC-32 of both."""
    content = b'%b,"at":%d' % (body[:-1], at)
    return b'%b,"crc":"%08x"}\n' % (content, crc32(content, mark))


def is_intact(raw: bytes, offset: int, mark: int) -> bool:
    """Return whether a line matches its checksum, the log's mark, and its offset."""
    # A single comparison of both, since this takes a seventh of the time of opening a run.
    return raw.endswith(b',"at":%d,"crc":"%08x"}\n' % (offset, crc32(raw[:-_TAIL], mark)))


def line_offset(raw: bytes, mark: int) -> int | None:
    """Return the offset at which a line was written; None if the line does not match its checksum."""
    content = raw[:-_TAIL]
    if raw[-_TAIL:] != b',"crc":"%08x"}\n' % crc32(content, mark):
        return None
    try:
        return int(content[content.rindex(b'"at":') + 5 :])
    except ValueError:
        return None


def body_of(raw: bytes, mark: int, *, is_sealed: bool) -> bytes | None:
    """Return the JSON object of a line without its seal; None if the line does not match its checksum."""
    if not is_sealed:
        return raw.removesuffix(b"\n") if raw.endswith(b"\n") else None
    return None if line_offset(raw, mark) is None else raw[: raw.rindex(b',"at":')] + b"}"


def log_lines(path: Path, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Yield number (from `start`), offset and bytes of each non-blank line; nothing for a missing file."""
    return (line for line in _all_lines(path, start) if not line[2].isspace())


def _all_lines(path: Path, start: int) -> Iterator[tuple[int, int, bytes]]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        offset = file.seek(start)
        for number, raw in enumerate(file, start=1):
            yield number, offset, raw
            offset += len(raw)


def unsealed_size(path: Path) -> int:
    """Return the number of bytes of the leading lines without checksums, which an older version wrote."""
    size = 0
    for _, offset, raw in log_lines(path):
        if b',"crc":"' in raw[-_TAIL:]:
            return offset
        size = offset + len(raw)
    return size


def crc_of(path: Path, size: int | None = None) -> int | None:
    """Return the CRC-32 of the first `size` bytes of a file, by default of all; None if there are fewer."""
    crc, left = 0, size
    if left == 0:
        return crc
    try:
        with path.open("rb") as file:
            while left != 0 and (chunk := file.read(_CHUNK if left is None else min(left, _CHUNK))):
                crc, left = crc32(chunk, crc), None if left is None else left - len(chunk)
    except FileNotFoundError:
        return None
    return None if left else crc


class IntactLine(NamedTuple):
    """The place of an intact line of a damaged log."""

    at: int  # original offset
    offset: int  # current offset
    size: int  # in bytes


@dataclass(kw_only=True)
class LogSurvey:
    """The intact lines of a log, and counts of other lines."""

    lines: list[IntactLine] = field(default_factory=list)  # without repetitions, in their original order
    holes: list[range] = field(default_factory=list)  # offsets without intact lines or deliberate blanks
    bad: int = 0  # lines that do not match their checksum, except for an incomplete last line
    repeated: int = 0
    moved: int = 0  # lines that are out of order

    @property
    def is_damaged(self) -> bool:
        """Whether lines are damaged, missing, repeated or out of order."""
        return bool(self.holes or self.bad or self.repeated or self.moved)


def survey_log(
    path: Path, mark: int, unsealed: int, size: int, visit: Callable[[int, int, bytes], bool]
) -> LogSurvey:
    """Read a log, and find out which lines are intact; `visit` gets their original and current offset."""
    found, known, blanks = LogSurvey(), set[int](), list[range]()
    for _, offset, raw in _all_lines(path, 0):
        if raw.isspace():
            blanks.append(range(offset, offset + len(raw)))
            continue
        at = offset if offset < unsealed else line_offset(raw, mark)
        if at in known:
            found.repeated += 1
        elif at is None or not visit(at, offset, raw):
            # A killed process leaves an incomplete last line; anything lost with it shows as a hole.
            found.bad += raw.endswith(b"\n") and offset >= unsealed
        else:
            known.add(at)
            found.lines.append(IntactLine(at, offset, len(raw)))
    in_order = sorted(found.lines)
    found.moved = sum(one is not two for one, two in zip(found.lines, in_order, strict=True))
    found.lines = in_order
    covered = [range(one.at, one.at + one.size) for one in in_order]
    if all(one.at == one.offset for one in in_order):
        # Blanks are at their original offsets only if no line has moved.
        covered = sorted([*covered, *blanks], key=lambda one: one.start)
    end = max((one.at + one.size for one in in_order), default=0)
    found.holes = _holes(covered, unsealed, max(end, size))
    return found


def _holes(covered: Sequence[range], start: int, end: int) -> list[range]:
    holes, reached = [], start
    for one in [*covered, range(end, end)]:
        if one.start > reached:
            holes.append(range(reached, one.start))
        reached = max(reached, one.stop)
    return holes


def restored_content(path: Path, lines: Sequence[IntactLine]) -> Iterator[bytes]:
    """Yield the content of a log with these lines at their original offsets and blanks in between."""
    end = 0
    with path.open("rb") as file:
        for line in lines:
            if line.at > end:
                yield b" " * (line.at - end - 1) + b"\n"
            file.seek(line.offset)
            yield file.read(line.size)
            end = line.at + line.size


class AppendLog:
    """Appends lines to a file. The caller must hold a lock (`support.write.FileLock`)."""

    def __init__(
        self,
        path: Path,
        mark: int | None,
        *,
        has_crc: bool = False,
        is_record: Callable[[bytes], bool] = lambda line: False,  # whether a line without a break is complete
    ) -> None:
        self._path = path
        self._mark = mark  # initial value of the checksums; None for lines without checksums
        # Unbuffered, so that a failed write is not repeated when the file is closed.
        self._file = path.open("ab+", buffering=0)
        self._waiting: list[bytes] = []
        self._has_crc = has_crc
        self.was_torn = False  # whether an incomplete last line, which a killed process leaves, was removed
        self.size = self._repair_end(is_record)  # in bytes, including lines that are still to be written
        self.crc = crc_of(path, self.size) or 0 if has_crc else 0  # of these bytes, if it is tracked

    def _repair_end(self, is_record: Callable[[bytes], bool]) -> int:
        size = end = self._file.seek(0, SEEK_END)
        while end:
            start = max(end - (1 << 16), 0)
            self._file.seek(start)
            found = self._file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end == size:
            return size
        self._file.seek(end)
        if is_record(self._file.read()):
            return size + self._file.write(b"\n")
        self._file.truncate(end)
        self.was_torn = True
        return end

    def append(self, body: bytes) -> int:
        """Queue a JSON object for `flush`, and return the offset of its line."""
        if self._mark is None and not self._waiting:
            # Other programs may append to a file that users edit.
            self.size = self._file.seek(0, SEEK_END)
        start = self.size
        line = body + b"\n" if self._mark is None else seal_line(body, start, self._mark)
        self._waiting.append(line)
        self.size = start + len(line)
        if self._has_crc:
            self.crc = crc32(line, self.crc)
        return start

    def flush(self) -> None:
        """Write the queued lines."""
        if not self._waiting:
            return
        waiting = memoryview(b"".join(self._waiting))
        try:
            while waiting:
                waiting = waiting[self._file.write(waiting) :]
        except OSError as error:
            self._waiting.clear()
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        # Cleared only now, so that an interrupt during writing loses no line.
        self._waiting.clear()

    def sync(self) -> None:
        """Write the queued lines to the disk, so that they survive a power failure."""
        self.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
