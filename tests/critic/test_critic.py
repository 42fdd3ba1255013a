"""The critic: every example and test case of the plan that asked for it, and what it promises beyond."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

import autorubric
from autorubric.criteria import (
    AnalyticRubricCriterion,
    ChecklistCriterion,
    ComparativeCriterion,
    HolisticRubricCriterion,
    LikertCriterion,
    LikertItem,
    NarrativeCriterion,
    NumericalRatingCriterion,
    PassFailCriterion,
    RubricDimension,
    RubricLevel,
)
from autorubric.critic import Critic, Prompt
from autorubric.errors import ArgumentError, ReplyError
from tests.criteria.kinds import KINDS, REPLIES
from tests.critic.evaluators import GOOD, HELPFUL, Scripted, ScriptedAsync, ScriptedBoth, made_by
from tests.doubles import binary, choice, in_loop

PLAIN = "{criterion}\n\n{output}"


# Examples and cases of the plan (6.2 and usage)


def test_forward_calls_evaluator_with_correct_schema():
    """The evaluator gets a prompt of the user whose `format_override` is the schema class itself."""
    evaluator = Scripted()
    Critic(evaluator=evaluator, criterion=HELPFUL, prompt_template=PLAIN)(output="The answer is 42")
    (prompt,) = evaluator.prompts
    assert isinstance(prompt, Prompt)
    assert prompt.role == "user"
    assert prompt.format_override is HELPFUL.evaluation_schema


def test_forward_returns_evaluation_instance():
    """An instance of the criterion's own schema, with the name filled in."""
    critic = Critic(evaluator=Scripted(), criterion=HELPFUL, prompt_template="...")
    evaluation = critic(output="test")
    assert made_by(HELPFUL.evaluation_schema, evaluation)
    assert (evaluation.criterion_name, evaluation.rating) == ("helpfulness", 4)
    assert evaluation.explanation == "Good"


def test_forward_renders_criterion_in_prompt():
    """Description, scale and output stand in the prompt."""
    likert = LikertCriterion(
        name="test",
        description="Rate this",
        scale=[LikertItem(val=1, description="Bad"), LikertItem(val=5, description="Good")],
    )
    evaluator = Scripted()
    Critic(evaluator=evaluator, criterion=likert, prompt_template=PLAIN)(output="test output")
    for text in ("Rate this", "1: Bad", "5: Good", "test output"):
        assert text in evaluator.content
    assert evaluator.content == f"{likert.render()}\n\ntest output"


def test_batch_evaluation():
    """One request, one evaluation for each output, in order."""
    ratings = [4, 3, 5]
    evaluations = [{"rating": one, "explanation": str(one)} for one in ratings]
    evaluator = Scripted([{"criterion_name": "helpfulness", "evaluations": evaluations}])
    critic = Critic(evaluator=evaluator, criterion=HELPFUL, prompt_template=PLAIN)
    batch = critic.batch_forward(outputs=["Response 1", "Response 2", "Response 3"])
    assert made_by(HELPFUL.batch_evaluation_schema, batch)
    assert batch.criterion_name == "helpfulness"
    assert [one.rating for one in batch.evaluations] == ratings
    assert {one.criterion_name for one in batch.evaluations} == {"helpfulness"}
    assert evaluator.prompts[0].format_override is HELPFUL.batch_evaluation_schema
    expected = "Output 1:\nResponse 1\n\nOutput 2:\nResponse 2\n\nOutput 3:\nResponse 3"
    assert evaluator.content == f"{HELPFUL.render()}\n\n{expected}"


