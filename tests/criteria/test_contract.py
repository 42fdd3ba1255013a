"""The criterion contract, over every kind."""

from __future__ import annotations

import json
import pickle
import random
import warnings
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from autorubric.criteria import Answer, BaseCriterion, Criterion, Submission
from autorubric.criteria.base import criterion_from_dict, criterion_to_dict
from autorubric.errors import ReplyError
from autorubric.grading import CriterionGrader
from autorubric.judges.prompts import Material, PromptQuestion, compose, compose_batch
from autorubric.rubric import Rubric
from tests.criteria.kinds import KINDS, REPLIES, TO_GRADE
from tests.doubles import TableJudge, in_loop

SUBMISSION = Submission(text="a text")
WITHOUT_VALUE = ("choice", "dict", "list", "text", "narrative", "narrative in sections")

every_kind = pytest.mark.parametrize("kind", KINDS)
kinds = st.sampled_from(list(KINDS))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["MET", "unmet", "fair", "Good", "does not apply", "CANNOT_ASSESS", "warm", "1", "7"]),
)
keys = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            *("verdict", "label", "reason", "cannot_assess", "rating", "share", "polite", "why", "tone"),
            *("counts", "findings", "form", "content", "explanation", "remark", "criterion_name"),
            *("passed", "score", "has_tests", "missing_items", "content_score", "overall_score", "level"),
            *("level_index", "narrative", "strengths", "winner", "margin", "ranking", "best"),
        ]
    ),
)
replies = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=6))
)


def assert_sound(criterion: BaseCriterion, answer: Answer) -> None:
    assert answer.value is None or 0.0 <= answer.value <= 1.0
    if answer.abstains:
        assert answer.value is None
    if answer.index is not None:
        assert criterion.answers()[answer.index].code == answer.code
    json.dumps(answer.code, allow_nan=False)


@given(kind=kinds, reply=replies)
def test_any_reply_is_a_sound_answer_or_a_reply_error(kind: str, reply: Any) -> None:
    """Any JSON is read as a value in [0, 1], as none, or refused with a ReplyError; nothing else happens."""
    criterion = KINDS[kind]().bind(Submission.parse(TO_GRADE.get(kind, "a text")))
    for read in (criterion.read, criterion.parse_truth):
        try:
            answer = read(reply)
        except ReplyError as error:
            assert str(error)
            continue
        if answer is not None:
            assert_sound(criterion, answer)


@given(kind=kinds, reply=st.data())
def test_any_fitting_object_is_read(kind: str, reply: st.DataObject) -> None:
    """Each good reply stays readable with other keys beside it."""
    criterion = KINDS[kind]()
    extra = reply.draw(st.dictionaries(st.text(max_size=4).map("x_".__add__), scalars, max_size=3))
    assert_sound(criterion, criterion.read({**extra, **REPLIES[kind]}))


@every_kind
def test_a_reply_may_be_an_evaluation_or_its_dict(kind: str) -> None:
    """An instance of the evaluation schema reads like its dict."""
    criterion = KINDS[kind]()
    evaluation = criterion.evaluation_schema(**REPLIES[kind])
    assert criterion.read(evaluation) == criterion.read(REPLIES[kind])


@every_kind
def test_an_answers_code_is_a_label_that_reads_back(kind: str) -> None:
    """What a vote or a truth file keeps of an answer gives the same answer again."""
    criterion = KINDS[kind]()
    answer = criterion.read(REPLIES[kind])
    again = criterion.parse_truth(json.loads(json.dumps(answer.code)))
    assert again is not None
    assert (again.code, again.value, again.index) == (answer.code, answer.value, answer.index)
    assert criterion.parse_truth(None) is None


@every_kind
def test_the_order_shown_does_not_matter(kind: str) -> None:
    """Whatever order a judge sees, its reply gives the same answer."""
    criterion = KINDS[kind]()
    plain = criterion.read(REPLIES[kind])
    for seed in range(8):
        shown = criterion.show(SUBMISSION, random.Random(seed))
        assert criterion.read(REPLIES[kind], shown) == plain
        assert sorted(criterion.render(shown)) == sorted(criterion.render())
    assert criterion.show(SUBMISSION, None).order == ()


@every_kind
def test_json_round_trip(kind: str) -> None:
    """A criterion written as JSON comes back equal."""
    criterion = KINDS[kind](weight=-2.5, requirement="Is it so?")
    written = json.loads(json.dumps(criterion_to_dict(criterion)))
    assert criterion_from_dict(written) == criterion


