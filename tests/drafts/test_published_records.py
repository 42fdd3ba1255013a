"""The published records of a critique pass: each file has every published key, with a value of its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from autorubric import generate_critiques, load_critique_schema
from autorubric.apps.drafts import TeacherPrompt, TeacherReply, load_critique_prompt_template
from tests.drafts.teachers import CRITIQUE, ROUTED_MODEL, critique, draft, read_lines, route, write_lines

TEACHER: dict[str, Any] = {
    "provider": "openrouter",
    "selected_model": ROUTED_MODEL,
    "attempted_models": [ROUTED_MODEL],
    "request_id": "req-abc123",
    "timing": {"latency_s": 2.1},
    "usage": {"total_tokens": 450},
}
RECORD: dict[str, Any] = {
    "id": "draft_0",
    "draft_id": "draft_0",
    "critique": CRITIQUE,
    "raw_critique_text": None,
    "teacher": TEACHER,
    "critique_contract": {"strict_json_ok": True, "schema_ok": True},
    "created_at": "2026-01-28T14:23:45.123456+00:00",
}
INVALID: dict[str, Any] = {
    "id": "draft_1",
    "draft_id": "draft_1",
    "critique": None,
    "raw_critique_text": "This is not valid JSON...",
    "teacher": TEACHER,
    "critique_contract": {
        "strict_json_ok": False,
        "schema_ok": False,
        "error": {"code": "JSON_PARSE_ERROR", "message": "Could not extract valid JSON from response"},
    },
    "created_at": "2026-01-28T14:23:47.123456+00:00",
}
MANIFEST: dict[str, Any] = {
    "version": "v1",
    "run_id": "20260128_142345",
    "generated_at": "2026-01-28T14:23:45.123456+00:00",
    "inputs": {"drafts_path": "data/interim/drafts_v1.jsonl", "drafts_hash": "abc123..."},
    "critique_schema": {"path": "critique.schema.json", "hash": "def456...", "version": "v1"},
    "teacher_config": {
        "models": [ROUTED_MODEL, "..."],
        "generation": {"temperature": 0.2, "max_tokens": 1500},
    },
    "counts": {
        "total_drafts": 100,
        "processed": 100,
        "skipped": 0,
        "critique_parse_ok": 98,
        "critique_schema_ok": 97,
    },
    "outputs": {
        "critiques": "critiques_v1.jsonl",
        "manifest": "critiques_v1_manifest.json",
        "stats": "critiques_v1_stats.json",
    },
}
STATISTICS: dict[str, Any] = {
    "total": 100,
    "processed": 100,
    "skipped": 0,
    "critique_parse_rate": 98.0,
    "critique_schema_valid_rate": 97.0,
    "verdict_distribution": {"pass": 45, "revise": 42, "reject": 10},
    "issue_type_counts": {
        "hallucination": 23,
        "verification": 18,
        "overconfidence": 12,
        "actionability": 8,
        "clarity": 5,
        "schema": 3,
        "safety": 1,
    },
    "risk_level_distribution": {"low": 65, "medium": 28, "high": 4},
}
AVERAGES: dict[str, float] = {
    "actionability": 4.2,
    "clarity": 4.5,
    "schema_compliance": 4.8,
    "safety_risk": 4.6,
}
"""Means of 97 whole scores come within a hundredth of these."""

CHANGING = frozenset({"created_at", "generated_at", "run_id", "message", "path", "hash", *MANIFEST["inputs"]})
"""Keys whose values are another run's."""


def assert_published(found: Any, published: Mapping[str, Any], place: str = "") -> None:
    """Every published key is there, with its value; where that is another run's, with one of its kind."""
    for name, value in published.items():
        assert name in found, f"{place}.{name}"
        if isinstance(value, Mapping) and value is not CRITIQUE:
            assert_published(found[name], value, f"{place}.{name}")
        elif name in CHANGING:
            assert type(found[name]) is type(value) and found[name], f"{place}.{name}"
        else:
            assert found[name] == value, f"{place}.{name}"


def spread(counts: Mapping[str, int]) -> list[str]:
    """Each name as often as it is counted."""
    return [name for name, count in counts.items() for _ in range(count)]


def scores_of(number: int) -> dict[str, int]:
    """Scores of draft `number` of 97, so that the means are the published ones."""
    return {name: 4 + (number < round(97 * (mean - 4))) for name, mean in AVERAGES.items()}


def replies() -> list[str]:
    """A hundred replies that give the published figures."""
    verdicts = spread(STATISTICS["verdict_distribution"])
    risks = spread(STATISTICS["risk_level_distribution"])
    issues = spread(STATISTICS["issue_type_counts"])
    made = [
        critique(
            id=f"draft_{number}",
            verdict=verdicts[number],
            scores=scores_of(number),
            hallucination={**CRITIQUE["hallucination"], "risk_level": risks[number]},
            issues=[{**CRITIQUE["issues"][0], "type": kind} for kind in issues[number : number + 1]],
        )
        for number in range(97)
    ]
    return [*map(json.dumps, made), json.dumps(critique(verdict="maybe")), "no JSON", ""]


def teacher_of(given: list[str]) -> Any:
    """A teacher that says where its replies came from."""

    def teacher(prompt: TeacherPrompt) -> TeacherReply:
        return route(given[int(prompt.draft_id.removeprefix("draft_"))])

    return teacher


def test_the_published_records_are_written(tmp_path: Path) -> None:
    """A critique and a reply that is none give the two published lines."""
    drafts = write_lines(tmp_path / "drafts.jsonl", [draft(0), draft(1)])
    given = [json.dumps(CRITIQUE), "This is not valid JSON..."]
    generate_critiques(drafts, tmp_path, teacher_of(given))
    found = read_lines(tmp_path / "critiques_v1.jsonl")
    assert len(found) == 2
    for record, published in zip(found, (RECORD, INVALID), strict=True):
        assert_published(record, published)


def test_the_published_figures_are_written(tmp_path: Path) -> None:
    """A hundred drafts, called for as published, give the published manifest and statistics."""
    drafts = write_lines(tmp_path / "drafts.jsonl", [draft(number) for number in range(100)])
    stats = generate_critiques(
        drafts_path=drafts,
        out_dir=tmp_path,
        teacher=teacher_of(replies()),
        config=dict(MANIFEST["teacher_config"]),
        schema=load_critique_schema(),
        template=load_critique_prompt_template(),
        limit=None,
        resume=False,
    )
    assert_published(stats, STATISTICS)
    assert stats["avg_scores"] == {name: pytest.approx(mean, abs=0.01) for name, mean in AVERAGES.items()}
    for name, published in (("manifest", MANIFEST), ("stats", STATISTICS)):
        text = (tmp_path / f"critiques_v1_{name}.json").read_text(encoding="utf-8")
        assert_published(json.loads(text), published, name)
