"""The grader: plans, asks, decides, scores."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from autorubric.criteria import Criterion, Submission, register_check
from autorubric.errors import ArgumentError, JudgeError, ReplyError, ServerError, TokenUsage
from autorubric.grading import CriterionGrader, Grader, GradingTask
from autorubric.judges import JudgeReply, JudgeRequest, JudgeSpec
from autorubric.llm import LLMConfig, ModelRequest
from autorubric.rubric import Rubric
from autorubric.scoring import (
    CannotAssessConfig,
    CannotAssessStrategy,
    EnsembleEvaluationReport,
    LengthPenalty,
)
from autorubric.scoring.report_builder import build_report
from autorubric.scoring.votes import JudgeVote, VoteCast
from tests.criteria.kinds import Remarks
from tests.doubles import (
    BarrierJudge,
    HangingJudge,
    Line,
    TableJudge,
    binary,
    choice,
    in_loop,
    model_judge,
    vote,
)

RUBRIC = Rubric([binary("a", 6.0), binary("b", 4.0), binary("fault", -5.0)])
UNREADABLE, DOWN = ReplyError("no JSON"), ServerError("down")


def grade(
    judges: Sequence[Any],
    rubric: Rubric = RUBRIC,
    text: Any = "A text.",
    item_id: str | None = None,
    **options: Any,
) -> EnsembleEvaluationReport:
    return rubric.grade_sync(text, CriterionGrader(judges=judges, **options), item_id=item_id)


def table(judge_id: str = "j", **answers: Any) -> TableJudge:
    return TableJudge({"a": "MET", "b": "MET", "fault": "UNMET", **answers}, judge_id)


def task(rubric: Rubric = RUBRIC, text: str | None = "A text.", item_id: str = "i1") -> GradingTask:
    return GradingTask(submission=Submission.parse(text), rubric=rubric, item_id=item_id)


# The report


def test_a_score_by_hand() -> None:
    """Weights, a penalty that is met, a verdict and a reason for each criterion."""
    judge = table(b="UNMET", fault=JudgeReply(answer="MET", reason="a typo"))
    report = grade([judge])
    assert report.score == pytest.approx(0.1)
    assert report.raw_score == report.llm_raw_score == 1.0
    assert [one.final_verdict for one in report.report] == ["MET", "UNMET", "MET"]
    assert report.report[2].final_reason == "a typo"
    assert [one.score_value for one in report.report] == [1.0, 0.0, 1.0]
    assert report.error is None
    assert report.judge_scores == {"j": report.score}
    assert report.mean_agreement == 1.0
    assert (report.token_usage, report.completion_cost) == (None, None)


def test_one_judge_is_a_panel_of_one() -> None:
    """The same judge three times over decides and scores alike, and the report has one shape."""
    alone = grade([table(b="UNMET")])
    panel = grade([table(name, b="UNMET") for name in "xyz"])
    assert (alone.score, alone.raw_score) == (panel.score, panel.raw_score)
    assert [one.decision for one in alone.report] == [one.decision for one in panel.report]
    assert type(alone) is type(panel)


def test_each_judge_is_scored_alone() -> None:
    """`judge_scores` takes one judge's votes, `mean_agreement` averages over criteria."""
    judges = [table("x"), table("y", a="UNMET"), table("z", a="UNMET", b="UNMET")]
    report = grade(judges)
    assert report.judge_scores == {"x": 1.0, "y": 0.4, "z": 0.0}
    assert report.score == 0.4
    assert report.mean_agreement == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


def test_reasons_of_the_votes_that_decide() -> None:
    """Each after its judge; the minority's reasons stay with their votes."""
    judges = [
        table(name, a=JudgeReply(answer=answer, reason=f"says {name}"))
        for name, answer in (("x", "MET"), ("y", "UNMET"), ("z", "MET"))
    ]
    report = grade(judges)
    assert report.report[0].final_reason == "x: says x\nz: says z"
    open_ones = [table(name, a=JudgeReply(answer=None, reason=f"{name} cannot")) for name in "xy"]
    assert grade(open_ones).report[0].final_reason == "x: x cannot\ny: y cannot"


def test_tokens_and_costs_add_up() -> None:
    """Over all votes whose figures are known, failed ones included."""
    spent = TokenUsage(prompt_tokens=5, completion_tokens=1, total_tokens=6)
    failed = ReplyError("no JSON")
    failed.usage, failed.cost = spent, 0.25
    judge = table(a=JudgeReply(answer="MET", usage=spent, cost=0.5), b=failed)
    report = grade([judge])
    assert report.token_usage == spent + spent
    assert report.completion_cost == 0.75


