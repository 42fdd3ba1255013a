"""Ballots, the input for combining both the samples of a judge and the judges of a panel."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autorubric.criteria import BaseCriterion
from autorubric.types import Decision, prefers_alike
from autorubric.values import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """One vote, or one judge's decision, as input to the aggregation.

    Attributes:
        status: `answered`, `abstained`, `failed` or `not_asked`.
        answer: The answer, if any; abstentions such as NA can also have one.
        unreadable: Whether the vote failed because its reply could not be read.
        weight: Weight in a weighted aggregation.
    """

    status: str
    answer: Answer | None = None
    unreadable: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The input of an aggregator: the answers that count, with their weights.

    Attributes:
        answers: The answers, in the order of the votes; never empty.
        weights: One weight per answer.
        criterion: The criterion that was answered.
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
    """The result of an aggregator.

    Attributes:
        answer: The chosen answer.
        tie: Whether no answer led, so that the conservative answer was used.
        mean_value: Aggregate in [0, 1] before an option was selected, if any.
    """

    answer: Answer
    tie: bool = False
    mean_value: float | None = None


def decision_without_answers(ballots: Sequence[Ballot]) -> Decision:
    """Return the decision if no answer counts: abstained or failed if any ballot is, otherwise not asked."""
    abstained = [ballot.answer for ballot in ballots if ballot.status == "abstained"]
    if abstained:
        said_na = [answer for answer in abstained if answer is not None and answer.na]
        answer = said_na[0] if 2 * len(said_na) > len(abstained) else Answer(code=None, cannot_assess=True)
        return Decision(status="abstained", answer=answer)
    failed = any(ballot.status == "failed" for ballot in ballots)
    return Decision(status="failed" if failed else "not_asked")


def agreement(criterion: BaseCriterion, ballots: Sequence[Ballot], decided: Answer) -> float | None:
    """Return the share of answered ballots whose answer equals the decision; None if it is undefined.

    Preferences are equal if they prefer the same candidate, by any margin. For a criterion with parts, the
    result is the mean share over the parts. Agreement is undefined if no ballot was answered, and for texts,
    which are hardly ever equal.
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
