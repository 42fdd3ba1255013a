"""A critic in a panel, and judges and models as evaluators."""

from __future__ import annotations

from typing import Any

import pytest

from autorubric import CriterionGrader, JudgeReply, JudgeSpec, LexicalJudge, Rubric
from autorubric.criteria import (
    Answer,
    BaseCriterion,
    ComparativeCriterion,
    LikertCriterion,
    LikertItem,
    PassFailCriterion,
)
from autorubric.criteria.declaration import object_schema
from autorubric.errors import JudgeError, ReplyError, TokenUsage
from autorubric.judges import Critic, Judge, Prompt
from autorubric.llm import LLMClient, LLMConfig
from tests.criteria.kinds import Warmth
from tests.doubles import (
    ScriptedTransport,
    TableJudge,
    binary,
    choice,
    in_loop,
    model_judge,
    model_reply,
    request_for,
)
from tests.judges.evaluators import GOOD, HELPFUL, Scripted, ScriptedAsync, made_by

PLAIN = "{criterion}|{output}|{input}|{reference}|{context}"


def over(*script: Any, criterion: BaseCriterion = HELPFUL, **fields: Any) -> tuple[Critic, ScriptedTransport]:
    """A critic whose model answers from a script."""
    transport = ScriptedTransport(list(script))
    client = LLMClient(LLMConfig(model="openai/double", max_retries=0), transport=transport)
    return Critic(client, criterion, **fields), transport


# Models


def test_a_model_is_asked_with_the_prompt_and_the_wire_schema():
    """One user message, and the criterion's schema without names."""
    critic, transport = over(GOOD, prompt_template="{output}!")
    assert critic("x").rating == 4
    (request,) = transport.requests
    assert [(one.role, one.content) for one in request.messages] == [("user", "x!")]
    assert request.schema is not None
    fields = dict(HELPFUL.wire_schema["properties"])
    del fields["cannot_assess"]
    assert request.schema.schema == object_schema(fields)
    assert request.schema.strict
    assert transport.closed == 1


def test_an_unreadable_reply_is_asked_for_again():
    """Twice at most; then the error has all replies and what they took."""
    critic, transport = over("nonsense", {"rating": 9, "explanation": "x"}, GOOD)
    assert critic("x").rating == 4
    assert "could not be used" in transport.prompts[1]
    critic, transport = over(*["nonsense"] * 3)
    with pytest.raises(ReplyError) as caught:
        critic("x")
    assert caught.value.replies == ("nonsense",) * 3
    assert caught.value.usage is not None
    assert caught.value.cost == pytest.approx(0.03)


def test_a_batch_of_another_length_is_asked_for_again():
    """The model is told both numbers."""
    critic, transport = over({"evaluations": [GOOD]}, {"evaluations": [GOOD, GOOD]})
    assert len(critic.batch_forward(["a", "b"]).evaluations) == 2
    assert "2 outputs and 1 evaluations" in transport.prompts[1]
    schema = transport.requests[0].schema
    assert schema is not None
    assert list(schema.schema["properties"]["evaluations"]["items"]["properties"]) == [
        "explanation",
        "rating",
    ]


def test_refusals_and_abstentions_of_a_model_are_reply_errors():
    """They are not asked for again, and carry what was spent."""
    for script in (model_reply("", refusal="I will not."), {"cannot_assess": True, "reason": "no basis"}):
        critic, transport = over(script)
        with pytest.raises(ReplyError, match=r"I will not|no basis") as caught:
            critic("x")
        assert len(transport.requests) == 1
        assert caught.value.usage == TokenUsage(prompt_tokens=10, completion_tokens=2, total_tokens=12)
        assert caught.value.messages[0][0] == "user"


def test_a_model_over_http(openai_server):
    """Schema, name and reading as over any transport."""
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base, api_key="k")
    evaluation = Critic(config, HELPFUL)("The answer is 42.", input="What is six times seven?")
    assert made_by(HELPFUL.evaluation_schema, evaluation)
    assert 1 <= evaluation.rating <= 5
    (seen,) = openai_server.log()
    wanted = seen["body"]["response_format"]["json_schema"]
    assert wanted["strict"] is True
    assert "criterion_name" not in wanted["schema"]["properties"]
    assert "The answer is 42." in seen["body"]["messages"][0]["content"]


