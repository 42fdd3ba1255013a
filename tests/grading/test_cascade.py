"""The cascade: judges that cost little first, and a panel that costs more for what they are unsure of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autorubric import (
    DataItem,
    EvalRunner,
    LLMConfig,
    RubricDataset,
    estimate,
    evaluate_sync,
    fill_ground_truth_sync,
)
from autorubric.apps.redteam import red_team_sync
from autorubric.apps.strategy import RubricThreshold
from autorubric.criteria import Submission
from autorubric.demo import demo_dataset
from autorubric.errors import ArgumentError, ServerError
from autorubric.grading import CriterionGrader, EscalationConfig, GradingTask
from autorubric.judges import JudgeReply, JudgeRequest, JudgeSpec, SupervisedJudge
from autorubric.rubric import Rubric
from autorubric.runs import run_shard
from autorubric.scoring import EnsembleEvaluationReport
from tests.doubles import TableJudge, binary
from tests.servers.fixtures import OpenAIServer

RUBRIC = Rubric([binary("sure"), binary("unsure")])
CHEAP = {"sure": JudgeReply(answer="MET", confidence=0.9), "unsure": JudgeReply(answer="MET", confidence=0.6)}
NO = {"sure": "UNMET", "unsure": "UNMET"}


def cascade(cheap: Any = CHEAP, strong: Any = NO, threshold: float = 0.8, **fields: Any) -> CriterionGrader:
    """A cheap judge before a strong one that says no to everything."""
    judge = cheap if not isinstance(cheap, dict) else TableJudge(cheap, "cheap")
    panel = strong if isinstance(strong, list) else [TableJudge(strong, "strong")]
    escalation = EscalationConfig(panel, threshold, per_criterion=fields.pop("per_criterion", {}))
    return CriterionGrader(judges=[judge], escalation=escalation, **fields)


def graded(grader: CriterionGrader) -> EnsembleEvaluationReport:
    return RUBRIC.grade_sync("A text.", grader)


def test_the_strong_panel_decides_what_the_cheap_judge_is_unsure_of() -> None:
    """Both votes are there, the report says which criteria went up, and their decision is the panel's."""
    report = graded(cascade())
    assert report.escalated == ("unsure",)
    assert [one.final_answer for one in report.report] == ["MET", "UNMET"]
    assert [one.confidence for one in report.report] == [0.9, 0.6]
    assert [[(v.judge_id, v.answer, v.skipped) for v in one.votes] for one in report.report] == [
        [("cheap", "MET", False), ("strong", None, True)],
        [("cheap", "MET", False), ("strong", "UNMET", False)],
    ]
    assert report.calls_saved == 1


@pytest.mark.parametrize(
    ("threshold", "per_criterion", "escalated"),
    [
        (0.5, {}, ()),
        (0.6, {}, ()),
        (0.61, {}, ("unsure",)),
        (1.0, {}, ("sure", "unsure")),
        (0.5, {"sure": 0.95}, ("sure",)),
        (1.0, {"sure": 0.5}, ("unsure",)),
    ],
)
def test_thresholds(threshold: float, per_criterion: dict[str, float], escalated: tuple[str, ...]) -> None:
    """Below the criterion's own threshold, or else the common one."""
    assert graded(cascade(threshold=threshold, per_criterion=per_criterion)).escalated == escalated


@pytest.mark.parametrize(
    "said", ["MET", None, ServerError("down")], ids=["no confidence", "abstained", "failed"]
)
def test_what_cannot_be_trusted_goes_up(said: Any) -> None:
    """No confidence, no answer and no reply are all unsure, whatever the threshold."""
    assert graded(cascade({"sure": said, "unsure": said}, threshold=0.0)).escalated == ("sure", "unsure")


def test_samples_that_agree_are_a_confidence() -> None:
    """Three samples of one judge: all alike, or two of three."""
    said = {("sure", s): "MET" for s in range(3)} | {
        ("unsure", 0): "MET",
        ("unsure", 1): "MET",
        ("unsure", 2): "UNMET",
    }
    report = graded(cascade(JudgeSpec(TableJudge(said, "cheap"), samples=3), threshold=0.8))
    assert [one.confidence for one in report.report] == [1.0, pytest.approx(2 / 3)]
    assert report.escalated == ("unsure",)


def test_a_trained_classifier_grades_first() -> None:
    """What it gives less than the threshold goes up, criterion by criterion, and nothing else does."""
    names = ("apology", "concrete_action")
    rubric = Rubric([demo_dataset().get_item_rubric(0).by_name(name) for name in names])
    items = [
        item.model_copy(update={"ground_truth": {name: item_truth[name] for name in names}})
        for item in demo_dataset().items
        if isinstance(item_truth := item.ground_truth, dict)
    ]
    train = RubricDataset(rubric=rubric, items=items[:40])
    strong = Panelist("strong", "MET")
    grader = CriterionGrader(
        judges=[SupervisedJudge.fit(train)], escalation=EscalationConfig([strong], threshold=0.8)
    )
    escalated = 0
    for item in items[40:48]:
        report = rubric.grade_sync(item.submission, grader)
        for one in report.report:
            cheap, dear = one.votes
            assert cheap.confidence is not None
            assert (one.name in report.escalated) == (cheap.confidence < 0.8) == (not dear.skipped)
            assert one.final_answer == (cheap if dear.skipped else dear).answer
        escalated += len(report.escalated)
    assert 0 < escalated == len(strong.asked) < 8 * len(rubric)


