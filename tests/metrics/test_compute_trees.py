"""Scores of labels and judges through trees, gates and conditions, on common ground."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, Literal

import pytest

from autorubric import (
    BaseCriterion,
    CannotAssessConfig,
    CannotAssessStrategy,
    Criterion,
    CriterionGrader,
    RecordedJudge,
    Rubric,
    RubricDataset,
    RubricGroup,
    evaluate_sync,
)
from autorubric.metrics import MetricsResult
from autorubric.metrics.core.item_scores import PANEL, TRUTH, ScoredItem, item_scores, regroup
from autorubric.metrics.core.read_votes import read_votes
from tests.doubles import binary, choice
from tests.metrics.reports import labelled, report, run

SAFE = binary("safe", 1.0, gate="required")
KIND, STYLE = binary("kind", 1.0), binary("style", 5.0)
TREE = Rubric([RubricGroup("safety", [SAFE, KIND], weight=5.0), STYLE])
SOURCED = Rubric([binary("source", 4.0), binary("dated", 6.0, when="source")])


def scores(rubric: Rubric, truth: dict[str, Any], **judges: dict[str, Any]) -> dict[str, float | None]:
    """Scores of the truth and of each judge; the first judge's answers are the panel's."""
    dataset = RubricDataset(rubric=rubric, items=[{"submission": "s", "ground_truth": truth}])
    first = next(iter(judges.values()))
    reports = [
        report(c, first.get(c.name or ""), {name: given.get(c.name or "") for name, given in judges.items()})
        for c in rubric
    ]
    table = read_votes(run(reports), dataset)
    found = {name: float(column[0]) for (_, name), column in table.scores.items()}
    return {name: None if value != value else value for name, value in found.items()}


def test_truth_and_judges_score_through_the_tree() -> None:
    """A gate that the truth misses caps the truth's group, one that a judge misses the judge's."""
    truth = {"safe": "UNMET", "kind": "MET", "style": "MET"}
    right = dict(truth)
    wrong = {"safe": "MET", "kind": "MET", "style": "MET"}
    assert scores(TREE, truth, right=right, wrong=wrong) == {
        "truth": 0.5,
        "right": 0.5,
        "wrong": 1.0,
        "panel": 0.5,
    }


def test_what_has_no_label_is_no_ground() -> None:
    """A gate without a label asks nothing; what depends on a criterion without one has no ground."""
    given = {"safe": "UNMET", "kind": "MET", "style": "UNMET"}
    assert scores(TREE, {"kind": "MET", "style": "UNMET"}, j=given)["j"] == 0.5
    found = scores(SOURCED, {"dated": "MET"}, j={"source": "MET", "dated": "MET"})
    assert found == {}
    chain = Rubric([*SOURCED, binary("precise", 2.0, when="dated"), binary("plain", 1.0)])
    answers = {"source": "MET", "dated": "MET", "precise": "UNMET", "plain": "MET"}
    truth = {"source": "MET", "precise": "UNMET", "plain": "MET"}
    assert scores(chain, truth, j=answers) == {"truth": 1.0, "j": 1.0, "panel": 1.0}


def test_a_label_left_open_on_a_gate_leaves_no_score_of_the_truth() -> None:
    """Whether the truth passes is not known."""
    truth = {"safe": "CANNOT_ASSESS", "kind": "MET", "style": "UNMET"}
    found = scores(TREE, truth, j={"safe": "MET", "kind": "MET", "style": "UNMET"})
    assert (found["truth"], found["j"]) == (None, 0.5)
    root = Rubric([SAFE, STYLE])
    assert scores(root, {"safe": "CANNOT_ASSESS", "style": "MET"}, j={"safe": "MET"})["truth"] is None


def test_conditions_hold_for_the_truth_too() -> None:
    """What does not apply by the labels is in no sum of the truth."""
    truth = {"source": "UNMET", "dated": "MET"}
    assert scores(SOURCED, truth, j={"source": "MET", "dated": "MET"})["truth"] == 0.0


def test_a_judge_that_was_not_asked_goes_by_the_panel() -> None:
    """A gate that another judge decided caps the score of this one."""
    both = {"safe": "UNMET", "style": "MET"}
    rubric = Rubric([SAFE, STYLE])
    reports = {"safe": report(SAFE, "UNMET", {"check": "UNMET"}), "style": report(STYLE, "MET", {"j": "MET"})}
    truth = {name: rubric.by_name(name).parse_truth(label) for name, label in both.items()}
    found = item_scores(ScoredItem(rubric.root, truth, reports))
    assert found == {TRUTH: 0.0, ("judge", "check"): 0.0, ("judge", "j"): 0.0, PANEL: 0.0}
    alone = item_scores(ScoredItem(rubric.root, truth, {"style": reports["style"]}))
    assert alone["judge", "j"] is None


def test_graded_criteria_take_their_places() -> None:
    """A tree is scored with the criteria as they were graded; those without a place stand in its root."""
    assert regroup(TREE.root, {"kind": KIND, "style": STYLE}) is TREE.root
    heavier, stray = binary("kind", 3.0), binary("stray")
    found = regroup(TREE.root, {"kind": heavier, "stray": stray})
    assert found.leaves == (SAFE, heavier, STYLE, stray)
    assert [(group.name, group.weight) for group in found.groups] == [("", 10.0), ("safety", 5.0)]


def _measured(rubric: Rubric, rows: list[str], truth: dict[str, Any], folder: Path) -> MetricsResult:
    path = folder / "votes.csv"
    path.write_text("\n".join(["item_id,criterion,rater,rater_type,value", *rows]) + "\n", encoding="utf-8")
    dataset = RubricDataset(rubric=rubric, items=[{"id": "i", "submission": "s", "ground_truth": truth}])
    result = evaluate_sync(
        dataset,
        CriterionGrader(judges=RecordedJudge.panel_from_csv(path)),
        show_progress=False,
        experiments_dir=folder,
    )
    return result.compute_metrics(dataset, per_judge=True)


def test_what_does_not_apply_leaves_the_figures(tmp_path: Path) -> None:
    """It is counted as not applicable, for the panel and for each judge, and is no answer."""
    rows = ["i,source,j,llm,UNMET", "i,dated,j,llm,MET"]
    found = _measured(SOURCED, rows, {"source": "UNMET", "dated": "UNMET"}, tmp_path)
    assert found.na_stats.not_applicable == 1
    assert found.criterion_accuracy == 1.0
    assert found.pooled.n == 1
    assert found.per_judge["j"].pooled.n == 1


def test_a_rubric_without_groups_measures_as_ever() -> None:
    """Reports made by hand score flat where the dataset's rubric is flat."""
    plain: list[BaseCriterion] = [Criterion(name="a", requirement="r"), choice("b")]
    dataset = labelled(plain, {"a": "MET", "b": "fair"})
    table = read_votes(
        run([report(c, label) for c, label in zip(plain, ["MET", "fair"], strict=True)]), dataset
    )
    assert table.scores[TRUTH][0] == pytest.approx(0.75)


