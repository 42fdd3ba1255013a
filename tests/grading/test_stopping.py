"""Early stopping: fewer calls, the same verdicts; asked in rounds, left out votes told and stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric.criteria import BaseCriterion, Submission
from autorubric.errors import BudgetError, JudgeError, ReplyError, ServerError
from autorubric.grading import CriterionGrader, GradingTask
from autorubric.judges import JudgeReply, JudgeRequest, JudgeSpec
from autorubric.rubric import Rubric
from autorubric.scoring import EnsembleEvaluationReport, JudgeVote
from autorubric.scoring.aggregation import AGGREGATORS
from autorubric.scoring.votes import VoteCast
from tests.criteria.kinds import NOMINAL
from tests.doubles import TableJudge, binary, choice, in_loop

UNREADABLE, DOWN = ReplyError("no JSON"), ServerError("down")


@dataclass
class Timed:
    """Answers from a table after a turn of the loop, and keeps the order in which all were asked."""

    judge_id: str
    answers: dict[Any, Any]
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append((self.judge_id, request.criterion.name))
        await asyncio.sleep(0)
        found = self.answers.get(
            (request.criterion.name, request.sample), self.answers.get(request.criterion.name)
        )
        if isinstance(found, Exception):
            raise found
        return JudgeReply(answer=found)


def panel(*answers: Any, name: str = "a", order: list[tuple[str, str | None]] | None = None) -> list[Timed]:
    """Judges `j0`, `j1`, … with these answers to one criterion."""
    asked = [] if order is None else order
    return [Timed(f"j{i}", {name: answer}, asked) for i, answer in enumerate(answers)]


def grade(judges: Sequence[Any], rubric: Rubric, **options: Any) -> EnsembleEvaluationReport:
    return rubric.grade_sync("A text.", CriterionGrader(judges=judges, **options))


def test_two_of_three_that_agree_are_enough() -> None:
    """The third is not asked, is reported as such, and is one call saved."""
    order: list[Any] = []
    report = grade(panel("MET", "MET", "UNMET", order=order), Rubric([binary("a")]), stop_when_decided=True)
    assert [judge for judge, _ in order] == ["j0", "j1"]
    assert [(v.status, v.skipped) for v in report.report[0].votes] == [
        ("answered", False),
        ("answered", False),
        ("not_asked", True),
    ]
    assert report.score == 1.0
    assert report.calls_saved == 1
    assert (report.verdicts.asked, report.verdicts.lost) == (2, 0)
    assert report.judge_scores["j2"] is None


def test_disagreement_goes_into_a_second_round() -> None:
    """One of each, so the third decides."""
    report = grade(panel("MET", "UNMET", "MET"), Rubric([binary("a")]), stop_when_decided=True)
    assert report.calls_saved == 0
    assert report.score == 1.0


def test_heavy_judges_go_first_where_weights_count() -> None:
    """A judge that outweighs the rest is asked alone."""
    order: list[Any] = []
    judges = panel("UNMET", "UNMET", "MET", order=order)
    members = [JudgeSpec(judge, weight=weight) for judge, weight in zip(judges, (1.0, 1.0, 5.0), strict=True)]
    report = grade(members, Rubric([binary("a")]), aggregation="weighted", stop_when_decided=True)
    assert [judge for judge, _ in order] == ["j2"]
    assert report.score == 1.0
    assert report.calls_saved == 2


def test_means_ask_everyone() -> None:
    """Where no vote can be spared, none is."""
    judges = panel("good", "good", "good", name="scale")
    assert grade(judges, Rubric([choice()]), stop_when_decided=True).calls_saved == 0


def test_criteria_do_not_wait_for_each_other() -> None:
    """Each criterion goes through its rounds by itself; with shared requests they go together."""
    answers = {"a": "MET", "b": "UNMET"}
    for llm_calls in ("per_criterion", "per_item"):
        other = {"a": "MET", "b": "MET"}
        judges = [Timed("x", answers), Timed("y", other), Timed("z", answers)]
        report = grade(
            judges, Rubric([binary("a"), binary("b")]), llm_calls=llm_calls, stop_when_decided=True
        )
        assert report.calls_saved == 1
        assert [one.final_answer for one in report.report] == ["MET", "UNMET"]


ANSWERS = {
    "binary": ["MET", "UNMET", None, UNREADABLE, DOWN],
    "nominal": [*NOMINAL, None, UNREADABLE, DOWN],
    "ordinal": ["poor", "fair", "good", None, UNREADABLE, DOWN],
}


@st.composite
def gradings(draw: st.DrawFn) -> tuple[BaseCriterion, list[Any], str]:
    criterion: BaseCriterion = draw(
        st.sampled_from(
            [binary("a"), binary("a", -5.0), choice("a"), choice("a", NOMINAL, scale_type="nominal")]
        )
    )
    method = draw(st.sampled_from(sorted(AGGREGATORS[criterion.level])))
    members = []
    for number in range(draw(st.integers(1, 5))):
        samples = draw(st.integers(1, 3))
        said = {("a", sample): draw(st.sampled_from(ANSWERS[criterion.level])) for sample in range(samples)}
        weight = draw(st.sampled_from([0.1, 0.2, 0.3, 1.0, 2.5]))
        members.append(JudgeSpec(Timed(f"j{number}", said), weight=weight, samples=samples))
    return (
        criterion.model_copy(update={"aggregation": method}),
        members,
        draw(st.sampled_from(["conservative", "exclude"])),
    )


@settings(max_examples=200)
@given(gradings())
def test_any_panel_decides_the_same(drawn: tuple[BaseCriterion, list[Any], Any]) -> None:
    """The same verdict and score as the full panel's, under abstentions, failures and every aggregation."""
    criterion, members, on_failure = drawn
    rubric = Rubric([criterion])
    full = grade(members, rubric, on_failure=on_failure)
    stopped = grade(members, rubric, on_failure=on_failure, stop_when_decided=True)
    assert stopped.score == full.score
    one, other = stopped.report[0], full.report[0]
    assert (one.status, one.final_answer) == (other.status, other.final_answer)
    assert (one.decision.assumed, one.decision.swayed) == (other.decision.assumed, other.decision.swayed)
    assert full.calls_saved == 0


