"""Sampled criteria: votes, aggregation, fallbacks, arguments, subclassing."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric import JudgeSpec, LLMConfig, QualitativeCriteria, QuantitativeCriteria
from autorubric.apps.strategy import SampledEvaluation
from autorubric.apps.strategy.sampling import SampledCriteria
from autorubric.errors import ArgumentError, TokenUsage
from autorubric.judges import JudgeReply
from tests.doubles import BarrierJudge, in_loop
from tests.strategy.judges import LOST, SampleJudge

YES = ["yes", "true", "pass", "YES", " Pass ", "Yes.", "**PASS**", '"yes"', "1", 1, 1.0, True]
YES += ["<think>hm</think>\nyes", {"passed": True, "reason": "clear"}, '{"passed": true, "reason": "clear"}']
NO = ["no", "false", "fail", "No!", "`fail`", "```\nno\n```", "0", 0, False]
NO += [{"passed": False, "reason": "vague"}, 'So:\n```json\n{"passed": "no", "reason": "vague"}\n```']


def gate(answers: list[Any], **options: Any) -> SampledEvaluation[bool]:
    """The evaluation of a text by samples that answer so."""
    criteria = QualitativeCriteria(
        "It is clear.", SampleJudge(answers), **{"num_samples": len(answers), **options}
    )
    return asyncio.run(criteria.evaluate("A text."))


def score(answers: list[Any], **options: Any) -> SampledEvaluation[float]:
    """The score of a text by samples that answer so."""
    criteria = QuantitativeCriteria(
        "How clear?", SampleJudge(answers), **{"num_samples": len(answers), **options}
    )
    return asyncio.run(criteria.evaluate("A text."))


@pytest.mark.parametrize("answer", YES)
def test_a_bare_yes_passes(answer: Any) -> None:
    """Yes, true and pass are an answer of a function as of a model, as the whole object is, or its text."""
    assert gate([answer]).value is True


@pytest.mark.parametrize("answer", NO)
def test_a_bare_no_fails(answer: Any) -> None:
    """No, false and fail are an answer, and no failure."""
    evaluation = gate([answer])
    assert (evaluation.value, evaluation.samples, evaluation.fallback_used) == (False, (False,), False)


@pytest.mark.parametrize(
    "answer",
    [
        *(7, "7", 7.0, " 7 ", "7.", "**7**", "+7", "7e0", "<think>6?</think> 7"),
        {"score": 7, "explanation": "so"},
        {"score": "7", "explanation": ""},
        '```json\n{"score": 7, "explanation": "so"}\n```',
    ],
)
def test_a_bare_number_is_a_score(answer: Any) -> None:
    """A number is an answer, alone or in its object."""
    assert score([answer]).value == 7.0


@pytest.mark.parametrize(
    "answer",
    [
        *(11, -0.1, "11", "**11**", "-1", "ten", "7/10", "7 of 10", "", " ", "yes", "cannot assess"),
        *(float("nan"), "NaN", float("inf"), "1e999", True, [7], None, LOST, {"score": 12}, "{"),
    ],
)
def test_what_is_no_score_in_the_range_does_not_count(answer: Any) -> None:
    """Answers outside the range, words, truth values, abstentions and failures leave the others to decide."""
    evaluation = score([answer, 4, 6])
    assert evaluation.samples == (None, 4.0, 6.0)
    assert (evaluation.value, evaluation.fallback_used) == (5.0, False)


@pytest.mark.parametrize(("agg", "value"), [("avg", 16 / 3), ("med", 4.0), ("min", 3.0), ("max", 9.0)])
def test_scores_are_aggregated(agg: str, value: float) -> None:
    """Mean, median, lowest and highest of the samples that count."""
    assert score([3, 4, 9, "many"], agg=agg).value == pytest.approx(value)


@pytest.mark.parametrize(("min_pass", "passes"), [(1, True), (3, True), (4, False), (5, False)])
def test_enough_samples_must_pass(min_pass: int, passes: bool) -> None:
    """It passes where at least min_pass samples say so."""
    assert gate(["yes", "no", "yes", "no", "yes"], min_pass=min_pass).value is passes


def test_too_few_samples_fail_the_gate_and_say_so() -> None:
    """Fewer valid samples than needed: False, and the record is flagged with what went wrong."""
    evaluation = gate(["yes", LOST, "perhaps", "yes"], min_samples_for_aggregation=3)
    assert (evaluation.value, evaluation.fallback_used) == (False, True)
    assert evaluation.samples == (True, None, None, True)
    assert evaluation.errors[0] is None
    assert "nobody there" in (evaluation.errors[1] or "")
    assert [vote.unreadable for vote in evaluation.votes] == [False, False, True, False]


def test_too_few_samples_give_the_middle_of_the_range_and_say_so() -> None:
    """Fewer valid samples than needed: the midpoint, flagged."""
    evaluation = score([9, LOST, LOST], min=2, max=10, min_samples_for_aggregation=2)
    assert (evaluation.value, evaluation.fallback_used, evaluation.valid) == (6.0, True, (9.0,))


def test_the_record_has_distribution_cost_and_tokens() -> None:
    """Samples by value, and what all of them took together."""
    usage = TokenUsage(prompt_tokens=5, completion_tokens=1, total_tokens=6)
    evaluation = score([JudgeReply(answer=n, usage=usage, cost=0.25) for n in (4, 2, 4)])
    assert evaluation.distribution == {2.0: 1, 4.0: 2}
    assert evaluation.cost == 0.75
    assert evaluation.usage == usage + usage + usage
    assert gate(["yes"]).cost is None


@in_loop
async def test_verify_and_compute_reduce_the_record() -> None:
    """They give the value of what evaluate records."""
    assert await QualitativeCriteria("Clear?", SampleJudge(["yes"])).verify("text") is True
    assert await QuantitativeCriteria("Clear?", SampleJudge([3])).compute("text") == 3.0


@in_loop
async def test_samples_are_asked_at_once_each_with_its_index() -> None:
    """All samples are in flight together, and no two have one index or one seed."""
    barrier = asyncio.Barrier(5)
    assert await QualitativeCriteria("Clear?", BarrierJudge(barrier, "all"), 5, 5, 5).verify("text")
    judge = SampleJudge([1])
    await QuantitativeCriteria("Clear?", judge, num_samples=4).compute("text")
    assert sorted(request.sample for request in judge.asked) == [0, 1, 2, 3]
    assert len({request.seed for request in judge.asked}) == 4


@in_loop
async def test_arguments_may_be_positional_and_are_readable() -> None:
    """The order of the arguments is part of the contract, and each is an attribute."""
    judge = SampleJudge([1])
    gate = QualitativeCriteria("Clear?", judge, 5, 4, 3)
    assert (gate.expression, gate.llm) == ("Clear?", judge)
    assert (gate.num_samples, gate.min_samples_for_aggregation, gate.min_pass) == (5, 4, 3)
    rated = QuantitativeCriteria("How?", judge, 1, 5, "med", 3, 2)
    assert (rated.min, rated.max, rated.agg) == (1, 5, "med")
    assert (rated.num_samples, rated.min_samples_for_aggregation) == (3, 2)


WRONG: list[tuple[type[SampledCriteria[Any]], dict[str, Any], str]] = [
    (QualitativeCriteria, {"num_samples": 0}, "num_samples must be an integer of at least 1; got 0"),
    (QualitativeCriteria, {"num_samples": True}, "num_samples must be an integer of at least 1; got True"),
    (QualitativeCriteria, {"num_samples": 2.0}, r"num_samples must be an integer of at least 1; got 2\.0"),
    (QualitativeCriteria, {"num_samples": 2, "min_pass": 3}, "min_pass=3 must not exceed num_samples=2"),
    (QualitativeCriteria, {"min_pass": 0}, "min_pass must be an integer of at least 1; got 0"),
    (
        QualitativeCriteria,
        {"min_samples_for_aggregation": 2},
        "min_samples_for_aggregation=2 must not exceed num_samples=1",
    ),
    (QualitativeCriteria, {"expression": " "}, "expression must be a non-empty string; got ' '"),
    (QualitativeCriteria, {"expression": None}, "expression must be a non-empty string; got None"),
    (QualitativeCriteria, {"llm": None}, "None is not a judge"),
    (QualitativeCriteria, {"llm": JudgeSpec("m", samples=3)}, "pass num_samples=3"),
    (
        QualitativeCriteria,
        {"extract": "python"},
        "extract must be None, 'code' or a function of a string; got 'python'",
    ),
    (QuantitativeCriteria, {"min": 5, "max": 5}, "min must be less than max"),
    (QuantitativeCriteria, {"min": 6.0, "max": 5}, "min must be less than max"),
    (QuantitativeCriteria, {"min": float("nan")}, "min must be a finite number; got nan"),
    (QuantitativeCriteria, {"max": "10"}, "max must be a finite number; got '10'"),
    (QuantitativeCriteria, {"min": -1.7e308, "max": 1.7e308}, "too large for a float"),
    (QuantitativeCriteria, {"agg": "mean"}, "agg must be one of avg, med, min, max; got 'mean'"),
    (QuantitativeCriteria, {"min_samples_for_aggregation": 2}, "num_samples=1"),
]


@pytest.mark.parametrize(("kind", "options", "told"), WRONG)
def test_arguments_that_cannot_work_are_refused_when_made(
    kind: type[SampledCriteria[Any]], options: dict[str, Any], told: str
) -> None:
    """Each is an ArgumentError that names what was given."""
    with pytest.raises(ArgumentError, match=told):
        kind(**{"expression": "Clear?", "llm": SampleJudge([1]), **options})


def test_equal_samples_of_a_model_are_warned_of() -> None:
    """Several samples at temperature 0 say nearly the same; a grader warns of that too."""
    with pytest.warns(UserWarning, match="5 samples at temperature 0") as seen:
        QualitativeCriteria("Clear?", LLMConfig(model="m", temperature=0), num_samples=5)
    assert seen[0].filename == __file__


@in_loop
async def test_what_is_judged_of_a_candidate() -> None:
    """All of it, its code, or what a function makes of it; other data as JSON, thinking kept apart."""
    judge = SampleJudge([True])

    async def seen(candidate: Any, extract: Any = None) -> Any:
        await QualitativeCriteria("Clear?", judge, extract=extract).verify(candidate)
        return judge.asked[-1].submission

    text = "So:\n```python\nx = 1\n```"
    assert (await seen(text)).text == text
    assert (await seen(text, "code")).text == "x = 1"
    assert (await seen("abc", str.upper)).text == "ABC"
    assert (await seen({"a": [1]})).text == '{\n  "a": [\n    1\n  ]\n}'
    assert (await seen({"output": "o", "thinking": "t"})).thinking == "t"
    assert (await seen({"output": "o", "thinking": None})).text == "o"
    assert (await seen({"output": 5})).text == '{\n  "output": 5\n}'
    assert (await seen({"thinking": "t"})).text == '{\n  "thinking": "t"\n}'
    assert (await seen(complex(1, 2))).text == "(1+2j)"
    with pytest.raises(ArgumentError, match="candidate must be a string or JSON-compatible data; got None"):
        await seen(None)
    with pytest.raises(ArgumentError, match=r"got b'abc'"):
        await seen(b"abc")
    with pytest.raises(ArgumentError, match="extract must return a string; it returned 3"):
        await seen(text, lambda _: 3)


@in_loop
async def test_what_a_judge_is_shown_of_a_context() -> None:
    """A text or data is the query; an object of somebody's own is not shown."""
    judge = SampleJudge([True])
    criteria = QualitativeCriteria("Clear?", judge)
    for context in (None, "Add two numbers.", {"task": 1}, object()):
        await criteria.verify("text", context)
    assert [one.query for one in judge.asked] == [None, "Add two numbers.", '{\n  "task": 1\n}', None]
    assert judge.asked[0].criterion.requirement == "Clear?"


