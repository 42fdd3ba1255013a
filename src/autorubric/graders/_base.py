"""The grader contract: judge, then aggregate; grading is one after the other."""

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
    """Grades submissions: subclasses say how votes are cast and what they come to."""

    @abstractmethod
    async def judge(
        self, task: GradingTask, *, stored: Votes | None = None, listener: Listener | None = None
    ) -> dict[str, list[JudgeVote]]:
        """All votes on the task, by criterion name.

        Args:
            task: What to grade.
            stored: Votes already there; they are not cast again.
            listener: Hears of each vote as it arrives.
        """

    @abstractmethod
    def aggregate(self, task: GradingTask, votes: Votes) -> EnsembleEvaluationReport:
        """What the votes come to; pure."""

    @abstractmethod
    def describe(self) -> GraderDescription:
        """What identifies this grader in a run's manifest; nothing secret."""

    @property
    def models(self) -> tuple[LLMConfig, ...]:
        """The models that it may ask; empty where it asks none, or does not say."""
        return ()

    def check_rubrics(self, rubrics: Iterable[Rubric]) -> None:  # noqa: B027 - most graders take any
        """Refuses rubrics that it cannot grade by as asked, before anything is sent.

        Args:
            rubrics: All that it is to grade by; read only as far as needed.

        Raises:
            ArgumentError: It names criteria that none of them has.
        """

    async def aclose(self) -> None:  # noqa: B027 - most graders hold nothing
        """Releases what the judges hold; grading afterwards opens it anew."""

    async def grade(
        self,
        to_grade: Any,
        rubric: Rubric,
        query: str | None = None,
        reference_submission: str | None = None,
        item_id: str | None = None,
    ) -> EnsembleEvaluationReport:
        """The report on one submission.

        Args:
            to_grade: A text, `{"thinking", "output"}`, named candidates, a conversation, or None.
            rubric: The criteria.
            query: What the submission answers.
            reference_submission: A good answer to compare with.
            item_id: The item's id, for recorded votes, seeds and few-shot examples.

        Raises:
            ArgumentError: `to_grade` is none of these; or the grader names criteria that the rubric lacks.
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
