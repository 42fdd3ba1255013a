"""Opening a stored run and its results, without calling any judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import RunFormatError
from autorubric.grading.base import GradingTask
from autorubric.runs.dataset_copy import StoredDataset, stored_dataset
from autorubric.runs.differences import mapping_in
from autorubric.runs.index import LineValidity, RunIndex, load_index
from autorubric.runs.item_results import StoredResults
from autorubric.runs.items import EvalTimingStats
from autorubric.runs.lines import StoredItem
from autorubric.runs.manifest import DATASET, ITEMS, LogEntries, log_entries, read_manifest
from autorubric.runs.notices import damage_error, warn_of_damage
from autorubric.runs.vote_reader import ReusableVotes
from autorubric.scoring.report_builder import GradingPolicy, build_report
from autorubric.scoring.votes import Votes
from autorubric.support.objects import Json

if TYPE_CHECKING:
    from autorubric.rubric.rubric import Rubric
    from autorubric.scoring.reports import EnsembleEvaluationReport


_UNSEALED = (
    f"an older version wrote {ITEMS} without a checksum for each line, so a changed score in this file would "
    "not be detected"
)


class StoredRun(NamedTuple):
    """A stored run."""

    dataset: RubricDataset
    item_results: StoredResults  # of finished items, in the dataset's order
    timing_stats: EvalTimingStats
    started_at: datetime
    completed_at: datetime  # equal to the start if the run has not ended
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ByPolicy:
    """Builds the reports of a stored run."""

    policy: GradingPolicy

    def __call__(self, task: GradingTask, votes: Votes, line: StoredItem) -> EnsembleEvaluationReport:
        return build_report(
            task.submission, task.rubric.root, votes, self.policy, length_penalty=line.length_penalty
        )


def reopen(
    path: Path, *, rubric: Rubric | None = None, deciding: Mapping[str, Json] | None = None
) -> StoredRun:
    """Return the run stored in a folder."""
    manifest = read_manifest(path)
    stored = stored_dataset(path, manifest)
    manifest["dataset"] = dict(stored.entry)
    if rubric is not None:
        stored = stored._replace(dataset=stored.dataset.with_rubric(rubric))
    dataset = stored.dataset
    if deciding:
        manifest["deciding"] = {**(manifest.get("deciding") or {}), **deciding}
    policy = _policy(path, manifest)
    validity = LineValidity.of(manifest, dataset)
    logs = log_entries(manifest)
    index = read_index(path, stored, validity, logs)
    damage = [one.when_opened() for one in index.damages]
    unsealed = [_UNSEALED] if logs.unsealed.get(ITEMS) else []
    warn_of_damage(damage)
    results = StoredResults(
        index,
        dataset,
        ReusableVotes(dataset, manifest),
        _ByPolicy(policy),
        recomputed=True,
        is_new_rubric=rubric is not None,
        is_penalised=mapping_in(manifest, "deciding").get("length_penalty") is not None,
    )
    started, ended = _times(manifest)
    left = len(dataset) - len(results)
    unfinished = [f"{left} of {len(dataset)} items are unfinished; resume the run"] if left else []
    missing = [f"missing: {part}" for part in manifest.get("missing") or ()]
    lasting = (*(manifest.get("unverified") or ()), *(manifest.get("model_aliases") or ()))
    unverified = [str(notice) for notice in lasting]
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


def read_index(path: Path, stored: StoredDataset, validity: LineValidity, logs: LogEntries) -> RunIndex:
    """Return the index of a run folder; items with damaged lines in the dataset count as not scored."""
    index = load_index(path, stored.dataset, validity, logs)
    for position in stored.affected:
        index.set_affected(position, damage_error(DATASET))
    if stored.damage is not None:
        index.tally = None
        index.damages.insert(0, stored.damage)
    return index


def stored_policy(path: Path) -> GradingPolicy:
    """Return a stored run's policy, without the length penalty, which is stored per item."""
    return _policy(path, read_manifest(path))


def _policy(path: Path, manifest: Mapping[str, Json]) -> GradingPolicy:
    deciding: dict[str, Any] = dict(manifest.get("deciding") or {})
    deciding.pop("judge_weights", None)
    # The count function of a length penalty is code and not stored; the penalties are stored per item.
    deciding["length_penalty"] = None
    try:
        return GradingPolicy.model_validate(deciding)
    except ValidationError as error:
        raise RunFormatError(f"{path}: the manifest's grading policy is damaged: {error}") from error


def _times(manifest: Mapping[str, Json]) -> tuple[datetime, datetime]:
    try:
        started = datetime.fromisoformat(str(manifest["started_at"]))
        ended = manifest.get("completed_at")
        # The duration must not be negative if the clock was set back during the run.
        return started, max(started, datetime.fromisoformat(str(ended))) if ended else started
    except (KeyError, ValueError, TypeError):
        epoch = datetime.fromtimestamp(0, UTC)
        return epoch, epoch