def test_a_known_length_penalty_is_taken_as_it_is() -> None:
    """A stored report is scored again without its text."""
    policy = CriterionGrader(judges=[table()]).policy
    votes = {name: [vote("j", "MET")] for name in ("a", "b")}
    assert build_report(Submission.parse(None), RUBRIC.root, votes, policy, length_penalty=0.25).score == 0.75


def test_normalising_may_be_left_out() -> None:
    """Then the score is the raw sum, less the length penalty."""
    long = LengthPenalty(free_budget=1, max_cap=2, penalty_at_cap=0.5)
    report = grade([table(fault="MET")], normalize=False, length_penalty=long)
    assert (report.score, report.raw_score, report.length_penalty) == (4.5, 5.0, 0.5)


def test_the_length_penalty_counts_what_it_says() -> None:
    """Thinking and output are counted apart, and judges see both."""
    long = LengthPenalty(
        free_budget=0, max_cap=10, penalty_at_cap=1.0, exponent=1.0, penalty_type="THINKING_ONLY"
    )
    judge = table()
    report = grade([judge], text={"thinking": "one two", "output": "many words " * 50}, length_penalty=long)
    assert report.score == pytest.approx(0.8)
    assert report.judge_scores == {"j": pytest.approx(0.8)}
    assert report.llm_raw_score == 10.0
    assert judge.asked[0].submission.thinking == "one two"


@pytest.mark.parametrize(
    ("strategy", "score"),
    [("skip", 1.0), ("zero", 6 / 10), ("partial", (6 + 1 - 1.25) / 10), ("fail", (6 - 5) / 10)],
)
def test_cannot_assess_strategies(strategy: str, score: float) -> None:
    """Criteria left open count as the policy says, in the panel's score and each judge's."""
    config = CannotAssessConfig(strategy=CannotAssessStrategy(strategy), partial_credit=0.25)
    report = grade([table(b=None, fault="CANNOT_ASSESS")], cannot_assess_config=config)
    assert report.score == pytest.approx(score)
    assert report.judge_scores["j"] == pytest.approx(score)
    assert report.cannot_assess_count == 2
    assert report.error is None


def test_na_is_left_out_like_cannot_assess() -> None:
    """An NA option decided on is marked, and leaves the score under SKIP."""
    rubric = Rubric([binary("a"), choice("scale", na="none")])
    report = grade([TableJudge({"a": "MET", "scale": "none"})], rubric)
    assert report.score == 1.0
    assert report.report[1].is_na
    assert report.report[1].status == "abstained"
    assert report.cannot_assess_count == 1


def test_nothing_left_to_score() -> None:
    """Open criteria, weights of zero and kinds without a measure give no score, and the error says which."""
    report = grade([table(a=None, b=None, fault=None)])
    assert (report.score, report.raw_score) == (None, None)
    assert report.error == "no score: a (abstained), b (abstained), fault (abstained)"
    weightless = grade(
        [TableJudge({"a": "MET", "t": {"remark": "x"}})], Rubric([binary("a", 0.0), Remarks(name="t")])
    )
    assert weightless.error == "no score: a (weight 0), t (no value)"


# Failures


@pytest.mark.parametrize(("policy", "score"), [("conservative", 0.6), ("exclude", 1.0)])
def test_unreadable_replies_count_by_policy(policy: str, score: float) -> None:
    """As the conservative verdict, or not at all; marked failed either way, and never agreement."""
    report = grade([table(b=UNREADABLE)], on_failure=policy)
    assert report.score == score
    lost = report.report[1]
    assert lost.votes[0].status == "failed"
    assert lost.agreement is None
    assert lost.error == "j: ReplyError: no JSON"
    assert report.mean_agreement == 1.0
    assert "1 of 3 criteria could not be judged: b: j: ReplyError: no JSON" in (report.error or "")


def test_an_unreadable_penalty_counts_as_met() -> None:
    """Conservative for a penalty is that the fault is there."""
    assert grade([table(fault=UNREADABLE)]).score == 0.5