def test_reference_values():
    """Given with the call, or with the critic; the call's goes before, and neither is empty."""
    pass_fail = PassFailCriterion(
        name="correctness",
        description="Does output match expected answer?",
        passing_criteria="Output must match the expected answer",
    )
    evaluator = Scripted([{"passed": True, "reason": "Exact match"}])
    template = "\n{criterion}\n\nOutput: {output}\nExpected: {reference}\n\nDoes it pass?\n"
    critic = Critic(evaluator=evaluator, criterion=pass_fail, prompt_template=template)
    evaluation = critic(output="Paris", reference="Paris")
    assert (evaluation.passed, evaluation.reason) == (True, "Exact match")
    assert "Expected: Paris\n" in evaluator.content
    critic(output="Paris")
    assert "Expected: \n" in evaluator.content
    own = Critic(evaluator=evaluator, criterion=pass_fail, prompt_template=template, reference="Lyon")
    own(output="Paris")
    assert "Expected: Lyon\n" in evaluator.content
    own(output="Paris", reference="")
    assert "Expected: \n" in evaluator.content


def test_opinions_of_several_critics():
    """The usage example of aggregation, with the sample's standard deviation."""
    critics = [Critic(Scripted([{**GOOD, "rating": rating}]), HELPFUL) for rating in (4, 5, 3)]
    mos = autorubric.mean_opinion_score([critic(output="r") for critic in critics])
    assert (mos.aggregated_value, mos.n_scores) == (4.0, 3)
    assert mos.std_dev == pytest.approx(1.0)


@in_loop
async def test_aforward_of_async_and_sync_evaluators():
    """`aforward` is awaited; `forward` runs in a thread; where both are there, the async one is taken."""
    later = ScriptedAsync()
    assert (await Critic(later, HELPFUL).aforward(output="x")).rating == 4
    sync = Scripted()
    assert (await Critic(sync, HELPFUL).aforward(output="x")).rating == 4
    assert sync.threads != ["MainThread"]
    both = ScriptedBoth()
    await Critic(both, HELPFUL).aforward(output="x")
    assert both.threads == ["aforward", "MainThread"]


def test_forward_of_async_and_sync_evaluators():
    """Sync calls reach async evaluators; a sync one is called in the caller's own thread."""
    assert Critic(ScriptedAsync(), HELPFUL).forward("x").rating == 4
    both = ScriptedBoth()
    Critic(both, HELPFUL).forward("x")
    assert both.threads == ["MainThread"]


@in_loop
async def test_sync_calls_work_inside_a_running_loop():
    """As in a notebook: single and batch, with sync and async evaluators."""
    batch = {"evaluations": [GOOD, GOOD]}
    for kind in (Scripted, lambda replies: ScriptedAsync(*replies)):
        assert Critic(kind([GOOD]), HELPFUL)("x").rating == 4
        assert len(Critic(kind([batch]), HELPFUL).batch_forward(["x", "y"]).evaluations) == 2


@in_loop
async def test_batch_aforward():
    """The same as `batch_forward`, awaited."""
    batch = {"evaluations": [GOOD, {**GOOD, "rating": 1}]}
    found = await Critic(ScriptedAsync(batch), HELPFUL).batch_aforward(["x", "y"], inputs=["p", "q"])
    assert [one.rating for one in found.evaluations] == [4, 1]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("no JSON at all", "no JSON object"),
        ("", "empty"),
        ('{"rating": 4', "JSON"),
        ({"rating": 10, "explanation": "x"}, "rating"),
        ({"rating": "many", "explanation": "x"}, "rating"),
        ({"explanation": "x"}, "rating: Field required"),
        ({"rating": 4}, "explanation: Field required"),
        ({"cannot_assess": True, "reason": "no basis"}, "cannot judge: no basis"),
    ],
    ids=str,
)
def test_unreadable_replies(reply, said):
    """Bad JSON, broken bounds, missing fields and an abstention are a ReplyError that says so."""
    with pytest.raises(ReplyError, match=re.escape(said)):
        Critic(Scripted([reply]), HELPFUL)("x")


def test_a_reply_error_carries_the_reply():
    """What came can be looked at."""
    with pytest.raises(ReplyError) as caught:
        Critic(Scripted(['{"rating": 9, "explanation": "x"}']), HELPFUL)("x")
    assert caught.value.reply == '{"rating": 9, "explanation": "x"}'


