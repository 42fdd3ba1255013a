"""What a reply may be: labels as an enum, bounded reasons, a limit on tokens, and cut-off replies."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from autorubric import (
    ComparativeCriterion,
    Criterion,
    CriterionGrader,
    CriterionOption,
    EnsembleEvaluationReport,
    LLMConfig,
    NarrativeCriterion,
    Rubric,
    Submission,
)
from autorubric.grading.grader import LLMCalls
from autorubric.support.objects import Json
from tests.criteria.kinds import KINDS
from tests.servers.fixtures import OpenAIServer

LABELS = ("poor", "fair", "good")
TONE = Criterion(
    name="tone",
    requirement="The tone is friendly.",
    options=[CriterionOption(label=label, value=value / 2) for value, label in enumerate(LABELS)],
)
CLEAR = TONE.model_copy(update={"name": "clear", "requirement": "The text is clear."})
POLITE = Criterion(name="polite", requirement="The text is polite.")
MET = {"reason": "It is.", "verdict": "MET"}

Grade = Callable[..., EnsembleEvaluationReport]


@pytest.fixture(params=["openai_compatible", "litellm"])
def grade(request: pytest.FixtureRequest, openai_server: OpenAIServer) -> Grade:
    """Grades a text with the server's model over one of the transports."""

    def run(rubric: Rubric, **settings: Any) -> EnsembleEvaluationReport:
        given = {"api_base": openai_server.api_base, "transport": request.param, "api_key": "k"}
        config = LLMConfig(**{"model": "openai/judge-1", "retry_min_wait": 0.0, **given, **settings})
        return rubric.grade_sync("Thank you.", CriterionGrader(llm_config=config))

    return run


@pytest.fixture
def direct(openai_server: OpenAIServer) -> Grade:
    """Grades a text with the server's model over the direct transport."""

    def run(
        rubric: Rubric, llm_calls: LLMCalls = "per_criterion", **settings: Any
    ) -> EnsembleEvaluationReport:
        config = LLMConfig(model="judge-1", api_base=openai_server.api_base, retry_min_wait=0.0, **settings)
        return rubric.grade_sync("Thank you.", CriterionGrader(llm_config=config, llm_calls=llm_calls))

    return run


def schemas(server: OpenAIServer) -> list[Mapping[str, Any]]:
    """The schema of the reply that each request asked for."""
    return [one["body"]["response_format"]["json_schema"]["schema"] for one in server.log()]


def test_labels_are_an_enum_in_their_declared_order(grade: Grade, openai_server: OpenAIServer) -> None:
    """The prompt shuffles the options; the schema names them as declared, and is shared by equal scales."""
    openai_server.script({"do": "answer", "payload": {"reason": "r", "label": "fair"}}, repeat="last")
    for _ in range(3):
        grade(Rubric([TONE, CLEAR]))
    label = {"type": "string", "enum": list(LABELS)}
    assert [schema["properties"]["label"] for schema in schemas(openai_server)] == [label] * 6
    assert len({str(schema) for schema in schemas(openai_server)}) == 1


def test_the_order_shown_does_not_change_the_schema() -> None:
    """A shuffled criterion shows its options in another order and asks for the same reply."""
    orders = {TONE.show(Submission(text="t"), random.Random(seed)).order for seed in range(20)}
    assert len(orders) > 1
    assert TONE.wire_schema["properties"]["label"]["enum"] == list(LABELS)
    assert TONE.wire_schema is CLEAR.wire_schema


def test_reasons_have_a_longest_length(direct: Grade, openai_server: OpenAIServer) -> None:
    """600 characters by default, as many as the config says, or any number."""
    openai_server.script({"do": "answer", "payload": MET}, repeat="last")
    for settings in ({}, {"max_reason_chars": 90}, {"max_reason_chars": None}):
        direct(Rubric([POLITE]), **settings)
    reasons = [schema["properties"]["reason"] for schema in schemas(openai_server)]
    assert [reason.get("maxLength") for reason in reasons] == [600, 90, None]