@pytest.mark.parametrize("policy", ["conservative", "exclude"])
def test_a_provider_failure_never_counts(policy: str) -> None:
    """A vote without a reply leaves the score whatever the policy; the panel goes on without it."""
    report = grade([table(b=DOWN)], on_failure=policy)
    assert report.score == 1.0
    assert report.report[1].status == "failed"
    panel = grade([table("x", b=DOWN), table("y", b="UNMET")], on_failure=policy)
    assert panel.report[1].final_verdict == "UNMET"
    assert panel.report[1].error == "x: ServerError: down"
    assert panel.error is None


@pytest.mark.parametrize("error", [UNREADABLE, DOWN])
def test_failures_raise_where_asked(error: JudgeError) -> None:
    """`on_failure="raise"` raises the judge's own error."""
    with pytest.raises(type(error), match=str(error)):
        grade([table(b=error)], on_failure="raise")


@pytest.mark.parametrize("error", [UNREADABLE, DOWN])
@pytest.mark.parametrize("policy", ["conservative", "exclude"])
def test_when_every_judgment_failed_there_is_no_score(error: JudgeError, policy: str) -> None:
    """No score is made up, and the error says why."""
    report = grade([table(a=error, b=error, fault=error)], on_failure=policy)
    assert (report.score, report.raw_score) == (None, None)
    assert report.judge_scores == {"j": None}
    assert report.error is not None
    assert report.error.startswith("every judgment failed: j: ")


def test_failed_and_open_criteria_together_are_told() -> None:
    """The error says that nothing is left, and what failed."""
    report = grade([table(a=DOWN, b=None, fault=None)])
    assert report.score is None
    assert (report.error or "").startswith("no score: 1 of 3 criteria could not be judged")


def test_many_failures_are_told_shortly() -> None:
    """Three of them, and how many more."""
    rubric = Rubric([binary(name) for name in "vwxyz"])
    answers: dict[str, Any] = {name: ServerError(f"{name} is down") for name in "wxyz"}
    report = grade([TableJudge({**answers, "v": "MET"})], rubric)
    assert (report.error or "").endswith("; and 1 more")


def test_a_judge_without_votes_was_not_asked() -> None:
    """A criterion that nobody has a vote on says so, and leaves the score."""
    report = grade([table(b=JudgeReply(answer=None, asked=False))])
    assert report.report[1].status == "not_asked"
    assert report.report[1].error == "no judge voted on this criterion"
    assert report.score == 1.0


# Concurrency


@in_loop
async def test_every_vote_is_in_flight_at_once() -> None:
    """Two judges, two samples of one, three criteria: nine calls meet at one barrier."""
    barrier = asyncio.Barrier(9)
    panel: list[Any] = [JudgeSpec(BarrierJudge(barrier, "x"), samples=2), BarrierJudge(barrier, "y")]
    report = await CriterionGrader(judges=panel).grade("A text.", RUBRIC)
    assert sum(len(one.votes) for one in report.report) == 9


@in_loop
async def test_single_judges_stay_concurrent_under_per_item_requests() -> None:
    """A judge that knows no batches is not asked one criterion after the other."""
    barrier = asyncio.Barrier(3)
    grader = CriterionGrader(judges=[BarrierJudge(barrier, "x")], llm_calls="per_item")
    assert (await grader.grade("A text.", RUBRIC)).report[0].status == "answered"


@in_loop
async def test_cancelling_leaves_nothing_running() -> None:
    """Every call is cancelled and has ended before the cancellation is through."""
    judge = HangingJudge()
    grading = asyncio.ensure_future(CriterionGrader(judges=[judge]).grade("A text.", RUBRIC))
    await judge.reached.wait()
    await asyncio.sleep(0)
    assert judge.running == 3
    grading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await grading
    assert judge.running == 0
    assert len(asyncio.all_tasks()) <= 2


@in_loop
async def test_a_raised_failure_leaves_nothing_running() -> None:
    """The other calls end before the error is raised, whatever the judge raised."""
    for error, raised in ((UNREADABLE, ReplyError), (ZeroDivisionError(), JudgeError)):
        hanging = HangingJudge()
        failing = table("x", a=error, b=error, fault=error)
        with pytest.raises(raised):
            await CriterionGrader(judges=[hanging, failing], on_failure="raise").grade("A text.", RUBRIC)
        assert hanging.running == 0


# Seeds


def seeds(judges: Sequence[Any], seed: int | None, **fields: Any) -> dict[tuple[str | None, str, int], int]:
    """Seeds by criterion, judge and sample."""
    calls = CriterionGrader(judges=judges, seed=seed).plan(task(**fields))
    return {(c.request.criterion.name, c.member.judge_id, c.request.sample): c.request.seed for c in calls}


