"""Reward functions based on rubrics for training with TRL or verifiers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from autorubric.criteria.values import Submission
from autorubric.errors import ArgumentError, AutorubricError, BudgetError
from autorubric.grading.base import Grader
from autorubric.integrations.assertions import RubricLike, rubric_from, rubric_of_row, why_not_judged
from autorubric.rubric.rubric import Rubric
from autorubric.scoring.reports import EnsembleEvaluationReport
from autorubric.support.concurrency import KeptLoop
from autorubric.support.objects import logger_of

Reward: TypeAlias = Callable[..., list[float | None]]
"""A function `(prompts, completions, **columns) -> list[float | None]`."""

AsyncReward: TypeAlias = Callable[..., Awaitable[list[float | None]]]
"""A coroutine function with the parameters and result of `Reward`."""

VerifiersReward: TypeAlias = Callable[..., Awaitable[float]]
"""A coroutine function `(prompt, completion, answer, state, **kwargs) -> float`."""

_log = logger_of(__name__)


def as_reward(
    rubric: RubricLike | None,
    grader: Grader,
    *,
    name: str = "rubric_reward",
    reference_column: str = "reference",
    rubric_column: str = "rubric",
) -> Reward:
    """Create a reward function for TRL: `(prompts, completions, **columns) -> list[float | None]`.

    All completions of a call are graded concurrently, subject to the rate limits and retries of the grader's
    models. The event loop and its connections are reused across calls, and threads and forked processes may
    share the function. Prompts and completions are strings or conversations (lists of `{"role", "content"}`).
    Other columns are lists of the same length; unused columns are ignored.

    A completion that could not be fully judged (it has no score, or every judge failed on a criterion) gets
    None, never 0, and TRL excludes it from the update. The logger `autorubric.integrations.rewards` reports
    the reason.

    Args:
        rubric: The rubric; None if every row has its own rubric.
        grader: The grader.
        name: The function's `__name__`, under which TRL logs the reward.
        reference_column: Name of the column with reference answers for the judges; the column is optional.
        rubric_column: Name of the column with rubrics as mappings, lists of criteria or JSON. A row whose
            value is None uses `rubric`. The column is optional if `rubric` is set.

    Raises:
        RubricError: If `rubric` has errors.
    """
    grade_rows = _scorer(rubric, grader, reference_column, rubric_column)
    loop = KeptLoop(grader.aclose)

    def reward(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        return loop.run(grade_rows(prompts, completions, **columns))

    reward.__name__ = reward.__qualname__ = name
    return reward


def as_async_reward(
    rubric: RubricLike | None,
    grader: Grader,
    *,
    name: str = "rubric_reward",
    reference_column: str = "reference",
    rubric_column: str = "rubric",
) -> AsyncReward:
    """Create an asynchronous reward function for TRL that grades in the caller's event loop.

    The arguments and errors are the same as for `as_reward`.
    """
    reward = _scorer(rubric, grader, reference_column, rubric_column)
    reward.__name__ = reward.__qualname__ = name
    return reward


def as_verifiers_reward(
    rubric: RubricLike | None, grader: Grader, *, name: str = "rubric_reward"
) -> VerifiersReward:
    """Create a reward function for verifiers: `async (prompt, completion, answer, state, **kwargs) -> float`.

    A non-empty `answer` is used as the reference, and `info["rubric"]`, if present, overrides `rubric`. The
    judgment is stored in `state["rubric_report"]`, in the format of `EvaluationReport.to_dict`.

    The verifiers library expects a float and converts exceptions and None to 0.0. A completion that could not
    be fully judged therefore gets NaN, which cannot be mistaken for a score, and `state["rubric_error"]`
    contains the reason. Drop such rollouts (`math.isnan(reward)`) before training.

    The arguments and errors are the same as for `as_reward`.
    """
    default = _rubric_or_none(rubric)

    async def reward(
        prompt: Any, completion: Any, answer: Any = "", state: Any = None, **kwargs: Any
    ) -> float:
        info = kwargs.get("info")
        if isinstance(info, str):
            # Datasets store the info as JSON.
            with suppress(ValueError):
                info = json.loads(info)
        own = info.get("rubric") if isinstance(info, Mapping) else None
        row = _RewardRow(prompt=prompt, completion=completion, reference=answer or None, rubric=own)
        graded = await _grade(row, default, grader)
        if isinstance(state, dict):
            state["rubric_report"] = graded.report.to_dict() if graded.report is not None else None
            state["rubric_error"] = graded.error
        return math.nan if graded.score is None else graded.score

    reward.__name__ = reward.__qualname__ = name
    return reward


@dataclass(frozen=True, slots=True, kw_only=True)
class _RewardRow:
    """One completion with its prompt."""

    prompt: Any  # the prompt, as a string or a conversation
    completion: Any  # the completion, as a string or a conversation
    reference: Any  # a good answer for comparison
    rubric: Any  # the rubric of the row; None to use the rubric of the reward function


@dataclass(frozen=True, slots=True)
class _Graded:
    """The result of grading a row: a score, or the reason why there is no score."""

    score: float | None
    error: str | None = None
    report: EnsembleEvaluationReport | None = None


def _scorer(
    rubric: RubricLike | None, grader: Grader, reference_column: str, rubric_column: str
) -> Callable[..., Coroutine[Any, Any, list[float | None]]]:
    """Return a function that returns the scores of completions, None for those without a full judgment."""
    default = _rubric_or_none(rubric)

    async def reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        size = len(completions)
        references = _column(columns, reference_column, size)
        rubrics = _column(columns, rubric_column, size)
        if len(prompts) != size:
            raise ArgumentError(f"prompts and completions differ in length: {len(prompts)} and {size}")
        if default is None and rubric_column not in columns:
            raise ArgumentError(
                f"no rubric: pass a rubric to as_reward, or add a column {rubric_column!r} with rubrics"
            )
        rows = [
            _RewardRow(prompt=prompt, completion=completion, reference=reference, rubric=rubric)
            for prompt, completion, reference, rubric in zip(
                prompts, completions, references, rubrics, strict=True
            )
        ]
        graded = await asyncio.gather(*(_grade(row, default, grader) for row in rows))
        return [one.score for one in graded]

    return reward


async def _grade(row: _RewardRow, default: Rubric | None, grader: Grader) -> _Graded:
    try:
        if row.rubric is None and default is None:
            raise ArgumentError("neither the row nor the reward function has a rubric")
        rubric = default if row.rubric is None else rubric_of_row(row.rubric)
        assert rubric is not None
        report = await grader.grade(
            _text_of(row.completion),
            rubric,
            query=_text_of(row.prompt),
            reference_submission=None if row.reference is None else str(row.reference),
        )
    except BudgetError:
        raise
    except AutorubricError as error:
        return _without_score(f"{type(error).__name__}: {error}", None)
    why = why_not_judged(report)
    return _without_score(why, report) if why is not None else _Graded(report.score, None, report)


def _without_score(why: str, report: EnsembleEvaluationReport | None) -> _Graded:
    _log.warning("a completion received no reward: %s", why)
    return _Graded(None, why, report)


def _rubric_or_none(rubric: RubricLike | None) -> Rubric | None:
    return None if rubric is None else rubric_from(rubric)


def _column(columns: Mapping[str, Any], name: str, size: int) -> Sequence[Any]:
    given = columns.get(name)
    if given is None:
        return [None] * size
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != size:
        raise ArgumentError(f"column {name!r} must be a list of length {size}, with one value per completion")
    return given


def _text_of(given: Any) -> str:
    """Return the text of a string, of a one-turn conversation, or of all turns of a longer conversation."""
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, Sequence) or not all(isinstance(turn, Mapping) for turn in given):
        raise ArgumentError(f"expected a string or a list of messages; got {type(given).__name__}")
    turns = [{"role": str(turn.get("role", "")), "content": _content(turn)} for turn in given]
    if len(turns) <= 1:
        return turns[0]["content"] if turns else ""
    return Submission.parse(turns).text or ""


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content")
    parts = [_part(part) for part in content] if isinstance(content, list) else [str(content or "")]
    calls = turn.get("tool_calls") or ()
    return "\n".join([*filter(None, parts), *(json.dumps(call, default=str) for call in calls)])


def _part(part: Any) -> str:
    """Return the text of a part of a message's content, or a placeholder for other parts."""
    if isinstance(part, Mapping):
        return str(part["text"]) if "text" in part else f"[{part.get('type', 'part')}]"
    return str(part)