@every_kind
def test_a_kinds_json_schema_takes_what_is_written(kind: str) -> None:
    """Editors get a schema for every kind, made without a warning, that a written criterion fits."""
    criterion = KINDS[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = type(criterion).model_json_schema()
    jsonschema.validate(json.loads(json.dumps(criterion.model_dump(mode="json"))), schema)


@every_kind
def test_the_wire_schema_is_strict_or_says_so(kind: str) -> None:
    """Every property is required, no other is allowed, titles and defaults are absent; but open dicts."""
    criterion = KINDS[kind]()
    schema = criterion.wire_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"])
    assert "title" not in json.dumps(schema)
    assert criterion.strict is (kind != "dict")


@every_kind
def test_the_wire_schema_knows_no_names(kind: str) -> None:
    """Criteria of one kind and shape send one schema, so that a shared prefix survives."""
    one, other = KINDS[kind](name="first name"), KINDS[kind](name="zweiter", requirement="Else?", weight=1.0)
    assert one.wire_schema == other.wire_schema
    assert "first" not in json.dumps(one.wire_schema)


@every_kind
def test_a_good_reply_fits_the_wire_schema(kind: str) -> None:
    """What the schema lets through is what the criterion reads."""
    criterion = KINDS[kind]()
    schema = criterion.wire_schema
    flag = {"cannot_assess": False} if "cannot_assess" in schema["properties"] else {}
    # What follows from other fields stands in an evaluation and is not asked for.
    asked = {name: said for name, said in REPLIES[kind].items() if name in schema["properties"]}
    # An abstention has a reason, so there is a place for one even where the kind declares none.
    told = {"reason": ""} if "reason" in schema["properties"] and "reason" not in asked else {}
    jsonschema.validate({**told, **asked, **flag}, schema)
    assert criterion.read({**told, **asked}) == criterion.read(REPLIES[kind])


@every_kind
def test_an_explanation_comes_before_the_answer(kind: str) -> None:
    """A model writes its reason first."""
    names = list(KINDS[kind]().wire_schema["properties"])
    for text in ("reason", "explanation", "why"):
        assert text not in names or names.index(text) == 0


@every_kind
def test_the_prompt_carries_the_schema_and_whether_it_is_strict(kind: str) -> None:
    """A request for a kind with an open dict is not sent as strict, alone or in a batch."""
    criterion = KINDS[kind]()
    material = Material(submission=SUBMISSION)
    alone = compose(material, PromptQuestion(criterion=criterion)).schema
    batch = compose_batch(material, [("c1", PromptQuestion(criterion=criterion))]).schema
    assert alone.schema == criterion.wire_schema
    assert alone.strict == batch.strict == (kind != "dict")


@every_kind
def test_evaluation_schemas_are_named_after_the_criterion(kind: str) -> None:
    """Blanks become underscores, and `criterion_name` is in both schemas."""
    criterion = KINDS[kind](name="much  ado")
    one, several = criterion.evaluation_schema, criterion.batch_evaluation_schema
    assert (one.__name__, several.__name__) == ("much_adoEvaluation", "much_adoBatchEvaluation")
    batch = several.model_validate({"evaluations": [REPLIES[kind], REPLIES[kind]]}).model_dump()
    assert batch["criterion_name"] == "much  ado"
    assert [evaluation["criterion_name"] for evaluation in batch["evaluations"]] == ["much  ado"] * 2
    assert next(iter(one.model_fields)) == "criterion_name"
    assert criterion.evaluation_schema is one


@every_kind
def test_a_nameless_criterion_works(kind: str) -> None:
    """Without a name it renders, reads and has schemas; `named` gives it one."""
    nameless = KINDS[kind](name=None)
    assert nameless.name is None
    assert nameless.render()
    assert nameless.evaluation_schema.__name__ == "Evaluation"
    assert_sound(nameless, nameless.read(REPLIES[kind]))
    assert nameless.with_name("now") == KINDS[kind](name="now", requirement=nameless.requirement)


@every_kind
def test_criteria_are_frozen(kind: str) -> None:
    """No field can be set, and no unknown one given."""
    criterion = KINDS[kind]()
    with pytest.raises(ValidationError):
        setattr(criterion, "weight", 3.0)  # noqa: B010 - mypy knows that it cannot be set
    with pytest.raises(ValidationError):
        KINDS[kind](wieght=3.0)


@every_kind
def test_description_is_another_name_for_requirement(kind: str) -> None:
    """Either name gives the same text under both; two texts are refused."""
    given = criterion_to_dict(KINDS[kind](requirement="The text is short."))
    text = given.pop("requirement")
    criterion = criterion_from_dict({**given, "description": text})
    assert criterion == criterion_from_dict({**given, "requirement": text})
    assert criterion.description == criterion.requirement == text
    with pytest.raises(ValidationError, match="are aliases, but their texts differ"):
        criterion_from_dict({**given, "requirement": text, "description": "other"})


@every_kind
def test_schemas_do_not_stand_in_the_way_of_workers(kind: str) -> None:
    """A criterion whose schemas were used can be sent to another process, and copied under another name."""
    criterion = KINDS[kind]()
    assert all((criterion.evaluation_schema, criterion.wire_schema, criterion.batch_evaluation_schema))
    back = pickle.loads(pickle.dumps(criterion))  # noqa: S301 - our own bytes
    assert back == criterion
    assert back.evaluation_schema.__name__ == criterion.evaluation_schema.__name__
    copied = criterion.model_copy(update={"name": "copy"})
    assert copied.evaluation_schema.__name__ == "copyEvaluation"


@every_kind
def test_cannot_assess_is_an_abstention_in_grading(kind: str) -> None:
    """A reply may say `cannot_assess: true` with a reason, whatever the kind."""
    answer = KINDS[kind]().read({"cannot_assess": True, "reason": "the text is empty"})
    assert answer.cannot_assess
    assert answer.value is None
    assert answer.reason == "the text is empty"


@every_kind
@pytest.mark.parametrize("weight", [3.0, -3.0])
def test_the_conservative_answer_helps_least(kind: str, weight: float) -> None:
    """It has the lowest value for a positive weight, the highest for a penalty, none without a measure."""
    criterion = KINDS[kind](weight=weight)
    answer = criterion.conservative()
    if kind in WITHOUT_VALUE:
        assert answer.value is None
        assert not criterion.measures
        return
    declared = [a.value for a in criterion.answers() if a.value is not None] or [0.0, 1.0]
    assert answer.value == (min(declared) if weight > 0 else max(declared))
    assert criterion.measures


@every_kind
@in_loop
async def test_every_kind_grades(kind: str) -> None:
    """A panel of two that agree decides what they say, without any special case for the kind."""
    criterion = KINDS[kind]()
    panel = [TableJudge({criterion.name: REPLIES[kind]}, judge_id) for judge_id in ("a", "b")]
    to_grade = TO_GRADE.get(kind, "a text")
    report = await CriterionGrader(judges=panel).grade(to_grade, Rubric([criterion]))
    decided = report.report[0]
    answer = criterion.bind(Submission.parse(to_grade)).read(REPLIES[kind])
    assert decided.status == ("abstained" if answer.abstains else "answered")
    assert decided.final_answer == answer.code
    assert decided.decision.value == answer.value
    assert not decided.tie
    assert (report.score is None) == (answer.value is None)
    assert type(report).from_dict(json.loads(json.dumps(report.to_dict()))) == report


@every_kind
@in_loop
async def test_unreadable_replies_never_invent_a_value(kind: str) -> None:
    """Where all replies are unreadable the criterion is failed or assumed, and there is no score."""
    criterion = KINDS[kind]()
    judge = TableJudge({criterion.name: ReplyError("no JSON")})
    to_grade = TO_GRADE.get(kind, "a text")
    report = await CriterionGrader(judges=[judge]).grade(to_grade, Rubric([criterion]))
    assert report.score is None
    assert report.error is not None
    assert report.report[0].agreement is None
    assert {vote.status for vote in report.report[0].votes} == {"failed"}


@every_kind
@in_loop
async def test_votes_survive_json_and_give_the_same_report(kind: str) -> None:
    """Stored votes are not cast again and come to the same report."""
    criterion = KINDS[kind]()
    rubric = Rubric([criterion])
    grader = CriterionGrader(judges=[TableJudge({criterion.name: REPLIES[kind]})])
    report = await grader.grade(TO_GRADE.get(kind, "a text"), rubric)
    stored = [type(v).from_dict(json.loads(json.dumps(v.to_dict()))) for v in report.report[0].votes]
    assert stored == report.report[0].votes


def test_an_async_check_is_refused() -> None:
    """A check is a plain function; an async one would hand back a coroutine for an answer."""

    async def slow(text: str) -> bool:
        return True

    with pytest.raises(ValidationError, match="a check must be a synchronous function"):
        Criterion(name="c", requirement="r", check=slow)
