"""The pass over real HTTP, with faults on the way."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autorubric import LLMConfig, generate_critiques
from autorubric.apps.drafts import refine
from tests.drafts.teachers import critique, draft, read_lines, scored, write_lines
from tests.servers.fixtures import PASSING_FAULTS, OpenAIServer

KEY = "sk-sentinel-3f1c"
TRANSPORTS = ("openai_compatible", "litellm")


def _config(server: OpenAIServer, transport: str = "openai_compatible", **options: Any) -> LLMConfig:
    quick: dict[str, Any] = {"retry_min_wait": 0.01, "retry_max_wait": 0.05, **options}
    return LLMConfig(model="openai/m", api_base=server.api_base, api_key=KEY, transport=transport, **quick)


def _drafts(folder: Path, count: int) -> Path:
    return write_lines(folder / "drafts.jsonl", [draft(number) for number in range(count)])


def _records(folder: Path) -> dict[str, Any]:
    return {record["id"]: record for record in read_lines(folder / "critiques_v1.jsonl")}


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_record_says_which_model_answered(
    transport: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """Provider, models, request id, tokens and time of a real exchange stand in the record."""
    openai_server.script({"do": "answer", "payload": critique()})
    stats = generate_critiques(_drafts(tmp_path, 1), tmp_path, _config(openai_server, transport))
    teacher = _records(tmp_path)["draft_0"]["teacher"]
    assert (teacher["provider"], teacher["asked_model"]) == ("openai", "openai/m")
    assert teacher["attempted_models"] == ["openai/m"]
    assert teacher["selected_model"].endswith("m")
    assert teacher["request_id"] == "chatcmpl-1"
    assert teacher["usage"]["total_tokens"] == 120 and teacher["timing"]["latency_s"] > 0
    assert stats["tokens"] == 120
    asked = openai_server.log()[0]["body"]
    assert asked["response_format"]["json_schema"]["name"] == "critique"
    assert "$schema" not in asked["response_format"]["json_schema"]["schema"]
    manifest = json.loads((tmp_path / "critiques_v1_manifest.json").read_text(encoding="utf-8"))
    assert manifest["teacher_config"]["models"] == ["openai/m"]


FAULTS: list[dict[str, Any] | str] = [
    *PASSING_FAULTS,
    {"do": "answer", "content": '{"id": "cut of'},
    {"do": "answer", "payload": {"verdict": "pass"}},
]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_faults_lose_no_draft_and_critique_none_twice(
    transport: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """With every fault on the way, each of 40 drafts has one record, with a valid critique."""
    openai_server.script({"do": "answer", "payload": critique()}, repeat="last")
    openai_server.script(*FAULTS)
    config = _config(openai_server, transport, max_retries=6, max_parallel_requests=8)
    stats = generate_critiques(_drafts(tmp_path, 40), tmp_path, config)
    ids = Counter(record["id"] for record in read_lines(tmp_path / "critiques_v1.jsonl"))
    assert len(ids) == 40 and set(ids.values()) == {1}
    assert stats["critique_schema_valid_rate"] == 100.0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_requests_that_hang_lose_no_draft(
    transport: str, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """They are given up and sent again, as often as it takes."""
    openai_server.script({"do": "answer", "payload": critique()}, repeat="last")
    openai_server.script(*[{"do": "hang", "seconds": 300}] * 3)
    # A busy machine, too slow for so short a time, has tries enough.
    config = _config(openai_server, transport, timeout=1.0, max_retries=60, max_parallel_requests=8)
    stats = generate_critiques(_drafts(tmp_path, 8), tmp_path, config)
    assert (stats["records"], stats["critique_schema_valid_rate"]) == (8, 100.0)


def test_lasting_failures_have_their_codes(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """What a model never does right is an error of its kind, and the rest goes on."""
    openai_server.script({"do": "answer", "payload": critique()}, repeat="last")
    steps: list[tuple[str, dict[str, Any]]] = [
        ("draft_0.", {"do": "answer", "content": "I would rather talk."}),
        ("draft_1.", {"do": "answer", "payload": {"verdict": "pass"}}),
        ("draft_2.", {"do": "status", "status": 401}),
        ("draft_3.", {"do": "refusal"}),
    ]
    for needle, step in steps:
        openai_server.script(step, contains=f"has the id {needle}", repeat="last")
    # Asked again, the first two say the same.
    for needle, step in (("no JSON object", steps[0][1]), ("follow the schema", steps[1][1])):
        openai_server.script(step, contains=f"{needle}", repeat="last")
    stats = generate_critiques(_drafts(tmp_path, 5), tmp_path, _config(openai_server, max_retries=0))
    found = _records(tmp_path)
    errors = [found[f"draft_{n}"]["critique_contract"].get("error", {}).get("code") for n in range(5)]
    assert errors == ["JSON_PARSE_ERROR", "SCHEMA_ERROR", "PROVIDER_ERROR", "JSON_PARSE_ERROR", None]
    assert found["draft_0"]["raw_critique_text"] == "I would rather talk."
    assert found["draft_1"]["raw_critique_text"] == '{"verdict": "pass"}'
    assert found["draft_1"]["critique_contract"]["strict_json_ok"] is True
    assert "refused" in found["draft_3"]["critique_contract"]["error"]["message"]
    # A reply that cannot be used is asked for again, and its tokens are counted.
    assert found["draft_0"]["teacher"]["usage"]["total_tokens"] == 360
    assert stats["critique_parse_rate"] == pytest.approx(100 * 2 / 5)


def test_no_answer_in_time_has_its_code(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A model that hangs is a TIMEOUT."""
    openai_server.script({"do": "hang", "seconds": 300}, repeat="last")
    config = _config(openai_server, timeout=0.4, max_retries=0)
    assert generate_critiques(_drafts(tmp_path, 1), tmp_path, config)["error_counts"]["TIMEOUT"] == 1