def test_probabilities_of_tokens_are_a_confidence(openai_server: OpenAIServer) -> None:
    """A model whose verdict was one of several likely ones is not sure, whatever its reason was."""
    rubric = Rubric([binary("clear"), binary("vague")])
    for name, logprob in (("clear", -0.05), ("vague", -0.7)):
        reason = ('{"reason": "It says so.", "verdict":', -9.0)
        tokens = [reason, (' "', 0.0), ("MET", logprob), ('"}', 0.0)]
        content = [{"token": text, "logprob": one, "top_logprobs": []} for text, one in tokens]
        text = "".join(text for text, _ in tokens)
        step = {"do": "answer", "content": text, "logprobs": {"content": content}}
        openai_server.script(step, contains=f"{name}: ", repeat="last")
    cheap = LLMConfig(
        model="openai/m", api_base=openai_server.api_base, extra_params={"logprobs": True}, max_retries=0
    )
    report = rubric.grade_sync("A text.", cascade(cheap, {"vague": "UNMET"}))
    assert report.escalated == ("vague",)
    assert [round(one.confidence or 0, 2) for one in report.report] == [0.95, 0.5]
    assert [one.final_answer for one in report.report] == ["MET", "UNMET"]


def test_the_panels_failure_is_not_papered_over() -> None:
    """Where the strong judge has no reply, the criterion has none: the cheap answer was not good enough."""
    report = graded(cascade(strong={"unsure": ServerError("down")}))
    assert report.report[1].status == "failed"
    assert "strong: ServerError" in (report.report[1].error or "")


def test_checks_do_not_escalate() -> None:
    """A function of the text is sure of itself."""
    rubric = Rubric([binary("short", check=lambda text: len(text) < 100)])
    report = rubric.grade_sync("A text.", cascade())
    assert report.escalated == ()
    assert [vote.judge_id for vote in report.report[0].votes] == ["check"]


@dataclass
class Panelist:
    judge_id: str
    answer: str
    asked: list[str] = field(default_factory=list)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request.criterion.name or "")
        return JudgeReply(answer=self.answer)


def test_early_stopping_within_the_strong_panel() -> None:
    """Two strong judges that agree make the third superfluous."""
    strong: list[Any] = [Panelist(name, "UNMET") for name in "xyz"]
    report = graded(cascade(strong=strong, stop_when_decided=True))
    assert [judge.asked for judge in strong] == [["unsure"], ["unsure"], []]
    assert report.calls_saved == 1 + 3


def test_the_first_panel_is_asked_in_full() -> None:
    """Votes that could not change its verdict say how sure it is of that, and so whether to escalate."""
    first: list[Any] = [Panelist("a", "MET"), Panelist("b", "MET"), Panelist("c", "UNMET")]
    escalation = EscalationConfig([Panelist("strong", "UNMET")], threshold=0.8)
    report = graded(CriterionGrader(judges=first, escalation=escalation, stop_when_decided=True))
    assert [judge.asked for judge in first] == [["sure", "unsure"]] * 3
    assert report.escalated == ("sure", "unsure")


def test_going_on_with_other_thresholds_asks_only_what_is_new() -> None:
    """Stored votes of both stages are kept; a stored strong vote counts only where it is wanted."""
    task = GradingTask(submission=Submission.parse("A text."), rubric=RUBRIC)
    votes = asyncio.run(cascade(threshold=1.0).judge(task))
    assert sum(vote.skipped for cast in votes.values() for vote in cast) == 0
    low = cascade({}, {}, threshold=0.5)
    kept = asyncio.run(low.judge(task, stored=votes))
    assert kept == votes
    assert low.aggregate(task, kept).escalated == ()
    assert low.aggregate(task, kept).report[0].final_answer == "MET"


def test_a_manifest_says_who_is_asked_and_when() -> None:
    """Both panels ask; the thresholds decide."""
    described = cascade(per_criterion={"sure": 0.95}).describe()
    assert list(described.asking["judges"]) == ["cheap", "strong"]
    assert described.deciding["escalation"] == {
        "judges": ["strong"],
        "threshold": 0.8,
        "per_criterion": {"sure": 0.95},
    }