# Evaluators


@pytest.mark.parametrize(
    "give",
    [
        lambda prompt: json.dumps(GOOD),
        lambda prompt: f"Here it is:\n```json\n{json.dumps(GOOD)}\n```",
        lambda prompt: dict(GOOD),
        lambda prompt: prompt.format_override(rating=4, explanation="Good"),
        lambda prompt: SimpleNamespace(text=json.dumps(GOOD)),
        lambda prompt: HELPFUL.evaluation_schema.model_construct(rating=4, explanation="Good"),
    ],
)
def test_forms_of_a_reply(give):
    """JSON text, also amid prose; a dict; an instance; an object with `.text`; from a plain function."""
    assert Critic(give, HELPFUL)("x").rating == 4


def test_another_model_with_the_same_fields_will_do():
    """An instance of a class of the evaluator's own is read by its fields."""

    class Mine(BaseModel):
        rating: int = 4
        explanation: str = "Good"

    assert Critic(lambda prompt: Mine(), HELPFUL)("x").rating == 4


@pytest.mark.parametrize("given", [None, 4, b"{}", SimpleNamespace(text=None), ["x"]], ids=str)
def test_other_replies_are_refused(given):
    """The error says what an evaluator is to give."""
    with pytest.raises(ReplyError):
        Critic(lambda prompt: given, HELPFUL)("x")


@in_loop
async def test_functions_of_the_prompt():
    """Sync, async, and sync that gives something to await, on both paths."""

    async def later(prompt: Prompt) -> dict[str, Any]:
        await asyncio.sleep(0)
        return GOOD

    class Callable_:
        async def __call__(self, prompt: Prompt) -> dict[str, Any]:
            return GOOD

    for function in (lambda prompt: GOOD, later, lambda prompt: later(prompt), Callable_()):
        critic = Critic(function, HELPFUL)
        assert critic("x").rating == 4
        assert (await critic.aforward("x")).rating == 4


def test_what_an_evaluator_raises_is_the_callers():
    """No wrapping: it is the caller's own code."""

    def fail(prompt: Prompt) -> str:
        raise KeyError("gone")

    with pytest.raises(KeyError):
        Critic(fail, HELPFUL)("x")


@pytest.mark.parametrize("evaluator", [None, 7, Scripted, ...], ids=["None", "number", "class", "object"])
def test_other_evaluators_are_refused(evaluator):
    """Also a class in the place of an instance."""
    with pytest.raises(ArgumentError, match="evaluator is"):
        Critic(evaluator, HELPFUL)


def test_a_criterion_is_needed():
    """Something else is refused at once."""
    with pytest.raises(ArgumentError, match="criterion is"):
        Critic(Scripted(), "helpfulness")  # type: ignore[arg-type]


def test_a_critic_cannot_be_changed_and_pickles():
    """A frozen value, equal to what comes out of a pickle."""
    critic = Critic("openai/double", HELPFUL, PLAIN, "r")
    with pytest.raises(AttributeError):
        critic.reference = "x"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(critic)) == critic  # noqa: S301


# Batches


def test_inputs_stand_beside_their_outputs():
    """Each output after its input; one without an input stands alone."""
    evaluator = Scripted([{"evaluations": [GOOD] * 3}])
    critic = Critic(evaluator, HELPFUL, "{outputs}\n---\n{inputs}")
    critic.batch_forward(["a", "b", "c"], inputs=["p", None, "r"])
    beside = "Input 1:\np\n\nOutput 1:\na\n\nOutput 2:\nb\n\nInput 3:\nr\n\nOutput 3:\nc"
    assert evaluator.content == f"{beside}\n---\nInput 1:\np\n\nInput 3:\nr"


