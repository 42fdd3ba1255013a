"""The strategy: generates and verifies candidates, chooses the cheapest, and repeats failed rounds."""

from __future__ import annotations

import asyncio
import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeVar, get_args

from autorubric.apps.strategy.result import (
    Hint,
    HintStyle,
    Reevaluation,
    StageError,
    StrategyCandidate,
    StrategyResult,
    with_hints,
)
from autorubric.apps.strategy.sampling import check_count
from autorubric.apps.strategy.steps import (
    Attempt,
    CostLike,
    Generator,
    GeneratorLike,
    Step,
    StepOutcome,
    VerifyLike,
    cost_step,
    generator_of,
    verify_step,
)
from autorubric.errors import ArgumentError, JudgeError
from autorubric.llm.budget import Spending, SpendingLimit, SpendingLimitName, spending_within
from autorubric.support.concurrency import NoStrayCancellation, sync_method
from autorubric.support.objects import is_number


class _Limits:
    """The limits of one strategy run."""

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        if max_calls is not None:
            check_count("max_calls", max_calls)
        if max_cost is not None and not (is_number(max_cost) and 0 < max_cost < math.inf):
            raise ArgumentError(f"max_cost must be a positive number of US dollars or None; got {max_cost!r}")
        self._max_calls, self._max_cost = max_calls, max_cost
        self._limit = SpendingLimit(max_calls=max_calls, max_cost=max_cost)

    def in_force(self) -> AbstractContextManager[None]:
        """Return a context manager that applies the limits to the requests sent within it."""
        return spending_within(self._limit) if self._limit.is_set else nullcontext()

    def reached_limit(self, result: StrategyResult) -> SpendingLimitName | None:
        """Return the limit that prevents another round; None if another round may start."""
        if self._limit.reached is not None:
            return self._limit.reached
        if self._max_calls is not None and self._limit.calls >= self._max_calls:
            return "max_calls"
        # Costs reported by judges that send no requests, such as functions, are only known from the result.
        spent = max(result.spent or 0.0, self._limit.cost)
        return "max_cost" if self._max_cost is not None and spent >= self._max_cost else None

    def spending(self, stopped: SpendingLimitName | None) -> Spending | None:
        """Return the number of requests sent and their cost; None if no limit is set."""
        if not self._limit.is_set:
            return None
        return Spending(self._limit.calls, self._limit.cost, stopped or self._limit.reached)

    def message(self, limit: SpendingLimitName) -> str:
        if limit == "max_calls":
            return f"the limit max_calls={self._max_calls} (requests) was reached"
        return f"the limit max_cost={self._max_cost} (US dollars) was reached"


T = TypeVar("T")


