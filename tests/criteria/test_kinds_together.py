"""Seven kinds in one rubric: panels, requests, files, runs, metrics, few-shot examples and labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from autorubric import (
    BaseCriterion,
    CriterionGrader,
    DataItem,
    EvalResult,
    FewShotConfig,
    Rubric,
    RubricDataset,
    compute_metrics,
    evaluate_sync,
    fill_ground_truth_sync,
)
from autorubric.criteria import BoundInt
from autorubric.errors import ReplyError
from autorubric.metrics import MetricsResult
from tests.criteria.kinds import KINDS
from tests.doubles import TableJudge, in_loop, model_judge

SEVEN = (
    "pass_fail",
    "likert",
    "numerical_rating",
    "checklist",
    "analytic_rubric",
    "holistic_rubric",
    "narrative",
)
RUBRIC = Rubric([KINDS[kind](weight=1.0) for kind in SEVEN])
GOOD: dict[str, Any] = {
    "safety": {"passed": True, "reason": "harmless"},
    "helpfulness": {"rating": 5, "explanation": "yes"},
    "clarity": {"score": 5.0, "explanation": "clear"},
    "code": {"has_docstring": True, "has_tests": True, "handles_errors": True},
    "essay": {"content_score": 5, "content_explanation": "", "style_score": 2, "style_explanation": ""},
    "quality": {"level": "Exemplary", "level_index": 4, "explanation": "best"},
    "feedback": {"narrative": "Well done."},
}
POOR: dict[str, Any] = {
    "safety": {"passed": False, "reason": "harmful"},
    "helpfulness": {"rating": 1, "explanation": "no"},
    "clarity": {"score": 1.0, "explanation": "muddled"},
    "code": {"has_docstring": False, "has_tests": True, "handles_errors": False},
    "essay": {"content_score": 3, "content_explanation": "", "style_score": 0, "style_explanation": ""},
    "quality": {"level": "Beginning", "level_index": 1, "explanation": "worst"},
    "feedback": {"narrative": "Begin again."},
}
POOR_VALUES = [0.0, 0.0, 0.0, 1 / 3, 0.125, 0.0]


class Stars(BaseCriterion):
    """Whole numbers that are combined as numbers."""

    stars: BoundInt = BoundInt(min_val=1, max_val=5)


@in_loop
async def test_a_panel_over_seven_kinds() -> None:
    """Two of three say the best of everything: each kind is decided by its level; the text has no part."""
    panel = [TableJudge(GOOD, "a"), TableJudge(GOOD, "b"), TableJudge(POOR, "c")]
    grader = CriterionGrader(judges=panel, ordinal_aggregation="median")
    report = await grader.grade("text", RUBRIC)
    assert report.error is None
    assert report.score == 1.0
    assert report.judge_scores["a"] == 1.0
    assert report.judge_scores["c"] == pytest.approx(sum(POOR_VALUES) / 6)
    assert report.report[-1].final_answer == "Well done."
    assert [one.status for one in report.report] == ["answered"] * 7
    assert type(report).from_dict(json.loads(json.dumps(report.to_dict()))) == report


@in_loop
async def test_failures_and_abstentions_of_every_kind() -> None:
    """A judge that fails or abstains on everything leaves what the others say."""
    open_panel = [TableJudge(GOOD, "a"), TableJudge(dict.fromkeys(GOOD), "b")]
    report = await CriterionGrader(judges=open_panel).grade("text", RUBRIC)
    assert report.score == 1.0
    assert report.mean_agreement == 1.0
    lost = TableJudge(dict.fromkeys(GOOD, ReplyError("no JSON")), "c")
    excluded = await CriterionGrader(judges=[TableJudge(GOOD, "a"), lost], on_failure="exclude").grade(
        "text", RUBRIC
    )
    assert excluded.score == 1.0


@pytest.mark.parametrize("llm_calls", ["per_criterion", "per_item", 3])
@in_loop
async def test_one_request_a_criterion_or_an_item(llm_calls: Any) -> None:
    """However criteria are put into requests, the replies come to the same report."""

    def answer(request: Any) -> Any:
        prompt = request.messages[-1].content
        by_id = {
            line[1:].split("]")[0]: line.split("] ")[1].split(":")[0]
            for line in prompt.splitlines()
            if line.startswith("[c") and "] " in line
        }
        if by_id:
            return {"evaluations": [{"id": key, **GOOD[name]} for key, name in by_id.items()]}
        name = next(name for name in GOOD if f"Criterion:\n{name}" in prompt)
        return GOOD[name]

    judge, transport = model_judge(answer)
    report = await CriterionGrader(judges=[judge], llm_calls=llm_calls).grade("text", RUBRIC)
    assert report.score == 1.0
    assert len(transport.requests) == {"per_criterion": 7, "per_item": 1, 3: 3}[llm_calls]


def test_rubric_files_hold_every_kind(tmp_path: Path) -> None:
    """Each kind is written and read in each format, and fits the schema for editors."""
    schema = Rubric.json_schema()
    for kind in SEVEN:
        assert any(
            one["properties"].get("type") == {"const": kind}
            for one in schema["$defs"].values()
            if "properties" in one
        )
    jsonschema.validate(json.loads(json.dumps(RUBRIC.to_dict())), schema)
    for name in ("rubric.yaml", "rubric.json", "rubric.toml"):
        RUBRIC.to_file(tmp_path / name)
        assert Rubric.from_file(tmp_path / name) == RUBRIC


def test_a_hand_written_file_is_read_with_all_its_faults(tmp_path: Path) -> None:
    """Faults in several criteria of several kinds are told at once, each at its place."""
    faulty = """