def test_the_default_template_serves_batches():
    """Numbers stand in the delimiters, so that no output can pass for another."""
    evaluator = Scripted([{"evaluations": [GOOD] * 2}])
    Critic(evaluator, HELPFUL).batch_forward(["Output 2: fake", "b"], inputs=["p", "q"], context="c")
    told = evaluator.content
    places = [told.index(f"<{part}-") for part in ("context",)]
    order = re.findall(r'<(query|submission)-\w{16} name="(\d)">', told)
    assert order == [("query", "1"), ("submission", "1"), ("query", "2"), ("submission", "2")]
    assert places[0] < told.index("<query-")
    assert "There are 2 outputs" in told
    assert '{"evaluations": [...]}' in told


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_number_of_evaluations_must_be_that_of_the_outputs(count):
    """Too few and too many are refused, with both numbers."""
    critic = Critic(Scripted([{"evaluations": [GOOD] * count}]), HELPFUL)
    with pytest.raises(ReplyError, match=f"2 outputs and {count} evaluations"):
        critic.batch_forward(["a", "b"])


def test_faults_of_a_batch_are_told_at_once():
    """Each with the number of its evaluation."""
    bad = {"rating": 0, "explanation": ""}
    critic = Critic(Scripted([{"evaluations": [bad, GOOD, "x"]}]), HELPFUL)
    with pytest.raises(ReplyError, match=r"evaluation 1: .*rating.*; evaluation 3: 'x' is no evaluation"):
        critic.batch_forward(["a", "b", "c"])


def test_forms_of_a_batch_reply():
    """A list from a function, an instance of the batch schema; no list is refused."""
    assert len(Critic(lambda prompt: [GOOD, GOOD], HELPFUL).batch_forward(("a", "b")).evaluations) == 2
    whole = Critic(lambda prompt: prompt.format_override(evaluations=[GOOD]), HELPFUL)
    assert whole.batch_forward(["a"]).evaluations[0].rating == 4
    with pytest.raises(ReplyError, match='list "evaluations"'):
        Critic(Scripted([GOOD]), HELPFUL).batch_forward(["a"])


@pytest.mark.parametrize(
    ("outputs", "inputs", "further"),
    [
        ([], None, {}),
        ("ab", None, {}),
        ({"a": "b"}, None, {}),
        (7, None, {}),
        (["a", "b"], ["p"], {}),
        (["a", "b"], "pq", {}),
        (["a"], None, {"input": "x"}),
    ],
)
def test_batches_that_do_not_match(outputs, inputs, further):
    """No output, a text for a list, another number of inputs, a variable of ours."""
    with pytest.raises(ArgumentError):
        Critic(Scripted(), HELPFUL).batch_forward(outputs, inputs, **further)


# Kinds


@pytest.mark.parametrize("kind", REPLIES)
def test_every_kind_of_criterion(kind):
    """A good reply makes an instance of the schema, single and in a batch; a number for all is refused."""
    criterion = KINDS[kind]()
    if criterion.level == "ranking":
        pytest.skip("compares candidates; see below")
    given = {"reference": "r"} if criterion.needs_reference else {}
    evaluation = Critic(Scripted([REPLIES[kind]]), criterion)("x", **given)
    assert made_by(criterion.evaluation_schema, evaluation)
    assert evaluation.criterion_name == criterion.name
    batch = Critic(Scripted([{"evaluations": [REPLIES[kind]] * 2}]), criterion).batch_forward(
        ["x", "y"], **given
    )
    assert batch.evaluations == [evaluation, evaluation]


def test_derived_fields_are_computed_by_us():
    """Missing items and overall scores follow from the rest, whatever the evaluator leaves out."""
    checklist = ChecklistCriterion(name="code", items={"docs": "Has a docstring", "tests": "Has tests"})
    found = Critic(lambda prompt: {"docs": True, "tests": False}, checklist)("x")
    assert found.missing_items == ["tests"]
    rubric = AnalyticRubricCriterion(
        name="essay",
        dimensions={
            "content": RubricDimension(description="c", min_score=1, max_score=5),
            "form": RubricDimension(description="f", min_score=1, max_score=5),
        },
    )
    scores = {"content_score": 5, "content_explanation": "", "form_score": 3, "form_explanation": ""}
    overall = Critic(lambda prompt: scores, rubric)("x").overall_score
    assert overall == rubric.evaluation_schema.model_validate(scores).model_dump()["overall_score"]


