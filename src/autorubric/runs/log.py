"""The run folder and its append-only files, whose lines end with an offset and a checksum."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import SEEK_END
from pathlib import Path
from secrets import randbelow
from typing import Any, NamedTuple
from zlib import crc32

from autorubric.errors import ArgumentError, RunFormatError
from autorubric.support.objects import Json

_TAIL = 19
"""Bytes of `,"crc":"01234567"}` and the line break."""


def seal_line(body: bytes, at: int, mark: int) -> bytes:
    """Return a line with a JSON object, its offset in the file, and the CRC-32 of both."""
    content = b'%b,"at":%d' % (body[:-1], at)
    return b'%b,"crc":"%08x"}\n' % (content, crc32(content, mark))


def is_intact(raw: bytes, offset: int, mark: int) -> bool:
    """Return whether a line matches its checksum, the run's mark, and its offset."""
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


def unsealed_bytes(path: Path) -> int:
    """Return the number of bytes of the leading lines without checksums, which an older version wrote."""
    size = 0
    for _, offset, raw in log_lines(path, 0):
        if b',"crc":"' in raw[-_TAIL:]:
            return offset
        size = offset + len(raw)
    return size


def log_lines(path: Path, start: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield number (from `start`), offset and bytes of each non-blank line; nothing for a missing file."""
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
    """An intact line of a log, which may have moved.

    Attributes:
        at: Offset at which the line was written.
        offset: Current offset of the line.
        size: Length of the line in bytes.
    """

    at: int
    offset: int
    size: int


@dataclass(kw_only=True)
class LogSurvey:
    """The intact lines of a log, and counts of other lines.

    Attributes:
        pieces: The intact lines, without repetitions, in the order in which they were written.
        holes: Ranges of offsets that neither an intact line nor deliberate blanks cover.
        bad: Number of lines that do not match their checksum, except for an incomplete last line.
        repeated: Number of repeated lines.
        moved: Number of lines that are out of order.
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
    """Read every line of a log and find out which lines are intact.

    Args:
        unsealed: Number of leading bytes without checksums.
        size: Minimum number of bytes that the file must have.
        visit: Called for each intact line with its original offset, its current offset and its bytes;
            returns False if the content cannot be read.
    """
    found, known, blank, end = LogSurvey(), set[int](), list[range](), 0
    for offset, raw in _all_lines(path):
        if raw.isspace():
            blank.append(range(offset, offset + len(raw)))
            continue
        at = offset if offset < unsealed else line_offset(raw, mark)
        if at in known:
            found.repeated += 1
        elif at is None or not visit(at, offset, raw):
            # A killed process leaves an incomplete last line; anything lost with it shows as a hole.
            found.bad += raw.endswith(b"\n") and offset >= unsealed
        else:
            known.add(at)
            found.pieces.append(Piece(at, offset, len(raw)))
            end = max(end, at + len(raw))
    in_order = sorted(found.pieces)
    found.moved = sum(one is not two for one, two in zip(found.pieces, in_order, strict=True))
    found.pieces = in_order
    is_moved = any(one.at != one.offset for one in in_order)
    # Blank ranges are at their original offsets only if no line has moved.
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


def restored_content(path: Path, pieces: Sequence[Piece]) -> Iterator[bytes]:
    """Yield the content of a log with these lines at their original offsets and blanks in between."""
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

    Writes are unbuffered, so a failed write is not repeated when the file is closed. An incomplete last
    line, which a killed process leaves, is removed.

    Attributes:
        size: Number of bytes in the file, including lines that are still to be written.
        crc: CRC-32 of these bytes; 0 if it is not tracked.
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
        """Queue a JSON object with its checksum for `flush`, and return the offset of its line."""
        start = self.size
        line = seal_line(body, start, self._mark)
        self._waiting.append(line)
        self.size = start + len(line)
        if self._summed:
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

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def crc_of(path: Path, size: int) -> int | None:
    """Return the CRC-32 of the first `size` bytes of a file; None if it is shorter or missing."""
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


RUN_FORMAT = 2
"""Version of the run folder's format. A reader accepts this and older versions, and rejects newer ones.

Format 1 has no checksums of lines and of the manifest.
"""

# The entries of a manifest that must be mappings, and the types of their values.
_MAPPINGS: Mapping[tuple[str, ...], tuple[type, ...]] = {
    ("asking",): (),
    ("asking", "checks"): (),
    ("asking", "judges"): (),
    ("asking", "sampling"): (),
    ("asking", "sampling", "samples"): (int,),
    ("deciding",): (),
    ("deciding", "judge_weights"): (float, int),
    ("dataset",): (),
}

INCOMING, SUMS, LOCK = "dataset.incoming", "dataset.sums", "lock"
RUN_FILE = "autorubric.yaml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@ -]{0,126}")
# Names that Windows reserves for devices, with any extension.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
MANIFEST, DATASET, VOTES, ITEMS, PROMPTS = (
    "manifest.json",
    "dataset.jsonl",
    "votes.jsonl",
    "items.jsonl",
    "prompts.jsonl",
)
LOGS = (VOTES, ITEMS, PROMPTS)
_EVERYTHING = 1 << 62
_REPAIR = (
    f"Restore {MANIFEST} from a backup, or delete it and resume the run with the same dataset, judges and "
    "settings; the stored votes are then reused without checking that nothing has changed"
)
_CRC = ',\n  "crc": "{:08x}"\n}}\n'


