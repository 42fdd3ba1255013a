"""Disks that are full, and folders that may not be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.kills._run import CALLS, grade, leftovers, noted, outcome, stored_votes

from tests.unbreakable.children import (
    Told,
    graded,
    graded_by_nobody,
    graded_within,
    in_child,
    merged_within,
    opened_by_nobody,
)

ROOT = Path(__file__).resolve().parents[2]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to a user who may not write")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """What an uninterrupted run comes to."""
    folder = tmp_path_factory.mktemp("whole")
    grade(folder, "new", folder / "notes")
    return outcome(folder / "run")


def _goes_on(folder: Path, whole: list[object]) -> None:
    """The run, gone on with, asks for what is not stored and no more, and ends as if nothing had been."""
    votes = [key for key, _ in stored_votes(folder / "run")]
    asked = len(noted(folder / "notes"))
    grade(folder, "new", folder / "notes")
    assert sorted(noted(folder / "notes")[asked:] + votes) == sorted(
        key for key, _ in stored_votes(folder / "run")
    )
    assert len(set(votes)) == len(votes)
    assert outcome(folder / "run") == whole
    assert not leftovers(folder)


@pytest.mark.parametrize("most", [100, 1500, 2500, 3500, 5000, 12_000, 30_000, 60_000, 120_000])
def test_a_full_disk_is_said_and_what_was_stored_stands(
    most: int, tmp_path: Path, whole: list[object]
) -> None:
    """Where a file can grow no more, soon or late, the error says which, and how to go on."""
    told = in_child(graded_within, tmp_path, most, {})
    assert told.error == "RunWriteError", told
    assert f"{tmp_path}/run" in told.message
    assert "File too large" in told.message
    assert "is writable and run again with experiment_name='run'" in told.message
    # What was in flight when the disk was full, and what had been answered in the same moment.
    assert len(noted(tmp_path / "notes")) - len(list(stored_votes(tmp_path / "run"))) <= 24
    _goes_on(tmp_path, whole)


def test_a_vote_whose_line_break_had_no_room_is_asked_again(tmp_path: Path, whole: list[object]) -> None:
    """The line break is the last byte of a line, and a line without it is torn."""
    in_child(graded_within, tmp_path, 1600, {})
    votes = tmp_path / "run" / "votes.jsonl"
    content = votes.read_bytes()
    votes.write_bytes(content[: content.rindex(b"\n")])
    json.loads(votes.read_bytes().splitlines()[-1])
    _goes_on(tmp_path, whole)


def test_a_disk_that_is_full_while_runs_are_merged_is_said(tmp_path: Path, whole: list[object]) -> None:
    """Whichever file has no room: what is merged stays as it was, and nothing half made is left."""
    grade(tmp_path, "new", tmp_path / "notes")
    sizes = {one.name: one.stat().st_size for one in (tmp_path / "run").iterdir()}
    told = [
        in_child(merged_within, tmp_path / "run", tmp_path / "out", size - 1)
        for name, size in sizes.items()
        if name in ("dataset.jsonl", "prompts.jsonl", "votes.jsonl", "items.jsonl", "manifest.json")
    ]
    assert {one.error for one in told} == {"RunWriteError"}, told
    assert {"prompts.jsonl", "votes.jsonl"} <= {one.message.split()[0].rpartition("/")[2] for one in told}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["notes", "run"]
    assert in_child(merged_within, tmp_path / "run", tmp_path / "out", 1 << 30).outcome == whole


def test_a_full_disk_does_not_lose_votes_that_have_room(tmp_path: Path, whole: list[object]) -> None:
    """Where prompts have no room any more, votes that came with them are stored all the same."""
    told = in_child(graded_within, tmp_path, 60_000, {})
    assert "prompts.jsonl" in told.message
    assert 0 < len(list(stored_votes(tmp_path / "run"))) < CALLS
    _goes_on(tmp_path, whole)


def test_a_full_reply_cache_is_a_warning(tmp_path: Path, whole: list[object]) -> None:
    """A reply cache that can grow no more costs a warning; the run is whole."""
    told = in_child(graded_within, tmp_path, 80_000, {"cache": tmp_path / "cache"})
    assert told.outcome == whole
    assert "cannot be written" in told.message or "cannot be used" in told.message
    assert (tmp_path / "cache").stat().st_size


_FULL = """
import json, subprocess, sys
from pathlib import Path
from benchmarks.kills._run import grade, noted, outcome
from tests.unbreakable.children import graded

folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", str(folder)], check=True)
stopped = graded(folder)
stored = sum(1 for _ in (folder / "run" / "votes.jsonl").open())
subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)
print(json.dumps([stopped, stored, graded(folder), len(noted(folder / "notes"))]))
"""


def test_a_full_file_system(tmp_path: Path, whole: list[object]) -> None:
    """The same on a file system that is full: stopped there, and whole once there is room."""
    if (
        not shutil.which("unshare")
        or subprocess.run(
            ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(tmp_path)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no file system can be mounted here")
    command = ["unshare", "-m", sys.executable, "-c", _FULL, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    stopped, stored, resumed, asked = json.loads(done.stdout)
    assert Told(*stopped).error == "RunWriteError"
    assert "No space left on device" in Told(*stopped).message
    assert 0 < stored < CALLS
    assert asked - CALLS <= 24
    assert json.loads(json.dumps(whole)) == Told(*resumed).outcome


def test_the_command_line_says_that_the_disk_is_full(tmp_path: Path) -> None:
    """`autorubric eval` ends with 3 and says how to go on, in its own words, and does go on."""
    items = [{"id": f"i{n}", "submission": f"Text number {n}."} for n in range(200)]
    rubric = [{"name": "text", "requirement": "It is a text."}]
    (tmp_path / "items.json").write_text(
        json.dumps({"format": 1, "name": "disk", "rubric": rubric, "items": items}), encoding="utf-8"
    )
    limited = (
        "import resource, sys; from autorubric.cli import main; resource.setrlimit(resource.RLIMIT_FSIZE, "
    )
    command = ["eval", "items.json", "--judge", "lexical", "--name", "one", "--no-progress"]

    def run(limit: str) -> subprocess.CompletedProcess[str]:
        code = f"{limited}({limit}, resource.RLIM_INFINITY)); main()"
        return subprocess.run(
            [sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    full = run("30000")
    assert full.returncode == 3, full.stderr
    assert "File too large" in full.stderr
    assert "make sure that experiments/one is writable and run again with --name 'one'" in full.stderr
    before = (tmp_path / "experiments" / "one" / "votes.jsonl").read_bytes()
    assert before
    # The last line is torn where the disk was full.
    whole = before[: before.rfind(b"\n") + 1]
    assert run("resource.RLIM_INFINITY").returncode == 0
    assert (tmp_path / "experiments" / "one" / "votes.jsonl").read_bytes().startswith(whole)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder for others too: pytest takes its own from them again whenever another pytest begins."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@needs_root
@pytest.mark.parametrize("there", ["nothing", "run"])
def test_a_folder_that_may_not_be_written_is_said_before_a_call(there: str, open_path: Path) -> None:
    """Neither a new run nor an old one asks anything where it cannot be stored."""
    folder, scratch = _readable(open_path, "runs"), _readable(open_path, "scratch")
    if there == "run":
        grade(folder, "new", folder / "notes", changed=False)
        (folder / "notes").unlink()
        (folder / "run").chmod(0o555)
        for file in (folder / "run").iterdir():
            file.chmod(0o444)
    folder.chmod(0o555)
    before = _contents(folder)
    told = in_child(graded_by_nobody, folder, scratch)
    assert told.error == "RunWriteError", told
    assert "Permission denied" in told.message
    assert str(folder / "run") in told.message
    assert _contents(folder) == before


@needs_root
def test_a_folder_that_may_not_be_written_can_be_read(open_path: Path) -> None:
    """A stored run opens where nothing can be written; what cannot be read is named."""
    folder, scratch = _readable(open_path, "runs"), _readable(open_path, "scratch")
    grade(folder, "new", folder / "notes")
    (folder / "run").chmod(0o555)
    told = in_child(opened_by_nobody, folder, scratch)
    assert told.outcome == outcome(folder / "run")
    for name in ("votes.jsonl", "items.jsonl", "dataset.jsonl", "manifest.json"):
        (folder / "run" / name).chmod(0)
        told = in_child(opened_by_nobody, folder, _readable(open_path, f"scratch-{name}"))
        assert told.error == "RunFormatError", (name, told)
        assert name in told.message or "dataset" in told.message
        (folder / "run" / name).chmod(0o644)


def _readable(top: Path, name: str) -> Path:
    """A folder that everybody can reach and read."""
    folder = top / name
    folder.mkdir()
    for one in (folder, *folder.parents):
        if one.stat().st_uid == os.geteuid() and one != Path("/"):
            one.chmod(one.stat().st_mode | 0o055)
    return folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def test_a_run_can_be_done_where_children_are_made(tmp_path: Path, whole: list[object]) -> None:
    """Without limits a child's run is whole, so that what others raise is the limit's doing."""
    assert in_child(graded, tmp_path).outcome == whole