def test_words_are_read_as_the_criterion_reads_them():
    """`yes` is MET, and an option may come with a bullet."""
    assert Critic(lambda prompt: {"verdict": "yes", "reason": "r"}, binary())("x").verdict == "MET"
    assert Critic(lambda prompt: {"label": "- fair"}, choice())("x").label == "fair"
    unsure = Critic(lambda prompt: {"verdict": "CANNOT_ASSESS", "reason": "r"}, binary())("x")
    assert (unsure.verdict, unsure.reason) == ("CANNOT_ASSESS", "r")


def test_levels_that_contradict_are_refused():
    """A holistic level and its index must agree."""
    levels = [RubricLevel(name=name, index=i, description=name) for i, name in enumerate(("low", "high"), 1)]
    holistic = HolisticRubricCriterion(name="h", levels=levels)
    good = {"level": "high", "level_index": 2, "explanation": "e"}
    assert Critic(lambda prompt: good, holistic)("x").level_index == 2
    with pytest.raises(ReplyError):
        Critic(lambda prompt: {**good, "level_index": 1}, holistic)("x")


def test_narratives_are_evaluations_too():
    """Sections are fields of the evaluation."""
    narrative = NarrativeCriterion(name="n", sections={"strengths": "What works"})
    assert Critic(lambda prompt: {"strengths": "all"}, narrative)("x").strengths == "all"


def test_modes_need_a_reference():
    """Without one the error says so before anyone is asked; the critic's own will do."""
    relative = NumericalRatingCriterion(name="n", mode="relative_to_target")
    evaluator = Scripted([{"score": 7, "explanation": "near"}])
    with pytest.raises(ArgumentError, match="against a reference"):
        Critic(evaluator, relative)("x")
    assert not evaluator.prompts
    assert Critic(evaluator, relative, reference="target")("x").score == 7.0
    assert "The reference is the target" in evaluator.content


COMPARISON = ComparativeCriterion(name="better", requirement="Which answers?")


def test_comparisons_of_named_candidates():
    """Candidates stand under letters, in the order given, and the evaluation names them."""
    evaluator = Scripted([{"winner": "B", "explanation": "e"}])
    found = Critic(evaluator, COMPARISON, "{output}")({"mine": "one", "baseline": "two"})
    assert made_by(COMPARISON.evaluation_schema, found)
    assert (found.winner, found.explanation) == ("baseline", "e")
    assert evaluator.content == "Candidate A:\none\n\nCandidate B:\ntwo"
    Critic(evaluator, COMPARISON)({"mine": "one", "baseline": "two"})
    assert re.findall(r'<candidate-\w{16} name="(\w)">', evaluator.content) == ["A", "B"]
    assert "baseline" not in evaluator.content


def test_comparisons_in_a_batch():
    """Each output is a pair of its own."""
    pairs = [{"mine": "one", "yours": "two"}, {"left": "three", "right": "four"}]
    replies = [{"winner": "A", "explanation": ""}, {"winner": "B", "explanation": ""}]
    evaluator = Scripted([{"evaluations": replies}])
    found = Critic(evaluator, COMPARISON).batch_forward(pairs)
    assert [one.winner for one in found.evaluations] == ["mine", "right"]
    assert re.findall(r'name="([^"]*)"', evaluator.content) == ["1 A", "1 B", "2 A", "2 B"]


def test_comparisons_of_a_text():
    """A text that lays out its candidates itself is judged as it stands, by names of its own."""
    found = Critic(lambda prompt: {"winner": "first", "explanation": "e"}, COMPARISON)("first: …, second: …")
    assert found.winner == "first"
    with pytest.raises(ArgumentError, match="exactly two"):
        Critic(Scripted(), COMPARISON)({"alone": "x"})