def test_a_hosted_provider_gets_no_length_that_it_would_refuse(openai_server: OpenAIServer) -> None:
    """Over litellm, whose providers refuse `maxLength`, the schema goes without it."""
    openai_server.script({"do": "answer", "payload": MET}, repeat="last")
    config = LLMConfig(
        model="openai/judge-1", api_base=openai_server.api_base, transport="litellm", api_key="k"
    )
    Rubric([POLITE]).grade_sync("Thank you.", CriterionGrader(llm_config=config))
    assert "maxLength" not in str(schemas(openai_server))


def test_a_text_that_is_the_answer_has_no_longest_length() -> None:
    """A narrative is as long as it has to be."""
    assert "maxLength" not in str(NarrativeCriterion(name="n").wire_schema)


def test_tokens_are_limited_by_the_schema(direct: Grade, openai_server: OpenAIServer) -> None:
    """Without a limit of the caller's the schema gives one; a longer reason has a higher one."""
    openai_server.script({"do": "answer", "payload": MET}, repeat="last")
    for settings in ({}, {"max_reason_chars": 2000}, {"max_tokens": 50}, {"max_reason_chars": None}):
        direct(Rubric([POLITE]), **settings)
    limits = [one["body"].get("max_tokens") for one in openai_server.log()]
    assert limits[0] is not None and 600 < limits[0] < 1200
    assert limits[1] is not None and limits[1] > limits[0] + 1000
    assert limits[2:] == [50, None]


@pytest.mark.parametrize(
    "settings",
    [
        {"thinking": "medium"},
        {"extra_params": {"max_completion_tokens": 70}},
        {"extra_params": {"chat_template_kwargs": {"enable_thinking": True}}},
    ],
)
def test_a_model_that_may_reason_is_not_limited(
    direct: Grade, openai_server: OpenAIServer, settings: Any
) -> None:
    """Reasoning counts into the limit, and would be cut off."""
    openai_server.script({"do": "answer", "payload": MET}, repeat="last")
    direct(Rubric([POLITE]), **settings)
    assert all("max_tokens" not in one["body"] for one in openai_server.log())


@pytest.mark.parametrize(
    ("model", "limited"), [("mistral/mistral-large-latest", True), ("openai/gpt-6-luna", False)]
)
def test_litellm_limits_the_models_that_do_not_reason(
    openai_server: OpenAIServer, model: str, limited: bool
) -> None:
    """Which models reason is what litellm knows of them."""
    openai_server.script({"do": "answer", "payload": MET}, repeat="last")
    config = LLMConfig(model=model, api_base=openai_server.api_base, transport="litellm", api_key="k")
    Rubric([POLITE]).grade_sync("Thank you.", CriterionGrader(llm_config=config))
    assert [any("max" in name for name in one["body"]) for one in openai_server.log()] == [limited]


def test_a_batched_request_has_room_for_every_criterion(openai_server: OpenAIServer) -> None:
    """One reply for all criteria may be as long as their replies together."""
    limits = []
    for count in (1, 4):
        openai_server.reset()
        rubric = Rubric([POLITE.model_copy(update={"name": f"c{at}"}) for at in range(count)])
        config = LLMConfig(model="judge-1", api_base=openai_server.api_base)
        rubric.grade_sync("Thanks.", CriterionGrader(llm_config=config, llm_calls="per_item"))
        limits.append(openai_server.log()[0]["body"]["max_tokens"])
    assert limits[1] > limits[0] + 3 * 600


@pytest.mark.parametrize("finish_reason", ["length", "stop"])
def test_a_cut_off_reply_is_asked_for_again_and_shorter(
    grade: Grade, openai_server: OpenAIServer, finish_reason: str
) -> None:
    """The second request demands brevity, quotes little of the first reply, and has no derived limit."""
    long = '{"reason": "' + "and so on " * 300
    openai_server.script(
        {"do": "answer", "content": long, "finish_reason": finish_reason}, {"do": "answer", "payload": MET}
    )
    report = grade(Rubric([POLITE]))
    _, second = (one["body"] for one in openai_server.log())
    assert (report.score, report.verdicts.lost, report.verdicts.assumed) == (1.0, 0, 0)
    assert "one or two short sentences" in second["messages"][-1]["content"]
    assert len(second["messages"][-2]["content"]) < 500
    assert "max_tokens" not in second