# With stored votes


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.votes: list[JudgeVote] = []

    def vote_cast(self, event: VoteCast) -> None:
        self.votes.append(event.vote)


def task(rubric: Rubric) -> GradingTask:
    return GradingTask(submission=Submission.parse("A text."), rubric=rubric, item_id="i")


@in_loop
async def test_left_out_votes_are_heard_once_and_asked_where_all_are_wanted() -> None:
    """A stored run keeps them; going on with it stores nothing again; without stopping they are asked for."""
    rubric = Rubric([binary("a")])
    heard = Heard()
    grader = CriterionGrader(judges=panel("MET", "MET", "UNMET"), stop_when_decided=True)
    votes = await grader.judge(task(rubric), listener=heard)
    assert [vote.skipped for vote in heard.votes] == [False, False, True]
    again = Heard()
    assert await grader.judge(task(rubric), stored=votes, listener=again) == votes
    assert again.votes == []
    whole = CriterionGrader(judges=panel("MET", "MET", "UNMET"))
    more = await whole.judge(task(rubric), stored=votes, listener=again)
    assert [vote.judge_id for vote in again.votes] == ["j2"]
    assert [vote.status for vote in more["a"]] == ["answered"] * 3


@in_loop
async def test_stored_votes_count_for_the_decision() -> None:
    """What is there already may settle it: nothing is asked then."""
    rubric = Rubric([binary("a")])
    order: list[Any] = []
    stored = [JudgeVote(judge_id=f"j{i}", status="answered", answer="UNMET") for i in (1, 2)]
    grader = CriterionGrader(judges=panel("MET", "MET", "MET", order=order), stop_when_decided=True)
    votes = await grader.judge(task(rubric), stored={"a": stored})
    assert order == []
    assert votes["a"][0].skipped


# Budgets


@dataclass
class Broke:
    """Answers one criterion slowly; has no budget for the other."""

    judge_id: str = "broke"

    async def ask(self, request: JudgeRequest) -> JudgeReply:
        if request.criterion.name == "b":
            raise BudgetError("nothing left", limit="max_calls")
        await asyncio.sleep(0.01)
        return JudgeReply(answer="MET")


@pytest.mark.parametrize("stops", [False, True])
def test_what_is_in_flight_is_heard_before_the_end(stops: bool) -> None:
    """A budget that is used up is no failed vote: it ends the grading after paid-for answers came in."""
    heard = Heard()
    grader = CriterionGrader(judges=[Broke()], stop_when_decided=stops)
    with pytest.raises(BudgetError) as caught:
        asyncio.run(grader.judge(task(Rubric([binary("a"), binary("b"), binary("c")])), listener=heard))
    assert not isinstance(caught.value, JudgeError)
    assert [vote.answer for vote in heard.votes] == ["MET", "MET"]


def test_a_recorded_judge_without_a_row_is_no_call_saved() -> None:
    """It was asked and had nothing to say."""
    judge = TableJudge({"a": JudgeReply(answer=None, asked=False)})
    assert grade([judge], Rubric([binary("a")])).calls_saved == 0