class Written(NamedTuple):
    """A manifest's entries about the logs.

    Attributes:
        is_complete: Whether the run ended with all items graded.
        sizes: Size in bytes of each log at the end of the run; empty if the run has not ended or is older.
        unsealed: Number of leading bytes of each log that an older version wrote without checksums.
        mark: Initial value of the checksums of lines.
    """

    is_complete: bool
    sizes: Mapping[str, int]
    unsealed: Mapping[str, int]
    mark: int


def log_entries(manifest: Mapping[str, Any]) -> Written:
    """Return a manifest's entries about the logs."""
    is_sealed = manifest.get("format", RUN_FORMAT) > 1
    return Written(
        is_complete=manifest.get("status") == "complete",
        sizes=manifest.get("sizes") or {},
        unsealed=(manifest.get("unsealed") or {}) if is_sealed else dict.fromkeys(LOGS, _EVERYTHING),
        mark=manifest.get("mark") or 0,
    )


def new_mark() -> int:
    """Return a random, non-zero mark for a run."""
    return randbelow((1 << 32) - 1) + 1


def run_path(experiments_dir: Path, name: str) -> Path:
    """Return the path of a run's folder."""
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or _DEVICE.fullmatch(name):
        raise ArgumentError(
            f"experiment_name {name!r} is invalid: use at most 127 letters, digits, '.', '_', '-', '+', '@' "
            "and spaces, starting with a letter or digit, and not a device name such as CON"
        )
    return experiments_dir / name


def read_manifest(path: Path) -> dict[str, Json]:
    """Return the manifest of a run folder."""
    file = path / MANIFEST
    check_files(path)
    try:
        text = file.read_bytes().decode("utf-8")
        manifest = json.loads(text)
    except FileNotFoundError:
        raise RunFormatError(f"{path} is not a run folder: it has no {MANIFEST}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFormatError(f"{file} cannot be read: {error}. {_REPAIR}") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int):
        raise RunFormatError(
            f"{file} has no format number, so it is damaged or not the manifest of a run. {_REPAIR}"
        )
    if found > RUN_FORMAT:
        raise RunFormatError(
            f"{file} has format {found}, but this version reads only formats up to {RUN_FORMAT}; install a "
            "newer version of autorubric"
        )
    if found > 1 and text != manifest_text(manifest):
        raise RunFormatError(f"{file} does not match its checksum; it was edited or is damaged. {_REPAIR}")
    damage = _damage_in(manifest)
    if damage:
        raise RunFormatError(f"{file} is damaged: {damage}. {_REPAIR}")
    manifest.pop("crc", None)
    return dict(manifest)


def manifest_text(content: Mapping[str, Any]) -> str:
    """Return the text of a manifest, which ends with the CRC-32 of the preceding text."""
    text = json.dumps({key: value for key, value in content.items() if key != "crc"}, indent=2)
    return text.removesuffix("\n}") + _CRC.format(crc32(text.encode("ascii")))


def check_files(path: Path) -> None:
    """Check that the files of a run folder are regular files.

    A link could lead out of the folder, and reading a pipe would block forever.
    """
    for name in (MANIFEST, DATASET, INCOMING, SUMS, *LOGS, LOCK, RUN_FILE):
        try:
            mode = (path / name).lstat().st_mode
        except OSError:
            # The code that reads or writes the file reports the error.
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
            raise RunFormatError(
                f"{path / name} must be a regular file, but it is {kind}; replace it with a regular file"
            )


def _damage_in(manifest: Mapping[str, Any]) -> str:
    """Return a description of an invalid part of a manifest; empty if the manifest is valid."""
    for path, kinds in _MAPPINGS.items():
        held: Any = manifest
        for key in path:
            held = held.get(key, {} if len(path) > 1 else None)
        if not isinstance(held, dict):
            return f"'{'.'.join(path)}' must be a mapping"
        if kinds and not all(type(value) in kinds for value in held.values()):
            return f"all values in '{'.'.join(path)}' must be of type {kinds[0].__name__}"
    for name, kind in (
        ("started_at", str),
        ("completed_at", str),
        ("shard", list),
        ("missing", list),
        ("unverified", list),
    ):
        if not isinstance(manifest.get(name), kind | None):
            return f"'{name}' must be of type {kind.__name__}"
    for entry in (manifest["dataset"], manifest["dataset"].get("incoming") or {"sha256": None}):
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str | None):
            return "'dataset' must be a mapping with a string 'sha256'"
    earlier = manifest["dataset"].get("earlier") or {}
    if not isinstance(earlier, dict) or not all(map(_is_texts, earlier.values())):
        return "'dataset.earlier' must be a mapping to lists of strings"
    if type(manifest.get("mark", 0)) is not int or not 0 <= manifest.get("mark", 0) < 1 << 32:
        return "'mark' must be an unsigned 32-bit integer"
    for name in ("sizes", "unsealed"):
        held = manifest.get(name, {})
        if not isinstance(held, dict) or not all(type(size) is int and size >= 0 for size in held.values()):
            return f"'{name}' must be a mapping to non-negative integers"
    shard = manifest.get("shard")
    if shard is not None and ([*map(type, shard)] != [int, int, str] or not 0 <= shard[0] < shard[1]):
        return "'shard' must be a list of index, number of shards and digest"
    return ""


def _is_texts(held: Any) -> bool:
    return isinstance(held, list) and all(isinstance(one, str) for one in held)
