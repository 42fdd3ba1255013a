"""The run folder: a manifest, the dataset as judged, votes as they arrive, items as they finish.

    manifest.json    what the run depends on; replaced atomically
    dataset.json     a copy of the dataset, truth included
    votes.jsonl      one vote a line, appended as it arrives
    items.jsonl      one finished item a line
    prompts.jsonl    what was sent and received for each vote, unless `store_prompts=False`
    lock             held while a process writes

Completed is what parses: a line that does not, such as the torn last one of a killed process, is left where
it is, passed over and reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from autorubric._events import Exchanged
from autorubric._files import write_text_atomic
from autorubric.errors import ArgumentError, RunFormatError, RunLockedError
from autorubric.eval._lock import FileLock
from autorubric.types import JudgeVote
from autorubric.values import Json

RUN_FORMAT = 1
"""Number of the run folder's format. A reader takes its own and older ones, and refuses newer ones."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@ -]{0,126}")
# Names that Windows keeps for devices, whatever ending they have.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
MANIFEST, DATASET, VOTES, ITEMS, PROMPTS = (
    "manifest.json",
    "dataset.json",
    "votes.jsonl",
    "items.jsonl",
    "prompts.jsonl",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVote:
    """A vote as the run folder holds it.

    Attributes:
        item_id: The item.
        criterion: Name of the criterion.
        digest: What the vote depended on.
        vote: The vote.
    """

    item_id: str
    criterion: str
    digest: str
    vote: JudgeVote

    @property
    def key(self) -> tuple[str, str, str, int, tuple[str, ...]]:
        """Item, criterion, judge, sample and, for what compares, the order shown."""
        vote = self.vote
        return (self.item_id, self.criterion, vote.judge_id, vote.sample, vote.order or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """A finished item as the run folder holds it.

    Attributes:
        item_id: The item.
        duration_seconds: Seconds that grading took.
        length_penalty: What was taken off for length.
        error: Why the item failed; None where it did not.
    """

    item_id: str
    duration_seconds: float
    length_penalty: float = 0.0
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunContents:
    """What a run folder holds.

    Attributes:
        manifest: The manifest.
        votes: The latest vote of each key and digest, oldest first.
        items: The latest line of each finished item.
        notices: Lines that were passed over.
    """

    manifest: Mapping[str, Json]
    votes: list[StoredVote]
    items: dict[str, StoredItem]
    notices: list[str] = field(default_factory=list)


def run_path(experiments_dir: Path, name: str) -> Path:
    """The folder of a run.

    Raises:
        ArgumentError: The name could lead out of the folder of runs, or is no plain name.
    """
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or _DEVICE.fullmatch(name):
        raise ArgumentError(
            f"experiment_name {name!r}: use letters, digits, '.', '_', '-', '+', '@' and blanks, a letter or "
            "digit first, at most 127 characters, and no name of a device as CON"
        )
    return experiments_dir / name


def read_run(path: Path) -> RunContents:
    """What a run folder holds.

    Raises:
        RunFormatError: It is no run folder, a newer version wrote it, or its manifest is damaged.
    """
    manifest = read_manifest(path)
    notices: list[str] = []
    votes: dict[tuple[Any, ...], StoredVote] = {}
    for line in _lines(path / VOTES, notices, _parse_vote):
        votes[(*line.key, line.digest)] = line
    items = {line.item_id: line for line in _lines(path / ITEMS, notices, lambda raw: StoredItem(**raw))}
    return RunContents(manifest=manifest, votes=list(votes.values()), items=items, notices=notices)


def read_manifest(path: Path) -> dict[str, Json]:
    """The manifest of a run folder.

    Raises:
        RunFormatError: There is none, a newer version wrote it, or it is damaged.
    """
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFormatError(f"{path} is no run folder: it has no {MANIFEST}") from None
    except (OSError, ValueError) as error:
        raise RunFormatError(f"{file} cannot be read: {error}") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int):
        raise RunFormatError(f"{file} has no format number; it is damaged, or no manifest of a run")
    if found > RUN_FORMAT:
        raise RunFormatError(
            f"{file} has format {found}; this version reads up to {RUN_FORMAT}: install a newer autorubric"
        )
    return dict(manifest)


def read_dataset(path: Path) -> dict[str, Json]:
    """The copy of the dataset in a run folder, as it was written.

    Raises:
        RunFormatError: There is none, or it is damaged.
    """
    file = path / DATASET
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFormatError(f"{path} has no {DATASET}; it is damaged") from None
    except (OSError, ValueError) as error:
        raise RunFormatError(f"{file} cannot be read: {error}") from error
    return dict(content)


def _parse_vote(raw: Mapping[str, Any]) -> StoredVote:
    return StoredVote(
        item_id=raw["item"],
        criterion=raw["criterion"],
        digest=raw["digest"],
        vote=JudgeVote.from_dict(raw["vote"]),
    )


def _lines(path: Path, notices: list[str], parse: Callable[[Mapping[str, Any]], Any]) -> Iterator[Any]:
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                parsed = parse(json.loads(line))
            except (ValueError, KeyError, TypeError):
                notices.append(f"{path.name} line {number} is torn or damaged and was passed over")
                continue
            yield parsed


class RunStore:
    """Appends to a run folder, holding its lock.

    Args:
        path: The run folder; made where it is not there.
        store_prompts: Whether what was sent and received is kept.

    Raises:
        RunLockedError: Another process writes to it.
    """

    def __init__(self, path: Path, *, store_prompts: bool = True) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path / "lock")
        if not self._lock.acquire():
            raise RunLockedError(f"another process writes to {path}; wait for it, or choose another name")
        self.store_prompts = store_prompts
        self._files: dict[str, IO[bytes]] = {}

    def write_manifest(self, manifest: Mapping[str, Json]) -> None:
        """Replaces the manifest atomically."""
        content = {"format": RUN_FORMAT, **manifest}
        text = json.dumps(content, indent=2, ensure_ascii=False)
        write_text_atomic(self.path / MANIFEST, text + "\n")

    def write_dataset(self, dataset: Mapping[str, Json]) -> None:
        """Replaces the copy of the dataset atomically."""
        write_text_atomic(self.path / DATASET, json.dumps(dataset, ensure_ascii=True) + "\n")

    def add_vote(self, stored: StoredVote, exchanged: Exchanged | None = None) -> None:
        """Appends a vote and, where they are kept, its prompt and replies."""
        key = {"item": stored.item_id, "criterion": stored.criterion}
        self._append(VOTES, {**key, "digest": stored.digest, "vote": stored.vote.to_dict()})
        if exchanged is not None and self.store_prompts:
            place: dict[str, Json] = {"judge_id": stored.vote.judge_id, "sample": stored.vote.sample}
            if stored.vote.order is not None:
                place["order"] = list(stored.vote.order)
            self._append(PROMPTS, {**key, **place, **_exchange(exchanged)})

    def add_item(self, item: StoredItem) -> None:
        """Appends a finished item."""
        self._append(ITEMS, {name: getattr(item, name) for name in item.__slots__})

    def _append(self, name: str, content: Mapping[str, Json]) -> None:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = _open_for_appending(self.path / name)
        line = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        file.write(line.encode("ascii") + b"\n")
        # A vote that was paid for must outlive the process, however it ends.
        file.flush()

    def close(self) -> None:
        """Closes the files and gives the lock back."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._lock.release()


def _exchange(exchanged: Exchanged) -> dict[str, Json]:
    if exchanged.shared_with is not None:
        return {"shared_with": exchanged.shared_with}
    return {
        "messages": [{"role": role, "content": content} for role, content in exchanged.messages],
        "replies": list(exchanged.replies),
        "dropped_params": list(exchanged.dropped_params),
    }


def _open_for_appending(path: Path) -> IO[bytes]:
    """The file, at the start of a line: a torn last line is ended, not removed."""
    file = path.open("ab+")
    if file.tell() > 0:
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file
