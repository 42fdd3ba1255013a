"""Opens a run folder for writing: a new one, or one to resume if nothing it depends on has changed."""

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
from autorubric.dataset import EarlierCopy, RubricDataset
from autorubric.errors import RunError, RunFormatError, RunMismatchError
from autorubric.eval._config import EvalConfig
from autorubric.eval._copy import Copied, copy_dataset, uncopied
from autorubric.eval._damage import Damage, restore_logs, warn_of_damage
from autorubric.eval._dataset_copy import StoredDataset, mark_in_sums, sha256_of, stored_dataset
from autorubric.eval._differences import ChangedDataset, asking_differences, deciding_differences
from autorubric.eval._fingerprint import mapping_in, with_checks
from autorubric.eval._folder import (
    DATASET,
    INCOMING,
    ITEMS,
    LOGS,
    MANIFEST,
    PROMPTS,
    VOTES,
    Written,
    new_mark,
    read_manifest,
    run_path,
    written_by,
)
from autorubric.eval._index import RunIndex, Stand
from autorubric.eval._lines import parse_vote
from autorubric.eval._log import unsealed_bytes
from autorubric.eval._notices import Notices
from autorubric.eval._reopen import stand_of
from autorubric.eval._standing import StandingVotes
from autorubric.eval._store import RunStore
from autorubric.reporting import GraderDescription
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.graders import Grader

_MOST_TOLD = 12
_MOST_GONE = 1000
"""So many items may have changed for the lines of all others to be taken as they stand."""
_DIGITS = 16
_LONGEST = 80
"""Characters of a dataset's name that go into the name of a run."""


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run folder open for writing.

    Attributes:
        name: The run's name.
        store: Where votes and items go.
        dataset: What is graded; where it was given streamed, its items are read from the copy in the folder.
        stand: The conditions that the lines of items are written under.
        standing: Selects the stored votes that are still valid and not cast again.
        index: Where the line and the votes of each item stand.
        manifest: The manifest as written.
        notices: Notices for the reader.
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
    """Return the run folder that a config names, open for writing.

    Raises:
        ArgumentError: If the name is not a plain name; or the dataset has no items, or one without a rubric.
        DatasetError: If a streamed dataset has errors.
        RunError: If it is there already and `resume` is off.
        RunLockedError: If another process writes to it.
        RunFormatError: If it was written by a newer version, or is damaged.
        RunMismatchError: If what it depends on has changed and `on_mismatch` is `"refuse"`.
    """
    name = config.experiment_name
    if name is None:
        name = made_name(dataset, config.experiments_dir)
    else:
        run_path(config.experiments_dir, name)
    return _Given(dataset, grader, config).open(name)


