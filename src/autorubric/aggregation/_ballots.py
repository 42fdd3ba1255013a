"""Ballots: the part of votes that counts, the same for samples within a judge and for judges in a panel."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autorubric.criteria import BaseCriterion
from autorubric.types import Decision, prefers_alike
from autorubric.values import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """One vote, or one judge's decision, as the aggregation sees it.

    Attributes:
        status: `answered`, `abstained`, `failed` or `not_asked`.
        answer: The answer given; for an abstention what was said, where anything was.
        unreadable: It failed because its reply could not be read.
        weight: Its weight in a weighted aggregation.
    """

    status: str
    answer: Answer | None = None
    unreadable: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What an aggregator sees: the answers that count, and what is conservative.

    Attributes:
        answers: The answers, in the order of the votes; never empty.
        weights: One weight an answer.
        criterion: The criterion they are about.
    """

    answers: Sequence[Answer]
    weights: Sequence[float]
    criterion: BaseCriterion

    @property
    def conservative(self) -> Answer:
        """The answer that helps the score least."""
        return self.criterion.conservative()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an aggregator found.

    Attributes:
        answer: The answer decided on.
        tie: No answer led, and the conservative one was taken.
        mean_value: The aggregate on [0, 1] before an option was selected, where there is one.
    """

    answer: Answer
    tie: bool = False
    mean_value: float | None = None


def decision_without_answers(ballots: Sequence[Ballot]) -> Decision:
    """The decision where no vote counts: abstained if any abstained, else failed, else not asked."""
    abstained = [ballot.answer for ballot in ballots if ballot.status == "abstained"]
    if abstained:
        said_na = [answer for answer in abstained if answer is not None and answer.na]
        answer = said_na[0] if 2 * len(said_na) > len(abstained) else Answer(code=None, cannot_assess=True)
        return Decision(status="abstained", answer=answer)
    failed = any(ballot.status == "failed" for ballot in ballots)
    return Decision(status="failed" if failed else "not_asked")


def agreement(criterion: BaseCriterion, ballots: Sequence[Ballot], decided: Answer) -> float | None:
    """Share of answered ballots whose answer equals the decision; None where none was answered.

    Preferences are equal where the same candidate is preferred, however far. Of a criterion in parts it is
    the mean share over its parts. Texts are hardly ever equal and none is wrong for that: they have no
    agreement.
    """
    answered = [ballot.answer for ballot in ballots if ballot.status == "answered" and ballot.answer]
    if not answered or criterion.level == "text":
        return None
    if criterion.level == "ranking":
        return statistics.fmean(prefers_alike(answer.code, decided.code) for answer in answered)
    whole = criterion.part_answers(decided) if criterion.part_fields else ()
    if not any(whole):
        equal = [answer.code == decided.code for answer in answered]
        return equal.count(True) / len(equal)
    same, total = 0, 0
    for answer in answered:
        for own, part in zip(criterion.part_answers(answer), whole, strict=True):
            same += own is not None and part is not None and own.code == part.code
            total += 1
    return same / total
