"""What a panel gives to a critic: text and thinking, examples, a system prompt, a reference; and its name."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from autorubric import CriterionGrader, DataItem, JudgeSpec, Rubric, RubricDataset
from autorubric.criteria import NumericalRatingCriterion
from autorubric.errors import ArgumentError, JudgeError
from autorubric.judges import DEFAULT_TEMPLATE, Critic, JudgeLike
from autorubric.llm import LLMConfig
from tests.doubles import TableJudge, binary, choice, in_loop, model_judge, request_for
from tests.judges.evaluators import GOOD, HELPFUL, Scripted

PARTS = re.compile(r"<(\w+)-\w{16}>\n(.*)\n</")
RELATIVE = NumericalRatingCriterion(name="near", mode="relative_to_target")
NEAR = {"score": 7, "explanation": "near"}
LABELLED = RubricDataset(
    rubric=Rubric([HELPFUL, binary("polite")]),
    items=[
        DataItem(submission="So-so.", ground_truth={"helpfulness": 2, "polite": "MET"}),
        DataItem(submission="The best.", ground_truth={"helpfulness": 5, "polite": "MET"}),
    ],
)


def config_for(server: Any, **fields: Any) -> LLMConfig:
    return LLMConfig(model="openai/m", api_base=server.api_base, api_key="k", **fields)


def sent(server: Any) -> list[list[tuple[str, str]]]:
    """Role and content of each message of each request."""
    return [[(one["role"], one["content"]) for one in seen["body"]["messages"]] for seen in server.log()]


# Text and thinking


def test_without_a_text_a_model_is_not_asked(openai_server):
    """The vote fails, as a model judge's does."""
    critic = Critic(config_for(openai_server), HELPFUL)
    grader = CriterionGrader(judges=[critic, JudgeSpec(config_for(openai_server), "model")])
    votes = Rubric([HELPFUL]).grade_sync(None, grader, item_id="7").report[0].votes
    assert [vote.status for vote in votes] == ["failed", "failed"]
    for vote in votes:
        assert "item '7' has no text to judge" in (vote.error or "")
    assert not openai_server.log()


def test_without_a_text_only_a_judge_may_vote():
    """A function of the prompt has nothing to read; recorded votes need no text."""
    evaluator = Scripted()
    grader = CriterionGrader(
        judges=[Critic(evaluator, HELPFUL), Critic(TableJudge({"helpfulness": 3}), HELPFUL)]
    )
    votes = Rubric([HELPFUL]).grade_sync(None, grader).report[0].votes
    assert [vote.status for vote in votes] == ["failed", "answered"]
    assert not evaluator.prompts


def test_thinking_reaches_a_critic_over_http(openai_server):
    """Delimited, in the place where a model judge has it."""
    grader = CriterionGrader(judges=[Critic(config_for(openai_server), HELPFUL)])
    Rubric([HELPFUL]).grade_sync({"thinking": "hm", "output": "x"}, grader, query="q")
    ((_, content),) = sent(openai_server)[0]
    assert PARTS.findall(content) == [("query", "q"), ("thinking", "hm"), ("submission", "x")]


def test_a_judge_as_evaluator_gets_the_submission_itself():
    """With its thinking, by hand as in a panel."""
    judge = TableJudge({"helpfulness": {"rating": 3, "explanation": "so"}})
    given = {"thinking": "hm", "output": "x"}
    Critic(judge, HELPFUL)(given)
    Rubric([HELPFUL]).grade_sync(given, CriterionGrader(judges=[Critic(judge, HELPFUL)]))
    assert [(one.submission.text, one.submission.thinking) for one in judge.asked] == [("x", "hm")] * 2


# Examples and system prompts