def test_seeds_depend_on_what_is_asked_and_on_nothing_else() -> None:
    """Equal for a rerun, whatever stands around; different by criterion, judge, sample, item and seed."""
    panel = [JudgeSpec(table("x"), samples=3), table("y")]
    first = seeds(panel, 7)
    assert first == seeds(panel, 7)
    assert len(set(first.values())) == len(first) == 12
    smaller = seeds([table("y")], 7, rubric=Rubric([binary("b", 1.0)]))
    assert smaller == {("b", "y", 0): first["b", "y", 0]}
    assert not set(first.values()) & set(seeds(panel, 8).values())
    assert not set(first.values()) & set(seeds(panel, 7, item_id="i2").values())
    assert seeds(panel, None) == seeds(panel, 0)


def shown_orders(seed: int) -> list[list[str]]:
    """The order of options in each request of two judges with two samples."""
    rubric = Rubric([choice("scale", {label: i / 5 for i, label in enumerate("uvwxyz")})])

    def script(request: ModelRequest) -> Line:
        return {"reason": "r", "label": "w"}

    judges = [model_judge(script, judge_id=name) for name in ("one", "two")]
    report = grade([JudgeSpec(judge, samples=2) for judge, _ in judges], rubric, seed=seed)
    assert {v.selected_label for v in report.report[0].votes} == {"w"}
    lines = [prompt.splitlines() for _, transport in judges for prompt in transport.prompts]
    return [[line[2:] for line in prompt if line.startswith("- ")] for prompt in lines]


def test_shuffles_follow_the_seed() -> None:
    """The same seed shows the same orders; judges and samples see different ones."""
    assert shown_orders(3) == shown_orders(3)
    assert shown_orders(3) != shown_orders(4)
    assert len({tuple(order) for order in shown_orders(3)}) > 2


def test_options_are_not_shuffled_where_not_wanted() -> None:
    """`shuffle_options=False` reaches the judges."""
    judge = TableJudge({"scale": "good"})
    grade([judge], Rubric([choice()]), shuffle_options=False)
    assert not judge.asked[0].shuffle


# Checks


def test_checks_are_judged_by_check_only() -> None:
    """The panel is not asked, and the check's vote has its own id."""
    rubric = Rubric([binary("a"), binary("dated", check=lambda text: ("1848" in text, "looked for 1848"))])
    judge = TableJudge({"a": "UNMET"})
    report = grade([JudgeSpec(judge, samples=2)], rubric, text="In 1848.")
    assert [request.criterion.name for request in judge.asked] == ["a", "a"]
    assert [(v.judge_id, v.answer, v.reason) for v in report.report[1].votes] == [
        ("check", "MET", "looked for 1848")
    ]
    assert report.score == 0.5
    assert set(report.judge_scores) == {"table", "check"}


def test_an_unknown_check_is_told_before_anything_is_spent() -> None:
    """No judge is asked for a rubric that cannot be judged whole."""
    judge = table()
    grader = CriterionGrader(judges=[judge])
    known = binary("b", check="tests.has_year")
    register_check("tests.has_year", lambda text: True)
    rubric = Rubric([binary("a"), known])
    gone = GradingTask(
        submission=Submission(text="t"),
        rubric=Rubric.restore(
            {
                "criteria": [
                    {"requirement": "r", "name": "a"},
                    {"requirement": "r", "name": "b", "check": "tests.has_yea"},
                ]
            }
        ),
    )
    with pytest.raises(ArgumentError, match=r"unknown check 'tests\.has_yea'; did you mean"):
        asyncio.run(grader.judge(gone))
    assert judge.asked == []
    assert asyncio.run(grader.grade("t", rubric)).score == 1.0


# Stored votes


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[VoteCast] = []

    def vote_cast(self, event: VoteCast) -> None:
        self.events.append(event)


@in_loop
async def test_stored_votes_are_not_cast_again() -> None:
    """Only what is missing is asked, and only that is heard; the votes come in the order planned."""
    judge = table()
    grader = CriterionGrader(judges=[JudgeSpec(judge, samples=2)])
    stored = {"a": [vote("j", "UNMET", sample=1), vote("stranger", "MET")], "b": [vote("j", "MET")]}
    heard = Heard()
    votes = await grader.judge(task(), stored=stored, listener=heard)
    assert sorted((r.criterion.name, r.sample) for r in judge.asked) == [
        ("a", 0),
        ("b", 1),
        ("fault", 0),
        ("fault", 1),
    ]
    assert len(heard.events) == 4
    assert {event.item_id for event in heard.events} == {"i1"}
    assert [(v.sample, v.answer) for v in votes["a"]] == [(0, "MET"), (1, "UNMET")]
    assert [v.judge_id for v in votes["a"]] == ["j", "j"]


