"""Merging runs: checking that they are compatible, and combining their items and votes."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from autorubric.datasets.dataset import RubricDataset
from autorubric.datasets.stream import line_of
from autorubric.errors import ArgumentError, RunError, RunFormatError, RunMismatchError
from autorubric.grading.base import GraderDescription
from autorubric.runs.config import EvalConfig, EvalOptions, Shard
from autorubric.runs.dataset_copy import stored_dataset
from autorubric.runs.differences import asking_differences, content_fingerprint, deciding_differences
from autorubric.runs.index import LineValidity, RunIndex
from autorubric.runs.lines import StoredVote
from autorubric.runs.manifest import BATCHES, PROMPTS, log_entries, new_mark, read_manifest
from autorubric.runs.notices import FEW, Notices, bulleted
from autorubric.runs.open import run_name_of
from autorubric.runs.reopen import read_index
from autorubric.runs.result import EvalResult
from autorubric.runs.runner import EvalRunner
from autorubric.runs.store import RunStore
from autorubric.runs.vote_reader import ReusableVotes
from autorubric.support.json_text import read_compact
from autorubric.support.record_log import body_of, log_lines

if TYPE_CHECKING:
    from autorubric.grading.base import Grader


_OWN = frozenset({"format", "shard", "missing", "sizes", "unsealed"})
"""Manifest entries that describe a single run only."""


class _Place(NamedTuple):
    """The location of an item: the index of its run, and its position in that run's dataset."""

    run: int
    position: int


class _MergeOrder(NamedTuple):
    """The locations of the items of the merged dataset."""

    first: dict[str, _Place]  # the first location of each item, by id, in order
    again: dict[str, list[_Place]]  # further locations of items that are in several runs, by id


@dataclass(frozen=True, kw_only=True)
class _RunPart:
    """One of the runs to merge."""

    path: Path
    manifest: dict[str, Any]
    dataset: RubricDataset
    index: RunIndex
    reusable: ReusableVotes

    @classmethod
    def read(cls, path: Path) -> _RunPart:
        manifest: dict[str, Any] = read_manifest(path)
        stored = stored_dataset(path, manifest)
        dataset, manifest["dataset"] = stored.dataset, dict(stored.entry)
        index = read_index(path, stored, LineValidity.of(manifest, dataset), log_entries(manifest))
        if index.damages:
            told = "; ".join(one.when_opened() for one in index.damages)
            raise RunFormatError(f"{path} cannot be merged until it is repaired: {told}")
        return cls(
            path=path,
            manifest=manifest,
            dataset=dataset,
            index=index,
            reusable=ReusableVotes(dataset, manifest),
        )

    @property
    def shard(self) -> Shard | None:
        """The shard that the run graded; None if the run is not a shard."""
        found = self.manifest.get("shard")
        return Shard(*found) if found else None

    def votes(self, position: int) -> list[StoredVote]:
        """Return the valid votes on an item; of several votes with the same key, only the last."""
        line = self.index.line(position)
        item_id = self.dataset.item_id(position)
        digests = self.reusable.digests(position)
        stored = self.index.votes(item_id, line)
        fitting = (one for _, one in stored if digests.fits(one.criterion, one.vote.judge_id, one.digest))
        return list({one.key: one for one in fitting}.values())


def merge_runs(paths: Iterable[str | Path], out: str | Path) -> EvalResult:
    """Merge several runs into one, as if all items had been graded in one run, without calling any judge.

    Shards from `run_shard` are merged into a run of the whole dataset, in dataset order. Other runs are
    concatenated. If an item is in several runs, its votes must be equal. The result's `notices` list missing
    shards and unfinished items. The merged run can be resumed like any other run.

    Args:
        paths: The run folders to merge.
        out: The folder of the merged run, which must not exist.

    Raises:
        ArgumentError: If `paths` is empty.
        RunMismatchError: If the runs have different settings, disagree on shared items, or wait for batches.
        RunFormatError: If a folder is not a run folder, or is damaged; resuming that run repairs it.
        RunError: If `out` already exists.
    """
    parts = [_RunPart.read(Path(path)) for path in paths]
    target = Path(out)
    if not parts:
        raise ArgumentError("paths must not be empty; pass the folders of the runs to merge")
    if target.exists():
        raise RunError(f"{target} already exists; pass a folder that does not exist")
    _refuse("wait for batches, which would be paid for again (collect them first)", _waiting(parts))
    _refuse("have different settings", _differences(parts))
    merged = _item_order(parts)
    _refuse("disagree", _disagreements(parts, merged))
    unfinished = target.with_name(target.name + ".merging")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _write(parts, merged, unfinished, target.name)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return EvalResult.from_experiment(target)


def _refuse(what: str, found: Sequence[str]) -> None:
    if found:
        message = f"the runs cannot be merged because they {what}:\n{bulleted(found)}"
        raise RunMismatchError(message, differences=found)


