"""Execution of attacks against a grader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

from autorubric.apps.redteam.attacks import Attack, builtin_attacks
from autorubric.apps.redteam.report import AttackCost, AttackedCell, CleanItem, RedteamReport
from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError, JudgeError
from autorubric.grading.base import Grader, GradingTask
from autorubric.grading.grader import criterion_grader
from autorubric.judges.recorded import RecordedJudge
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.support.concurrency import run_bounded, sync_twin

_AT_A_TIME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One grading of an item, either unchanged or under an attack."""

    task: GradingTask
    attack: Attack | None = None


async def red_team(
    dataset: RubricDataset,
    grader: Grader,
    *,
    attacks: Sequence[Attack] | None = None,
    limit: int | None = None,
    max_concurrent: int = _AT_A_TIME,
) -> RedteamReport:
    """Measure how often attacks flip a grader's verdicts, compared with how often verdicts flip by chance.

    Each item is graded twice unchanged, the second time with fresh votes, and once under each attack. Items
    without text are skipped. An attack on a reference or a query skips items that have none. Criteria decided
    by a check are ignored. Nothing is stored; with a response cache (`LLMConfig.cache_enabled`), a restarted
    run does not repeat calls.

    Args:
        dataset: The items to attack; labels are not used.
        grader: The grader whose judges are attacked.
        attacks: Attacks to run; None means `builtin_attacks`.
        limit: Number of items to take from the start of the dataset; None means all items.
        max_concurrent: Maximum number of concurrent gradings; requests are limited by `LLMConfig`.

    Raises:
        ArgumentError: If there is nothing to attack, two attacks have the same id, an item has no rubric, a
            judge only repeats recorded votes, or the grader refers to criteria that are not in any rubric.
        JudgeError: If no verdict on the unchanged items could be judged.
    """
    chosen = _check_attacks(builtin_attacks() if attacks is None else attacks)
    if (limit is not None and limit < 1) or max_concurrent < 1:
        raise ArgumentError(
            f"limit and max_concurrent must be positive integers; got {limit!r} and {max_concurrent!r}"
        )
    grader.check_rubrics(dataset.rubrics())
    fresh = _first_fresh_sample(grader)
    tasks = list(_tasks(dataset, limit))
    if not tasks:
        raise ArgumentError("the dataset has no item with text, so there is nothing to attack")

    grading = _Grading(grader, max_concurrent)
    clean = await grading.grade_clean(tasks, fresh)
    cells: list[AttackedCell] = []
    async for job, report in grading.grade(_attacked_jobs(tasks, chosen, fresh)):
        if job.attack is not None:
            cells += clean[job.task.item_id].cells(job.attack, report)
    criteria = [one.name or "" for task in tasks for one in task.rubric if one.check is None]
    return RedteamReport(
        attacks=chosen,
        item_ids=tuple(task.item_id for task in tasks),
        criteria=tuple(dict.fromkeys(criteria)),
        cells=_in_order(cells, tasks, chosen),
        n_unjudged=sum(item.n_failed for item in clean.values()),
        spend=grading.spend,
    )


red_team_sync = sync_twin(red_team)
"""Call `red_team` from synchronous code, even inside a running event loop."""


class _Grading:
    """Grades items, unchanged or under attack, and adds up the cost."""

    def __init__(self, grader: Grader, max_concurrent: int) -> None:
        self._grader, self._max_concurrent = grader, max_concurrent
        self.spend = AttackCost()

    async def grade(self, jobs: Iterator[_Job]) -> AsyncIterator[tuple[_Job, EnsembleEvaluationReport]]:
        """Yield each job with its report, as it finishes."""

        async def work(job: _Job) -> tuple[_Job, EnsembleEvaluationReport]:
            return job, self._grader.aggregate(job.task, await self._grader.judge(job.task))

        async for job, report in run_bounded(jobs, work, limit=self._max_concurrent):
            self.spend = self.spend.with_report(report)
            yield job, report

    async def grade_clean(self, tasks: Sequence[GradingTask], fresh: int) -> dict[str, CleanItem]:
        """Grade the unchanged items twice, and return them by id."""
        first: dict[str, EnsembleEvaluationReport] = {}
        second: dict[str, EnsembleEvaluationReport] = {}
        async for job, report in self.grade(_clean_jobs(tasks, fresh)):
            (second if job.task.first_sample else first)[job.task.item_id] = report
        clean = {
            item_id: CleanItem(item_id=item_id, first=report, second=second[item_id])
            for item_id, report in first.items()
        }
        if not any(item.n_judged for item in clean.values()):
            why = next((report.error for report in first.values() if report.error), "no reply could be read")
            raise JudgeError(f"no verdict could be judged, so no attack was sent: {why}")
        return clean


