"""A file of a run folder that lines are appended to, each with its offset and a checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

_TAIL = 19
"""Bytes of `,"crc":"01234567"}` and the line break."""


def seal_line(body: bytes, at: int, mark: int) -> bytes:
    """Return a line with a JSON object, its offset in the file, and the CRC-32 of what precedes it.

    Args:
        body: The object, not empty, in one line without its line break.
        at: Offset of the line in its file.
        mark: The run's mark, with which the CRC-32 begins.
    """
    content = b'%b,"at":%d' % (body[:-1], at)
    return b'%b,"crc":"%08x"}\n' % (content, crc32(content, mark))


def is_intact(raw: bytes, offset: int, mark: int) -> bool:
    """Return whether a line matches its checksum, the run's mark, and its offset."""
    # One comparison of both: this is a seventh of the time that opening a run takes.
    return raw.endswith(b',"at":%d,"crc":"%08x"}\n' % (offset, crc32(raw[:-_TAIL], mark)))


def written_at(raw: bytes, mark: int) -> int | None:
    """Return the offset that a line was written at; None if it does not match its checksum."""
    content = raw[:-_TAIL]
    if raw[-_TAIL:] != b',"crc":"%08x"}\n' % crc32(content, mark):
        return None
    try:
        return int(content[content.rindex(b'"at":') + 5 :])
    except ValueError:
        return None


def body_of(raw: bytes, mark: int, *, is_sealed: bool) -> bytes | None:
    """Return the JSON object that a line was made of; None if the line does not match its checksum."""
    if not is_sealed:
        return raw.removesuffix(b"\n") if raw.endswith(b"\n") else None
    return None if written_at(raw, mark) is None else raw[: raw.rindex(b',"at":')] + b"}"


def unsealed_bytes(path: Path) -> int:
    """Return the bytes of leading lines without checksums, which an older version wrote."""
    size = 0
    for _, offset, raw in log_lines(path, 0):
        if b',"crc":"' in raw[-_TAIL:]:
            return offset
        size = offset + len(raw)
    return size