def test_few_shot_examples_reach_a_critic_as_they_reach_a_model(openai_server):
    """The same block, under the tag of the item."""
    judges: list[JudgeLike] = [
        Critic(config_for(openai_server), HELPFUL),
        JudgeSpec(config_for(openai_server), "model"),
    ]
    grader = CriterionGrader(judges=judges, training_data=LABELLED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Rubric([HELPFUL]).grade_sync("x", grader)
    blocks = [
        re.sub(r"-\w{16}>", ">", re.findall(r"Examples of this.*Judged: \S+", messages[-1][1], re.DOTALL)[0])
        for messages in sent(openai_server)
    ]
    assert blocks[0] == blocks[1]
    assert "<example>\nThe best.\n</example>\nJudged: 5" in blocks[0]


def test_the_default_template_is_the_same_without_examples():
    """The variable leaves no gap."""
    evaluator = Scripted()
    Critic(evaluator, HELPFUL)("x")
    without = Critic(evaluator, HELPFUL, DEFAULT_TEMPLATE.replace("{examples}", ""))
    without("x")
    assert evaluator.prompts[0] == evaluator.prompts[1]


def test_a_template_without_a_place_for_examples_is_told_once():
    """When the panel is made, and only where there are examples of the critic's own criterion."""
    plain = Critic(Scripted(), HELPFUL, "{output}")
    with pytest.warns(UserWarning, match=r"'Scripted/helpfulness': few-shot .* add \{examples\}") as told:
        grader = CriterionGrader(judges=[plain], training_data=LABELLED)
        for text in ("x", "y"):
            Rubric([HELPFUL]).grade_sync(text, grader)
    assert [one.filename for one in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CriterionGrader(judges=[plain])
        CriterionGrader(judges=[Critic(Scripted(), binary("other"), "{output}")], training_data=LABELLED)
        CriterionGrader(judges=[Critic(TableJudge({}), HELPFUL, "{output}")], training_data=LABELLED)


def test_the_panels_system_prompt_reaches_a_critics_model(openai_server):
    """As a system message; that for options goes to criteria with options."""
    fair = choice("fair")
    grader = CriterionGrader(
        judges=[Critic(config_for(openai_server), one, "{output}") for one in (binary("polite"), fair)],
        system_prompt="Be strict.",
        multi_choice_system_prompt="Choose well.",
    )
    Rubric([binary("polite"), fair]).grade_sync("x", grader)
    prompts = {messages[0] for messages in sent(openai_server)}
    assert prompts == {("system", "Be strict."), ("system", "Choose well.")}
    assert {messages[1:][0] for messages in sent(openai_server)} == {("user", "x")}
    openai_server.reset()
    Rubric([fair]).grade_sync("x", CriterionGrader(judges=[Critic(config_for(openai_server), fair)]))
    assert [role for role, _ in sent(openai_server)[0]] == ["user"]


def test_a_model_judge_has_its_own_system_prompt():
    """Also as an evaluator of a critic."""
    judge, transport = model_judge([GOOD])
    grader = CriterionGrader(judges=[Critic(judge, HELPFUL)], system_prompt="Be strict.")
    Rubric([HELPFUL]).grade_sync("x", grader)
    assert "careful, impartial judge" in transport.requests[0].messages[0].content


# References


def test_a_critics_own_reference_serves_a_panel(openai_server):
    """A criterion that compares needs none from the caller then; the caller's goes before."""
    openai_server.script({"do": "answer", "payload": NEAR}, repeat="last")
    critic = Critic(config_for(openai_server), RELATIVE, reference="R")
    grader = CriterionGrader(judges=[critic])
    report = Rubric([RELATIVE]).grade_sync("S", grader)
    assert report.report[0].votes[0].answer == 7.0
    Rubric([RELATIVE]).grade_sync("S", grader, reference_submission="T")
    given = [dict(PARTS.findall(messages[-1][1]))["reference"] for messages in sent(openai_server)]
    assert given == ["R", "T"]


@pytest.mark.parametrize("own", [None, "", " \n"], ids=repr)
@pytest.mark.parametrize("given", [None, "", " \n"], ids=repr)
def test_without_any_reference_a_panel_asks_nobody(own, given):
    """Blanks are none, for functions and for judges as evaluators."""
    judge, evaluator = TableJudge({"near": NEAR}), Scripted([NEAR])
    for who in (judge, evaluator):
        grader = CriterionGrader(judges=[Critic(who, RELATIVE, reference=own)])
        with pytest.raises(ArgumentError, match="near requires a reference"):
            Rubric([RELATIVE]).grade_sync("S", grader, reference_submission=given)
    assert not judge.asked
    assert not evaluator.prompts


def test_a_judge_without_a_reference_of_its_own_needs_one():
    """One member of several is enough; a critic of another criterion is none of them."""
    own = Critic(Scripted([NEAR]), RELATIVE, reference="R")
    other = Critic(Scripted(), HELPFUL)
    rubric = Rubric([RELATIVE, HELPFUL])
    assert rubric.grade_sync("S", CriterionGrader(judges=[own, other])).score is not None
    table = TableJudge({"near": NEAR, "helpfulness": GOOD})
    with pytest.raises(ArgumentError, match="near requires a reference"):
        rubric.grade_sync("S", CriterionGrader(judges=[own, table]))


def test_a_critics_own_reference_reaches_a_judge_as_evaluator():
    """It is part of the request."""
    judge = TableJudge({"near": NEAR})
    grader = CriterionGrader(judges=[Critic(judge, RELATIVE, reference="R")])
    Rubric([RELATIVE]).grade_sync("S", grader)
    assert [one.reference_submission for one in judge.asked] == ["R"]


@pytest.mark.parametrize("blank", ["", " \n"], ids=repr)
def test_a_blank_reference_is_sent_to_no_model(openai_server, blank):
    """Neither by a critic nor by a model judge."""
    judges: list[JudgeLike] = [
        Critic(config_for(openai_server), HELPFUL),
        JudgeSpec(config_for(openai_server), "model"),
    ]
    Rubric([HELPFUL]).grade_sync("x", CriterionGrader(judges=judges), reference_submission=blank)
    assert ["reference" in dict(PARTS.findall(one[-1][1])) for one in sent(openai_server)] == [False, False]


# Templates and names


def test_a_variable_that_no_panel_has_is_refused_when_the_panel_is_made():
    """By its name, with those that there are; by hand the same critic works."""
    critic = Critic(Scripted(), HELPFUL, "{output} {tone}")
    wanted = r"judge 'Scripted/helpfulness': prompt_template uses \{tone\}, .*\{criterion\}, \{output\}"
    for judge in (critic, JudgeSpec(critic)):
        with pytest.raises(ArgumentError, match=wanted):
            CriterionGrader(judges=[judge])
    assert critic("x", tone="dry").rating == 4


def test_a_format_that_no_text_has_is_refused_when_the_panel_is_made():
    """A number of the critic's own may have one."""
    with pytest.raises(
        ArgumentError, match=r"\{output:\.2f\} cannot format 'text'.* in a panel, every variable is text"
    ):
        CriterionGrader(judges=[Critic(Scripted(), HELPFUL, "{output:.2f}")])
    evaluator = Scripted()
    grader = CriterionGrader(
        judges=[Critic(evaluator, HELPFUL, "{output:>3} {reference:.2f}", reference=0.5)]
    )
    Rubric([HELPFUL]).grade_sync("x", grader)
    assert evaluator.content == "  x 0.50"


@in_loop
async def test_a_template_that_does_not_suit_a_request_is_the_critics_failure():
    """A failed vote on that item, not a broken run."""
    critic = Critic(Scripted(), HELPFUL, "{reference:.2f}", reference=0.5)
    with pytest.raises(JudgeError, match=r"'Scripted/helpfulness': .*\{reference:\.2f\} cannot format"):
        await critic.ask(request_for(HELPFUL, "x", reference_submission="a text"))


def test_critics_of_one_evaluator_have_names_of_their_own():
    """Evaluator and criterion; the same critic twice needs another judge_id."""
    evaluator = Scripted()
    polite = binary("polite")
    critics = [Critic(evaluator, HELPFUL), Critic(evaluator, polite)]
    members = CriterionGrader(judges=critics).members
    assert [member.judge_id for member in members] == ["Scripted/helpfulness", "Scripted/polite"]
    twice = [critics[0], Critic(evaluator, HELPFUL, "{output}")]
    with pytest.raises(ArgumentError, match="must be unique; repeated: Scripted/helpfulness"):
        CriterionGrader(judges=twice)
    CriterionGrader(judges=[critics[0], JudgeSpec(twice[1], "plain")])
