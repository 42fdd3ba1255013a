"""A process that has imported the library and runs programs in forks of itself.

A program starts in milliseconds instead of the second that the imports take. As a module it is the process:
it reads one program a line from its standard input, and writes its exit code to its standard output.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

IMPORTS = (
    "autorubric.cli.app",
    "autorubric.cli.demo_figures",
    "autorubric.cli.grade",
    "autorubric.cli.metrics",
    "autorubric.cli.show",
    "autorubric.metrics",
    "autorubric.reports",
    "pandas",
    "scipy.stats",
    "tests.pages",
)


class Ended(NamedTuple):
    """A program that ended.

    Attributes:
        returncode: Exit code; negative for a signal.
        stdout: Standard output.
        stderr: Standard error.
    """

    returncode: int
    stdout: str
    stderr: str


def run_program(
    program: str, *, cwd: Path, env: Mapping[str, str], logs: Path, timeout: float = 900
) -> Ended:
    """Runs a program as `python -c` would.

    Args:
        program: Python code.
        cwd: Working directory.
        env: Environment variables in addition to those of this process.
        logs: Folder for its output.
        timeout: Seconds after which it is killed, with a code of -9.
    """
    out, err = logs / "stdout.txt", logs / "stderr.txt"
    out.write_bytes(b"")
    err.write_bytes(b"")
    full = {**os.environ, **env}
    if hasattr(os, "fork"):
        given = {"program": program, "cwd": str(cwd), "env": full, "out": str(out), "err": str(err)}
        code = _run_warm(json.dumps(given), timeout)
    else:
        with out.open("wb") as stdout, err.open("wb") as stderr:
            call = [sys.executable, "-u", "-c", program]
            code = subprocess.run(
                call, cwd=cwd, env=full, stdout=stdout, stderr=stderr, timeout=timeout, check=False
            ).returncode
    return Ended(code, *(one.read_text(encoding="utf-8", errors="replace") for one in (out, err)))


_STARTED: list[subprocess.Popen[str]] = []


def _run_warm(given: str, timeout: float) -> int:
    warm = _warm()
    assert warm.stdin is not None and warm.stdout is not None
    killer = threading.Timer(timeout, _kill, [warm])
    killer.start()
    try:
        warm.stdin.write(given + "\n")
        warm.stdin.flush()
        return int(warm.stdout.readline() or -9)
    except BaseException:
        # Its answer would be taken for that of the next program.
        _kill(warm)
        raise
    finally:
        killer.cancel()


def _kill(warm: subprocess.Popen[str]) -> None:
    """Ends the process and the programs that it runs."""
    with suppress(ProcessLookupError):
        os.killpg(warm.pid, signal.SIGKILL)
    warm.wait()


def _warm() -> subprocess.Popen[str]:
    if not _STARTED or _STARTED[-1].poll() is not None:
        path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "PYTHONPATH": path.strip(os.pathsep), "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-u", "-m", "tests.warm"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, encoding="utf-8", env=env, start_new_session=True
        )
        atexit.register(_kill, process)
        _STARTED.append(process)
    return _STARTED[-1]


def _serve() -> dict[str, Any] | None:
    """Reads programs; returns one in the fork that is to run it, and None at the end."""
    for line in sys.stdin:
        given: dict[str, Any] = json.loads(line)
        child = os.fork()
        if not child:
            return given
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def _run(given: Mapping[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(given["env"])
    empty = os.open(os.devnull, os.O_RDONLY)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for target, opened in enumerate((empty, os.open(given["out"], flags), os.open(given["err"], flags))):
        os.dup2(opened, target)
    os.chdir(given["cwd"])
    sys.path[:0] = ["", *filter(None, given["env"].get("PYTHONPATH", "").split(os.pathsep))]
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = ["-c"]
    warnings.filterwarnings("error", category=DeprecationWarning, module="__main__")
    exec(compile(given["program"], "<string>", "exec"), vars(main))  # noqa: S102 - what it is for


if __name__ == "__main__":
    for name in IMPORTS:
        __import__(name)
    if (chosen := _serve()) is not None:
        _run(chosen)
