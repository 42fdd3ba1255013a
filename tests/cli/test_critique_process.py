"""`autorubric critique` and `refine` stopped with Ctrl-C in a process of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.test_process import MAIN, environment, run
from tests.drafts.teachers import draft, read_lines, scored, write_lines
from tests.servers.fixtures import OpenAIServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")

COUNT = 8
SLOW = "draft_3"
KEY = {"OPENAI_API_KEY": "sk-none"}


def _stopped(call: Sequence[str], cwd: Path, records: Path) -> tuple[int, str]:
    """The exit code and stderr of a call that is stopped once all but one of its records are there."""
    command = [sys.executable, "-c", MAIN, *call]
    with subprocess.Popen(
        command, cwd=cwd, env=environment(**KEY), stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        deadline = time.monotonic() + 300
        while not (records.exists() and records.read_bytes().count(b"\n") == COUNT - 1):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    return process.returncode, err


@pytest.mark.parametrize("command", ["critique", "refine"])
def test_ctrl_c_leaves_a_pass_that_goes_on(command: str, tmp_path: Path, openai_server: OpenAIServer) -> None:
    """It ends with 130 and says how to go on; what was written stays, and only the rest is asked."""
    rows = [draft(number, output=f"This is draft_{number}.") for number in range(COUNT)]
    write_lines(tmp_path / "drafts.jsonl", rows)
    write_lines(tmp_path / "given.jsonl", [{"id": row["id"], "critique": scored(1)} for row in rows])
    openai_server.script({"do": "answer", "payload": scored(5, "pass")}, repeat="last")
    openai_server.script({"do": "hang", "seconds": 600}, contains=f"This is {SLOW}.", repeat="last")
    call = ["critique", "drafts.jsonl"] if command == "critique" else ["refine", "given.jsonl"]
    call += ["--out-dir", "the out", "--judge", "openai/m", "--api-base", openai_server.api_base]
    call += [] if command == "critique" else ["--drafts", "drafts.jsonl"]
    records = tmp_path / "the out" / ("critiques_v1.jsonl" if command == "critique" else "refined_v1.jsonl")
    code, err = _stopped(call, tmp_path, records)
    assert code == 130
    assert "Stopped." in err and "'the out'" in err and "--resume" in err and "Traceback" not in err
    before = read_lines(records)
    manifest = records.with_name(f"{records.stem}_manifest.json")
    assert json.loads(manifest.read_text(encoding="utf-8"))["finished"] is False
    openai_server.reset()
    openai_server.script({"do": "answer", "payload": scored(5, "pass")}, repeat="last")
    done = run(*call, "--resume", "--json", cwd=tmp_path, **KEY)
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["processed"], json.loads(done.stdout)["skipped"]) == (1, COUNT - 1)
    after = read_lines(records)
    assert after[:-1] == before and after[-1]["id"] == SLOW
    assert all(SLOW in json.dumps(one["body"]) for one in openai_server.log())