class Strategy:
    """A strategy that generates candidates, drops any that fail a check, and chooses the cheapest.

    Candidates are never executed; what happens with the winner is up to the caller.

    Args:
        verify: The check that a candidate must pass: `QualitativeCriteria`, a `RubricThreshold`, any object
            with `verify(candidate, context)`, or a sync or async function of `(candidate)` or
            `(candidate, context)`. If None, all candidates pass.
        cost: The cost to minimise: `QuantitativeCriteria`, a `RubricThreshold` (1 - score), any object with
            `compute(candidate, context)`, or a function as for `verify`. If None, the first passing candidate
            wins. Costs for which `fallback_used` is set rank after all other costs.
        max_iterations: Maximum number of rounds. Another round starts only if the previous one had no winner.
        num_candidates: Number of candidates per round; they are generated and judged concurrently.
        hints: Information about the previous round to add to the next prompt: `"counts"` for the failed
            criteria with sample counts, `"reasons"` to add the judges' reasons, or `"none"`.

    Raises:
        ArgumentError: If an argument is invalid.
    """

    def __init__(
        self,
        verify: VerifyLike = None,
        cost: CostLike = None,
        max_iterations: int = 3,
        num_candidates: int = 3,
        *,
        hints: HintStyle = "counts",
    ) -> None:
        check_count("max_iterations", max_iterations)
        check_count("num_candidates", num_candidates)
        if hints not in get_args(HintStyle):
            raise ArgumentError(f"hints must be one of {', '.join(get_args(HintStyle))}; got {hints!r}")
        self._verify, self._cost = verify_step(verify), cost_step(cost)
        self.verify = verify
        self.cost = cost
        self.max_iterations = max_iterations
        self.num_candidates = num_candidates
        self.hints = hints

    async def run(
        self,
        generate: GeneratorLike,
        prompt: Any,
        *,
        context: Any = None,
        reevaluate: int = 0,
        max_calls: int | None = None,
        max_cost: float | None = None,
    ) -> StrategyResult:
        """Run the strategy and return the winner and all candidates.

        If the generator, `verify` or `cost` raises an error for a candidate, the error is recorded with that
        candidate and does not affect the others.

        Args:
            generate: The source of candidates: a model name, `LLM(name)`, or a sync or async function of
                `(prompt)` or `(prompt, attempt)`, where the `Attempt` contains the candidate's number and the
                hints. A generator function is called once per round and yields that round's candidates; a
                generator returned by a function is used the same way. A sync or async generator object yields
                the candidates for all rounds and is not closed.
            prompt: The task. After a failed round, hints are appended if the prompt is a string.
            context: Passed to `verify` and `cost`. Criteria show it to their judge if it is text or data.
            reevaluate: Number of fresh votes with which `verify` and `cost` criteria judge the winner again;
                a rubric is graded this many times. If the candidate fails `verify` with these votes, the
                result has no winner. 0 skips the reevaluation.
            max_calls: Maximum number of requests to models, including repeated questions and retries. A
                request that would exceed the limit is not sent, and its candidate gets an error. The other
                candidates are finished and the winner is chosen from them, but no further round or
                reevaluation starts, and the result's `stopped` names the limit.
            max_cost: Maximum cost of the requests in US dollars, with the same effect. Models with an unknown
                price are not called. The cost of judges that do not send requests is checked between rounds.

        Raises:
            ArgumentError: If `generate` cannot generate candidates or does not accept the prompt, or if
                `reevaluate`, `max_calls` or `max_cost` is invalid.
        """
        check_count("reevaluate", reevaluate, least=0)
        limits = _Limits(max_calls, max_cost)
        generator = generator_of(generate, prompt)
        with limits.in_force():
            try:
                result = await self._rounds(generator, prompt, context, limits)
            finally:
                await generator.aclose()
            if not reevaluate or result.winner_number is None:
                return result
            reached = limits.reached_limit(result)
            if reached is not None:
                again = Reevaluation(
                    candidate=result.winner_number, votes=reevaluate, error=limits.message(reached)
                )
            else:
                again = await self._reevaluate(result.candidates[result.winner_number], context, reevaluate)
        result = replace(result, reevaluation=again, spending=limits.spending(reached))
        if again.verified is False:
            return replace(result, winner=None, cost=None, winner_number=None)
        return result

    run_sync = sync_method(run)
    """Call `run` from synchronous code, even inside a running event loop."""

    async def _rounds(
        self, generator: Generator, prompt: Any, context: Any, limits: _Limits
    ) -> StrategyResult:
        result = StrategyResult(winner=None, cost=None, iterations=0, candidates=())
        hints: tuple[Hint, ...] = ()
        for iteration in range(1, self.max_iterations + 1):
            if (reached := limits.reached_limit(result)) is not None:
                return replace(result, spending=limits.spending(reached))
            text = with_hints(prompt, hints) if isinstance(prompt, str) else prompt
            first = (iteration - 1) * self.num_candidates
            attempts = (
                Attempt(first + position, iteration=iteration, position=position, hints=hints)
                for position in range(self.num_candidates)
            )
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._candidate(generator, text, attempt, context))
                    for attempt in attempts
                ]
            candidates = [task.result() for task in tasks]
            result = replace(
                result,
                iterations=iteration,
                candidates=(*result.candidates, *candidates),
                spending=limits.spending(None),
            )
            passed = [one for one in candidates if one.verified and not one.errors]
            # A cost that replaces missing votes is not comparable with a measured cost.
            best = min(passed, key=lambda one: (one.cost_fallback_used, one.cost or 0.0), default=None)
            if best is not None:
                return replace(result, winner=best.content, cost=best.cost, winner_number=best.number)
            if self.hints != "none":
                hints = tuple(hint for one in candidates for hint in one.hints)
        return result

    async def _candidate(
        self, generator: Generator, prompt: Any, attempt: Attempt, context: Any
    ) -> StrategyCandidate:
        candidate = await _generate(generator, prompt, attempt)
        if candidate.errors:
            return candidate
        candidate = await self._check(candidate, context)
        if not candidate.verified or self._cost is None:
            return candidate
        outcome = await self._cost.ask(candidate.content, context)
        return replace(
            candidate, cost=outcome.value, costing=outcome.evaluations, errors=_errors("cost", outcome.error)
        )

    async def _check(self, candidate: StrategyCandidate, context: Any) -> StrategyCandidate:
        if self._verify is None:
            return replace(candidate, verified=True)
        outcome = await self._verify.ask(candidate.content, context)
        return replace(
            candidate,
            verified=outcome.value,
            verification=outcome.evaluations,
            hints=self._failure_hints(candidate.number, self._verify, outcome),
            errors=_errors("verify", outcome.error),
        )

    def _failure_hints(self, number: int, step: Step[bool], outcome: StepOutcome[bool]) -> tuple[Hint, ...]:
        if outcome.value is not False:
            return ()
        reasons = self.hints == "reasons"
        found = [hint for one in outcome.evaluations for hint in one.hints(number, reasons=reasons)]
        # Missing votes do not count as a failure of the candidate.
        lacks_votes = any(one.fallback_used for one in outcome.evaluations)
        return (
            tuple(found) if found or lacks_votes else (Hint(candidate=number, criterion=step.function.name),)
        )

    async def _reevaluate(self, best: StrategyCandidate, context: Any, votes: int) -> Reevaluation:
        if self._verify is None and self._cost is None:
            message = "the strategy has neither verify nor cost, so there is nothing to reevaluate"
            return Reevaluation(candidate=best.number, votes=votes, error=message)
        check, cost = await asyncio.gather(
            _fresh(self._verify, best.content, context, votes),
            _fresh(self._cost, best.content, context, votes),
        )
        faults = [fault for fault in (_fault(check), _fault(cost)) if fault is not None]
        return Reevaluation(
            candidate=best.number,
            votes=votes,
            verified=_trusted_value(check),
            cost=_trusted_value(cost),
            evaluations=(*check.evaluations, *cost.evaluations),
            error="; ".join(dict.fromkeys(faults)) or None,
        )