@in_loop
async def test_stored_votes_take_todays_weights_and_values() -> None:
    """A changed weight of a judge, or value of an option, is scored again without a call."""
    rubric = Rubric([choice("scale", {"poor": 0.1, "good": 0.9})])
    panel: list[Any] = [JudgeSpec(TableJudge({}, "x"), weight=5.0), TableJudge({}, "y")]
    old = [replace(vote("x", "good"), value=1.0), replace(vote("y", "poor"), value=0.0)]
    grader = CriterionGrader(judges=panel, ordinal_aggregation="weighted_mean")
    votes = await grader.judge(task(rubric), stored={"scale": old})
    assert [(v.weight, v.value) for v in votes["scale"]] == [(5.0, 0.9), (1.0, 0.1)]
    assert grader.aggregate(task(rubric), votes).report[0].final_answer == "good"


@in_loop
async def test_a_raised_failure_is_heard_and_asked_again() -> None:
    """What was paid for is heard of before the error; a stored failure is worth another try."""
    heard = Heard()
    grader = CriterionGrader(judges=[table(b=UNREADABLE)], on_failure="raise")
    with pytest.raises(ReplyError):
        await grader.judge(task(), listener=heard)
    failed = [event.vote for event in heard.events if event.criterion == "b"]
    assert [vote.status for vote in failed] == ["failed"]
    mended = CriterionGrader(judges=[table()], on_failure="raise")
    votes = await mended.judge(task(), stored={"b": failed})
    assert votes["b"][0].status == "answered"


# Requests of several criteria


def batch_judge() -> Any:
    def script(request: ModelRequest) -> Line:
        keys = re.findall(r"^\[(c[0-9a-f]{4})\]", request.messages[1].content, re.MULTILINE)
        good = {"reason": "r", "verdict": "MET"}
        return {"evaluations": [{"id": key, **good} for key in keys]} if keys else good

    return model_judge(script)


@pytest.mark.parametrize(
    ("llm_calls", "requests"), [("per_criterion", 7), ("per_item", 1), (1, 7), (3, 3), (100, 1)]
)
def test_criteria_share_requests_as_told(llm_calls: Any, requests: int) -> None:
    """One request a criterion, one an item, or one for so many; tokens and costs add up either way."""
    rubric = Rubric([binary(f"c{i}") for i in range(7)])
    judge, transport = batch_judge()
    report = grade([judge], rubric, llm_calls=llm_calls)
    assert len(transport.requests) == requests
    assert report.score == 1.0
    assert report.token_usage is not None
    assert report.token_usage.total_tokens == 12 * requests
    assert report.completion_cost == pytest.approx(0.01 * requests)


def test_samples_do_not_share_a_request() -> None:
    """Each sample is a request of its own, with its index, so that a cache keeps them apart."""
    judge, transport = batch_judge()
    grade([JudgeSpec(judge, samples=3)], llm_calls="per_item")
    assert sorted(request.sample for request in transport.requests) == [0, 1, 2]


@pytest.mark.parametrize("llm_calls", ["per_judge", 0, -1, True, 1.5])
def test_other_ways_of_sharing_are_refused(llm_calls: Any) -> None:
    """The error names those allowed."""
    with pytest.raises(ArgumentError, match="must be 'per_criterion', 'per_item', or a positive number"):
        CriterionGrader(judges=[table()], llm_calls=llm_calls)


# Construction


