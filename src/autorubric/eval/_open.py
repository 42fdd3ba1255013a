"""Opening a run folder for writing: a new one, or one to go on with if nothing it depends on has changed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count, takewhile
from pathlib import Path

from autorubric.dataset import RubricDataset
from autorubric.errors import RunError, RunMismatchError
from autorubric.eval._config import EvalConfig
from autorubric.eval._fingerprint import (
    VoteDigests,
    asking_differences,
    deciding_differences,
    with_checks,
)
from autorubric.eval._reopen import stored_dataset
from autorubric.eval._store import (
    MANIFEST,
    PROMPTS,
    RunContents,
    RunStore,
    StoredItem,
    StoredVote,
    read_run,
    run_path,
)
from autorubric.graders import Grader, GraderDescription
from autorubric.values import Json

_MOST_TOLD = 12


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run folder open for writing.

    Attributes:
        name: The run's name.
        store: Where votes and items go.
        digests: What each vote of this run depends on.
        votes: Stored votes; those whose digest is that of this run are not cast again.
        items: Stored items by id.
        manifest: The manifest as written.
        notices: What the reader should know.
    """

    name: str
    store: RunStore
    digests: VoteDigests
    votes: list[StoredVote] = field(default_factory=list)
    items: Mapping[str, StoredItem] = field(default_factory=dict)
    manifest: dict[str, Json] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def open_run(dataset: RubricDataset, grader: Grader, config: EvalConfig) -> OpenRun:
    """The run folder that a config names, open for writing.

    Raises:
        ArgumentError: The name is no plain name.
        RunError: It is there already and `resume` is off.
        RunLockedError: Another process writes to it.
        RunFormatError: It was written by a newer version, or is damaged.
        RunMismatchError: What it depends on has changed and `on_mismatch` is `"refuse"`.
    """
    name = config.experiment_name
    if name is None:
        name = _free_name(config.experiments_dir, _made_name(dataset))
    path = run_path(config.experiments_dir, name)
    # A dataset that cannot be written is refused before there is a folder.
    snapshot = dataset.snapshot()
    store = RunStore(path, store_prompts=config.store_prompts)
    try:
        if not (path / MANIFEST).exists():
            return _begin(name, store, dataset, grader, snapshot)
        if not config.resume:
            raise RunError(f"{path} is there already; choose another experiment_name, or resume=True")
        return _go_on(name, store, dataset, grader, config)
    except BaseException:
        store.close()
        raise


def _begin(
    name: str,
    store: RunStore,
    dataset: RubricDataset,
    grader: Grader,
    snapshot: dict[str, Json],
    carried: RunContents | None = None,
) -> OpenRun:
    described = with_checks(grader.describe(), dataset)
    manifest: dict[str, Json] = {
        "autorubric": version("autorubric"),
        "experiment_name": name,
        "started_at": datetime.now(UTC).isoformat(),
        "completed_at": None,
        "status": "running",
        "dataset": {"name": dataset.name, "n_items": len(dataset.items), "fingerprint": dataset.fingerprint},
        "asking": dict(described.asking),
        "deciding": dict(described.deciding),
    }
    store.write_dataset(snapshot)
    store.write_manifest(manifest)
    opened = OpenRun(
        name=name,
        store=store,
        digests=VoteDigests(dataset, described.asking),
        votes=list(carried.votes) if carried else [],
        manifest=manifest,
    )
    for stored in opened.votes:
        store.add_vote(stored)
    return opened


def _go_on(name: str, store: RunStore, dataset: RubricDataset, grader: Grader, config: EvalConfig) -> OpenRun:
    contents = read_run(store.path)
    old = stored_dataset(store.path)
    described = with_checks(grader.describe(), dataset)
    changed = asking_differences(contents.manifest, described, old, dataset)
    if changed and config.on_mismatch == "refuse":
        raise RunMismatchError(_refusal(store.path, changed), differences=changed)
    if changed and config.on_mismatch == "fork":
        return _fork(name, store, dataset, grader, contents)
    rescored = deciding_differences(contents.manifest, described, old, dataset)
    notices = [*contents.notices, *_taken_on_trust(described, contents)]
    if changed:
        notices.append("votes that depend on these no longer stand: " + "; ".join(changed[:_MOST_TOLD]))
    if rescored:
        notices.append("scored anew, without a call, since: " + "; ".join(rescored[:_MOST_TOLD]))
    manifest = {**contents.manifest, "asking": dict(described.asking), "deciding": dict(described.deciding)}
    manifest.update(status="running", completed_at=None, autorubric=version("autorubric"))
    manifest["dataset"] = {
        "name": dataset.name,
        "n_items": len(dataset.items),
        "fingerprint": dataset.fingerprint,
    }
    store.write_dataset(dataset.snapshot())
    store.write_manifest(manifest)
    return OpenRun(
        name=name,
        store=store,
        digests=VoteDigests(dataset, described.asking),
        votes=contents.votes,
        items=contents.items,
        manifest=manifest,
        notices=notices,
    )


def _fork(
    name: str, store: RunStore, dataset: RubricDataset, grader: Grader, contents: RunContents
) -> OpenRun:
    folder, keeps = store.path.parent, store.store_prompts
    store.close()
    described = with_checks(grader.describe(), dataset)
    for earlier in _forks(folder, name):
        path = folder / earlier
        stored = read_run(path)
        if not asking_differences(stored.manifest, described, stored_dataset(path), dataset):
            return _go_on(earlier, RunStore(path, store_prompts=keeps), dataset, grader, EvalConfig())
    forked = _free_name(folder, name)
    store = RunStore(folder / forked, store_prompts=keeps)
    opened = _begin(forked, store, dataset, grader, dataset.snapshot(), contents)
    if keeps and (folder / name / PROMPTS).exists():
        shutil.copyfile(folder / name / PROMPTS, folder / forked / PROMPTS)
    opened.notices.append(f"forked from {name}: what has not changed was taken from there")
    return opened


def _forks(folder: Path, name: str) -> list[str]:
    """Names of earlier forks of a run, oldest first."""
    names = (f"{name}-{number}" for number in count(2))
    return list(takewhile(lambda fork: (folder / fork / MANIFEST).exists(), names))


def _taken_on_trust(described: GraderDescription, contents: RunContents) -> list[str]:
    """A notice for each judge whose stored votes stand although it cannot say what they depend on."""
    voted = {stored.vote.judge_id for stored in contents.votes}
    judges = {**described.asking}.get("judges") or {}
    return [
        f"judge {name!r} has no describe(), so a change in its state goes unnoticed: its stored votes were "
        "used again on the word of its class"
        for name, who in judges.items()
        if name in voted and who.get("describes_itself") is False
    ]


def _refusal(path: Path, changed: list[str]) -> str:
    told = "\n".join(f"  - {line}" for line in changed[:_MOST_TOLD])
    more = f"\n  - and {len(changed) - _MOST_TOLD} more" if len(changed) > _MOST_TOLD else ""
    return (
        f"{path} was made with something else than what is given now:\n{told}{more}\n"
        "Choose another experiment_name, or on_mismatch='rejudge' to ask again for what changed, or 'fork' "
        "to go on in a new folder."
    )


def _made_name(dataset: RubricDataset) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in dataset.name or "run")
    return f"{kept.strip('.-_') or 'run'}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _free_name(folder: Path, name: str) -> str:
    if not (folder / name).exists():
        return name
    return next(f"{name}-{n}" for n in count(2) if not (folder / f"{name}-{n}").exists())
