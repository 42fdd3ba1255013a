"""Bounds on files that are read whole, on lines of JSON lines, and on texts from a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autorubric import Rubric, RubricDataset, generate_critiques
from autorubric.errors import DatasetError, FileError


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("big.yaml", Rubric.from_file),
        ("big.json", RubricDataset.from_file),
        ("big.csv", RubricDataset.from_file),
    ],
)
def test_too_large_files_are_refused_unread(
    name: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    """The error names the file, its size, the bound and what to do; a sparse file costs no memory."""
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(
        FileError, match=r"has 1,073,741,825 bytes.*1,073,741,824 bytes; split the file"
    ) as caught:
        read(path)
    assert name in str(caught.value)
    assert isinstance(caught.value, DatasetError) == (name != "big.yaml")


def _unending_line(path: Path) -> Path:
    """A file whose second line has 64 MiB and some bytes; it is sparse."""
    path.write_bytes(b'{"id": "a", "submission": "x"}\n')
    with path.open("r+b") as file:
        file.truncate((1 << 26) + 100)
    return path


@pytest.mark.parametrize("read", ["stream", "critiques"])
def test_too_long_lines_are_refused(read: str, tmp_path: Path) -> None:
    """The error names the file, the line, the bound and what to do."""
    path = _unending_line(tmp_path / "texts.jsonl")
    with pytest.raises(
        FileError, match=r"line 2\): the line has more than 67,108,864 bytes; put each record"
    ):
        if read == "stream":
            RubricDataset.stream(path)
        else:
            generate_critiques(path, tmp_path / "out", lambda prompt: "{}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("command", ["eval", "critique"])
def test_lines_are_not_read_from_a_pipe(command: str, tmp_path: Path) -> None:
    """A named pipe in the place of JSON lines is refused at once; reading it might never end."""
    path = tmp_path / "texts.jsonl"
    os.mkfifo(path)
    # Open for both, so that nothing that opens it has to wait.
    held = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        given = [command, str(path), "--judge", "lexical" if command == "eval" else "hosted_vllm/m"]
        given += ["--out-dir", str(tmp_path / "out")] if command == "critique" else ["--no-progress"]
        done = _autorubric(*given, cwd=tmp_path)
    finally:
        os.close(held)
    assert (done.returncode, "the path is a pipe or a device" in done.stderr) == (2, True), done.stderr


def test_a_text_from_a_pipe_is_bounded(tmp_path: Path) -> None:
    """A pipe that goes on after 64 MiB is refused, in the memory of a few times as much."""
    rubric = tmp_path / "rubric.json"
    rubric.write_text('[{"requirement": "It is short."}]', encoding="utf-8")
    done = _autorubric(
        *("grade", "-", "--rubric", str(rubric), "--judge", "lexical"), cwd=tmp_path, text="y\n" * (40 << 20)
    )
    assert done.returncode == 2, done.stderr
    assert "standard input" in done.stderr and "the file has more than 67,108,864 bytes; " in done.stderr
    *_, peak = done.stdout.split()
    assert int(peak) < 600 << 10


# On Linux `ru_maxrss` is at least that of the process that started this one.
_MEASURED = """
import pathlib, resource, sys
from autorubric.cli.app import app
try:
    app(sys.argv[1:])
finally:
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        (line,) = (one for one in status.read_text().splitlines() if one.startswith("VmHWM"))
        print(line.split()[1])
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(peak if sys.platform != "darwin" else peak // 1024)
"""


def _autorubric(*arguments: str, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command line; the last word on stdout is the peak of its memory in KiB."""
    return subprocess.run(
        [sys.executable, "-c", _MEASURED, *arguments],
        cwd=cwd,
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
