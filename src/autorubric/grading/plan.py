"""Plans every vote on a task: criterion, judge, sample, order of presentation, seed, examples."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import CHECK_JUDGE_ID, Submission
from autorubric.datasets.dataset import RubricDataset, labelled_answers
from autorubric.errors import ArgumentError
from autorubric.grading.base import GradingTask, VoteKey, prompts_of
from autorubric.judges.base import JudgeRequest, ReferenceJudge, is_blank
from autorubric.judges.function import CheckJudge
from autorubric.judges.panel import JudgeLike, PanelMember
from autorubric.judges.prompts import Example
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.aggregation import aggregator_of
from autorubric.scoring.policies import AggregationPolicy
from autorubric.scoring.votes import JudgeVote
from autorubric.support.objects import is_number, maker_of


class Seeds:
    """Derives 64-bit seeds from parts, of which the first ones are shared."""

    __slots__ = ("_shared",)

    def __init__(self, *parts: int | str) -> None:
        self._shared = hashlib.blake2b(_encode(*parts), digest_size=8)

    def of(self, *parts: int | str) -> int:
        """Return the 64-bit seed for the shared parts followed by these parts."""
        digest = self._shared.copy()
        digest.update(_encode_name(*parts))
        return int.from_bytes(digest.digest(), "big")


def derive_seed(*parts: int | str) -> int:
    return Seeds(*parts).of()


def _encode(*parts: int | str) -> bytes:
    texts = [str(part).encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([b"%d:%b" % (len(text), text) for text in texts])


# The names of criteria and judges are the same for all items.
_encode_name = lru_cache(maxsize=4096)(_encode)


class FewShotConfig(BaseModel):
    """Settings for selecting few-shot examples.

    Attributes:
        n_examples: Number of examples for each criterion.
        balance_verdicts: Whether to alternate between answers, so that all are shown about equally often.
        include_reason: Whether to show the reasons in the training data. Reasons for comparisons are never
            shown, because they can name candidates that judges see only as letters.
        seed: Seed of the random selection; None means 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    n_examples: int = Field(default=3, ge=1)
    balance_verdicts: bool = True
    include_reason: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class _Labelled:
    item_id: str
    submission: Submission
    text: str
    label: str
    reason: str


class ExamplePool:
    """A pool of few-shot examples by criterion name, in the order in which they are used."""

    def __init__(self, training_data: RubricDataset, config: FewShotConfig) -> None:
        self.config = config
        self._shuffled = _by_criterion(training_data)
        for name, labelled in self._shuffled.items():
            random.Random(derive_seed(config.seed or 0, "few-shot", name)).shuffle(labelled)
        if not self._shuffled:
            raise ArgumentError(
                f"training_data has {len(training_data)} items, but no labelled text; pass items with a "
                "submission and ground_truth or ratings"
            )

    @property
    def criteria(self) -> tuple[str, ...]:
        return tuple(self._shuffled)

    @property
    def digest(self) -> str:
        """SHA-256 of all examples that may be shown: texts, labels and, if shown, reasons."""
        digest = hashlib.sha256()
        for name, labelled in sorted(self._shuffled.items()):
            for found in labelled:
                shown = [name, found.item_id, found.text, found.label]
                digest.update(json.dumps([*shown, self._reason(found)]).encode("ascii"))
        return digest.hexdigest()

    def _reason(self, found: _Labelled) -> str:
        return found.reason if self.config.include_reason else ""

    def examples(self, criterion_name: str, task: GradingTask) -> tuple[Example, ...]:
        """Return the first examples of a criterion, excluding those with the item's id or text."""
        own_texts = _normalized_texts(task.submission)
        others = [
            found
            for found in self._shuffled.get(criterion_name, ())
            if _normalized_texts(found.submission) != own_texts
            and not (task.item_id and found.item_id == task.item_id)
        ]
        # Labels alternate after the item itself is excluded; otherwise its label would lack one example.
        taken = _alternate_labels(others) if self.config.balance_verdicts else others
        return tuple(
            Example(text=found.text, answer=found.label, reason=self._reason(found))
            for found in itertools.islice(taken, self.config.n_examples)
        )


def _normalized_texts(submission: Submission) -> set[str]:
    texts = submission.candidates.values() or [submission.text or ""]
    return {" ".join(text.split()).casefold() for text in texts}


def _by_criterion(training_data: RubricDataset) -> dict[str, list[_Labelled]]:
    pool: dict[str, list[_Labelled]] = {}
    for position, submission, criterion, answer in labelled_answers(training_data):
        text, label = criterion.example(submission, answer)
        if text is None or label is None:
            continue
        name, reasons = criterion.name or "", training_data.items[position].reasons
        reason = "" if criterion.level == "ranking" else reasons.get(name, "")
        labelled = _Labelled(training_data.item_id(position), submission, text, label, reason)
        pool.setdefault(name, []).append(labelled)
    return pool


