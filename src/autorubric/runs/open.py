"""Opening a run folder for writing: creating it, or resuming it if its dependencies have not changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
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
from autorubric.runs.damage import load_index, restore_logs
from autorubric.runs.dataset_copy import StoredDataset, mark_in_sums, sha256_of, stored_dataset
from autorubric.runs.differences import (
    ChangedDataset,
    asking_differences,
    deciding_differences,
    mapping_in,
    with_checks,
)
from autorubric.runs.index import RunIndex, Stand
from autorubric.runs.item_results import StandingVotes
from autorubric.runs.items import Damage, Notices, warn_of_damage
from autorubric.runs.lines import parse_vote
from autorubric.runs.log import (
    DATASET,
    INCOMING,
    ITEMS,
    LOGS,
    MANIFEST,
    PROMPTS,
    VOTES,
    Written,
    log_entries,
    new_mark,
    read_manifest,
    run_path,
    unsealed_bytes,
)
from autorubric.runs.reopen import stand_of
from autorubric.runs.store import Copied, RunStore, copy_dataset, unchanged_copy
from autorubric.support.objects import Json

if TYPE_CHECKING:
    from autorubric.grading.base import Grader


_MOST_TOLD = 12
_MOST_GONE = 1000
"""Maximum number of changed items for which the lines of all other items are kept as they are."""
_DIGITS = 16
_LONGEST = 80
"""Maximum number of characters of a dataset's name that are used in the name of a run."""


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run folder open for writing.

    Attributes:
        name: The run's name.
        store: Writer of votes and items to the folder.
        dataset: The dataset to grade; items of a streamed dataset are read from the copy in the folder.
        stand: The conditions under which lines of items are valid.
        standing: Selects the stored votes that are still valid, which are not cast again.
        index: Offsets of the line and the votes of each item.
        manifest: The manifest in its current form.
        notices: Messages for the user.
    """

    name: str
    store: RunStore
    dataset: RubricDataset
    stand: Stand
    standing: StandingVotes
    index: RunIndex
    manifest: dict[str, Json]
    notices: Notices


def open_run(dataset: RubricDataset, grader: Grader, config: EvalConfig) -> OpenRun:
    """Open the run folder that a config names for writing."""
    name = config.experiment_name
    if name is None:
        name = create_run_folder(dataset, config.experiments_dir)
    else:
        run_path(config.experiments_dir, name)
    return _RunOpener(dataset, grader, config).open(name)


class _RunOpener:
    """The dataset, grader and config with which a run is opened."""

    def __init__(self, dataset: RubricDataset, grader: Grader, config: EvalConfig) -> None:
        self.dataset = dataset
        self.grader = grader
        self.config = config

    def open(self, name: str, *, forked_from: Path | None = None) -> OpenRun:
        """Return the run of this name; a new run copies the votes and items stored in `forked_from`."""
        store = RunStore(self.config.experiments_dir / name, store_prompts=self.config.store_prompts)
        manifest = store.path / MANIFEST
        try:
            if not manifest.exists():
                return self._begin(name, store, forked_from)
            if not self.config.resume:
                raise RunError(
                    f"{store.path} already exists; choose another experiment_name, or pass resume=True"
                )
            opened = self._go_on(name, store)
        except BaseException:
            store.drop_incoming()
            if not manifest.exists():
                # A run that cannot be stored leaves no folder behind.
                store.remove()
            store.close()
            raise
        return opened or self._fork(name, store)

    def _begin(self, name: str, store: RunStore, forked_from: Path | None) -> OpenRun:
        store.mark = new_mark()
        copied = copy_dataset(self.dataset, store)
        described = with_checks(self.grader.describe(), copied.checks)
        head: dict[str, Json] = {
            "autorubric": VERSION,
            "experiment_name": name,
            "started_at": datetime.now(UTC).isoformat(),
        }
        if forked_from is not None:
            for file in (VOTES, ITEMS, *((PROMPTS,) if store.store_prompts else ())):
                store.take_over(forked_from / file)
            before = read_manifest(forked_from)
            head["unsealed"] = _unsealed_bytes(forked_from, before)
            # The lines were sealed with the old run's mark; lines of format 1 are not sealed.
            store.mark = log_entries(before).mark or store.mark
        elif store.has_votes:
            _demand_copy(store.path, copied)
            head["unsealed"] = {log: unsealed_bytes(store.path / log) for log in LOGS}
            store.mark = mark_in_sums(store.path) or store.mark
        store.take_incoming()
        if self.config.shard is not None:
            head["shard"] = list(self.config.shard)
        return self._open_with(name, store, {**head, **_depends(described, copied)})

    def _go_on(self, name: str, store: RunStore) -> OpenRun | None:
        """Return the resumed run; None if it must be forked."""
        stored = read_manifest(store.path)
        stored["unsealed"] = _unsealed_bytes(store.path, stored)
        store.mark = log_entries(stored).mark or new_mark()
        # Items that were missing when runs were merged may be graded now.
        stored.pop("missing", None)
        copied, old, changed_dataset = self._compare_dataset(store, stored)
        described = with_checks(self.grader.describe(), copied.checks)
        changed = asking_differences(stored, described, changed_dataset)
        rescored = deciding_differences(stored, described, changed_dataset)
        if (changed or rescored) and not _has_replies(store.path):
            # No reply was paid for, so there is nothing to protect under another name.
            changed, rescored = [], []
        if changed and self.config.on_mismatch == "refuse":
            raise RunMismatchError(_refusal(store.path, changed), differences=changed)
        if changed and self.config.on_mismatch == "fork":
            return None
        if changed_dataset is None:
            store.drop_incoming()
        else:
            # A process killed in between must not leave a copy with the digest of another one.
            both = {**old.entry, "incoming": copied.entry}
            store.write_manifest({**stored, "status": "running", "dataset": both})
            store.take_incoming()
        opened = self._open_with(
            name,
            store,
            {**stored, **_depends(described, copied)},
            copy=old if changed_dataset is None else None,
            written=log_entries(stored)._replace(
                is_complete=changed_dataset is None and stored.get("status") == "complete"
            ),
        )
        if changed_dataset is not None and old.damage is not None:
            opened.notices.append(old.damage.when_resumed())
        for told in _unverified_judges(described, stored, opened.index):
            opened.notices.append(told)
        if changed:
            told = "; ".join(changed[:_MOST_TOLD])
            opened.notices.append(f"stored votes that depend on these changes are no longer valid: {told}")
        if rescored:
            told = "; ".join(rescored[:_MOST_TOLD])
            opened.notices.append(
                f"scores were recomputed from stored votes; only missing votes are requested. Changes: {told}"
            )
        return opened

    def _compare_dataset(
        self, store: RunStore, stored: Mapping[str, Json]
    ) -> tuple[Copied, StoredDataset, ChangedDataset | None]:
        """Return the current dataset, its copy in the folder, and their differences.

        A damaged copy is restored if the current dataset is the one that was judged.
        """
        entry: dict[str, Json] = dict(stored.get("dataset") or {})
        try:
            old = stored_dataset(store.path, stored)
        except RunFormatError:
            copied = copy_dataset(self.dataset, store)
            if copied.entry["sha256"] != entry.get("sha256"):
                raise
            return copied, self._restore_dataset(store, stored, copied, None), None
        entry = dict(old.entry)
        source = self.dataset.source_digest()
        is_same = source is not None and source == entry.get("source")
        if is_same and old.damage is None and len(old.dataset) == entry.get("n_items"):
            # The dataset need not be read at all.
            checks = mapping_in(mapping_in(stored, "asking"), "checks")
            return unchanged_copy(self.dataset, entry, checks), old, None
        is_akin = old.damage is None and old.dataset.header_line() == self.dataset.header_line()
        earlier = PreviousSnapshot(old.dataset.item_lines(), len(old.dataset), is_akin=is_akin)
        copied = copy_dataset(self.dataset, store, earlier)
        if copied.entry["sha256"] == entry.get("sha256"):
            if old.damage is not None:
                old = self._restore_dataset(store, stored, copied, old.damage)
            copied.entry["earlier"] = entry.get("earlier")
            return copied, old, None
        changed = ChangedDataset(old.dataset, RubricDataset.from_copy(store.path / INCOMING), earlier.kept)
        copied.entry["earlier"] = _earlier(entry, copied, changed)
        return copied, old, changed

    def _restore_dataset(
        self, store: RunStore, stored: Mapping[str, Json], copied: Copied, damage: Damage | None
    ) -> StoredDataset:
        """Replace the dataset copy in the folder by the one just written, and return it."""
        store.take_incoming()
        if damage is None:
            damage = Damage(file=DATASET, what="the file cannot be read", n_items=len(self.dataset))
        return stored_dataset(store.path, stored)._replace(damage=damage)

    def _open_with(
        self,
        name: str,
        store: RunStore,
        manifest: Mapping[str, Json],
        copy: StoredDataset | None = None,
        written: Written | None = None,
    ) -> OpenRun:
        """Return the run with this manifest.

        `copy` is the copy of the dataset if it has not changed. `written` contains the stored manifest's
        entries about the logs, by default those of `manifest`.
        """
        now = {**manifest, "mark": store.mark, "autorubric": VERSION}
        now.update(status="running", completed_at=None)
        now.pop("sizes", None)
        if self.config.run_file is not None:
            store.write_run_file(self.config.run_file)
        held = copy or stored_dataset(store.path, now)
        dataset = self.dataset
        if dataset.is_streamed:
            dataset = dataset.reading_items_of(held.dataset)
        stand = stand_of(now, dataset)
        index = load_index(store.path, dataset, stand, written or log_entries(now))
        damages = [*([held.damage] if held.damage is not None else []), *index.damages]
        if unverified := [one.doubt() for one in damages if one.is_unlocated]:
            now["unverified"] = unverified
        if copy is None or index.settled.count(0) or index.surveys:
            # If nothing is left to do, the manifest that is written at the end is enough.
            store.write_manifest(now)
        if index.surveys:
            restore_logs(store, index)
            now["unsealed"] = {**mapping_in(now, "unsealed"), ITEMS: 0}
            index = load_index(store.path, dataset, stand, log_entries(now))
        store.lines_of_items = index.count
        store.votes_open = index.votes_open if index.unclaimed else None
        damage = [one.when_resumed() for one in damages]
        warn_of_damage(damage)
        for told in (*damage, *(now.get("unverified") or ())):
            index.notices.append(told)
        return OpenRun(
            name=name,
            store=store,
            dataset=dataset,
            stand=stand,
            standing=StandingVotes(dataset, now),
            index=index,
            manifest=now,
            notices=index.notices,
        )

    def _fork(self, name: str, store: RunStore) -> OpenRun:
        store.drop_incoming()
        store.close()
        folder = store.path.parent
        earlier = _RunOpener(self.dataset, self.grader, self.config.model_copy(update=_GO_ON))
        for fork in (f"{name}-{number}" for number in count(2)):
            if not (folder / fork / MANIFEST).exists():
                # The folder does not exist, or a killed process began it.
                break
            with suppress(RunMismatchError):
                return earlier.open(fork)
        opened = self.open(fork, forked_from=store.path)
        opened.notices.append(f"forked from {name}: votes whose dependencies have not changed were copied")
        return opened


_GO_ON = {"on_mismatch": "refuse", "resume": True}


def _earlier(entry: Mapping[str, Json], copied: Copied, changed: ChangedDataset) -> Json:
    """Return, by digest of each earlier copy, the ids of its items that have changed since.

    Lines of all other items remain valid. `entry` is the manifest's entry for the previous copy.
    """
    sha256, now = entry.get("sha256"), str(copied.entry["sha256"])[:_DIGITS]
    if not isinstance(sha256, str) or not changed.shares_the_same or changed.kept.count(0) > _MOST_GONE:
        return None
    gone = changed.gone()
    before = {**mapping_in(entry, "earlier"), sha256[:_DIGITS]: []}
    found: dict[str, Json] = {one: sorted({*lost, *gone}) for one, lost in before.items() if one != now}
    return {one: lost for one, lost in found.items() if len(lost) <= _MOST_GONE}


def _demand_copy(path: Path, copied: Copied) -> None:
    """Check the dataset copy of a folder that has votes but no manifest, before replacing the copy."""
    if not (path / DATASET).exists():
        return
    if sha256_of(path / DATASET) != copied.entry["sha256"]:
        raise RunFormatError(
            f"{path} has no {MANIFEST}, and its votes belong to another dataset; restore the manifest, or "
            "choose another experiment_name"
        )


def _unsealed_bytes(path: Path, manifest: Mapping[str, Any]) -> dict[str, Json]:
    """Return, by log of a run folder, the bytes of lines that an older version wrote without checksums."""
    known = log_entries(manifest).unsealed
    files = {log: path / log for log in known}
    return {log: min(known[log], file.stat().st_size) for log, file in files.items() if file.exists()}


def _depends(described: GraderDescription, copied: Copied) -> dict[str, Json]:
    """Return the manifest's entries for the dependencies of votes and figures."""
    # Converted to JSON and back, since the stored entries have lists instead of tuples.
    asking, deciding = json.loads(json.dumps([dict(described.asking), dict(described.deciding)]))
    return {"dataset": copied.entry, "asking": asking, "deciding": deciding}