class _Given:
    """The arguments of opening a run."""

    def __init__(self, dataset: RubricDataset, grader: Grader, config: EvalConfig) -> None:
        self.dataset = dataset
        self.grader = grader
        self.config = config

    def open(self, name: str, *, forked_from: Path | None = None) -> OpenRun:
        """Return the run of this name; a new one takes over what is stored in `forked_from`."""
        store = RunStore(self.config.experiments_dir / name, store_prompts=self.config.store_prompts)
        manifest = store.path / MANIFEST
        try:
            if not manifest.exists():
                return self._begin(name, store, forked_from)
            if not self.config.resume:
                raise RunError(
                    f"{store.path} is there already; choose another experiment_name, or resume=True"
                )
            opened = self._go_on(name, store)
        except BaseException:
            store.drop_incoming()
            if not manifest.exists():
                # What cannot be stored leaves no folder behind.
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
            head["unsealed"] = _unsealed(forked_from, before)
            # Its lines were sealed with its mark; those of format 1 are not sealed.
            store.mark = written_by(before).mark or store.mark
        elif store.has_votes:
            _demand_copy(store.path, copied)
            head["unsealed"] = {log: unsealed_bytes(store.path / log) for log in LOGS}
            store.mark = mark_in_sums(store.path) or store.mark
        store.take_incoming()
        if self.config.shard is not None:
            head["shard"] = list(self.config.shard)
        return self._opened(name, store, {**head, **_depends(described, copied)})

    def _go_on(self, name: str, store: RunStore) -> OpenRun | None:
        """Return the run; None if it is to be forked."""
        stored = read_manifest(store.path)
        stored["unsealed"] = _unsealed(store.path, stored)
        store.mark = written_by(stored).mark or new_mark()
        # What was missing when runs were merged may come now.
        stored.pop("missing", None)
        copied, old, changed_dataset = self._compared(store, stored)
        described = with_checks(self.grader.describe(), copied.checks)
        changed = asking_differences(stored, described, changed_dataset)
        if changed and not _has_replies(store.path):
            # Nothing was bought that another name would have to protect.
            changed = []
        if changed and self.config.on_mismatch == "refuse":
            raise RunMismatchError(_refusal(store.path, changed), differences=changed)
        if changed and self.config.on_mismatch == "fork":
            return None
        rescored = deciding_differences(stored, described, changed_dataset)
        if changed_dataset is None:
            store.drop_incoming()
        else:
            # A process that is killed between the two must not leave a copy under another's digest.
            both = {**old.entry, "incoming": copied.entry}
            store.write_manifest({**stored, "status": "running", "dataset": both})
            store.take_incoming()
        opened = self._opened(
            name,
            store,
            {**stored, **_depends(described, copied)},
            copy=old if changed_dataset is None else None,
            written=written_by(stored)._replace(
                is_complete=changed_dataset is None and stored.get("status") == "complete"
            ),
        )
        if changed_dataset is not None and old.damage is not None:
            opened.notices.append(old.damage.when_resumed())
        for told in _taken_on_trust(described, stored, opened.index):
            opened.notices.append(told)
        if changed:
            told = "; ".join(changed[:_MOST_TOLD])
            opened.notices.append(f"votes that depend on these no longer stand: {told}")
        if rescored:
            told = "; ".join(rescored[:_MOST_TOLD])
            opened.notices.append(
                f"scored again from the stored votes; only missing votes are requested. Changed: {told}"
            )
        return opened

    def _compared(
        self, store: RunStore, stored: Mapping[str, Json]
    ) -> tuple[Copied, StoredDataset, ChangedDataset | None]:
        """Return the current dataset, its copy in the folder, and their differences.

        A copy that is damaged is restored, where the dataset is the one that was judged.
        """
        entry: dict[str, Json] = dict(stored.get("dataset") or {})
        try:
            old = stored_dataset(store.path, stored)
        except RunFormatError:
            copied = copy_dataset(self.dataset, store)
            if copied.entry["sha256"] != entry.get("sha256"):
                raise
            return copied, self._restored(store, stored, copied, None), None
        entry = dict(old.entry)
        source = self.dataset.source_digest()
        is_same = source is not None and source == entry.get("source")
        if is_same and old.damage is None and len(old.dataset) == entry.get("n_items"):
            # It need not even be gone through.
            checks = mapping_in(mapping_in(stored, "asking"), "checks")
            return uncopied(self.dataset, entry, checks), old, None
        is_akin = old.damage is None and old.dataset.header_line() == self.dataset.header_line()
        earlier = EarlierCopy(old.dataset.item_lines(), len(old.dataset), is_akin=is_akin)
        copied = copy_dataset(self.dataset, store, earlier)
        if copied.entry["sha256"] == entry.get("sha256"):
            if old.damage is not None:
                old = self._restored(store, stored, copied, old.damage)
            copied.entry["earlier"] = entry.get("earlier")
            return copied, old, None
        changed = ChangedDataset(old.dataset, RubricDataset.from_copy(store.path / INCOMING), earlier.kept)
        copied.entry["earlier"] = _earlier(entry, copied, changed)
        return copied, old, changed

    def _restored(
        self, store: RunStore, stored: Mapping[str, Json], copied: Copied, damage: Damage | None
    ) -> StoredDataset:
        """Return the copy of the dataset, with what is in the folder replaced by what was just written."""
        store.take_incoming()
        if damage is None:
            damage = Damage(file=DATASET, what="it cannot be read", n_items=len(self.dataset))
        return stored_dataset(store.path, stored)._replace(damage=damage)

    def _opened(
        self,
        name: str,
        store: RunStore,
        manifest: Mapping[str, Json],
        copy: StoredDataset | None = None,
        written: Written | None = None,
    ) -> OpenRun:
        """Return the run with this manifest.

        Args:
            name: Its name.
            store: Its folder.
            manifest: The manifest.
            copy: The copy of its dataset, where that is as it was.
            written: What its manifest said of the logs; from `manifest` by default.
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
        index = RunIndex.load(store.path, dataset, stand, written or written_by(now))
        damages = [*([held.damage] if held.damage is not None else []), *index.damages]
        if unverified := [one.doubt() for one in damages if one.is_unlocated]:
            now["unverified"] = unverified
        if copy is None or index.settled.count(0) or index.surveys:
            # Where nothing is left to do, the manifest that is written at the end says as much.
            store.write_manifest(now)
        if index.surveys:
            restore_logs(store, index)
            now["unsealed"] = {**mapping_in(now, "unsealed"), ITEMS: 0}
            index = RunIndex.load(store.path, dataset, stand, written_by(now))
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
        earlier = _Given(self.dataset, self.grader, self.config.model_copy(update=_GO_ON))
        for fork in (f"{name}-{number}" for number in count(2)):
            if not (folder / fork / MANIFEST).exists():
                # Not there, or begun by a process that was killed.
                break
            with suppress(RunMismatchError):
                return earlier.open(fork)
        opened = self.open(fork, forked_from=store.path)
        opened.notices.append(f"forked from {name}: what has not changed was taken from there")
        return opened


_GO_ON = {"on_mismatch": "refuse", "resume": True}


def _earlier(entry: Mapping[str, Json], copied: Copied, changed: ChangedDataset) -> Json:
    """By the digest of each copy before this one, the ids of its items that are no longer as they were.

    Lines of the others stand as they are, and need not be gone through one by one.

    Args:
        entry: What the manifest says of the copy before this one.
        copied: The entry for this copy.
        changed: Both.
    """
    sha256, now = entry.get("sha256"), str(copied.entry["sha256"])[:_DIGITS]
    if not isinstance(sha256, str) or not changed.shares_the_same or changed.kept.count(0) > _MOST_GONE:
        return None
    gone = changed.gone()
    before = {**mapping_in(entry, "earlier"), sha256[:_DIGITS]: []}
    found: dict[str, Json] = {one: sorted({*lost, *gone}) for one, lost in before.items() if one != now}
    return {one: lost for one, lost in found.items() if len(lost) <= _MOST_GONE}


def _demand_copy(path: Path, copied: Copied) -> None:
    """Before the copy of a dataset is replaced in a folder that has votes but no manifest.

    Raises:
        RunFormatError: If it is of another dataset.
    """
    if not (path / DATASET).exists():
        return
    if sha256_of(path / DATASET) != copied.entry["sha256"]:
        raise RunFormatError(
            f"{path} has votes but no {MANIFEST}, and they belong to another dataset; put "
            "the manifest back, or choose another experiment_name"
        )


def _unsealed(path: Path, manifest: Mapping[str, Any]) -> dict[str, Json]:
    """By log of a run folder, bytes of the lines that an older version wrote, without a checksum."""
    known = written_by(manifest).unsealed
    files = {log: path / log for log in known}
    return {log: min(known[log], file.stat().st_size) for log, file in files.items() if file.exists()}


def _depends(described: GraderDescription, copied: Copied) -> dict[str, Json]:
    """Return the manifest's entries on what votes and figures depend on."""
    # Through JSON, as it will be read: tuples and lists are the same there.
    asking, deciding = json.loads(json.dumps([dict(described.asking), dict(described.deciding)]))
    return {"dataset": copied.entry, "asking": asking, "deciding": deciding}


