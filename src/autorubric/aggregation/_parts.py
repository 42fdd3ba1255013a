"""Criteria in parts: each part is decided by itself, and the whole follows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from autorubric.aggregation._ballots import Count, Outcome
from autorubric.aggregation._methods import Aggregator
from autorubric.values import Answer


def part_by_part(aggregators: Sequence[Aggregator], *, undivided: Aggregator) -> Aggregator:
    """The aggregator that decides each part by its own one and puts the whole together.

    Args:
        aggregators: One a part, in order.
        undivided: Combines answers of which one says nothing on the parts, as a share without the items.
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
        # An answer that somebody gave keeps what was said beside it.
        given = [replace(answer, reason="") for answer in count.answers if answer.code == made.code]
        values = [answer.value for answer in count.answers if answer.value is not None]
        return Outcome(
            answer=given[0] if given else made,
            tie=any(outcome.tie for outcome in outcomes),
            mean_value=statistics.fmean(values) if values else None,
        )

    return combined


def _complete(column: Sequence[Answer | None]) -> list[Answer]:
    """The answers to one part; none where one of them is missing."""
    given = [answer for answer in column if answer is not None]
    return given if len(given) == len(column) else []
