"""Critics of every kind of criterion: evaluations, references, forms of an output, comparisons."""

from __future__ import annotations

import re

import pytest

from autorubric.criteria import (
    AnalyticRubricCriterion,
    ChecklistCriterion,
    ComparativeCriterion,
    HolisticRubricCriterion,
    NarrativeCriterion,
    NumericalRatingCriterion,
    RubricDimension,
    RubricLevel,
    Submission,
)
from autorubric.errors import ArgumentError, ReplyError
from autorubric.judges import Critic
from tests.criteria.kinds import KINDS, REPLIES
from tests.doubles import binary, choice
from tests.judges.evaluators import GOOD, HELPFUL, Scripted, made_by


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
    """Without one, or with blanks, the error says so before anyone is asked; the critic's own will do."""
    relative = NumericalRatingCriterion(name="n", mode="relative_to_target")
    evaluator = Scripted([{"score": 7, "explanation": "near"}])
    for own, given in ((None, None), ("", None), (" \n", None), (None, " ")):
        with pytest.raises(ArgumentError, match="requires a reference; pass reference="):
            Critic(evaluator, relative, reference=own)("x", reference=given)
    assert not evaluator.prompts
    assert Critic(evaluator, relative, reference="target")("x").score == 7.0
    assert "The reference is the target" in evaluator.content


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_reference_is_none(blank):
    """No empty delimiters are shown for it, whoever gives it."""
    evaluator = Scripted()
    Critic(evaluator, HELPFUL)("x", reference=blank)
    Critic(evaluator, HELPFUL, reference=blank)("x")
    assert [prompt.content.count("<reference-") for prompt in evaluator.prompts] == [0, 0]


def test_thinking_is_material_apart_from_the_output():
    """`{output}` is the text alone; the default template shows both, delimited."""
    evaluator = Scripted()
    Critic(evaluator, HELPFUL, "{output}")({"thinking": "hm", "output": "x"})
    assert evaluator.content == "x"
    for given in ({"thinking": "hm", "output": "x"}, Submission(text="x", thinking="hm")):
        Critic(evaluator, HELPFUL)(given)
        shown = re.findall(r"<(thinking|submission)-\w{16}>\n(.*)\n</", evaluator.content)
        assert shown == [("thinking", "hm"), ("submission", "x")]
        assert "{'" not in evaluator.content
    several = Scripted([{"evaluations": [GOOD, GOOD]}])
    Critic(several, HELPFUL).batch_forward([{"thinking": "hm", "output": "x"}, "y"])
    numbered = re.findall(r'<(thinking|submission)-\w{16} name="(\d)">', several.content)
    assert numbered == [("thinking", "1"), ("submission", "1"), ("submission", "2")]


def test_a_conversation_is_shown_as_one():
    """As a grader shows it; other data as they are."""
    evaluator = Scripted()
    critic = Critic(evaluator, HELPFUL, "{output}")
    critic([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}])
    assert evaluator.content == "user:\n  Hi\nassistant:\n  Ho"
    critic({"answer": [1, 2]})
    assert evaluator.content == "{'answer': [1, 2]}"


def test_a_faulty_form_of_an_output_is_told():
    """Thinking and output are texts."""
    with pytest.raises(ArgumentError, match=r"output: .*'thinking'"):
        Critic(Scripted(), HELPFUL)({"thinking": 5, "output": "x"})


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


@pytest.mark.parametrize(
    "output", ["first: …, second: …", None, {"alone": "x"}, {"thinking": "t", "output": "x"}, 7], ids=str
)
def test_nothing_to_compare_is_refused(output):
    """A plain text, a lone candidate, nothing: nobody is asked, single or in a batch."""
    evaluator = Scripted()
    critic = Critic(evaluator, COMPARISON)
    with pytest.raises(ArgumentError, match=r"exactly two|output: "):
        critic(output)
    with pytest.raises(ArgumentError, match=r"exactly two|output: "):
        critic.batch_forward([output])
    assert not evaluator.prompts