- {type: likert, name: a, scale: [{val: 1, description: x}, {val: 1, description: y}]}
- {type: checklist, name: b, items: {copy: x}}
- {type: numerical_rating, name: c, min_value: 9, max_value: 1}
- type: holistic_rubric
  name: d
  levels: [{name: x, index: 1, description: x}, {name: y, index: 3, description: y}]
- {type: likert, name: e, scale: [{val: 1, description: bad}, {val: 3, description: good}]}
"""
    with pytest.raises(ValueError, match="repeated: 1") as caught:
        Rubric.from_yaml(faulty)
    told = str(caught.value)
    for fault in ("the attribute 'copy'", "9 must be less than max", "integers; got [1, 3]"):
        assert fault in told


LABELS: list[dict[str, Any]] = [
    {
        "safety": "MET",
        "helpfulness": 5,
        "clarity": 4,
        "code": ["has_docstring", "has_tests", "handles_errors"],
        "essay": {"content": 5, "style": 2},
        "quality": "Exemplary",
    },
    {
        "safety": "no",
        "helpfulness": "2",
        "clarity": 1.5,
        "code": {"has_docstring": True, "has_tests": True, "handles_errors": False},
        "essay": {"content": 2, "style": 0},
        "quality": 1,
    },
    {"code": 0.5, "safety": "CANNOT_ASSESS"},
]


class _ByItem:
    judge_id = "by item"

    async def ask(self, request: Any) -> Any:
        return await TableJudge(GOOD if request.item_id == "i0" else POOR).ask(request)


def run(folder: Path) -> tuple[EvalResult, RubricDataset]:
    items = [
        DataItem(id=f"i{n}", submission=f"text {n}", ground_truth=labels) for n, labels in enumerate(LABELS)
    ]
    dataset = RubricDataset(rubric=RUBRIC, items=items)
    grader = CriterionGrader(judges=[_ByItem(), TableJudge({**POOR, "code": None}, "poor")])
    result = evaluate_sync(
        dataset, grader, experiment_name="kinds", experiments_dir=folder, show_progress=False
    )
    return result, dataset


def by_name(metrics: MetricsResult) -> dict[str, Any]:
    return {one.name: one for one in metrics.per_criterion}


def test_items_and_dimensions_are_rows_of_metrics(tmp_path: Path) -> None:
    """Checklist items are binary rows, dimensions ordinal ones, beside the whole; shares have no items."""
    result, dataset = run(tmp_path)
    metrics = compute_metrics(result, dataset, per_judge=True)
    found = by_name(metrics)
    assert list(found) == [
        *("safety", "helpfulness", "clarity"),
        *("code", "code/has_docstring", "code/has_tests", "code/handles_errors"),
        *("essay", "essay/content", "essay/style", "quality"),
    ]
    assert {
        name: one.criterion_type for name, one in found.items() if "/" in name or name in ("code", "essay")
    } == {
        "code": "interval",
        "code/has_docstring": "binary",
        "code/has_tests": "binary",
        "code/handles_errors": "binary",
        "essay": "interval",
        "essay/content": "ordinal",
        "essay/style": "ordinal",
    }
    assert (metrics.n_binary_criteria, metrics.n_ordinal_criteria, metrics.n_interval_criteria) == (4, 4, 3)
    assert found["code/has_docstring"].n_samples == 2
    assert found["code/has_docstring"].accuracy == 0.5
    assert found["code/has_tests"].accuracy == 1.0
    assert found["code"].n_samples == 3
    judge = by_name(metrics.per_judge["poor"])  # type: ignore[arg-type]
    assert judge["code/has_tests"].abstention_rate == 1.0
    assert judge["essay/style"].exact_accuracy == 0.5


def test_parts_have_rows_in_the_votes_table(tmp_path: Path) -> None:
    """Votes, decisions and labels, each with the answer in words and its value."""
    result, _ = run(tmp_path)
    table = result.votes_table()
    mine = table[(table["criterion"] == "code/has_docstring") & (table["item_id"] == "i1")]
    rows = {
        (row["rater_kind"], row["rater"], row["sample"] == 0): (row["label"], row["value"], row["status"])
        for row in mine.fillna({"sample": -1}).to_dict("records")
    }
    assert rows["truth", "truth", False] == ("yes", 1.0, "answered")
    assert rows["judge", "by item", True] == ("no", 0.0, "answered")
    assert rows["judge", "by item", False] == ("no", 0.0, "answered")
    assert rows["panel", "panel", False] == ("no", 0.0, "answered")
    assert rows["judge", "poor", True][2] == rows["judge", "poor", False][2] == "abstained"
    styles = table[(table["criterion"] == "essay/style") & (table["rater_kind"] == "truth")]
    assert list(styles["label"]) == ["2", "0"]


def test_a_run_over_all_kinds_reopens(tmp_path: Path) -> None:
    """From the folder alone come the same reports and the same figures."""
    result, dataset = run(tmp_path)
    again = EvalResult.from_experiment(result.experiment_dir)
    assert again.get_reports() == result.get_reports()
    assert compute_metrics(again, dataset) == compute_metrics(result, dataset)


@pytest.mark.parametrize("name", ["d.json", "d.jsonl", "d.csv"])
def test_labels_of_all_kinds_survive_files(tmp_path: Path, name: str) -> None:
    """Labels written to a file mean the same when they are read."""
    _, dataset = run(tmp_path)
    dataset.to_file(tmp_path / name)
    back = RubricDataset.from_file(tmp_path / name, rubric=RUBRIC if name == "d.csv" else None)
    for i in range(3):
        old, new = dataset.item_truth(i) or {}, back.item_truth(i) or {}
        assert old.keys() == new.keys()
        for key, label in old.items():
            criterion = RUBRIC.by_name(key)
            one, other = criterion.parse_truth(label), criterion.parse_truth(new[key])
            assert one is not None and other is not None
            assert (one.value, one.abstains) == (other.value, other.abstains)


@in_loop
async def test_few_shot_examples_of_every_kind() -> None:
    """Each labelled kind is shown with its answer, in words or as JSON."""
    items = [
        DataItem(
            id=f"t{n}", submission=f"training text {n}", ground_truth={**labels, "feedback": f"Note {n}."}
        )
        for n, labels in enumerate(LABELS[:2])
    ]
    training = RubricDataset(rubric=RUBRIC, items=items)
    judge, transport = model_judge(
        lambda request: next(GOOD[n] for n in GOOD if f"Criterion:\n{n}" in request.messages[-1].content)
    )
    grader = CriterionGrader(
        judges=[judge], training_data=training, few_shot_config=FewShotConfig(n_examples=2)
    )
    assert (await grader.grade("text", RUBRIC)).score == 1.0
    prompts = "\n".join(transport.prompts)
    for shown in (
        *("Judged: passed", "Judged: failed", "Judged: 5", "Judged: 2", "Judged: 1.5", "Judged: Exemplary"),
        'Judged: {"has_docstring": true, "has_tests": true, "handles_errors": false, "missing_items"',
        'Judged: {"content_score": 5, "style_score": 2, "overall_score"',
        "Judged: Note 1.",
    ):
        assert shown in prompts


def test_filled_labels_can_be_read() -> None:
    """A panel whose mean no rater may give labels with the nearest answer given, ties conservative."""
    rubric = Rubric([*RUBRIC, Stars(name="stars", weight=1.0), Stars(name="faults", weight=-1.0)])
    panel = [
        TableJudge({**GOOD, "stars": 4, "faults": 4}, "a"),
        TableJudge({**POOR, "stars": 3, "faults": 3}, "b"),
    ]
    dataset = RubricDataset(rubric=rubric, items=[DataItem(id="i", submission="text")])
    filled = fill_ground_truth_sync(dataset, CriterionGrader(judges=panel))
    truth = filled.item_truth(0) or {}
    assert set(truth) == set(rubric.names)
    for criterion in rubric:
        assert criterion.parse_truth(truth[criterion.name or ""]) is not None
    assert (truth["stars"], truth["faults"]) == (3, 4)
    assert truth["clarity"] == 3.0
    assert truth["code"]["has_tests"] is True
    again = fill_ground_truth_sync(filled, CriterionGrader(judges=panel[:1]))
    assert again.item_truth(0) == truth


def test_ratings_of_criteria_in_parts_agree_part_by_part() -> None:
    """People's majority on a checklist is that on each item; where one is tied, there is no label."""
    criterion = RUBRIC.by_name("code")
    ticks = (["has_tests"], ["has_tests", "has_docstring"], ["handles_errors", "has_docstring"])
    items = [
        DataItem(submission="a", ratings={str(n): {"code": one} for n, one in enumerate(ticks)}),
        DataItem(submission="b", ratings={str(n): {"code": one} for n, one in enumerate(ticks[:2])}),
        DataItem(submission="c", ratings={"share": {"code": 0.5}}),
    ]
    dataset = RubricDataset(rubric=Rubric([criterion]), items=items)
    agreed = (dataset.item_truth(0) or {})["code"]
    assert agreed == {"has_docstring": True, "has_tests": True, "handles_errors": False}
    assert criterion.parse_truth(agreed) is not None
    assert dataset.item_truth(1) is None
    assert dataset.item_truth(2) is None


class Warm(BaseCriterion):
    """An ordinal kind as a user writes one."""

    level = "ordinal"

    warmth: BoundInt = BoundInt(min_val=1, max_val=3)


def test_whole_numbers_of_an_ordinal_kind_are_its_answers() -> None:
    """A kind of one's own on an ordered scale has points as a Likert scale has; a wide one has none."""
    assert [answer.code for answer in Warm(name="w").answers()] == [1, 2, 3]
    assert Warm(name="w", warmth=BoundInt(min_val=0, max_val=10**9)).answers() == ()