def _check_attacks(attacks: Sequence[Attack]) -> tuple[Attack, ...]:
    ids = [attack.id for attack in attacks]
    repeated = sorted({one for one in ids if ids.count(one) > 1})
    if repeated:
        raise ArgumentError(f"the ids of attacks must be unique; repeated: {', '.join(repeated)}")
    if all(attack.is_control for attack in attacks):
        raise ArgumentError("attacks must contain at least one attack besides controls")
    return tuple(attacks)


def _first_fresh_sample(grader: Grader) -> int:
    """Return the first sample index that the first grading does not use."""
    inner = criterion_grader(grader)
    if inner is None:
        return 1
    recorded = [member.judge_id for member in inner.members if isinstance(member.judge, RecordedJudge)]
    if recorded:
        raise ArgumentError(
            f"recorded judges repeat stored votes and cannot be attacked; replace {', '.join(recorded)}"
        )
    return max(member.samples for member in inner.members)


def _tasks(dataset: RubricDataset, limit: int | None) -> Iterator[GradingTask]:
    for position in range(len(dataset) if limit is None else min(limit, len(dataset))):
        submission = Submission.parse(dataset[position].submission)
        if submission.text is None:
            continue
        yield GradingTask(
            submission=submission,
            rubric=dataset.get_item_rubric(position),
            query=dataset.get_item_prompt(position),
            reference_submission=dataset.get_item_reference_submission(position),
            item_id=dataset.item_id(position),
        )


def _clean_jobs(tasks: Sequence[GradingTask], fresh: int) -> Iterator[_Job]:
    for task in tasks:
        yield _Job(task=task)
        yield _Job(task=replace(task, first_sample=fresh))


def _attacked_jobs(tasks: Sequence[GradingTask], attacks: Sequence[Attack], fresh: int) -> Iterator[_Job]:
    """Yield the gradings under attack, each with fresh votes.

    With fresh votes, chance affects attacked gradings as much as the second grading without an attack.
    """
    for task in tasks:
        for attack in attacks:
            attacked = insert(task, attack)
            if attacked is not None:
                yield _Job(task=replace(attacked, first_sample=fresh), attack=attack)


def insert(task: GradingTask, attack: Attack) -> GradingTask | None:
    """Return the task with the attack inserted; None if the task lacks the attacked part."""
    if attack.into == "reference":
        reference = task.reference_submission
        return None if reference is None else replace(task, reference_submission=attack.insert(reference))
    if attack.into == "query":
        return None if task.query is None else replace(task, query=attack.insert(task.query))
    submission = task.submission
    text = attack.insert(submission.text or "")
    # The value of a comparison is that of the first candidate, so the attack goes into its text.
    candidates = dict(submission.candidates)
    if candidates:
        candidates[next(iter(candidates))] = text
    return replace(task, submission=replace(submission, text=text, candidates=candidates))


def _in_order(
    cells: Sequence[AttackedCell], tasks: Sequence[GradingTask], attacks: Sequence[Attack]
) -> tuple[AttackedCell, ...]:
    """Sort the cells by attack, then by item, because gradings finish in any order."""
    items = {task.item_id: place for place, task in enumerate(tasks)}
    places = {attack.id: place for place, attack in enumerate(attacks)}
    return tuple(sorted(cells, key=lambda cell: (places[cell.attack], items[cell.item_id])))
