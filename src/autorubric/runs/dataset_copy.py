"""The copy of the dataset in a run folder: verifying its checksum and reading its intact lines."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.stream import line_of
from autorubric.errors import AutorubricError, RunFormatError
from autorubric.runs.lines import item_of_line
from autorubric.runs.manifest import DATASET, ITEMS, SUMS, log_entries
from autorubric.runs.notices import Damage, describe_lines
from autorubric.support.objects import Json
from autorubric.support.read import file_sha256
from autorubric.support.record_log import is_intact, log_lines

_DIGEST = 8
"""Number of bytes that are kept of the SHA-256 of each line."""


class StoredDataset(NamedTuple):
    """The judged dataset from a run folder."""

    dataset: RubricDataset  # streamed; items whose lines are lost have no text
    entry: Mapping[str, Json]  # the dataset's entry in the manifest
    damage: Damage | None = None
    affected: range | frozenset[int] = frozenset()  # positions of the items that count as not scored


class LineSums:
    """Digests of the lines of a dataset copy, of eight bytes per line."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()  # SHA-256 of all lines together
        self._sums = bytearray()

    def add(self, line: bytes) -> None:
        """Add the digest of a line."""
        self.sha256.update(line)
        self._sums += _digest(line)

    def parts(self, mark: int) -> Iterable[bytes]:
        """Yield the content of `dataset.sums`: the SHA-256, the run's mark, and one digest per line."""
        yield f"{self.sha256.hexdigest()} {mark:08x}\n".encode("ascii")
        for start in range(0, len(self._sums), _DIGEST):
            yield f"{self._sums[start : start + _DIGEST].hex()}\n".encode("ascii")


def _digest(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()[:_DIGEST]


def stored_dataset(path: Path, manifest: Mapping[str, Json]) -> StoredDataset:
    """Return the judged dataset from a run folder as a stream; its checks need not be registered."""
    try:
        return _stored_dataset(path / DATASET, manifest)
    except FileNotFoundError:
        raise RunFormatError(
            f"{path} has no {DATASET}; to restore the file, resume the run with its dataset"
        ) from None
    # File errors and pydantic's errors are ValueErrors too.
    except (AutorubricError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFormatError(
            f"{path}: the copy of the dataset is damaged: {error}. To restore it, resume the run with its "
            "dataset"
        ) from error


def _stored_dataset(file: Path, manifest: Mapping[str, Any]) -> StoredDataset:
    entry: dict[str, Json] = dict(manifest.get("dataset") or {})
    incoming = entry.pop("incoming", None)
    sha256 = file_sha256(file)
    if incoming is not None and incoming["sha256"] == sha256:
        entry = incoming
    if entry.get("sha256") in (sha256, None):
        return StoredDataset(dataset=RubricDataset.from_copy(file), entry=entry)
    found = _IntactLines.read(file, str(entry["sha256"]))
    if found is None:
        dataset = RubricDataset.from_copy(file)
        what = "the file does not match its checksum, and it is unknown which lines differ"
        damage = Damage(file=DATASET, what=what, n_items=len(dataset))
        return StoredDataset(dataset, entry, damage, range(len(dataset)))
    n_items = len(found.starts) - 1
    affected = range(n_items) if 0 in found.lost else frozenset(number - 1 for number in found.lost)
    mark = log_entries(manifest).mark
    ids = _ids_in(file.with_name(ITEMS), mark, str(entry["sha256"])[:16]) if found.lost else {}
    known = {number: {"id": ids[number - 1]} if number - 1 in ids else {} for number in found.lost if number}
    substitutes = {number: line_of({**named, "submission": None}) for number, named in known.items()}
    dataset = RubricDataset.from_copy(file, found.starts, substitutes)
    damage = Damage(file=DATASET, what=found.what, n_items=len(affected))
    return StoredDataset(dataset, entry, damage, affected)


@dataclass(frozen=True, kw_only=True)
class _IntactLines:
    """The intact lines of a damaged copy."""

    starts: array[int]  # offset of each line by number; 0 for lost lines
    lost: frozenset[int]  # numbers of the lost lines
    what: str  # description of the damage

    @classmethod
    def read(cls, file: Path, sha256: str) -> _IntactLines | None:
        """Return the intact lines of a file; None if the lines' digests are unknown."""
        try:
            first, *rest = file.with_name(SUMS).read_text(encoding="ascii").splitlines()
            sums = [bytes.fromhex(one) for one in rest]
            # Digests may belong to a copy with another SHA-256.
            if not sums or first.split()[0] != sha256:
                return None
        except (OSError, ValueError, IndexError):
            return None
        numbers: dict[bytes, deque[int]] = defaultdict(deque)
        for number, one in enumerate(sums):
            numbers[one].append(number)
        starts, found, repeated, unknown = array("q", bytes(8 * len(sums))), [], 0, 0
        for _, offset, raw in log_lines(file):
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
        return cls(starts=starts, lost=lost, what=describe_lines(max(len(lost), unknown), repeated, moved))


def mark_in_sums(path: Path) -> int | None:
    """Return the mark of a run whose manifest is lost; None if the folder does not contain it."""
    try:
        with (path / SUMS).open(encoding="ascii") as file:
            return int(file.readline().split()[1], 16)
    except (OSError, ValueError, IndexError):
        return None


def _ids_in(file: Path, mark: int, digest: str) -> dict[int, str]:
    """Return item ids by position, from the lines in `items.jsonl` that were written for a dataset."""
    found = {}
    for _, offset, raw in log_lines(file):
        if is_intact(raw, offset, mark):
            item = item_of_line(raw)[0]
            if item["dataset"] == digest:
                found[item["position"]] = item["item_id"]
    return found
