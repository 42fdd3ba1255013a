"""The input and output of generators: attempts and candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from autorubric.strategy._hints import Hint
from autorubric.values import TokenUsage


class Attempt(int):
    """The number of a candidate, counted from 0 across all rounds, with information about its round.

    Attributes:
        iteration: The number of the round, starting at 1.
        position: The position within the round, starting at 0.
        hints: Failures of the candidates of the previous round; empty in the first round.
    """

    iteration: int
    position: int
    hints: tuple[Hint, ...]

    def __new__(cls, number: int, *, iteration: int, position: int, hints: tuple[Hint, ...] = ()) -> Self:
        """Create the attempt with this number."""
        made = super().__new__(cls, number)
        made.iteration, made.position, made.hints = iteration, position, hints
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A candidate returned by a generator.

    Attributes:
        content: The generated content.
        usage: Tokens spent, if a model generated it.
        spent: US dollars spent, if known.
    """

    content: Any
    usage: TokenUsage | None = None
    spent: float | None = None