def _waiting(parts: Sequence[_RunPart]) -> list[str]:
    """Return the folders of runs that have outstanding batches."""
    found = []
    for part in (one for one in parts if (one.path / BATCHES).exists()):
        # Imported late: few runs have batches.
        from autorubric.llm.batches import batch_events

        steps: dict[int, str] = {}
        for event in batch_events(part.path / BATCHES, log_entries(part.manifest).mark or 0):
            steps = {} if event.get("used") else {**steps, event["batch"]: event["step"]}
        found += [str(part.path)] if {"planned", "submitting", "submitted"} & {*steps.values()} else []
    return found


def _differences(parts: Sequence[_RunPart]) -> list[str]:
    """Return the differences of the later runs from the first, one line each."""
    first, found = parts[0], []
    for part in parts[1:]:
        # A check may occur in the items of one part only, which is not a difference.
        before = {**first.manifest["asking"], "checks": _checks([part, first])}
        after = {**part.manifest["asking"], "checks": _checks([first, part])}
        now = GraderDescription(asking=after, deciding=part.manifest["deciding"])
        stored = {**first.manifest, "asking": before}
        changes = asking_differences(stored, now, None) + deciding_differences(stored, now, None)
        if part.dataset.header_line() != first.dataset.header_line():
            changes.append("the dataset's name, shared prompt, shared rubric or shared reference differs")
        if part.shard and first.shard and part.shard[1:] != first.shard[1:]:
            changes.append("the runs are shards of different datasets or have different numbers of shards")
        found += [f"{part.path.name} and {first.path.name}: {line}" for line in changes]
    return found


def _checks(parts: Iterable[_RunPart]) -> dict[str, Any]:
    """Return the checks of all runs; of several versions of a check, that of the last run."""
    found: dict[str, Any] = {}
    for part in parts:
        found.update(part.manifest["asking"].get("checks") or {})
    return dict(sorted(found.items()))


def _item_order(parts: Sequence[_RunPart]) -> _MergeOrder:
    """Return the locations of all items: shards in the order of the whole dataset, other runs in sequence."""
    places = [_Place(run, at) for run, part in enumerate(parts) for at in range(len(part.dataset))]
    shards = [part.shard for part in parts if part.shard]
    if len(shards) == len(parts):
        places.sort(key=lambda at: at.position * shards[at.run].shards + shards[at.run].number)
    first: dict[str, _Place] = {}
    again: dict[str, list[_Place]] = {}
    for place in places:
        item_id = parts[place.run].dataset.item_id(place.position)
        if item_id in first:
            again.setdefault(item_id, []).append(place)
        else:
            first[item_id] = place
    return _MergeOrder(first, again)


def _disagreements(parts: Sequence[_RunPart], merged: _MergeOrder) -> list[str]:
    """Return the items whose text or votes differ between runs, one line each."""
    found = []
    for item_id, others in merged.again.items():
        place = merged.first[item_id]
        part = parts[place.run]
        text = content_fingerprint(part.dataset, place.position)
        known = {one.key: _vote_key(one) for one in part.votes(place.position)}
        for other in others:
            beside = parts[other.run]
            where = f"item {item_id} in {part.path.name} and {beside.path.name}"
            if content_fingerprint(beside.dataset, other.position) != text:
                found.append(f"{where}: the text differs")
                continue
            found += [
                f"{where}: the vote of {one.vote.judge_id} on {one.criterion} differs"
                for one in beside.votes(other.position)
                if known.get(one.key, _vote_key(one)) != _vote_key(one)
            ]
    return found


def _vote_key(stored: StoredVote) -> tuple[Any, ...]:
    return (stored.vote.status, stored.vote.answer, stored.vote.value)


def _write(parts: Sequence[_RunPart], merged: _MergeOrder, folder: Path, name: str) -> None:
    store = RunStore(folder)
    store.mark = new_mark()
    try:
        sha256 = store.write_incoming(_dataset_lines(parts, merged.first.values()))
        store.take_incoming()
        manifest = _manifest(parts, name, len(merged.first), sha256)
        unfinished = _add_items(parts, merged, store, manifest)
        store.write_prompts(_prompts(parts, merged))
        if missing := [*_missing_shards(parts), *unfinished]:
            manifest.update(status="stopped", missing=missing)
        store.write_manifest(manifest)
    finally:
        store.close()


def _dataset_lines(parts: Sequence[_RunPart], places: Collection[_Place]) -> Iterator[bytes]:
    yield parts[0].dataset.header_line()
    # A shard's items always have ids; if all ids are positions, the items of the whole dataset had none.
    ids = (parts[place.run].dataset.item_id(place.position) for place in places)
    unnamed = all(item_id == str(at) for at, item_id in enumerate(ids))
    for place in places:
        item = parts[place.run].dataset.items[place.position]
        yield line_of((item.model_copy(update={"id": None}) if unnamed else item).snapshot())


