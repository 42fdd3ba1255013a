"""A pass that goes on: nothing lost, nothing doubled, wherever it was stopped."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from autorubric import generate_critiques
from autorubric.apps.drafts import TeacherPrompt
from autorubric.apps.drafts.records import lock_folder
from autorubric.errors import FileError, RunLockedError
from autorubric.support.read import MAX_LINE_BYTES
from tests.drafts.teachers import critique, draft, good, read_lines, write_lines

NAME = "critiques_v1.jsonl"


class Counting:
    """A teacher that remembers whom it was asked about, and fails for some.

    Attributes:
        asked: The drafts, in order.
        failing: The drafts that it fails for.
    """

    def __init__(self, *failing: str) -> None:
        self.asked: list[str] = []
        self.failing = set(failing)

    def __call__(self, prompt: TeacherPrompt) -> str:
        self.asked.append(prompt.draft_id)
        return "nothing" if prompt.draft_id in self.failing else good(prompt)


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    """Six drafts."""
    return write_lines(tmp_path / "drafts.jsonl", [draft(number) for number in range(6)])


def test_drafts_with_a_record_are_passed_over(drafts: Path, tmp_path: Path) -> None:
    """After a resume the figures are of the whole file, and only what was missing was asked."""
    generate_critiques(drafts, tmp_path, Counting(), limit=2)
    again = Counting("draft_5")
    stats = generate_critiques(drafts, tmp_path, again, resume=True)
    assert again.asked == ["draft_2", "draft_3", "draft_4", "draft_5"]
    assert (stats["total"], stats["processed"], stats["skipped"], stats["records"]) == (6, 4, 2, 6)
    assert stats["critique_parse_rate"] == pytest.approx(100 * 5 / 6)
    assert [record["id"] for record in read_lines(tmp_path / NAME)] == [f"draft_{n}" for n in range(6)]


def test_errors_are_tried_again_only_when_asked(drafts: Path, tmp_path: Path) -> None:
    """A resume leaves failures alone; with retry_errors they are asked again, and each has one record."""
    generate_critiques(drafts, tmp_path, Counting("draft_1", "draft_4"))
    still = Counting()
    assert generate_critiques(drafts, tmp_path, still, resume=True)["error_counts"]["JSON_PARSE_ERROR"] == 2
    assert still.asked == []
    again = Counting("draft_4")
    stats = generate_critiques(drafts, tmp_path, again, resume=True, retry_errors=True)
    assert again.asked == ["draft_1", "draft_4"]
    assert (stats["records"], stats["error_counts"]["JSON_PARSE_ERROR"]) == (6, 1)
    ids = [record["id"] for record in read_lines(tmp_path / NAME)]
    assert sorted(ids) == [f"draft_{number}" for number in range(6)]


def test_errors_beyond_the_limit_are_kept(drafts: Path, tmp_path: Path) -> None:
    """Trying errors again loses none that the limit leaves out."""
    generate_critiques(drafts, tmp_path, Counting("draft_1", "draft_4"))
    stats = generate_critiques(drafts, tmp_path, Counting(), limit=3, resume=True, retry_errors=True)
    assert (stats["records"], stats["error_counts"]["JSON_PARSE_ERROR"]) == (6, 1)


def test_a_draft_that_changed_is_critiqued_again(drafts: Path, tmp_path: Path) -> None:
    """A record is of the draft as it was; another output under the same id is another draft."""
    generate_critiques(drafts, tmp_path, good)
    write_lines(drafts, [draft(number, **({"output": "new"} if number == 3 else {})) for number in range(6)])
    again = Counting()
    stats = generate_critiques(drafts, tmp_path, again, resume=True)
    assert (again.asked, stats["records"]) == (["draft_3"], 6)


def test_records_of_other_makers_are_taken_as_they_are(drafts: Path, tmp_path: Path) -> None:
    """A file with the agreed keys alone, as other programs write it, is gone on with."""
    record = {
        "id": "draft_0",
        "draft_id": "draft_0",
        "critique": critique(),
        "raw_critique_text": None,
        "teacher": {"provider": "openrouter", "usage": {"total_tokens": 450}},
        "critique_contract": {"strict_json_ok": True, "schema_ok": True},
        "created_at": "2026-01-28T14:23:45.123456+00:00",
    }
    write_lines(tmp_path / NAME, [record])
    again = Counting()
    stats = generate_critiques(drafts, tmp_path, again, resume=True)
    assert "draft_0" not in again.asked
    assert (stats["records"], stats["tokens"]) == (6, 450)


def test_without_resume_what_was_there_is_set_aside(drafts: Path, tmp_path: Path) -> None:
    """A fresh pass begins a fresh file and deletes nothing."""
    generate_critiques(drafts, tmp_path, good, limit=2)
    before = (tmp_path / NAME).read_bytes()
    with pytest.warns(RuntimeWarning, match=r"critiques_v1\.previous\.jsonl"):
        stats = generate_critiques(drafts, tmp_path, good, limit=1)
    assert stats["records"] == 1
    assert (tmp_path / "critiques_v1.previous.jsonl").read_bytes() == before
    with pytest.warns(RuntimeWarning, match=r"critiques_v1\.previous-2\.jsonl"):
        generate_critiques(drafts, tmp_path, good, limit=1)
    assert (tmp_path / "critiques_v1.previous.jsonl").read_bytes() == before


def test_a_resume_with_another_setup_is_told_of(drafts: Path, tmp_path: Path) -> None:
    """Records made by another schema or template stay, and a notice says so."""
    generate_critiques(drafts, tmp_path, good, limit=2)
    with pytest.warns(RuntimeWarning, match="the template differs"):
        stats = generate_critiques(drafts, tmp_path, good, template="Look: {output}", resume=True)
    assert stats["notices"] == ["the template differs from the one used for earlier records, which are kept"]


def test_damaged_lines_stay_and_are_told_of(drafts: Path, tmp_path: Path) -> None:
    """A line that cannot be read in the middle is passed over, and its draft critiqued again."""
    generate_critiques(drafts, tmp_path, good)
    lines = (tmp_path / NAME).read_text(encoding="utf-8").splitlines()
    lines[2] = lines[2][:50]
    (tmp_path / NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")
    again = Counting()
    with pytest.warns(RuntimeWarning, match="line 3 of .* is corrupted"):
        stats = generate_critiques(drafts, tmp_path, again, resume=True)
    assert (again.asked, stats["records"]) == (["draft_2"], 6)


def test_a_folder_has_one_writer(drafts: Path, tmp_path: Path) -> None:
    """While one pass writes to a folder, another is refused."""
    with lock_folder(tmp_path / "out"), pytest.raises(RunLockedError, match="another process"):
        generate_critiques(drafts, tmp_path / "out", good)


@pytest.mark.slow
@settings(max_examples=60)
@given(cut=st.integers(0, 12_000), retry=st.booleans())
def test_a_file_cut_anywhere_becomes_whole(
    cut: int, retry: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever beginning of the file is left, a resume makes each record once, and every line is JSON."""
    folder = tmp_path_factory.mktemp("cut")
    drafts = write_lines(folder / "drafts.jsonl", [draft(number) for number in range(6)])
    generate_critiques(drafts, folder, Counting("draft_2"))
    content = (folder / NAME).read_bytes()
    kept = content[:cut]
    (folder / NAME).write_bytes(kept)
    whole = kept.decode("utf-8", "ignore").splitlines()[: kept.count(b"\n")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generate_critiques(drafts, folder, good, resume=True, retry_errors=retry)
    records = read_lines(folder / NAME)
    assert sorted(record["id"] for record in records) == [f"draft_{number}" for number in range(6)]
    kept_records = [json.loads(line) for line in whole]
    assert [one for one in kept_records if one["critique"] is not None and one not in records] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("kind", ["critique", "refine"])
def test_killed_at_random_points_nothing_is_lost_or_doubled(kind: str, tmp_path: Path) -> None:
    """A hundred processes are killed midway; at the end there is what they had written, and all the rest."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.drafts.killing", kind, str(tmp_path), "100", "7"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        encoding="utf-8",
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["kills"] == 100 and told["lost"] == told["doubled"] == 0
    assert told["kept"] > 0
    # Each was there, whole, after kills of processes that were about to write it anew.
    assert told["late_kills"] > 0 and min(told["manifests"], told["stats"]) > told["late_kills"]


def test_a_line_of_another_program_costs_no_record(drafts: Path, tmp_path: Path) -> None:
    """Records written after it are found, counted and kept by the next pass."""

    class Editing(Counting):
        def __call__(self, prompt: TeacherPrompt) -> str:
            if prompt.draft_id == "draft_2":
                with (tmp_path / NAME).open("ab") as file:
                    file.write(b"\n")
            return super().__call__(prompt)

    stats = generate_critiques(drafts, tmp_path, Editing())
    assert (stats["records"], sum(stats["verdict_distribution"].values())) == (6, 6)
    again = Counting()
    assert generate_critiques(drafts, tmp_path, again, resume=True, retry_errors=True)["records"] == 6
    assert again.asked == []


def test_a_line_that_is_too_long_is_not_read(drafts: Path, tmp_path: Path) -> None:
    """Zeros that a crash left in the file are reported without loading them."""
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(MAX_LINE_BYTES + 1)
        file.seek(MAX_LINE_BYTES + 1)
        file.write(b"\n")
    with pytest.raises(FileError, match="the line has more than"):
        generate_critiques(drafts, tmp_path, Counting(), resume=True)
