"""The contract of a grader: judge, then aggregate."""

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
        """Return all votes on the task, by criterion name.

        Args:
            task: The submission and its rubric.
            stored: Existing votes, which are not requested again.
            listener: Called with each vote as it arrives.
        """

    @abstractmethod
    def aggregate(self, task: GradingTask, votes: Votes) -> EnsembleEvaluationReport:
        """Return the report that these votes give; a pure function."""

    @abstractmethod
    def describe(self) -> GraderDescription:
        """Return this grader's entry in a run's manifest, without secrets."""

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that it may ask; empty if it asks none, or does not say."""
        return ()

    def check_rubrics(self, rubrics: Iterable[Rubric]) -> None:  # noqa: B027 - most graders take any
        """Refuse rubrics that it cannot grade with, before anything is sent.

        Args:
            rubrics: All rubrics; read only as far as needed.

        Raises:
            ArgumentError: If the grader names criteria that none of them has.
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
            to_grade: A text, `{"thinking", "output"}`, named candidates, a conversation, or None.
            rubric: The rubric.
            query: The prompt that the submission answers.
            reference_submission: A good answer to compare with.
            item_id: Id of the item, for recorded votes, seeds and few-shot examples.

        Raises:
            ArgumentError: If `to_grade` is none of these, or the grader names criteria that the rubric lacks.
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