def _alternate_labels(labelled: Sequence[_Labelled]) -> Iterator[_Labelled]:
    """Yield one example of each label in turn until none is left."""
    by_label: dict[str, list[_Labelled]] = {}
    for found in labelled:
        by_label.setdefault(found.label, []).append(found)
    for turn in itertools.zip_longest(*(by_label[label] for label in sorted(by_label))):
        yield from (found for found in turn if found is not None)


# The planner does what `__post_init__` does, for all requests on a criterion at once.
_make_request: Final = maker_of(JudgeRequest)
_CHECK_MEMBER: Final = PanelMember(judge=CheckJudge(), judge_id=CHECK_JUDGE_ID, weight=1.0, samples=1)


class JudgeCall(NamedTuple):
    """One vote to request.

    Attributes:
        member: The judge that casts the vote, with its settings in the panel.
        request: The request to the judge.
        key: Key of the vote within the task.
        place: Index of the criterion among those that can share a prompt.
    """

    member: PanelMember
    request: JudgeRequest
    key: VoteKey
    place: int = 0

    @classmethod
    def of(cls, member: PanelMember, request: JudgeRequest) -> JudgeCall:
        """Create the call that sends a request to a judge."""
        key = (request.criterion.name or "", member.judge_id, request.sample, request.order)
        return cls(member, request, key)

    @property
    def criterion_name(self) -> str:
        """Name of the criterion."""
        return self.key[0]

    def skipped_vote(self) -> JudgeVote:
        """Return the `not_asked` vote to record if the call is skipped."""
        return JudgeVote(
            judge_id=self.member.judge_id,
            sample=self.request.sample,
            status="not_asked",
            weight=self.member.weight,
            order=self.request.order or None,
            skipped=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    members: tuple[PanelMember, ...]
    policy: AggregationPolicy
    examples: ExamplePool | None  # pool of few-shot examples; None for no examples
    system_prompt: str | None
    multi_choice_system_prompt: str | None
    shuffle: bool  # whether options are shown in random order
    seed: int

    def plan(self, task: GradingTask) -> tuple[JudgeCall, ...]:
        """Return every vote to be cast on a task; see `CriterionGrader.plan`."""
        for criterion in task.rubric:
            aggregator_of(self.policy, criterion)
        self._demand_reference(task)
        if task.submission.images:
            # Imported late, since a panel without models loads no clients.
            from autorubric.llm.route import demand_images

            for model in (model for member in self.members for model in member.models):
                for one in (model, *model.fallback_configs()):
                    demand_images(one)
        seeds = Seeds(self.seed, task.item_id or task.submission.text or "")
        calls: list[JudgeCall] = []
        places = {one.name: place for group in prompts_of(task.rubric, 0) for place, one in enumerate(group)}
        for criterion in task.rubric:
            calls += self._calls(criterion, task, seeds, places.get(criterion.name, 0))
        return tuple(calls)

    def _system_prompt(self, criterion: BaseCriterion) -> str | None:
        if self.multi_choice_system_prompt is None or criterion.level not in ("ordinal", "nominal"):
            return self.system_prompt
        return self.multi_choice_system_prompt

    def _calls(self, criterion: BaseCriterion, task: GradingTask, seeds: Seeds, at: int) -> list[JudgeCall]:
        """Return all calls for one criterion: one per judge, sample and order of presentation."""
        name, submission, reference = criterion.name or "", task.submission, task.reference_submission
        bound = criterion.bind(submission)
        shared = {
            "criterion": bound,
            "submission": submission,
            "query": task.query,
            "reference_submission": None if is_blank(reference) else reference,
            "guidelines": task.rubric.guidelines,
            "item_id": task.item_id,
            "shuffle": self.shuffle,
            "examples": self.examples.examples(name, task) if self.examples else (),
            "system_prompt": self._system_prompt(bound),
        }
        is_random = self.shuffle and bound.is_shuffled
        orders = () if is_random else bound.presentations(submission, None)
        calls = []
        for member in self.members if criterion.check is None else (_CHECK_MEMBER,):
            for sample in range(task.first_sample, task.first_sample + member.samples):
                seed = seeds.of(name, member.judge_id, sample)
                if is_random:
                    orders = bound.presentations(submission, random.Random(seed))
                # A check is a function of one text, so the order does not matter.
                for number, order in enumerate(orders if criterion.check is None else orders[:1]):
                    key = (name, member.judge_id, sample, order)
                    request = _make_request(
                        **shared,
                        sample=sample,
                        seed=seed,
                        order=order,
                        presentation=number,
                        requests_left=task.requests_left and task.requests_left.get(key),
                    )
                    calls.append(JudgeCall(member, request, key, at))
        return calls

    def _demand_reference(self, task: GradingTask) -> None:
        """Check that all required references exist, before any request is sent; checks require none."""
        if not is_blank(task.reference_submission):
            return
        needing = [one for one in task.rubric if one.needs_reference and one.check is None]
        lacking = [
            one.name or ""
            for one in needing
            if any(
                not isinstance(member.judge, ReferenceJudge) or member.judge.takes_reference_for(one)
                for member in self.members
            )
        ]
        if lacking:
            item = f"item {task.item_id!r}" if task.item_id else "the submission"
            raise ArgumentError(
                f"{', '.join(lacking)} requires a reference, but {item} has none; pass "
                "reference_submission=…, or use mode='absolute'"
            )


_MOST_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class EscalationConfig:
    """A second panel for criteria on which the grader's own judges are unsure.

    Attributes:
        judges: The second panel, in any form that `CriterionGrader(judges=…)` accepts.
        threshold: Confidence in [0, 1] below which a criterion is escalated. Criteria that have no confidence
            or no answer are always escalated.
        per_criterion: Thresholds for individual criteria, by name; each name must be in a rubric.
        band: Two probabilities in [0, 1], instead of a threshold: a binary criterion is escalated if the
            probability of its positive answer lies between them (inclusive), any other criterion if its most
            probable answer, or that of one of its parts, has a lower probability than the second. Criteria
            without probabilities or without an answer are always escalated.

    Raises:
        ArgumentError: If there are no judges, or the threshold or the band is invalid.
    """

    judges: Sequence[JudgeLike]
    threshold: float | None = None
    per_criterion: Mapping[str, float] = field(default_factory=dict)
    band: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.judges, str) or not isinstance(self.judges, Sequence) or not self.judges:
            raise ArgumentError(f"judges must be a non-empty list; got {self.judges!r}")
        if not isinstance(self.per_criterion, Mapping):
            raise ArgumentError(f"per_criterion must map names to thresholds; got {self.per_criterion!r}")
        if (self.threshold is None) == (self.band is None) or (self.band and self.per_criterion):
            raise ArgumentError("pass either threshold, with per_criterion if needed, or band")
        if self.band is not None and (len(self.band) != 2 or self.band[0] > self.band[1]):
            raise ArgumentError(f"band must be a lower and an upper probability; got {self.band!r}")
        for value in self.band or (self.threshold,):
            _check_threshold("band" if self.band else "threshold", value)
        for name, threshold in self.per_criterion.items():
            _check_threshold(f"per_criterion[{name!r}]", threshold)


