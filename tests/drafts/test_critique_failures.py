"""Critiques that could not be used: where they came from is known all the same, and the pass goes on."""

from __future__ import annotations

import asyncio
import concurrent.futures
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, LLMConfig, Rubric, generate_critiques
from autorubric.apps.drafts import TeacherPrompt, TeacherReply, generate_critiques_async, refine
from autorubric.errors import ArgumentError, FileError
from tests.doubles import until
from tests.drafts.teachers import critique, draft, good, read_lines, scored, write_lines
from tests.servers.fixtures import OpenAIServer

TRANSPORTS = ("openai_compatible", "litellm")
BAD_REPLIES: list[tuple[dict[str, Any], str]] = [
    ({"do": "answer", "content": "I would rather talk."}, "JSON_PARSE_ERROR"),
    ({"do": "answer", "payload": {"verdict": "pass"}}, "SCHEMA_ERROR"),
    ({"do": "refusal"}, "JSON_PARSE_ERROR"),
]


def _config(server: OpenAIServer, transport: str = "openai_compatible", **options: Any) -> LLMConfig:
    given: dict[str, Any] = {"max_retries": 0, **options}
    return LLMConfig(model="openai/m", api_base=server.api_base, api_key="sk-x", transport=transport, **given)


def _drafts(folder: Path, count: int = 1) -> Path:
    return write_lines(folder / "drafts.jsonl", [draft(number) for number in range(count)])


