"""Aggregation of criteria with parts, which decides each part separately and combines the results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from autorubric.aggregation._ballots import Count, Outcome
from autorubric.aggregation._methods import Aggregator
from autorubric.values import Answer


def part_by_part(aggregators: Sequence[Aggregator], *, undivided: Aggregator) -> Aggregator:
    """Return an aggregator that decides each part with its own aggregator and combines the results.

    Args:
        aggregators: One aggregator per part, in order.
        undivided: Aggregator to use if an answer has no parts, such as a checklist with only its share.
    """

    def combined(count: Count) -> Outcome:
        rows = [count.criterion.part_answers(answer) for answer in count.answers]
        columns = [_complete(column) for column in zip(*rows, strict=True)]
        if not all(columns):
            return undivided(count)
        parts = count.criterion.part_fields.values()
        outcomes = [
            aggregate(Count(answers=column, weights=count.weights, criterion=part))
            for aggregate, column, part in zip(aggregators, columns, parts, strict=True)
        ]
        made = count.criterion.whole([outcome.answer for outcome in outcomes])
        # If a judge gave this very answer, its other fields are kept.
        given = [replace(answer, reason="") for answer in count.answers if answer.code == made.code]
        values = [answer.value for answer in count.answers if answer.value is not None]
        return Outcome(
            answer=given[0] if given else made,
            tie=any(outcome.tie for outcome in outcomes),
            mean_value=statistics.fmean(values) if values else None,
        )

    return combined


def _complete(column: Sequence[Answer | None]) -> list[Answer]:
    """Return the answers to one part, or an empty list if one of them is missing."""
    given = [answer for answer in column if answer is not None]
    return given if len(given) == len(column) else []
