"""Writing to a run folder: votes, items, the manifest and the copy of the dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autorubric.criteria.conditions import check_name
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.stream import PreviousSnapshot
from autorubric.errors import ArgumentError, FileError, RunError, RunLockedError, RunWriteError
from autorubric.rubric.rubric import Rubric
from autorubric.runs.dataset_copy import LineSums
from autorubric.runs.lines import Seal, StoredItem, StoredVote, item_of_line, line_of_item, line_of_vote
from autorubric.runs.manifest import (
    DATASET,
    INCOMING,
    ITEMS,
    LOCK,
    LOGS,
    MANIFEST,
    PROMPTS,
    RUN_FILE,
    RUN_FORMAT,
    SUMS,
    VOTES,
    check_files,
    manifest_text,
)
from autorubric.support.json_text import compact_json
from autorubric.support.objects import Json
from autorubric.support.record_log import AppendLog, IntactLine, crc_of, restored_content, seal_line
from autorubric.support.write import FileLock, remove_abandoned, write_parts_atomic, write_text_atomic

if TYPE_CHECKING:
    from autorubric.scoring.votes import VoteExchange


class RunStore:
    """Writer of a run folder, which keeps the folder locked."""

    def __init__(self, path: Path, *, store_prompts: bool = True) -> None:
        self.path = path  # the run folder
        self._logs: dict[str, AppendLog] = {}
        check_files(path)
        self._lock = FileLock(path / LOCK)
        with self._explain_write_errors():
            if not self._lock.acquire():
                told = f"{self._lock.holder()} is writing to {path}; wait, or choose another experiment_name"
                raise RunLockedError(told)
        remove_abandoned(path)
        self.store_prompts = store_prompts  # whether requests and replies are stored
        self.mark = 0  # initial value of the checksums of lines; it must be set before anything is written
        self.n_items = 0  # number of lines of items
        self.open_from: int | None = None  # offset from which on earlier votes on unfinished items may be
        self._sums = LineSums()
        self._cast: dict[str, list[int]] = {}
        self._is_to_write = self._is_closed = False
        self._failure: RunError | None = None

    def write_manifest(self, manifest: Mapping[str, Json]) -> None:
        """Replace the manifest atomically, after flushing all appended lines."""
        self.flush()
        content: dict[str, Json] = {**manifest, "format": RUN_FORMAT, "mark": self.mark}
        if content.get("status") != "running":
            # So that a truncated log is detected.
            files = (self.path / name for name in LOGS)
            content["sizes"] = {file.name: file.stat().st_size for file in files if file.exists()}
        else:
            content.pop("sizes", None)
        with self._explain_write_errors():
            write_text_atomic(self.path / MANIFEST, manifest_text(content))

    def write_run_file(self, text: str) -> None:
        """Write a copy of the run file, replacing any earlier copy."""
        with self._explain_write_errors():
            write_text_atomic(self.path / RUN_FILE, text)

    def write_incoming(self, lines: Iterable[bytes]) -> str:
        """Write a provisional copy of the dataset line by line, and return its SHA-256."""
        self._sums = LineSums()

        def parts() -> Iterator[bytes]:
            for line in lines:
                self._sums.add(line)
                yield line

        with self._explain_write_errors():
            write_parts_atomic(self.path / INCOMING, parts())
        return self._sums.sha256.hexdigest()

    def take_over(self, file: Path) -> None:
        """Copy a file of another run folder atomically, unless it is missing there or already exists here."""
        if not (self.path / file.name).exists():
            self._copy(file, self.path / file.name)

    def _copy(self, file: Path, target: Path) -> None:
        if file.exists():
            with self._explain_write_errors(), file.open("rb") as source:
                write_parts_atomic(target, iter(partial(source.read, 1 << 20), b""))

    def write_prompts(self, bodies: Iterator[bytes]) -> None:
        """Write requests and replies of other runs atomically; write no file if there are none."""
        with self._explain_write_errors():
            sealed = self._sealed(bodies)
            first = next(sealed, None)
            if first is not None:
                write_parts_atomic(self.path / PROMPTS, chain([first], sealed))

    def _sealed(self, bodies: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a new log with these JSON objects."""
        at = 0
        for body in bodies:
            line = seal_line(body, at, self.mark)
            at += len(line)
            yield line

    def restore_log(self, name: str, lines: Sequence[IntactLine]) -> None:
        """Restore the intact lines of a log to their original offsets, and blank everything else."""
        file = self.path / name
        self._copy(file, file.with_name(f"{name}.damaged"))
        if file.exists():
            with self._explain_write_errors():
                write_parts_atomic(file, restored_content(file, lines))

    def rewrite_items(self, kept: Sequence[IntactLine], open_from: int | None, *, keep_damaged: bool) -> None:
        """Replace the lines of items with a subset of them, sealed with the current votes."""
        votes, file = self.path / VOTES, self.path / ITEMS
        size = votes.stat().st_size if votes.exists() else 0
        seal = Seal(0, size, crc_of(votes, size) or 0, size if open_from is None else open_from)

        def bodies() -> Iterator[bytes]:
            with file.open("rb") as source:
                for number, old in enumerate(kept):
                    source.seek(old.offset)
                    item = StoredItem(**item_of_line(source.read(old.size))[0])
                    yield line_of_item(item, seal._replace(number=number))

        if keep_damaged:
            self._copy(file, file.with_name(f"{ITEMS}.damaged"))
        if file.exists():
            with self._explain_write_errors():
                write_parts_atomic(file, self._sealed(bodies()))

    @property
    def has_votes(self) -> bool:
        """Whether votes are stored."""
        votes = self.path / VOTES
        return votes.exists() and votes.stat().st_size > 0

    def take_incoming(self) -> None:
        """Replace the dataset copy atomically by the one from `write_incoming`, and write its digests."""
        with self._explain_write_errors():
            (self.path / INCOMING).replace(self.path / DATASET)
            write_parts_atomic(self.path / SUMS, self._sums.parts(self.mark))
        self._sums = LineSums()

    def drop_incoming(self) -> None:
        """Remove the file written by `write_incoming`."""
        (self.path / INCOMING).unlink(missing_ok=True)

    def add_vote(self, stored: StoredVote, exchanged: VoteExchange | None = None) -> None:
        """Append a vote and, if prompts are stored, its prompt and replies."""
        self._cast.setdefault(stored.item_id, []).append(self._append(VOTES, line_of_vote(stored)))
        if exchanged is not None and self.store_prompts:
            place: dict[str, Json] = {
                "item": stored.item_id,
                "criterion": stored.criterion,
                "judge_id": stored.vote.judge_id,
                "sample": stored.vote.sample,
            }
            if stored.vote.order is not None:
                place["order"] = list(stored.vote.order)
            self._append(PROMPTS, compact_json(place | _exchange(exchanged)))

    def votes_cast(self, item_id: str) -> list[int]:
        """Return the offsets of the votes added for an item since it was last finished."""
        return self._cast.get(item_id, [])

    def add_item(self, item: StoredItem) -> int:
        """Append a finished item, which lists the votes cast for it, and return the offset of its line."""
        self._cast.pop(item.item_id, None)
        votes = self._log(VOTES)
        first = next(iter(self._cast.values()), None)
        open_from = self.open_from if self.open_from is not None else first[0] if first else votes.size
        seal = Seal(self.n_items, votes.size, votes.crc, open_from)
        self.n_items += 1
        return self._append(ITEMS, line_of_item(item, seal))

    def _append(self, name: str, line: bytes) -> int:
        if self._failure is not None:
            raise self._failure
        start = self._log(name).append(line)
        self._write_soon()
        return start

    def _write_soon(self) -> None:
        """Schedule a write for the next iteration of the event loop, to write several lines together."""
        if self._is_to_write:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        self._is_to_write = True
        loop.call_soon(self._write)

    def _write(self) -> None:
        try:
            self.flush()
        except RunError as error:
            # An exception in a callback is lost, so the next append or the close raises it.
            self._failure = error

    def flush(self) -> None:
        """Write all appended lines to the operating system, so that they survive the end of the process."""
        self._is_to_write = False
        if self._failure is not None:
            raise self._failure
        # A stored vote is not requested again, so its prompt goes first. Lines of items refer to votes.
        with self._explain_write_errors():
            try:
                self._flush(PROMPTS)
            finally:
                self._flush(VOTES)
                self._flush(ITEMS)

    def _flush(self, name: str) -> None:
        if name in self._logs:
            self._logs[name].flush()

    def _log(self, name: str) -> AppendLog:
        log = self._logs.get(name)
        if log is None:
            try:
                with self._explain_write_errors():
                    log = self._logs[name] = AppendLog(self.path / name, self.mark, has_crc=name == VOTES)
            except RunError as error:
                # This affects more than one vote, so all later lines are refused too.
                self._failure = error
                raise
        return log

    @contextmanager
    def _explain_write_errors(self) -> Iterator[None]:
        """Convert write errors in the block to errors that say how to continue."""
        try:
            yield
        except OSError as error:
            file, why = error.filename or self.path, f"cannot be written: {error.strerror or error}"
        except FileError as error:
            if type(error) is not FileError:
                # An error in the dataset, found while it was copied.
                raise
            file, why = error.source, error.faults[0].message
        else:
            return
        raise RunWriteError(
            f"{file} {why}. Earlier data is kept. To resume, make sure that {self.path} is writable and run "
            f"again with experiment_name={self.path.name!r}",
            begun=bool(self._logs),
        )

    def close(self) -> None:
        """Close the files and release the lock; later writes raise an error."""
        if self._is_closed:
            return
        self._is_closed = True
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            stack.enter_context(self._explain_write_errors())
            for log in self._logs.values():
                stack.callback(log.close)
            try:
                self.flush()
            finally:
                self._logs = {}
                self._failure = RunError(f"{self.path} is closed because the run has ended")

    def remove(self) -> None:
        """Remove the folder if it contains only the lock file; the lock must still be held."""
        with suppress(OSError):
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()


