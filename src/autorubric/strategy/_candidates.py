"""What generators are told, and what they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from autorubric.strategy._hints import Hint
from autorubric.values import TokenUsage


class Attempt(int):
    """An attempt at a candidate: its number, from 0 over all rounds, and what is known when it begins.

    Attributes:
        iteration: The round, from 1.
        position: The place within the round, from 0.
        hints: What the candidates of the round before failed in; empty in the first round.
    """

    iteration: int
    position: int
    hints: tuple[Hint, ...]

    def __new__(cls, number: int, *, iteration: int, position: int, hints: tuple[Hint, ...] = ()) -> Self:
        """The attempt of that number."""
        made = super().__new__(cls, number)
        made.iteration, made.position, made.hints = iteration, position, hints
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A candidate as it comes.

    Attributes:
        content: What the generator gave.
        usage: Tokens spent, where a model gave it.
        spent: US dollars spent, where known.
    """

    content: Any
    usage: TokenUsage | None = None
    spent: float | None = None
