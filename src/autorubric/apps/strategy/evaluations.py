"""Evaluations, the trace of those made while a function is called, and hints from failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from autorubric.errors import TokenUsage
from autorubric.judges.prompts import neutralise
from autorubric.support.objects import Json

HintStyle = Literal["counts", "reasons", "none"]
"""Content of the hints after a failed round: the failed criteria with sample counts, these and the judges'
reasons, or no hints.
"""

_HEAD: Final = "Earlier attempts did not pass. What they failed in:"
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One failure of a candidate.

    Attributes:
        candidate: Number of the candidate.
        criterion: Expression of the criterion, name of the rubric criterion, or name of the function.
        passed: Number of samples that passed; None if no samples were drawn.
        samples: Number of samples drawn; None if no samples were drawn.
        needed: Number of samples that had to pass; None if not applicable.
        score: The candidate's score on the whole rubric; None for other failures.
        min_score: Score required on the whole rubric; None for other failures.
        reasons: Reasons written by the judges; empty unless `hints="reasons"`.
    """

    candidate: int
    criterion: str
    passed: int | None = None
    samples: int | None = None
    needed: int | None = None
    score: float | None = None
    min_score: float | None = None
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = " ".join(self.criterion.split())
        if self.samples is not None:
            text += f" ({self.passed} of {self.samples} samples passed"
            text += ")" if self.needed is None else f", {self.needed} needed)"
        if self.score is not None:
            text += f" (score {self.score:.2f}, {self.min_score:.2f} needed)"
        return text


def with_hints(prompt: str, hints: Sequence[Hint]) -> str:
    """Append the failures of the last round to the prompt; without failures, return it unchanged."""
    if not hints:
        return prompt
    lines = []
    for hint in hints:
        lines.append(f"- {neutralise(str(hint))}")
        lines += [f"  - a judge wrote: {_quote(reason)}" for reason in hint.reasons]
    return "\n".join([prompt, "", _HEAD, *dict.fromkeys(lines)])


def _quote(reason: str) -> str:
    text = " ".join(neutralise(reason).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Evaluation(Protocol):
    """The record of one evaluation of one candidate."""

    @property
    def fallback_used(self) -> bool:
        """Whether the value is a substitute because votes are missing."""
        ...

    @property
    def usage(self) -> TokenUsage | None: ...

    @property
    def cost(self) -> float | None: ...

    def hints(self, candidate: int, *, reasons: bool) -> tuple[Hint, ...]:
        """Return the candidate's failures, with the judges' reasons if `reasons` is set."""
        ...

    def to_dict(self) -> dict[str, Json]: ...


def total_usage(usages: Iterable[TokenUsage | None]) -> TokenUsage | None:
    """Return the sum of the token counts; None if none is known."""
    known = [usage for usage in usages if usage is not None]
    return sum(known, TokenUsage()) if known else None


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the costs in US dollars; None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


@dataclass(slots=True)
class EvaluationTrace:
    """The evaluations of one call, in the order in which they started.

    A strategy calls `verify(candidate, context)` and `compute(candidate, context)`, which subclasses may
    override and functions may call, and receives only a value. The trace of the call collects the underlying
    evaluations.
    """

    fresh: int = 0  # fresh votes to draw per evaluation, with new sample indices; 0 for the regular votes
    _places: list[Evaluation | None] = field(default_factory=list)

    def reserve(self) -> int:
        """Reserve a position for an evaluation that is starting and return the position."""
        self._places.append(None)
        return len(self._places) - 1

    def enter(self, place: int, evaluation: Evaluation) -> None:
        """Store an evaluation at its position."""
        self._places[place] = evaluation

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """Return the finished evaluations in the order in which they started."""
        return tuple(one for one in self._places if one is not None)


_CURRENT: Final[ContextVar[EvaluationTrace | None]] = ContextVar("autorubric_strategy_trace", default=None)


@contextmanager
def record_evaluations(trace: EvaluationTrace) -> Iterator[None]:
    """Collect the evaluations that are made inside the `with` block in the trace."""
    token = _CURRENT.set(trace)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_trace() -> EvaluationTrace:
    """Return the trace of the current call, or a temporary trace outside of a call."""
    return _CURRENT.get() or EvaluationTrace()