def _exchange(exchanged: VoteExchange) -> dict[str, Json]:
    if exchanged.shared_with is not None:
        return {"shared_with": exchanged.shared_with}
    return {
        "messages": [{"role": role, "content": content} for role, content in exchanged.messages],
        "replies": list(exchanged.replies),
        "dropped_params": list(exchanged.dropped_params),
    }


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """A dataset's entry in the manifest, and the checks that its rubrics refer to, by name."""

    entry: dict[str, Json]  # `name`, `n_items`, `sha256` of the copy, `source`: digest of the streamed file
    checks: dict[str, Any] = field(default_factory=dict)

    def with_earlier(self, earlier: Json) -> DatasetEntry:
        """Return the entry with what has changed since earlier copies; see `open._earlier`."""
        return replace(self, entry={**self.entry, "earlier": earlier})

    def note_checks(self, rubric: Rubric) -> None:
        """Add the checks that a rubric refers to."""
        for criterion in rubric:
            if criterion.check is not None:
                self.checks.setdefault(check_name(criterion.check), criterion.check)


def copy_dataset(
    dataset: RubricDataset, store: RunStore, earlier: PreviousSnapshot | None = None
) -> DatasetEntry:
    """Write a provisional copy of the dataset to a run folder, holding one item in memory at a time."""
    copied = DatasetEntry(entry={"name": dataset.name, "n_items": len(dataset)})

    def lines() -> Iterator[bytes]:
        for number, (line, rubric) in enumerate(dataset.copy_lines(earlier)):
            if rubric is not None:
                copied.note_checks(rubric)
            elif number and dataset.rubric is None:
                # Raises an error that names the item and says what to do.
                dataset.get_item_rubric(number - 1)
            yield line

    if not len(dataset):
        raise ArgumentError("the dataset has no items; add at least one item before evaluating it")
    copied.entry["sha256"] = store.write_incoming(lines())
    copied.entry["source"] = dataset.source_digest()
    return copied


def unchanged_copy(dataset: RubricDataset, entry: dict[str, Json], checks: Iterable[str]) -> DatasetEntry:
    """Return the result for a dataset whose copy in the folder is unchanged."""
    copied = DatasetEntry(entry=entry)
    if dataset.rubric is not None:
        copied.note_checks(dataset.rubric)
    for name in checks:
        copied.checks.setdefault(name, name)
    return copied