def test_a_model_that_turns_out_to_reason_is_not_limited_again(
    direct: Grade, openai_server: OpenAIServer
) -> None:
    """A reply that is cut off before any JSON spent its tokens on reasoning."""
    openai_server.script(
        {"do": "answer", "content": "<think>Let me see", "finish_reason": "length"},
        {"do": "answer", "payload": MET},
        repeat="last",
    )
    two = Rubric([POLITE, POLITE.model_copy(update={"name": "kind"})])
    report = direct(two, max_parallel_requests=1)
    assert report.score == 1.0
    assert ["max_tokens" in one["body"] for one in openai_server.log()][-1] is False


@pytest.mark.parametrize(
    ("message", "left_out"),
    [
        ("Invalid schema for response_format: 'maxLength' is not permitted.", '"maxLength"'),
        ("output_config: For 'string' type, property 'maxLength' is not supported", '"maxLength"'),
        ("max_tokens is not supported with this model.", '"max_tokens"'),
        ("maximum context length is 900 tokens; you asked for 400 in the completion", '"max_tokens"'),
    ],
)
def test_what_a_server_refuses_is_left_out(
    direct: Grade, openai_server: OpenAIServer, message: str, left_out: str
) -> None:
    """A server that takes no lengths, or no limit, is asked again without; the verdict is not lost."""
    openai_server.script(
        {"do": "status", "status": 400, "message": message}, {"do": "answer", "payload": MET}
    )
    report = direct(Rubric([POLITE]))
    bodies: list[Json] = [str(one["body"]).replace("'", '"') for one in openai_server.log()]
    assert report.score == 1.0
    assert [left_out in body for body in bodies] == [True, False]
    assert "response_format" in bodies[1]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("text", "narrative")])
def test_explanations_of_every_kind_have_a_longest_length(kind: str) -> None:
    """Whatever a kind calls its explanation, the schema bounds it; only a text that is the answer is free."""
    criterion = KINDS[kind](name="x")
    free = set() if criterion.measures else set(criterion.eval_fields)
    for name, field in criterion.wire_schema["properties"].items():
        if field.get("type") == "string" and "enum" not in field and name not in {*free, "best"}:
            assert field["maxLength"] == 600


CANDIDATES = {"x": "one", "y": "two", "z": "three", "w": "four"}


def compare(server: OpenAIServer, transport: str, names: str, **fields: Any) -> EnsembleEvaluationReport:
    """Compares the candidates of these names over one of the transports."""
    config = LLMConfig(
        model="openai/judge-1", api_base=server.api_base, transport=transport, api_key="k", retry_min_wait=0.0
    )
    rubric = Rubric([ComparativeCriterion(name="better", requirement="Which is clearer?", **fields)])
    texts = {name: CANDIDATES[name] for name in names}
    return rubric.grade_sync(texts, CriterionGrader(llm_config=config))


@pytest.mark.parametrize("transport", ["openai_compatible", "litellm"])
@pytest.mark.parametrize(
    ("fields", "names", "answer", "wanted"),
    [
        ({}, "xy", {"winner": "A"}, {"type": "string", "enum": ["A", "B", "tie"]}),
        ({"margin": 2}, "xy", {"winner": "B", "margin": 1}, {"type": "string", "enum": ["A", "B", "tie"]}),
        ({"mode": "best_of"}, "xyz", {"best": "C"}, {"type": "string", "enum": ["A", "B", "C"]}),
        (
            {"mode": "ranking"},
            "xyzw",
            {"ranking": ["D", "A", "C", "B"]},
            {
                "type": "array",
                "items": {"type": "string", "enum": ["A", "B", "C", "D"]},
                "minItems": 4,
                "maxItems": 4,
            },
        ),
    ],
)
def test_letters_of_candidates_are_an_enum(
    openai_server: OpenAIServer, transport: str, fields: Any, names: str, answer: Any, wanted: Json
) -> None:
    """A model may answer with the candidates' letters alone, and the tokens of its reply are limited."""
    reply = {"explanation": "It is.", **answer, "cannot_assess": False}
    openai_server.script({"do": "answer", "payload": reply}, repeat="last")
    report = compare(openai_server, transport, names, **fields)
    assert (report.verdicts.asked, report.verdicts.answered) == (2, 2)
    (key, *_) = answer
    assert [schema["properties"][key] for schema in schemas(openai_server)] == [wanted, wanted]
    if transport == "openai_compatible":
        assert all(600 < one["body"]["max_tokens"] < 1200 for one in openai_server.log())