@pytest.mark.parametrize("votes", ["hard", "soft"])
@pytest.mark.parametrize("strategy", list(CannotAssessStrategy))
def test_judges_score_under_the_policy_of_the_run(
    strategy: CannotAssessStrategy, votes: Literal["hard", "soft"], tmp_path: Path
) -> None:
    """If all criteria have labels, the scores of judges that disagree are those in the reports."""
    rows: list[tuple[str, dict[str, float]]] = [
        ("i,kind,a,MET", {"MET": 0.5, "UNMET": 0.2, "CANNOT_ASSESS": 0.3}),
        ("i,kind,b,CANNOT_ASSESS", {"UNMET": 0.4, "CANNOT_ASSESS": 0.6}),
        ("i,kind,c,MET", {"MET": 1.0}),
        ("i,style,a,MET", {"MET": 0.75, "UNMET": 0.25}),
        ("i,style,b,UNMET", {"MET": 0.25, "UNMET": 0.75}),
        ("i,style,c,CANNOT_ASSESS", {"MET": 0.125, "CANNOT_ASSESS": 0.875}),
    ]
    path = tmp_path / "votes.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [
                ["item_id", "criterion", "rater", "value", "probabilities"],
                *([*keys.split(","), json.dumps(shares)] for keys, shares in rows),
            ]
        )
    truth = {"kind": "MET", "style": "UNMET"}
    result = evaluate_sync(
        RubricDataset(
            rubric=Rubric([KIND, STYLE]), items=[{"id": "i", "submission": "s", "ground_truth": truth}]
        ),
        CriterionGrader(
            judges=RecordedJudge.panel_from_csv(path),
            votes=votes,
            cannot_assess_config=CannotAssessConfig(strategy=strategy),
        ),
        show_progress=False,
        experiments_dir=tmp_path,
    )
    report = result.item_results[0].report
    assert report is not None
    scores = read_votes(result, result.dataset).scores
    assert {name: scores["judge", name][0] for name in "abc"} == pytest.approx(report.judge_scores)
    assert scores[PANEL][0] == pytest.approx(report.score)
