"""The grader: one judge is a panel of one, every (criterion, judge, sample) a vote."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from autorubric._events import Listener, VoteCast
from autorubric.aggregation import (
    AggregationPolicy,
    BinaryAggregation,
    NominalAggregation,
    OnFailure,
    OrdinalAggregation,
    RankingAggregation,
)
from autorubric.criteria import (
    BaseCriterion,
    ComparativeCriterion,
    Criterion,
    CriterionOption,
    find_check,
)
from autorubric.critic import Cast, cast_vote, cast_votes
from autorubric.dataset import RubricDataset
from autorubric.errors import ArgumentError
from autorubric.graders._base import Grader, GraderDescription, GradingTask, Votes
from autorubric.graders._few_shot import ExamplePool, FewShotConfig
from autorubric.graders._policy import GradingPolicy
from autorubric.graders._report import build_report
from autorubric.graders._seeds import derive_seed
from autorubric.judges import (
    CHECK_JUDGE_ID,
    BatchJudge,
    CheckJudge,
    JudgeLike,
    JudgeRequest,
    Seat,
    seat_judges,
)
from autorubric.llm import LLMConfig
from autorubric.prompts import Material, Question, compose, compose_batch
from autorubric.types import CannotAssessConfig, EnsembleEvaluationReport, JudgeVote, LengthPenalty
from autorubric.values import Json, Submission

LLMCalls = Literal["per_criterion", "per_item"] | int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """One vote to be cast.

    Attributes:
        seat: By whom.
        request: On what.
    """

    seat: Seat
    request: JudgeRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Showing:
    """One time that a judge is shown a criterion."""

    sample: int
    seed: int
    order: tuple[str, ...]
    presentation: int


class CriterionGrader(Grader):
    """Grades by asking each judge about each criterion and combining the votes.

    Args:
        llm_config: A model, as an `LLMConfig` or a name: a panel of one. Exactly one of this and `judges`.
        judges: The panel: `JudgeSpec`s, judges, models, names of models, functions of a `JudgeRequest`.
        aggregation: How binary votes are combined.
        ordinal_aggregation: How votes on ordered scales and numbers are combined.
        nominal_aggregation: How votes on unordered choices are combined.
        ranking_aggregation: How votes that compare candidates are combined.
        training_data: Labelled items from which few-shot examples are drawn.
        few_shot_config: How they are drawn; the default one where only `training_data` is given.
        system_prompt: Replaces the system prompt for all kinds of criterion.
        multi_choice_system_prompt: Replaces it for criteria with options.
        length_penalty: What length takes off the score.
        normalize: Whether the score is brought to [0, 1].
        cannot_assess_config: How criteria without a judgment count.
        shuffle_options: Whether options are shown in an order drawn anew for each judge and call.
        llm_calls: One request a criterion, one an item, or one for so many criteria of an item.
        on_failure: Whether a reply that could not be read counts as the conservative answer, is left out,
            or raises.
        seed: Seed of all draws; None is 0.

    Raises:
        ArgumentError: The arguments cannot work together.
    """

    def __init__(  # noqa: PLR0913 - the public constructor
        self,
        *,
        llm_config: LLMConfig | str | None = None,
        judges: Sequence[JudgeLike] | None = None,
        aggregation: BinaryAggregation = "majority",
        ordinal_aggregation: OrdinalAggregation = "mean",
        nominal_aggregation: NominalAggregation = "mode",
        ranking_aggregation: RankingAggregation = "borda",
        training_data: RubricDataset | None = None,
        few_shot_config: FewShotConfig | None = None,
        system_prompt: str | None = None,
        multi_choice_system_prompt: str | None = None,
        length_penalty: LengthPenalty | None = None,
        normalize: bool = True,
        cannot_assess_config: CannotAssessConfig | None = None,
        shuffle_options: bool = True,
        llm_calls: LLMCalls = "per_criterion",
        on_failure: OnFailure = "conservative",
        seed: int | None = None,
    ) -> None:
        self.seats = seat_judges(
            _one_of(llm_config, judges),
            system_prompt=system_prompt,
            multi_choice_system_prompt=multi_choice_system_prompt,
        )
        self.policy = GradingPolicy(
            aggregation=AggregationPolicy(
                aggregation=aggregation,
                ordinal_aggregation=ordinal_aggregation,
                nominal_aggregation=nominal_aggregation,
                ranking_aggregation=ranking_aggregation,
                on_failure=on_failure,
            ),
            cannot_assess=cannot_assess_config or CannotAssessConfig(),
            length_penalty=length_penalty,
            normalize=normalize,
        )
        if few_shot_config is not None and training_data is None:
            raise ArgumentError("few_shot_config without training_data: give the labelled items to draw from")
        self._examples: ExamplePool | None = None
        if training_data is not None:
            self._examples = ExamplePool(training_data, few_shot_config or FewShotConfig())
        self._prompts = (system_prompt, multi_choice_system_prompt)
        self.shuffle_options = shuffle_options
        self.criteria_per_call = _criteria_per_call(llm_calls)
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise ArgumentError(f"seed {seed!r}: give a whole number, or None")
        self.seed = seed or 0
        self._check_seat = Seat(judge=CheckJudge(), judge_id=CHECK_JUDGE_ID, weight=1.0, samples=1)
        _warn_of_equal_samples(self.seats)

    def plan(self, task: GradingTask) -> tuple[JudgeCall, ...]:
        """Every vote to be cast on a task: by criterion, judge, sample and order of presentation.

        Raises:
            ArgumentError: A criterion names an aggregation that its level does not have, or compares with a
                reference that is not there.
        """
        _demand_reference(task)
        calls = []
        for criterion in task.rubric:
            self.policy.aggregation.aggregator(criterion)
            seats = self.seats if criterion.check is None else (self._check_seat,)
            examples = self._examples.examples(criterion.name or "", task) if self._examples else ()
            facing = criterion.facing(task.submission)
            for seat in seats:
                for shown in self._showings(task, facing, seat):
                    request = JudgeRequest(
                        criterion=facing,
                        submission=task.submission,
                        query=task.query,
                        reference_submission=task.reference_submission,
                        guidelines=task.rubric.guidelines,
                        item_id=task.item_id,
                        sample=shown.sample,
                        seed=shown.seed,
                        shuffle=self.shuffle_options,
                        examples=examples,
                        order=shown.order,
                        presentation=shown.presentation,
                    )
                    calls.append(JudgeCall(seat=seat, request=request))
        return tuple(calls)

    def _showings(self, task: GradingTask, criterion: BaseCriterion, seat: Seat) -> Iterator[_Showing]:
        item = task.item_id or task.submission.text or ""
        for sample in range(seat.samples):
            seed = derive_seed(self.seed, item, criterion.name or "", seat.judge_id, sample)
            rng = random.Random(seed) if self.shuffle_options else None
            orders = criterion.presentations(task.submission, rng)
            # A check is one function of one text: it sees no order.
            for presentation, order in enumerate(orders if criterion.check is None else orders[:1]):
                yield _Showing(sample=sample, seed=seed, order=order, presentation=presentation)

    async def judge(
        self, task: GradingTask, *, stored: Votes | None = None, listener: Listener | None = None
    ) -> dict[str, list[JudgeVote]]:
        """All votes on the task, by criterion name; those in `stored` are not cast again.

        Raises:
            ArgumentError: A criterion names an aggregation that its level does not have, or a check that
                is not registered, or compares with a reference that is not there.
            JudgeError: A vote failed and `on_failure` is `"raise"`.
        """
        calls = self.plan(task)
        there = {
            (name, vote.judge_id, vote.sample, vote.order or ()): vote
            for name, votes in (stored or {}).items()
            for vote in votes
        }
        raises = self.policy.aggregation.on_failure == "raise"
        known = {
            _key(call): _as_of_now(call, vote)
            for call in calls
            # Where a failure raises, a stored one is worth another try.
            if (vote := there.get(_key(call))) is not None and not (raises and vote.status == "failed")
        }
        asked = [call for call in calls if _key(call) not in known]
        _find_checks(asked)
        batches = self._batches(asked)

        async def run(batch: Sequence[JudgeCall]) -> None:
            for call, cast in zip(batch, await _cast_batch(batch), strict=True):
                _tell(listener, call, cast)
                known[_key(call)] = cast.vote
                if cast.error is not None and raises:
                    raise cast.error

        await _all_or_cancel([run(batch) for batch in batches])
        votes: dict[str, list[JudgeVote]] = {criterion.name or "": [] for criterion in task.rubric}
        for call in calls:
            votes[call.request.criterion.name or ""].append(known[_key(call)])
        return votes

    def _batches(self, calls: Sequence[JudgeCall]) -> list[list[JudgeCall]]:
        """Calls that share a request; those of a judge that takes one criterion at a time stand alone.

        Criteria that compare share one only with those that show the same candidates in the same order.
        """
        groups: dict[tuple[str, int, tuple[str, ...]], list[JudgeCall]] = {}
        alone = []
        for call in calls:
            if self.criteria_per_call == 1 or not isinstance(call.seat.judge, BatchJudge):
                alone.append([call])
            else:
                key = (call.seat.judge_id, call.request.sample, call.request.order)
                groups.setdefault(key, []).append(call)
        size = self.criteria_per_call
        shared = [
            group[start : start + (size or len(group))]
            for group in groups.values()
            for start in range(0, len(group), size or len(group))
        ]
        return [*alone, *shared]

    def aggregate(self, task: GradingTask, votes: Votes) -> EnsembleEvaluationReport:
        """What the votes come to under this grader's policy."""
        return build_report(task, votes, self.policy)

    def describe(self) -> GraderDescription:
        """What identifies this grader in a manifest: what votes depend on, and what is done with them."""
        asking: dict[str, Json] = {
            "judges": {seat.judge_id: _asked_of(seat) for seat in self.seats},
            "prompts": self._prompt_digest(),
            "sampling": {
                "seed": self.seed,
                "samples": {seat.judge_id: seat.samples for seat in self.seats},
                "shuffle_options": self.shuffle_options,
                "criteria_per_call": self.criteria_per_call,
            },
            "few_shot": self._few_shot_digest(),
        }
        deciding = self.policy.model_dump(mode="json")
        deciding["judge_weights"] = {seat.judge_id: seat.weight for seat in self.seats}
        return GraderDescription(asking=asking, deciding=deciding)

    def _few_shot_digest(self) -> Json:
        if self._examples is None:
            return None
        return {**self._examples.config.model_dump(), "examples": self._examples.digest}

    def _prompt_digest(self) -> str:
        """SHA-256 of sample prompts: any change of wording changes it."""
        material = Material(submission=Submission(text="text"), query="query", reference="reference")
        options = (CriterionOption(label="a", value=0.0), CriterionOption(label="b", value=1.0))
        questions = [
            Question(criterion=Criterion(name="binary", requirement="r")),
            Question(criterion=Criterion(name="choice", requirement="r", options=options)),
        ]
        system, choice_system = self._prompts
        prompts = [compose(material, question, system_prompt=system) for question in questions]
        prompts.append(compose_batch(material, [("c1", questions[0])], system_prompt=choice_system))
        prompts.append(compose(*_sample_comparison(), system_prompt=system))
        digest = hashlib.sha256()
        for prompt in prompts:
            for message in prompt.messages:
                digest.update(message.content.encode("utf-8", "surrogatepass"))
            digest.update(json.dumps(prompt.schema.schema).encode("ascii"))
        return digest.hexdigest()

    async def aclose(self) -> None:
        """Closes the models' connections; grading afterwards opens them anew."""
        for seat in self.seats:
            await seat.aclose()

    async def __aenter__(self) -> CriterionGrader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _one_of(llm_config: LLMConfig | str | None, judges: Sequence[JudgeLike] | None) -> Sequence[JudgeLike]:
    if (llm_config is None) == (judges is None):
        given = "both" if judges is not None else "neither"
        raise ArgumentError(f"give exactly one of llm_config and judges; got {given}")
    if judges is not None:
        return judges
    return [llm_config] if llm_config is not None else []


