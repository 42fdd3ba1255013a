"""What a rewritten output must be, and which of several is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autorubric import LLMConfig
from autorubric.apps.drafts import TeacherPrompt, refine
from autorubric.errors import ArgumentError
from tests.drafts.teachers import draft, read_lines, scored, write_lines
from tests.servers.fixtures import OpenAIServer

Refine = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Refine:
    """Refines one draft with this output: rewritten to the texts in turn, and critiqued in turn."""

    def call(output: Any, texts: Any, critiques: Any = (), first: int = 1, **options: Any) -> Any:
        replies, marks = iter(texts), iter(critiques or [scored(5, "pass")])
        rows = write_lines(tmp_path / "critiques.jsonl", [{"id": "draft_0", "critique": scored(first)}])
        drafts = write_lines(tmp_path / "drafts.jsonl", [draft(0, output=output, contract={"ok": True})])

        def teacher(prompt: TeacherPrompt) -> Any:
            return next(replies if prompt.task == "rewrite" else marks)

        refine(rows, drafts, tmp_path, teacher, **options)
        names = ("refined", "rejected", "undecided", "errors")
        ((name, record),) = [(n, one) for n in names for one in read_lines(tmp_path / f"{n}_v1.jsonl")]
        return {"outcome": name, **record}

    return call


@pytest.mark.parametrize(
    ("output", "reply", "expected"),
    [
        ([1], "Here it is:\n```json\n[2, 3]\n```\nDone.", [2, 3]),
        ([1], "```json\n[2, 3]\n```", [2, 3]),
        ([1], "[2, 3,]", [2, 3]),
        ([1], "<think>[9]</think>[2]", [2]),
        (["a"], "[]", []),
        ('["a"]', '```\n["b"]\n```', '["b"]'),
        ({"a": 1}, 'Here: {"a": 2, "b": 3}', {"a": 2, "b": 3}),
        ({"a": 1}, '<think>{"a": 9}</think>\n{"a": 2}', {"a": 2}),
        ("plain", "<think>Which?</think>\nNew text.", "New text."),
        (7, "8", 8),
        (7, " 8.5\n", 8.5),
        (True, "false", False),
    ],
)
def test_the_kind_of_data_stays(output: Any, reply: str, expected: Any, run: Refine) -> None:
    """Lists are read as leniently as objects, numbers stay numbers, and reasoning is no part of a text."""
    record = run(output, [reply])
    assert (record["outcome"], record["output"]) == ("refined", expected)
    assert type(record["output"]) is type(expected)


@pytest.mark.parametrize(
    ("output", "reply", "code"),
    [
        ([1], '```json\n{"a": [1]}\n```', "JSON_PARSE_ERROR"),
        ([1], "[1, 2", "JSON_PARSE_ERROR"),
        ([1], "", "JSON_PARSE_ERROR"),
        (7, "seven", "JSON_PARSE_ERROR"),
        (7, "NaN", "JSON_PARSE_ERROR"),
        (7, "true", "JSON_PARSE_ERROR"),
        (True, "1", "JSON_PARSE_ERROR"),
        ("plain", "<think>It was", "JSON_PARSE_ERROR"),
        ("plain", "<think>It was</think>", "JSON_PARSE_ERROR"),
        ({"a": 1, "b": 2}, '{"a": 2}', "SCHEMA_ERROR"),
        ('{"a": 1, "b": 2}', '{"b": 2, "c": 3}', "SCHEMA_ERROR"),
    ],
)
def test_another_shape_is_an_error(output: Any, reply: str, code: str, run: Refine) -> None:
    """Another kind of data, or an object that has lost a key, is not taken for the draft."""
    record = run(output, [reply])
    assert (record["outcome"], record["error"]["stage"], record["error"]["code"]) == (
        "errors",
        "rewrite",
        code,
    )
    assert (record["output"], record["error"]["raw_text"]) == (output, reply)


def test_a_lost_key_is_named(run: Refine) -> None:
    """The message says which key is missing, so that it can be sent back to a model."""
    record = run({"plan": [], "sources": []}, ['{"plan": [1]}'])
    assert "lacks 'sources'; keep every top-level key" in record["error"]["message"]


def test_a_model_is_told_of_a_lost_key(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Asked again with what was wrong, a model may mend it; the draft is then refined."""
    openai_server.script({"do": "answer", "payload": scored(5, "pass")}, repeat="last")
    openai_server.script({"do": "answer", "payload": {"other": 1}}, contains="Rewrite the draft")
    openai_server.script({"do": "answer", "payload": {"payload": 1}}, contains="lacks 'payload'")
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    drafts = write_lines(tmp_path / "d.jsonl", [draft(0)])
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base, api_key="sk-x", max_retries=0)
    assert refine(rows, drafts, tmp_path, config)["refined"] == 1


