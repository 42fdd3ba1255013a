"""Evaluators for tests: they remember what they were asked and answer from a script."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from autorubric.criteria import LikertCriterion, LikertItem
from autorubric.judges import Prompt

GOOD = {"criterion_name": "helpfulness", "rating": 4, "explanation": "Good"}

HELPFUL = LikertCriterion(
    name="helpfulness",
    description="How helpful is the response?",
    scale=[
        LikertItem(val=1, description="Not helpful at all"),
        LikertItem(val=2, description="Slightly helpful"),
        LikertItem(val=3, description="Moderately helpful"),
        LikertItem(val=4, description="Very helpful"),
        LikertItem(val=5, description="Extremely helpful"),
    ],
)


def made_by(schema: type[BaseModel], evaluation: Any) -> bool:
    """Whether an evaluation is an instance of a schema."""
    return isinstance(evaluation, schema)


@dataclass
class Scripted:
    """Has `forward` alone, and gives objects with `.text`.

    Attributes:
        replies: What to give, in order, the last one for ever: JSON data, or texts as they are.
        prompts: What it was asked.
        threads: In which threads.
    """

    replies: list[Any] = field(default_factory=lambda: [GOOD])
    prompts: list[Prompt] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)

    def forward(self, prompt: Prompt) -> SimpleNamespace:
        return self.answered(prompt)

    def answered(self, prompt: Prompt) -> SimpleNamespace:
        given = self.replies[min(len(self.prompts), len(self.replies) - 1)]
        self.prompts.append(prompt)
        self.threads.append(threading.current_thread().name)
        return SimpleNamespace(text=given if isinstance(given, str) else json.dumps(given))

    @property
    def content(self) -> str:
        """The last prompt's text."""
        return self.prompts[-1].content


class ScriptedAsync:
    """Has `aforward` alone."""

    def __init__(self, *replies: Any) -> None:
        self.script = Scripted(list(replies) or [GOOD])

    async def aforward(self, prompt: Prompt) -> SimpleNamespace:
        return self.script.answered(prompt)


class ScriptedBoth(Scripted):
    """Has both, and says which was called."""

    async def aforward(self, prompt: Prompt) -> SimpleNamespace:
        self.threads.append("aforward")
        return self.answered(prompt)
