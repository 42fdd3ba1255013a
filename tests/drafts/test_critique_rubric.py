"""A rubric in the place of the schema: its criteria are the scores, its score the verdict."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, JudgeRequest, LexicalJudge, Rubric, generate_critiques
from autorubric.errors import ArgumentError, JudgeError, ProviderTimeoutError, ReplyError
from tests.drafts.teachers import draft, read_lines, write_lines

RUBRIC = Rubric(
    [
        Criterion(name="capital", requirement="The text names Paris.", weight=3),
        Criterion(name="polite", requirement="The text greets the reader.", weight=1),
        Criterion(name="rude", requirement="The text insults the reader.", weight=-2),
    ]
)


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    """A good draft, a poor one, and one that is rude."""
    texts = ["Hello! Paris it is.", "Hello! Lyon.", "Hello! Paris, you fool."]
    return write_lines(
        tmp_path / "drafts.jsonl", [draft(n, output=text, contract={"ok": n}) for n, text in enumerate(texts)]
    )


def judge(request: JudgeRequest) -> dict[str, Any]:
    """Knows the words that matter."""
    word = {"capital": "Paris", "polite": "Hello", "rude": "fool"}[request.criterion.name or ""]
    met = word in (request.submission.text or "")
    return {"verdict": "MET" if met else "UNMET", "reason": f"looked for {word}"}


def _records(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder / "critiques_v1.jsonl")


def test_criteria_become_scores_and_the_threshold_gives_the_verdict(drafts: Path, tmp_path: Path) -> None:
    """Scores are the criteria's values in [0, 1]; what takes something off is an issue to mend."""
    stats = generate_critiques(drafts, tmp_path, judge, rubric=RUBRIC)
    good, poor, rude = _records(tmp_path)
    assert good["critique"] == {
        "id": "draft_0",
        "verdict": "pass",
        "issues": [],
        "scores": {"capital": 1.0, "polite": 1.0, "rude": 0.0},
        "hallucination": None,
        "verification": None,
        "schema": None,
        "rewrite_instructions": [],
        "score": 1.0,
    }
    assert poor["critique"]["verdict"] == "revise"
    assert poor["critique"]["score"] == 0.25
    assert poor["critique"]["issues"] == [
        {"type": "capital", "severity": "high", "message": "looked for Paris"}
    ]
    assert poor["critique"]["rewrite_instructions"] == ["Make true: The text names Paris. (looked for Paris)"]
    assert rude["critique"]["rewrite_instructions"] == [
        "Take out: The text insults the reader. (looked for fool)"
    ]
    assert stats["verdict_distribution"] == {"pass": 1, "revise": 2, "reject": 0}
    assert stats["avg_scores"]["capital"] == pytest.approx(2 / 3)
    manifest = json.loads((tmp_path / "critiques_v1_manifest.json").read_text(encoding="utf-8"))
    assert manifest["threshold"] == 0.7 and len(manifest["rubric_hash"]) == 64


def test_the_threshold_may_be_set(drafts: Path, tmp_path: Path) -> None:
    """From the threshold up the verdict is pass, at it too."""
    stats = generate_critiques(drafts, tmp_path, judge, rubric=RUBRIC, threshold=0.25)
    assert stats["verdict_distribution"]["pass"] == 3
    with pytest.raises(ArgumentError, match=r"threshold must be a number in \[0, 1\]; got 7"):
        generate_critiques(drafts, tmp_path / "no", judge, rubric=RUBRIC, threshold=7)
    with pytest.raises(ArgumentError, match="own prompts"):
        generate_critiques(drafts, tmp_path / "no", judge, rubric=RUBRIC, template="{output}")


class Forward:
    """An evaluator of prompts, as for a critic."""

    def forward(self, prompt: Any) -> dict[str, Any]:
        return {"verdict": "MET", "reason": "so it is"}


@pytest.mark.parametrize("teacher", [LexicalJudge(), Forward()])
def test_judges_and_evaluators_will_do(teacher: Any, drafts: Path, tmp_path: Path) -> None:
    """Whoever votes on criteria is a teacher here."""
    stats = generate_critiques(drafts, tmp_path, teacher, rubric=RUBRIC)
    assert stats["critique_schema_valid_rate"] == 100.0
    assert all(set(one["critique"]["scores"]) == {"capital", "polite", "rude"} for one in _records(tmp_path))


def test_the_prompt_and_the_contract_are_the_query(drafts: Path, tmp_path: Path) -> None:
    """A judge sees what the draft answers and what a program found."""
    seen: list[str | None] = []

    async def teacher(request: JudgeRequest) -> dict[str, Any]:
        seen.append(request.query)
        await asyncio.sleep(0)
        return judge(request)

    generate_critiques(drafts, tmp_path, teacher, rubric=RUBRIC, limit=1)
    assert seen[0] is not None and seen[0].startswith("Plan day 0.") and '"ok": 0' in seen[0]


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (JudgeError("broken"), "PROVIDER_ERROR"),
        (ProviderTimeoutError("slow"), "TIMEOUT"),
        (ReplyError("prose"), "JSON_PARSE_ERROR"),
    ],
)
def test_a_criterion_that_could_not_be_judged_is_an_error(
    raised: Exception, code: str, drafts: Path, tmp_path: Path
) -> None:
    """No verdict is made of the criteria that are left."""

    def teacher(request: JudgeRequest) -> dict[str, Any]:
        if request.criterion.name == "polite":
            raise raised
        return judge(request)

    stats = generate_critiques(drafts, tmp_path, teacher, rubric=RUBRIC)
    assert stats["error_counts"][code] == 3
    assert all(one["critique"] is None for one in _records(tmp_path))


def test_a_rubric_file_will_do(drafts: Path, tmp_path: Path) -> None:
    """A rubric may be named by its file."""
    path = tmp_path / "rubric.yaml"
    path.write_text("- {name: capital, requirement: It names Paris.}\n", encoding="utf-8")
    stats = generate_critiques(drafts, tmp_path, lambda request: "MET", rubric=path)
    assert stats["verdict_distribution"]["pass"] == 3
