"""Drafts, critiques and teachers for tests."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from autorubric.apps.drafts import TeacherPrompt, TeacherReply

ROUTED_MODEL = "meta-llama/llama-3.3-70b-instruct:free"

PAYLOAD = {"payload": {"trip_days": [{"activities": ["Walk", "Museum at 9:00"]}]}}

CRITIQUE: dict[str, Any] = {
    "id": "draft_0",
    "verdict": "revise",
    "issues": [
        {
            "type": "hallucination",
            "severity": "medium",
            "message": "Claims specific opening hours without verification guidance",
            "evidence_path": "payload.trip_days[0].activities[1]",
        }
    ],
    "scores": {"actionability": 4, "clarity": 5, "schema_compliance": 5, "safety_risk": 4},
    "hallucination": {
        "risk_level": "medium",
        "risky_claims": ["Museum opens at 9:00 AM"],
        "rationale": "Time-sensitive information without verification step",
    },
    "verification": {"missing_when_needed": True, "suggested_steps": ["Verify museum hours before visit"]},
    "schema": {"envelope_ok": True, "payload_ok": True, "notes": "Schema compliant", "missing_fields": []},
    "rewrite_instructions": [
        "Add verification step for museum hours",
        "Qualify time-sensitive claims with 'typically' or 'as of [date]'",
    ],
}


def critique(**changes: Any) -> dict[str, Any]:
    """The critique with some of its keys replaced."""
    return {**copy.deepcopy(CRITIQUE), **changes}


def scored(score: int, verdict: str = "revise", **changes: Any) -> dict[str, Any]:
    """A critique with one score for everything."""
    return critique(verdict=verdict, scores=dict.fromkeys(CRITIQUE["scores"], score), **changes)


def draft(number: int, **changes: Any) -> dict[str, Any]:
    """A draft with this number."""
    return {"id": f"draft_{number}", "prompt": f"Plan day {number}.", "output": PAYLOAD, **changes}


def write_lines(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """Writes JSON lines; texts as they are."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a file; every line must be one."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def good(prompt: TeacherPrompt) -> str:
    """A teacher that finds the same in every draft."""
    return json.dumps(critique(id=prompt.draft_id))


def route(text: str) -> TeacherReply:
    """A reply of which a router says where it came from."""
    return TeacherReply(
        text=text,
        provider="openrouter",
        selected_model=ROUTED_MODEL,
        attempted_models=(ROUTED_MODEL,),
        request_id="req-abc123",
        usage={"total_tokens": 450},
        latency_s=2.1,
    )


def rewriting(prompt: TeacherPrompt) -> str:
    """A teacher that rewrites every draft, and lets what is rewritten pass."""
    if prompt.task == "rewrite":
        return f"better {prompt.draft_id}"
    return json.dumps(scored(5, "pass", id=prompt.draft_id))