def check_names(what: str, names: Iterable[str], rubrics: Iterable[Rubric]) -> None:
    """Check that every criterion that an argument names is in a rubric."""
    unknown, known = dict.fromkeys(names), dict[str, None]()
    remaining = iter(rubrics)
    while unknown and (rubric := next(remaining, None)) is not None:
        for name in rubric.names:
            known[name] = None
            unknown.pop(name, None)
    if not unknown:
        return
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    raise ArgumentError(
        f"{what}: unknown criterion {', '.join(map(repr, unknown))}; "
        f"available: {', '.join(map(repr, list(known)[:_MOST_LISTED]))}{more}"
    )


def check_soft_votes(policy: AggregationPolicy, rubrics: Iterable[Rubric]) -> None:
    """Check that the settings of soft votes, if votes are soft, apply to the criteria of the rubrics."""
    if policy.votes == "hard":
        return
    known = list(rubrics)
    check_names("thresholds", policy.thresholds, known)
    for criterion in (one for rubric in known for one in rubric):
        aggregator_of(policy, criterion)
        parts = [*criterion.part_fields.values()] or [criterion]
        if criterion.name in policy.thresholds and any(part.level != "binary" for part in parts):
            raise ArgumentError(
                f"thresholds: the criterion {criterion.name!r} is not binary; only binary criteria, and "
                "checklists, have a threshold"
            )
        for calibration in policy.calibrations if criterion.check is None else ():
            for part in parts:
                if part.level in ("binary", "nominal", "ordinal"):
                    calibration.check(part)


def _check_threshold(name: str, threshold: object) -> None:
    if not is_number(threshold) or not 0.0 <= threshold <= 1.0:
        raise ArgumentError(f"{name} must be a number between 0 and 1; got {threshold!r}")
