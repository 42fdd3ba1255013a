"""Alternative annotator tests of a run, which decide whether its panel may replace a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autorubric.metrics.audit.labelled_votes import distinct_names
from autorubric.metrics.core.item_scores import PANEL, Rater
from autorubric.metrics.core.label_rows import ABSTENTION
from autorubric.metrics.core.label_table import table_of
from autorubric.metrics.core.resampling import Resampling
from autorubric.metrics.core.result import AuditFindings
from autorubric.metrics.core.votes_table import ABSTAINED, ANSWERED, VotesTable
from autorubric.metrics.correction.alt_test import AltAbstain, AltScore, AltTestResult, alt_test
from autorubric.support.blocks import Block, Cell, TableBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class AltTests(AuditFindings):
    """Alternative annotator tests of all criteria that several annotators labelled.

    Attributes:
        per_criterion: Test of each criterion, which compares numbers by distance and categories by equality.
    """

    per_criterion: Mapping[str, AltTestResult]

    def _sentence(self) -> str:
        tested = [one for one in self.per_criterion.values() if one.passed is not None]
        if not tested:
            return "No criterion could be tested: no annotator labelled 30 items that others also labelled."
        passed = sum(bool(one.passed) for one in tested)
        return f"The panel may replace an annotator on {passed} of {len(tested)} tested criteria."

    def _tables(self) -> list[Block]:
        rows: list[tuple[Cell, ...]] = [
            (
                name, sum(test.wins is not None for test in one.per_annotator.values()),
                one.winning_rate.value, one.advantage.value, one.advantage.low, one.advantage.high,
                one.passed, one.winning_rate.reason or "",
            )
            for name, one in self.per_criterion.items()
        ]  # fmt: skip
        columns = (
            "criterion", "people tested", "winning rate", "advantage", "low", "high", "passed", "reason",
        )  # fmt: skip
        title = "Alternative annotator test of the panel"
        return [TableBlock(title=title, columns=columns, rows=tuple(rows))]


def run_alt_tests(
    result: Any, dataset: Any = None, *, abstain: AltAbstain = "exclude", rng: int | np.random.Generator = 0
) -> AltTests:
    """Run `alt_test` on the panel's decisions for each criterion with an item that two annotators labelled.

    Args:
        result: An `EvalResult`, or a long table of labels.
        dataset: Dataset with the annotators' labels; the run's own dataset by default.
        abstain: How abstentions are treated; see `alt_test`. For numbers, they are always missing.
        rng: Seed or NumPy generator for the resampling.

    Raises:
        ArgumentError: If the table cannot be read.
    """
    import pandas as pd  # imported only when these tests are run

    resampling, table = Resampling(rng=rng).fixed(), table_of(result, dataset)
    people = [rater for rater in table.raters if rater[0] == "human"]
    found: dict[str, AltTestResult] = {}
    if PANEL not in table.raters:
        return AltTests(per_criterion=found)
    for place, name in enumerate(distinct_names(table.criteria)):
        numeric = table.criteria[place].level == "interval"
        mode: AltAbstain = "exclude" if numeric else abstain
        by_person = {rater[1]: _answers(table, place, rater, mode) for rater in people}
        humans = {who: answers for who, answers in by_person.items() if _count_answers(answers)}
        if len(humans) < 2 or all(_count_answers(row) < 2 for row in zip(*humans.values(), strict=True)):
            continue
        score: AltScore = "rmse" if numeric else "accuracy"
        panel = _answers(table, place, PANEL, mode)
        found[name] = alt_test(panel, pd.DataFrame(humans), score=score, abstain=mode, rng=resampling.rng)
    return AltTests(per_criterion=found)


def _count_answers(answers: Iterable[Any]) -> int:
    return sum(one is not None for one in answers)


def _answers(table: VotesTable, place: int, rater: Rater, abstain: AltAbstain) -> list[Any]:
    """Return a rater's answers to a criterion by item; None if an answer is missing, failed or excluded."""
    rows = table.rows_of(rater)
    statuses = [ANSWERED] if abstain == "exclude" else [ANSWERED, ABSTAINED]
    rows = rows[(table.criterion[rows] == place) & np.isin(table.status[rows], statuses)]
    numbers = np.where(np.isnan(table.number[rows]), table.value[rows], table.number[rows])
    labels = np.where(table.status[rows] == ABSTAINED, ABSTENTION, table.label[rows])
    given = numbers if table.criteria[place].level == "interval" else labels
    found: list[Any] = [None] * table.n_items
    for item, answer in zip(table.item[rows].tolist(), given.tolist(), strict=True):
        found[item] = answer
    return found
