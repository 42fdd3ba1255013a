"""The interface of graders: request votes, then aggregate them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from autorubric.reporting import GradingTask
from autorubric.values import Submission

if TYPE_CHECKING:
    from autorubric._events import Listener
    from autorubric.llm import LLMConfig
    from autorubric.reporting import GraderDescription, Votes
    from autorubric.rubric import Rubric
    from autorubric.types import EnsembleEvaluationReport, JudgeVote


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
        query: str | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """Grade one submission and return its report.

        Args:
            to_grade: Text, `{"thinking", "output"}`, named candidates, a conversation, or None.
            rubric: The rubric to grade by.
            query: The prompt that the submission answers.
            reference_submission: A good answer for comparison.
            item_id: Id of the item, for recorded votes, seeds and few-shot examples.

        Raises:
            ArgumentError: If `to_grade` does not have one of these forms, or the grader refers to criteria
                that are not in the rubric.
        """
        self.check_rubrics([rubric])
        task = GradingTask(
            submission=Submission.parse(to_grade),
            rubric=rubric,
            query=query,
            reference_submission=reference_submission,
            item_id=item_id or "",
        )
        return self.aggregate(task, await self.judge(task))
