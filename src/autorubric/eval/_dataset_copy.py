"""The copy of the dataset in a run folder: compared with its checksum, and read as far as it is intact."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from autorubric.dataset import RubricDataset, line_of
from autorubric.errors import AutorubricError, RunFormatError
from autorubric.eval._damage import Damage, lines_told
from autorubric.eval._folder import DATASET, ITEMS, SUMS, written_by
from autorubric.eval._lines import item_of_line
from autorubric.eval._log import is_intact, log_lines
from autorubric.values import Json

_DIGEST = 8
"""Bytes of the SHA-256 of each line that are kept."""


class StoredDataset(NamedTuple):
    """The dataset as judged, from a run folder.

    Attributes:
        dataset: The dataset, streamed; items without a text are in the place of those whose lines are lost.
        entry: Its entry in the manifest.
        damage: What is wrong with the file; None if it is intact.
        affected: Positions of the items that count as not scored.
    """

    dataset: RubricDataset
    entry: Mapping[str, Json]
    damage: Damage | None = None
    affected: range | frozenset[int] = frozenset()


class LineSums:
    """Digests of the lines of a dataset's copy, in some eight bytes a line.

    Attributes:
        sha256: Of all lines together.
    """

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self._sums = bytearray()

    def add(self, line: bytes) -> None:
        """Add a line."""
        self.sha256.update(line)
        self._sums += _digest(line)

    def parts(self, mark: int) -> Iterable[bytes]:
        """Yield a file's content: the SHA-256 of the copy, the run's mark, then one digest per line."""
        yield f"{self.sha256.hexdigest()} {mark:08x}\n".encode("ascii")
        for start in range(0, len(self._sums), _DIGEST):
            yield f"{self._sums[start : start + _DIGEST].hex()}\n".encode("ascii")


def _digest(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()[:_DIGEST]


def sha256_of(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: If it cannot be read.
    """
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def stored_dataset(path: Path, manifest: Mapping[str, Json]) -> StoredDataset:
    """Return the judged dataset from a run folder, streamed; its checks need not be registered.

    Raises:
        RunFormatError: If it is not there, or what its items share cannot be read.
    """
    try:
        return _stored_dataset(path / DATASET, manifest)
    except FileNotFoundError:
        raise RunFormatError(
            f"{path} has no {DATASET}; resume the run with its dataset to restore the file"
        ) from None
    # Faults of files and pydantic's are ValueErrors too.
    except (AutorubricError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFormatError(
            f"{path}: the copy of the dataset is damaged: {error}. Resume the run with its dataset to "
            "restore it"
        ) from error


def _stored_dataset(file: Path, manifest: Mapping[str, Any]) -> StoredDataset:
    entry: dict[str, Json] = dict(manifest.get("dataset") or {})
    incoming = entry.pop("incoming", None)
    sha256 = sha256_of(file)
    if incoming is not None and incoming["sha256"] == sha256:
        entry = incoming
    if entry.get("sha256") in (sha256, None):
        return StoredDataset(dataset=RubricDataset.from_copy(file), entry=entry)
    found = _Intact.read(file, str(entry["sha256"]))
    if found is None:
        dataset = RubricDataset.from_copy(file)
        what = "it does not match its checksum, and which lines differ is unknown"
        damage = Damage(file=DATASET, what=what, n_items=len(dataset))
        return StoredDataset(dataset, entry, damage, range(len(dataset)))
    n_items = len(found.starts) - 1
    affected = range(n_items) if 0 in found.lost else frozenset(number - 1 for number in found.lost)
    mark = written_by(manifest).mark
    ids = _ids_in(file.with_name(ITEMS), mark, str(entry["sha256"])[:16]) if found.lost else {}
    substitutes = {number: _substitute(ids.get(number - 1)) for number in found.lost if number}
    dataset = RubricDataset.from_copy(file, found.starts, substitutes)
    damage = Damage(file=DATASET, what=found.what, n_items=len(affected))
    return StoredDataset(dataset, entry, damage, affected)


@dataclass(frozen=True, kw_only=True)
class _Intact:
    """The lines of a damaged copy.

    Attributes:
        starts: By number, the offset of the line; 0 for one that is lost.
        lost: Numbers of the lines that are lost.
        what: What is wrong.
    """

    starts: array[int]
    lost: frozenset[int]
    what: str

    @classmethod
    def read(cls, file: Path, sha256: str) -> _Intact | None:
        """Return the lines of a file; None if their digests are not known."""
        sums = _read_sums(file.with_name(SUMS), sha256)
        if not sums:
            return None
        numbers: dict[bytes, deque[int]] = defaultdict(deque)
        for number, one in enumerate(sums):
            numbers[one].append(number)
        starts, found, repeated, unknown = array("q", bytes(8 * len(sums))), [], 0, 0
        for _, offset, raw in log_lines(file, 0):
            left = numbers.get(_digest(raw))
            if left:
                starts[left[0]] = offset
                found.append(left.popleft())
            elif left is None:
                unknown += 1
            else:
                repeated += 1
        lost = frozenset(range(len(sums))) - frozenset(found)
        moved = sum(one != two for one, two in zip(found, sorted(found), strict=True))
        return cls(starts=starts, lost=lost, what=lines_told(max(len(lost), unknown), repeated, moved))


def _read_sums(file: Path, sha256: str) -> list[bytes]:
    """Return the digests of a copy's lines; empty if they are not those of the copy with this SHA-256."""
    try:
        first, *rest = file.read_text(encoding="ascii").splitlines()
        return [bytes.fromhex(one) for one in rest] if first.split()[0] == sha256 else []
    except (OSError, ValueError, IndexError):
        return []


def mark_in_sums(path: Path) -> int | None:
    """Return the mark of a run whose manifest is lost; None if its folder does not say."""
    try:
        with (path / SUMS).open(encoding="ascii") as file:
            return int(file.readline().split()[1], 16)
    except (OSError, ValueError, IndexError):
        return None


def _ids_in(file: Path, mark: int, digest: str) -> dict[int, str]:
    """Return the ids of items by position, from the lines of items that were written for a dataset."""
    found = {}
    for _, offset, raw in log_lines(file, 0):
        if is_intact(raw, offset, mark):
            item = item_of_line(raw)[0]
            if item["dataset"] == digest:
                found[item["position"]] = item["item_id"]
    return found


def _substitute(item_id: str | None) -> bytes:
    return line_of({"submission": None} if item_id is None else {"id": item_id, "submission": None})
