"""The cascade: judges that cost little first, and a panel that costs more for what they are unsure of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from autorubric.errors import ArgumentError, ServerError
from autorubric.graders import CriterionGrader, EscalationConfig, GradingTask, JudgeSpec
from autorubric.judges import JudgeReply, JudgeRequest
from autorubric.rubric import Rubric
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Submission
from tests.doubles import TableJudge, binary

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
        ({"judges": [], "threshold": 0.5}, "at least one judge"),
        ({"judges": "gpt", "threshold": 0.5}, "give a list"),
        ({"judges": ["gpt"], "threshold": 1.5}, "threshold 1.5"),
        ({"judges": {"gpt"}, "threshold": 0.5}, "give a list"),
        ({"judges": ["gpt"], "threshold": "0.5"}, "threshold '0.5'"),
        ({"judges": ["gpt"], "threshold": 0.5, "per_criterion": {"a": -1}}, r"per_criterion\['a'\] -1"),
        ({"judges": ["gpt"], "threshold": 0.5, "per_criterion": {"a": None}}, r"per_criterion\['a'\] None"),
        ({"judges": ["gpt"], "threshold": 7.0, "per_criterion": {"threshold": 0.5}}, "threshold 7.0"),
        ({"judges": ["gpt"], "threshold": 0.5, "per_criterion": ["a"]}, "by name of criterion"),
    ],
)
def test_configs_that_cannot_work(fields: dict[str, Any], told: str) -> None:
    """They are told at once."""
    with pytest.raises(ArgumentError, match=told):
        EscalationConfig(**fields)


def test_the_same_judge_cannot_sit_in_both_panels() -> None:
    """Votes are told apart by the judge's id."""
    with pytest.raises(ArgumentError, match="several judges are called cheap"):
        cascade(strong=[TableJudge(NO, "cheap")])