def _criteria_per_call(llm_calls: LLMCalls) -> int:
    """Criteria in one request; 0 for all of an item."""
    if llm_calls == "per_criterion":
        return 1
    if llm_calls == "per_item":
        return 0
    if isinstance(llm_calls, int) and not isinstance(llm_calls, bool) and llm_calls >= 1:
        return llm_calls
    raise ArgumentError(
        f"llm_calls {llm_calls!r}: give 'per_criterion', 'per_item', or how many criteria go in one request"
    )


def _warn_of_equal_samples(seats: Sequence[Seat]) -> None:
    for seat in seats:
        if seat.samples > 1 and seat.config is not None and seat.config.temperature == 0:
            warnings.warn(
                f"judge {seat.judge_id!r} is asked for {seat.samples} samples at temperature 0: they will be "
                "nearly all the same; set a temperature, or samples=1",
                stacklevel=3,
            )


def _asked_of(seat: Seat) -> Mapping[str, Any]:
    return {k: v for k, v in seat.to_dict().items() if k not in ("judge_id", "weight", "samples")}


def _sample_comparison() -> tuple[Material, Question]:
    submission = Submission(text="one", candidates={"a": "one", "b": "two"})
    criterion = ComparativeCriterion(name="pair", requirement="r").facing(submission)
    shown = criterion.show(submission, None)
    return Material(submission=submission, order=("a", "b")), Question(criterion=criterion, shown=shown)


