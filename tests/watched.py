"""What a child process does while it runs a program, by the interpreter's own audit events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_WATCH = """
import json, os, sys

seen, on = [], False
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
PROCESSES = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.")
FILES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
         "os.chown", "os.utime", "shutil.", "tempfile.", "sqlite3.")

def hook(event, arguments):
    if not on:
        return
    if event == "open" and arguments[2] & WRITES:
        seen.append(["file", event, str(arguments[0])])
    elif event.startswith(FILES):
        seen.append(["file", event, str(arguments)])
    elif event.startswith(PROCESSES):
        seen.append(["process", event, str(arguments)])
    elif event == "compile" and not is_module(*arguments):
        seen.append(["code", event, str(arguments[0])])
    elif event == "exec" and arguments[0].co_filename.startswith("<"):
        # Modules are executed under the name of their file.
        seen.append(["code", event, arguments[0].co_filename])

def is_module(source, name):
    # A late import compiles a module without cached byte code: the source is then what its file holds.
    try:
        with open(name, "rb") as file:
            return file.read() == source
    except (OSError, TypeError, ValueError):
        return False

sys.addaudithook(hook)

def watched(call):
    global on
    on = True
    try:
        return call()
    finally:
        on = False

"""


def events(program: str, cwd: Path) -> dict[str, Any]:
    """What a program found (`found`), and files written, processes started and code compiled by `watched`.

    Args:
        program: Python code that calls `watched(call)` and sets `found`.
        cwd: Where it runs.
    """
    told = f"{_WATCH}{program}\nprint(json.dumps({{'found': found, 'seen': seen}}))"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "AUTORUBRIC_PROVIDERS": ""}
    done = subprocess.run(
        [sys.executable, "-c", told],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    given: dict[str, Any] = json.loads(done.stdout)
    return given
