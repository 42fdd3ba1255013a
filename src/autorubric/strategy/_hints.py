"""The failures of a candidate, as data and as text for the prompt of the next round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from autorubric.prompts import neutralise

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
        criterion: Expression of the criterion, name of the rubric's criterion, or name of a function.
        passed: Number of samples that passed; None if no samples were drawn.
        samples: Number of samples drawn; None if no samples were drawn.
        needed: Number of samples that had to pass; None if there is no such number.
        score: Score of the candidate on the whole rubric; None for other failures.
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
        told = " ".join(self.criterion.split())
        if self.samples is not None:
            told += f" ({self.passed} of {self.samples} samples passed"
            told += ")" if self.needed is None else f", {self.needed} needed)"
        if self.score is not None:
            told += f" (score {self.score:.2f}, {self.min_score:.2f} needed)"
        return told


def with_hints(prompt: str, hints: Sequence[Hint]) -> str:
    """Append the failures of the last round to the prompt; without failures, return it unchanged."""
    if not hints:
        return prompt
    lines = []
    for hint in hints:
        lines.append(f"- {neutralise(str(hint))}")
        lines += [f"  - a judge wrote: {_quoted(reason)}" for reason in hint.reasons]
    return "\n".join([prompt, "", _HEAD, *dict.fromkeys(lines)])


def _quoted(reason: str) -> str:
    text = " ".join(neutralise(reason).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
