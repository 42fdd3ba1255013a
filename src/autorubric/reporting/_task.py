"""The task to grade, and the description of its grader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from autorubric.rubric import Rubric
from autorubric.values import Json, Submission

if TYPE_CHECKING:
    from autorubric.types import JudgeVote

Votes: TypeAlias = "Mapping[str, Sequence[JudgeVote]]"
"""Votes by criterion name."""


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
    """

    submission: Submission
    rubric: Rubric
    query: str | None = None
    reference_submission: str | None = None
    item_id: str = ""
    first_sample: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderDescription:
    """The description of a grader in a run's manifest.

    Attributes:
        asking: Settings that the votes depend on: judges, prompts and sampling.
        deciding: Settings for combining votes; if they change, stored votes are rescored without new calls.
    """

    asking: Mapping[str, Json]
    deciding: Mapping[str, Json]