def _tell(listener: Listener | None, call: JudgeCall, cast: Cast) -> None:
    if listener is None:
        return
    event = VoteCast(
        item_id=call.request.item_id,
        criterion=call.request.criterion.name or "",
        vote=cast.vote,
        exchanged=cast.exchanged,
    )
    listener.vote_cast(event)


def _key(call: JudgeCall) -> tuple[str, str, int, tuple[str, ...]]:
    request = call.request
    return (request.criterion.name or "", call.seat.judge_id, request.sample, request.order)


def _as_of_now(call: JudgeCall, vote: JudgeVote) -> JudgeVote:
    """A stored vote under the judge's present weight and the present values of the criterion's options."""
    answer = call.request.criterion.parse_truth(vote.answer)
    return replace(vote, weight=call.seat.weight, value=None if answer is None else answer.value)


def _demand_reference(task: GradingTask) -> None:
    """Before anything is spent; a check sees the text alone and needs none.

    Raises:
        ArgumentError: A criterion compares with a reference and the task has none.
    """
    if task.reference_submission is not None:
        return
    lacking = [c.name or "" for c in task.rubric if c.needs_reference and c.check is None]
    if lacking:
        item = f"item {task.item_id!r}" if task.item_id else "the submission"
        raise ArgumentError(
            f"{', '.join(lacking)} compares with a reference, and {item} has none; give "
            "reference_submission=…, or use mode='absolute'"
        )


def _find_checks(calls: Sequence[JudgeCall]) -> None:
    """Before anything is spent.

    Raises:
        ArgumentError: A check is not registered.
    """
    for call in calls:
        if call.request.criterion.check is not None:
            find_check(call.request.criterion.check)


async def _cast_batch(batch: Sequence[JudgeCall]) -> list[Cast]:
    if len(batch) == 1:
        return [await cast_vote(batch[0].seat, batch[0].request)]
    return await cast_votes(batch[0].seat, [call.request for call in batch])


async def _all_or_cancel(work: Sequence[Any]) -> None:
    """Awaits all; the first exception cancels the rest, which are awaited before it is raised."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
