"""Passes written by the first version, one of them killed while it wrote a line, are resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autorubric import generate_critiques
from autorubric.apps.drafts import TeacherPrompt, refine
from tests.drafts.teachers import read_lines, rewriting

STORED = Path(__file__).parent / "data" / "version-1"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the stored folder."""
    shutil.copytree(STORED, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refuse(prompt: TeacherPrompt) -> str:
    """A teacher that nobody may ask."""
    raise AssertionError(prompt.draft_id)


def test_records_without_a_last_line_break_are_kept(folder: Path) -> None:
    """The last record, which lacks only its line break, counts, and nobody is asked again."""
    before = (folder / "critiques_v1.jsonl").read_bytes()
    with pytest.warns(RuntimeWarning, match="the teacher differs"):
        stats = generate_critiques("drafts.jsonl", ".", refuse, resume=True)
    assert (stats["skipped"], stats["records"], stats["error_counts"]["JSON_PARSE_ERROR"]) == (4, 4, 1)
    assert (folder / "critiques_v1.jsonl").read_bytes() == before + b"\n"


def test_a_failed_critique_is_requested_again(folder: Path) -> None:
    """The settings are recognised as those of the stored manifest, and only the error is replaced."""
    stats = generate_critiques("drafts.jsonl", ".", rewriting, resume=True, retry_errors=True)
    assert (stats["processed"], stats["records"], stats["notices"]) == (1, 4, [])


def test_a_refinement_continues_where_it_stopped(folder: Path) -> None:
    """The torn outcome is made again, and a draft that was rewritten is only critiqued."""
    with pytest.warns(RuntimeWarning, match=r"the incomplete last line of refined_v1\.jsonl was removed"):
        stats = refine("critiques_v1.jsonl", "drafts.jsonl", ".", rewriting, resume=True)
    assert (stats["skipped"], stats["processed"], stats["refined"]) == (1, 2, 3)
    records = read_lines(folder / "refined_v1.jsonl")
    assert [one["id"] for one in records] == ["draft_0", "draft_1", "draft_3"]
    stored = (STORED / "refined_v1_unfinished.json").read_text(encoding="utf-8")
    seconds = [str(one["history"][0]["teacher"]["rewrite"]["timing"]["latency_s"]) for one in records]
    assert [one in stored for one in seconds] == [False, False, True]
    assert not (folder / "refined_v1_unfinished.json").exists()