def _manifest(parts: Sequence[_RunPart], name: str, n_items: int, sha256: str) -> dict[str, Any]:
    first = parts[0].manifest
    ends = [part.manifest.get("completed_at") for part in parts]
    return {
        **{key: value for key, value in first.items() if key not in _OWN},
        "experiment_name": name,
        "started_at": min(part.manifest.get("started_at") or "" for part in parts),
        "completed_at": max((end for end in ends if end), default=None),
        "status": "complete",
        "dataset": {
            "name": first["dataset"].get("name"),
            "n_items": n_items,
            "sha256": sha256,
            "source": None,
        },
        "asking": {**first["asking"], "checks": _checks(parts)},
        "shared_prompts": max((part.manifest.get("shared_prompts", {}) for part in parts), key=len),
        "digests": min(part.manifest.get("digests", 1) for part in parts),
    }


def _add_items(
    parts: Sequence[_RunPart], merged: _MergeOrder, store: RunStore, manifest: dict[str, Any]
) -> Notices:
    """Add the votes and lines of all items, and return notices about unfinished items."""
    dataset = stored_dataset(store.path, manifest).dataset
    validity = LineValidity.of(manifest, dataset)
    unfinished = Notices()
    for position, place in enumerate(merged.first.values()):
        item_id = dataset.item_id(position)
        held = [(parts[at.run], at.position) for at in (place, *merged.again.get(item_id, ()))]
        votes = {one.key: one for part, at in reversed(held) for one in part.votes(at)}
        for one in votes.values():
            store.add_vote(one)
        line = next((part.index.line(at) for part, at in held if part.index.current[at]), None)
        if line is None:
            unfinished.add("items are unfinished", f"item {item_id} is unfinished")
        else:
            cast = tuple(store.votes_cast(item_id))
            store.add_item(
                replace(line, position=position, basis=validity.basis, dataset=validity.dataset, votes=cast)
            )
        store.flush()
    return unfinished


def _missing_shards(parts: Sequence[_RunPart]) -> Notices:
    missing = Notices()
    shards = [part.shard for part in parts if part.shard]
    if len(shards) < len(parts):
        return missing
    there, count = {shard.number for shard in shards}, shards[0].shards
    kind = f"of {count:,} shards"
    # The manifest's number of shards may be very large.
    for number in islice((number for number in range(count) if number not in there), FEW):
        missing.add(kind, f"shard {number} of {count}")
    more = count - len(there) - FEW
    if more > 0:
        missing.count(kind, more)
    return missing


def _prompts(parts: Sequence[_RunPart], merged: _MergeOrder) -> Iterator[bytes]:
    """Yield the stored exchanges line by line; for items in several runs, only those of the first run."""
    for run, part in enumerate(parts):
        others = {item_id for item_id, places in merged.again.items() if any(at.run == run for at in places)}
        written = log_entries(part.manifest)
        unsealed = written.unsealed.get(PROMPTS, 0)
        for _, offset, raw in log_lines(part.path / PROMPTS):
            body = body_of(raw, written.mark, is_sealed=offset >= unsealed)
            if body is not None and not _is_of(body, others):
                yield body


def _is_of(body: bytes, items: Set[str]) -> bool:
    """Return whether a line is about one of these items."""
    if not items:
        return False
    try:
        return read_compact(body)["item"] in items
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def run_shard(
    dataset: RubricDataset, grader: Grader, i: int, n: int, **options: Unpack[EvalOptions]
) -> EvalResult:
    """Grade every `n`-th item, starting at item `i`, in a separate run folder, and return the result.

    To grade each item once, call this function for each `i` from 0 to n - 1, on any machines, and merge the
    run folders with `merge_runs`. To resume a stopped shard, run it again.

    Args:
        dataset: The whole dataset, which must be the same for all shards.
        grader: The grader.
        i: Index of the shard, from 0.
        n: Number of shards.
        **options: Fields of `EvalConfig`. The run is named after `experiment_name`, or the dataset if not
            set, with the suffix `-i-of-n`.

    Raises:
        ArgumentError: If the shard does not exist or has no items; see also `evaluate`.
        RunError: If the run folder cannot be used as requested.
    """
    part, config = shard_of(dataset, EvalConfig().replace_options(**options), i, n)
    grader.check_rubrics(dataset.rubrics())
    return EvalRunner(part, grader, config).run_sync()


def shard_of(dataset: RubricDataset, config: EvalConfig, i: int, n: int) -> tuple[RubricDataset, EvalConfig]:
    """Return the items of one shard and the options of the run that grades them."""
    if n < 1 or not 0 <= i < n:
        raise ArgumentError(f"shard {i} of {n} does not exist; shards are numbered from 0 to n - 1")
    if i >= len(dataset):
        raise ArgumentError(
            f"shard {i} of {n} is empty; the dataset has {len(dataset)} items, so use at most as many shards"
        )
    shard = Shard(i, n, dataset.source_digest() or dataset.fingerprint)
    name = f"{config.experiment_name or run_name_of(dataset)}-{i}-of-{n}"
    return dataset.part(i, n), config.model_copy(update={"experiment_name": name, "shard": shard})
