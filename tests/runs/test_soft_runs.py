"""Runs with probabilities: stored, read back, rescored and exported."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from autorubric import (
    CannotAssessConfig,
    CriterionGrader,
    DataItem,
    EvalResult,
    Rubric,
    RubricDataset,
    evaluate_sync,
)
from autorubric.criteria import ChecklistCriterion
from autorubric.errors import ArgumentError, DatasetError
from autorubric.judges import FunctionJudge, JudgeReply, JudgeRequest, RecordedJudge
from autorubric.metrics.core.read_votes import read_votes
from autorubric.scoring import JudgeVote
from tests.doubles import binary, choice

ZERO = CannotAssessConfig(strategy="zero")
RUBRIC = Rubric(
    [
        binary("claim", requirement="There is a claim."),
        choice("scale", na="n/a"),
        ChecklistCriterion(name="list", items={"title": "A title", "end": "An end"}),
    ]
)
TRUTH = {"claim": "MET", "scale": "fair", "list": {"title": True, "end": False}}
DATA = RubricDataset(
    name="texts",
    rubric=RUBRIC,
    items=[DataItem(id=f"i{at}", submission=f"text {at}", ground_truth=TRUTH) for at in range(12)],
)


def probabilities(request: JudgeRequest) -> JudgeReply:
    """A judge with other probabilities for each text and criterion."""
    rng = random.Random(f"{request.item_id} {request.criterion.name}")

    def draw(*labels: str) -> dict[str, float]:
        weights = [rng.random() for _ in labels]
        return {label: weight / sum(weights) for label, weight in zip(labels, weights, strict=True)}

    given: Any = {
        "claim": lambda: draw("UNMET", "MET", "CANNOT_ASSESS"),
        "scale": lambda: draw("poor", "fair", "good", "n/a"),
        "list": lambda: {key: draw("yes", "no") for key in ("title", "end")},
    }[request.criterion.name or ""]()
    return JudgeReply(
        answer=None, probabilities=given, probability_source="classifier", probability_backend="example"
    )


def run(folder: Path, **options: Any) -> EvalResult:
    grader = CriterionGrader(judges=[probabilities], **options)
    return evaluate_sync(
        DATA, grader, experiments_dir=folder, experiment_name="run", show_progress=False, resume=True
    )


def test_a_stored_run_gives_the_same_figures(tmp_path: Path) -> None:
    """Scores, decisions, votes and metrics of an opened run are those of the run itself."""
    result = run(tmp_path, votes="soft", thresholds={"claim": 0.4})
    opened = EvalResult.from_experiment(tmp_path / "run")
    assert opened.get_scores() == result.get_scores()
    for one, other in zip(result.item_results, opened.item_results, strict=True):
        assert one.report is not None
        assert other.report is not None
        assert one.report.to_dict() == other.report.to_dict()
    assert opened.compute_metrics().to_dict() == result.compute_metrics().to_dict()
    assert opened.fingerprint["aggregation"]["thresholds"] == {"claim": 0.4}


def test_rescoring_needs_no_call(tmp_path: Path) -> None:
    """Soft votes of a run with hard votes are those of a run with soft votes, and the reverse."""
    hard, soft = run(tmp_path / "a"), run(tmp_path / "b", votes="soft", thresholds={"claim": 0.4})
    assert hard.get_scores() != soft.get_scores()
    assert hard.rescore(votes="soft", thresholds={"claim": 0.4}).get_scores() == soft.get_scores()
    assert soft.rescore(votes="hard").get_scores() == hard.get_scores()
    again = run(tmp_path / "a", votes="soft", thresholds={"claim": 0.4})
    assert again.get_scores() == soft.get_scores()
    assert any("votes" in notice for notice in again.notices), again.notices


def test_scores_of_judges_follow_the_policy(tmp_path: Path) -> None:
    """Judges that are certain have the scores of hard votes, also where they abstain."""

    def certain(request: JudgeRequest) -> JudgeReply:
        if request.criterion.part_fields:
            return JudgeReply(answer=None)
        label = "CANNOT_ASSESS" if request.item_id < "i5" else str(request.criterion.answers()[0].label)
        return JudgeReply(answer=None, probabilities={label: 1.0})

    judges = [FunctionJudge(function=certain, judge_id=name) for name in "ab"]
    grader = CriterionGrader(judges=judges, votes="soft", cannot_assess_config=ZERO)
    soft = evaluate_sync(DATA, grader, experiments_dir=tmp_path, show_progress=False)
    opened = EvalResult.from_experiment(soft.experiment_dir)
    expected = read_votes(opened.rescore(votes="hard"), DATA).scores
    for found in (read_votes(soft, DATA).scores, read_votes(opened, DATA).scores):
        for rater, scores in expected.items():
            np.testing.assert_array_equal(found[rater], scores)


def test_the_votes_table_has_probabilities_and_expected_values(tmp_path: Path) -> None:
    """Of single votes, of parts, and of decisions; the label stays that of the verdict."""
    frame = run(tmp_path, votes="soft").votes_table()
    votes = frame[(frame["rater_kind"] == "judge") & frame["sample"].notna()]
    whole = votes["criterion"] == "list"
    assert votes[~whole]["probabilities"].map(lambda one: sum(one.values())).round(9).eq(1.0).all()
    assert votes[whole]["probabilities"].isna().all()
    panel = frame[(frame["rater_kind"] == "panel") & (frame["criterion"] == "claim")]
    for _, row in panel[panel["status"] == "answered"].iterrows():
        given = row["probabilities"]
        assert row["value"] == pytest.approx(given["MET"] / (given["MET"] + given["UNMET"]))
        assert row["label"] == max(given, key=given.get)
    parts = frame[(frame["rater_kind"] == "panel") & frame["criterion"].isin(["list/title", "list/end"])]
    means = parts.groupby("item")["value"].mean()
    lists = frame[(frame["rater_kind"] == "panel") & (frame["criterion"] == "list")].set_index("item")
    assert lists["value"].to_dict() == pytest.approx(means.to_dict())


def test_a_table_without_probabilities_has_no_such_column(tmp_path: Path) -> None:
    """Frames of other runs are as they were."""
    grader = CriterionGrader(judges=[lambda request: "MET" if request.criterion.name == "claim" else None])
    result = evaluate_sync(DATA, grader, experiments_dir=tmp_path, show_progress=False)
    assert "probabilities" not in result.votes_table()


def test_exports_contain_probabilities(tmp_path: Path) -> None:
    """As JSON objects, in each format."""
    result = run(tmp_path)
    votes = result.votes_table()
    lines = [json.loads(one) for one in result.export("jsonl", table="votes").splitlines()]
    is_vote = votes["sample"].notna() & votes["probabilities"].notna()
    assert votes[is_vote]["probability_origin"].eq("classifier, example").all() and is_vote.any()
    assert votes[~is_vote]["probability_origin"].isna().all()
    assert [one["probability_origin"] for one in lines] == votes["probability_origin"].replace(
        {np.nan: None}
    ).tolist()
    given = [one["probabilities"] for one in lines]
    assert given == [None if one is None else dict(one) for one in votes["probabilities"]]
    rows = csv.DictReader(io.StringIO(result.export("csv", table="votes").decode("utf-8-sig"), newline=""))
    assert [json.loads(row["probabilities"] or "null") for row in rows] == given
    read = pd.read_parquet(io.BytesIO(result.export("parquet", table="votes")))
    assert [json.loads(cell) for cell in read["probabilities"].fillna("null")] == given


def test_recorded_probabilities_are_the_votes_of_a_run(tmp_path: Path) -> None:
    """A column of JSON objects, or a column per answer; an empty value is the most probable answer."""
    head = "item_id,criterion,rater,value,probabilities,p0,p1\n"
    rows = [
        '"i0","claim","m","MET","{""MET"": 0.7, ""UNMET"": 0.3}",.3,.7',
        '"i1","claim","m","","{""MET"": 0.2, ""UNMET"": 0.8}",.8,.2',
        '"i2","claim","m","UNMET","",,',
    ]
    path = tmp_path / "votes.csv"
    path.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    data = RubricDataset(
        rubric=Rubric([RUBRIC[0]]), items=[DataItem(id=f"i{at}", submission=None) for at in range(3)]
    )
    for judge in (
        RecordedJudge.from_csv(path),
        RecordedJudge.from_csv(path, probabilities={"p0": "UNMET", "p1": "MET"}),
    ):
        grader = CriterionGrader(judges=[judge], votes="soft")
        result = evaluate_sync(data, grader, experiments_dir=tmp_path, show_progress=False)
        assert result.get_scores() == [0.7, 0.2, 0.0]
        assert [one.report.report[0].votes[0].answer for one in result.item_results if one.report] == [
            "MET",
            "UNMET",
            "UNMET",
        ]


def recorded(folder: Path, text: str, **options: Any) -> JudgeVote:
    """The vote of a judge recorded in a table, on the scale of one item."""
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    grader = CriterionGrader(judges=[RecordedJudge.from_csv(path, **options)], votes="soft")
    data = RubricDataset(rubric=Rubric([RUBRIC[1]]), items=[DataItem(id="a", submission=None)])
    result = evaluate_sync(data, grader, experiments_dir=folder, show_progress=False)
    (item,) = result.item_results
    assert item.report is not None
    return item.report.report[0].votes[0]


def test_labels_of_a_table_apply_to_probabilities(tmp_path: Path) -> None:
    """Values and keys are renamed alike; probabilities of categories that become one are added up."""
    text = 'item_id,criterion,rater,value,probabilities\na,scale,m,5,"{""1"": 0.1, ""4"": 0.2, ""5"": 0.7}"\n'
    cast = recorded(tmp_path, text, labels={"1": "poor", "4": "good", "5": "good"})
    assert (cast.answer, cast.probabilities) == ("good", {"poor": 0.1, "good": 0.9})


def test_columns_of_probabilities(tmp_path: Path) -> None:
    """A column of values is found by its usual names, and no mass is lost."""
    text = "item_id,criterion,rater,label,p1,p2,p3\na,scale,m,fair,.2,.3,.5\n"
    names = {"p1": "poor", "p2": "fair", "p3": "good"}
    assert recorded(tmp_path, text, probabilities=names).answer == "fair"
    assert recorded(tmp_path, text.replace(",label,", ",note,"), probabilities=names).answer == "good"
    with pytest.raises(DatasetError, match="label 'poor' for several columns"):
        recorded(tmp_path, text, probabilities={**names, "p2": "poor"})
    zeros = recorded(tmp_path, text.replace(".2,.3,.5", "0,0,0"), probabilities=names)
    assert zeros.status == "failed"
    assert "the sum is 0" in str(zeros.error)


def test_rescoring_checks_its_settings(tmp_path: Path) -> None:
    """As a grader does: a misspelt criterion or a method that does not average is an error."""
    result = run(tmp_path)
    with pytest.raises(ArgumentError, match="thresholds: unknown criterion 'clam'"):
        result.rescore(votes="soft", thresholds={"clam": 0.5})
    with pytest.raises(ArgumentError, match="'unanimous' does not combine probabilities"):
        result.rescore(votes="soft", aggregation="unanimous")
    with pytest.raises(ArgumentError, match=r"thresholds\.claim=2: "):
        result.rescore(votes="soft", thresholds={"claim": 2})
    with pytest.raises(ArgumentError, match=r"^thresholds and calibrations apply"):
        result.rescore(thresholds={"claim": 0.5})


def test_votes_that_were_not_asked_are_not_counted_as_certain(tmp_path: Path) -> None:
    """A table without a row for an item has no vote on it."""
    path = tmp_path / "table.csv"
    path.write_text("item_id,criterion,rater,value\ni0,claim,m,MET\n", encoding="utf-8")
    grader = CriterionGrader(judges=[RecordedJudge.from_csv(path)], votes="soft")
    result = evaluate_sync(DATA, grader, experiments_dir=tmp_path, show_progress=False)
    assert [one for one in result.notices if "certain" in one] == [
        "judge 'm': votes that have no probabilities and count as certain of their answers: 1"
    ]


def test_votes_without_probabilities_are_counted(tmp_path: Path) -> None:
    """The notices of a run say how many votes are certain only because they have no probabilities."""
    grader = CriterionGrader(judges=[probabilities, lambda request: None], votes="soft")
    result = evaluate_sync(DATA, grader, experiments_dir=tmp_path, show_progress=False)
    assert [one for one in result.notices if "certain" in one] == [
        "judge '<lambda>': votes that have no probabilities and count as certain of their answers: 36"
    ]


def test_a_run_that_skipped_votes_is_not_rescored_softly(tmp_path: Path) -> None:
    """The skipped votes would count as if they did not exist."""
    grader = CriterionGrader(judges=[probabilities], stop_when_decided=True)
    result = evaluate_sync(DATA, grader, experiments_dir=tmp_path, show_progress=False)
    with pytest.raises(ArgumentError, match="without stop_when_decided"):
        result.rescore(votes="soft")


def test_the_change_to_soft_votes_is_described(tmp_path: Path) -> None:
    """Hard votes have no entry in the manifest, but a description names them."""
    run(tmp_path)
    (notice,) = [one for one in run(tmp_path, votes="soft").notices if "votes" in one]
    assert "votes 'hard' → 'soft'" in notice
    assert "None" not in notice
