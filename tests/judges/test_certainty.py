"""Confidence from log-probabilities: the probability of the tokens that say the verdict."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from autorubric.criteria import BaseCriterion
from autorubric.criteria.base import AS_DECLARED
from autorubric.judges import ModelJudge
from autorubric.judges.token_probabilities import TokenText, certainty_of
from autorubric.llm import LLMClient, LLMConfig
from autorubric.llm.transport import Token
from tests.criteria.kinds import KINDS
from tests.doubles import binary, choice, request_for
from tests.servers.fixtures import OpenAIServer

TOKENS = [
    ('{"reason": "', -0.1),
    ("so", -2.0),
    ('", "verdict', -0.01),
    ('": "', -0.02),
    ("M", -0.3),
    ("ET", -0.2),
    ('"}', -0.05),
]


def probability_of(criterion: BaseCriterion, tokens: list[tuple[str, float]]) -> float | None:
    """The probability of the answer's tokens, given as pairs."""
    return certainty_of(criterion, AS_DECLARED, TokenText([Token(*one) for one in tokens]), "").confidence


def test_only_the_tokens_of_the_verdict_count() -> None:
    """The reason may be as unlikely as it likes; the quotation marks around the verdict are part of it."""
    assert probability_of(binary(), TOKENS) == pytest.approx(math.exp(-0.02 - 0.3 - 0.2 - 0.05))


def test_a_reason_that_quotes_a_verdict_is_passed_over() -> None:
    """An escaped quotation is text."""
    said = json.dumps({"reason": 'It says "verdict": "UNMET" itself.', "verdict": "MET"})
    tokens = [(character, -9.0) for character in said]
    place = said.rindex('"MET"')
    tokens[place : place + 5] = [(character, -0.1) for character in '"MET"']
    assert probability_of(binary(), tokens) == pytest.approx(math.exp(-0.5))


def test_of_a_draft_and_an_answer_the_answer_counts() -> None:
    """As it does for the vote: a draft that was sure says nothing of the verdict that was given."""
    draft = [('{"reason": "d", "verdict": ', 0.0), ('"UNMET"', -0.01), ("}\nOn reflection:\n", 0.0)]
    assert probability_of(binary(), [*draft, *TOKENS]) == probability_of(binary(), TOKENS)


def test_a_probability_that_is_none_makes_none() -> None:
    """NaN is not certainty."""
    assert probability_of(binary(), [('{"verdict": ', 0.0), ('"MET"', math.nan), ("}", 0.0)]) is None


@given(st.text(max_size=40), st.lists(st.integers(1, 9), max_size=30))
def test_however_the_reply_is_cut_into_tokens(reason: str, cuts: list[int]) -> None:
    """Tokens of certain probability 1 make 1, whatever the reason says and wherever they end."""
    left, tokens = json.dumps({"reason": reason, "label": "good"}, ensure_ascii=False), []
    for cut in [*cuts, 10**6]:
        tokens.append((left[:cut], 0.0))
        left = left[cut:]
    assert probability_of(choice(), tokens) == 1.0


@pytest.mark.parametrize(
    "criterion",
    [
        KINDS["two marks"](requirement="r"),
        KINDS["checklist"](requirement="r"),
        KINDS["text"](requirement="r"),
    ],
    ids=str,
)
def test_answers_of_several_fields_have_none(criterion: BaseCriterion) -> None:
    """There is no one token that decides."""
    assert probability_of(criterion, [("{}", 0.0)]) is None


@pytest.mark.parametrize("tokens", [[], [("MET", 0.0)], [('{"verdict": "M', 0.0)]])
def test_what_cannot_be_found_has_none(tokens: list[tuple[str, float]]) -> None:
    """No tokens, a bare verdict, a torn reply."""
    assert probability_of(binary(), tokens) is None


@pytest.mark.parametrize("transport", ["openai_compatible", "litellm"])
def test_over_http(openai_server: OpenAIServer, transport: Any, tmp_path: Path) -> None:
    """Asked for by `extra_params`, read by both transports, and kept in the cache."""
    text = "".join(token for token, _ in TOKENS)
    content = [{"token": token, "logprob": logprob, "top_logprobs": []} for token, logprob in TOKENS]
    openai_server.script({"do": "answer", "content": text, "logprobs": {"content": content}})
    config = LLMConfig(
        model="openai/gpt-5.4",
        api_base=openai_server.api_base,
        api_key="k",
        transport=transport,
        extra_params={"logprobs": True},
        cache_enabled=True,
        cache_dir=tmp_path,
    )

    async def ask() -> list[float | None]:
        judge = ModelJudge(judge_id="j", client=LLMClient(config))
        replies = [await judge.ask(request_for(binary())) for _ in range(2)]
        await judge.aclose()
        return [reply.confidence for reply in replies]

    expected = math.exp(-0.57)
    assert asyncio.run(ask()) == [pytest.approx(expected)] * 2
    (request,) = openai_server.log()
    assert request["body"]["logprobs"] is True


def test_without_being_asked_for_there_is_none(openai_server: OpenAIServer) -> None:
    """A model says nothing of its certainty by itself."""
    config = LLMConfig(model="openai/m", api_base=openai_server.api_base)
    judge = ModelJudge(judge_id="j", client=LLMClient(config))
    assert asyncio.run(judge.ask(request_for(binary()))).confidence is None