def test_reports_survive_the_way_through_json() -> None:
    """What was escalated is in the stored report."""
    report = graded(cascade())
    assert EnsembleEvaluationReport.from_dict(report.to_dict()).escalated == ("unsure",)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"judges": [], "threshold": 0.5}, "non-empty list"),
        ({"judges": "gpt", "threshold": 0.5}, "judges must be a non-empty list"),
        ({"judges": ["gpt"], "threshold": 1.5}, "threshold must be .* got 1.5"),
        ({"judges": {"gpt"}, "threshold": 0.5}, "judges must be a non-empty list"),
        ({"judges": ["gpt"], "threshold": "0.5"}, "threshold must be .* got '0.5'"),
        (
            {"judges": ["gpt"], "threshold": 0.5, "per_criterion": {"a": -1}},
            r"per_criterion\['a'\] must be .* got -1",
        ),
        (
            {"judges": ["gpt"], "threshold": 0.5, "per_criterion": {"a": None}},
            r"per_criterion\['a'\] must be .* got None",
        ),
        (
            {"judges": ["gpt"], "threshold": 7.0, "per_criterion": {"threshold": 0.5}},
            "threshold must be .* got 7.0",
        ),
        ({"judges": ["gpt"], "threshold": 0.5, "per_criterion": ["a"]}, "must map names to thresholds"),
    ],
)
def test_configs_that_cannot_work(fields: dict[str, Any], told: str) -> None:
    """They are told at once."""
    with pytest.raises(ArgumentError, match=told):
        EscalationConfig(**fields)


MISSPELT = {"sure": 0.5, "unsrue": 0.5, "other": 0.5}
TOLD = "unknown criterion 'unsrue', 'other'; available: 'sure', 'unsure'"


def test_a_misspelt_criterion_is_told_before_anybody_is_asked() -> None:
    """The names that are wrong, and those that there are."""
    judge = Panelist("cheap", "MET")
    with pytest.raises(ArgumentError, match=TOLD):
        graded(cascade(judge, per_criterion=MISSPELT))
    assert judge.asked == []


@pytest.mark.parametrize(
    "begin", [EvalRunner, estimate, fill_ground_truth_sync, red_team_sync, lambda d, g: run_shard(d, g, 0, 1)]
)
def test_whatever_grades_a_dataset_tells_a_misspelt_criterion_first(
    begin: Callable[[RubricDataset, CriterionGrader], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run, an estimate, labels, attacks and a shard: nobody is asked and nothing written."""
    monkeypatch.chdir(tmp_path)
    judge = Panelist("cheap", "MET")
    dataset = RubricDataset(rubric=RUBRIC, items=[DataItem(submission="A text.")])
    with pytest.raises(ArgumentError, match=TOLD):
        begin(dataset, cascade(judge, per_criterion=MISSPELT))
    assert judge.asked == []
    assert not list(tmp_path.iterdir())


def test_a_strategy_tells_a_misspelt_criterion_at_once() -> None:
    """Before there is a candidate."""
    with pytest.raises(ArgumentError, match=TOLD):
        RubricThreshold(RUBRIC, cascade(per_criterion=MISSPELT), min_score=0.5)


@pytest.mark.parametrize("streamed", [False, True])
def test_criteria_of_single_items_have_thresholds_too(streamed: bool, tmp_path: Path) -> None:
    """A name need only be in one of the rubrics, and so in the whole dataset and not in each shard."""
    own = DataItem(id="own", submission="A text.", rubric=Rubric([binary("unsure")]))
    shared = DataItem(id="shared", submission="Another.")
    dataset = RubricDataset(rubric=Rubric([binary("sure")]), items=[shared, own])
    if streamed:
        dataset.to_file(tmp_path / "items.jsonl")
        dataset = RubricDataset.stream(tmp_path / "items.jsonl")
    grader = cascade(threshold=0.5, per_criterion={"unsure": 0.7})
    options: dict[str, Any] = {"experiments_dir": tmp_path / "runs", "show_progress": False}
    reports = evaluate_sync(dataset, grader, experiment_name="all", **options).get_reports()
    assert [report.escalated for report in reports if report] == [(), ("unsure",)]
    for shard in range(2):
        assert run_shard(dataset, grader, shard, 2, **options).total_items == 1
    with pytest.raises(ArgumentError, match="unknown criterion 'unsrue'; available: 'sure', 'unsure'"):
        EvalRunner(dataset, cascade(per_criterion={"unsrue": 0.7, "unsure": 0.7}))


def test_only_some_of_many_criteria_are_listed() -> None:
    """The message stays short."""
    many = Rubric([binary(f"c{number}") for number in range(30)])
    with pytest.raises(ArgumentError, match=r"criterion 'x'; available: 'c0', .*'c19' and 10 more$"):
        many.grade_sync("A text.", cascade(per_criterion={"x": 0.5}))


def test_the_same_judge_cannot_sit_in_both_panels() -> None:
    """Votes are told apart by the judge's id."""
    with pytest.raises(ArgumentError, match="must be unique; repeated: cheap"):
        cascade(strong=[TableJudge(NO, "cheap")])
