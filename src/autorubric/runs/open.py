"""Opening a run folder for writing: a run is new, resumed, rejudged or forked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autorubric._version import VERSION
from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.stream import PreviousSnapshot
from autorubric.errors import RunError, RunFormatError, RunMismatchError
from autorubric.grading.base import GraderDescription
from autorubric.runs.config import EvalConfig
from autorubric.runs.dataset_copy import StoredDataset, mark_in_sums, stored_dataset
from autorubric.runs.differences import (
    DIGESTS,
    ChangedDataset,
    asking_differences,
    deciding_differences,
    mapping_in,
    with_checks,
)
from autorubric.runs.index import LineValidity, RunIndex, load_index, restore_logs
from autorubric.runs.lines import parse_vote
from autorubric.runs.manifest import (
    BATCHES,
    DATASET,
    INCOMING,
    ITEMS,
    LOGS,
    MANIFEST,
    PROMPTS,
    VOTES,
    LogEntries,
    log_entries,
    new_mark,
    read_manifest,
    run_path,
)
from autorubric.runs.notices import MOST_LISTED, Damage, Notices, bulleted, warn_of_damage
from autorubric.runs.store import DatasetEntry, RunStore, copy_dataset, unchanged_copy
from autorubric.runs.vote_reader import ReusableVotes
from autorubric.support.objects import Json
from autorubric.support.read import file_sha256
from autorubric.support.record_log import unsealed_size

if TYPE_CHECKING:
    from autorubric.grading.base import Grader


_MOST_GONE = 1000
"""Maximum number of changed items for which the lines of all other items are kept as they are."""
_DIGITS = 16
_LONGEST = 80
"""Maximum number of characters of a dataset's name that are used in the name of a run."""


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run folder open for writing."""

    name: str
    store: RunStore
    dataset: RubricDataset  # if streamed, its items are read from the copy in the folder
    validity: LineValidity
    reusable: ReusableVotes
    index: RunIndex
    manifest: dict[str, Json]
    notices: Notices


@dataclass(frozen=True, kw_only=True)
class _StoredRun:
    """A run found in a folder, compared with the dataset and the grader that it is opened with."""

    manifest: dict[str, Json]
    described: GraderDescription
    dataset: DatasetEntry  # of the dataset that it is opened with
    copy: StoredDataset  # the copy in the folder
    changed_dataset: ChangedDataset | None
    vote_changes: list[str]  # changes that invalidate votes
    score_changes: list[str]


def open_run(dataset: RubricDataset, grader: Grader, config: EvalConfig) -> OpenRun:
    """Open the run folder that a config names for writing."""
    name = config.experiment_name
    if name is None:
        name = create_run_folder(dataset, config.experiments_dir)
    else:
        run_path(config.experiments_dir, name)
    return _RunOpener(dataset, grader, config).open(name)


class _RunOpener:
    """Opens a run folder: its run is new, resumed, rejudged or forked."""

    def __init__(self, dataset: RubricDataset, grader: Grader, config: EvalConfig) -> None:
        self.dataset = dataset
        self.grader = grader
        self.config = config

    def open(self, name: str) -> OpenRun:
        with self._locked_folder(name) as store:
            if not (store.path / MANIFEST).exists():
                return self._begin(store)
            if not self.config.resume:
                raise RunError(
                    f"{store.path} already exists; choose another experiment_name, or pass resume=True"
                )
            stored = self._compare(store)
            if stored.vote_changes and self.config.on_mismatch == "refuse":
                refusal = (
                    f"{store.path} was created with other settings:\n{bulleted(stored.vote_changes)}\n"
                    "Choose another experiment_name, or pass on_mismatch='rejudge' to request the affected "
                    "votes again, or on_mismatch='fork' to continue in a new folder."
                )
                raise RunMismatchError(refusal, differences=stored.vote_changes)
            if not stored.vote_changes or self.config.on_mismatch == "rejudge":
                # Changes make the digests of the affected votes invalid.
                return self._resume(store, stored)
            self._leave(store)
        return self._fork(store.path)

    @contextmanager
    def _locked_folder(self, name: str) -> Iterator[RunStore]:
        """Open a folder for writing; if the run cannot be opened, a new folder is removed again."""
        store = RunStore(self.config.experiments_dir / name, store_prompts=self.config.store_prompts)
        try:
            yield store
        except BaseException:
            store.drop_incoming()
            if not (store.path / MANIFEST).exists():
                store.remove()
            store.close()
            raise

    def _leave(self, store: RunStore) -> None:
        """Release a folder whose run is not the one to open."""
        store.drop_incoming()
        store.close()

    # The four outcomes

    def _begin(self, store: RunStore, origin: Path | None = None) -> OpenRun:
        """Return a new run, which reuses the votes and items of the run in folder `origin`."""
        store.mark = new_mark()
        dataset = copy_dataset(self.dataset, store)
        described = with_checks(self.grader.describe(), dataset.checks)
        manifest: dict[str, Json] = {
            "autorubric": VERSION,
            "experiment_name": store.path.name,
            "started_at": datetime.now(UTC).isoformat(),
            "digests": DIGESTS,
        }
        if origin is not None:
            for file in (VOTES, ITEMS, *((PROMPTS,) if store.store_prompts else ())):
                store.take_over(origin / file)
            before = read_manifest(origin)
            manifest["unsealed"] = _unsealed_sizes(origin, before)
            manifest["digests"] = before.get("digests", 1)
            # The lines were sealed with the old run's mark; lines of format 1 are not sealed.
            store.mark = log_entries(before).mark or store.mark
        elif store.has_votes:
            # The copy that is to be replaced may be of another dataset.
            if (copy := store.path / DATASET).exists() and file_sha256(copy) != dataset.entry["sha256"]:
                raise RunFormatError(
                    f"{store.path} has no {MANIFEST}, and its votes belong to another dataset; restore the "
                    "manifest, or choose another experiment_name"
                )
            manifest["unsealed"] = {log: unsealed_size(store.path / log) for log in LOGS}
            manifest["digests"] = 1
            store.mark = mark_in_sums(store.path) or store.mark
        store.take_incoming()
        if self.config.shard is not None:
            manifest["shard"] = list(self.config.shard)
        return self._load(store, {**manifest, "dataset": dataset.entry, **described.entries()})

    def _resume(self, store: RunStore, stored: _StoredRun) -> OpenRun:
        """Return the stored run with the current dataset and grader."""
        manifest, is_changed = stored.manifest, stored.changed_dataset is not None
        if not is_changed:
            store.drop_incoming()
        else:
            # A process killed in between must not leave a copy with the digest of another one.
            both = {**stored.copy.entry, "incoming": stored.dataset.entry}
            store.write_manifest({**manifest, "status": "running", "dataset": both})
            store.take_incoming()
        logs = log_entries(manifest)
        is_earlier = manifest.setdefault("digests", 1) != DIGESTS
        opened = self._load(
            store,
            {**manifest, "dataset": stored.dataset.entry, **stored.described.entries()},
            copy=None if is_changed else stored.copy,
            logs=logs._replace(is_complete=logs.is_complete and not is_changed),
        )
        notices = _unverified_judges(stored.described, manifest, opened.index)
        if is_changed and stored.copy.damage is not None:
            notices.insert(0, stored.copy.damage.when_resumed())
        if is_earlier and stored.described.shared_prompts:
            notices.append(
                "the run has votes of an earlier version, from prompts with several criteria, which stay "
                "valid if another criterion of their prompt changes; to judge all again, use another name"
            )
        if stored.vote_changes:
            changes = "; ".join(stored.vote_changes[:MOST_LISTED])
            notices.append(f"stored votes that depend on these changes are no longer valid: {changes}")
        if stored.score_changes:
            changes = "; ".join(stored.score_changes[:MOST_LISTED])
            notices.append(
                "scores were recomputed from stored votes; only missing votes are requested. Changes: "
                + changes
            )
        opened.notices.extend(notices)
        return opened

    def _fork(self, origin: Path) -> OpenRun:
        """Return an earlier fork of a run if its settings match, otherwise a new one."""
        for name in (f"{origin.name}-{number}" for number in count(2)):
            with self._locked_folder(name) as store:
                if not (store.path / MANIFEST).exists():
                    # The folder is new, or a killed process began it.
                    opened = self._begin(store, origin)
                    opened.notices.append(
                        f"forked from {origin.name}: votes whose dependencies have not changed were copied"
                    )
                    return opened
                stored = self._compare(store)
                if not stored.vote_changes:
                    return self._resume(store, stored)
                self._leave(store)
        raise AssertionError("the names of forks are endless")  # pragma: no cover

    # What the outcomes share

    def _compare(self, store: RunStore) -> _StoredRun:
        """Return the run stored in a folder, with what has changed since."""
        manifest = read_manifest(store.path)
        manifest["unsealed"] = _unsealed_sizes(store.path, manifest)
        store.mark = log_entries(manifest).mark or new_mark()
        # Items that were missing when runs were merged may be graded now.
        manifest.pop("missing", None)
        dataset, copy, changed_dataset = self._compare_dataset(store, manifest)
        described = with_checks(self.grader.describe(), dataset.checks)
        vote_changes = asking_differences(manifest, described, changed_dataset)
        score_changes = deciding_differences(manifest, described, changed_dataset)
        if (vote_changes or score_changes) and not (_has_replies(store.path) or _has_batches(store)):
            # No reply was paid for, so there is nothing to protect under another name.
            vote_changes, score_changes = [], []
        return _StoredRun(
            manifest=manifest,
            described=described,
            dataset=dataset,
            copy=copy,
            changed_dataset=changed_dataset,
            vote_changes=vote_changes,
            score_changes=score_changes,
        )

    def _compare_dataset(
        self, store: RunStore, manifest: Mapping[str, Json]
    ) -> tuple[DatasetEntry, StoredDataset, ChangedDataset | None]:
        """Return the dataset, its copy (restored if damaged and of this dataset), and their differences."""
        entry: dict[str, Json] = dict(manifest.get("dataset") or {})
        try:
            old = stored_dataset(store.path, manifest)
        except RunFormatError:
            current = copy_dataset(self.dataset, store)
            if current.entry["sha256"] != entry.get("sha256"):
                raise
            damage = Damage(file=DATASET, what="the file cannot be read", n_items=len(self.dataset))
            return current, _restored_copy(store, manifest, damage), None
        entry = dict(old.entry)
        source = self.dataset.source_digest()
        is_same = source is not None and source == entry.get("source")
        if is_same and old.damage is None and len(old.dataset) == entry.get("n_items"):
            # The dataset need not be read at all.
            checks = mapping_in(mapping_in(manifest, "asking"), "checks")
            return unchanged_copy(self.dataset, entry, checks), old, None
        is_akin = old.damage is None and old.dataset.header_line() == self.dataset.header_line()
        earlier = PreviousSnapshot(old.dataset.item_lines(), len(old.dataset), is_akin=is_akin)
        current = copy_dataset(self.dataset, store, earlier)
        if current.entry["sha256"] == entry.get("sha256"):
            if old.damage is not None:
                old = _restored_copy(store, manifest, old.damage)
            return current.with_earlier(entry.get("earlier")), old, None
        changed = ChangedDataset(old.dataset, RubricDataset.from_copy(store.path / INCOMING), earlier.kept)
        return current.with_earlier(_earlier(entry, current, changed)), old, changed

    def _load(
        self,
        store: RunStore,
        manifest: Mapping[str, Json],
        copy: StoredDataset | None = None,
        logs: LogEntries | None = None,
    ) -> OpenRun:
        """Return the run with this manifest, after restoring damaged logs; `copy` is an unchanged dataset."""
        now = {**manifest, "mark": store.mark, "autorubric": VERSION}
        now.update(status="running", completed_at=None)
        now.pop("sizes", None)
        if self.config.run_file is not None:
            store.write_run_file(self.config.run_file)
        held = copy or stored_dataset(store.path, now)
        dataset = self.dataset
        if dataset.is_streamed:
            dataset = dataset.reading_items_of(held.dataset)
        validity = LineValidity.of(now, dataset)
        index = load_index(store.path, dataset, validity, logs or log_entries(now))
        damages = [*([held.damage] if held.damage is not None else []), *index.damages]
        if unverified := [one.lasting_notice() for one in damages if one.is_unlocated]:
            now["unverified"] = unverified
        if copy is None or index.settled.count(0) or index.surveys:
            # If nothing is left to do, the manifest that is written at the end is enough.
            store.write_manifest(now)
        if index.surveys:
            restore_logs(store, index)
            now["unsealed"] = {**mapping_in(now, "unsealed"), ITEMS: 0}
            index = load_index(store.path, dataset, validity, log_entries(now))
        store.n_items, store.open_from = index.count, index.open_from if index.open_votes else None
        damage_notices = [one.when_resumed() for one in damages]
        warn_of_damage(damage_notices)
        lasting = (*(now.get("unverified") or ()), *(now.get("model_aliases") or ()))
        index.notices.extend((*damage_notices, *lasting))
        return OpenRun(
            name=store.path.name,
            store=store,
            dataset=dataset,
            validity=validity,
            reusable=ReusableVotes(dataset, now),
            index=index,
            manifest=now,
            notices=index.notices,
        )


def _restored_copy(store: RunStore, manifest: Mapping[str, Json], damage: Damage) -> StoredDataset:
    """Replace the dataset copy in the folder by the one just written, and return it."""
    store.take_incoming()
    return stored_dataset(store.path, manifest)._replace(damage=damage)


def _earlier(entry: Mapping[str, Json], current: DatasetEntry, changed: ChangedDataset) -> Json:
    """Return, by digest of each earlier copy, the ids of its items that have changed since."""
    sha256, now = entry.get("sha256"), str(current.entry["sha256"])[:_DIGITS]
    if not isinstance(sha256, str) or not changed.shares_the_same or changed.kept.count(0) > _MOST_GONE:
        return None
    gone = [changed.old.item_id(position) for position, kept in enumerate(changed.kept) if not kept]
    before = {**mapping_in(entry, "earlier"), sha256[:_DIGITS]: []}
    found: dict[str, Json] = {one: sorted({*lost, *gone}) for one, lost in before.items() if one != now}
    return {one: lost for one, lost in found.items() if len(lost) <= _MOST_GONE}


def _unsealed_sizes(path: Path, manifest: Mapping[str, Any]) -> dict[str, Json]:
    """Return, by log of a run folder, the bytes of lines that an older version wrote without checksums."""
    known = log_entries(manifest).unsealed
    files = {log: path / log for log in known}
    return {log: min(known[log], file.stat().st_size) for log, file in files.items() if file.exists()}


def _has_replies(path: Path) -> bool:
    """Return whether the folder stores a vote that received a reply."""
    try:
        with (path / VOTES).open("rb") as file:
            return any(_is_reply(raw) for raw in file)
    except FileNotFoundError:
        return False


def _has_batches(store: RunStore) -> bool:
    """Return whether batches were submitted whose replies were not used yet."""
    if not (record := store.path / BATCHES).exists():
        return False
    # Imported late: few runs have batches.
    from autorubric.llm.batches import BatchQueue

    queue = BatchQueue(record, store.mark)
    queue.close()
    return queue.is_unused


def _is_reply(raw: bytes) -> bool:
    try:
        return not parse_vote(raw).vote.without_reply
    except ValueError:
        # A damaged line may have had a reply; a killed process leaves an incomplete last line.
        return raw.endswith(b"\n") and not raw.isspace()


def _unverified_judges(
    described: GraderDescription, stored: Mapping[str, Json], index: RunIndex
) -> list[str]:
    """Return a notice for each judge that does not describe itself but whose stored votes are reused."""
    before = mapping_in(mapping_in(stored, "asking"), "judges")
    voted = index.count or index.open_votes
    return [
        f"judge {name!r} has no describe() method, so its stored votes were matched by its class name and "
        "changes to its state were not detected"
        for name, who in mapping_in(described.asking, "judges").items()
        if voted and name in before and who.get("describes_itself") is False
    ]


def run_name_of(dataset: RubricDataset) -> str:
    """Return the dataset's name, shortened and without characters that are invalid in folder names."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in dataset.name or "run")
    return kept[:_LONGEST].strip(".-_") or "run"


def create_run_folder(dataset: RubricDataset, folder: Path) -> str:
    """Create the folder of a new run and return its name, which no other run has."""
    name = f"{run_name_of(dataset)}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = chain([name], (f"{name}-{number:02}" for number in count(2)))
    return next(one for one in names if _was_created(run_path(folder, one)))


def _was_created(path: Path) -> bool:
    """Return whether this call created the folder; True if creation fails, as a later write reports that."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return not os.path.lexists(path)
    except OSError:
        pass
    return True