def test_a_batch_over_http_with_a_bad_reply_first(openai_server):
    """Asked again in the same conversation, then in order."""
    ratings = [{"rating": one, "explanation": ""} for one in (2, 5)]
    openai_server.script(
        {"do": "answer", "content": "hm"}, {"do": "answer", "payload": {"evaluations": ratings}}
    )
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base, api_key="k")
    batch = Critic(config, HELPFUL).batch_forward(["a", "b"])
    assert [one.rating for one in batch.evaluations] == [2, 5]
    assert len(openai_server.log()) == 2


@in_loop
async def test_a_model_over_http_awaited(openai_server):
    """Async calls, and a sync one in the midst of the loop."""
    critic = Critic(LLMConfig(model="openai/m", api_base=openai_server.api_base, api_key="k"), HELPFUL)
    one, other = await critic.aforward("x"), critic("x")
    assert one == other
    await critic.aforward("y")


# Judges


def test_a_judge_as_evaluator_asks_in_its_own_words():
    """It gets the request that a grader would make, one for each output."""
    judge = TableJudge({"helpfulness": {"rating": 3, "explanation": "so"}})
    critic = Critic(judge, HELPFUL)
    assert critic("x", input="q", reference="r", context="c").rating == 3
    asked = judge.asked[0]
    assert (asked.submission.text, asked.query, asked.reference_submission) == ("x", "q", "r")
    assert (asked.guidelines, asked.criterion) == ("c", HELPFUL)
    batch = critic.batch_forward(["a", "b"], inputs=["p", None])
    assert len(batch.evaluations) == 2
    assert [(one.submission.text, one.query) for one in judge.asked[1:]] == [("a", "p"), ("b", None)]
    assert critic.judge_id == "table/helpfulness"


def test_a_model_judge_as_evaluator():
    """Its own prompt goes out."""
    judge, transport = model_judge([{"rating": 5, "explanation": "e"}])
    assert Critic(judge, HELPFUL)("x").rating == 5
    assert "careful, impartial judge" in transport.requests[0].messages[0].content


@pytest.mark.parametrize(
    ("criterion", "reply", "fields"),
    [
        (binary("claim"), JudgeReply(answer="MET", reason="r"), {"verdict": "MET", "reason": "r"}),
        (choice("scale"), JudgeReply(answer="fair"), {"label": "fair", "reason": ""}),
        (Warmth(name="w"), JudgeReply(answer=6), {"rating": 6, "explanation": ""}),
        (
            Warmth(name="w"),
            JudgeReply(answer=Answer(code=2, value=0.2), reason="cold"),
            {"rating": 2, "explanation": "cold"},
        ),
    ],
)
def test_bare_answers_of_judges_become_evaluations(criterion, reply, fields):
    """The answer in its field, the reason in its text."""
    found = Critic(TableJudge({criterion.name: reply}), criterion)("x")
    assert found.model_dump() == {"criterion_name": criterion.name, **fields}


def test_judges_without_an_answer():
    """An abstention, a row that is not there, an error and an answer that does not fit."""
    for reply, kind in (
        (None, ReplyError),
        (JudgeReply(answer=None, asked=False), ReplyError),
        (JudgeError("down"), JudgeError),
        (JudgeReply(answer=Answer(code=2, value=0.2, evaluation={"rating": 99})), ReplyError),
    ):
        with pytest.raises(kind):
            Critic(TableJudge({"helpfulness": reply}), HELPFUL)("x")


# In a panel


def test_a_critic_is_a_judge():
    """It sits in a panel beside others and votes on its own criterion; on another it was not asked."""
    critic = Critic(Scripted(), HELPFUL, PLAIN)
    assert isinstance(critic, Judge)
    rubric = Rubric([HELPFUL, binary("polite")])
    grader = CriterionGrader(judges=[critic, TableJudge({"helpfulness": 2, "polite": "MET"})])
    report = rubric.grade_sync("text", grader, query="q")
    helpful, polite = report.report
    assert [(vote.judge_id, vote.status, vote.answer) for vote in helpful.votes] == [
        ("Scripted/helpfulness", "answered", 4),
        ("table", "answered", 2),
    ]
    assert helpful.votes[0].reason == "Good"
    assert [vote.status for vote in polite.votes] == ["not_asked", "answered"]
    assert report.score is not None


@in_loop
async def test_what_a_critic_in_a_panel_fills_in():
    """Text, query, reference and guidelines of the request; its own reference where there is none."""
    evaluator = Scripted()
    critic = Critic(evaluator, HELPFUL, PLAIN, reference="own")
    request = request_for(HELPFUL, "text", query="q", reference_submission="r", guidelines="g")
    assert (await critic.ask(request)).answer.code == 4
    assert evaluator.content == f"{HELPFUL.render()}|text|q|r|g"
    await critic.ask(request_for(HELPFUL, "text"))
    assert evaluator.content == f"{HELPFUL.render()}|text||own|"