def log_lines(path: Path, start: int) -> Iterator[tuple[int, int, bytes]]:
    """Number, counted from `start`, offset and bytes of each line that is not blank; none without a file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        offset = file.seek(start)
        for number, raw in enumerate(file, start=1):
            if not raw.isspace():
                yield number, offset, raw
            offset += len(raw)


class Piece(NamedTuple):
    """An intact line of a log, wherever it is now.

    Attributes:
        at: Offset that it was written at.
        offset: Offset that it has.
        size: Its bytes.
    """

    at: int
    offset: int
    size: int


@dataclass(kw_only=True)
class LogSurvey:
    """The intact lines of a log.

    Attributes:
        pieces: The intact lines, in the order in which they were written; of equal ones the first.
        holes: Ranges of offsets that no intact line was written at, and that were not left blank.
        bad: Lines that do not match their checksum, a torn last line excluded.
        repeated: Lines that are there more than once.
        moved: Lines that are not in the order in which they were written.
    """

    pieces: list[Piece] = field(default_factory=list)
    holes: list[range] = field(default_factory=list)
    bad: int = 0
    repeated: int = 0
    moved: int = 0

    @property
    def is_damaged(self) -> bool:
        """Whether lines are damaged, missing, repeated or out of order."""
        return bool(self.holes or self.bad or self.repeated or self.moved)


def survey_log(
    path: Path, mark: int, unsealed: int, size: int, visit: Callable[[int, int, bytes], bool]
) -> LogSurvey:
    """Read every line of a log and finds out which are intact.

    Args:
        path: The file.
        mark: The run's mark.
        unsealed: Bytes at its beginning that have no checksums.
        size: Bytes that it must have at least.
        visit: Called with the offset that each intact line was written at, the one that it has, and the
            line; False where it cannot be read all the same.
    """
    found, known, blank, end = LogSurvey(), set[int](), list[range](), 0
    for offset, raw in _all_lines(path):
        if raw.isspace():
            blank.append(range(offset, offset + len(raw)))
            continue
        at = offset if offset < unsealed else written_at(raw, mark)
        if at in known:
            found.repeated += 1
        elif at is None or not visit(at, offset, raw):
            # A torn last line is what a killed process leaves; what was lost with it shows as a hole.
            found.bad += raw.endswith(b"\n") and offset >= unsealed
        else:
            known.add(at)
            found.pieces.append(Piece(at, offset, len(raw)))
            end = max(end, at + len(raw))
    in_order = sorted(found.pieces)
    found.moved = sum(one is not two for one, two in zip(found.pieces, in_order, strict=True))
    found.pieces = in_order
    is_moved = any(one.at != one.offset for one in in_order)
    # Blank ranges are where they were left only as long as nothing has moved.
    known_ranges = [range(one.at, one.at + one.size) for one in in_order] + ([] if is_moved else blank)
    found.holes = _holes(sorted(known_ranges, key=lambda one: one.start), unsealed, max(end, size))
    return found


def _all_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    offset = 0
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for raw in file:
            yield offset, raw
            offset += len(raw)


def _holes(known: Sequence[range], start: int, end: int) -> list[range]:
    holes, covered = [], start
    for one in known:
        if one.start > covered:
            holes.append(range(covered, one.start))
        covered = max(covered, one.stop)
    return [*holes, range(covered, end)] if end > covered else holes


def restored_parts(path: Path, pieces: Sequence[Piece]) -> Iterator[bytes]:
    """Yield the content of a log with these lines where they were written, and blanks in between."""
    end = 0
    with path.open("rb") as file:
        for piece in pieces:
            if piece.at > end:
                yield b" " * (piece.at - end - 1) + b"\n"
            file.seek(piece.offset)
            yield file.read(piece.size)
            end = piece.at + piece.size


class AppendLog:
    """Appends lines to a file, and tracks its size and, if requested, its CRC-32.

    Nothing is held back in buffers of the system's: a write that fails is not tried again at the close. A
    torn last line, as a killed process leaves it, is cut off.

    Args:
        path: The file; created if missing.
        mark: The run's mark.
        summed: Whether the CRC-32 is kept.

    Attributes:
        size: Bytes of the file, those included that wait to be written.
        crc: Their CRC-32; 0 if it is not kept.

    Raises:
        OSError: If it cannot be opened.
    """

    def __init__(self, path: Path, mark: int, *, summed: bool) -> None:
        self._path = path
        self._mark = mark
        self._file = path.open("ab+", buffering=0)
        self._waiting: list[bytes] = []
        self._summed = summed
        self.size = self._cut_torn_line()
        self.crc = crc_of(path, self.size) or 0 if summed else 0

    def _cut_torn_line(self) -> int:
        size = end = self._file.seek(0, SEEK_END)
        while end:
            start = max(end - (1 << 16), 0)
            self._file.seek(start)
            found = self._file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            self._file.truncate(end)
        return end

    def append(self, body: bytes) -> int:
        """Append a JSON object with its checksum, to be written by `flush`; the offset of its line."""
        start = self.size
        line = seal_line(body, start, self._mark)
        self._waiting.append(line)
        self.size = start + len(line)
        if self._summed:
            self.crc = crc32(line, self.crc)
        return start

    def flush(self) -> None:
        """Write the lines that wait.

        Raises:
            OSError: If they cannot be written; what did not fit is dropped.
        """
        if not self._waiting:
            return
        waiting = memoryview(b"".join(self._waiting))
        try:
            while waiting:
                waiting = waiting[self._file.write(waiting) :]
        except OSError as error:
            self._waiting.clear()
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        # Only now: an interrupt in between must not lose them.
        self._waiting.clear()

    def close(self) -> None:
        """Close the file.

        Raises:
            OSError: If the system reports only now that the disk is full.
        """
        self._file.close()


def crc_of(path: Path, size: int) -> int | None:
    """CRC-32 of the first bytes of a file; None if it has not so many, or there is none."""
    crc, left = 0, size
    if not left:
        return crc
    try:
        with path.open("rb") as file:
            while left and (chunk := file.read(min(left, 1 << 20))):
                crc, left = crc32(chunk, crc), left - len(chunk)
    except FileNotFoundError:
        return None
    return None if left else crc