def _has_replies(path: Path) -> bool:
    """Return whether the folder stores a vote that received a reply."""
    try:
        with (path / VOTES).open("rb") as file:
            return any(_is_reply(raw) for raw in file)
    except FileNotFoundError:
        return False


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
    voted = index.count or index.unclaimed
    return [
        f"judge {name!r} has no describe() method, so its stored votes were matched by its class name and "
        "changes to its state were not detected"
        for name, who in mapping_in(described.asking, "judges").items()
        if voted and name in before and who.get("describes_itself") is False
    ]


def _refusal(path: Path, changed: list[str]) -> str:
    told = "\n".join(f"  - {line}" for line in changed[:_MOST_TOLD])
    more = f"\n  - and {len(changed) - _MOST_TOLD} more" if len(changed) > _MOST_TOLD else ""
    return (
        f"{path} was created with other settings:\n{told}{more}\n"
        "Choose another experiment_name, or pass on_mismatch='rejudge' to request the affected votes again, "
        "or on_mismatch='fork' to continue in a new folder."
    )


def plain_name(dataset: RubricDataset) -> str:
    """Return the dataset's name, shortened and without characters that are invalid in folder names."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in dataset.name or "run")
    return kept[:_LONGEST].strip(".-_") or "run"


def create_run_folder(dataset: RubricDataset, folder: Path) -> str:
    """Create the folder of a new run and return its name, which no other run has."""
    name = f"{plain_name(dataset)}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = chain([name], (f"{name}-{number:02}" for number in count(2)))
    return next(one for one in names if _is_made(run_path(folder, one)))


def _is_made(path: Path) -> bool:
    """Return whether this call created the folder; True if creation fails, as a later write reports that."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return not os.path.lexists(path)
    except OSError:
        pass
    return True
