"""Selection of the stored votes that are still valid, in panel order and with the run's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from autorubric.errors import ReplyError
from autorubric.eval._fingerprint import VoteDigests
from autorubric.reporting import GradingTask
from autorubric.values import Submission

if TYPE_CHECKING:
    from autorubric.criteria import BaseCriterion
    from autorubric.dataset import RubricDataset
    from autorubric.eval._fingerprint import ItemDigests
    from autorubric.eval._lines import StoredVote
    from autorubric.eval._notices import Notices
    from autorubric.types import JudgeVote
    from autorubric.values import Json


def grading_task(dataset: RubricDataset, position: int) -> GradingTask:
    """Return the grading task of one item of a dataset."""
    return GradingTask(
        submission=Submission.parse(dataset.items[position].submission),
        rubric=dataset.get_item_rubric(position),
        query=dataset.get_item_prompt(position),
        reference_submission=dataset.get_item_reference_submission(position),
        item_id=dataset.item_id(position),
    )


class StandingVotes:
    """Selects the votes of a run that are still valid.

    Args:
        dataset: The dataset to grade.
        manifest: The run's manifest.
    """

    def __init__(self, dataset: RubricDataset, manifest: Mapping[str, Json]) -> None:
        asking: Mapping[str, Any] = manifest.get("asking") or {}
        deciding: Mapping[str, Any] = manifest.get("deciding") or {}
        self._dataset = dataset
        self._digests = VoteDigests(dataset.rubric, asking)
        self._samples: Mapping[str, int] = (asking.get("sampling") or {}).get("samples") or {}
        self._weights: Mapping[str, float] = deciding.get("judge_weights") or {}
        self._panel = {judge_id: place for place, judge_id in enumerate(asking.get("judges") or {})}

    def digests(self, position: int) -> ItemDigests:
        """Return the digests of the dependencies of votes on an item."""
        rubric = self._dataset.get_item_rubric(position)
        return self._digests.item(self._dataset.item_fingerprint(position), rubric)

    def of(
        self, position: int, task: GradingTask, stored: Sequence[StoredVote], notices: Notices
    ) -> dict[str, list[JudgeVote]]:
        """Return the votes on an item whose dependencies have not changed, by criterion.

        Only judges and samples that are still requested count; of several votes with the same key, the last
        is returned. A vote whose answer its criterion does not allow is skipped with a notice in `notices`.
        """
        if not stored:
            return {name: [] for name in task.rubric.names}
        digests = self.digests(position)
        latest = {
            one.key: one
            for one in stored
            if one.vote.sample < self._samples.get(one.vote.judge_id, 1)
            and digests.fits(one.criterion, one.vote.judge_id, one.digest)
        }
        found: dict[str, list[JudgeVote]] = {name: [] for name in task.rubric.names}
        for one in latest.values():
            criterion = task.rubric.by_name(one.criterion).facing(task.submission)
            try:
                found[one.criterion].append(self._as_of_now(criterion, one.vote))
            except ReplyError as error:
                kind = "damaged votes were skipped"
                notices.add(kind, f"a damaged vote on item {one.item_id} was skipped: {error}")
        declared = tuple(task.submission.candidates)
        return {name: self._in_panel_order(votes, declared) for name, votes in found.items()}

    def _as_of_now(self, criterion: BaseCriterion, vote: JudgeVote) -> JudgeVote:
        """Return a vote with the judge's current weight and the current values of the options."""
        answer = criterion.parse_truth(vote.answer)
        value = None if answer is None else answer.value
        weight = self._weights.get(vote.judge_id, vote.weight)
        if weight == vote.weight and value == vote.value:
            return vote
        return replace(vote, weight=weight, value=value)

    def _in_panel_order(self, votes: Sequence[JudgeVote], declared: tuple[str, ...]) -> list[JudgeVote]:
        """Return the votes sorted by judge, sample and displayed order."""

        def key(vote: JudgeVote) -> tuple[int, int, bool]:
            swapped = vote.order is not None and tuple(vote.order) != declared
            return (self._panel.get(vote.judge_id, len(self._panel)), vote.sample, swapped)

        return sorted(votes, key=key)


def answered(
    votes: Mapping[str, Sequence[JudgeVote]], *, unreadable: bool = True
) -> dict[str, list[JudgeVote]]:
    """Return the votes that need not be requested again, without those that received no reply.

    Args:
        votes: The votes.
        unreadable: Whether to keep votes whose replies could not be read.
    """
    return {
        name: [vote for vote in cast if vote.status != "failed" or (unreadable and vote.unreadable)]
        for name, cast in votes.items()
    }
