"""A stored run as results; no judge is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from autorubric.dataset import RubricDataset
from autorubric.errors import RunFormatError
from autorubric.eval._damage import affected_by, warn_of_damage
from autorubric.eval._dataset_copy import StoredDataset, stored_dataset
from autorubric.eval._fingerprint import basis_of, mapping_in
from autorubric.eval._folder import DATASET, ITEMS, Written, read_manifest, written_by
from autorubric.eval._index import RunIndex, Stand
from autorubric.eval._items import EvalTimingStats
from autorubric.eval._lines import StoredItem
from autorubric.eval._results import StoredResults
from autorubric.eval._standing import StandingVotes
from autorubric.reporting import GradingPolicy, GradingTask, Votes
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.rubric import Rubric
    from autorubric.types import EnsembleEvaluationReport


_UNSEALED = (
    f"an older version wrote {ITEMS} without a checksum for each line, so that a changed score in it would "
    "not be noticed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A stored run.

    Attributes:
        dataset: The dataset as judged.
        item_results: One result an item that has votes or an error, in the dataset's order.
        timing_stats: How long it took.
        started_at: When it started.
        completed_at: When it ended, or was last written.
        notices: Notices for the reader.
    """

    dataset: RubricDataset
    item_results: StoredResults
    timing_stats: EvalTimingStats
    started_at: datetime
    completed_at: datetime
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ByPolicy:
    """Makes the reports of a stored run."""

    policy: GradingPolicy

    def __call__(self, task: GradingTask, votes: Votes, line: StoredItem) -> EnsembleEvaluationReport:
        # Late, since a run is opened without a report being made.
        from autorubric.reporting import build_report

        return build_report(task, votes, self.policy, length_penalty=line.length_penalty)


def reopen(
    path: Path, *, rubric: Rubric | None = None, deciding: Mapping[str, Json] | None = None
) -> StoredRun:
    """Return the run stored in a folder.

    Args:
        path: The folder.
        rubric: Stands in the place of the rubric that items share; votes on criteria that ask something
            else by it do not stand.
        deciding: Parts of the policy to be in the place of those stored, as in a manifest.

    Raises:
        RunFormatError: If the folder holds no run, a newer version wrote it, or it is damaged.
    """
    manifest = read_manifest(path)
    stored = stored_dataset(path, manifest)
    manifest["dataset"] = dict(stored.entry)
    if rubric is not None:
        stored = stored._replace(dataset=stored.dataset.with_rubric(rubric))
    dataset = stored.dataset
    if deciding:
        manifest["deciding"] = {**(manifest.get("deciding") or {}), **deciding}
    policy = _policy(path, manifest)
    stand = stand_of(manifest, dataset)
    written = written_by(manifest)
    index = read_index(path, stored, stand, written)
    damage = [one.when_opened() for one in index.damages]
    unsealed = [_UNSEALED] if written.unsealed.get(ITEMS) else []
    warn_of_damage(damage)
    results = StoredResults(
        index,
        dataset,
        StandingVotes(dataset, manifest),
        _ByPolicy(policy),
        unfinished=True,
        is_penalised=mapping_in(manifest, "deciding").get("length_penalty") is not None,
    )
    started, ended = _times(manifest)
    left = sum(offset < 0 for offset in index.lines) - len(index.affected)
    unfinished = [f"{left} of {len(dataset)} items are not finished; resume the run"] if left else []
    missing = [f"missing: {told}" for told in manifest.get("missing") or ()]
    unverified = [str(told) for told in manifest.get("unverified") or ()]
    return StoredRun(
        dataset=dataset,
        item_results=results,
        timing_stats=EvalTimingStats.of(results.tally.durations, (ended - started).total_seconds()),
        started_at=started,
        completed_at=ended,
        notices=(
            *damage,
            *unverified,
            *unsealed,
            *index.notices,
            *results.notices,
            *results.messages(),
            *unfinished,
            *missing,
        ),
    )


def stand_of(manifest: Mapping[str, Json], dataset: RubricDataset) -> Stand:
    """Return the conditions under which lines of items hold in a run with this manifest."""
    basis = basis_of(manifest.get("asking") or {}, manifest.get("deciding") or {}, dataset.rubric)
    entry: Mapping[str, Any] = manifest.get("dataset") or {}
    earlier = {one: frozenset(gone) for one, gone in (entry.get("earlier") or {}).items()}
    return Stand(basis=basis, dataset=str(entry.get("sha256"))[:16], earlier=earlier)


def read_index(path: Path, stored: StoredDataset, stand: Stand, written: Written) -> RunIndex:
    """Return the index of a run folder; items whose lines in the dataset are lost count as not scored.

    Raises:
        RunFormatError: If a file cannot be read.
    """
    index = RunIndex.load(path, stored.dataset, stand, written)
    for position in stored.affected:
        index.set_aside(position, affected_by(DATASET))
    if stored.damage is not None:
        index.tally = None
        index.damages.insert(0, stored.damage)
    return index


def stored_policy(path: Path) -> GradingPolicy:
    """Return a stored run's policy; its length penalty is stored with each item.

    Raises:
        RunFormatError: If the folder holds no run, or it is damaged.
    """
    return _policy(path, read_manifest(path))


def _policy(path: Path, manifest: Mapping[str, Json]) -> GradingPolicy:
    deciding: dict[str, Any] = dict(manifest.get("deciding") or {})
    deciding.pop("judge_weights", None)
    # A length penalty's count function is code and not stored; what it took off stands beside each item.
    deciding["length_penalty"] = None
    try:
        return GradingPolicy.model_validate(deciding)
    except ValidationError as error:
        raise RunFormatError(f"{path}: the manifest's grading policy is damaged: {error}") from error


def _times(manifest: Mapping[str, Json]) -> tuple[datetime, datetime]:
    try:
        started = datetime.fromisoformat(str(manifest["started_at"]))
        ended = manifest.get("completed_at")
        # A clock that was set back since the start makes no time negative.
        return started, max(started, datetime.fromisoformat(str(ended))) if ended else started
    except (KeyError, ValueError, TypeError):
        epoch = datetime.fromtimestamp(0, UTC)
        return epoch, epoch
