"""The interface of graders, and the task that they grade."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from autorubric.criteria.base import BaseCriterion
from autorubric.criteria.values import Submission
from autorubric.rubric.rubric import Rubric
from autorubric.support.objects import Json

if TYPE_CHECKING:
    from autorubric.llm.config import LLMConfig
    from autorubric.scoring.reports import EnsembleEvaluationReport
    from autorubric.scoring.votes import JudgeVote, Listener, Votes

VoteKey: TypeAlias = tuple[str, str, int, tuple[str, ...]]
"""Key of a vote on a task: criterion, judge, sample and order of the candidates."""


def key_of(criterion: str, vote: JudgeVote) -> VoteKey:
    return (criterion, vote.judge_id, vote.sample, vote.order or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingTask:
    """One submission to grade against one rubric.

    Attributes:
        submission: The submission to grade.
        rubric: The rubric to grade against.
        query: The prompt that the submission answers.
        reference_submission: A reference answer to compare with.
        item_id: Id of the item; empty if the item has no id.
        first_sample: Index of each judge's first sample; to get new votes, use an index above all earlier
            ones.
        requests_left: Number of requests to models that may still be sent for votes that are requested once
            more, by criterion, judge, sample and order of the candidates.
    """

    submission: Submission
    rubric: Rubric
    query: str | None = None
    reference_submission: str | None = None
    item_id: str = ""
    first_sample: int = 0
    requests_left: Mapping[VoteKey, int] | None = None


def prompts_of(rubric: Rubric, size: int) -> list[list[BaseCriterion]]:
    """Return the criteria of each prompt with at most `size` of them (0 for all); comparisons are apart."""
    asked = [one for one in rubric if one.check is None]
    kinds = [[one for one in asked if (one.level == "ranking") == compared] for compared in (False, True)]
    step = size or max(1, len(asked))
    return [own[at : at + step] for own in kinds for at in range(0, len(own), step)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderDescription:
    """The description of a grader in a run's manifest.

    Attributes:
        asking: Settings that the votes depend on: judges, prompts and sampling.
        deciding: Settings for combining votes; if they change, stored votes are rescored without new calls.
        shared_prompts: Number of criteria in one prompt, 0 for all, of judges that are asked about several.
    """

    asking: Mapping[str, Json]
    deciding: Mapping[str, Json]
    shared_prompts: Mapping[str, int] = field(default_factory=dict)

    def entries(self) -> dict[str, Json]:
        """Return the entries in a manifest, in which tuples are lists."""
        names = ("asking", "deciding", "shared_prompts")
        entries: dict[str, Json] = json.loads(json.dumps({name: dict(getattr(self, name)) for name in names}))
        return entries


class Grader(ABC):
    """Base class of graders; subclasses define how votes are requested and aggregated."""

    @abstractmethod
    async def judge(
        self, task: GradingTask, *, stored: Votes | None = None, listener: Listener | None = None
    ) -> dict[str, list[JudgeVote]]:
        """Judge a task and return all votes by criterion name.

        Args:
            task: The submission and its rubric.
            stored: Existing votes, which are not requested again.
            listener: Receives each vote as it arrives.
        """

    @abstractmethod
    def aggregate(self, task: GradingTask, votes: Votes) -> EnsembleEvaluationReport:
        """Aggregate votes into a report, without side effects."""

    @abstractmethod
    def describe(self) -> GraderDescription:
        """Return this grader's entry in a run's manifest, without secrets."""

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that the grader can call; empty if there are none or it does not report them."""
        return ()

    @property
    def inner_grader(self) -> Grader:
        """The grader that does the work of a wrapper such as `trace_grader`; itself if it is no wrapper."""
        return self

    def check_rubrics(self, rubrics: Iterable[Rubric]) -> None:  # noqa: B027 - most graders take any
        """Reject rubrics that the grader cannot use, before any request is sent.

        Args:
            rubrics: All rubrics of a run, iterated only as far as needed.

        Raises:
            ArgumentError: If the grader refers to criteria that are not in any rubric.
        """

    async def aclose(self) -> None:  # noqa: B027 - most graders hold nothing
        """Close the judges' connections; grading again reopens them."""

    async def grade(
        self,
        to_grade: Any,
        rubric: Rubric,
        query: str | Sequence[Any] | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """Grade one submission and return its report.

        Args:
            to_grade: Any form that `Submission.parse` takes.
            rubric: The rubric to grade by.
            query: The prompt that the submission answers: text, or content parts with images.
            reference_submission: A good answer for comparison.
            item_id: Id of the item, for recorded votes, seeds and few-shot examples.

        Raises:
            ArgumentError: If `to_grade` does not have one of these forms, or the grader refers to criteria
                that are not in the rubric.
        """
        self.check_rubrics([rubric])
        submission, text = Submission.parse(to_grade).with_prompt(query)
        task = GradingTask(
            submission=submission,
            rubric=rubric,
            query=text,
            reference_submission=reference_submission,
            item_id=item_id or "",
        )
        return self.aggregate(task, await self.judge(task))
