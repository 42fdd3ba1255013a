"""Changes of groups, gates, bonuses and conditions score stored votes anew, and are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autorubric import EvalResult, Rubric, RubricGroup
from tests.doubles import binary
from tests.runs.runs import TEXTS, CountingJudge, run, small_dataset, small_rubric

APPLE, PEAR = (
    binary("apple", requirement="Speaks of apples."),
    binary("pear", 5.0, requirement="Speaks of pears."),
)


def pear(**fields: Any) -> Rubric:
    return small_rubric(**fields)


@pytest.mark.parametrize(
    ("rubric", "scores", "named"),
    [
        (pear(gate="required"), [1.0, 0.0, 5 / 15, 0.0], "criterion pear: gate None → 'required'"),
        (
            pear(gate={"at_least": 1.0, "cap": 0.5}, weight=10.0),
            [1.0, 0.5, 0.5, 0.0],
            "criterion pear: weight 5 → 10, gate None → {'at_least': 1.0, 'cap': 0.5}",
        ),
        (pear(bonus=True), [1.0, 1.0, 0.5, 0.0], "criterion pear: bonus False → True"),
        (pear(when="apple"), [1.0, 10 / 15, 0.0, 0.0], "criterion pear: when None → 'apple'"),
        (
            Rubric([APPLE, RubricGroup("fruit", [PEAR], weight=30.0)]),
            [1.0, 0.25, 0.75, 0.0],
            "group fruit was added; nesting changed: pear moved to another group",
        ),
    ],
)
def test_the_algebra_rescores_without_a_call(
    tmp_path: Path, rubric: Rubric, scores: list[float], named: str
) -> None:
    """The stored votes are scored again, nobody is asked, and the reader is told what changed."""
    run(tmp_path, CountingJudge(), small_dataset(*TEXTS, rubric=Rubric([APPLE, PEAR])))
    judge = CountingJudge()
    # The requirement is part of what was asked, so both rubrics have it alike.
    result = run(tmp_path, judge, small_dataset(*TEXTS, rubric=rubric))
    assert not judge.asked
    assert result.get_scores() == pytest.approx(scores)
    for part in named.split("; "):
        assert any(part in notice for notice in result.notices), result.notices
    assert EvalResult.from_experiment(tmp_path / "run").get_scores() == result.get_scores()


def test_group_weights_are_named(tmp_path: Path) -> None:
    """A group's other weight scores anew; one that is gone is told."""

    def grouped(weight: float) -> Rubric:
        return Rubric([APPLE, RubricGroup("fruit", [PEAR], weight=weight)])

    run(tmp_path, CountingJudge(), small_dataset(*TEXTS, rubric=grouped(10.0)))
    judge = CountingJudge()
    again = run(tmp_path, judge, small_dataset(*TEXTS, rubric=grouped(30.0)))
    assert any("group fruit: weight 10 → 30" in notice for notice in again.notices)
    assert again.get_scores()[1] == 0.25
    flat = run(tmp_path, judge, small_dataset(*TEXTS, rubric=Rubric([APPLE, PEAR])))
    assert any("group fruit was removed" in notice for notice in flat.notices)
    assert not judge.asked


def test_many_moves_are_one_line(tmp_path: Path) -> None:
    """Of many criteria that moved, three are named."""
    names = [f"c{i}" for i in range(6)]
    criteria = [binary(name) for name in names]
    run(tmp_path, CountingJudge(), small_dataset("c1", rubric=Rubric(criteria)))
    result = run(tmp_path, CountingJudge(), small_dataset("c1", rubric=Rubric([RubricGroup("g", criteria)])))
    assert any("c0, c1, c2 and 3 more moved to another group" in notice for notice in result.notices)


def test_reports_of_a_stored_run_keep_node_scores(tmp_path: Path) -> None:
    """A run that is opened again has the scores of its groups."""
    rubric = Rubric([APPLE, RubricGroup("fruit", [PEAR])])
    run(tmp_path, CountingJudge(), small_dataset(*TEXTS, rubric=rubric))
    reports = EvalResult.from_experiment(tmp_path / "run").get_reports()
    assert [report.node_scores if report else None for report in reports] == [
        {"": 1.0, "fruit": 1.0},
        {"": 0.5, "fruit": 0.0},
        {"": 0.5, "fruit": 1.0},
        {"": 0.0, "fruit": 0.0},
    ]
