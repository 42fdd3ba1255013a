"""The published examples of sampled criteria, with models of the test server behind them."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import autorubric
from autorubric import LLMConfig, QualitativeCriteria, QuantitativeCriteria, Strategy, StrategyResult
from tests.doubles import in_loop
from tests.servers.fixtures import OpenAIServer

CODE = "def fibonacci(n):\n    return n"


@pytest.fixture
def LLM(openai_server: OpenAIServer) -> Callable[[str], LLMConfig]:
    """`LLM("name")`, asked on the test server, where all passes and scores 4."""
    passed = {"reason": "so", "passed": True, "cannot_assess": False}
    score = {"explanation": "so", "score": 4, "cannot_assess": False}
    openai_server.script({"do": "answer", "payload": passed}, repeat="last")
    openai_server.script({"do": "answer", "payload": score}, contains="Rating range", repeat="last")
    return partial(autorubric.LLM, api_base=openai_server.api_base, transport="openai_compatible")


async def winner(strategy: Strategy) -> StrategyResult:
    """What the strategy makes of one and the same code."""
    return await strategy.run(lambda prompt: CODE, "Calculate fibonacci of 10", context=object())


@in_loop
async def test_qualitative_basic_usage(LLM: Any, openai_server: OpenAIServer) -> None:
    """A criterion in plain words verifies candidates."""
    evaluator = LLM("gpt-4o-mini")
    is_readable = QualitativeCriteria(
        expression="Code is readable, well-structured, and follows Python best practices", llm=evaluator
    )
    strategy = Strategy(verify=is_readable, max_iterations=3, num_candidates=3)
    result = await winner(strategy)
    assert (result.winner, result.iterations, len(openai_server.log())) == (CODE, 1, 3)


@in_loop
async def test_qualitative_with_sampling(LLM: Any, openai_server: OpenAIServer) -> None:
    """Five samples a candidate, four of which must count and three pass."""
    is_high_quality = QualitativeCriteria(
        expression="Code is production-ready with proper error handling",
        llm=LLM("gpt-4o"),
        num_samples=5,
        min_samples_for_aggregation=4,
        min_pass=3,
    )
    strategy = Strategy(verify=is_high_quality)
    assert (await winner(strategy)).winner == CODE
    assert len(openai_server.log()) == 15


@in_loop
async def test_multiple_criteria_in_one_function(LLM: Any, openai_server: OpenAIServer) -> None:
    """A function of candidate and context asks three criteria at once."""
    evaluator = LLM("gpt-4o-mini")
    is_readable = QualitativeCriteria(expression="Readable", llm=evaluator, num_samples=3, min_pass=2)
    is_efficient = QualitativeCriteria(
        expression="Efficient (no O(n²))", llm=evaluator, num_samples=3, min_pass=2
    )
    is_safe = QualitativeCriteria(expression="Handles errors", llm=evaluator, num_samples=3, min_pass=2)

    async def verify_all(code: Any, agent: Any) -> bool:
        results = await asyncio.gather(
            is_readable.verify(code, agent), is_efficient.verify(code, agent), is_safe.verify(code, agent)
        )
        return all(results)

    no = {"reason": "loops", "passed": False, "cannot_assess": False}
    openai_server.script({"do": "answer", "payload": no}, contains="Efficient", repeat="last")
    strategy = Strategy(verify=verify_all, max_iterations=1, num_candidates=1)
    result = await winner(strategy)
    assert result.winner is None
    assert [hint.criterion for hint in result.candidates[0].hints] == ["Efficient (no O(n²))"]
    assert len(openai_server.log()) == 9


@in_loop
async def test_quantitative_basic_usage(LLM: Any) -> None:
    """A score in plain words chooses among candidates."""
    complexity_score = QuantitativeCriteria(
        expression="How complex is this code? (0=very simple, 10=very complex)",
        llm=LLM("gpt-4o-mini"),
        min=0.0,
        max=10.0,
        agg="avg",
    )
    strategy = Strategy(cost=complexity_score, max_iterations=3, num_candidates=3)
    result = await winner(strategy)
    assert (result.winner, result.cost, result.winner_number) == (CODE, 4.0, 0)


@in_loop
async def test_quantitative_with_sampling(LLM: Any, openai_server: OpenAIServer) -> None:
    """The median of five samples is not moved by one that lies far off."""
    readability_score = QuantitativeCriteria(
        expression="Rate code readability from 0 (unreadable) to 10 (crystal clear)",
        llm=LLM("gpt-4o"),
        min=0.0,
        max=10.0,
        agg="med",
        num_samples=5,
        min_samples_for_aggregation=4,
    )
    far = {"explanation": "so", "score": 10, "cannot_assess": False}
    openai_server.script({"do": "answer", "payload": far})
    strategy = Strategy(cost=readability_score, num_candidates=1)
    result = await winner(strategy)
    assert result.cost == 4.0


@in_loop
async def test_multiple_metrics_in_one_function(LLM: Any) -> None:
    """A function weighs three scores."""
    scorer = LLM("gpt-4o-mini")
    complexity = QuantitativeCriteria(
        expression="Rate complexity", llm=scorer, min=0, max=10, agg="avg", num_samples=3
    )
    maintainability = QuantitativeCriteria(
        expression="Rate maintainability", llm=scorer, min=0, max=10, agg="avg", num_samples=3
    )
    testability = QuantitativeCriteria(
        expression="Rate testability", llm=scorer, min=0, max=10, agg="avg", num_samples=3
    )

    async def combined_cost(code: Any, agent: Any) -> float:
        scores = await asyncio.gather(
            complexity.compute(code, agent),
            maintainability.compute(code, agent),
            testability.compute(code, agent),
        )
        return 0.4 * scores[0] + 0.3 * scores[1] + 0.3 * scores[2]

    strategy = Strategy(cost=combined_cost)
    result = await winner(strategy)
    assert result.cost == pytest.approx(4.0)
    assert len(result.candidates[0].costing) == 3


@in_loop
async def test_verify_and_cost_together(LLM: Any) -> None:
    """A gate and a score in one strategy."""
    is_valid = QualitativeCriteria(
        expression="Code is correct and handles edge cases", llm=LLM("gpt-4o-mini"), num_samples=3, min_pass=2
    )
    complexity = QuantitativeCriteria(
        expression="How complex is this code? (0=simple, 10=complex)",
        llm=LLM("gpt-4o-mini"),
        min=0,
        max=10,
        agg="avg",
        num_samples=3,
    )
    strategy = Strategy(verify=is_valid, cost=complexity, max_iterations=3, num_candidates=3)
    result = await winner(strategy)
    assert (result.winner, result.cost, len(result.candidates)) == (CODE, 4.0, 3)


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


QUALITATIVE: list[dict[str, Any]] = [
    {"expression": "Code is production-ready", "num_samples": 5, "min_pass": 4},
    {"expression": "Code is basically correct", "num_samples": 1},
    {"expression": "Code passes all test cases"},
    {"expression": "Code meets all of:\n- PEP 8\n- type hints", "num_samples": 3, "min_pass": 2},
    {"expression": "Code includes tests for:\n- edge cases", "num_samples": 3, "min_pass": 2},
]
QUANTITATIVE: list[dict[str, Any]] = [
    {"expression": "Rate consistency", "agg": "med", "num_samples": 5},
    {"expression": "Rate safety", "agg": "min", "num_samples": 5},
    {"expression": "Rate complexity", "agg": "avg", "num_samples": 5},
    {"expression": "Rate efficiency (0=slow, 10=fast)"},
    {"expression": "Rate memory efficiency:\n0 = Minimal (< 1 MB)", "min": 0, "max": 10},
    {"expression": "Rate complexity:\n0-2: Simple", "min": 0, "max": 10, "agg": "avg", "num_samples": 5},
    {"expression": "Rate readability:\n10 = clear", "min": 0, "max": 10, "agg": "med", "num_samples": 5},
    {"expression": "Rate performance:\n0 = O(1)", "min": 0, "max": 10, "agg": "avg", "num_samples": 3},
]


@pytest.mark.parametrize("options", QUALITATIVE, ids=lambda one: one["expression"][:25])
@in_loop
async def test_published_gates(LLM: Any, options: dict[str, Any], openai_server: OpenAIServer) -> None:
    """Each published combination of arguments works, with a request a sample."""
    assert await QualitativeCriteria(llm=LLM("gpt-4o"), **options).verify(CODE) is True
    assert len(openai_server.log()) == options.get("num_samples", 1)


@pytest.mark.parametrize("options", QUANTITATIVE, ids=lambda one: one["expression"][:25])
@in_loop
async def test_published_scores(LLM: Any, options: dict[str, Any], openai_server: OpenAIServer) -> None:
    """Each published combination of arguments works, with a request a sample."""
    assert await QuantitativeCriteria(llm=LLM("gpt-4o"), **options).compute(CODE) == 4.0
    assert len(openai_server.log()) == options.get("num_samples", 1)


@in_loop
async def test_hard_constraints_and_optimisation(LLM: Any) -> None:
    """A gate that must pass, a score among those that do, of five candidates."""
    passes_tests = QualitativeCriteria(expression="Code passes all test cases", llm=LLM("gpt-4o-mini"))
    is_efficient = QuantitativeCriteria(
        expression="Rate efficiency (0=slow, 10=fast)", llm=LLM("gpt-4o-mini")
    )
    strategy = Strategy(verify=passes_tests, cost=is_efficient, num_candidates=5)
    assert len((await winner(strategy)).candidates) == 5


class LoggedQuantitativeCriteria(QuantitativeCriteria):
    """Prints each score."""

    async def compute(self, code: Any, agent: Any) -> float:  # type: ignore[override]
        score = await super().compute(code, agent)
        print(f"[CRITERIA] {self.expression}: {score}/{self.max}")
        return score


@in_loop
async def test_criteria_that_log(LLM: Any) -> None:
    """A subclass that renames the parameters is called by the strategy, positionally."""
    complexity = LoggedQuantitativeCriteria(
        expression="Rate complexity", llm=LLM("gpt-4o-mini"), min=0, max=10
    )
    assert (await winner(Strategy(cost=complexity, num_candidates=2))).cost == 4.0


def test_what_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """The printed line has the score and the end of the range."""
    logged = LoggedQuantitativeCriteria(expression="Rate complexity", llm=lambda request: 4, min=0, max=10)
    asyncio.run(logged.compute(CODE, None))
    assert capsys.readouterr().out == "[CRITERIA] Rate complexity: 4.0/10\n"


class InstrumentedQuantitativeCriteria(QuantitativeCriteria):
    """Keeps the samples, and prints what they came to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sample_history: list[tuple[float, ...]] = []

    async def compute(self, code: Any, agent: Any) -> float:  # type: ignore[override]
        score = await super().compute(code, agent)
        self.sample_history.append((await self.evaluate(code, agent)).valid)
        print(f"Criteria: {self.expression}")
        print(f"Final score: {score}")
        print(f"Aggregation: {self.agg}")
        return score


def test_criteria_that_keep_their_samples(capsys: pytest.CaptureFixture[str]) -> None:
    """Positional arguments pass through a subclass, and the record has the single samples."""
    instrumented = InstrumentedQuantitativeCriteria(
        "Rate complexity", lambda request: request.sample, 0, 10, "med", num_samples=5
    )
    assert asyncio.run(instrumented.compute(CODE, None)) == 2.0
    assert instrumented.sample_history == [(0.0, 1.0, 2.0, 3.0, 4.0)]
    assert statistics.pstdev(instrumented.sample_history[0]) == pytest.approx(2**0.5)
    assert "Final score: 2.0\nAggregation: med" in capsys.readouterr().out
