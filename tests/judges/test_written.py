"""Critics as data, there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autorubric.criteria import BaseCriterion, PassFailCriterion, TextField
from autorubric.errors import ArgumentError
from autorubric.judges import Critic, Prompt
from autorubric.llm import LLMConfig
from tests.doubles import binary
from tests.judges.evaluators import GOOD, HELPFUL, Scripted

PLAIN = "{criterion}|{output}|{input}|{reference}|{context}"


def named_evaluator(prompt: Prompt) -> Any:
    """An evaluator with a name."""
    return GOOD


@pytest.mark.parametrize(
    "evaluator",
    [
        "gpt-6-luna",
        LLMConfig(model="m", temperature=0.5, api_key="sk-1"),
        LLMConfig(model="m", extra_headers={"X-Team": "sk-1"}),
        LLMConfig(model="m", extra_params={"access_token": "sk-1", "top_k": 5}),
        LLMConfig(
            model="m",
            thinking="low",
            fallbacks=("n", LLMConfig(model="o", api_key="sk-1", extra_headers={"X-Team": "sk-1"})),
        ),
    ],
    ids=lambda evaluator: repr(evaluator)[:40],
)
def test_critics_of_specs_are_data(evaluator):
    """There and back through JSON, without keys, headers and other secrets, nor digests of them."""
    critic = Critic(evaluator, HELPFUL, PLAIN, {"answer": [1, 2]})
    told = json.loads(json.dumps(critic.to_dict()))
    assert "sk-1" not in repr(told)
    assert "sha256" not in repr(told)
    again = Critic.from_dict(told)
    assert again.to_dict() == told
    if isinstance(evaluator, LLMConfig):
        assert again.evaluator.model_dump() == evaluator.model_dump()
    assert (again.criterion, again.prompt_template, again.reference) == (HELPFUL, PLAIN, {"answer": [1, 2]})
    assert isinstance(again.evaluator, type(evaluator))


class Unregistered(BaseCriterion):
    """A kind that files do not know."""

    remark: TextField = TextField()


@pytest.mark.parametrize(
    ("critic", "said"),
    [
        (Critic(named_evaluator, HELPFUL), "cannot be converted to JSON"),
        (Critic(Scripted(), HELPFUL), "cannot be converted to JSON"),
        (Critic("m", Unregistered(name="u")), "no type tag"),
        (Critic("m", binary(check=lambda text: True)), "register_check"),
        (Critic("m", HELPFUL, reference=object()), "reference cannot be converted to JSON"),
        (Critic("m", HELPFUL, reference=float("nan")), "reference cannot be converted to JSON"),
    ],
)
def test_what_cannot_be_written_down(critic, said):
    """Functions, objects, kinds and checks without a name, references that are no JSON."""
    with pytest.raises(ArgumentError, match=said):
        critic.to_dict()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"evaluater": "m"}, "did you mean 'evaluator'"),
        ({"evaluator": 7}, "evaluator must be a model name"),
        ({"evaluator": {"model": "m", "temperature": 9}}, "temperature"),
        ({"criterion": {"type": "likert", "scale": "x"}}, "scale"),
        ({"criterion": {"type": "no such"}}, "unknown kind of criterion"),
        ({"prompt_template": "{output.x}"}, "not a variable"),
    ],
)
def test_faulty_data_is_refused(change, said):
    """Unknown keys, wrong values, unknown kinds."""
    good = Critic("m", PassFailCriterion(name="p", requirement="r")).to_dict()
    with pytest.raises(ArgumentError, match=said):
        Critic.from_dict({**good, **change})
    with pytest.raises(ArgumentError, match="must have evaluator and criterion"):
        Critic.from_dict({})


@pytest.mark.parametrize("reference", [(1, 2), {1: 2}])
def test_a_reference_that_json_would_change_is_refused(reference: Any) -> None:
    """Read back, it would make another prompt."""
    with pytest.raises(ArgumentError, match="its value would change"):
        Critic("m", PassFailCriterion(name="c", requirement="r"), reference=reference).to_dict()
