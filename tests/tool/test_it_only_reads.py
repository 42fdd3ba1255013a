"""A critique reads: it writes no file and starts no process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.watched import events

PROGRAM = r"""
from autorubric.apps.tool import critique_evaluate_sync

CONTENT = "import os\n\ndef f():\n    os.system('touch ran')\n    open('ran', 'w').close()\n"
REPLY = {
    "criteria_scores": [{"criterion": "security", **ANSWER}],
    "issues": [
        {"criterion": "security", "severity": "high", "location": "here.py:4", "description": "It runs."}
    ],
    "summary": "touch ran",
    "suggestions": ["touch ran"],
}

def call():
    request = {"content": CONTENT, "criteria": [CRITERION], "workspace_root": "."}
    return critique_evaluate_sync(request, providers={"local_fm": lambda _: REPLY})

found = watched(call).to_dict()
"""


@pytest.mark.parametrize(
    ("criterion", "answer"),
    [
        ("security", {"explanation": "It runs.", "score": 2}),
        ("rubric.json", {"reason": "It runs.", "verdict": "UNMET"}),
    ],
)
def test_a_critique_writes_nothing_and_starts_nothing(
    tmp_path: Path, criterion: str, answer: dict[str, Any]
) -> None:
    """With code, locations and a rubric file in it, and without an audit log."""
    rubric = tmp_path / "rubric.json"
    rubric.write_text('[{"name": "security", "requirement": "It is safe."}]', encoding="utf-8")
    given = events(f"CRITERION, ANSWER = {criterion!r}, {answer!r}\n{PROGRAM}", tmp_path)
    assert given["found"]["ok"], given["found"]
    assert [one for one in given["seen"] if one[0] != "code"] == []
    assert not any("touch ran" in source for _, _, source in given["seen"])
    assert list(tmp_path.iterdir()) == [rubric]