def test_a_check_of_the_callers_gives_the_contract(run: Refine) -> None:
    """What `validate` returns is the record's contract; it takes the place of the check of keys."""
    seen: list[Any] = []

    def validate(output: Any) -> Any:
        seen.append(output)
        return {"envelope_ok": True}

    record = run({"a": 1, "b": 2}, ['{"c": 3}'], validate=validate)
    assert (record["outcome"], record["output"]) == ("refined", {"c": 3})
    assert (record["contract"], seen) == ({"envelope_ok": True}, [{"c": 3}])


def test_a_check_of_the_callers_may_refuse(run: Refine) -> None:
    """Whatever `validate` raises is why the output will not do."""

    def validate(output: Any) -> None:
        raise KeyError("price")

    record = run({"a": 1}, ['{"a": 3}'], validate=validate)
    assert (record["outcome"], record["error"]["code"]) == ("errors", "SCHEMA_ERROR")
    assert "failed its check: KeyError: 'price'" in record["error"]["message"]


@pytest.mark.parametrize("given", [object(), float("nan"), {1, 2}])
def test_a_check_that_gives_no_json_is_told_of(given: Any, run: Refine) -> None:
    """A contract stands in a file, and so it is JSON data."""
    with pytest.raises(ArgumentError, match="validate must return JSON data or None"):
        run("text", ["new"], validate=lambda output: given)


def test_a_check_is_a_function(run: Refine) -> None:
    """Anything else is refused before anybody is asked."""
    with pytest.raises(ArgumentError, match="validate must be a function"):
        run("text", [], validate=7)


@pytest.mark.parametrize(
    ("texts", "marks", "kept", "reason"),
    [
        (["as good"], [scored(1)], ("text", 0), "no_gain"),
        (["better", "as good"], [scored(3), scored(3)], ("better", 1), "no_gain"),
        (["better", "worse"], [scored(3), scored(2)], ("better", 1), "no_gain"),
        (["better", "text"], [scored(3)], ("better", 1), "oscillation"),
        (["a", "b", "c"], [scored(2), scored(3), scored(4)], ("c", 3), "max_rounds"),
    ],
)
def test_the_best_text_is_kept(texts: Any, marks: Any, kept: Any, reason: str, run: Refine) -> None:
    """Where nothing is decided, the text with the best mean score is the output, and its round is told."""
    record = run("text", texts, marks)
    assert (record["outcome"], record["reason"]) == ("undecided", reason)
    assert (record["output"], record["output_round"]) == kept
    rounds = record["history"]
    critiques = [scored(1), *(one["critique"] for one in rounds)]
    assert record["critique"] == critiques[record["output_round"]]


def test_a_rewriting_that_only_harmed_leaves_the_draft(run: Refine) -> None:
    """Where every rewritten text is worse than the draft, the draft stays, with its own contract."""
    record = run("text", ["worse"], [scored(2)], first=3)
    assert (record["output"], record["output_round"], record["contract"]) == ("text", 0, {"ok": True})
    assert (record["rounds"], record["mean_scores"]) == (1, [3.0, 2.0])
    assert record["history"][0]["output"] == "worse"


def test_without_any_scores_the_last_text_is_kept(tmp_path: Path) -> None:
    """Critiques by a schema without scores say nothing of which text is better."""
    schema = {"type": "object", "required": ["verdict"]}
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": {"verdict": "revise"}}])
    drafts = write_lines(tmp_path / "d.jsonl", [draft(0, output="text")])
    texts = iter(["one", "two"])

    def teacher(prompt: TeacherPrompt) -> Any:
        return next(texts) if prompt.task == "rewrite" else {"verdict": "revise"}

    refine(rows, drafts, tmp_path, teacher, schema=schema, max_rounds=2)
    (record,) = read_lines(tmp_path / "undecided_v1.jsonl")
    assert (record["output"], record["output_round"], record["mean_scores"]) == ("two", 2, [None] * 3)


def test_a_score_greater_than_any_float_is_none(run: Refine) -> None:
    """A whole number of four hundred digits does not end the pass."""
    schema = {"type": "object", "required": ["verdict"]}
    huge = json.loads('{"verdict": "pass", "scores": {"clarity": ' + "9" * 400 + "}}")
    record = run("text", ["new"], [huge], schema=schema)
    assert (record["outcome"], record["mean_scores"]) == ("refined", [1.0, None])


def test_critiques_of_another_form_are_followed(tmp_path: Path) -> None:
    """What a schema of the caller's own says in other keys still reaches whoever rewrites."""
    issues = ["bad tone", {"message": "too long"}, {"what": "price", "type": "fact"}]
    given = {"verdict": "revise", "issues": issues, "rewrite_instructions": "Cut it"}
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": given}])
    drafts = write_lines(tmp_path / "d.jsonl", [draft(0, output="text")])
    seen: list[str] = []

    def teacher(prompt: TeacherPrompt) -> Any:
        seen.append(prompt.content)
        return "new" if prompt.task == "rewrite" else scored(5, "pass")

    refine(rows, drafts, tmp_path, teacher)
    assert all(f"\n- {told}\n" in seen[0] for told in ("Cut it", "bad tone", "too long"))
    assert "- fact: {" in seen[0] and '"what": "price"' in seen[0]
    assert "None:" not in seen[0] and "None," not in seen[0]
