"""Critiques by a rubric: where their votes came from, and what came where one could not be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, JudgeReply, JudgeRequest, LLMConfig, Rubric, generate_critiques
from autorubric.apps.drafts import refine
from autorubric.errors import ReplyError
from tests.drafts.teachers import draft, read_lines, scored, write_lines
from tests.servers.fixtures import OpenAIServer

TRANSPORTS = ("openai_compatible", "litellm")
RUBRIC = Rubric([Criterion(name=name, requirement=f"It is {name}.") for name in ("short", "clear")])
MET = {"do": "answer", "payload": {"verdict": "MET", "reason": "So it is."}}


def _config(server: OpenAIServer, transport: str = "openai_compatible", **options: Any) -> LLMConfig:
    given: dict[str, Any] = {"max_retries": 0, **options}
    return LLMConfig(model="openai/m", api_base=server.api_base, api_key="sk-x", transport=transport, **given)


def _record(folder: Path, teacher: Any, **options: Any) -> dict[str, Any]:
    drafts = write_lines(folder / "drafts.jsonl", [draft(0, output="A text.")])
    generate_critiques(drafts, folder / "out", teacher, rubric=RUBRIC, **options)
    (record,) = read_lines(folder / "out" / "critiques_v1.jsonl")
    return record


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_unreadable_reply_is_kept(transport: str, openai_server: OpenAIServer, tmp_path: Path) -> None:
    """The reply that was no vote stands in the record as it came, with its model and request id."""
    openai_server.script(MET, repeat="last")
    prose = {"do": "answer", "content": "I would rather talk."}
    openai_server.script(prose, contains="It is clear", repeat="last")
    openai_server.script(prose, contains="could not be used", repeat="last")
    record = _record(tmp_path, _config(openai_server, transport, max_parallel_requests=1))
    assert record["critique_contract"]["error"]["code"] == "JSON_PARSE_ERROR"
    assert record["critique_contract"]["strict_json_ok"] is False
    assert record["raw_critique_text"] == "I would rather talk."
    teacher = record["teacher"]
    assert teacher["selected_model"].endswith("m") and teacher["attempted_models"] == ["openai/m"]
    assert (teacher["request_id"], teacher["cached"]) == ("chatcmpl-1", False)


def test_an_unreadable_reply_of_any_length_is_cut(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """20,000 characters of it are kept, in refinement too."""
    openai_server.script({"do": "answer", "content": "so " * 10_000}, repeat="last")
    record = _record(tmp_path, _config(openai_server))
    assert record["raw_critique_text"] == ("so " * 10_000)[:20_000]
    openai_server.script({"do": "answer", "content": "better"}, contains="Rewrite the draft")
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": scored(1)}])
    refine(rows, tmp_path / "drafts.jsonl", tmp_path, _config(openai_server), rubric=RUBRIC)
    (record,) = read_lines(tmp_path / "errors_v1.jsonl")
    assert record["error"]["stage"] == "critique" and len(record["error"]["raw_text"]) == 20_000


@pytest.mark.parametrize("reply", [MET, {"do": "answer", "content": "hm"}])
def test_the_fallback_that_answered_is_told(
    reply: dict[str, Any], openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Where the first model fails for good, the record names both, and the one that replied."""
    openai_server.script(reply, repeat="last")
    openai_server.script({"do": "status", "status": 404}, model="m", repeat="last")
    teacher = _record(tmp_path, _config(openai_server, fallbacks=("openai/spare",)))["teacher"]
    assert teacher["attempted_models"] == ["openai/m", "openai/spare"]
    assert (teacher["asked_model"], teacher["selected_model"]) == ("openai/m", "spare")
    assert teacher["request_id"].startswith("chatcmpl-")


def test_where_no_model_replied_all_that_were_asked_are_told(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Both models fail: there is no reply, no request id and no model that answered."""
    openai_server.script({"do": "status", "status": 404}, repeat="last")
    record = _record(tmp_path, _config(openai_server, fallbacks=("openai/spare",)))
    teacher = record["teacher"]
    assert (record["raw_critique_text"], teacher["selected_model"]) == (None, None)
    assert (teacher["request_id"], len(teacher["attempted_models"])) == (None, 2)


def test_votes_from_the_cache_say_so(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A critique all of whose votes were kept replies is cached; one with a fresh vote is not."""
    openai_server.script(MET, repeat="last")
    config = _config(openai_server, cache_enabled=True, cache_dir=tmp_path / "cache")
    assert _record(tmp_path, config)["teacher"]["cached"] is False
    drafts = tmp_path / "drafts.jsonl"
    more = Rubric([*RUBRIC, Criterion(name="kind", requirement="It is kind.")])
    for name, rubric, cached in (("again", RUBRIC, True), ("more", more, False)):
        generate_critiques(drafts, tmp_path / name, config, rubric=rubric)
        (record,) = read_lines(tmp_path / name / "critiques_v1.jsonl")
        assert record["teacher"]["cached"] is cached


class Evaluator:
    """Gives what is no evaluation."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def forward(self, prompt: Any) -> Any:
        return self.given


def _refuses(request: JudgeRequest) -> Any:
    raise ReplyError("that is none", reply="Perhaps.")


@pytest.mark.parametrize(
    ("teacher", "kept"),
    [
        (lambda request: "Perhaps.", "Perhaps."),
        (lambda request: {"verdict": "Perhaps."}, '{"verdict": "Perhaps."}'),
        (lambda request: JudgeReply(answer="Perhaps.", model="mine"), "Perhaps."),
        (_refuses, "Perhaps."),
        (Evaluator("Perhaps."), "Perhaps."),
        (Evaluator({"verdict": "Perhaps."}), '{"verdict": "Perhaps."}'),
    ],
)
def test_what_a_function_gave_is_kept(teacher: Any, kept: str, tmp_path: Path) -> None:
    """An answer of a judge or an evaluator that is no vote is kept, data as JSON."""
    record = _record(tmp_path, teacher)
    assert record["critique_contract"]["error"]["code"] == "JSON_PARSE_ERROR"
    assert record["raw_critique_text"] == kept


def test_a_judge_of_its_own_names_its_model(tmp_path: Path) -> None:
    """The model that a judge says it had is the one that answered, where its answer cannot be read too."""
    record = _record(tmp_path, lambda request: JudgeReply(answer="Perhaps.", model="mine"))
    assert record["teacher"]["selected_model"] == "mine"