def test_samples_at_temperature_zero_warn() -> None:
    """They would be nearly all the same; other panels do not warn."""
    config = LLMConfig(model="openai/gpt-x", temperature=0.0)
    with pytest.warns(UserWarning, match="draws 3 samples at temperature 0") as caught:
        CriterionGrader(judges=[JudgeSpec(config, samples=3)])
    assert caught[0].filename == __file__
    own, _ = model_judge([], temperature=0.0)
    with pytest.warns(UserWarning, match="'model' draws 2 samples"):
        CriterionGrader(judges=[JudgeSpec(own, samples=2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warm = config.model_copy(update={"temperature": 0.7})
        CriterionGrader(judges=[config, JudgeSpec(warm, "warm", samples=3), JudgeSpec(table(), samples=3)])


def test_distinct_replies_of_a_judges_samples_are_counted() -> None:
    """Samples that only repeat each other are seen in the report."""
    answers = {("a", i): JudgeReply(answer="MET", reason=reason) for i, reason in enumerate("uuv")}
    report = grade([JudgeSpec(TableJudge(answers, "x"), samples=3)], Rubric([binary("a")]))
    assert report.report[0].distinct_replies == {"x": 2}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "exactly one of llm_config and judges; got neither"),
        ({"llm_config": "gpt", "judges": ["gpt"]}, "got both"),
        ({"judges": []}, "at least one judge"),
        ({"judges": "gpt"}, "judges must be a list"),
    ],
)
def test_exactly_one_of_model_and_judges(options: dict[str, Any], told: str) -> None:
    """The error says what was given."""
    with pytest.raises(ArgumentError, match=told):
        CriterionGrader(**options)


@pytest.mark.parametrize("name", ["aggregation", "ordinal_aggregation", "nominal_aggregation", "on_failure"])
def test_unknown_methods_are_refused(name: str) -> None:
    """When the grader is made, not when the first vote is in."""
    with pytest.raises(ArgumentError, match=f"{name}='best'.*Input should be"):
        grade([table()], RUBRIC, "text", **{name: "best"})


def test_a_wrong_aggregation_of_a_criterion_is_told_before_asking() -> None:
    """No judge is asked first."""
    judge = table()
    with pytest.raises(ArgumentError, match="criterion 'a': aggregation 'mean' is not available"):
        grade([judge], Rubric([binary("a", aggregation="mean")]))
    assert judge.asked == []


def test_a_model_by_name_is_a_panel_of_one() -> None:
    """`llm_config` takes a name or a config, and its id is the model's name."""
    for given_model in ("openai/gpt-x", LLMConfig(model="openai/gpt-x")):
        grader = CriterionGrader(llm_config=given_model)
        assert [member.judge_id for member in grader.members] == ["openai/gpt-x"]
        assert isinstance(grader, Grader)


@in_loop
async def test_a_grader_closes_its_judges() -> None:
    """On request, and at the end of `async with`."""
    judge, transport = batch_judge()
    async with CriterionGrader(judges=[judge, table()]) as grader:
        assert (await grader.grade("t", Rubric([binary("a")]))).score == 1.0
    assert transport.closed == 1


# The description


def described(**options: Any) -> tuple[str, str]:
    description = CriterionGrader(**{"judges": [table()], **options}).describe()
    return (json.dumps(description.asking, sort_keys=True), json.dumps(description.deciding, sort_keys=True))


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({}, (False, False)),
        ({"seed": 0}, (False, False)),
        ({"seed": 1}, (True, False)),
        ({"shuffle_options": False}, (True, False)),
        ({"llm_calls": "per_item"}, (True, False)),
        ({"llm_calls": 1}, (False, False)),
        ({"system_prompt": "Else."}, (True, False)),
        ({"multi_choice_system_prompt": "Else."}, (True, False)),
        ({"judges": [JudgeSpec(table(), samples=2)]}, (True, False)),
        ({"judges": [JudgeSpec(table(), weight=2.0)]}, (False, True)),
        ({"judges": [table("k")]}, (True, True)),
        ({"aggregation": "any"}, (False, True)),
        ({"ordinal_aggregation": "max"}, (False, True)),
        ({"on_failure": "exclude"}, (False, True)),
        ({"normalize": False}, (False, True)),
        ({"length_penalty": LengthPenalty(count_fn=len)}, (False, True)),
        ({"cannot_assess_config": CannotAssessConfig(partial_credit=0.1)}, (False, True)),
    ],
)
def test_the_description_changes_where_it_should(options: dict[str, Any], changes: tuple[bool, bool]) -> None:
    """What votes depend on, and what is done with them, each by itself."""
    before, after = described(), described(**options)
    assert tuple(one != other for one, other in zip(before, after, strict=True)) == changes


def test_the_description_has_nothing_secret() -> None:
    """Keys and header values are left out."""
    config = LLMConfig(
        model="openai/gpt-x",
        api_key="sk-secret",
        extra_headers={"Authorization": "Bearer hush"},
        extra_params={"vendor_token": "quiet"},
    )
    said = "".join(described(judges=[config]))
    assert "gpt-x" in said
    for secret in ("sk-secret", "hush", "quiet"):
        assert secret not in said


