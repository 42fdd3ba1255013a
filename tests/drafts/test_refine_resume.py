"""A refinement that goes on: what changed since is done again, and the rest is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autorubric.apps.drafts import TeacherPrompt, refine
from autorubric.errors import ArgumentError, FileError
from tests.drafts.teachers import draft, read_lines, scored, write_lines

OUTCOMES = ("refined", "rejected", "undecided", "errors")


class Folder:
    """A folder with drafts and critiques, which may be changed, and who was asked about in each pass."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.drafts = [draft(number, output=f"text {number}") for number in range(3)]
        self.critiques: list[dict[str, Any]] = [
            {"id": f"draft_{number}", "critique": scored(1)} for number in range(3)
        ]
        self.refined = path / "refined_v1.jsonl"
        self.verdict = "pass"
        self.asked: list[str] = []

    def teacher(self, prompt: TeacherPrompt) -> Any:
        """Rewrites every draft, and gives the verdict of the day."""
        if prompt.task == "rewrite":
            self.asked.append(prompt.draft_id)
            return f"better, and told: {prompt.content[-40:]}"
        return scored(5, self.verdict)

    def refine(self, teacher: Any = None, **options: Any) -> dict[str, Any]:
        """One pass over what the files are to hold now."""
        self.asked.clear()
        critiques = write_lines(self.path / "critiques.jsonl", self.critiques)
        drafts = write_lines(self.path / "drafts.jsonl", self.drafts)
        return refine(critiques, drafts, self.path, teacher or self.teacher, **options)

    def outcomes(self) -> dict[str, list[str]]:
        """The ids in each file."""
        return {name: [one["id"] for one in read_lines(self.path / f"{name}_v1.jsonl")] for name in OUTCOMES}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Three drafts to revise."""
    return Folder(tmp_path)


def test_a_draft_that_changed_is_refined_again(folder: Folder) -> None:
    """Another text under the same id is another draft: its old outcome goes, in whichever file it stood."""
    folder.refine()
    folder.drafts[1]["output"] = "another text"
    folder.verdict = "reject"
    with pytest.warns(RuntimeWarning, match="its critique has changed: 1"):
        stats = folder.refine(resume=True)
    assert folder.asked == ["draft_1"]
    assert folder.outcomes() == {
        "refined": ["draft_0", "draft_2"],
        "rejected": ["draft_1"],
        "undecided": [],
        "errors": [],
    }
    assert (stats["processed"], stats["skipped"], stats["refined"], stats["rejected"]) == (1, 2, 2, 1)


def test_a_critique_that_changed_is_followed_again(folder: Folder) -> None:
    """Other instructions for the same text are other work."""
    folder.refine()
    folder.critiques[2]["critique"] = scored(1, rewrite_instructions=["Say less"])
    with pytest.warns(RuntimeWarning, match="has changed"):
        stats = folder.refine(resume=True)
    assert folder.asked == ["draft_2"]
    assert (stats["refined"], len(folder.outcomes()["refined"])) == (3, 3)


def test_what_is_not_to_be_revised_any_more_has_no_outcome(folder: Folder) -> None:
    """A draft that passes as it is now leaves no refined text behind; one whose critique failed keeps it."""
    folder.refine()
    folder.critiques[0]["critique"] = scored(5, "pass")
    folder.critiques[1]["critique"] = None
    with pytest.warns(RuntimeWarning, match="has changed: 1"):
        stats = folder.refine(resume=True)
    assert folder.outcomes()["refined"] == ["draft_1", "draft_2"]
    assert (stats["total"], stats["processed"], stats["refined"]) == (1, 0, 2)


def test_a_draft_that_is_back_is_refined(folder: Folder) -> None:
    """An error of a missing draft is no longer true once the draft is there, and is not kept."""
    folder.drafts[0] = {**folder.drafts[0], "id": "another"}
    folder.drafts.append({"no": "draft"})
    assert folder.refine()["errors"] == 1
    folder.drafts[0] = draft(0, output="text 0")
    folder.drafts.pop()
    with pytest.warns(RuntimeWarning, match="has changed: 1"):
        stats = folder.refine(resume=True)
    assert (folder.asked, stats["errors"], stats["refined"]) == (["draft_0"], 0, 3)


def test_nothing_changed_asks_nobody(folder: Folder) -> None:
    """A resume over the same files leaves every record as it is, byte for byte."""
    folder.refine()
    before = (folder.path / "refined_v1.jsonl").read_bytes()
    stats = folder.refine(resume=True)
    assert (folder.asked, stats["skipped"], stats["notices"]) == ([], 3, [])
    assert (folder.path / "refined_v1.jsonl").read_bytes() == before


def test_other_settings_are_told_of(folder: Folder) -> None:
    """Outcomes made with another rewrite template or number of rounds stay, and a notice says so."""
    folder.refine(limit=1)
    with pytest.warns(RuntimeWarning, match="rewrite template differs"):
        stats = folder.refine(resume=True, rewrite="Rewrite: {material}", max_rounds=2)
    assert [one.split(" differs")[0] for one in stats["notices"]] == [
        "the rewrite template",
        "the number of rounds",
    ]


def test_the_manifest_says_what_was_done(folder: Folder) -> None:
    """The manifest has inputs, settings, counts and outputs, as that of the critique pass has."""
    config = {"models": ["m"], "generation": {"temperature": 0.2}, "api_key": "sk-sentinel"}
    stats = folder.refine(config=config, min_risk="low", limit=2)
    text = (folder.path / "refined_v1_manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    assert "sentinel" not in text
    assert (manifest["version"], manifest["finished"], manifest["limit"]) == ("v1", True, 2)
    assert manifest["inputs"] == stats["inputs"]
    assert set(manifest["inputs"]) == {"critiques_path", "critiques_hash", "drafts_path", "drafts_hash"}
    assert manifest["critique_schema"]["version"] == "v1"
    assert manifest["teacher_config"]["generation"] == {"temperature": 0.2}
    assert (manifest["max_rounds"], manifest["min_risk"], manifest["max_risk"]) == (3, "low", None)
    assert len(manifest["rewrite_hash"]) == len(manifest["template_hash"]) == 64
    counts = {"total": 3, "filtered": 0, "processed": 2, "skipped": 0, "removed": 0}
    read = {"critiques": 3, "critiques_failed": 0, "first_critique_error": None}
    assert manifest["counts"] == counts | read | {"refined": 2, "rejected": 0, "undecided": 0, "errors": 0}
    assert manifest["outputs"] == {name: f"{name}_v1.jsonl" for name in OUTCOMES} | {
        "manifest": "refined_v1_manifest.json",
        "stats": "refined_v1_stats.json",
    }
    assert all((folder.path / name).exists() for name in manifest["outputs"].values())


def test_a_pass_that_ends_early_leaves_a_manifest_that_says_so(folder: Folder) -> None:
    """Where the process ends in the middle, the manifest is of a pass that is not finished."""

    def teacher(prompt: TeacherPrompt) -> str:
        raise SystemExit

    with pytest.raises(SystemExit):
        folder.refine(teacher)
    manifest = json.loads((folder.path / "refined_v1_manifest.json").read_text(encoding="utf-8"))
    assert (manifest["finished"], manifest["counts"]["refined"]) == (False, None)


def test_retry_errors_needs_resume(folder: Folder) -> None:
    """Without resume everything would be asked again, paid for again, and called a retry: it is refused."""
    folder.refine()
    with pytest.raises(ArgumentError, match="retry_errors=True requires resume=True"):
        folder.refine(retry_errors=True)
    assert folder.asked == [] and folder.outcomes()["refined"]


@pytest.mark.parametrize("name", ["critiques", "drafts"])
def test_a_file_with_nothing_in_it_is_faulty(name: str, folder: Folder) -> None:
    """A refinement of nothing is not a success."""
    setattr(folder, name, [])
    with pytest.raises(FileError, match=rf"{name}\.jsonl.*\n.*the file is empty"):
        folder.refine()
    assert not (folder.path / "refined_v1.jsonl").exists()


def test_a_critique_made_again_counts_though_it_says_the_same(folder: Folder) -> None:
    """A changed draft that is critiqued again, with the same words, is refined on the next resume."""
    folder.critiques[0]["draft_hash"] = "that of another text"
    assert folder.refine()["errors"] == 1
    del folder.critiques[0]["draft_hash"]
    with pytest.warns(RuntimeWarning, match="has changed: 1"):
        stats = folder.refine(resume=True)
    assert (folder.asked, stats["errors"], stats["refined"]) == (["draft_0"], 0, 3)


def test_records_of_other_makers_are_left_alone(folder: Folder) -> None:
    """An outcome that does not say what it is of is taken as it is, and not made again."""
    folder.refine()
    rows = [{key: one[key] for key in one if key != "job_hash"} for one in read_lines(folder.refined)]
    write_lines(folder.refined, rows)
    assert folder.refine(resume=True)["skipped"] == 3
    assert read_lines(folder.refined) == rows
