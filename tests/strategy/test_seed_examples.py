"""The published examples of sampled criteria, as they stand, with models of the test server behind them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from autorubric import QualitativeCriteria, QuantitativeCriteria, Strategy
from autorubric.apps.strategy import SampledEvaluation
from tests.doubles import in_loop
from tests.servers.fixtures import OpenAIServer

CODE = "def fibonacci(n):\n    return n"
TEXT = Path(__file__).with_name("seed_examples.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^## (.*?)\n\n```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
REQUESTS = [4, 20, 36, 4, 20, 36, 24, 6, 15, 5, 12, 1, 3, 5, 5, 3, 3, 1, 0]
"""Requests of each example: for every criterion its samples, for every strategy those on its candidates."""


@pytest.fixture
def models(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    """The models that the examples name, on the test server, where all passes and scores 4."""
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.api_base)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    passed = {"reason": "so", "passed": True, "cannot_assess": False}
    score = {"explanation": "so", "score": 4, "cannot_assess": False}
    openai_server.script({"do": "answer", "payload": passed}, repeat="last")
    openai_server.script({"do": "answer", "payload": score}, contains="Rating range", repeat="last")
    return openai_server


def made_by(number: int) -> dict[str, Any]:
    """What an example defines; those before it stand above it on its page."""
    names: dict[str, Any] = {"asyncio": asyncio}
    for _, code in EXAMPLES[:number]:
        exec(code, names)  # noqa: S102 - examples of this repository
    before = dict(names)
    exec(EXAMPLES[number][1], names)  # noqa: S102
    return {name: one for name, one in names.items() if one is not before.get(name)}


def test_every_example_has_its_number() -> None:
    """None is left out."""
    assert len(EXAMPLES) == len(REQUESTS) == TEXT.count("```python")


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=[name for name, _ in EXAMPLES])
@in_loop
async def test_an_example_works(models: OpenAIServer, number: int) -> None:
    """What it makes is asked: criteria of a text, strategies for a winner."""
    for made in made_by(number).values():
        if isinstance(made, QualitativeCriteria):
            async with made:
                assert await made.verify(CODE, object()) is True
        elif isinstance(made, QuantitativeCriteria):
            async with made:
                assert await made.compute(CODE, object()) == 4.0
        elif isinstance(made, Strategy):
            result = await made.run(lambda prompt: CODE, "Calculate fibonacci of 10", context=object())
            assert (result.winner, result.iterations, result.errors) == (CODE, 1, ())
            assert len(result.candidates) == made.num_candidates
            assert made.cost is None or result.cost == pytest.approx(4.0)
    assert len(models.log()) == REQUESTS[number]


def class_of(name: str) -> Any:
    """A class that an example defines."""
    (number,) = (number for number, (_, code) in enumerate(EXAMPLES) if f"class {name}(" in code)
    return made_by(number)[name]


def test_what_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """The published subclass prints the score and the end of the range."""
    kind = class_of("LoggedQuantitativeCriteria")
    logged = kind(expression="Rate complexity", llm=lambda request: 4, min=0, max=10)
    asyncio.run(logged.compute(CODE, None))
    assert capsys.readouterr().out == "[CRITERIA] Rate complexity: 4.0/10\n"


def test_criteria_that_are_instrumented(capsys: pytest.CaptureFixture[str]) -> None:
    """Positional arguments pass through the subclass; the samples that it cannot see are in the record."""
    kind = class_of("InstrumentedQuantitativeCriteria")
    instrumented = kind("Rate complexity", lambda request: request.sample, 0, 10, "med", num_samples=5)
    assert asyncio.run(instrumented.compute(CODE, None)) == 2.0
    assert instrumented.sample_history == []
    told = "Criteria: Rate complexity\nFinal score: 2.0\nAggregation: med\n"
    assert capsys.readouterr().out == told
    evaluation: SampledEvaluation[float] = asyncio.run(instrumented.evaluate(CODE, None))
    assert evaluation.valid == (0.0, 1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize(
    ("agg", "scores", "value"),
    [
        ("avg", [3.0, 4.0, 5.0], 4.0),
        ("med", [3.0, 4.0, 9.0], 4.0),
        ("min", [3.0, 4.0, 5.0], 3.0),
        ("max", [3.0, 4.0, 5.0], 5.0),
    ],
)
@in_loop
async def test_published_aggregations(agg: Any, scores: list[float], value: float) -> None:
    """The worked figures of each aggregation."""
    criteria = QuantitativeCriteria("Rate", lambda request: scores[request.sample], agg=agg, num_samples=3)
    assert await criteria.compute(CODE) == value


@pytest.mark.parametrize(
    ("votes", "min_pass", "passes"), [(3, 3, True), (4, 5, False), (5, 5, True), (1, 1, True), (2, 3, False)]
)
@in_loop
async def test_published_votings(votes: int, min_pass: int, passes: bool) -> None:
    """Majority, unanimity, and one that is enough, of five."""
    criteria = QualitativeCriteria(
        "Good", lambda request: "pass" if request.sample < votes else "fail", num_samples=5, min_pass=min_pass
    )
    assert await criteria.verify(CODE) is passes


@in_loop
async def test_two_of_five_samples_give_the_midpoint() -> None:
    """With four of five needed, two that come decide nothing."""
    reliable_score = QuantitativeCriteria(
        expression="Rate code quality",
        llm=lambda request: 9 if request.sample < 2 else "?",
        num_samples=5,
        min_samples_for_aggregation=4,
    )
    evaluation = await reliable_score.evaluate(CODE)
    assert (evaluation.value, evaluation.fallback_used) == (5.0, True)