@dataclass
class Counting(Grader):
    """A grader of one's own: the base does the rest."""

    votes: list[str] = field(default_factory=list)

    async def judge(self, task: GradingTask, *, stored: Any = None, listener: Any = None) -> dict[str, Any]:
        self.votes.append(task.submission.text or "")
        return {}

    def aggregate(self, task: GradingTask, votes: Any) -> EnsembleEvaluationReport:
        return EnsembleEvaluationReport(score=1.0)

    def describe(self) -> Any:
        raise NotImplementedError


def test_a_grader_of_ones_own() -> None:
    """`grade` is `judge`, then `aggregate`; `aclose` has nothing to do."""
    grader = Counting()
    assert RUBRIC.grade_sync("text", grader).score == 1.0
    assert grader.votes == ["text"]
    asyncio.run(grader.aclose())
    with pytest.raises(ArgumentError, match=r"to_grade must be .*; got int"):
        RUBRIC.grade_sync(5, grader)


def test_requests_carry_the_item_and_the_rubric() -> None:
    """Query, reference, guidelines and id reach every judge."""
    seen: list[JudgeRequest] = []

    def judge(request: JudgeRequest) -> str:
        seen.append(request)
        return "MET"

    rubric = Rubric([Criterion(name="a", requirement="r")], guidelines="Be kind.")
    rubric.grade_sync(
        "t", CriterionGrader(judges=[judge]), query="q", reference_submission="ref", item_id="7"
    )
    request = seen[0]
    assert (request.query, request.reference_submission, request.guidelines, request.item_id) == (
        *("q", "ref", "Be kind.", "7"),
    )


@in_loop
async def test_fresh_samples_have_indices_and_seeds_of_their_own() -> None:
    """A task that begins at a later sample asks for votes that no earlier task had."""
    judge = TableJudge({"a": "MET"})
    grader = CriterionGrader(judges=[JudgeSpec(judge, samples=2)])
    task = GradingTask(submission=Submission(text="A text."), rubric=Rubric([binary("a")]))
    for first in (0, 2):
        votes = await grader.judge(replace(task, first_sample=first))
        assert [vote.sample for vote in votes["a"]] == [first, first + 1]
    assert len({request.seed for request in judge.asked}) == 4


def test_functions_that_return_awaitables_are_awaited_together() -> None:
    """Each result waits for the others, and each call has its own context."""
    number: ContextVar[int] = ContextVar("number", default=0)

    async def judged() -> EnsembleEvaluationReport:
        barrier = asyncio.Barrier(6)

        async def meet(request: JudgeRequest) -> JudgeReply:
            number.set(number.get() + 1)
            await barrier.wait()
            return JudgeReply(answer="MET", reason=str(number.get()))

        def start(request: JudgeRequest) -> Any:
            number.set(number.get() + 1)
            return meet(request)

        judges = [JudgeSpec(start, "one"), JudgeSpec(start, "two")]
        return await asyncio.wait_for(RUBRIC.grade("A text.", CriterionGrader(judges=judges)), 120)

    votes = [vote for one in asyncio.run(judged()).report for vote in one.votes]
    assert [(vote.answer, vote.reason) for vote in votes] == [("MET", "2")] * 6


def test_what_functions_in_threads_raise_is_their_own_failure() -> None:
    """The other calls are made, and each vote has its own error."""

    def judge(request: JudgeRequest) -> str:
        match request.criterion.name:
            case "a":
                raise asyncio.CancelledError
            case "b":
                raise StopIteration("over")
        return "MET"

    report = grade([JudgeSpec(judge, "j")])
    assert [vote.error for one in report.report for vote in one.votes] == [
        "JudgeError: judge 'j' raised CancelledError",
        "JudgeError: judge 'j' raised StopIteration: over",
        None,
    ]


def test_a_failure_that_raises_ends_the_calls_of_functions_in_threads() -> None:
    """Calls that wait for a thread are not made."""
    made: list[str] = []
    release = threading.Event()

    def judge(request: JudgeRequest) -> str:
        made.append(request.criterion.name or "")
        if len(made) == 2:
            release.wait(120)
        return "what?"

    async def judged() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        try:
            await RUBRIC.grade("A text.", CriterionGrader(judges=[judge], on_failure="raise"))
        finally:
            release.set()

    with pytest.raises(ReplyError, match="is not a verdict"):
        asyncio.run(judged())
    assert made in (["a"], ["a", "b"])