@pytest.mark.parametrize("mode", ["ranking", "best_of"])
def test_equal_numbers_of_candidates_share_a_schema(mode: Any) -> None:
    """Two submissions with three candidates each ask for one schema, one with four for another."""
    criterion = ComparativeCriterion(name="better", requirement="Which?", mode=mode)
    before = criterion.wire_schema
    first, second, longer = (
        criterion.bind(Submission(text="t", candidates=dict.fromkeys(names, "t"))).wire_schema
        for names in ("xyz", "abc", "xyzw")
    )
    assert first is second
    assert first != longer
    assert "enum" not in str(before)
    assert criterion.wire_schema is before


def test_a_server_that_refuses_the_length_of_a_list_is_asked_without_the_schema(
    openai_server: OpenAIServer,
) -> None:
    """A provider that takes no `minItems` still gets the ranking asked."""
    fault = {"do": "status", "status": 400, "message": "tools: property 'minItems' is not supported"}
    reply = {"explanation": "It is.", "ranking": ["B", "A", "C"], "cannot_assess": False}
    openai_server.script(fault, {"do": "answer", "payload": reply}, repeat="last")
    report = compare(openai_server, "litellm", "xyz", mode="ranking", both_orders=False)
    assert (report.verdicts.asked, report.verdicts.answered) == (1, 1)
    assert "response_format" not in openai_server.log()[-1]["body"]


@pytest.mark.parametrize("refused", [False, True])
def test_a_server_with_a_grammar_gets_one_entry_per_criterion(
    openai_server: OpenAIServer, direct: Grade, refused: bool
) -> None:
    """In the order of the prompt, so that a small model ends its list; a server may refuse this schema."""
    if refused:
        message = "Unsupported keyword prefixItems in response_format json_schema"
        openai_server.script(
            {"do": "status", "status": 400, "message": message}, {"do": "answer"}, repeat="last"
        )
    report = direct(Rubric([POLITE, TONE, CLEAR]), llm_calls="per_item")
    assert {one.status for one in report.report} <= {"answered", "abstained"}
    shapes = [one["properties"]["evaluations"] for one in schemas(openai_server)]
    assert ["prefixItems" in one for one in shapes] == ([True, False] if refused else [True])
    assert ["items" in one for one in shapes] == ([False, True] if refused else [False])
    again = direct(Rubric([POLITE, TONE]), llm_calls="per_item")
    assert {one.status for one in again.report} <= {"answered", "abstained"}


def test_a_provider_without_a_grammar_gets_a_schema_that_stays_the_same(openai_server: OpenAIServer) -> None:
    """A schema with the ids of a request would be compiled anew for each item."""
    config = LLMConfig(
        model="openai/judge-1", api_base=openai_server.api_base, transport="litellm", api_key="k"
    )
    for text in ("One.", "Two."):
        grader = CriterionGrader(llm_config=config, llm_calls="per_item")
        Rubric([POLITE, TONE]).grade_sync(text, grader)
    one, other = schemas(openai_server)
    assert one == other
    assert "prefixItems" not in one["properties"]["evaluations"]


@pytest.mark.parametrize(("transport", "several"), [("openai_compatible", 1), ("litellm", 3)])
def test_a_model_whose_list_has_no_end_loses_no_verdict(
    openai_server: OpenAIServer, transport: str, several: int
) -> None:
    """The exact schema ends the list; without it, each criterion is asked about alone."""
    openai_server.script({"do": "endless_list"}, repeat="last")
    config = LLMConfig(
        model="openai/judge-1", api_base=openai_server.api_base, transport=transport, api_key="k"
    )
    report = Rubric([POLITE, TONE]).grade_sync(
        "Thank you.", CriterionGrader(llm_config=config, llm_calls="per_item")
    )
    assert {one.status for one in report.report} <= {"answered", "abstained"}
    asked = [str(one["body"]["messages"]) for one in openai_server.log()]
    assert sum(re.search(r"\[c[0-9a-f]{4}\]", one) is not None for one in asked) == several
    assert len(asked) == (1 if several == 1 else several + 2)