def _has_replies(path: Path) -> bool:
    """Return whether a vote is stored for which a reply came."""
    try:
        with (path / VOTES).open("rb") as file:
            return any(_is_reply(raw) for raw in file)
    except FileNotFoundError:
        return False


def _is_reply(raw: bytes) -> bool:
    try:
        return not parse_vote(raw).vote.without_reply
    except ValueError:
        # A damaged line may have been one; a torn last line is what a killed process leaves.
        return raw.endswith(b"\n") and not raw.isspace()


def _taken_on_trust(described: GraderDescription, stored: Mapping[str, Json], index: RunIndex) -> list[str]:
    """Return a notice for each judge whose stored votes stand although it cannot say what they depend on."""
    before = mapping_in(mapping_in(stored, "asking"), "judges")
    voted = index.count or index.unclaimed
    return [
        f"judge {name!r} has no describe(), so a change in its state is not detected: its stored votes were "
        "matched by the name of its class"
        for name, who in mapping_in(described.asking, "judges").items()
        if voted and name in before and who.get("describes_itself") is False
    ]


def _refusal(path: Path, changed: list[str]) -> str:
    told = "\n".join(f"  - {line}" for line in changed[:_MOST_TOLD])
    more = f"\n  - and {len(changed) - _MOST_TOLD} more" if len(changed) > _MOST_TOLD else ""
    return (
        f"{path} was made with settings other than those given now:\n{told}{more}\n"
        "Choose another experiment_name, or on_mismatch='rejudge' to ask again for what changed, or 'fork' "
        "to continue in a new folder."
    )


def plain_name(dataset: RubricDataset) -> str:
    """Return the dataset's name, shortened and without characters that folder names may not have."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in dataset.name or "run")
    return kept[:_LONGEST].strip(".-_") or "run"


def made_name(dataset: RubricDataset, folder: Path) -> str:
    """Return a name that no other run has, or is given at the same time: its folder is there from now on."""
    name = f"{plain_name(dataset)}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = chain([name], (f"{name}-{number:02}" for number in count(2)))
    return next(one for one in names if _is_made(run_path(folder, one)))


def _is_made(path: Path) -> bool:
    """Return whether the folder was created here; a later write reports if it cannot be."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return not os.path.lexists(path)
    except OSError:
        pass
    return True
