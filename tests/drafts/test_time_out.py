"""Functions as teachers have the pass's time-out, as models have it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from autorubric import Criterion, JudgeRequest, Rubric, generate_critiques
from autorubric.apps.drafts import TeacherPrompt, refine
from autorubric.errors import ArgumentError
from tests.drafts.teachers import draft, good, read_lines, scored, write_lines

RUBRIC = Rubric([Criterion(name="short", requirement="It is short.")])


def _config(seconds: Any) -> dict[str, Any]:
    return {"generation": {"timeout": seconds}}


def _drafts(folder: Path, count: int = 3) -> Path:
    return write_lines(folder / "drafts.jsonl", [draft(n, output=f"text {n}") for n in range(count)])


async def _hangs_once(asked: Any) -> Any:
    """Never answers about the second draft."""
    if isinstance(asked, JudgeRequest):
        if asked.submission.text == "text 1":
            await asyncio.Event().wait()
        return "MET"
    if asked.draft_id == "draft_1":
        await asyncio.Event().wait()
    return good(asked)


class Hanging:
    """The same as an object."""

    async def aforward(self, prompt: Any) -> Any:
        if "text 1" in prompt.content:
            await asyncio.Event().wait()
        return {"verdict": "MET", "reason": "So."} if not isinstance(prompt, TeacherPrompt) else good(prompt)


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [_hangs_once, Hanging()])
@pytest.mark.parametrize("options", [{}, {"rubric": RUBRIC}])
def test_an_async_teacher_that_hangs_is_a_timeout(teacher: Any, options: Any, tmp_path: Path) -> None:
    """After the pass's time-out the draft has a record of its own kind, and the others their critiques."""
    stats = generate_critiques(_drafts(tmp_path), tmp_path, teacher, config=_config(1), **options)
    assert (stats["records"], stats["error_counts"]["TIMEOUT"]) == (3, 1)
    records = {record["id"]: record for record in read_lines(tmp_path / "critiques_v1.jsonl")}
    error = records["draft_1"]["critique_contract"]["error"]
    assert error["code"] == "TIMEOUT" and "within 1 seconds" in error["message"]
    assert records["draft_1"]["teacher"]["timing"]["latency_s"] >= 1
    assert records["draft_0"]["critique"] and records["draft_2"]["critique"]


def test_a_rewriting_has_it_too(tmp_path: Path) -> None:
    """In refinement a function that hangs is an error of that draft."""

    async def teacher(prompt: TeacherPrompt) -> Any:
        if prompt.task == "rewrite" and prompt.draft_id == "draft_1":
            await asyncio.Event().wait()
        return "better" if prompt.task == "rewrite" else scored(5, "pass")

    drafts = _drafts(tmp_path)
    rows = write_lines(tmp_path / "c.jsonl", [{"id": f"draft_{n}", "critique": scored(1)} for n in range(3)])
    stats = refine(rows, drafts, tmp_path, teacher, config=_config(1))
    (record,) = read_lines(tmp_path / "errors_v1.jsonl")
    assert (stats["refined"], record["error"]["stage"], record["error"]["code"]) == (2, "rewrite", "TIMEOUT")


def _gives_up(asked: Any) -> Any:
    if isinstance(asked, JudgeRequest):
        if asked.submission.text == "text 1":
            raise TimeoutError("the server did not answer")
        return "MET"
    if asked.draft_id == "draft_1":
        raise TimeoutError("the server did not answer")
    return good(asked)


@pytest.mark.parametrize("options", [{}, {"rubric": RUBRIC}])
def test_a_plain_function_sees_to_it_itself(options: Any, tmp_path: Path) -> None:
    """It runs in a thread, which nothing can end; the TimeoutError that it raises has the code."""
    stats = generate_critiques(_drafts(tmp_path), tmp_path, _gives_up, config=_config(60), **options)
    assert (stats["records"], stats["error_counts"]["TIMEOUT"]) == (3, 1)


@pytest.mark.parametrize("seconds", [0, -1, "soon", True, float("inf")])
@pytest.mark.parametrize("options", [{}, {"rubric": RUBRIC}])
def test_what_is_no_time_is_refused(seconds: Any, options: Any, tmp_path: Path) -> None:
    """A time-out that is none is told before anybody is asked."""
    with pytest.raises(ArgumentError, match="must be positive, in seconds"):
        generate_critiques(_drafts(tmp_path), tmp_path, _hangs_once, config=_config(seconds), **options)