def _records(folder: Path) -> dict[str, Any]:
    return {record["id"]: record for record in read_lines(folder / "critiques_v1.jsonl")}


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("step", "code"), BAD_REPLIES)
def test_a_reply_that_could_not_be_used_has_its_origin(
    step: dict[str, Any], code: str, transport: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Model, request id, attempts, time and tokens stand in the record of a critique that is none."""
    openai_server.script(step, repeat="last")
    generate_critiques(_drafts(tmp_path), tmp_path, _config(openai_server, transport))
    record = _records(tmp_path)["draft_0"]
    assert record["critique_contract"]["error"]["code"] == code
    teacher = record["teacher"]
    assert teacher["selected_model"] and teacher["selected_model"].endswith("m")
    assert teacher["request_id"] == "chatcmpl-1"
    assert teacher["attempted_models"] == ["openai/m"]
    assert teacher["timing"]["latency_s"] > 0
    assert teacher["usage"]["total_tokens"] == 120 * len(openai_server.log())


def test_a_provider_that_fails_after_a_bad_reply_leaves_what_came(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """A reply, then an error of the provider: the record has the reply's origin and text, and the error."""
    openai_server.script({"do": "answer", "content": "no"}, {"do": "status", "status": 401})
    generate_critiques(_drafts(tmp_path), tmp_path, _config(openai_server))
    record = _records(tmp_path)["draft_0"]
    assert record["critique_contract"]["error"]["code"] == "PROVIDER_ERROR"
    assert (record["raw_critique_text"], record["teacher"]["request_id"]) == ("no", "chatcmpl-1")
    assert record["teacher"]["usage"]["total_tokens"] == 120


def test_where_nobody_answered_no_model_is_named(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Without a reply there is none that answered; who was asked is known."""
    openai_server.script({"do": "status", "status": 401}, repeat="last")
    rubric = Rubric([Criterion(name="short", requirement="It is short.")])
    calls: dict[str, dict[str, Any]] = {"a": {}, "b": {"rubric": rubric}}
    for name, options in calls.items():
        generate_critiques(_drafts(tmp_path), tmp_path / name, _config(openai_server), **options)
        teacher = _records(tmp_path / name)["draft_0"]["teacher"]
        assert (teacher["selected_model"], teacher["request_id"]) == (None, None)
        assert (teacher["asked_model"], teacher["attempted_models"]) == ("openai/m", ["openai/m"])


def test_an_unreadable_vote_has_the_model_that_gave_it(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """With a rubric, the model of a vote that could not be read is named."""
    openai_server.script({"do": "answer", "content": "hm"}, repeat="last")
    rubric = Rubric([Criterion(name="short", requirement="It is short.")])
    generate_critiques(_drafts(tmp_path), tmp_path, _config(openai_server), rubric=rubric)
    record = _records(tmp_path)["draft_0"]
    assert record["critique_contract"]["error"]["code"] == "JSON_PARSE_ERROR"
    assert record["teacher"]["selected_model"] == "m"


def test_a_rewriting_that_could_not_be_used_has_its_origin(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """The error of a refinement says which model gave the text that will not do."""
    openai_server.script({"do": "answer", "content": ""}, repeat="last")
    rows = write_lines(tmp_path / "c.jsonl", [{"id": "draft_0", "critique": critique()}])
    refine(rows, _drafts(tmp_path), tmp_path, _config(openai_server))
    (record,) = read_lines(tmp_path / "errors_v1.jsonl")
    assert record["error"]["teacher"]["selected_model"] == "m"
    assert record["error"]["teacher"]["request_id"] == "chatcmpl-1"


def _cancelled(prompt: Any) -> Any:
    raise asyncio.CancelledError("given up")


async def _cancelled_later(prompt: Any) -> Any:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


def _other_cancelled(prompt: Any) -> Any:
    raise concurrent.futures.CancelledError


@pytest.mark.parametrize("raising", [_cancelled, _cancelled_later, _other_cancelled])
@pytest.mark.parametrize("by_rubric", [False, True])
def test_a_teacher_that_gives_up_does_not_end_the_pass(raising: Any, by_rubric: bool, tmp_path: Path) -> None:
    """A CancelledError of the teacher's own is the failure of one draft; the others go on."""
    later = asyncio.iscoroutinefunction(raising)

    def fails(prompt: Any) -> bool:
        return "text 1" in str(prompt.submission.text if by_rubric else prompt.content)

    def answer(prompt: Any) -> Any:
        return "MET" if by_rubric else good(prompt)

    def teacher(prompt: Any) -> Any:
        return raising(prompt) if fails(prompt) else answer(prompt)

    async def teacher_later(prompt: Any) -> Any:
        return await raising(prompt) if fails(prompt) else answer(prompt)

    rubric = Rubric([Criterion(name="short", requirement="It is short.")]) if by_rubric else None
    rows = [draft(number, output=f"text {number}") for number in range(3)]
    drafts = write_lines(tmp_path / "drafts.jsonl", rows)
    stats = generate_critiques(drafts, tmp_path, teacher_later if later else teacher, rubric=rubric)
    assert (stats["records"], stats["error_counts"]["PROVIDER_ERROR"]) == (3, 1)
    error = _records(tmp_path)["draft_1"]["critique_contract"]["error"]
    assert "CancelledError" in error["message"]


def test_a_pass_that_is_cancelled_ends(tmp_path: Path) -> None:
    """Cancelling the pass itself is no failure of the teacher: it ends, and goes on with a resume."""
    drafts = _drafts(tmp_path, 3)

    async def teacher(prompt: TeacherPrompt) -> str:
        if prompt.draft_id == "draft_1":
            await asyncio.Event().wait()
        return good(prompt)

    def others_are_written() -> bool:
        records = tmp_path / "critiques_v1.jsonl"
        return records.exists() and records.read_bytes().count(b"\n") == 2

    async def cut() -> None:
        task = asyncio.ensure_future(generate_critiques_async(drafts, tmp_path, teacher))
        await until(others_are_written)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cut())
    assert sorted(_records(tmp_path)) == ["draft_0", "draft_2"]
    assert generate_critiques(drafts, tmp_path, good, resume=True)["critique_schema_valid_rate"] == 100.0


@pytest.mark.parametrize("content", ["", "\n", " \r\n\r\n"])
def test_drafts_with_nothing_in_them_are_faulty(content: str, tmp_path: Path) -> None:
    """A gate that nothing went through is not passed: an empty file is told, and nothing is written."""
    drafts = tmp_path / "drafts.jsonl"
    drafts.write_text(content, encoding="utf-8", newline="")
    calls: list[dict[str, Any]] = [{}, {"resume": True}, {"dry_run": True}]
    for options in calls:
        with pytest.raises(FileError, match="the file is empty; it must contain one JSON object"):
            generate_critiques(drafts, tmp_path / "out", good, **options)
    assert not (tmp_path / "out").exists()


def test_retry_errors_needs_resume(tmp_path: Path) -> None:
    """Without resume everything would be asked again, paid for again, and called a retry: it is refused."""
    drafts = _drafts(tmp_path, 2)
    generate_critiques(drafts, tmp_path, good)
    before = (tmp_path / "critiques_v1.jsonl").read_bytes()
    with pytest.raises(ArgumentError, match="retry_errors=True requires resume=True"):
        generate_critiques(drafts, tmp_path, lambda prompt: scored(1), retry_errors=True)
    assert (tmp_path / "critiques_v1.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("text", None),
        ("text", 5),
        ("provider", object()),
        ("selected_model", 3),
        ("request_id", 7),
        ("attempted_models", "abc"),
        ("attempted_models", (1,)),
        ("usage", 5),
        ("usage", {"total_tokens": float("nan")}),
        ("cost", "x"),
        ("cost", float("inf")),
        ("latency_s", "x"),
    ],
)
def test_a_faulty_teacher_reply_fails_one_draft(field: str, given: Any, tmp_path: Path) -> None:
    """What could not be written down is told where it is made, and the pass goes on."""

    def teacher(prompt: TeacherPrompt) -> Any:
        faulty = {field: given} if prompt.draft_id == "draft_0" else {}
        return TeacherReply(**{"text": good(prompt), **faulty})

    stats = generate_critiques(_drafts(tmp_path, 2), tmp_path, teacher)
    assert (stats["records"], stats["error_counts"]["PROVIDER_ERROR"]) == (2, 1)
    error = _records(tmp_path)["draft_0"]["critique_contract"]["error"]
    assert f"TeacherReply: {field} must be" in error["message"]
