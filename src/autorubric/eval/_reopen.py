"""A stored run as results: reports are computed anew from the stored votes, no judge is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from autorubric.dataset import RubricDataset
from autorubric.errors import AutorubricError, ReplyError, RunFormatError
from autorubric.eval._fingerprint import VoteDigests
from autorubric.eval._items import EvalTimingStats, ItemResult
from autorubric.eval._store import RunContents, StoredVote, read_dataset, read_run
from autorubric.graders import GradingPolicy, GradingTask, build_report
from autorubric.types import JudgeVote
from autorubric.values import Json, Submission


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
    item_results: list[ItemResult]
    timing_stats: EvalTimingStats
    started_at: datetime
    completed_at: datetime
    notices: tuple[str, ...]


def reopen(path: Path) -> StoredRun:
    """The run stored in a folder.

    Raises:
        RunFormatError: The folder holds no run, a newer version wrote it, or it is damaged.
    """
    contents = read_run(path)
    dataset = stored_dataset(path)
    policy = _policy(path, contents.manifest)
    standing, unreadable = _standing(contents, dataset)
    votes = votes_by_item(standing)
    weights = _weights(contents.manifest)
    panel = list((contents.manifest.get("asking") or {}).get("judges") or {})
    results = []
    for position, item in enumerate(dataset.items):
        item_id = dataset.item_id(position)
        done = contents.items.get(item_id)
        if item_id not in votes and done is None:
            continue
        task = grading_task(dataset, position)
        stored = {
            name: in_panel_order(weighted(cast, weights), panel, task)
            for name, cast in votes.get(item_id, {}).items()
        }
        report = build_report(task, stored, policy, length_penalty=done.length_penalty if done else 0.0)
        raised = done.error if done else None
        results.append(
            ItemResult(
                item_idx=position,
                item=item,
                report=None if raised else report,
                duration_seconds=done.duration_seconds if done else 0.0,
                error=raised or (report.error if report.score is None else None),
            )
        )
    started, ended = _times(contents.manifest)
    seconds = [done.duration_seconds for done in contents.items.values()]
    return StoredRun(
        dataset=dataset,
        item_results=results,
        timing_stats=EvalTimingStats.of(seconds, (ended - started).total_seconds()),
        started_at=started,
        completed_at=ended,
        notices=(*contents.notices, *unreadable, *_unfinished(dataset, contents)),
    )


def _unfinished(dataset: RubricDataset, contents: RunContents) -> list[str]:
    left = len(dataset.items) - sum(dataset.item_id(i) in contents.items for i in range(len(dataset.items)))
    return [f"{left} of {len(dataset.items)} items are not finished; resume the run"] if left else []


def stored_dataset(path: Path) -> RubricDataset:
    """The dataset as judged, from a run folder; checks named in it need not be registered here.

    Raises:
        RunFormatError: It is not there, or damaged.
    """
    stored = read_dataset(path)
    try:
        return RubricDataset.restore(stored)
    except (AutorubricError, ValidationError, KeyError, TypeError, AttributeError) as error:
        raise RunFormatError(f"{path}: the copy of the dataset is damaged: {error}") from error


def stored_policy(path: Path) -> GradingPolicy:
    """How a stored run's votes become decisions and scores; its length penalty stands beside each item.

    Raises:
        RunFormatError: The folder holds no run, or it is damaged.
    """
    return _policy(path, read_run(path).manifest)


def grading_task(dataset: RubricDataset, position: int) -> GradingTask:
    """What is graded for one item of a dataset."""
    return GradingTask(
        submission=Submission.parse(dataset.items[position].submission),
        rubric=dataset.get_item_rubric(position),
        query=dataset.get_item_prompt(position),
        reference_submission=dataset.get_item_reference_submission(position),
        item_id=dataset.item_id(position),
    )


def latest_votes(votes: Sequence[StoredVote]) -> list[StoredVote]:
    """The last vote of each item, criterion, judge, sample and order shown, in the order first cast."""
    return list({stored.key: stored for stored in votes}.values())


def _standing(contents: RunContents, dataset: RubricDataset) -> tuple[list[StoredVote], list[str]]:
    """The votes that depend on nothing that has changed since, of judges and samples still asked for.

    A vote whose answer is none of its criterion's was damaged; it is passed over with a notice.
    """
    asking = contents.manifest.get("asking") or {}
    digests = VoteDigests(dataset, asking)
    places = {dataset.item_id(position): position for position in range(len(dataset.items))}
    samples: Mapping[str, int] = (asking.get("sampling") or {}).get("samples") or {}
    kept, notices = [], []
    for stored in contents.votes:
        place = places.get(stored.item_id)
        if place is None or stored.vote.sample >= samples.get(stored.vote.judge_id, 1):
            continue
        if not digests.fits(place, stored.criterion, stored.vote.judge_id, stored.digest):
            continue
        try:
            dataset.get_item_rubric(place).by_name(stored.criterion).parse_truth(stored.vote.answer)
        except ReplyError as error:
            notices.append(f"a vote on item {stored.item_id} is damaged and was passed over: {error}")
            continue
        kept.append(stored)
    return latest_votes(kept), notices


def votes_by_item(votes: Sequence[StoredVote]) -> dict[str, dict[str, list[JudgeVote]]]:
    """Votes by item id and criterion name."""
    grouped: dict[str, dict[str, list[JudgeVote]]] = {}
    for stored in votes:
        grouped.setdefault(stored.item_id, {}).setdefault(stored.criterion, []).append(stored.vote)
    return grouped


def in_panel_order(votes: Sequence[JudgeVote], panel: Sequence[str], task: GradingTask) -> list[JudgeVote]:
    """The votes as the grader reports them, by judge, sample and order shown, whenever they came in."""
    place = {judge_id: position for position, judge_id in enumerate(panel)}
    declared = tuple(task.submission.candidates)

    def key(vote: JudgeVote) -> tuple[int, int, bool]:
        swapped = vote.order is not None and tuple(vote.order) != declared
        return (place.get(vote.judge_id, len(place)), vote.sample, swapped)

    return sorted(votes, key=key)


def weighted(votes: Sequence[JudgeVote], weights: Mapping[str, float]) -> list[JudgeVote]:
    """The votes with the judges' weights as they are now."""
    return [
        vote
        if weights.get(vote.judge_id, vote.weight) == vote.weight
        else replace(vote, weight=weights[vote.judge_id])
        for vote in votes
    ]


def _weights(manifest: Mapping[str, Json]) -> Mapping[str, float]:
    return dict((manifest.get("deciding") or {}).get("judge_weights") or {})


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
        return started, datetime.fromisoformat(str(ended)) if ended else started
    except (KeyError, ValueError):
        epoch = datetime.fromtimestamp(0, UTC)
        return epoch, epoch