def test_fallbacks_are_told_in_the_order_asked(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Where the first model fails for good, the record names it and the one that answered."""
    openai_server.script({"do": "answer", "payload": critique()}, repeat="last")
    openai_server.script({"do": "status", "status": 404}, model="m", repeat="last")
    config = _config(openai_server, fallbacks=("openai/spare",), max_retries=0)
    generate_critiques(_drafts(tmp_path, 1), tmp_path, config)
    teacher = _records(tmp_path)["draft_0"]["teacher"]
    assert teacher["attempted_models"] == ["openai/m", "openai/spare"]
    assert (teacher["asked_model"], teacher["selected_model"]) == ("openai/m", "spare")
    openai_server.reset()
    openai_server.script({"do": "status", "status": 404}, repeat="last")
    generate_critiques(_drafts(tmp_path, 1), tmp_path / "none", config)
    teacher = _records(tmp_path / "none")["draft_0"]["teacher"]
    assert (teacher["selected_model"], len(teacher["attempted_models"])) == (None, 2)


def test_no_key_stands_in_any_file(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """A server that tells the key back does not get it into a file."""
    openai_server.script({"do": "echo_key"}, repeat="last")
    config = _config(openai_server, max_retries=0, extra_headers={"X-Secret-Key": f"{KEY}-header"})
    generate_critiques(_drafts(tmp_path, 2), tmp_path, config)
    for path in tmp_path.iterdir():
        assert KEY not in path.read_text(encoding="utf-8"), path.name


def test_a_kept_reply_is_used_again(openai_server: OpenAIServer, tmp_path: Path) -> None:
    """With a cache, a fresh pass asks nobody and says so."""
    openai_server.script({"do": "answer", "payload": critique()}, repeat="last")
    config = _config(openai_server, cache_enabled=True, cache_dir=tmp_path / "cache")
    generate_critiques(_drafts(tmp_path, 3), tmp_path / "a", config)
    asked = len(openai_server.log())
    stats = generate_critiques(tmp_path / "drafts.jsonl", tmp_path / "b", config)
    assert (len(openai_server.log()), stats["cost"]) == (asked, 0.0)
    assert all(record["teacher"]["cached"] for record in _records(tmp_path / "b").values())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_refinement_with_faults_on(transport: str, openai_server: OpenAIServer, tmp_path: Path) -> None:
    """Drafts are rewritten and pass, each once, whatever breaks on the way."""
    openai_server.script({"do": "answer", "payload": critique()}, repeat="last")
    drafts = _drafts(tmp_path, 10)
    config = _config(openai_server, transport, max_retries=6, max_parallel_requests=4)
    generate_critiques(drafts, tmp_path, config)
    openai_server.reset()
    rewritten = {"payload": {"trip_days": ["Check the hours first."]}}
    for needle in ("Rewrite the draft", "could not be used"):
        openai_server.script({"do": "answer", "payload": rewritten}, contains=needle, repeat="last")
    openai_server.script(
        {"do": "answer", "payload": scored(5, "pass")}, contains="strict, fair", repeat="last"
    )
    openai_server.script(
        "reset", {"do": "status", "status": 500}, {"do": "answer", "content": ""}, "truncated"
    )
    stats = refine(tmp_path / "critiques_v1.jsonl", drafts, tmp_path, config)
    assert (stats["refined"], stats["success_rate"], stats["errors"]) == (10, 100.0, 0)
    records = read_lines(tmp_path / "refined_v1.jsonl")
    assert len({record["id"] for record in records}) == 10
    assert all(record["output"] == rewritten for record in records)