async def _generate(generator: Generator, prompt: Any, attempt: Attempt) -> StrategyCandidate:
    """Return the candidate for an attempt; an error raised by the generator is recorded in it."""
    candidate = StrategyCandidate(number=int(attempt), iteration=attempt.iteration, prompt=prompt)
    try:
        with NoStrayCancellation("generate"):
            generated = await generator.generate(prompt, attempt)
    # Generators run user code: an error raised for one candidate must not affect the others.
    except Exception as error:
        usage, spent = (error.usage, error.cost) if isinstance(error, JudgeError) else (None, None)
        errors = _errors("generate", error)
        return replace(candidate, errors=errors, generation_usage=usage, generation_spent=spent)
    return replace(
        candidate,
        content=generated.content,
        generation_usage=generated.usage,
        generation_spent=generated.spent,
    )


def _errors(stage: Any, error: Exception | None) -> tuple[StageError, ...]:
    return () if error is None else (StageError(stage=stage, error=f"{type(error).__name__}: {error}"),)


async def _fresh(step: Step[T] | None, winner: Any, context: Any, votes: int) -> StepOutcome[T]:
    """Return a step's outcome on fresh votes; a function without criteria is called `votes` times."""
    if step is None:
        return StepOutcome(value=None, evaluations=())
    outcome = await step.ask(winner, context, fresh=votes)
    if outcome.evaluations or outcome.error is not None or votes == 1:
        return outcome
    again = (step.ask(winner, context, fresh=votes) for _ in range(votes - 1))
    outcomes: list[StepOutcome[T]] = [outcome, *await asyncio.gather(*again)]
    error = next((one.error for one in outcomes if one.error is not None), None)
    if error is not None:
        return replace(outcome, value=None, error=error)
    values: list[Any] = [one.value for one in outcomes]
    value: Any = fmean(values) >= 0.5 if isinstance(outcome.value, bool) else fmean(values)
    return replace(outcome, value=value)


def _trusted_value(outcome: StepOutcome[T]) -> T | None:
    return None if any(one.fallback_used for one in outcome.evaluations) else outcome.value


def _fault(outcome: StepOutcome[T]) -> str | None:
    if outcome.error is not None:
        return f"{type(outcome.error).__name__}: {outcome.error}"
    fell_back = any(one.fallback_used for one in outcome.evaluations)
    return "too few of the fresh votes are valid" if fell_back else None
