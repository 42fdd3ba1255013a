"""The command line as a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autorubric import CriterionGrader, DataItem, Rubric, RubricDataset, evaluate_sync
from autorubric.judges import FunctionJudge
from tests.servers.fixtures import OpenAIServer

MAIN = "from autorubric.cli import main; main()"
HEAVY = (
    "aiohttp",
    "asyncio",
    "litellm",
    "mcp",
    "numpy",
    "pandas",
    "pydantic",
    "rich",
    "scipy",
    "sklearn",
    "yaml",
)


def environment(**more: str) -> dict[str, str]:
    """The environment without what would change colours, widths or the model."""
    kept = {"AUTORUBRIC_MODEL", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"}
    return {name: value for name, value in os.environ.items() if name not in kept} | more


def run(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The finished process of one call."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )


def loaded(*arguments: str, cwd: Path, **more: str) -> tuple[str, set[str]]:
    """What one call has printed, and the modules that it has loaded."""
    script = (
        "import sys, atexit, json\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = {['autorubric', *arguments]!r}\n{MAIN}"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(json.loads(done.stderr))


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """`--help` needs Typer and no command, and nothing that takes long to load."""
    shown, found = loaded("--help", cwd=tmp_path)
    assert "Usage: autorubric" in shown
    assert not set(HEAVY) & found
    assert not {f"autorubric.cli.{name}" for name in ("options", "grade", "show")} & found


@pytest.mark.parametrize(
    "command", ["eval", "show", "judges audit", "critique-text", "demo", "view", "schema"]
)
def test_help_of_a_command_loads_nothing_that_judges(tmp_path: Path, command: str) -> None:
    """A command's `--help` loads its options, but neither judges nor numpy."""
    shown, found = loaded(*command.split(), "--help", cwd=tmp_path)
    assert f"Usage: autorubric {command}" in shown
    assert not set(HEAVY) - {"asyncio", "pydantic"} & found
    assert not [name for name in found if name.startswith(("autorubric.judges.", "autorubric.metrics."))]


def test_showing_a_run_loads_neither_numpy_nor_templates(tmp_path: Path) -> None:
    """The table of items is printed from the reports of the items in it."""
    rubric = Rubric([{"name": "clear", "requirement": "It is clear."}])
    items = [DataItem(id=f"i{at}", submission="Text.") for at in range(3)]
    grader = CriterionGrader(judges=[FunctionJudge(function=lambda request: "MET", judge_id="yes")])
    evaluate_sync(
        RubricDataset(rubric=rubric, items=items),
        grader,
        experiments_dir=tmp_path,
        experiment_name="run",
        show_progress=False,
    )
    shown, found = loaded("show", "run", cwd=tmp_path)
    assert "i2" in shown
    assert not {"numpy", "pandas", "jinja2", "asyncio"} & found


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash, whose completion this is")
def test_completion_in_bash(tmp_path: Path) -> None:
    """bash reads the script that `--show-completion` prints, and then completes commands."""
    program = tmp_path / "autorubric"
    program.write_text(f"#!{sys.executable}\n{MAIN}\n", encoding="utf-8")
    program.chmod(0o755)
    # Run by a bash that stays, since Typer asks which shell has called it.
    script = f"""
        export PATH={shlex.quote(str(tmp_path))}:$PATH
        shown=$(autorubric --show-completion bash) && eval "$shown" && complete -p autorubric
        COMP_WORDS=(autorubric re) COMP_CWORD=1
        _autorubric_completion autorubric
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told, completed = done.stdout.splitlines()
    assert told.startswith("complete ") and told.endswith("autorubric")
    assert sorted(completed.split()) == ["redteam", "refine", "rejudge", "report"]


def test_completing_loads_nothing_heavy(tmp_path: Path) -> None:
    """A press of the tab key waits for Typer and nothing that takes long to load."""
    asked = {"_AUTORUBRIC_COMPLETE": "complete_bash", "COMP_WORDS": "autorubric sho", "COMP_CWORD": "1"}
    shown, found = loaded(cwd=tmp_path, **asked)
    assert shown.split() == ["show"]
    # Some versions of Typer read a command line, or a part of one, with pydantic.
    assert set(HEAVY) & found <= {"pydantic"}


def test_the_schema_is_a_schema(tmp_path: Path) -> None:
    """`schema` prints the JSON schema of rubric files."""
    done = run("schema", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["$schema"].startswith("https://json-schema.org/")


def test_a_pipe_gets_plain_text(tmp_path: Path, rubric: str) -> None:
    """In a pipe there are no colours; what its encoding lacks is written out."""
    call = ("grade", f"Paris is the capital {'of France ' * 40}.", "--rubric", rubric, "--judge", "lexical")
    done = run(*call, cwd=tmp_path, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout and "…" not in done.stdout
    assert "\\u2026" in done.stdout


def test_no_colour_where_none_is_wanted(tmp_path: Path, rubric: str) -> None:
    """NO_COLOR takes the colours even from a terminal."""
    call = ("grade", "Paris.", "--rubric", rubric, "--judge", "lexical")
    done = run(*call, cwd=tmp_path, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color")
    assert done.returncode == 0
    assert "\x1b[3" not in done.stdout and "\x1b[9" not in done.stdout


def test_a_missing_file_is_no_traceback(tmp_path: Path) -> None:
    """A real process ends with 2 and one plain message."""
    done = run("grade", "x", "--rubric", "nope.yaml", "--judge", "lexical", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: nope.yaml") and "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGPIPE")
def test_a_reader_that_stops_is_no_fault(tmp_path: Path) -> None:
    """Where whoever reads stdout has gone, the process ends quietly with the code that shells give."""
    command = [sys.executable, "-c", MAIN, "schema"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_a_run_that_goes_on(
    tmp_path: Path, dataset: str, openai_server: OpenAIServer, number: signal.Signals, code: int
) -> None:
    """Stopped in the middle, `eval` ends with 128 + the signal and says how to go on; and so it goes on."""
    openai_server.script({"do": "answer", "seconds": 600}, contains=None, repeat="last", model="slow")
    call = ["eval", dataset, "--judge", "hosted_vllm/m1", "--judge", "hosted_vllm/slow"]
    call += ["--api-base", openai_server.api_base, "--name", "cut", "--no-preflight"]
    call += ["--max-parallel", "24"]  # so that the slow judge leaves room for the other
    command = [sys.executable, "-c", MAIN, *call]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        votes = tmp_path / "experiments" / "cut" / "votes.jsonl"
        deadline = time.monotonic() + 300
        while not (votes.exists() and votes.read_bytes().count(b"\n") == 12):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    assert process.returncode == code
    assert "Stopped." in err and "--name cut" in err and "Traceback" not in err
    assert "experiment_name" not in err
    shown = run("show", "experiments/cut", "--json", cwd=tmp_path)
    assert (json.loads(shown.stdout)["total_items"], json.loads(shown.stdout)["mean_score"]) == (0, None)
    openai_server.reset()
    done = run(*call, "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["successful_items"] == 4
    assert {one["body"]["model"] for one in openai_server.log()} == {"slow"}