@in_loop
async def test_subclasses_may_add_attributes_and_override() -> None:
    """A subclass keeps its own record and calls up; what it changes takes effect."""

    class Remembering(QuantitativeCriteria):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.history: list[float] = []

        async def compute(self, candidate: Any, context: Any = None) -> float:
            self.history.append(await super().compute(candidate, context))
            return self.history[-1] + 100

    remembering = Remembering("How?", SampleJudge([4, 12]), max=10)
    remembering.note = "free"  # type: ignore[attr-defined]
    assert await remembering.compute("text") == 104
    assert remembering.history == [4.0]
    remembering.max, remembering.llm = 20, SampleJudge([15])
    assert await remembering.compute("text") == 115


@in_loop
async def test_criteria_can_be_copied_and_pickled() -> None:
    """Copies open connections of their own."""
    criteria = QualitativeCriteria("Clear?", LLMConfig(model="m"))
    pickled = pickle.loads(pickle.dumps(criteria))  # noqa: S301 - our own bytes
    for made in (copy.copy(criteria), copy.deepcopy(criteria), pickled):
        assert (made.expression, made.llm) == (criteria.expression, criteria.llm)
    async with criteria as same:
        assert same is criteria


@given(
    votes=st.lists(st.sampled_from(["yes", "no", "perhaps"]), min_size=1, max_size=6), least=st.integers(1, 6)
)
def test_a_higher_bar_never_helps(votes: list[str], least: int) -> None:
    """What passes with some min_pass passes with every lower one, and never without enough valid samples."""
    least = min(least, len(votes))
    passed = [
        gate(votes, min_pass=bar, min_samples_for_aggregation=least).value for bar in range(1, len(votes) + 1)
    ]
    assert passed == sorted(passed, reverse=True)
    valid = [vote for vote in votes if vote != "perhaps"]
    if len(valid) < least:
        assert not any(passed)
    else:
        assert sum(passed) == votes.count("yes")


@given(
    scores=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6),
    agg=st.sampled_from(["avg", "med", "min", "max"]),
    low=st.floats(-500, 0),
    width=st.floats(0.001, 1000),
)
def test_a_score_lies_in_its_range(scores: list[float], agg: str, low: float, width: float) -> None:
    """Whatever samples say, the score lies in the range, and between the samples that count."""
    evaluation = score(scores, agg=agg, min=low, max=low + width)
    assert low <= evaluation.value <= low + width
    assert evaluation.valid == tuple(one for one in scores if low <= one <= low + width)
    assert evaluation.fallback_used is (not evaluation.valid)
    if evaluation.valid:
        assert min(evaluation.valid) - 1e-9 <= evaluation.value <= max(evaluation.valid) + 1e-9


@given(order=st.permutations([1.0, 2.5, 7.0, 9.5, 2.5]), agg=st.sampled_from(["avg", "med", "min", "max"]))
def test_the_order_of_samples_does_not_matter(order: list[float], agg: str) -> None:
    """Samples are exchangeable."""
    assert score(list(order), agg=agg).value == pytest.approx(score([1.0, 2.5, 7.0, 9.5, 2.5], agg=agg).value)
