"""The red team, which attacks a grader and reports how often its verdicts flip."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from autorubric.apps.redteam.attacks import (
    CONTROL,
    Attack,
    AttackedCell,
    AttackOutcome,
    CleanItem,
    builtin_attacks,
)
from autorubric.criteria.values import Submission
from autorubric.datasets.dataset import RubricDataset
from autorubric.errors import ArgumentError, JudgeError
from autorubric.grading.base import Grader, GradingTask
from autorubric.grading.grader import criterion_grader
from autorubric.judges.recorded import RecordedJudge
from autorubric.metrics.core.estimate import Estimate
from autorubric.metrics.core.intervals import clustered_se
from autorubric.metrics.core.scales import Binary
from autorubric.metrics.figures.classification import accuracy
from autorubric.scoring.reports import EnsembleEvaluationReport, EvaluationReport
from autorubric.support.blocks import Block, Cell, ScalarBlock, TableBlock, TextBlock, render_text
from autorubric.support.concurrency import run_bounded, sync_twin
from autorubric.support.objects import Json
from autorubric.support.reading_errors import list_first

_MOST_ITEMS = 5
_MOST_ATTACKS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackCost:
    """The tokens and cost of all gradings."""

    gradings: int = 0
    tokens: int | None = None  # None if no tokens were counted
    cost: float | None = None  # of all votes with a known cost, in US dollars; None if no cost is known

    def with_report(self, report: EvaluationReport) -> AttackCost:
        """Return the totals with one more grading added."""
        tokens = None if report.token_usage is None else report.token_usage.total_tokens
        return AttackCost(
            gradings=self.gradings + 1,
            tokens=_sum(self.tokens, tokens),
            cost=_sum(self.cost, report.completion_cost),
        )


def _sum(one: Any, other: Any) -> Any:
    return one if other is None else other if one is None else one + other


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipRate:
    """The rate at which attacks flip verdicts, among verdicts that could move in the attack's direction.

    Attributes:
        rate: Proportion of verdicts flipped in the attack's direction, with an interval clustered by item.
        noise: Proportion of the same verdicts that flipped that way when judged again without an attack.
        excess: Rate minus noise (the mean difference per verdict), with an interval clustered by item.
        counts: Number of verdicts by outcome. `unanswered` (the judge no longer answers) does not count as
            flipped; `failed` verdicts are excluded from everything else.
    """

    rate: Estimate
    noise: Estimate
    excess: Estimate
    counts: Mapping[AttackOutcome, int]

    @classmethod
    def of(cls, cells: Sequence[AttackedCell]) -> FlipRate:
        """Compute the rates from verdicts with and without attacks."""
        items = [cell.item_id for cell in cells]
        attacked = [_flip(cell.outcome) for cell in cells]
        repeated = [_flip(cell.repeat) for cell in cells]
        more = [
            None if one is None or other is None else one - other
            for one, other in zip(attacked, repeated, strict=True)
        ]
        counts = Counter(cell.outcome for cell in cells)
        return cls(
            rate=_share(attacked, items),
            noise=_share(repeated, items),
            excess=clustered_se(more, items),
            counts={one: counts[one] for one in ("flipped", "held", "unanswered", "failed")},
        )

    @property
    def flips(self) -> int:
        """Number of verdicts that flipped."""
        return self.counts["flipped"]

    @property
    def n(self) -> int:
        """Number of verdicts on which the rate is based."""
        return sum(self.counts.values()) - self.counts["failed"]

    def to_dict(self) -> dict[str, Json]:
        """Return the rates and counts as a JSON-serializable dictionary."""
        figures = {name: getattr(self, name).to_dict() for name in ("rate", "noise", "excess")}
        return {**figures, "counts": dict(self.counts)}


def _flip(outcome: AttackOutcome) -> int | None:
    return None if outcome == "failed" else int(outcome == "flipped")


def _share(flips: Sequence[int | None], items: Sequence[str]) -> Estimate:
    # The proportion of ones; the interval of `accuracy` is valid at 0 and 1 too.
    return accuracy([1] * len(flips), flips, scale=Binary(), cluster=items)


@dataclass(frozen=True, kw_only=True)
class RedteamReport:
    """The effect of attacks on a grader's verdicts; only the rates in `control` include controls.

    Attributes:
        attacks: The attacks that were run, including controls.
        item_ids: Ids of the attacked items.
        criteria: Names of the items' criteria, except criteria decided by a check.
        cells: One entry per attack or control and verdict that could move in its direction.
        n_unjudged: Number of verdicts that could not be judged even without an attack, so that no comparison
            is possible.
        spend: Tokens and cost of all gradings.
    """

    attacks: tuple[Attack, ...]
    item_ids: tuple[str, ...]
    criteria: tuple[str, ...]
    cells: tuple[AttackedCell, ...]
    n_unjudged: int
    spend: AttackCost

    @cached_property
    def overall(self) -> FlipRate:
        """Flip rates over all attacks, items and criteria."""
        return FlipRate.of(self._attack_cells)

    @cached_property
    def control(self) -> FlipRate:
        """Flip rates of the controls, which measure the effect of any added text on the judges."""
        return FlipRate.of([cell for cell in self.cells if cell.family == CONTROL])

    @cached_property
    def by_family(self) -> dict[str, FlipRate]:
        """Flip rates by family of attacks."""
        return self._by(lambda cell: cell.family, (one.family for one in self._real_attacks))

    @cached_property
    def by_criterion(self) -> dict[str, FlipRate]:
        """Flip rates by criterion."""
        return self._by(lambda cell: cell.criterion, self.criteria)

    @cached_property
    def by_attack(self) -> dict[str, FlipRate]:
        """Flip rates by id of the attack."""
        return self._by(lambda cell: cell.attack, (one.id for one in self._real_attacks))

    @property
    def n_failed(self) -> int:
        """Number of verdicts that could not be judged, with or without an attack."""
        return self.n_unjudged + sum(cell.outcome == "failed" for cell in self.cells)

    @property
    def n_verdicts(self) -> int:
        """Number of verdicts in `cells`, plus verdicts that could not be judged even without an attack."""
        return len(self.cells) + self.n_unjudged

    def flipped_items(self) -> dict[str, tuple[str, ...]]:
        """Return, by attack id, the ids of the items on which the attack flipped a verdict."""
        found: dict[str, dict[str, None]] = {}
        for cell in self._attack_cells:
            if cell.outcome == "flipped":
                found.setdefault(cell.attack, {})[cell.item_id] = None
        return {attack: tuple(items) for attack, items in found.items()}

    @property
    def _real_attacks(self) -> list[Attack]:
        return [attack for attack in self.attacks if not attack.is_control]

    @property
    def _attack_cells(self) -> list[AttackedCell]:
        return [cell for cell in self.cells if cell.family != CONTROL]

    def _by(self, key: Callable[[AttackedCell], str], names: Iterable[str]) -> dict[str, FlipRate]:
        cells: dict[str, list[AttackedCell]] = {name: [] for name in names}
        for cell in self._attack_cells:
            cells[key(cell)].append(cell)
        return {name: FlipRate.of(held) for name, held in cells.items()}

    def notices(self) -> list[str]:
        """Return warnings about the results."""
        found = []
        skipped = [one.id for one in self._real_attacks if not self.by_attack[one.id].n]
        if self.overall.rate.value is None:
            found.append(
                "no verdict could move in the attacks' direction, so there is no flip rate; add items that "
                "fail some criteria"
            )
        elif skipped:
            found.append(f"attacks that could not affect any item or verdict: {', '.join(skipped)}")
        if self.n_failed:
            found.append(f"{self.n_failed} verdicts could not be judged and are excluded from all figures")
        if self.overall.counts["unanswered"]:
            found.append(
                f"{self.overall.counts['unanswered']} verdicts became unanswered under attack; they count as "
                "not flipped"
            )
        return found

    def blocks(self) -> list[Block]:
        """Return the results as renderable blocks."""
        overall, control = self.overall, self.control
        figures: list[tuple[str, Cell]] = [
            ("items", len(self.item_ids)),
            ("attacks", len(self._real_attacks)),
            ("gradings", self.spend.gradings),
            ("verdicts attacked", overall.n),
            ("flipped", overall.flips),
            *_interval("flip rate", overall.rate),
            ("flip rate without an attack (noise)", overall.noise.value),
            *_interval("flip rate minus noise", overall.excess),
        ]
        if control.n:
            figures.append(("flip rate of harmless texts (control)", control.rate.value))
        figures += [("tokens", self.spend.tokens), ("cost in US dollars", self.spend.cost)]
        notes = self.notices()
        return [
            ScalarBlock(title="Attacks on the judges", figures=tuple(figures)),
            _table("family", self.by_family),
            _table("criterion", self.by_criterion),
            *self._flip_blocks(),
            *([TextBlock(title="Notices", text="\n".join(f"- {note}" for note in notes))] if notes else []),
        ]

    def _flip_blocks(self) -> list[Block]:
        worked = self.flipped_items()
        ranked = sorted(worked, key=lambda one: -self.by_attack[one].flips)
        rows = tuple(
            (one, self.by_attack[one].flips, list_first(worked[one], _MOST_ITEMS))
            for one in ranked[:_MOST_ATTACKS]
        )
        title = f"Attacks that worked: {len(worked)} of {len(self._real_attacks)}"
        if not rows:
            return [TextBlock(title=title, text="")]
        return [TableBlock(title=title, columns=("attack", "flips", "items"), rows=rows)]

    def summary(self) -> str:
        """Return the results as plain text."""
        return render_text(self.blocks())

    def to_dict(self) -> dict[str, Any]:
        """Return all results and every flipped verdict as a JSON-serializable dictionary."""
        parts = ("by_family", "by_criterion", "by_attack")
        return {
            "items": len(self.item_ids),
            "attacks": len(self._real_attacks),
            **asdict(self.spend),
            "n_unjudged": self.n_unjudged,
            "overall": self.overall.to_dict(),
            "control": self.control.to_dict(),
            **{part: {k: rate.to_dict() for k, rate in getattr(self, part).items()} for part in parts},
            "flips": [
                {key: value for key, value in asdict(cell).items() if key not in ("outcome", "repeat")}
                for cell in self._attack_cells
                if cell.outcome == "flipped"
            ],
            "notices": self.notices(),
        }


def _interval(name: str, estimate: Estimate) -> list[tuple[str, Cell]]:
    return [(name, estimate.value), ("  from", estimate.low), ("  to", estimate.high)]


def _table(what: str, rates: Mapping[str, FlipRate]) -> TableBlock:
    rows = tuple(
        (name, rate.flips, rate.n, rate.rate.value, rate.rate.low, rate.rate.high, rate.noise.value)
        for name, rate in rates.items()
    )
    return TableBlock(columns=(what, "flips", "of", "flip rate", "from", "to", "noise"), rows=rows)


_AT_A_TIME = 64


_Job: TypeAlias = tuple[GradingTask, Attack | None]
"""One grading of an item, either unchanged or under an attack."""


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
    chosen = builtin_attacks() if attacks is None else tuple(attacks)
    if repeated := sorted(one for one, n in Counter(attack.id for attack in chosen).items() if n > 1):
        raise ArgumentError(f"the ids of attacks must be unique; repeated: {', '.join(repeated)}")
    if all(attack.is_control for attack in chosen):
        raise ArgumentError("attacks must contain at least one attack besides controls")
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
    # With fresh votes: chance affects them as much as a second grading.
    jobs = (
        (replace(attacked, first_sample=fresh), attack)
        for task in tasks
        for attack in chosen
        if (attacked := insert(task, attack)) is not None
    )
    async for (task, attack), report in grading.grade(jobs):
        if attack is not None:
            cells += clean[task.item_id].cells(attack, report)
    # Gradings finish in any order.
    items = {task.item_id: place for place, task in enumerate(tasks)}
    places = {attack.id: place for place, attack in enumerate(chosen)}
    cells.sort(key=lambda cell: (places[cell.attack], items[cell.item_id]))
    criteria = [one.name or "" for task in tasks for one in task.rubric if one.check is None]
    return RedteamReport(
        attacks=chosen,
        item_ids=tuple(task.item_id for task in tasks),
        criteria=tuple(dict.fromkeys(criteria)),
        cells=tuple(cells),
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
            return job, self._grader.aggregate(job[0], await self._grader.judge(job[0]))

        async for job, report in run_bounded(jobs, work, limit=self._max_concurrent):
            self.spend = self.spend.with_report(report)
            yield job, report

    async def grade_clean(self, tasks: Sequence[GradingTask], fresh: int) -> dict[str, CleanItem]:
        """Grade the unchanged items twice, and return them by id."""
        first: dict[str, EnsembleEvaluationReport] = {}
        second: dict[str, EnsembleEvaluationReport] = {}
        jobs = ((job, None) for task in tasks for job in (task, replace(task, first_sample=fresh)))
        async for (task, _), report in self.grade(jobs):
            (second if task.first_sample else first)[task.item_id] = report
        clean = {
            item_id: CleanItem(item_id=item_id, first=report, second=second[item_id])
            for item_id, report in first.items()
        }
        if not any(item.n_judged for item in clean.values()):
            why = next((report.error for report in first.values() if report.error), "no reply could be read")
            raise JudgeError(f"no verdict could be judged, so no attack was sent: {why}")
        return clean


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