def test_calls_that_wait_are_made_side_by_side() -> None:
    """Calls before them that do not wait, and calls of functions in threads, do not hold them up."""

    async def judged() -> EnsembleEvaluationReport:
        release, begun = asyncio.Event(), []

        async def waits(request: JudgeRequest) -> str:
            begun.append(request.criterion.name)
            if len(begun) == 3:
                release.set()
            await release.wait()
            return "MET"

        async def answers(request: JudgeRequest) -> str:
            return "MET"

        functions = {"quick": answers, "slow": waits, "thread": lambda request: "MET"}
        judges = [JudgeSpec(function, name) for name, function in functions.items()]
        return await asyncio.wait_for(RUBRIC.grade("A text.", CriterionGrader(judges=judges)), 120)

    votes = [vote for one in asyncio.run(judged()).report for vote in one.votes]
    assert [vote.answer for vote in votes] == ["MET"] * 9


def test_votes_of_functions_in_threads_are_reported_as_they_arrive() -> None:
    """A slow call holds up neither the votes of the calls after it nor their measured time."""
    release = threading.Event()
    arrived: list[JudgeVote] = []

    def judge(request: JudgeRequest) -> str:
        if request.criterion.name == "a":
            release.wait(120)
        return "MET"

    class Arrivals:
        def vote_cast(self, event: VoteCast) -> None:
            arrived.append(event.vote)
            if len(arrived) == 2:
                release.set()

    task = GradingTask(submission=Submission.parse("A text."), rubric=RUBRIC)
    votes = asyncio.run(CriterionGrader(judges=[JudgeSpec(judge, "j")]).judge(task, listener=Arrivals()))
    assert [vote.answer for one in votes.values() for vote in one] == ["MET"] * 3
    assert arrived[-1] is votes["a"][0]
    assert arrived[-1].latency_seconds == max(vote.latency_seconds or 0.0 for vote in arrived)


def test_grading_leaves_nothing_to_the_garbage_collector() -> None:
    """Runs collect garbage seldom, so that cycles of references would add up."""

    async def answers(request: JudgeRequest) -> str:
        return "MET"

    def collected(count: int) -> int:
        async def grade_all() -> None:
            for _ in range(count):
                await RUBRIC.grade("A text.", grader)

        grader = CriterionGrader(
            judges=[JudgeSpec(answers, "async"), JudgeSpec(lambda request: "MET", "thread")]
        )
        gc.collect()
        gc.disable()
        try:
            asyncio.run(grade_all())
            return gc.collect()
        finally:
            gc.enable()

    collected(1)
    assert collected(40) - collected(10) < 30


def test_each_call_has_its_own_context() -> None:
    """A context variable that one call of an async function sets is not seen by the next."""
    variable: ContextVar[int] = ContextVar("variable", default=0)
    seen: list[int] = []

    async def judge(request: JudgeRequest) -> str:
        seen.append(variable.get())
        variable.set(variable.get() + 1)
        return "MET"

    grade([JudgeSpec(judge, "one"), JudgeSpec(judge, "two")])
    assert seen == [0] * 6


def test_an_executor_that_was_shut_down_is_an_error_until_it_is_replaced() -> None:
    """Nothing waits for a thread that never comes."""

    async def judged() -> list[str | None]:
        grader, loop = CriterionGrader(judges=[lambda request: "MET"]), asyncio.get_running_loop()
        await RUBRIC.grade("A text.", grader)
        await loop.shutdown_default_executor()
        errors = []
        for executor in (None, ThreadPoolExecutor(1)):
            if executor is not None:
                loop.set_default_executor(executor)
                loop._executor_shutdown_called = False  # type: ignore[attr-defined]
            report = await asyncio.wait_for(RUBRIC.grade("A text.", grader), 60)
            errors.append(report.report[0].votes[0].error)
        return errors

    first, second = asyncio.run(judged())
    assert first is not None and "RuntimeError" in first and "shutdown" in first
    assert second is None


def test_the_result_of_a_function_is_awaited_once() -> None:
    """An awaitable that gives another awaitable is not an answer."""

    async def forever() -> Any:
        return forever()

    report = grade([JudgeSpec(lambda request: forever(), "j")])
    assert {vote.status for one in report.report for vote in one.votes} == {"failed"}
