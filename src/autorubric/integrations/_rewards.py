"""A rubric as the reward of a training run: in TRL's shape, and in that of verifiers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from autorubric._logs import logger_of
from autorubric._sync import KeptLoop
from autorubric.errors import ArgumentError, AutorubricError, BudgetError
from autorubric.graders import Grader
from autorubric.integrations._rubrics import RubricLike, rubric_from, rubric_of_row, why_not_judged
from autorubric.rubric import Rubric
from autorubric.types import EnsembleEvaluationReport
from autorubric.values import Submission

Reward: TypeAlias = Callable[..., list[float | None]]
"""`(prompts, completions, **columns) -> list[float | None]`."""

AsyncReward: TypeAlias = Callable[..., Awaitable[list[float | None]]]
"""The same, awaited."""

VerifiersReward: TypeAlias = Callable[..., Awaitable[float]]
"""`async (prompt, completion, answer, state, **kwargs) -> float`."""

_log = logger_of(__name__)


def as_reward(
    rubric: RubricLike | None,
    grader: Grader,
    *,
    name: str = "rubric_reward",
    reference_column: str = "reference",
    rubric_column: str = "rubric",
) -> Reward:
    """A reward function as TRL calls it: `(prompts, completions, **columns) -> list[float | None]`.

    All completions of a call are graded at once, within the limits of the grader's models and with their
    retries, in one event loop that is kept from call to call; so are connections. Threads may share the
    function, and so may processes that are forked. Prompts and completions are texts or conversations (lists
    of `{"role", "content"}`); further columns are lists as long, and those that are not used are ignored.

    A completion without a full judgment (no score, or a criterion on which every judge failed) is None, which
    TRL leaves out of the update, and never 0; the logger `autorubric.integrations._rewards` says why.

    Args:
        rubric: Against what; None where every row has its own.
        grader: By whom.
        name: The function's `__name__`, under which TRL logs the reward.
        reference_column: Column of the references that judges compare with; it may be missing.
        rubric_column: Column of rubrics, as mappings, lists of criteria or JSON texts; one that is None
            leaves that of the call. It may be missing where `rubric` is given.

    Raises:
        RubricError: `rubric` has faults.
    """
    group = _Group(_given(rubric), grader, reference_column, rubric_column)
    loop = KeptLoop(grader.aclose)

    def reward(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        return loop.run(group.scores(prompts, completions, columns))

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
    """`as_reward` as a coroutine function, graded in the event loop of whoever awaits it.

    Args and raises as for `as_reward`.
    """
    group = _Group(_given(rubric), grader, reference_column, rubric_column)

    async def reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        return await group.scores(prompts, completions, columns)

    reward.__name__ = reward.__qualname__ = name
    return reward


def as_verifiers_reward(
    rubric: RubricLike | None, grader: Grader, *, name: str = "rubric_reward"
) -> VerifiersReward:
    """A reward function in verifiers' shape: `async (prompt, completion, answer, state, **kwargs) -> float`.

    `answer` is the reference, where it is not empty; `info["rubric"]`, where it is there, takes the place of
    `rubric`. The judgment is left in `state["rubric_report"]`, as `EvaluationReport.to_dict` has it.

    verifiers wants a float and makes 0.0 of an exception and of None. A completion without a full judgment is
    therefore NaN, the one float that no average takes for a score, and `state["rubric_error"]` says why: drop
    such rollouts (`math.isnan(reward)`) before they are trained on.

    Args:
        rubric: Against what; None where every row has its own.
        grader: By whom.
        name: The function's `__name__`, under which verifiers logs the reward.

    Raises:
        RubricError: `rubric` has faults.
    """
    default = _given(rubric)

    async def reward(
        prompt: Any, completion: Any, answer: Any = "", state: Any = None, **kwargs: Any
    ) -> float:
        own = _info_of(kwargs.get("info")).get("rubric")
        row = _Row(prompt=prompt, completion=completion, reference=answer or None, rubric=own)
        graded = await _graded(row, default, grader)
        if isinstance(state, dict):
            state["rubric_report"] = graded.report.to_dict() if graded.report is not None else None
            state["rubric_error"] = graded.error
        return math.nan if graded.score is None else graded.score

    reward.__name__ = reward.__qualname__ = name
    return reward


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One completion.

    Attributes:
        prompt: What it completes: a text, or a conversation.
        completion: The completion, likewise.
        reference: A good answer to compare with.
        rubric: The row's own rubric; None for that of the call.
    """

    prompt: Any
    completion: Any
    reference: Any
    rubric: Any


@dataclass(frozen=True, slots=True)
class _Graded:
    """What grading a row came to: a score, or why there is none."""

    score: float | None
    error: str | None = None
    report: EnsembleEvaluationReport | None = None


@dataclass(frozen=True, slots=True)
class _Group:
    """Grades the completions of one call."""

    rubric: Rubric | None
    grader: Grader
    reference_column: str
    rubric_column: str

    async def scores(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: Mapping[str, Any]
    ) -> list[float | None]:
        """The score of each completion; None for those without a full judgment.

        Raises:
            ArgumentError: Columns differ in length, or there is no rubric.
        """
        size = len(completions)
        references = _column(columns, self.reference_column, size)
        rubrics = _column(columns, self.rubric_column, size)
        if len(prompts) != size:
            raise ArgumentError(f"there are {len(prompts)} prompts and {size} completions; give one for each")
        if self.rubric is None and self.rubric_column not in columns:
            raise ArgumentError(
                f"there is no rubric: give one to as_reward, or a column {self.rubric_column!r} of them"
            )
        rows = [
            _Row(prompt=prompt, completion=completion, reference=reference, rubric=rubric)
            for prompt, completion, reference, rubric in zip(
                prompts, completions, references, rubrics, strict=True
            )
        ]
        graded = await asyncio.gather(*(_graded(row, self.rubric, self.grader) for row in rows))
        return [one.score for one in graded]


async def _graded(row: _Row, default: Rubric | None, grader: Grader) -> _Graded:
    try:
        if row.rubric is None and default is None:
            raise ArgumentError("the row has no rubric, and the reward function has none either")
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
        return _unscored(f"{type(error).__name__}: {error}", None)
    why = why_not_judged(report)
    return _unscored(why, report) if why is not None else _Graded(report.score, None, report)


def _unscored(why: str, report: EnsembleEvaluationReport | None) -> _Graded:
    _log.warning("a completion has no reward: %s", why)
    return _Graded(None, why, report)


def _given(rubric: RubricLike | None) -> Rubric | None:
    return None if rubric is None else rubric_from(rubric)


def _column(columns: Mapping[str, Any], name: str, size: int) -> Sequence[Any]:
    given = columns.get(name)
    if given is None:
        return [None] * size
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != size:
        raise ArgumentError(f"column {name!r} is not a list of {size}, one for each completion")
    return given


def _info_of(info: Any) -> Mapping[str, Any]:
    if isinstance(info, str):
        # Data sets keep it as JSON.
        try:
            info = json.loads(info)
        except ValueError:
            return {}
    return info if isinstance(info, Mapping) else {}


def _text_of(given: Any) -> str:
    """A text as it is; of a conversation of one turn its content, of a longer one all turns.

    Raises:
        ArgumentError: It is neither.
    """
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, Sequence) or not all(isinstance(turn, Mapping) for turn in given):
        raise ArgumentError(f"{type(given).__name__} is neither a text nor a list of messages")
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
    """A part of a message's content: its text, or what stands in a text's place."""
    if isinstance(part, Mapping):
        return str(part["text"]) if "text" in part else f"[{part.get('type', 'part')}]"
    return str(part)
