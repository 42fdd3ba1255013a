"""Fixtures that start the test servers; import the ones you need into a `conftest.py`."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[2]

PASSING_FAULTS: list[dict[str, Any] | str] = [
    {"do": "status", "status": 429, "headers": {"Retry-After": "0"}},
    {"do": "status", "status": 429},
    {"do": "status", "status": 500},
    "reset",
    "truncated",
    {"do": "raw", "body": "<html>busy</html>"},
    {"do": "answer", "content": ""},
]
"""Steps of a server that fails in every way which another try mends, whatever was asked."""


class OpenAIServer:
    """A running test server.

    Attributes:
        url: Its address, without a path.
        api_base: What to give as `api_base`.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.api_base = f"{self.url}/v1"

    def script(
        self,
        *then: dict[str, Any] | str,
        model: str | None = None,
        contains: str | None = None,
        repeat: str = "once",
        anywhere: bool = False,
    ) -> None:
        """Makes the next requests do `then`, in order: steps, or names of those that need nothing else."""
        steps = [{"do": step} if isinstance(step, str) else step for step in then]
        rule = {"model": model, "contains": contains, "then": steps, "repeat": repeat, "anywhere": anywhere}
        self._call("/__script", {"rules": [rule]})

    def log(self) -> list[dict[str, Any]]:
        """The requests seen since the last reset, oldest first: `path`, `headers`, `body`.

        Chat completions have `running` too: how many of them were being answered, this one included.
        """
        seen: list[dict[str, Any]] = self._call("/__log")
        return seen

    def trouble(self, **settings: Any) -> None:
        """Makes requests fail by a seed, or over a limit: the fields of `tests.servers.trouble.Trouble`."""
        self._call("/__trouble", settings)

    def outcomes(self) -> list[tuple[float, str, str]]:
        """What became of each request since the trouble began: seconds, outcome, digest of the body."""
        return [tuple(one) for one in self._call("/__trouble")]

    def batches(self, **settings: Any) -> dict[str, Any]:
        """Sets what becomes of batches (`tests.servers.batches.BatchState`), and tells what was paid for."""
        told: dict[str, Any] = self._call("/__batches", settings or None)
        return told

    def reset(self) -> None:
        """Forgets scripts, trouble and requests."""
        self._call("/__reset", {})

    def _call(self, path: str, payload: Any = None) -> Any:
        data = None if payload is None else json.dumps(payload).encode("utf-8")
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, headers=kind)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=120) as response:
            return json.loads(response.read())


@contextmanager
def serving() -> Iterator[OpenAIServer]:
    """A server in a process of its own, which ends with the block."""
    command = [sys.executable, "-m", "tests.servers.openai_server"]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield OpenAIServer(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def openai_server_process() -> Iterator[OpenAIServer]:
    """One server process for the whole test session."""
    with serving() as server:
        yield server


@pytest.fixture
def openai_server(openai_server_process: OpenAIServer) -> OpenAIServer:
    """An OpenAI-compatible server that answers every schema; scripts of earlier tests are forgotten."""
    openai_server_process.reset()
    return openai_server_process
