"""What is true where a judge says something: drawn from labelled items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from autorubric.criteria import BaseCriterion
from autorubric.errors import ArgumentError
from autorubric.metrics._metrics_result import MetricsResult
from autorubric.metrics._resampling import Array
from autorubric.types import Decision
from autorubric.values import Answer

JudgeError: TypeAlias = Mapping[str, Any] | MetricsResult
"""K × K counts by criterion name, rows truth; or the figures of a run, which hold such counts."""


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """Counts of a criterion's true answers by the judge's.

    Attributes:
        answers: The criterion's answers without NA, in order.
        counts: Shape `(K, K)`, rows truth.
    """

    answers: tuple[Answer, ...]
    counts: Array

    def draw(self, made: Decision, rng: np.random.Generator) -> Decision:
        """The decision with a true answer in place of the judge's; what is no answer stays.

        The shares of true answers are drawn first, from their posterior under 1/K of an item each, so that
        few labelled items spread wider.
        """
        codes = [answer.code for answer in self.answers]
        if made.status != "answered" or made.answer is None or made.answer.code not in codes:
            return made
        column = self.counts[:, codes.index(made.answer.code)]
        shares = rng.dirichlet(column + 1.0 / len(codes))
        return Decision(status="answered", answer=self.answers[int(rng.choice(len(codes), p=shares))])


def judge_errors(given: JudgeError | None, criteria: Sequence[BaseCriterion]) -> dict[str, ErrorTable]:
    """The tables of those criteria that have one.

    Raises:
        ArgumentError: A table fits no criterion, or has another shape than its answers.
    """
    if given is None:
        return {}
    by_name = {one.name or "": one for one in criteria}
    if isinstance(given, MetricsResult):
        tables = {
            one.name: _without_abstentions(matrix.counts, by_name[one.name])
            for one in given.per_criterion
            if (matrix := getattr(one, "confusion_matrix", None)) is not None and one.name in by_name
        }
    elif not isinstance(given, Mapping):
        raise ArgumentError(
            f"judge_error is a {type(given).__name__}; give counts by criterion name, or what "
            "result.compute_metrics() gives"
        )
    else:
        tables = dict(given)
        if unknown := [name for name in tables if name not in by_name]:
            raise ArgumentError(f"judge_error names {unknown!r}; the report's criteria are {list(by_name)!r}")
    return {name: _table(by_name[name], counts) for name, counts in tables.items()}


def _without_abstentions(counts: Any, criterion: BaseCriterion) -> Array:
    """The counts of the criterion's answers, without abstentions that are a category of their own."""
    size = sum(not answer.na for answer in criterion.answers())
    return np.asarray(counts)[:size, :size]


def _table(criterion: BaseCriterion, given: Any) -> ErrorTable:
    answers = tuple(answer for answer in criterion.answers() if not answer.na)
    size = len(answers)
    try:
        counts = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        counts = np.zeros(0)
    if size < 2 or counts.shape != (size, size) or not np.all(np.isfinite(counts)) or np.any(counts < 0):
        raise ArgumentError(
            f"judge_error[{criterion.name!r}] is {given!r}; give {size} × {size} counts, rows "
            f"truth, in the order {[answer.label for answer in answers]!r}"
        )
    return ErrorTable(answers, counts)
