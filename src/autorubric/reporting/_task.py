"""What is graded, what the votes on it depend on, and what is done with them."""

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
        submission: What is judged.
        rubric: Against what.
        query: What the submission answers.
        reference_submission: A good answer to compare with.
        item_id: The item's id; empty where it has none.
        first_sample: Index of each judge's first sample; above those of earlier votes for fresh ones.
    """

    submission: Submission
    rubric: Rubric
    query: str | None = None
    reference_submission: str | None = None
    item_id: str = ""
    first_sample: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderDescription:
    """What a run's manifest says of a grader.

    Attributes:
        asking: What the votes depend on: judges, prompts, sampling.
        deciding: What is done with them; a change re-scores without asking.
    """

    asking: Mapping[str, Json]
    deciding: Mapping[str, Json]