@in_loop
async def test_a_critic_knows_its_criterion_by_what_it_asks():
    """Weights and a name that a rubric gave do not matter; the same name on another question is an error."""
    critic = Critic(Scripted(), HELPFUL)
    heavier = HELPFUL.model_copy(update={"weight": 3.0})
    assert (await critic.ask(request_for(heavier))).asked
    nameless = LikertCriterion(
        requirement="How?", scale=[LikertItem(val=1, description="a"), LikertItem(val=5, description="b")]
    )
    assert (await Critic(Scripted(), nameless).ask(request_for(nameless.with_name("criterion_1")))).asked
    assert not (await critic.ask(request_for(binary()))).asked
    with pytest.raises(JudgeError, match="a different criterion with the same name 'helpfulness'"):
        await critic.ask(request_for(binary("helpfulness")))


@in_loop
async def test_what_its_evaluator_raises_is_the_critics_failure():
    """A failed vote, not a broken run."""

    def fail(prompt: Prompt) -> str:
        raise KeyError("gone")

    def stop(prompt: Prompt) -> str:
        raise StopIteration

    for evaluator, said in ((fail, "raised KeyError"), (stop, "raised StopIteration")):
        with pytest.raises(JudgeError, match=said):
            await Critic(evaluator, HELPFUL).ask(request_for(HELPFUL))
    with pytest.raises(ReplyError):
        await Critic(Scripted(["no"]), HELPFUL).ask(request_for(HELPFUL))


def test_abstentions_in_a_panel_are_abstentions():
    """Not failures, as for any judge."""
    critic = Critic(ScriptedAsync({"cannot_assess": True, "reason": "no basis"}), HELPFUL)
    report = Rubric([HELPFUL]).grade_sync("text", CriterionGrader(judges=[critic]))
    (vote,) = report.report[0].votes
    assert (vote.status, vote.reason) == ("abstained", "no basis")


def test_a_model_critic_in_a_panel():
    """Samples are different requests, and what was spent stands in the votes."""
    critic, transport = over(GOOD, {**GOOD, "rating": 2})
    grader = CriterionGrader(judges=[JudgeSpec(critic, "gpt", samples=2)])
    report = Rubric([HELPFUL]).grade_sync("text", grader)
    votes = report.report[0].votes
    assert [vote.answer for vote in votes] == [4, 2]
    assert [request.sample for request in transport.requests] == [0, 1]
    assert {
        request.schema.schema == HELPFUL.wire_schema for request in transport.requests if request.schema
    } == {True}
    assert votes[0].token_usage is not None
    assert votes[0].model == "double"
    assert critic.judge_id == "openai/double/helpfulness"


def test_comparisons_in_a_panel_are_shown_in_both_orders():
    """Each order a vote, answers mapped back to names."""
    better = ComparativeCriterion(name="better", requirement="Which answers?")
    evaluator = Scripted([{"winner": "A", "explanation": ""}])
    critic = Critic(evaluator, better, "{output}")
    report = Rubric([better]).grade_sync({"x": "one", "y": "two"}, CriterionGrader(judges=[critic]))
    votes = report.report[0].votes
    assert [vote.answer for vote in votes] == ["x", "y"]
    assert sorted(prompt.content for prompt in evaluator.prompts) == [
        "Candidate A:\none\n\nCandidate B:\ntwo",
        "Candidate A:\ntwo\n\nCandidate B:\none",
    ]


def named_evaluator(prompt: Prompt) -> Any:
    """An evaluator with a name."""
    return GOOD


def test_descriptions_say_what_votes_depend_on():
    """Evaluator, criterion, template and reference; nothing secret."""
    keyed = Critic(LLMConfig(model="m", api_key="sk-very-secret"), HELPFUL, PLAIN, "r").describe()
    assert (keyed["model"], keyed["prompt_template"], keyed["reference"]) == ("m", PLAIN, "r")
    assert "sk-very-secret" not in repr(keyed)
    assert "named_evaluator" in str(Critic(named_evaluator, HELPFUL).describe()["evaluator"])
    assert Critic(LexicalJudge(), HELPFUL).describe()["critic"] == HELPFUL.vote_fields()
    assert "TableJudge" in str(Critic(TableJudge({}), HELPFUL).describe()["evaluator"])
    assert Critic(named_evaluator, HELPFUL).judge_id == "named_evaluator/helpfulness"
    assert Critic(named_evaluator, PassFailCriterion(requirement="r")).judge_id == "named_evaluator"
