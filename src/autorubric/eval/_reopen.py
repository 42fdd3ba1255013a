"""A stored run as results; no judge is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from autorubric.dataset import RubricDataset
from autorubric.errors import AutorubricError, RunFormatError
from autorubric.eval._differences import places_of
from autorubric.eval._fingerprint import basis_of
from autorubric.eval._folder import DATASET, read_manifest
from autorubric.eval._index import Place, RunIndex, Stand
from autorubric.eval._items import EvalTimingStats
from autorubric.eval._lines import ItemFields, StoredItem
from autorubric.eval._results import StoredResults
from autorubric.eval._standing import StandingVotes
from autorubric.reporting import GradingPolicy, GradingTask, Votes
from autorubric.values import Json

if TYPE_CHECKING:
    from autorubric.rubric import Rubric
    from autorubric.types import EnsembleEvaluationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A stored run.

    Attributes:
        dataset: The dataset as judged.
        item_results: One result an item that has votes or an error, in the dataset's order.
        timing_stats: How long it took.
        started_at: When it started.
        completed_at: When it ended, or was last written.
        notices: What the reader should know.
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
    """The run stored in a folder.

    Args:
        path: The folder.
        rubric: Stands in the place of the rubric that items share; votes on criteria that ask something
            else by it do not stand.
        deciding: Parts of the policy to be in the place of those stored, as in a manifest.

    Raises:
        RunFormatError: The folder holds no run, a newer version wrote it, or it is damaged.
    """
    manifest = read_manifest(path)
    dataset = stored_dataset(path)
    if rubric is not None:
        dataset = dataset.with_rubric(rubric)
    if deciding:
        manifest["deciding"] = {**(manifest.get("deciding") or {}), **deciding}
    policy = _policy(path, manifest)
    stand = stand_of(manifest, dataset)
    index = read_index(path, dataset, stand)
    results = StoredResults(
        index, dataset, StandingVotes(dataset, manifest), _ByPolicy(policy), unfinished=True
    )
    started, ended = _times(manifest)
    left = sum(offset < 0 for offset in index.lines)
    unfinished = [f"{left} of {len(dataset)} items are not finished; resume the run"] if left else []
    missing = [f"missing: {told}" for told in manifest.get("missing") or ()]
    return StoredRun(
        dataset=dataset,
        item_results=results,
        timing_stats=EvalTimingStats.of(results.tally.durations, (ended - started).total_seconds()),
        started_at=started,
        completed_at=ended,
        notices=(*index.notices, *results.notices, *results.messages(), *unfinished, *missing),
    )


def stand_of(manifest: Mapping[str, Json], dataset: RubricDataset) -> Stand:
    """What lines of items must have been written under to stand in a run with this manifest."""
    basis = basis_of(manifest.get("asking") or {}, manifest.get("deciding") or {}, dataset.rubric)
    entry: Mapping[str, Any] = manifest.get("dataset") or {}
    earlier = {one: frozenset(gone) for one, gone in (entry.get("earlier") or {}).items()}
    return Stand(basis=basis, dataset=str(entry.get("sha256"))[:16], earlier=earlier)


def read_index(path: Path, dataset: RubricDataset, stand: Stand) -> RunIndex:
    """Where the lines and votes of each item of a dataset stand in a run folder.

    Raises:
        RunFormatError: A newer version wrote them, or they are damaged.
    """
    return RunIndex.load(path, len(dataset), stand, _placed_in(dataset, stand))


def _placed_in(dataset: RubricDataset, stand: Stand) -> Place:
    """Says where in a dataset a line's item stands; by its id, where the line was written for another."""
    ids: dict[str, int] | None = None

    def place(item: ItemFields) -> int | None:
        nonlocal ids
        if item["dataset"] == stand.dataset:
            position: int = item["position"]
            return position
        if ids is None:
            ids = places_of(dataset)
        return ids.get(item["item_id"])

    return place


def stored_dataset(path: Path) -> RubricDataset:
    """The dataset as judged, from a run folder, streamed; checks named in it need not be registered here.

    Raises:
        RunFormatError: It is not there, or damaged.
    """
    try:
        return RubricDataset.from_copy(path / DATASET)
    except FileNotFoundError:
        raise RunFormatError(f"{path} has no {DATASET}; it is damaged") from None
    # Faults of files and pydantic's are ValueErrors too.
    except (AutorubricError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFormatError(f"{path}: the copy of the dataset is damaged: {error}") from error


def stored_policy(path: Path) -> GradingPolicy:
    """How a stored run's votes become decisions and scores; its length penalty stands beside each item.

    Raises:
        RunFormatError: The folder holds no run, or it is damaged.
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
