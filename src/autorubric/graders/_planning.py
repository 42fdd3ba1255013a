"""Plans every vote on a task, by criterion, judge, sample and order of presentation, without side effects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.graders._few_shot import ExamplePool
from autorubric.graders._seeds import Seeds
from autorubric.judges import CHECK_JUDGE_ID, CheckJudge, JudgeRequest, ReferenceJudge, Seat, is_blank
from autorubric.prompts import Example
from autorubric.reporting import GradingTask
from autorubric.types import JudgeVote

VoteKey: TypeAlias = tuple[str, str, int, tuple[str, ...]]
"""Key of a vote on a task: criterion, judge, sample and order of the candidates."""

_CHECK_SEAT: Final = Seat(judge=CheckJudge(), judge_id=CHECK_JUDGE_ID, weight=1.0, samples=1)


class JudgeCall(NamedTuple):
    """One vote to request.

    Attributes:
        seat: The judge that casts the vote, with its settings in the panel.
        request: The request to the judge.
        key: Key of the vote within the task.
    """

    seat: Seat
    request: JudgeRequest
    key: VoteKey

    @classmethod
    def of(cls, seat: Seat, request: JudgeRequest) -> JudgeCall:
        """Create the call that sends a request to a judge."""
        key = (request.criterion.name or "", seat.judge_id, request.sample, request.order)
        return cls(seat, request, key)

    def left_out(self) -> JudgeVote:
        """Return the `not_asked` vote to record if the call is skipped."""
        return JudgeVote(
            judge_id=self.seat.judge_id,
            sample=self.request.sample,
            status="not_asked",
            weight=self.seat.weight,
            order=self.request.order or None,
            skipped=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Plans the votes of a panel.

    Attributes:
        seats: The judges of the panel.
        examples: Pool of few-shot examples; None for no examples.
        system_prompt: Replaces the system prompt for all kinds of criterion.
        multi_choice_system_prompt: Replaces the system prompt for criteria with options.
        shuffle: Whether options are shown in random order.
        seed: Seed of all random draws.
    """

    seats: tuple[Seat, ...]
    examples: ExamplePool | None
    system_prompt: str | None
    multi_choice_system_prompt: str | None
    shuffle: bool
    seed: int

    def calls(self, task: GradingTask) -> Iterator[JudgeCall]:
        """Yield every vote to be cast on a task.

        Raises:
            ArgumentError: If a criterion needs a reference that is missing.
        """
        self._demand_reference(task)
        seeds = Seeds(self.seed, task.item_id or task.submission.text or "")
        for criterion in task.rubric:
            facing = criterion.facing(task.submission)
            examples = self.examples.examples(criterion.name or "", task) if self.examples else ()
            for seat in self._asked(criterion):
                yield from self._calls_of(seat, task, facing, examples, seeds)

    def _asked(self, criterion: BaseCriterion) -> tuple[Seat, ...]:
        return self.seats if criterion.check is None else (_CHECK_SEAT,)

    def _system_prompt(self, criterion: BaseCriterion) -> str | None:
        if self.multi_choice_system_prompt is None or criterion.level not in ("ordinal", "nominal"):
            return self.system_prompt
        return self.multi_choice_system_prompt

    def _calls_of(
        self,
        seat: Seat,
        task: GradingTask,
        criterion: BaseCriterion,
        examples: tuple[Example, ...],
        seeds: Seeds,
    ) -> Iterator[JudgeCall]:
        """Yield a judge's calls for one criterion: one for each sample and order of presentation."""
        name, system_prompt = criterion.name or "", self._system_prompt(criterion)
        for sample in range(task.first_sample, task.first_sample + seat.samples):
            seed = seeds.of(name, seat.judge_id, sample)
            rng = random.Random(seed) if self.shuffle and criterion.is_shuffled else None
            orders = criterion.presentations(task.submission, rng)
            # A check is a function of one text, so the order does not matter.
            for presentation, order in enumerate(orders if criterion.check is None else orders[:1]):
                request = JudgeRequest(
                    criterion=criterion,
                    submission=task.submission,
                    query=task.query,
                    reference_submission=task.reference_submission,
                    guidelines=task.rubric.guidelines,
                    item_id=task.item_id,
                    sample=sample,
                    seed=seed,
                    shuffle=self.shuffle,
                    examples=examples,
                    order=order,
                    presentation=presentation,
                    system_prompt=system_prompt,
                )
                yield JudgeCall(seat, request, (name, seat.judge_id, sample, order))

    def _demand_reference(self, task: GradingTask) -> None:
        """Check that all required references exist, before any request is sent; checks require none.

        Raises:
            ArgumentError: If the task has no reference, but a criterion and one of its judges need one.
        """
        if not is_blank(task.reference_submission):
            return
        needing = [one for one in task.rubric if one.needs_reference and one.check is None]
        lacking = [one.name or "" for one in needing if any(_lacks(seat, one) for seat in self.seats)]
        if lacking:
            item = f"item {task.item_id!r}" if task.item_id else "the submission"
            raise ArgumentError(
                f"{', '.join(lacking)} requires a reference, but {item} has none; pass "
                "reference_submission=…, or use mode='absolute'"
            )


def _lacks(seat: Seat, criterion: BaseCriterion) -> bool:
    return not isinstance(seat.judge, ReferenceJudge) or seat.judge.takes_reference_for(criterion)
